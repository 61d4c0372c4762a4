"""How long a new label takes: CPU and wall time of `add_labels`, and ratios to others within the same run."""

from __future__ import annotations

import copy
import cProfile
import gc
import importlib
import pstats
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from streamlabel.data.synthetic import make_twin
from streamlabel.experiments.sets import learnable, unit_rows
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.types import CSR, Dataset, IntArray


@dataclass
class Timing:
    """One line of the benchmark. ``reference_cpu_ms`` is what the ratio is to, where there is one."""

    what: str
    n_labels: int
    cpu_ms: float
    wall_ms: float
    reference: str = ""
    reference_cpu_ms: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.reference_cpu_ms is None else self.reference_cpu_ms / self.cpu_ms

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "ratio": self.ratio}


class _Clock:
    cpu_ms = wall_ms = 0.0


@contextmanager
def _clock(per: int = 1) -> Iterator[_Clock]:
    clock = _Clock()
    gc.collect()  # what came before pays for its own garbage
    cpu, wall = time.process_time(), time.perf_counter()
    yield clock
    clock.cpu_ms = 1000.0 * (time.process_time() - cpu) / per
    clock.wall_ms = 1000.0 * (time.perf_counter() - wall) / per


def _half(data: Dataset, **settings: Any) -> tuple[CSR, CSR, StreamingLabelClassifier, IntArray]:
    """Unit rows, labels, a model of the first half of the labels, and the learnable others."""
    X = unit_rows(data.X)
    n_past = data.n_labels // 2
    new = learnable(data.Y)
    model = StreamingLabelClassifier(**settings).fit(X, data.Y[:, :n_past])
    return X, data.Y, model, new[new >= n_past]


def time_arrivals(
    name: str, data: Dataset, loss: str = "auto", budgets: Sequence[int | None] = (100, None), n_labels: int = 30
) -> list[Timing]:
    """The first label, which may have to wait for trials, and the mean of later ones, for each number of rows.

    budgets : so many rows of a label's own, a third of them yes; None for all rows
    """
    X, Y, model, new = _half(data, loss=loss)
    rng, columns, timings = np.random.default_rng(0), Y.tocsc(), []

    def add(label: int, n_rows: int | None) -> None:
        rows = None
        if n_rows is not None:
            yes = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
            some = rng.permutation(yes)[: n_rows // 3]
            others = np.setdiff1d(rng.choice(data.n_rows, n_rows, replace=False), some)[: n_rows - len(some)]
            rows = np.sort(np.concatenate((some, others)))
        model.add_labels(X, Y[:, [label]], annotated=rows, label_names=[f"{label} of {n_rows}"])

    for n_rows in budgets:
        first, *later = rng.permutation(new)[: n_labels + 1].tolist()
        for which, labels in (("first", [first]), ("later", later)):
            with _clock(len(labels)) as clock:
                for label in labels:
                    add(label, n_rows)
            what = f"{name}, {loss}: {which} label, {'all' if n_rows is None else n_rows} rows"
            timings.append(Timing(what, len(labels), clock.cpu_ms, clock.wall_ms))
    return timings


@dataclass(frozen=True)
class Step:
    """A part of one fully annotated arrival: its time, and the bytes it cannot do without."""

    what: str
    ms: float
    floor_bytes: int

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def time_steps(data: Dataset, n_labels: int = 20) -> list[Step]:
    """Where the time of one fully annotated label goes (squared loss, no metric), under the profiler.

    The floor of a step is what must be read at least: the rows of the label's positives for its products with the past,
    half of the inverse and the rows of its positives for both ways to learn it, the judged rows for decisions.
    """
    X, Y, model, new = _half(data, loss="squared", metric=None)
    for j in new[:3]:
        model.add_labels(X, Y[:, [j]])
    chosen = new[3 : 3 + n_labels]
    profile = cProfile.Profile()
    profile.enable()
    for j in chosen:
        model.add_labels(X, Y[:, [j]])
    profile.disable()
    positives = int(np.asarray(Y[:, chosen].sum(axis=0)).mean())
    labels_a_row = Y.nnz / data.n_rows
    small = min(X.shape)
    rows_once = 12 * X.nnz
    floors = {
        "add_labels": 0,
        "recognises": 4096 * 8,
        "cross": int(positives * labels_a_row * 4),
        "represent": 0,
        "_products": positives * rows_once // data.n_rows,
        "_solve_plain": 4 * small * (small + 1),
        "_gather": rows_once * min(1000, data.n_rows // 3) // data.n_rows,
        "grown": 0,
    }
    found = dict.fromkeys(floors, 0.0)
    for (file, _, name), (_, _, _, cumulative, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if name in floors and "streamlabel" in file:
            found[name] = max(found[name], 1000.0 * cumulative / len(chosen))
    return [Step(name, found[name], floors[name]) for name in floors]


def time_batch(name: str, data: Dataset, n_labels: int = 100) -> list[Timing]:
    """A batch of fully annotated labels against scikit-learn's linear classifiers trained on just those labels."""
    X, Y, model, new = _half(data)
    chosen = new[:n_labels]
    batch = Y[:, chosen]
    copy.copy(model).add_labels(X, batch[:, :2])
    with _clock() as ours:
        model.add_labels(X, batch)
    timings = []
    for other, train in _references(X, batch).items():
        with _clock() as theirs:
            train()
        what = f"{name}: a batch of {len(chosen)}, all rows"
        timings.append(Timing(what, len(chosen), ours.cpu_ms, ours.wall_ms, other, theirs.cpu_ms))
    return timings


def _references(X: CSR, Y: CSR) -> dict[str, Callable[[], object]]:
    """Linear one-vs-rest trainers of others on the same rows and labels; PECOS (libpecos) where it is installed."""
    matrix, targets = sparse.csr_matrix(X), Y.toarray()

    def one_by_one(make: Callable[[], Any]) -> object:
        return [make().fit(matrix, column) for column in targets.T]

    found: dict[str, Callable[[], object]] = {
        "LinearSVC": partial(one_by_one, LinearSVC),
        "LogisticRegression(liblinear)": partial(one_by_one, partial(LogisticRegression, solver="liblinear")),
    }
    try:
        pecos = importlib.import_module("pecos.xmc.base")
    except ImportError:
        return found
    problem = pecos.MLProblem(sparse.csr_matrix(X, dtype=np.float32), sparse.csc_matrix(Y, dtype=np.float32))
    found["PECOS one-vs-rest, all cores"] = partial(pecos.MLModel.train, problem)
    return found


def time_flatness(
    sizes: tuple[int, ...] = (100, 1000, 10_000, 100_000), n_atoms: int = 100, n_rows: int = 3000
) -> list[Timing]:
    """Time a new label takes after ever more past labels, with a dictionary of fixed size; the ratio is to the first.

    On a twin with as many labels (`make_twin`); the least of some thirty labels, since the machine is not ours alone.
    """
    timings: list[Timing] = []
    for n_past in sizes:
        twin = make_twin(n_rows, 500, n_past + 40, 30, max(5.0, (n_past + 40) / n_rows + 1), random_state=0)
        model = StreamingLabelClassifier(dictionary=n_atoms, lam=0.003, metric=None, beta=1.0)
        model.fit(twin.X, twin.Y[:, :n_past])
        counts = np.asarray(twin.Y.sum(axis=0)).ravel()
        new = [j for j in range(n_past, n_past + 40) if counts[j] > 0]
        for j in new[:5]:
            model.add_labels(twin.X, twin.Y[:, [j]])
        best = np.inf
        wall = np.inf
        for j in new[5:]:
            with _clock() as clock:
                model.add_labels(twin.X, twin.Y[:, [j]])
            best, wall = min(best, clock.cpu_ms), min(wall, clock.wall_ms)
        first = timings[0].cpu_ms if timings else best
        timings.append(
            Timing(f"one label after {n_past} labels, {n_atoms} atoms", len(new) - 5, best, wall, "the first", first)
        )
    return timings
