from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.metrics import row_blocks
from streamlabel.metrics.topk import top_k


def stable_argsort(scores: np.ndarray, k: int) -> np.ndarray:
    """The definition, word for word."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("k", [1, 2, 5, 29, 30])
@pytest.mark.parametrize("n_values", [1, 2, 4, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_equals_stable_argsort_with_many_ties(rng, k, n_values, dtype):
    scores = rng.integers(-n_values, n_values, (200, 30)).astype(dtype)
    np.testing.assert_array_equal(top_k(scores, k), stable_argsort(scores, k))


def test_negative_zero_ties_with_zero():
    np.testing.assert_array_equal(top_k([[-0.0, 0.0, -1.0, 0.0]], 3), [[0, 1, 3]])


def test_sparse_with_all_cells_stored_equals_dense(rng):
    scores = rng.integers(-2, 3, (50, 12)).astype(float)
    rows, columns = np.indices(scores.shape)
    stored = sparse.csr_array((scores.ravel(), (rows.ravel(), columns.ravel())), shape=scores.shape)
    assert stored.nnz == scores.size  # zeros too
    np.testing.assert_array_equal(top_k(stored, 4), stable_argsort(scores, 4))


def test_missing_and_minus_infinity_are_never_chosen():
    stored = sparse.csr_array(([-5.0, -7.0, -np.inf], ([0, 0, 1], [3, 1, 2])), shape=(3, 4))
    dense = np.full((3, 4), -np.inf)
    dense[0, 3], dense[0, 1] = -5.0, -7.0
    expected = [[3, 1, -1], [-1, -1, -1], [-1, -1, -1]]
    np.testing.assert_array_equal(top_k(stored, 3), expected)
    np.testing.assert_array_equal(top_k(dense, 3), expected)


def test_infinity_comes_first_and_k_beyond_the_labels_is_filled_up():
    np.testing.assert_array_equal(top_k([[1.0, np.inf]], 4), [[1, 0, -1, -1]])


def test_blocks_do_not_matter(rng, monkeypatch):
    scores = rng.integers(0, 3, (101, 17)).astype(float)
    whole = top_k(scores, 5)
    monkeypatch.setattr(row_blocks, "BLOCK_CELLS", 100)
    np.testing.assert_array_equal(top_k(scores, 5), whole)


def test_input_is_not_changed(rng):
    scores = rng.standard_normal((9, 7))
    before = scores.copy()
    top_k(scores, 3)
    np.testing.assert_array_equal(scores, before)


def test_no_rows_and_no_labels():
    assert top_k(np.empty((0, 3)), 2).shape == (0, 2)
    np.testing.assert_array_equal(top_k(np.empty((2, 0)), 2), np.full((2, 2), -1))


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_must_be_a_positive_whole_number(k):
    with pytest.raises(DataError, match="k is"):
        top_k([[1.0, 2.0]], k)
