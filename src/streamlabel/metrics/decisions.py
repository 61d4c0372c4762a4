"""Measures of 0/1 predictions: Hamming loss, micro and macro F1.

``Y_true`` and ``Y_pred`` are (n_rows, n_labels), 0/1, each dense or sparse (here a missing cell is a 0); ``Y_pred`` may
also be `RowBlocks` of such matrices, read once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamlabel.errors import DataError
from streamlabel.metrics.row_blocks import RowBlocks, check_truth, iter_parts
from streamlabel.types import CSR, FloatArray
from streamlabel.validation import canonical_labels


def hamming_loss(Y_true: Any, Y_pred: Any) -> float:
    """Hamming loss: wrong cells / (n_rows * n_labels). (napkinXC divides by n_rows only.)

    >>> hamming_loss([[1, 0], [1, 1]], [[1, 1], [1, 1]])
    0.25
    """
    return _count(Y_true, Y_pred).hamming_loss()


def micro_f1(Y_true: Any, Y_pred: Any) -> float:
    """Micro F1: 2 tp / (2 tp + fp + fn) over all cells; 0 when nothing is true and nothing is predicted."""
    return _count(Y_true, Y_pred).micro_f1()


def macro_f1(Y_true: Any, Y_pred: Any) -> float:
    """Macro F1: the mean of `label_f1` over all n_labels labels; a label never true and never predicted counts 0."""
    return _count(Y_true, Y_pred).macro_f1()


def label_f1(Y_true: Any, Y_pred: Any) -> FloatArray:
    """F1 of each label, (n_labels,): 2 tp / (2 tp + fp + fn); 0 for a label that is never true and never predicted."""
    return _count(Y_true, Y_pred).label_f1()


class DecisionAccumulator:
    """Hamming loss and F1 over rows that arrive in parts; every part is read once."""

    def __init__(self, n_labels: int) -> None:
        self.n_labels = n_labels
        self.n_rows = 0
        self.n_both = np.zeros(n_labels, dtype=np.int64)
        self.n_true = np.zeros(n_labels, dtype=np.int64)
        self.n_predicted = np.zeros(n_labels, dtype=np.int64)

    def update(self, Y_true: Any, Y_pred: Any) -> None:
        """Add rows: Y_true and Y_pred (n, n_labels), 0/1, each dense or sparse."""
        truth, predicted = check_truth(Y_true), canonical_labels(Y_pred, name="Y_pred")
        if truth.shape != predicted.shape or truth.shape[1] != self.n_labels:
            raise DataError(
                f"Y_true has the shape {truth.shape} and Y_pred {predicted.shape}; expected (n_rows, {self.n_labels})"
            )
        self.update_checked(truth, predicted)

    def update_checked(self, truth: CSR, predicted: CSR) -> None:
        """Add rows that have been checked already, as `update` does."""
        both = truth.multiply(predicted).tocsr()
        for matrix, counts in ((both, self.n_both), (truth, self.n_true), (predicted, self.n_predicted)):
            counts += np.bincount(matrix.indices, minlength=self.n_labels)
        self.n_rows += truth.shape[0]

    def merge(self, other: DecisionAccumulator) -> None:
        """Add the rows that another accumulator has seen."""
        if self.n_labels != other.n_labels:
            raise DataError(f"accumulators of {self.n_labels} and {other.n_labels} labels cannot be merged")
        self.n_both += other.n_both
        self.n_true += other.n_true
        self.n_predicted += other.n_predicted
        self.n_rows += other.n_rows

    def hamming_loss(self) -> float:
        """The Hamming loss over all rows so far."""
        if not self.n_rows:
            raise DataError("no row has been added yet; a measure needs at least one")
        wrong = int((self.n_true + self.n_predicted - 2 * self.n_both).sum())
        return wrong / (self.n_rows * self.n_labels)

    def micro_f1(self) -> float:
        """The micro F1 over all rows so far."""
        total = int(self.n_true.sum() + self.n_predicted.sum())
        return 2 * int(self.n_both.sum()) / total if total else 0.0

    def label_f1(self) -> FloatArray:
        """The F1 of each label over all rows so far."""
        # 2 tp + fp + fn = true cells + predicted cells
        return 2 * self.n_both / np.maximum(self.n_true + self.n_predicted, 1)

    def macro_f1(self) -> float:
        """The macro F1 over all rows so far."""
        return math.fsum(self.label_f1()) / self.n_labels

    def result(self) -> dict[str, float]:
        """The measures by name: hamming_loss, micro_f1 and macro_f1."""
        return {"hamming_loss": self.hamming_loss(), "micro_f1": self.micro_f1(), "macro_f1": self.macro_f1()}


def _count(Y_true: Any, Y_pred: Any) -> DecisionAccumulator:
    truth = check_truth(Y_true)
    accumulator = DecisionAccumulator(truth.shape[1])
    if not isinstance(Y_pred, RowBlocks):
        accumulator.update(truth, Y_pred)
        return accumulator
    for part, block in iter_parts(truth, Y_pred, name="predictions"):
        accumulator.update(part, block)
    return accumulator
