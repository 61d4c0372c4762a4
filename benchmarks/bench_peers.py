"""What other libraries take for the same work in the same run: train all labels, add 1, 100 or half of them, predict.

    make bench ARGS=peers                                        Bibtex and EURLEX57K, every peer that is installed
    make bench ARGS="peers --quick"                              a small twin (seconds a peer)
    make bench ARGS="peers --sets bibtex --peers ours --keep peers.jsonl"       some of it, kept beside what is there

PECOS wants an older NumPy: ``--also PYTHON`` names the interpreter of another environment, with it and fastText in it.
Every job is a process of its own with one thread; memory is the largest of the whole process, rows and libraries too.
All get the same rows of unit length, the labels that occur in the same drawn order, and parameters as their
documentation has them. Whoever cannot take a new label trains all of them again; whoever has one classifier a label
trains the new ones alone. A job is stopped after ``--limit`` seconds; what one-vs-rest takes for all labels is then
told from 100 of them.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

K = 5
NEXT = 5  # labels that arrive one by one
JOBS = ("1", "100", "half", "all")
SETS = ("bibtex", "eurlex57k")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "RAYON")}
HEAD = ("+1", "+100", "+ half", "once", "all labels", "top 5", "MiB", "P@1/3/5", "after + half", "a new label makes it")
Predict = Callable[[Any], Any]


def best(scores: Any) -> Any:
    """The K best columns of each row, best first."""
    scores = scores.reshape(scores.shape[0], -1)
    found = np.argpartition(-scores, min(K, scores.shape[1]) - 1, axis=1)[:, :K]
    return np.take_along_axis(found, np.argsort(-np.take_along_axis(scores, found, 1), axis=1), axis=1)


def ranked(rows: list[list[Any]]) -> Any:
    """Labels of rows that may have fewer than K; -1 fills up."""
    return np.array([([int(label) for label in row] + K * [-1])[:K] for row in rows])


def words(rows: Any, prefix: str) -> list[str]:
    """The numbers of the cells of each row, as words."""
    return [" ".join(f"{prefix}{j}" for j in row) for row in np.split(rows.indices, rows.indptr[1:-1])]


def train_ridge(X: Any, Y: Any, folder: Path) -> Predict:
    from sklearn.linear_model import Ridge

    # On sparse rows it would iterate label by label, which takes far longer.
    model = Ridge(alpha=1.0, copy_X=False).fit(X.astype(np.float32).toarray(), Y.toarray().astype(np.float32))
    return lambda test: best(model.predict(test.astype(np.float32).toarray()))


def train_svc(X: Any, Y: Any, folder: Path) -> Predict:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    answers = Y.astype(np.int32) if Y.shape[1] > 1 else Y.toarray().ravel()
    model = OneVsRestClassifier(LinearSVC(random_state=0)).fit(X, answers)
    return lambda test: best(model.decision_function(test))


def train_napkin(kind: str, X: Any, Y: Any, folder: Path) -> Predict:
    import napkinxc.models

    model = getattr(napkinxc.models, kind)(tempfile.mkdtemp(dir=folder), threads=1)
    model.fit(X, [row.tolist() for row in np.split(Y.indices, Y.indptr[1:-1])])
    return lambda test: ranked(model.predict(test, top_k=K))


def train_omikuji(X: Any, Y: Any, folder: Path) -> Predict:
    import omikuji

    model = omikuji.Model.train_on_data(str(folder / "xc.txt"), omikuji.Model.default_hyper_param(), n_threads=1)
    model.init_prediction_thread_pool(1)

    def predict(test: Any) -> Any:
        parts = (np.split(cells.tolist(), test.indptr[1:-1]) for cells in (test.indices, test.data))
        rows = [list(zip(map(int, at), values.tolist(), strict=True)) for at, values in zip(*parts, strict=True)]
        return ranked([[label for label, _ in model.predict(row, top_k=K)] for row in rows])

    return predict


def train_pecos(tree: bool, X: Any, Y: Any, folder: Path) -> Predict:
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    rows, labels = (sparse.csr_matrix(part, dtype=np.float32) for part in (X, Y))
    chain = Indexer.gen(LabelEmbeddingFactory.create(labels, rows, method="pifa"), threads=1) if tree else None
    model = XLinearModel.train(rows, labels, C=chain, threads=1)

    def predict(test: Any) -> Any:
        found = model.predict(sparse.csr_matrix(test, dtype=np.float32), only_topk=K, threads=1).tocsr()
        parts = zip(np.split(found.indices, found.indptr[1:-1]), np.split(found.data, found.indptr[1:-1]), strict=True)
        return ranked([labels[np.argsort(-scores)] for labels, scores in parts])

    return predict


def train_fasttext(X: Any, Y: Any, folder: Path) -> Predict:
    """With the settings of its page on many labels a text; the words of a row are the numbers of its features."""
    import fasttext

    told = {"lr": 0.5, "epoch": 25, "wordNgrams": 2, "bucket": 200_000, "dim": 50, "loss": "ova"}
    model = fasttext.train_supervised(str(folder / "fasttext.txt"), thread=1, verbose=0, **told)
    # `predict` of its Python package does not go with NumPy 2; this is what that calls.
    return lambda test: ranked(
        [[name[9:] for _, name in model.f.predict(f"{text}\n", K, 0.0, "strict")] for text in words(test, "w")]
    )


NEW, FACTOR, AGAIN = "trains the new ones", "makes the factor again", "trains all again"


@dataclass(frozen=True)
class Peer:
    """A library: what it is installed as, how it trains, and what a new label makes it train."""

    module: str
    train: Callable[[Any, Any, Path], Predict] | None
    adds: str


PEERS = {
    "ours (auto)": Peer("streamlabel", None, "learns the new ones"),
    "ours (squared)": Peer("streamlabel", None, "learns the new ones"),
    "scikit-learn Ridge": Peer("sklearn.linear_model", train_ridge, FACTOR),
    "scikit-learn LinearSVC": Peer("sklearn.multiclass", train_svc, NEW),
    "napkinXC BR": Peer("napkinxc.models", partial(train_napkin, "BR"), NEW),
    "PECOS one-vs-rest": Peer("pecos.xmc.xlinear.model", partial(train_pecos, False), NEW),
    "napkinXC PLT": Peer("napkinxc.models", partial(train_napkin, "PLT"), AGAIN),
    "omikuji": Peer("omikuji", train_omikuji, AGAIN),
    "PECOS XR-Linear": Peer("pecos.xmc.xlinear.model", partial(train_pecos, True), AGAIN),
    "fastText": Peer("fasttext", train_fasttext, AGAIN),
}


def count(job: str, n_labels: int) -> int:
    """The number of labels that a job trains or adds."""
    return n_labels if job == "all" else n_labels // 2 if job == "half" else min(int(job), n_labels // 2)


def do_job(name: str, job: str, folder: Path) -> dict[str, Any]:
    """One job, in this process: CPU seconds of training and of predicting, and the five best labels in a file."""
    X, Y, test = (sparse.csr_matrix(sparse.load_npz(folder / f"{part}.npz")) for part in ("X", "Y", "test"))
    n_new = count(job, Y.shape[1])
    importlib.import_module(PEERS[name].module)  # is not part of the work
    train, spent = PEERS[name].train, {}
    begin = time.process_time()
    if train is not None:
        predict = train(X, Y if job == "all" else Y[:, -n_new:], folder)
        spent["cpu"] = time.process_time() - begin
    else:
        from streamlabel import StreamingLabelClassifier

        model = StreamingLabelClassifier(**({"loss": "squared"} if "squared" in name else {}))
        past = Y.shape[1] - (NEXT if job == "1" else n_new)  # all of them but what is measured
        ends = [past - 1, *(range(past, Y.shape[1] + 1) if job == "1" else (past, Y.shape[1]))]
        times = []
        for first, end in zip([0, *ends], ends, strict=False) if job != "all" else [(0, Y.shape[1])]:
            begin = time.process_time()
            model.add_labels(X, Y[:, first:end]) if first else model.fit(X, Y[:, :end])
            times.append(time.process_time() - begin)
        spent["cpu"] = float(np.mean(times[-NEXT:] if job == "1" else times[-1]))
        if job != "all":  # one label before the others: what is tried for that is known for them
            spent["once"] = times[1]

        def predict(rows: Any) -> Any:
            return model.predict_top_k(rows, K)[0]

    if train is None or job == "all":
        begin = time.process_time()
        np.save(folder / "best.npy", predict(test))
        spent["predict"] = time.process_time() - begin
    return spent


def run_job(python: str, name: str, job: str, folder: Path, limit: int, truth: Any) -> dict[str, Any]:
    """The same in a process of its own, with its largest memory and P@1, 3, 5."""
    (folder / "best.npy").unlink(missing_ok=True)
    env = os.environ | ONE_THREAD
    command = [python, __file__, "--job", name, job, str(folder)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=env, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"stopped": limit}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]}
    record: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    if (folder / "best.npy").exists():
        found = np.load(folder / "best.npy")
        hits = (found >= 0) & (np.asarray(truth[np.arange(len(found))[:, None], found.clip(0)].todense()) > 0)
        record["precision"] = [round(100 * float(hits[:, :k].mean()), 1) for k in (1, 3, 5)]
    return record


def load(name: str) -> tuple[Any, Any, Any, Any]:
    """Training rows and labels, test rows and labels; the labels that occur, in a drawn order."""
    from sklearn.preprocessing import normalize

    from streamlabel.data.catalogue import load_catalogue_set
    from streamlabel.data.synthetic import make_twin

    if name == "twin":
        twin = make_twin(1200, 300, 40, 30.0, 3.0)
        train, test = twin.take_rows(np.arange(800)), twin.take_rows(np.arange(800, 1200))
    else:
        train, test = (load_catalogue_set(name, split) for split in ("train", "test"))
    labels = np.flatnonzero(np.asarray(train.Y.sum(axis=0)).ravel())
    labels = np.random.default_rng(0).permutation(labels)
    X, far = (sparse.csr_matrix(normalize(part.X.astype(np.float64))) for part in (train, test))
    Y, truth = (sparse.csr_matrix(part.Y[:, labels]).sorted_indices() for part in (train, test))
    return X, Y, far, truth


def write_texts(X: Any, Y: Any, folder: Path) -> None:
    """The training rows as omikuji and fastText read them; to write them is not part of the work."""
    from streamlabel.data.xc_svmlight import write_xc_text
    from streamlabel.types import Dataset
    from streamlabel.validation import default_label_names

    write_xc_text(Dataset(sparse.csr_array(X), sparse.csr_array(Y), default_label_names(Y.shape[1])), folder / "xc.txt")
    lines = (f"{tags} {text}" for tags, text in zip(words(Y, "__label__"), words(X, "w"), strict=True) if tags)
    (folder / "fasttext.txt").write_text("\n".join(lines))


def told(found: dict[str, Any], job: str) -> float:
    """Seconds of one-vs-rest for a job, from those of 100 labels; 0 where these are not known."""
    one = found.get("100", {})
    return one.get("cpu", 0.0) * count(job, one.get("labels", 0)) / max(1, count("100", one.get("labels", 0)))


def is_work(name: str, job: str, known: dict[str, Any], limit: int) -> bool:
    """Whether a job is to be run: no training of all labels for each job, nothing that will take too long."""
    adds = PEERS[name].adds
    return job == "all" if adds == AGAIN else adds != NEW or told(known, job) <= limit


def cell(name: str, found: dict[str, Any], job: str) -> str:
    """CPU seconds of a job, as the table has them."""
    record = found.get("all" if PEERS[name].adds == AGAIN else job, {})
    if "cpu" not in record:
        about = told(found, job) if PEERS[name].adds == NEW else 0.0
        return f"about {about:,.0f}" if about else f"> {record['stopped']}" if "stopped" in record else "-"
    return number(record["cpu"])


def number(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"


def table(records: list[dict[str, Any]]) -> str:
    """Markdown, a table for each set."""
    lines = []
    for title in dict.fromkeys(record["title"] for record in records):
        lines += ["", f"**{title}**", "", f"| | {' | '.join(HEAD)} |", f"|---{'|--:' * 7}|---|---|---|"]
        for name, peer in PEERS.items():
            found = {at["job"]: at for at in records if (at["title"], at["peer"]) == (title, name)}
            if found:
                whole = found.get("all", {})
                after = found.get("half", {}) if peer.train is None else whole
                cells = [cell(name, found, job) for job in JOBS]
                cells.insert(3, number(found["1"]["once"]) if "once" in found.get("1", {}) else "-")
                cells += [number(whole["predict"]) if "predict" in whole else "-"]
                cells += [f"{max(at.get('peak', 0.0) for at in found.values()):,.0f}"]
                cells += [" / ".join(map(str, at.get("precision", "-"))) for at in (whole, after)]
                lines.append(f"| {name} | {' | '.join(cells)} | {peer.adds} |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else argv
    if given[:1] == ["--job"]:
        spent = do_job(given[1], given[2], Path(given[3]))
        # ru_maxrss would count the process that started this one, too
        (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        print("\n" + json.dumps(spent | {"peak": int(peak) / 1024}))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small twin instead of the real sets")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--peers", default="", help="beginnings of names, with commas between (default: all)")
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--also", default=sys.executable, metavar="PYTHON", help="for what is not installed here")
    parser.add_argument("--limit", type=int, default=400, help="seconds a job may take (default: 400)")
    parser.add_argument("--keep", type=Path, help="a file of records to add to; what it has is not measured again")
    options = parser.parse_args(given)
    records = []
    if options.keep and options.keep.exists():
        records = [json.loads(line) for line in options.keep.read_text().splitlines()]
    for set_name in ["twin"] if options.quick else options.sets.split(","):
        X, Y, far, truth = load(set_name)
        title = f"{set_name}: {X.shape[0]:,} rows, {X.shape[1]:,} features, {Y.shape[1]:,} labels"
        with tempfile.TemporaryDirectory(prefix="streamlabel-") as kept:
            for part, rows in (("X", X), ("Y", Y), ("test", far)):
                sparse.save_npz(Path(kept) / f"{part}.npz", rows)
            write_texts(X, Y, Path(kept))
            for name, job in itertools.product(PEERS, JOBS):
                known = {at["job"]: at for at in records if (at["title"], at["peer"]) == (title, name)}
                wanted = any(name.startswith(part) for part in options.peers.split(",")) and job in options.jobs.split(
                    ","
                )
                if job in known or not wanted or not is_work(name, job, known, options.limit):
                    continue
                here = find_spec(PEERS[name].module.partition(".")[0]) is not None
                record = run_job(sys.executable if here else options.also, name, job, Path(kept), options.limit, truth)
                record |= {"title": title, "labels": Y.shape[1], "peer": name, "job": job, "day": f"{date.today()}"}
                print(json.dumps(record), file=sys.stderr, flush=True)
                if "No module named" not in record.get("failed", ""):
                    records.append(record)
                    if options.keep:
                        with options.keep.open("a") as file:
                            file.write(json.dumps(record) + "\n")
    print(table(records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
