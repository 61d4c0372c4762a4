"""Measures over the rows of a label, or over all cells: area under the ROC curve and average precision.

Every function takes ``Y_true`` (n_rows, n_labels), 0/1, dense or sparse, and ``scores``: dense, sparse, `RowBlocks` or
`ColumnBlocks` (`metrics.row_blocks` says what a missing score means). All values are exact, also in blocks: a first
reading collects the scores of the true cells, a second one counts, block by block, how many scores lie below each of
them. So memory goes with the number of true cells plus one block, never with n_rows * n_labels, and nothing is binned.
`RowBlocks` are read twice for it; `ColumnBlocks` once for the measures per label, twice for the micro measures.

Conventions: a tie counts one half in AUC; in average precision tied rows are taken together (as in scikit-learn). A
label whose rows are all true or all false has neither measure: NaN per label, left out of the macro mean and counted.
The macro mean divides by the labels that are left; it is NaN when none is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, TypeVar, overload

import numpy as np
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.metrics.order import Order, count_cells, count_within, true_scores
from streamlabel.metrics.row_blocks import (
    Block,
    ColumnBlocks,
    RowBlocks,
    as_block,
    check_truth,
    iter_parts,
    require_replay,
)
from streamlabel.types import CSR, FloatArray


def label_auc(Y_true: Any, scores: Any) -> FloatArray:
    """Area under the ROC curve of each label: the chance that a true row scores higher than a false one, ties one half.

    Returns
    -------
    (n_labels,) float64; NaN for a label with one class only
    """
    return np.concatenate([part.auc() for part in _by_labels(check_truth(Y_true), scores)])


def label_average_precision(Y_true: Any, scores: Any) -> FloatArray:
    """Average precision of each label, without interpolation; tied rows are taken together.

    For each true row the share of true ones among the rows that do not score lower, averaged over the true rows.

    Returns
    -------
    (n_labels,) float64; NaN for a label with one class only (scikit-learn gives 0 or 1 there)
    """
    return np.concatenate([part.average_precision() for part in _by_labels(check_truth(Y_true), scores)])


@overload
def macro_auc(Y_true: Any, scores: Any, *, return_left_out: Literal[False] = ...) -> float: ...
@overload
def macro_auc(Y_true: Any, scores: Any, *, return_left_out: Literal[True]) -> tuple[float, int]: ...
def macro_auc(Y_true: Any, scores: Any, *, return_left_out: bool = False) -> float | tuple[float, int]:
    """Mean of `label_auc` over the labels that have both classes; NaN when there is none.

    With ``return_left_out`` the number of labels left out comes second.

    >>> macro_auc([[1, 0], [0, 0], [1, 0]], [[0.9, 0.1], [0.5, 0.2], [0.5, 0.3]], return_left_out=True)
    (0.75, 1)
    """
    mean, left_out = macro_mean(label_auc(Y_true, scores))
    return (mean, left_out) if return_left_out else mean


@overload
def macro_average_precision(Y_true: Any, scores: Any, *, return_left_out: Literal[False] = ...) -> float: ...
@overload
def macro_average_precision(Y_true: Any, scores: Any, *, return_left_out: Literal[True]) -> tuple[float, int]: ...
def macro_average_precision(Y_true: Any, scores: Any, *, return_left_out: bool = False) -> float | tuple[float, int]:
    """Mean of `label_average_precision` over the labels that have both classes; NaN when there is none.

    With ``return_left_out`` the number of labels left out comes second.
    """
    mean, left_out = macro_mean(label_average_precision(Y_true, scores))
    return (mean, left_out) if return_left_out else mean


def micro_auc(Y_true: Any, scores: Any) -> float:
    """Area under the ROC curve over all n_rows * n_labels cells as one ranking, ties one half. Exact.

    One-class labels stay in: their cells are cells. NaN when all cells are true or all are false.
    """
    return _micro(check_truth(Y_true), scores).auc()


def micro_average_precision(Y_true: Any, scores: Any) -> float:
    """Average precision over all n_rows * n_labels cells as one ranking, tied cells taken together. Exact.

    One-class labels stay in: their cells are cells. NaN when all cells are true or all are false.
    """
    return _micro(check_truth(Y_true), scores).average_precision()


def macro_mean(values: FloatArray) -> tuple[float, int]:
    """The mean of all values that are not NaN, added without rounding error, and the number of NaN."""
    kept = values[~np.isnan(values)]
    return (math.fsum(kept) / len(kept) if len(kept) else math.nan), len(values) - len(kept)


class LabelAccumulator:
    """AUC and average precision of each label, counted over blocks of rows; the second of two readings.

    Parameters
    ----------
    Y_true : (n_rows, n_labels) the whole truth of these labels
    scores_of_true : (nnz,) the scores of its true cells, row by row, each row by ascending column: what
        `order.true_scores` of all blocks gives, one after the other

    Blocks may come in any order and in several accumulators, but each row once.
    """

    def __init__(self, Y_true: Any, scores_of_true: Any) -> None:
        truth = check_truth(Y_true)
        values = _check_true_scores(scores_of_true)
        if values.shape != (truth.nnz,):
            raise DataError(f"scores_of_true has the shape {values.shape}; the truth has {truth.nnz} true cells")
        columns = sparse.csr_array((values, truth.indices, truth.indptr), shape=truth.shape).tocsc()
        self._targets = np.asarray(columns.data, dtype=values.dtype)
        self._indptr = columns.indptr
        self._below = np.zeros(truth.nnz, dtype=np.int64)
        self._not_above = np.zeros(truth.nnz, dtype=np.int64)
        self.n_rows = 0
        self.shape = truth.shape

    def update(self, scores: Any) -> None:
        """Count a block of rows (n, n_labels), dense or sparse."""
        self.update_checked(as_block(scores, (None, self.shape[1])))

    def update_checked(self, block: Block) -> None:
        """Count a block that has been checked already, as `update` does."""
        by_label = np.ascontiguousarray(block.T) if isinstance(block, np.ndarray) else block.T.tocsr()
        below, not_above = count_cells(by_label, self._targets, self._indptr)
        self._below += below
        self._not_above += not_above
        self.n_rows += block.shape[0]

    def merge(self, other: LabelAccumulator) -> None:
        """Add the blocks that another accumulator, made with the same truth and scores, has counted."""
        if not np.array_equal(self._targets, other._targets) or not np.array_equal(self._indptr, other._indptr):
            raise DataError("only accumulators made with the same Y_true and scores_of_true can be merged")
        self._below += other._below
        self._not_above += other._not_above
        self.n_rows += other.n_rows

    def auc(self) -> FloatArray:
        """The area under the ROC curve of each label, (n_labels,), as `label_auc`."""
        return self._order().auc()

    def average_precision(self) -> FloatArray:
        """The average precision of each label, (n_labels,), as `label_average_precision`."""
        order = self._order()
        both = (order.n_true > 0) & (order.n_true < order.n_cells)
        return np.where(both, order.average_precision(empty=np.nan), np.nan)

    def result(self) -> dict[str, float]:
        """The measures by name: macro_auc, macro_average_precision, and how many labels they leave out."""
        mean_auc, left_out = macro_mean(self.auc())
        mean_precision, _ = macro_mean(self.average_precision())
        return {"macro_auc": mean_auc, "macro_average_precision": mean_precision, "n_labels_left_out": float(left_out)}

    def _order(self) -> Order:
        if self.n_rows != self.shape[0]:
            raise DataError(f"{self.n_rows} of {self.shape[0]} rows have been counted; every row is needed once")
        within = count_within(self._targets, self._indptr)
        return Order(self._indptr, self._below, self._not_above, *within, self.n_rows)


class MicroAccumulator:
    """Micro AUC and micro average precision, counted over blocks of cells; the second of two readings.

    Parameters
    ----------
    scores_of_true : (n_true,) the scores of all true cells, in any order

    Blocks may be cut in any way, come in any order and in several accumulators, but each cell once.
    """

    def __init__(self, scores_of_true: Any) -> None:
        self._targets = np.sort(_check_true_scores(scores_of_true))
        self._indptr = np.array([0, len(self._targets)])
        self._below = np.zeros(len(self._targets), dtype=np.int64)
        self._not_above = np.zeros(len(self._targets), dtype=np.int64)
        self.n_cells = 0

    def update(self, scores: Any) -> None:
        """Count a block of cells, dense or sparse, of any shape (n, m)."""
        self.update_checked(as_block(scores))

    def update_checked(self, block: Block) -> None:
        """Count a block that has been checked already, as `update` does."""
        size = block.shape[0] * block.shape[1]
        if isinstance(block, np.ndarray):
            cells: Block = block.reshape(1, size)
        else:
            cells = sparse.csr_array((block.data, np.arange(block.nnz), [0, block.nnz]), shape=(1, size))
        below, not_above = count_cells(cells, self._targets, self._indptr)
        self._below += below
        self._not_above += not_above
        self.n_cells += size

    def merge(self, other: MicroAccumulator) -> None:
        """Add the blocks that another accumulator, made with the same scores, has counted."""
        if not np.array_equal(self._targets, other._targets):
            raise DataError("only accumulators made with the same scores_of_true can be merged")
        self._below += other._below
        self._not_above += other._not_above
        self.n_cells += other.n_cells

    def auc(self) -> float:
        """The area under the ROC curve over all cells."""
        return float(self._order().auc()[0])

    def average_precision(self) -> float:
        """The average precision over all cells; NaN if all are true or all are false."""
        if not 0 < len(self._targets) < self.n_cells:
            return math.nan
        return float(self._order().average_precision(empty=math.nan)[0])

    def result(self) -> dict[str, float]:
        """The measures by name: micro_auc and micro_average_precision."""
        return {"micro_auc": self.auc(), "micro_average_precision": self.average_precision()}

    def _order(self) -> Order:
        if self.n_cells < len(self._targets):
            raise DataError(f"{self.n_cells} cells have been counted, fewer than there are true ones")
        within = count_within(self._targets, self._indptr)
        return Order(self._indptr, self._below, self._not_above, *within, self.n_cells)


Accumulator = TypeVar("Accumulator", LabelAccumulator, MicroAccumulator)


def _check_true_scores(scores_of_true: Any) -> FloatArray:
    values: FloatArray = np.asarray(as_block(np.reshape(scores_of_true, (1, -1)), name="scores_of_true"))[0]
    return values


def _by_labels(truth: CSR, scores: Any) -> Iterator[LabelAccumulator]:
    """Counted accumulators for consecutive labels: one for all with RowBlocks, else one per block of columns."""
    if isinstance(scores, RowBlocks):
        yield _read_twice(truth, scores, partial(LabelAccumulator, truth))
        return
    for part, block in iter_parts(truth, scores, axis=1):
        accumulator = LabelAccumulator(part, true_scores(part, block))
        accumulator.update_checked(block)
        yield accumulator


def _micro(truth: CSR, scores: Any) -> MicroAccumulator:
    return _read_twice(truth, scores, MicroAccumulator)


def _read_twice(truth: CSR, scores: Any, make: Callable[[FloatArray], Accumulator]) -> Accumulator:
    """An accumulator, made of the scores of all true cells, that has counted all blocks."""
    require_replay(scores)
    axis = int(isinstance(scores, ColumnBlocks))
    of_true = [true_scores(part, block) for part, block in iter_parts(truth, scores, axis=axis)]
    accumulator = make(np.concatenate(of_true))
    for _, block in iter_parts(truth, scores, axis=axis):
        accumulator.update_checked(block)
    return accumulator
