"""Run a method on a batch of labels, and choose its hyper-parameters on held-out training rows."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlabel.errors import DataError
from streamlabel.experiments.methods import Learner, Method, Parameters
from streamlabel.experiments.sets import learnable, unit_rows
from streamlabel.metrics.evaluate import evaluate
from streamlabel.types import CSR, Dataset, FloatArray, IntArray

HELD_OUT = 0.2  # share of the training rows
MOST_ROWS = 20_000  # of so many of them, drawn at random, where there are more
MOST_BYTES, MOST_FEATURES = 2**31, 5_000


@dataclass(frozen=True, eq=False)
class Rows:
    """What a batch is learned from and judged on. Rows have length one.

    X (n, d), Y_past (n, m), Y_new (n, k);  X_test (n_test, d), Y_test (n_test, k), of the new labels
    """

    X: CSR
    Y_past: CSR
    Y_new: CSR
    X_test: CSR
    Y_test: CSR


@dataclass(frozen=True, eq=False)
class Learned:
    """Scores (n_test, k) of the new labels, and the time from their arrival until they could be scored.

    past_seconds : CPU, of what was done before they arrived
    n_learned : the new labels that had a yes and a no (`all_columns` for the others)
    decisions : whether each score is a yes, (n_test, k); None where the method decides nothing
    """

    scores: FloatArray
    n_learned: int
    wall_seconds: float
    cpu_seconds: float
    past_seconds: float
    decisions: NDArray[np.bool_] | None = None


def narrowed(train: Dataset, test: Dataset) -> tuple[CSR, CSR]:
    """Training and test rows, scaled to length one; for all methods alike.

    Where dense classifiers of all labels would take more than `MOST_BYTES`, the `MOST_FEATURES` features that occur in
    most training rows are kept, and rows are scaled after that.
    """
    X, X_test = train.X, test.X
    if 8 * train.n_features * train.n_labels > MOST_BYTES and train.n_features > MOST_FEATURES:
        frequency = np.bincount(X.indices, minlength=train.n_features)
        kept = np.sort(np.argsort(-frequency, kind="stable")[:MOST_FEATURES])
        X, X_test = X[:, kept], X_test[:, kept]
    return unit_rows(X), unit_rows(X_test)


class Started:
    """A method that has done what it can before labels arrive; any number of batches may arrive, each at this state.

    past_seconds : CPU, that it took
    """

    def __init__(self, method: Method, parameters: Parameters, X: CSR, Y_past: CSR, seed: int) -> None:
        self._learner: Learner = method.make(parameters, seed)
        began = time.process_time()
        self._learner.start(X, Y_past)
        self.past_seconds = time.process_time() - began

    def learn(self, Y_new: CSR, X_test: CSR) -> Learned:
        """The clock, the batch, then its scores."""
        able = _learnable(Y_new)
        wall, cpu = time.perf_counter(), time.process_time()
        self._learner.arrive(Y_new[:, able])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        found, cut = self._learner.scores(X_test), self._learner.cut()
        decisions = None if cut is None else all_columns((found > cut).astype(np.float64), able, Y_new) > 0.5
        return Learned(all_columns(found, able, Y_new), len(able), wall, cpu, self.past_seconds, decisions)


def learn_batch(method: Method, parameters: Parameters, rows: Rows, seed: int) -> Learned:
    """One batch after the past labels."""
    return Started(method, parameters, rows.X, rows.Y_past, seed).learn(rows.Y_new, rows.X_test)


def _learnable(Y: CSR) -> IntArray:
    able = learnable(Y)
    if not able.size:
        raise DataError(f"none of {Y.shape[1]} new labels has a yes and a no among {Y.shape[0]} rows")
    return able


def all_columns(scores: FloatArray, labels: IntArray, Y: CSR) -> FloatArray:
    """Scores of ``labels`` (n, k) as those of all columns of Y; the rest cannot be learned by anybody.

    One that was always no is put below all scores, one that was always yes above them, whatever the scale of a method.
    """
    always = np.asarray(Y.sum(axis=0)).ravel() == Y.shape[0]
    constant = np.where(always, scores.max() + 1.0, scores.min() - 1.0)
    found: FloatArray = np.tile(constant, (scores.shape[0], 1))
    found[:, labels] = scores
    return found


def choose(method: Method, X: CSR, Y_past: CSR, Y_new: CSR) -> Parameters:
    """The hyper-parameters with the best P@1 of the new labels on a fifth of the rows, learned from the others.

    Equal P@1: the better P@3, then P@5, then the earlier in the grid. The rows are drawn once for all methods; of more
    than 20,000 rows, so many are used. Test rows have no part in it.
    """
    if len(method.grid) == 1:
        return method.grid[0]
    order = np.random.default_rng(0).permutation(X.shape[0])[:MOST_ROWS]
    n_held = max(1, round(HELD_OUT * len(order)))
    held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
    rows = Rows(X[kept], Y_past[kept], Y_new[kept], X[held], Y_new[held])
    found = dict(_judged(method, rows))
    return method.grid[max(found, key=lambda i: (found[i], -i))]


def settled(
    method: Method, done: Iterable[Any], X: CSR, Y: CSR, parts: tuple[IntArray, IntArray], *, tuned: bool
) -> Parameters:
    """The candidate that finished records were made with: a run that goes on does not choose again.

    Else the one that is chosen on ``parts`` of the labels, past and new ones; where none is (``tuned``), the first.
    """
    known = {record.parameters for record in done}
    for candidate in method.grid:
        if as_text(candidate) in known:
            return candidate
    return choose(method, X, *(Y[:, labels] for labels in parts)) if tuned else method.grid[0]


def _judged(method: Method, rows: Rows) -> Iterator[tuple[int, tuple[float, ...]]]:
    """P@1, P@3 and P@5 of every candidate. What candidates have in common is done once."""
    able = _learnable(rows.Y_new)
    for same_start in _groups(method.grid, range(len(method.grid)), method.at_arrival | method.at_scoring):
        learner = method.make(method.grid[same_start[0]], 0)
        learner.start(rows.X, rows.Y_past)
        for same_arrival in _groups(method.grid, same_start, method.at_scoring):
            if method.at_arrival:
                learner.change(**_part(method.grid[same_arrival[0]], method.at_arrival))
            learner.arrive(rows.Y_new[:, able])
            for number in same_arrival:
                if method.at_scoring:
                    learner.change(**_part(method.grid[number], method.at_scoring))
                scores = all_columns(learner.scores(rows.X_test), able, rows.Y_new)
                yield number, tuple(evaluate(rows.Y_test, scores, metrics=["P@k"]).values())


def _groups(grid: Sequence[Parameters], numbers: Iterable[int], later: frozenset[str]) -> list[list[int]]:
    """The candidates that differ in nothing but ``later`` parameters, together."""
    found: dict[str, list[int]] = {}
    for number in numbers:
        found.setdefault(as_text(_part(grid[number], grid[number].keys() - later)), []).append(number)
    return list(found.values())


def _part(parameters: Parameters, names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name in names}


def precisions(found: Mapping[str, float]) -> dict[str, Any]:
    """P@1, P@3 and P@5 of `metrics.evaluate` in percent, by the names of records."""
    return {f"p{k}": 100.0 * found[f"P@{k}"] for k in (1, 3, 5)}


def as_text(parameters: Parameters) -> str:
    """For records and tables."""
    return json.dumps(dict(parameters), sort_keys=True)
