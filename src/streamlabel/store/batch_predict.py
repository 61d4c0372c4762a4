"""Labels for many rows, some rows at a time, within a given memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from streamlabel.models.state import ClassifierBlocks
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.models.top_labels import BYTES_A_ROW, labels_above, top_labels
from streamlabel.results import CSR, FloatArray, IntArray
from streamlabel.store.classifiers import StoredClassifiers
from streamlabel.store.fast_top import fast_top_labels

__all__ = ["RowLabels", "predict_rows", "rows_within"]

MOST_ROWS = 1 << 15


class RowLabels(NamedTuple):
    """What a row was given: numbers of labels and their scores, best first."""

    labels: IntArray
    scores: FloatArray


def rows_within(n_bytes: int, bytes_a_row: int = 0) -> int:
    """How many rows at a time such a memory allows, one at least; ``bytes_a_row`` is what a row itself takes."""
    return int(np.clip(n_bytes // (BYTES_A_ROW + bytes_a_row), 1, MOST_ROWS))


def predict_rows(
    model: StreamingLabelClassifier, X: CSR | FloatArray, *, k: int | None, rows_per_block: int = 4096
) -> Iterator[RowLabels]:
    """The k best labels of each row; for k None those whose score exceeds their threshold, perhaps none.

    X : (n, d) float64, as the model's `decision_function` takes it
    rows_per_block : so many rows are scored at a time
    """
    for start in range(0, int(X.shape[0]), rows_per_block):
        rows = X[start : start + rows_per_block]
        if k is not None:
            yield from map(RowLabels, *_best(model._classifiers, rows, k))
            continue
        row, labels, scores = labels_above(model._classifiers, rows, model._decisions.thresholds)
        ends = np.cumsum(np.bincount(row, minlength=rows.shape[0]))[:-1]
        yield from map(RowLabels, np.split(labels, ends), np.split(scores, ends))


def _best(classifiers: ClassifierBlocks, X: CSR | FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    if isinstance(classifiers, StoredClassifiers) and not isinstance(X, np.ndarray):
        return fast_top_labels(classifiers, X, k)
    return top_labels(classifiers, X, k)
