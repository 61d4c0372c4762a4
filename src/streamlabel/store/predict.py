"""Labels for many rows within a given memory; the best ones found in float32 and scored in float64.

Scores are made block by block and never kept. A row keeps its k best so far and the lowest of these, its level; of a
block only the scores that reach the level are looked at. They are sorted in when as many labels were seen since as
before, so a row has about k of them each time.

Classifiers are stored as float32, and a product in float32 takes half the time. So for sparse rows a few more labels
than wanted are found by rough scores, and these alone are scored as ever. A rough score is off by no more than a bound
that is known; a row in which the rest might still belong to the best is done again in full. The answer is that of
`top_labels`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamlabel.metrics.topk import check_k, top_k_of_block
from streamlabel.store.classifiers import StoredClassifiers
from streamlabel.streaming.blocks import BLOCK, ClassifierBlocks
from streamlabel.types import CSR, FloatArray, IntArray

if TYPE_CHECKING:
    from streamlabel.streaming.classifier import StreamingLabelClassifier

MOST_WAITING = 256  # scores a row on average,
MOST_LABELS = 1024  # and labels, before those that wait are sorted in
BYTES_A_ROW = 24 * (MOST_LABELS + MOST_WAITING + BLOCK)


def top_labels(classifiers: ClassifierBlocks, X: CSR | FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """The k best labels of each row and their scores, (n, min(k, m)) each, best first; ties go to the older label.

    The same as the first columns of a sort of ``classifiers.scores(X)``, in about `BYTES_A_ROW` bytes per row for
    small k, however many labels there are.
    """
    best = BestLabels(int(X.shape[0]), min(check_k(k), classifiers.n_labels))
    for labels, scores in classifiers.label_blocks(X):
        best.add(labels, scores)
    return best.result()


def labels_above(
    classifiers: ClassifierBlocks, X: CSR | FloatArray, thresholds: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Every (row, label, score) with a score above the label's threshold (m,), row by row, best first."""
    found = []
    for labels, scores in classifiers.label_blocks(X):
        rows, columns = np.nonzero(scores > thresholds[labels])
        found.append((rows, labels[columns], scores[rows, columns]))
    rows, labels, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((labels, -values, rows))
    return rows[order], labels[order], values[order]


class BestLabels:
    """The k best labels of each row so far; `add` the scores of further labels, then ask for the `result`."""

    def __init__(self, n_rows: int, k: int) -> None:
        self._labels: IntArray = np.full((n_rows, k), -1, dtype=np.int64)
        self._values: FloatArray = np.full((n_rows, k), -np.inf)
        self._waiting: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._n_waiting = self._n_seen = self._n_merged = 0

    def add(self, labels: IntArray, scores: FloatArray) -> None:
        """Take in the scores (n, k) of further labels."""
        n_rows, k = self._values.shape
        if not self._n_seen and k < len(labels):
            columns = top_k_of_block(scores, k)
            self._labels, self._values = labels[columns], np.take_along_axis(scores, columns, axis=1)
            self._n_seen = self._n_merged = len(labels)
            return
        reached = np.flatnonzero(scores >= self._values[:, -1:])
        rows, columns = np.divmod(reached, scores.shape[1])
        self._waiting.append((rows, labels[columns], scores[rows, columns]))
        self._n_waiting += len(rows)
        self._n_seen += len(labels)
        due = min(2 * self._n_merged, self._n_merged + MOST_LABELS)
        if self._n_seen >= due or self._n_waiting > MOST_WAITING * n_rows:
            self._merge()

    def result(self) -> tuple[IntArray, FloatArray]:
        """The best labels of each row and their scores, best first."""
        self._merge()
        return self._labels, self._values

    def _merge(self) -> None:
        """Put rows of different lengths side by side, filled up with what is never the best, and sort each."""
        n_rows, k = self._values.shape
        known = np.flatnonzero(self._labels >= 0)
        self._waiting.append((known // k, self._labels.ravel()[known], self._values.ravel()[known]))
        rows, labels, values = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        counts = np.bincount(rows, minlength=n_rows)
        place = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
        width = max(int(counts.max(initial=0)), k)
        all_labels, all_values = np.full((n_rows, width), -1), np.full((n_rows, width), -np.inf, values.dtype)
        all_labels[rows, place], all_values[rows, place] = labels[order], values[order]
        best = np.lexsort((all_labels, -all_values), axis=1)[:, :k]
        self._labels = np.take_along_axis(all_labels, best, axis=1)
        self._values = np.take_along_axis(all_values, best, axis=1)
        self._waiting, self._n_waiting, self._n_merged = [], 0, self._n_seen


SPARE = 3
MOST_CELLS = 1 << 20
MOST_K = 64
LARGEST = 1e15  # of a value: float32 must hold every sum


def fast_top_labels(classifiers: StoredClassifiers, X: CSR, k: int) -> tuple[IntArray, FloatArray]:
    """The same as `top_labels` in less time, for float64 rows in a csr_array: found in float32, scored in float64."""
    wanted = k + SPARE
    largest = float(np.abs(X.data).max(initial=0.0))
    if not classifiers.all_dense or wanted >= classifiers.n_labels or k > MOST_K or not largest < LARGEST:
        return top_labels(classifiers, X, k)
    best, norm = BestLabels(int(X.shape[0]), wanted), 0.0
    single = X.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for labels, scores, largest_norm in classifiers.rough_blocks(single):
            best.add(labels, scores)
            norm = max(norm, largest_norm)
    found, rough = best.result()
    if (found < 0).any() or not np.isfinite(rough).all():
        return top_labels(classifiers, X, k)
    step = max(1, MOST_CELLS * X.shape[0] // max(X.nnz * wanted, 1))  # rows whose values and weights are held at once
    parts = [classifiers.scores_at(X[i : i + step], found[i : i + step]) for i in range(0, X.shape[0], step)]
    exact = np.concatenate(parts) if parts else np.empty(rough.shape)
    order = np.lexsort((found, -exact), axis=1)[:, :k]
    labels, scores = np.take_along_axis(found, order, axis=1), np.take_along_axis(exact, order, axis=1)
    unsure = np.flatnonzero(~(scores[:, -1] > rough[:, -1] + _error(X, norm, classifiers.intercept)))
    if unsure.size:
        labels[unsure], scores[unsure] = top_labels(classifiers, X[unsure], k)
    return labels, scores


def _error(X: CSR, norm: float, intercept: FloatArray) -> FloatArray:
    """The most by which a rough score of each row can be off, (n,).

    A sum of n products is off by at most ``(n + 2) u sum |x w| <= (n + 2) u |x| |w|`` with u = 2^-24, once more for the
    rounding of x and of the intercept; twice that is taken.
    """
    counts = np.diff(X.indptr)
    squares = np.bincount(np.repeat(np.arange(len(counts)), counts), weights=X.data**2, minlength=len(counts))
    return (counts + 4) * 2.0**-23 * (np.sqrt(squares) * norm + np.abs(intercept).max())


MOST_ROWS = 1 << 15


class RowLabels(NamedTuple):
    """The labels that a row was given: their numbers and scores, best first."""

    labels: IntArray
    scores: FloatArray


def rows_within(n_bytes: int, bytes_a_row: int = 0) -> int:
    """The number of rows at a time that a memory allows, one at least; ``bytes_a_row`` is what a row itself takes."""
    return int(np.clip(n_bytes // (BYTES_A_ROW + bytes_a_row), 1, MOST_ROWS))


def predict_rows(
    model: StreamingLabelClassifier, X: CSR | FloatArray, *, k: int | None, rows_per_block: int = 4096
) -> Iterator[RowLabels]:
    """Iterate over the k best labels of each row; for k None those whose score exceeds their threshold, perhaps none.

    X : (n, d) float64, as the model's `decision_function` takes it
    rows_per_block : so many rows are scored at a time
    """
    for start in range(0, int(X.shape[0]), rows_per_block):
        rows = X[start : start + rows_per_block]
        if k is not None:
            yield from map(RowLabels, *_best(model.state_.classifiers, rows, k))
            continue
        row, labels, scores = labels_above(model.state_.classifiers, rows, model.state_.decisions.thresholds)
        ends = np.cumsum(np.bincount(row, minlength=rows.shape[0]))[:-1]
        yield from map(RowLabels, np.split(labels, ends), np.split(scores, ends))


def _best(classifiers: ClassifierBlocks, X: CSR | FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    if isinstance(classifiers, StoredClassifiers) and not isinstance(X, np.ndarray):
        return fast_top_labels(classifiers, X, k)
    return top_labels(classifiers, X, k)
