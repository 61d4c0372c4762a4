"""Very many labels: pruned fits end to end, arrivals beside up to a million labels, exact and approximate top 5.

``python benchmarks/bench_many.py citeulike`` (``wiki10``, ``million``, ``search``, ``clusters``) runs one part;
``--quick`` is small.
Each part prints CPU seconds and the largest memory so far; run them one by one, for memory is that of the process.
"""

from __future__ import annotations

import argparse
import gc
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.classifier.single_precision import SingleRidge
from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.data.synthetic import make_twin
from streamlabel.experiments.sets import unit_rows
from streamlabel.metrics.topk import BestLabels
from streamlabel.streaming import pruned
from streamlabel.streaming.label_index import LabelIndex

KS, N_NEW = (1, 3, 5), 45


@contextmanager
def timed(what: str) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:<46}{cpu:8.1f} CPU s {wall:8.1f} s; largest memory so far {peak:.2f} GiB", flush=True)


def precision(Y: sparse.csr_array, found: np.ndarray) -> str:
    rows = np.repeat(np.arange(len(found)), found.shape[1])
    hits = np.asarray(Y[rows, found.ravel()]).reshape(found.shape)
    return " ".join(f"P@{k} {100 * hits[:, :k].mean():.2f}" for k in KS)


class Watched(pruned.Influences):
    """Influences whose classifiers, before they are pruned, also score test rows: all weights at once would not fit."""

    rows: Any = None
    best: BestLabels
    seconds = 0.0

    def __init__(self, ridge: SingleRidge, labels: Any) -> None:
        super().__init__(ridge, labels)
        self.ridge, self.rates = ridge, np.asarray(labels.sum(axis=0)).ravel() / labels.shape[0]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        kind = type(self)
        kind.best = BestLabels(kind.rows.shape[0], 5)
        for part, rows in super().blocks():
            start = time.process_time()
            scores = np.asarray(kind.rows @ rows.T, np.float64) + self.rates[part] - self.ridge.mean @ rows.T
            kind.best.add(np.arange(part.start, part.stop), scores)
            kind.seconds += time.process_time() - start
            yield part, rows


def end_to_end(folder: Path, X: Any, Y: Any, X_test: Any, Y_test: Any, dictionary: int, prune: Any = "auto") -> None:
    """Fit, store, open, predict, add labels; and what pruning costs in P@k."""
    shape = f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} values, {Y.shape[1]:,} labels"
    print(f"{shape}; {X_test.shape[0]:,} test rows", flush=True)
    n_labels, path = Y.shape[1], folder / "many"
    model = StreamingLabelClassifier(dictionary=dictionary, prune=prune, lam=0.003, metric=None, loss="squared")
    Watched.rows, plain = X_test.astype(np.float32), pruned.Influences
    pruned.Influences = Watched  # type: ignore[misc]
    with timed("fit, pruned, and test rows by all weights"):
        model.fit(X, Y)
    pruned.Influences = plain  # type: ignore[misc]
    full, _ = Watched.best.result()
    sizes = np.diff(model.state_.classifiers.columns(np.arange(n_labels)).indptr)
    print(f"  {Watched.seconds:.1f} CPU s of that for the test rows; beta {model.beta_:.3g}; weights a label: "
          f"{sizes.mean():.1f} on average, {np.median(sizes):.0f} in the middle, {sizes.max():,} at most")  # fmt: skip
    with timed("store"):
        ModelStore.create(path, model).close()
    del model
    with timed("open to read"):
        store = ModelStore.open(path)
    on_disk = store.sizes()
    print(f"  on the disk: labels {on_disk.labels / 2**20:.0f} MB, catalogue {on_disk.catalogue / 2**20:.0f} MB, "
          f"rows {on_disk.learning / 2**20:.0f} MB")  # fmt: skip
    with timed("top 5 of the test rows, first time"):
        store.predict_top_k(X_test, 5)
    with timed("top 5 of the test rows, again"):
        found, _ = store.predict_top_k(X_test, 5)
    print(f"  all weights: {precision(Y_test, full)}\n  pruned:      {precision(Y_test, found)}", flush=True)
    some = np.arange(0, n_labels, 97)
    before = store.model(learning=False).state_.classifiers.scores(X_test[:20], some)
    with ModelStore.open(path, "a") as writer:
        new = np.flatnonzero(np.asarray(Y.sum(axis=0)).ravel() >= 5)[:5]
        for number, column in enumerate(new):
            with timed(f"new label {number + 1}, learned and stored"):
                writer.add_labels(None, Y[:, [column]], [f"new {number}"])
        after = writer.model(learning=False).state_.classifiers.scores(X_test[:20], some)
        print(f"  old scores are the same bits: {np.array_equal(before, after)}")
    index_figures(store.model(learning=False).state_.classifiers, X_test, found)


def index_figures(classifiers: Any, X: Any, exact: np.ndarray) -> None:
    """Recall of the exact top 5 and CPU time a row of the approximate index.

    Where all rows have the same few best labels, any index finds them: how many there are is said first.
    """
    kinds = len({tuple(sorted(row)) for row in exact.tolist()})
    print(f"  {len(np.unique(exact)):,} different labels, {kinds:,} different fives in {len(exact):,} rows")
    with timed("index, made"):
        index = LabelIndex(classifiers)
    for n_candidates in (50, 100, 200, 400):
        start = time.process_time()
        found, _ = index.top_labels(classifiers, X, 5, n_candidates)
        taken = 1e3 * (time.process_time() - start) / X.shape[0]
        recall = np.mean([len(np.intersect1d(*pair)) / 5 for pair in zip(found, exact, strict=True)])
        print(f"  index, {n_candidates} candidates: recall {recall:.3f}, {taken:.2f} CPU ms a row", flush=True)


def resident() -> float:
    """The memory of this process now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def million(folder: Path, sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000), n_rows: int = 20_000) -> None:
    """Arrivals beside so many past labels, in memory and into the store, by turns."""
    with timed(f"twin of {sizes[-1]:,} labels"):
        twin = make_twin(n_rows, 1_000, sizes[-1], 40.0, 1.2 * sizes[-1] / n_rows)
    X = twin.X[:n_rows].astype(np.float64)
    Y = twin.Y[:n_rows].tocsc()
    counts = np.diff(Y.indptr)
    new = np.argsort(-counts[: sizes[0]], kind="stable")[20 : 20 + N_NEW]  # again, so that all models know as much
    models, stores = {}, {}
    for n_labels in sizes:
        model = StreamingLabelClassifier(dictionary=500, prune=32, lam=0.003, metric=None, loss="squared")
        with timed(f"fit, {n_labels:,} labels"):
            model.fit(X, sparse.csr_array(Y[:, :n_labels]))
        with timed(f"store, {n_labels:,} labels"):
            ModelStore.create(folder / f"{n_labels}", model).close()
        models[n_labels] = model
    taken: dict[tuple[str, int], list[float]] = {}
    rows = {n_labels: model.state_.memory.X for n_labels, model in models.items()}
    for number, label in enumerate(new):
        positives = Y.indices[Y.indptr[label] : Y.indptr[label + 1]]
        some = np.union1d(positives[:50], np.arange(0, n_rows, n_rows // 450))
        for n_labels, model in models.items():
            for what, asked in (("all rows", None), ("500 rows", some)):
                start = time.process_time()
                model.add_labels(rows[n_labels], Y[:, [label]], [f"{what} {number}"], annotated=asked)
                taken.setdefault((what, n_labels), []).append(time.process_time() - start)
    del models, model, rows
    for n_labels in sizes:
        gc.collect()
        before = resident()
        with timed(f"open to append, {n_labels:,} labels"):
            stores[n_labels] = ModelStore.open(folder / f"{n_labels}", "a")
            opened = resident()
            stores[n_labels].add_labels(None, Y[:, [new[0]]], ["first"])
        disk = stores[n_labels].sizes()
        each = [round(part / n_labels) for part in (disk.labels - disk.room, disk.room, disk.catalogue, disk.learning)]
        held = [round((size - before) * 2**20 / n_labels) for size in (opened, resident())]
        print(
            f"  bytes a label: {held} in memory (opened, able to learn), "
            f"on disk {each} (weights, room, catalogue, rows)"
        )
    for number, label in enumerate(new):
        for n_labels, store in stores.items():
            start = time.process_time()
            store.add_labels(None, Y[:, [label]], [f"new {number}"])
            taken.setdefault(("stored", n_labels), []).append(time.process_time() - start)
    for what in ("all rows", "500 rows", "stored"):
        times = [1e3 * float(np.median(taken[what, n_labels][5:])) for n_labels in sizes]
        shown = ", ".join(f"{n:,}: {ms:.2f}" for n, ms in zip(sizes, times, strict=True))
        print(f"  CPU ms a new label, {what:<9} {shown}; last to first {times[-1] / times[0]:.2f}", flush=True)


def search(folder: Path, n_labels: int = 1_000_000, n_rows: int = 20_000) -> None:
    """Exact and approximate top 5 among so many labels, on a twin whose rows have different best labels."""
    twin = make_twin(n_rows + 500, 1_000, n_labels, 40.0, 1.2 * n_labels / n_rows, label_exponent=0.5)
    X, X_test = twin.X[:n_rows].astype(np.float64), twin.X[n_rows:].astype(np.float64)
    model = StreamingLabelClassifier(dictionary=500, prune=32, lam=0.003, metric=None, loss="squared")
    with timed(f"fit, {n_labels:,} labels"):
        model.fit(X, twin.Y[:n_rows])
    with timed("exact top 5 of 500 rows, first time"):
        model.predict_top_k(X_test, 5)
    with timed("exact top 5 of 500 rows, again"):
        exact, _ = model.predict_top_k(X_test, 5)
    print(f"  {precision(twin.Y[n_rows:], exact)}: labels with a yes or two are not learned, but they are searched for")
    index_figures(model.state_.classifiers, X_test, exact)


def clusters(folder: Path) -> None:
    """Exact and approximate top 5 among dense classifiers that lie in clusters, for rows of random numbers."""
    for n_labels, n_clusters, n_features, spread in (
        (3_000, 20, 100, 0.2),
        (9_000, 300, 200, 0.3),
        (50_000, 1_000, 300, 0.3),
    ):
        rng = np.random.default_rng(0)
        middles = rng.standard_normal((n_clusters, n_features))
        weights = middles[rng.integers(0, n_clusters, n_labels)] + spread * rng.standard_normal((n_labels, n_features))
        model = StreamingLabelClassifier.from_coef(weights, 0.1 * rng.standard_normal(n_labels))
        X = rng.standard_normal((500, n_features))
        with timed(f"exact top 5 of 500 rows, {n_labels:,} labels in {n_clusters:,} clusters"):
            exact, _ = model.predict_top_k(X, 5)
        index_figures(model.state_.classifiers, X, exact)


def citeulike(folder: Path) -> None:
    train, test = load_catalogue_set("citeulike-t", "train"), load_catalogue_set("citeulike-t", "test")
    end_to_end(folder, unit_rows(train.X), train.Y, unit_rows(test.X), test.Y, 1000)


def wiki10(folder: Path) -> None:
    twin = make_twin(14_146 + 2_000, 101_938, 30_938, 673.45, 18.64)
    X, Y = twin.X.astype(np.float64), twin.Y
    end_to_end(folder, X[:14_146], Y[:14_146], X[14_146:], Y[14_146:], 1000)


def quick(folder: Path) -> None:
    twin = make_twin(2_500, 2_000, 3_000, 40.0, 6.0)
    X, Y = twin.X.astype(np.float64), twin.Y
    end_to_end(folder, X[:2_000], Y[:2_000], X[2_000:], Y[2_000:], 200)
    million(folder, (2_000, 10_000), 4_000)
    search(folder, 10_000, 4_000)


PARTS: dict[str, Callable[[Path], None]] = {
    "citeulike": citeulike,
    "wiki10": wiki10,
    "million": million,
    "search": search,
    "clusters": clusters,
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small twins only")
    parser.add_argument("--folder", type=Path, help="where to write (default: the system's temporary folder)")
    options = parser.parse_args(argv)
    for part in [quick] if options.quick else [PARTS[name] for name in options.part or PARTS]:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            part(Path(name))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
