"""The plain data that travels between the layers: frozen, without any computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FloatArray: TypeAlias = NDArray[np.floating]
IntArray: TypeAlias = NDArray[np.integer]
BoolArray: TypeAlias = NDArray[np.bool_]
CSR: TypeAlias = sparse.csr_array
CSC: TypeAlias = sparse.csc_array


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Examples and their labels, in the one form that everything downstream reads.

    Attributes
    ----------
    X : csr_array (n_rows, n_features), float32 or float64, finite, indices sorted and unique
    Y : csr_array (n_rows, n_labels), int8, every stored value 1
    label_names : one name per column of Y, all different
    feature_names : one name per column of X, or None if the source has none
    row_ids : one id per row, or None if the source has none
    row_dates : datetime64[D] (n_rows,), or None
    source : where it came from, for messages
    """

    X: CSR
    Y: CSR
    label_names: tuple[str, ...]
    feature_names: tuple[str, ...] | None = None
    row_ids: tuple[str, ...] | None = None
    row_dates: NDArray[np.datetime64] | None = None
    source: str = ""

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        return int(self.Y.shape[1])

    def __repr__(self) -> str:
        return (
            f"Dataset({self.n_rows} rows, {self.n_features} features, {self.n_labels} labels, source={self.source!r})"
        )

    def take_rows(self, rows: IntArray) -> Dataset:
        """The same data set with these rows only, in this order."""
        return replace(
            self,
            X=self.X[rows],
            Y=self.Y[rows],
            row_ids=None if self.row_ids is None else tuple(self.row_ids[i] for i in rows),
            row_dates=None if self.row_dates is None else self.row_dates[rows],
        )

    def take_labels(self, labels: IntArray) -> Dataset:
        """The same data set with these labels only, in this order."""
        return replace(self, Y=self.Y[:, labels], label_names=tuple(self.label_names[j] for j in labels))


@dataclass(frozen=True, eq=False, repr=False)
class TextDataset:
    """Texts and their labels, before the texts become numbers (see ``data.text``).

    Y, label_names, row_ids, row_dates and source are as in `Dataset`; ``texts`` has one entry per row.
    """

    texts: Sequence[str]
    Y: CSR
    label_names: tuple[str, ...]
    row_ids: tuple[str, ...] | None = None
    row_dates: NDArray[np.datetime64] | None = None
    source: str = ""

    @property
    def n_rows(self) -> int:
        return len(self.texts)

    @property
    def n_labels(self) -> int:
        return int(self.Y.shape[1])

    def __repr__(self) -> str:
        return f"TextDataset({self.n_rows} texts, {self.n_labels} labels, source={self.source!r})"


@dataclass(frozen=True)
class SolveReport:
    """The report of a solver: which one it was, how far it got, whether that was far enough.

    ``violation`` is the solver's own distance from the optimum (a relative duality gap for the lasso, a relative
    residual for the classifier), ``tolerance`` what was asked for.
    """

    solver: str
    n_iter: int
    violation: float
    tolerance: float
    converged: bool
    note: str = ""
