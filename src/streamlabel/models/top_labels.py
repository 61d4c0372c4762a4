"""The best labels of many rows in little memory: scores are made block by block and never kept.

A row keeps its k best so far and the lowest of these, its level; of a block only the scores that reach the level are
looked at. Found ones are sorted in when as many labels were seen since as before, so a row sees about k of them each
time, whatever the number of labels.
"""

from __future__ import annotations

import numpy as np

from streamlabel.metrics.topk import check_k, top_k_of_block
from streamlabel.models.state import ClassifierBlocks
from streamlabel.results import CSR, FloatArray, IntArray

__all__ = ["BYTES_A_ROW", "labels_above", "top_labels"]

MOST_WAITING = 256
BYTES_A_ROW = 24 * 2 * MOST_WAITING + 64 * 24


def top_labels(classifiers: ClassifierBlocks, X: CSR | FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """The k best labels of each row and their scores, (n, min(k, m)) each, best first; ties go to the older label.

    The same as the first columns of a sort of ``classifiers.scores(X)``, in about `BYTES_A_ROW` bytes a row for small
    k, however many labels there are.
    """
    best = _Best(int(X.shape[0]), min(check_k(k), classifiers.n_labels))
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


class _Best:
    """The k best of each row so far."""

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
        rows, columns = np.nonzero(scores >= self._values[:, -1:])
        self._waiting.append((rows, labels[columns], scores[rows, columns]))
        self._n_waiting += len(rows)
        self._n_seen += len(labels)
        if self._n_seen >= 2 * self._n_merged or self._n_waiting > MOST_WAITING * n_rows:
            self._merge()

    def result(self) -> tuple[IntArray, FloatArray]:
        self._merge()
        return self._labels, self._values

    def _merge(self) -> None:
        n_rows, k = self._values.shape
        known_rows, known = np.nonzero(self._labels >= 0)
        self._waiting.append((known_rows, self._labels[known_rows, known], self._values[known_rows, known]))
        rows, labels, values = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        order = np.lexsort((labels, -values, rows))
        rows, labels, values = rows[order], labels[order], values[order]
        starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=n_rows))))
        place = np.arange(len(rows)) - starts[rows]
        kept = place < k
        self._labels[rows[kept], place[kept]] = labels[kept]
        self._values[rows[kept], place[kept]] = values[kept]
        self._waiting, self._n_waiting, self._n_merged = [], 0, self._n_seen
