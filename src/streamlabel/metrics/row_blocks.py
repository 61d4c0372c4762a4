"""Score matrices, whole or block by block, checked once, and always read as blocks of a bounded size.

What a score is, for every measure of this package:

* a dense matrix (n_rows, n_labels); integers and booleans are read as float64, infinities are allowed, NaN is not;
* a sparse matrix: a stored value is a score, also a stored 0; a missing cell has the score minus infinity. It lies
  below every stored finite score and is tied with all other missing cells of its row, column or matrix. (So a sparse
  matrix means the same as the dense one that is filled up with ``-numpy.inf``.)
* `RowBlocks` or `ColumnBlocks`, when the whole matrix would not fit.

A score of minus infinity, stored or missing, says that the label is not proposed at all: it never enters a top k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.types import CSR, FloatArray
from streamlabel.validation import canonical_labels

Block: TypeAlias = FloatArray | CSR

BLOCK_CELLS = 1 << 22
"""Cells of a dense block: the working memory of a measure is a few times 32 MiB, whatever the number of labels."""


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Scores that come by blocks of rows, for matrices that do not fit into memory.

    Parameters
    ----------
    source : ``source(start, stop)`` gives the scores of rows ``start:stop``, dense or sparse, (stop - start, n_labels),
        and the same ones each time it is asked; or an iterable of such blocks, from the first row to the last. Measures
        over labels or over all cells read the scores twice: a generator, which can be read once, serves measures over
        rows only.
    size : rows that a callable is asked for at a time; by default as many as make `BLOCK_CELLS` cells
    """

    source: Callable[[int, int], Any] | Iterable[Any]
    size: int | None = None


@dataclass(frozen=True, eq=False)
class ColumnBlocks:
    """Scores that come by blocks of labels: as `RowBlocks`, but (n_rows, stop - start), and ``size`` counts columns."""

    source: Callable[[int, int], Any] | Iterable[Any]
    size: int | None = None


def check_truth(Y_true: Any, *, name: str = "Y_true") -> CSR:
    """Check Y_true and convert it to csr_array of int8 ones, with at least one row and one label."""
    truth = canonical_labels(Y_true, name=name)
    if 0 in truth.shape:
        raise DataError(f"{name} has the shape {truth.shape}; a measure needs at least one row and one label")
    return truth


def as_block(scores: Any, shape: tuple[int | None, int | None] = (None, None), *, name: str = "scores") -> Block:
    """Check scores: float32 or float64, dense or canonical csr_array, of this shape (None: any) and without NaN.

    The input is not changed; it is not copied when it has this form already.
    """
    matrix = _as_numbers(scores, name)
    if any(want not in (None, have) for want, have in zip(shape, matrix.shape, strict=True)):
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise DataError(f"{name} have the shape {matrix.shape}; ({wanted}) is needed, as in the truth")
    stored = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if stored.size and np.isnan(stored.max()):
        first = int(np.flatnonzero(np.isnan(stored))[0])
        row, column = _place(matrix, first)
        raise DataError(f"{name} contain NaN, first in row {row}, column {column}; a NaN cannot be ranked")
    return matrix


def _place(matrix: Block, position: int) -> tuple[int, int]:
    """Row and column of the cell that is stored at this position."""
    if isinstance(matrix, np.ndarray):
        return divmod(position, matrix.shape[1])
    return int(np.searchsorted(matrix.indptr, position, side="right")) - 1, int(matrix.indices[position])


def _as_numbers(scores: Any, name: str) -> Block:
    if not sparse.issparse(scores):
        try:
            scores = np.asarray(scores)
        except ValueError as error:
            raise DataError(f"{name} cannot be read as a matrix: {error}") from error
    if scores.ndim != 2:
        raise DataError(f"{name} have {scores.ndim} dimension(s); expected a matrix (n_rows, n_labels)")
    if scores.dtype.kind not in "biuf":
        raise DataError(f"{name} are of type {scores.dtype}; give numbers")
    dtype = np.float32 if scores.dtype in (np.float16, np.float32) else np.float64
    if isinstance(scores, np.ndarray):
        return scores.astype(dtype, copy=False)
    matrix = sparse.csr_array(scores).astype(dtype, copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def require_replay(scores: Any) -> None:
    """Raise DataError, before any work, if scores that are needed twice can be read only once."""
    if isinstance(scores, RowBlocks | ColumnBlocks) and isinstance(scores.source, Iterator):
        raise DataError("these measures read the scores twice, a generator can be read once; give a callable or a list")


def iter_parts(truth: CSR, scores: Any, *, axis: int = 0, name: str = "scores") -> Iterator[tuple[CSR, Block]]:
    """Iterate over pairs (part of the truth, block of scores): rows from first to last, or labels with ``axis=1``."""
    by_column = truth.tocsc() if axis == 1 else None
    for span, block in iter_blocks(scores, truth.shape, axis=axis, name=name):
        yield truth[span] if by_column is None else by_column[:, span].tocsr(), block


def iter_blocks(
    scores: Any, shape: tuple[int, int], *, axis: int = 0, name: str = "scores"
) -> Iterator[tuple[slice, Block]]:
    """Iterate over pairs (rows or columns, block), checked, that cover the axis without a gap."""
    other = ColumnBlocks if axis == 0 else RowBlocks
    if isinstance(scores, other):
        along = ("the labels of a row", "RowBlocks") if axis == 0 else ("the rows of a label", "ColumnBlocks")
        raise DataError(f"this measure ranks {along[0]}; give the {name} as {along[1]} instead of {other.__name__}")
    if not isinstance(scores, RowBlocks | ColumnBlocks):
        scores = _in_memory(as_block(scores, shape, name=name), axis)
    spans = _asked if callable(scores.source) else _given
    for start, stop, block in spans(scores, shape, axis, name):
        wanted = (stop - start, shape[1]) if axis == 0 else (shape[0], stop - start)
        yield slice(start, stop), as_block(block, wanted, name=name)


def _in_memory(scores: Block, axis: int) -> RowBlocks | ColumnBlocks:
    """A matrix as blocks. A sparse one is its own single block: everything made from it is of its own size."""
    kind = RowBlocks if axis == 0 else ColumnBlocks
    if not isinstance(scores, np.ndarray):
        return kind([scores])
    return kind(lambda start, stop: scores[start:stop] if axis == 0 else scores[:, start:stop])


def _asked(blocks: Any, shape: tuple[int, int], axis: int, name: str) -> Iterator[tuple[int, int, Any]]:
    """Triples (start, stop, block) from a callable."""
    size = blocks.size if blocks.size is not None else max(1, BLOCK_CELLS // shape[1 - axis])
    if size < 1:
        raise DataError(f"the block size of the {name} is {size}; it must be 1 or more")
    for start in range(0, shape[axis], size):
        stop = min(start + size, shape[axis])
        yield start, stop, blocks.source(start, stop)


def _given(blocks: Any, shape: tuple[int, int], axis: int, name: str) -> Iterator[tuple[int, int, Any]]:
    """Triples (start, stop, block) from an iterable."""
    stop, length, what = 0, shape[axis], ("rows", "columns")[axis]
    for block in blocks.source:
        matrix = _as_numbers(block, name)
        start, stop = stop, stop + matrix.shape[axis]
        if stop > length:
            raise DataError(f"the blocks of {name} go on after {length} {what}, where the truth ends")
        if stop > start:
            yield start, stop, matrix
    if stop < length:
        raise DataError(f"the blocks of {name} end after {stop} of {length} {what}")
