"""Counts of scores below those of the true labels: the base of AUC, average precision, ranking loss and coverage.

A *group* is what is ranked together: the labels of one row, the rows of one label, or all cells. The counts are whole
numbers and add up over blocks, so a measure has the same value however the scores were cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.metrics.row_blocks import Block
from streamlabel.types import CSR, FloatArray, IntArray


def cell_keys(matrix: CSR) -> IntArray:
    """One ascending number per stored cell of a canonical matrix: row * n_columns + column."""
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    return rows * matrix.shape[1] + matrix.indices


def contains(ascending: IntArray, wanted: IntArray) -> tuple[Any, IntArray]:
    """Look up each wanted number in an ascending array: (found or not, position)."""
    position = np.searchsorted(ascending, wanted)
    position[position == len(ascending)] = 0
    found = ascending[position] == wanted if len(ascending) else np.zeros(wanted.shape, dtype=bool)
    return found, position


def true_scores(truth: CSR, block: Block) -> FloatArray:
    """The scores of the true cells, in the order of ``truth.indices``; minus infinity if a sparse block has none."""
    if sparse.issparse(block):
        found, position = contains(cell_keys(block), cell_keys(truth))
        values = np.full(truth.nnz, -np.inf, dtype=block.dtype)
        values[found] = block.data[position[found]]
        return values
    rows = np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr))
    return block[rows, truth.indices]


def count_cells(block: Block, targets: FloatArray, indptr: IntArray) -> tuple[IntArray, IntArray]:
    """Count, for each target, the cells of its group that score lower, and those that do not score higher.

    Group i is row i of the block; its targets are ``targets[indptr[i]:indptr[i + 1]]``.
    """
    below = np.zeros(len(targets), dtype=np.int64)
    not_above = np.zeros(len(targets), dtype=np.int64)
    common = np.result_type(block.dtype, targets.dtype)  # searchsorted would convert each group again and again
    block, targets = block.astype(common, copy=False), targets.astype(common, copy=False)
    for i in np.flatnonzero(np.diff(indptr)):
        mine = slice(indptr[i], indptr[i + 1])
        wanted = targets[mine]
        if isinstance(block, np.ndarray):
            ordered, n_missing = np.sort(block[i]), 0
        else:
            ordered = np.sort(block.data[block.indptr[i] : block.indptr[i + 1]])
            n_missing = block.shape[1] - len(ordered)
        below[mine] = ordered.searchsorted(wanted, "left") + n_missing * (wanted > -np.inf)
        not_above[mine] = ordered.searchsorted(wanted, "right") + n_missing
    return below, not_above


def count_within(targets: FloatArray, indptr: IntArray) -> tuple[IntArray, IntArray]:
    """Count as `count_cells`, but among the targets of each group themselves (a target is not above itself)."""
    group = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((targets, group))
    value, group = targets[order], group[order]
    new = np.ones(len(value) + 1, dtype=bool)  # where a run of equal scores in one group begins
    new[1:-1] = (value[1:] != value[:-1]) | (group[1:] != group[:-1])
    begins = np.flatnonzero(new)
    run = np.cumsum(new[:-1]) - 1
    below, not_above = np.empty(len(value), dtype=np.int64), np.empty(len(value), dtype=np.int64)
    below[order] = begins[run] - indptr[group]
    not_above[order] = begins[run + 1] - indptr[group]
    return below, not_above


@dataclass(frozen=True, eq=False)
class Order:
    """Counts at the true cells of each group, and the measures that follow from them, one value per group.

    indptr : (n_groups + 1,) the true cells of group i are ``indptr[i]:indptr[i + 1]``
    below, not_above : (n_true,) cells of the group with a lower, with a lower or equal score
    true_below, true_not_above : (n_true,) the same among the true cells of the group
    n_cells : cells of a group, the same for all
    """

    indptr: IntArray
    below: IntArray
    not_above: IntArray
    true_below: IntArray
    true_not_above: IntArray
    n_cells: int

    @classmethod
    def of_rows(cls, truth: CSR, block: Block) -> Order:
        """Count with each row as a group: truth and block are (n_groups, n_cells)."""
        targets = true_scores(truth, block)
        counts = count_cells(block, targets, truth.indptr)
        return cls(truth.indptr, *counts, *count_within(targets, truth.indptr), truth.shape[1])

    @property
    def n_true(self) -> IntArray:
        """The number of true cells of each group."""
        return np.diff(self.indptr).astype(np.int64)

    def auc(self) -> FloatArray:
        """The AUC of each group: (false cells below + half of those tied) / (n_true * n_false); NaN if one class."""
        n_pairs = self.n_true * (self.n_cells - self.n_true)
        twice = self._sum((self.below - self.true_below) + (self.not_above - self.true_not_above))
        return _divide(twice, 2 * n_pairs, np.nan)

    def average_precision(self, empty: float) -> FloatArray:
        """Average precision: the mean share of true cells among those not below a true one; ``empty`` without one."""
        n_true = np.repeat(self.n_true, self.n_true)
        precision = (n_true - self.true_below) / (self.n_cells - self.below)
        group = np.repeat(np.arange(len(self.n_true)), self.n_true)
        return _divide(np.bincount(group, weights=precision, minlength=len(self.n_true)), self.n_true, empty)

    def ranking_loss(self) -> FloatArray:
        """The share of pairs (true, false) in which the false cell is not below the true one; 0 if there is none."""
        n_pairs = self.n_true * (self.n_cells - self.n_true)
        right = self._sum(self.below - self.true_below)
        return _divide(n_pairs - right, n_pairs, 0.0)

    def coverage(self) -> FloatArray:
        """The number of cells not below the lowest true one; 0 if none is true."""
        depth = np.zeros(len(self.n_true))
        group = np.repeat(np.arange(len(self.n_true)), self.n_true)
        np.maximum.at(depth, group, self.n_cells - self.below)
        return depth

    def _sum(self, counts: IntArray) -> IntArray:
        total = np.concatenate(([0], np.cumsum(counts)))
        return total[self.indptr[1:]] - total[self.indptr[:-1]]


def _divide(top: Any, bottom: IntArray, otherwise: float) -> FloatArray:
    result = np.full(len(bottom), otherwise)
    np.divide(top, bottom, out=result, where=bottom > 0)
    return result
