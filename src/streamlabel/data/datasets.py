"""Rows of numbers to one data set: what the matrix formats (XC text, svmlight, ARFF, npz) share.

Readers hand over `Rows`, block after block; `RowsBuilder` joins them to X and Y; `named_dataset` adds the names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.files import check_memory, check_shape
from streamlabel.errors import DataError
from streamlabel.types import CSR, Dataset
from streamlabel.validation import check_label_names, default_label_names

PathLike: TypeAlias = str | os.PathLike[str]
ROWS_PER_WRITE = 1000


@dataclass(frozen=True)
class RowFormat:
    """What ids are allowed and how they are counted. None: whatever occurs."""

    source: str | os.PathLike[str]
    n_features: int | None = None
    n_labels: int | None = None
    first_feature: int = 0
    first_label: int = 0
    sort: bool = False
    dtype: Any = np.float64


@dataclass(frozen=True)
class Rows:
    """Some rows. Ids are 0-based here; ``n_*`` has the number of entries of each row."""

    labels: NDArray[np.int64]
    n_labels: NDArray[np.intp]
    features: NDArray[np.int64]
    n_features: NDArray[np.intp]
    values: NDArray[np.floating]


def sort_rows(
    ids: NDArray[Any],
    values: NDArray[Any] | None,
    counts: NDArray[Any],
    lines: NDArray[np.intp] | None,
    source: object,
    kind: str,
    first_id: int = 0,
    *,
    sort: bool,
) -> tuple[NDArray[Any], Any]:
    """Ids strictly increasing within each row, or DataError: for duplicates always, for disorder unless ``sort``.

    ``counts`` has the number of ids of each row; ``lines`` the line each row stands on, None where there are no lines.
    """
    problem = _first_disorder(ids, counts)
    if problem is None:
        return ids, values
    rows = np.repeat(np.arange(len(counts)), counts)
    if not sort and ids[problem] != ids[problem - 1]:
        raise _row_error(
            f"{kind} {ids[problem] + first_id} comes after {ids[problem - 1] + first_id}; "
            "ids must increase along a row (sort=True accepts any order)",
            int(rows[problem]),
            lines,
            source,
        )
    order = np.lexsort((ids, rows))
    ids, values = ids[order], None if values is None else values[order]
    same = np.flatnonzero((np.diff(ids) == 0) & (np.diff(rows) == 0))
    if same.size:
        twice = f"{kind} {ids[same[0]] + first_id} occurs twice in the row; remove one of the two"
        raise _row_error(twice, int(rows[same[0]]), lines, source)
    return ids, values


def _row_error(problem: str, row: int, lines: NDArray[np.intp] | None, source: object) -> DataError:
    if lines is None:
        return DataError(f"matrix row {row}: {problem}", source=source)
    return DataError(problem, source=source, line=int(lines[row]))


def _first_disorder(ids: NDArray[Any], counts: NDArray[np.intp]) -> int | None:
    """Position of the first id that is not greater than the one before it in its row."""
    falls = np.zeros(len(ids) + 1, dtype=bool)
    np.less_equal(ids[1:], ids[:-1], out=falls[1:-1])
    falls[np.cumsum(counts)] = False
    return int(np.argmax(falls)) if falls.any() else None


@dataclass
class RowsBuilder:
    """Collects the rows of many blocks, watches the memory, and makes the two matrices at the end."""

    form: RowFormat
    parts: list[Rows] = field(default_factory=list)
    n_rows: int = 0
    n_bytes: int = 0

    def add(self, rows: Rows) -> None:
        narrow = np.int32 if self.form.n_features is not None and self.form.n_features < 2**31 else np.int64
        rows = Rows(rows.labels, rows.n_labels, rows.features.astype(narrow, copy=False), rows.n_features, rows.values)
        self.parts.append(rows)
        self.n_rows += len(rows.n_labels)
        arrays = (rows.labels, rows.n_labels, rows.features, rows.n_features, rows.values)
        self.n_bytes += sum(array.nbytes for array in arrays)
        if len(self.parts) % 16 == 0:
            check_memory(self.n_bytes, "joining the rows read so far", source=self.form.source)

    def matrices(self) -> tuple[CSR, CSR]:
        """X and Y. Counts that the format does not give are one more than the largest id."""
        check_memory(self.n_bytes, "joining the rows", source=self.form.source)
        labels = _joined([part.labels for part in self.parts], np.int64)
        features = _joined([part.features for part in self.parts], np.int32)
        n_labels = self.form.n_labels if self.form.n_labels is not None else int(labels.max(initial=-1)) + 1
        n_features = self.form.n_features if self.form.n_features is not None else int(features.max(initial=-1)) + 1
        check_shape(n_features, n_labels, source=self.form.source)
        values = _joined([part.values for part in self.parts], self.form.dtype)
        X = sparse.csr_array(
            (values, features, _pointers([part.n_features for part in self.parts])), shape=(self.n_rows, n_features)
        )
        Y = sparse.csr_array(
            (np.ones(len(labels), dtype=np.int8), labels, _pointers([part.n_labels for part in self.parts])),
            shape=(self.n_rows, n_labels),
        )
        self.parts.clear()
        return X, Y


def _joined(arrays: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=dtype)


def _pointers(counts: list[NDArray[np.intp]]) -> NDArray[np.int64]:
    pointers = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(_joined(counts, np.int64), dtype=np.int64)])
    return pointers.astype(np.int32) if pointers[-1] < 2**31 else pointers


def named_dataset(
    X: CSR,
    Y: CSR,
    label_names: Sequence[str] | None,
    feature_names: Sequence[str] | None,
    source: str | os.PathLike[str],
    first_label: int = 0,
) -> Dataset:
    """The two matrices with their names checked; ``label_0``, ``label_1``, ... where there are none."""
    n_labels, n_features = int(Y.shape[1]), int(X.shape[1])
    try:
        names = (
            default_label_names(n_labels, first=first_label)
            if label_names is None
            else check_label_names(label_names, n_labels)
        )
    except DataError as error:
        raise DataError(error.problem, source=source) from error
    if feature_names is not None and len(feature_names) != n_features:
        raise DataError(
            f"{len(feature_names)} feature names for {n_features} features; give one a column", source=source
        )
    return Dataset(
        X=X,
        Y=Y,
        label_names=names,
        feature_names=None if feature_names is None else tuple(feature_names),
        source=os.fspath(source),
    )


def number_texts(values: NDArray[np.floating]) -> list[str]:
    """Each value as a short decimal that reads back to exactly the same number of the same type."""
    if values.dtype == np.float64:
        return [repr(value) for value in values.tolist()]
    # float32: the fewest of 6 to 9 digits that survive reading as float64 and rounding to float32.
    doubles = values.tolist()
    texts = [f"{value:.6g}" for value in doubles]
    for digits in (7, 8, 9):
        back = np.array([float(text) for text in texts]).astype(np.float32)
        for position in np.flatnonzero(back != values):
            texts[position] = f"{doubles[position]:.{digits}g}"
    return texts


def row_slices(X: CSR, Y: CSR) -> Iterator[tuple[slice, slice, list[int], list[int]]]:
    """Some rows at a time: their entries of X and of Y as slices, and where in these each row starts and ends."""
    for start in range(0, X.shape[0], ROWS_PER_WRITE):
        x, y = (matrix.indptr[start : start + ROWS_PER_WRITE + 1] for matrix in (X, Y))
        yield slice(x[0], x[-1]), slice(y[0], y[-1]), (x - x[0]).tolist(), (y - y[0]).tolist()
