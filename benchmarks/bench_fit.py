"""What `streamlabel fit` takes on laws of the EU, beside what its dry run says and what scikit-learn takes.

``make bench ARGS=fit`` needs ``eurlex57k/eurlex57k_text.parquet`` in ``STREAMLABEL_DATA``, and some minutes.

* ``10,000 laws``: those of 2006 to 2011 with their 300 most frequent tags; judged on the laws of 2012 to 2016;
* ``57,000 laws``: all with all tags and 20,000 words; 1,000 of them, drawn at random, are kept out to judge.

Every command runs in a process of its own: CPU and wall seconds and the largest memory are the whole command's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from streamlabel import Tagger
from streamlabel.metrics.ranking import precision_at_k
from streamlabel.stats.threads import one_thread
from streamlabel.types import CSR, FloatArray

Laws = list[dict[str, Any]]


def read_laws() -> tuple[Laws, list[int]]:
    import pyarrow.parquet as pq

    table = pq.read_table(Path(os.environ["STREAMLABEL_DATA"]) / "eurlex57k" / "eurlex57k_text.parquet")
    texts, labels = table.column("text").to_pylist(), table.column("labels").to_pylist()
    years = [date.year for date in table.column("date").to_pylist()]
    return [{"text": text, "labels": tags} for text, tags in zip(texts, labels, strict=True)], years


def by_date(laws: Laws, years: list[int]) -> tuple[Laws, Laws]:
    past = [law for law, year in zip(laws, years, strict=True) if 2006 <= year <= 2011]
    later = [law for law, year in zip(laws, years, strict=True) if year >= 2012]
    counts = Counter(tag for law in past for tag in law["labels"])
    kept = {tag for tag, _ in counts.most_common(300)}
    some = [
        [{**law, "labels": [tag for tag in law["labels"] if tag in kept]} for law in part] for part in (past, later)
    ]
    return some[0], some[1]


def at_random(laws: Laws) -> tuple[Laws, Laws]:
    order = np.random.default_rng(0).permutation(len(laws))
    return [laws[i] for i in np.sort(order[1000:])], [laws[i] for i in np.sort(order[:1000])]


def run(*words: str) -> tuple[dict[str, Any], float, float, float]:
    """What a command says with --json, its CPU and wall seconds, and its largest memory in MiB."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([sys.executable, "-m", "streamlabel", *words, "--json"], stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        if os.waitstatus_to_exitcode(status):
            raise SystemExit(f"streamlabel {' '.join(words)} failed")
        out.seek(0)
        return json.load(out), used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024


def answers(laws: Laws, names: Iterable[str]) -> CSR:
    place = {name: number for number, name in enumerate(names)}
    cells = [(i, place[tag]) for i, law in enumerate(laws) for tag in law["labels"] if tag in place]
    rows, columns = zip(*cells, strict=True)
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(laws), len(place)))


def show(what: str, cpu: float, wall: float, peak: float | None, truth: CSR, scores: FloatArray) -> None:
    precisions = " / ".join(f"{100 * precision_at_k(truth, scores, k):.1f}" for k in (1, 3, 5))
    memory = "" if peak is None else f"{peak:,.0f} MiB"
    print(f"  {what:22} {cpu:8.1f} CPU s {wall:8.1f} s {memory:>10}   P@1/3/5 {precisions}", flush=True)


def measure(title: str, laws: Laws, judged: Laws, options: list[str], folder: Path, *, peers: bool) -> None:
    file, model = folder / f"{len(laws)}.jsonl", folder / f"{len(laws)}"
    file.write_text("\n".join(map(json.dumps, laws)), encoding="utf-8")
    said, *_ = run("fit", str(model), str(file), *options, "--dry-run")
    print(f"{title}: {said['n_rows']:,} texts, {said['n_features']:,} words, {said['n_labels']:,} tags; {said['road']}")
    _, cpu, wall, peak = run("fit", str(model), str(file), *options)
    tagger = Tagger.open(model)
    texts = [law["text"] for law in judged]
    truth = answers(judged, tagger.label_names_)
    rows = tagger.vectorizer_.transform(texts).astype(np.float64)
    show("streamlabel fit", cpu, wall, peak, truth, tagger.classifier_.decision_function(rows))
    memory = said["memory"] / 2**20
    print(f"  the dry run said       {said['seconds']:8.1f} CPU s {'':10} {memory:6,.0f} MiB", end="   ")
    print(f"said / measured {said['seconds'] / cpu:.2f} and {memory / peak:.2f}", flush=True)
    if not peers:
        return
    X = tagger.vectorizer_.transform([law["text"] for law in laws])
    Y = answers(laws, tagger.label_names_).astype(np.int64)  # int8 would overflow there with more than 127 labels
    for one in (LinearSVC(), LogisticRegression(solver="liblinear")):
        wall, cpu = time.perf_counter(), time.process_time()
        with one_thread():
            other = OneVsRestClassifier(one).fit(X, Y)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        show(f"{type(one).__name__} alone"[:22], cpu, wall, None, truth, other.decision_function(rows))


def main(argv: list[str] | None = None) -> int:
    if not (Path(os.environ.get("STREAMLABEL_DATA", "")) / "eurlex57k" / "eurlex57k_text.parquet").exists():
        print("left out: STREAMLABEL_DATA has no eurlex57k/eurlex57k_text.parquet")
        return 0
    laws, years = read_laws()
    with tempfile.TemporaryDirectory() as folder:
        measure("10,000 laws", *by_date(laws, years), [], Path(folder), peers=True)
        measure("57,000 laws", *at_random(laws), ["--max-features", "20000"], Path(folder), peers=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
