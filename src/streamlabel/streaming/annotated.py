"""The cells of an arrival that were asked: rows, cells, or everything. The rest is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.types import CSC, CSR, IntArray
from streamlabel.validation import canonical_labels


@dataclass(frozen=True, eq=False)
class AskedRows:
    """The answers (n, k), zero where nobody was asked, and which cells were asked.

    rows : the same rows for all labels; None if ``cells`` says it
    cells : bool csc_array (n, k), or None
    """

    labels: CSR
    rows: IntArray | None
    cells: CSC | None

    @property
    def n_labels(self) -> int:
        return int(self.labels.shape[1])

    @property
    def everything(self) -> bool:
        """Whether every label was asked on every row."""
        return self.cells is None and self.rows is None


def rows_asked(n_rows: int, Y_new: Any, annotated: Any) -> AskedRows:
    """Read ``Y_new`` (n, k) or (n,) and ``annotated`` (None, rows or cells); unknown cells may hold anything."""
    if not sparse.issparse(Y_new):
        Y_new = np.asarray(Y_new)
        if Y_new.ndim == 1:
            Y_new = Y_new[:, None]
    if Y_new.ndim != 2 or Y_new.shape[0] != n_rows:
        raise DataError(f"Y_new has shape {Y_new.shape} and X has {n_rows} rows; give one row of answers a row of X")
    if Y_new.shape[1] == 0:
        raise DataError("Y_new has no column; give at least one label")
    if annotated is None:
        return AskedRows(_answers(Y_new), None, None)
    if (sparse.issparse(annotated) or np.ndim(annotated) == 2) and np.shape(annotated)[1:] != ():
        return _cells_asked(Y_new, annotated)
    rows = _row_numbers(annotated, n_rows)
    if rows.size < 2:
        raise DataError(f"{rows.size} rows are annotated; at least one yes and one no are needed")
    labels = _answers(_csr(Y_new)[rows] if sparse.issparse(Y_new) else Y_new[rows])
    return AskedRows(_put_rows(labels, rows, n_rows), None if rows.size == n_rows else rows, None)


def group_by_rows(asked: AskedRows) -> Iterator[tuple[IntArray, IntArray | None, CSR]]:
    """Group labels that were asked on the same rows: (their columns, the rows or None for all, the answers there)."""
    everyone = np.arange(asked.n_labels)
    if asked.cells is None:
        yield everyone, asked.rows, asked.labels if asked.rows is None else asked.labels[asked.rows]
        return
    n_rows = asked.labels.shape[0]
    groups: dict[bytes, list[int]] = {}
    for j in everyone:
        rows = asked.cells.indices[asked.cells.indptr[j] : asked.cells.indptr[j + 1]]
        groups.setdefault(rows.tobytes(), []).append(int(j))
    for columns in groups.values():
        first = columns[0]
        rows = asked.cells.indices[asked.cells.indptr[first] : asked.cells.indptr[first + 1]]
        answers = asked.labels[:, columns]
        yield (
            np.array(columns),
            None if rows.size == n_rows else rows,
            answers if rows.size == n_rows else answers[rows],
        )


def check_both_answers(asked: AskedRows, names: tuple[str, ...]) -> None:
    """Raise DataError unless every label has a yes and a no."""
    yes = np.bincount(asked.labels.indices, minlength=asked.n_labels)
    if asked.cells is not None:
        total = np.diff(asked.cells.indptr)
    else:
        total = np.full(asked.n_labels, asked.labels.shape[0] if asked.rows is None else asked.rows.size)
    for name, n_yes, n_rows in zip(names, yes, total, strict=True):
        if n_yes in (0, n_rows):
            missing = "positive" if n_yes == 0 else "negative"
            raise DataError(f"label {name!r} has no {missing} example among its {n_rows} annotated rows; add one")


def _cells_asked(Y_new: Any, annotated: Any) -> AskedRows:
    cells = sparse.csc_array(annotated)
    if cells.shape != tuple(Y_new.shape):
        raise DataError(f"annotated has shape {cells.shape} and Y_new {Y_new.shape}; cells need the same shape")
    if cells.dtype != bool and not np.isin(cells.data, (0, 1)).all():
        raise DataError("annotated must be a mask: True where a cell was asked")
    cells = cells.astype(bool)
    cells.eliminate_zeros()
    cells.sum_duplicates()
    if cells.nnz == cells.shape[0] * cells.shape[1]:
        return AskedRows(_answers(Y_new), None, None)
    if not sparse.issparse(Y_new):
        Y_new = np.where(cells.toarray(), Y_new, 0)
        return AskedRows(_answers(Y_new), None, cells)
    known = _csr(Y_new).multiply(cells.astype(np.int8).tocsr())
    return AskedRows(_answers(sparse.csr_array(known)), None, cells)


def _row_numbers(annotated: Any, n_rows: int) -> IntArray:
    chosen = np.asarray(annotated)
    if not chosen.size:
        raise DataError("annotated is empty; name the rows that were asked, at least one yes and one no among them")
    if chosen.dtype == bool:
        if chosen.shape != (n_rows,):
            raise DataError(f"annotated has shape {chosen.shape}; expected one entry a row, ({n_rows},)")
        return np.flatnonzero(chosen)
    if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
        raise DataError("annotated must be a boolean mask of rows or cells, or row numbers")
    ordered = np.sort(chosen)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if twice.size:
        raise DataError(
            f"annotated repeats row {int(twice[0])}; give every row once (a 0/1 mask must be boolean: .astype(bool))"
        )
    outside = chosen[(chosen < 0) | (chosen >= n_rows)]
    if outside.size:
        raise DataError(f"annotated names row {int(outside[0])}; there are {n_rows} rows, counted from 0")
    return ordered


def _put_rows(labels: CSR, rows: IntArray, n_rows: int) -> CSR:
    """Answers of some rows (q, k) as a matrix (n_rows, k)."""
    counts = np.zeros(n_rows, dtype=labels.indptr.dtype)
    counts[rows] = np.diff(labels.indptr)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return sparse.csr_array((labels.data, labels.indices, indptr), shape=(n_rows, labels.shape[1]))


def _csr(Y: Any) -> CSR:
    return sparse.csr_array(Y)


def _answers(Y: Any) -> CSR:
    values = _csr(Y).data if sparse.issparse(Y) else np.asarray(Y)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise DataError("Y_new contains NaN; say what was asked with annotated=..., and put anything where it was not")
    return canonical_labels(Y, name="Y_new")
