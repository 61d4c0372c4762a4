"""Checks of arrays and names that come in: one canonical form, checked once, at the door."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from numbers import Number
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.types import CSR, FloatArray

MAX_NAME_LENGTH = 200
JOINERS = "\u200c\u200d"  # invisible, but needed inside words of some scripts, and in emoji


def canonical_csr(X: Any, *, dtype: Any = None, name: str = "X") -> CSR:
    """Convert X to csr_array: 2-D, float32 or float64, finite, indices sorted, duplicates summed.

    The input is not changed. ``dtype=None`` keeps float32 and float64 and turns everything else into float64.
    """
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2:
        raise DataError(f"{name} has {X.ndim} dimension(s); expected a matrix (n_rows, n_columns)")
    if X.dtype.kind in "OUS":
        check_numbers(X, name)
    if dtype is None:
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    try:
        matrix = sparse.csr_array(X, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} cannot be read as numbers: {error}") from error
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        row = int(np.searchsorted(matrix.indptr, np.flatnonzero(~np.isfinite(matrix.data))[0], side="right")) - 1
        raise DataError(f"{name} contains NaN or infinity, first in row {row}; remove or impute such rows")
    return matrix


def check_numbers(X: Any, name: str) -> None:
    """Refuse cells of an object array that are no numbers: None and '' are not 0, they are unknown."""
    cells: Any = np.ravel(X.data if sparse.issparse(X) else X)  # type: ignore[attr-defined]
    for place, cell in enumerate(cells.tolist()):
        if not isinstance(cell, Number):
            where = "" if sparse.issparse(X) else f" in row {place // X.shape[1]}"
            unknown = cell is None or str(cell).strip() in ("", "<NA>", "nan", "NaT")
            advice = "; an unknown answer is not no: leave such rows out, or say what was asked" if unknown else ""
            raise DataError(f"{name} cannot be read as numbers: it holds {cell!r}{where}{advice}")


def checked_matrix(M: Any, *, name: str = "X") -> CSR | FloatArray:
    """A matrix of finite float64 numbers, checked; sparse stays sparse."""
    if sparse.issparse(M):
        return canonical_csr(M, dtype=np.float64, name=name)
    try:
        rows = np.asarray(M, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} cannot be read as numbers: {error}") from error
    if rows.ndim != 2:
        raise DataError(f"{name} has {rows.ndim} dimension(s); expected a matrix (n_rows, n_columns)")
    if not np.isfinite(rows).all():
        row = int(np.argmin(np.isfinite(rows).all(axis=1)))
        raise DataError(f"{name} contains NaN or infinity, first in row {row}; remove or impute such rows")
    return rows


def canonical_labels(Y: Any, *, name: str = "Y") -> CSR:
    """Labels as csr_array of int8 ones: 2-D, entries 0 or 1 (booleans too), no stored zeros. Y is not changed."""
    matrix = canonical_csr(Y, dtype=np.float64, name=name)
    if matrix.nnz and not np.isin(matrix.data, (0.0, 1.0)).all():
        bad = matrix.data[~np.isin(matrix.data, (0.0, 1.0))][0]
        raise DataError(f"{name} holds {bad:g}; label matrices hold 0 and 1 only")
    parts = matrix.data.astype(np.int8), matrix.indices.copy(), matrix.indptr.copy()
    labels = sparse.csr_array(parts, shape=matrix.shape)
    if labels.nnz and not labels.data.all():
        labels.eliminate_zeros()
    return labels


def check_label_names(names: Iterable[str], n_labels: int, *, taken: Iterable[str] = ()) -> tuple[str, ...]:
    """Check label names: as many as labels, 1 to 200 characters, printable, all different. Returns NFC strings."""
    if isinstance(names, str):
        raise DataError(f"label_names is the string {names!r}; give a list of names, [{names!r}]")
    given = tuple(names)
    for position, name in enumerate(given):
        if not isinstance(name, str):
            raise DataError(f"label name {position} is {name!r}, of type {type(name).__name__}; names are strings")
    result = tuple(unicodedata.normalize("NFC", name) for name in given)
    if len(result) != n_labels:
        raise DataError(f"{len(result)} label names for {n_labels} labels; give one name a column of Y")
    for position, name in enumerate(result):
        if name and not name.strip():
            raise DataError(f"label name {position} ({name!r}) is blank; give a name that can be seen")
        if not 1 <= len(name) <= MAX_NAME_LENGTH:
            at = f"{position} ({name[:20]!r})" if name else position
            raise DataError(f"label name {at} has {len(name)} characters; 1 to {MAX_NAME_LENGTH} are allowed")
        for character in name:
            kind = unicodedata.category(character)
            if kind in ("Cc", "Cs"):
                raise DataError(f"label name {position} ({name!r}) contains a control character; remove it")
            if kind in ("Cf", "Zl", "Zp") and (character not in JOINERS or name[0] in JOINERS or name[-1] in JOINERS):
                code = f"U+{ord(character):04X}"
                raise DataError(f"label name {position} ({name!a}) contains {code}, which is invisible; remove it")
    seen = set(taken)
    for name in result:
        if name in seen:
            raise DataError(f"label name {name!r} occurs twice; names must differ")
        seen.add(name)
    return result


def default_label_names(n_labels: int, *, first: int = 0) -> tuple[str, ...]:
    """Names for labels that came without one: ``label_0``, ``label_1``, ..."""
    return tuple(f"label_{first + j}" for j in range(n_labels))
