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

from streamlabel.metrics.topk import MOST_LABELS, MOST_WAITING, BestLabels
from streamlabel.store.classifiers import StoredClassifiers
from streamlabel.streaming.blocks import BLOCK, ClassifierBlocks, top_labels
from streamlabel.types import CSR, FloatArray, IntArray

if TYPE_CHECKING:
    from streamlabel.streaming.classifier import StreamingLabelClassifier

BYTES_A_ROW = 24 * (MOST_LABELS + MOST_WAITING + BLOCK)


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
            yield from map(RowLabels, *best_labels(model.state_.classifiers, rows, k))
            continue
        row, labels, scores = labels_above(model.state_.classifiers, rows, model.state_.decisions.thresholds)
        ends = np.cumsum(np.bincount(row, minlength=rows.shape[0]))[:-1]
        yield from map(RowLabels, np.split(labels, ends), np.split(scores, ends))


def best_labels(classifiers: ClassifierBlocks, X: CSR | FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """`top_labels`, by the faster road where there is one."""
    if isinstance(classifiers, StoredClassifiers) and not isinstance(X, np.ndarray):
        return fast_top_labels(classifiers, X, k)
    return top_labels(classifiers, X, k)
