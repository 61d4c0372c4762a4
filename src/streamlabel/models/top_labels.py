"""The best labels of many rows in little memory: scores are made block by block and never kept.

A row keeps its k best so far and the lowest of these, its level; of a block only the scores that reach the level are
looked at. They are sorted in when as many labels were seen since as before, so a row has about k of them each time.
"""

from __future__ import annotations

import numpy as np

from streamlabel.metrics.topk import check_k, top_k_of_block
from streamlabel.models.state import BLOCK, ClassifierBlocks
from streamlabel.results import CSR, FloatArray, IntArray

__all__ = ["BYTES_A_ROW", "BestLabels", "labels_above", "top_labels"]

MOST_WAITING = 256  # scores a row on average,
MOST_LABELS = 1024  # and labels, before those that wait are sorted in
BYTES_A_ROW = 24 * (MOST_LABELS + MOST_WAITING + BLOCK)


def top_labels(classifiers: ClassifierBlocks, X: CSR | FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """The k best labels of each row and their scores, (n, min(k, m)) each, best first; ties go to the older label.

    The same as the first columns of a sort of ``classifiers.scores(X)``, in about `BYTES_A_ROW` bytes a row for small
    k, however many labels there are.
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
    """The k best of each row so far; `add` the scores of further labels, then ask for the `result`."""

    def __init__(self, n_rows: int, k: int) -> None:
        self._labels: IntArray = np.full((n_rows, k), -1, dtype=np.int64)
        self._values: FloatArray = np.full((n_rows, k), -np.inf)
        self._waiting: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._n_waiting = self._n_seen = self._n_merged = 0

    def add(self, labels: IntArray, scores: FloatArray) -> None:
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
        self._merge()
        return self._labels, self._values

    def _merge(self) -> None:
        """Rows of different lengths side by side, filled up with what is never the best; then each is sorted."""
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
