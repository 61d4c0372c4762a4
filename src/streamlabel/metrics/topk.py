"""The k best labels of each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamlabel.errors import DataError
from streamlabel.metrics.row_blocks import Block, as_block, iter_blocks
from streamlabel.types import CSR, FloatArray, IntArray

MOST_WAITING = 256  # scores a row on average,
MOST_LABELS = 1024  # and labels, before those that wait are sorted in


def top_k(scores: Any, k: int) -> IntArray:
    """The columns of the k highest scores of each row, best first.

    Ties go to the lower column, exactly as in ``argsort(-scores, kind="stable")[:, :k]``.

    Parameters
    ----------
    scores : (n_rows, n_labels) dense or sparse; a missing cell of a sparse matrix is never among the best
    k : 1 or more

    Returns
    -------
    (n_rows, k) int64; -1 fills up a row that has fewer than k scores above minus infinity (k > n_labels, too)
    """
    k = check_k(k)
    matrix = as_block(scores)
    if 0 in matrix.shape:
        return np.full((matrix.shape[0], k), -1, dtype=np.int64)
    return np.concatenate([top_k_of_block(block, k) for _, block in iter_blocks(matrix, matrix.shape)])


def check_k(k: int) -> int:
    """Check that k is a whole number, 1 or more."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise DataError(f"k is {k!r}; it must be a whole number, 1 or more")
    return int(k)


def top_k_of_block(block: Block, k: int) -> IntArray:
    """The columns of the k highest scores of each row of a checked block, as `top_k`."""
    if isinstance(block, np.ndarray):
        return _top_k_dense(block, k)
    return _top_k_sparse(block, k)


def _top_k_dense(scores: FloatArray, k: int) -> IntArray:
    n_rows, n_labels = scores.shape
    best = np.full((n_rows, k), -1, dtype=np.int64)
    columns = _columns_of_best(scores, k) if k < n_labels else np.broadcast_to(np.arange(n_labels), scores.shape)
    values = np.take_along_axis(scores, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")  # columns ascend, so equal scores stay in column order
    ranked = np.take_along_axis(columns, order, axis=1)
    ranked[np.take_along_axis(values, order, axis=1) == -np.inf] = -1
    best[:, : ranked.shape[1]] = ranked
    return best


def _columns_of_best(scores: FloatArray, k: int) -> IntArray:
    """(n_rows, k) columns of the k best, ascending: all above the k-th highest value, then its first equals."""
    n_rows, n_labels = scores.shape
    level = np.partition(scores, n_labels - k, axis=1)[:, n_labels - k, None]
    chosen = scores >= level
    excess = np.count_nonzero(chosen, axis=1) - k
    for i in np.flatnonzero(excess):
        tied = np.flatnonzero(scores[i] == level[i])
        chosen[i, tied[len(tied) - excess[i] :]] = False
    return np.nonzero(chosen)[1].reshape(n_rows, k)


def _top_k_sparse(scores: CSR, k: int) -> IntArray:
    best = np.full((scores.shape[0], k), -1, dtype=np.int64)
    row = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    order = np.lexsort((-scores.data, row))  # stable, and the columns of a row ascend
    place = np.arange(len(row)) - scores.indptr[row]  # lexsort keeps each row's cells at the row's own positions
    keep = (place < k) & (scores.data[order] > -np.inf)
    best[row[keep], place[keep]] = scores.indices[order[keep]]
    return best


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
