"""Small data sets for the tests of the matrix formats: strategies that make them, and exact comparison."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from streamlabel.types import Dataset

# Printable, and without the characters whose canonical form is another one (names are kept in NFC).
NAMES = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1, max_size=8)


@st.composite
def datasets(draw: st.DrawFn, min_labels: int = 0, named: bool = False) -> Dataset:
    """Up to 5 x 6 features and 5 labels, any finite values (stored zeros too), float32 or float64."""
    n_rows, n_features = draw(st.integers(0, 5)), draw(st.integers(0, 6))
    n_labels = draw(st.integers(min_labels, 5))
    dtype, width = draw(st.sampled_from([(np.float64, 64), (np.float32, 32)]))
    number = st.floats(allow_nan=False, allow_infinity=False, width=width)

    def cells(n_columns: int, values: st.SearchStrategy) -> list[dict]:
        row = st.dictionaries(st.integers(0, n_columns - 1), values, max_size=n_columns) if n_columns else st.just({})
        return draw(st.lists(row, min_size=n_rows, max_size=n_rows))

    def matrix(rows: list[dict], n_columns: int, kind: type) -> sparse.csr_array:
        entries = [(j, row[j]) for row in rows for j in sorted(row)]
        pointers = np.cumsum([0] + [len(row) for row in rows])
        indices = np.array([j for j, _ in entries], dtype=np.int32)
        return sparse.csr_array(
            (np.array([v for _, v in entries], dtype=kind), indices, pointers), shape=(n_rows, n_columns)
        )

    names = draw(st.lists(NAMES, min_size=n_labels, max_size=n_labels, unique=True)) if named else None
    features = draw(st.lists(NAMES, min_size=n_features, max_size=n_features)) if named else None
    return Dataset(
        X=matrix(cells(n_features, number), n_features, dtype),
        Y=matrix(cells(n_labels, st.just(1)), n_labels, np.int8),
        label_names=tuple(names) if names is not None else tuple(f"label_{j}" for j in range(n_labels)),
        feature_names=None if features is None else tuple(features),
    )


def assert_same_matrix(got: sparse.csr_array, expected: sparse.csr_array) -> None:
    """Bit for bit: shape, type, structure, and values with the sign of zero."""
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    assert np.array_equal(got.indptr, expected.indptr)
    assert np.array_equal(got.indices, expected.indices)
    assert got.data.tobytes() == expected.data.tobytes()


def assert_same_set(got: Dataset, expected: Dataset) -> None:
    assert_same_matrix(got.X, expected.X)
    assert_same_matrix(got.Y, expected.Y)
    assert got.label_names == expected.label_names
