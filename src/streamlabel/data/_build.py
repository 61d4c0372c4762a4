"""From the rows of many blocks to one data set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel._validation import check_label_names, default_label_names
from streamlabel.data._limits import check_memory, check_shape
from streamlabel.data._rows import RowFormat, Rows
from streamlabel.exceptions import DataError
from streamlabel.results import CSR, Dataset

__all__ = ["RowsBuilder", "named_dataset"]


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
