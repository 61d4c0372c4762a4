"""Sums against numpy on the whole rows; adding parts is adding rows, in any order and grouping."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.stats import sums as module
from streamlabel.stats.sums import Stats

NAMES = ("a", "b", "c")


def some_rows(seed: int, n_rows: int, *, whole: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.integers(-9, 10, (n_rows, 4)).astype(float) if whole else rng.standard_normal((n_rows, 4))
    return X, (rng.random((n_rows, 3)) < 0.4).astype(int)


def assert_sums_of(stats: Stats, X: np.ndarray, Y: np.ndarray, **tolerance: float) -> None:
    assert stats.n_rows == len(X)
    np.testing.assert_allclose(stats.feature_sums, X.sum(axis=0), **tolerance)
    np.testing.assert_allclose(stats.feature_gram, np.einsum("ij,ik->jk", X, X), **tolerance)
    np.testing.assert_allclose(stats.cross, np.einsum("ij,ik->jk", X, Y), **tolerance)
    assert stats.label_gram.toarray().tolist() == np.einsum("ij,ik->jk", Y, Y).tolist()
    assert stats.label_counts.tolist() == Y.sum(axis=0).tolist()


def same_bits(one: Stats, other: Stats) -> bool:
    return one.n_rows == other.n_rows and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("feature_sums", "feature_gram", "cross")
    ) and one.label_gram.toarray().tolist() == other.label_gram.toarray().tolist()  # fmt: skip


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix, lambda A: A.astype(np.float32)])
def test_sums_are_those_of_the_rows(form):
    X, Y = some_rows(0, 30, whole=True)
    X[X < 0] = 0.0
    stats = Stats.from_batch(form(X), sparse.csr_array(Y), NAMES)
    assert_sums_of(stats, X, Y, rtol=0, atol=0)
    assert (stats.n_features, stats.n_labels) == (4, 3)
    assert repr(stats) == "Stats(30 rows, 4 features, 3 labels)"


def test_sparse_rows_are_summed_alike_however_full_they_are(monkeypatch):
    X, Y = some_rows(1, 50)
    monkeypatch.setattr(module, "_BLOCK_ROWS", 16)
    full = Stats.from_batch(sparse.csr_array(X), Y)
    monkeypatch.setattr(module, "_FULL_SHARE", 2.0)
    assert_sums_of(full, X, Y, atol=1e-12)
    np.testing.assert_allclose(Stats.from_batch(sparse.csr_array(X), Y).feature_gram, full.feature_gram, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 25), max_size=4), turn=st.randoms())
def test_parts_in_any_order_and_grouping_are_the_whole(seed, cuts, turn):
    for whole in (True, False):
        X, Y = some_rows(seed, 25, whole=whole)
        edges = [0, *sorted(cuts), 25]
        parts = [Stats.from_batch(X[i:j], Y[i:j], NAMES) for i, j in pairwise(edges)]
        turn.shuffle(parts)
        left, right = reduce(add, parts), reduce(lambda total, part: part + total, reversed(parts))
        if whole:  # whole numbers are added without rounding: no order can matter
            assert same_bits(left, right)
            assert_sums_of(left, X, Y, rtol=0, atol=0)
        assert_sums_of(left, X, Y, atol=1e-12)
        assert_sums_of(right, X, Y, atol=1e-12)


def test_labels_are_aligned_by_name():
    X, Y = some_rows(2, 20, whole=True)
    one = Stats.from_batch(X[:8], Y[:8], NAMES)
    order = [2, 0, 1]
    other = Stats.from_batch(X[8:], Y[8:, order], [NAMES[j] for j in order])
    assert_sums_of(one + other, X, Y, rtol=0, atol=0)
    assert (one + other).label_names == NAMES
    assert_sums_of(other + one, np.vstack((X[8:], X[:8])), np.vstack((Y[8:], Y[:8]))[:, order], rtol=0, atol=0)


def test_adding_changes_neither_side():
    X, Y = some_rows(3, 20)
    one, other = Stats.from_batch(X[:8], Y[:8]), Stats.from_batch(X[8:], Y[8:])
    before = one.feature_gram.copy(), other.cross.copy()
    assert (one + other).n_rows == 20
    assert np.array_equal(before[0], one.feature_gram)
    assert np.array_equal(before[1], other.cross)


def test_what_does_not_go_together_is_refused():
    X, Y = some_rows(4, 10)
    one = Stats.from_batch(X, Y, NAMES)
    for other, problem in [
        (Stats.from_batch(X, Y, ["a", "b", "d"]), "'c' and 1 more on one side only.*unknown there, not no"),
        (Stats.from_batch(X, Y[:, :2], NAMES[:2]), "'c' on one side only"),
        (Stats.from_batch(X, Y), "one has label names"),
        (Stats.from_batch(X[:, :3], Y, NAMES), "over 4 and over 3 features"),
        (Stats.from_batch(X, Y, NAMES, ["w", "x", "y", "z"]), "names and the other has not"),
    ]:
        with pytest.raises(DataError, match=problem):
            one + other
    with pytest.raises(DataError, match="over 3 and over 2 labels"):
        Stats.from_batch(X, Y) + Stats.from_batch(X, Y[:, :2])
    with pytest.raises(DataError, match="their order differs"):
        Stats.from_batch(X, Y, None, ["w", "x", "y", "z"]) + Stats.from_batch(X, Y, None, ["x", "w", "y", "z"])
    with pytest.raises(TypeError):
        one + 1


@pytest.mark.parametrize(
    ("X", "Y", "problem"),
    [
        ([[1.0, np.nan]], [[1]], "first in row 0"),
        (sparse.csr_array([[0.0], [np.inf]]), [[1], [0]], "first in row 1"),
        ([["x"]], [[1]], "cannot be read as numbers"),
        ([1.0], [[1]], "dimension"),
        ([[1.0]], [[2]], "0 and 1 only"),
        ([[1.0]], [[1], [0]], "they must agree"),
        ([[1e200]], [[1]], "too large"),
        (np.empty((3, 0)), [[1], [0], [0]], "at least one of each"),
        (sparse.csr_array((1, 20_000)), [[1]], "at most 16384"),
        (sparse.csr_array((1, 10_000)), sparse.csr_array((1, 100_000)), "times 100000 labels"),
    ],
)
def test_wrong_rows_are_refused(X, Y, problem):
    with pytest.raises(DataError, match=problem):
        Stats.from_batch(X, Y)


def test_names_are_counted():
    X, Y = some_rows(5, 10)
    with pytest.raises(DataError, match="2 label names for 3 labels"):
        Stats.from_batch(X, Y, ["a", "b"])
    with pytest.raises(DataError, match="1 feature names for 4 features"):
        Stats.from_batch(X, Y, NAMES, ["w"])


def test_parts_with_other_labels_remember_who_was_asked():
    X, Y = some_rows(5, 30)
    one, other = (
        Stats.from_batch(X[:10], Y[:10, :2], NAMES[:2]),
        Stats.from_batch(X[10:], Y[10:, ::-1][:, :2], ["c", "b"]),
    )
    both, third = one.joined(other), Stats.from_batch(X, Y, NAMES)
    assert both.label_names == ("a", "b", "c")
    assert both.asked_rows.tolist() == [10, 30, 20]
    assert (one + one).asked_rows.tolist() == [20, 20]
    known = np.ones((30, 3), dtype=bool)
    known[10:, 0], known[:10, 2] = False, False
    unknown = np.where(known, Y, 7)  # what was not asked may hold anything
    stored = sparse.csr_array(np.where(known, Y, np.nan))
    given = (unknown, stored, stored.tocoo())
    for again in (*(Stats.from_batch(X, form, NAMES, asked=known) for form in given), other.joined(one)):
        in_order = {tuple(np.take(again.label_names, labels)): part for labels, part in again.by_asked()}
        for labels, part in both.by_asked():
            twin = in_order[tuple(np.take(both.label_names, labels))]
            assert twin.n_rows == part.n_rows
            np.testing.assert_allclose(twin.feature_gram, part.feature_gram, atol=1e-12)
            np.testing.assert_allclose(twin.feature_sums, part.feature_sums, atol=1e-12)
            np.testing.assert_allclose(twin.cross, part.cross, atol=1e-12)
    for labels, part in both.by_asked():
        mine = known[:, labels[0]]
        assert_sums_of(part, X[mine], Y[mine][:, labels], atol=1e-12)
    more = both + third
    assert more.asked_rows.tolist() == [40, 60, 50]
    assert more.n_rows == 60
    assert Stats.from_batch(X, Y, NAMES, asked=np.ones_like(known)).asked is None
    with pytest.raises(DataError, match="known by their names"):
        one.joined(Stats.from_batch(X, Y))
    with pytest.raises(DataError, match="they must agree"):
        Stats.from_batch(X, Y, NAMES, asked=known[:5])


def test_too_many_groups_share_the_covariance_of_all_rows(monkeypatch):
    X, Y = some_rows(6, 40)
    known = np.random.default_rng(0).random((40, 3)) < 0.6
    monkeypatch.setattr("streamlabel.stats.sums.MAX_CROSS", 3 * 16)
    stats = Stats.from_batch(X[:20], Y[:20], NAMES, asked=known[:20])
    stats = stats + Stats.from_batch(X[20:], Y[20:], NAMES, asked=known[20:])
    assert stats.asked is not None
    assert stats.asked.grams is None
    covariance = np.cov(X.T, bias=True)
    for labels, part in stats.by_asked():
        mine = known[:, labels[0]]
        assert part.n_rows == mine.sum()
        np.testing.assert_allclose(part.feature_sums, X[mine].sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(part.cross, X[mine].T @ Y[mine][:, labels], atol=1e-12)
        mean = part.feature_sums / part.n_rows
        np.testing.assert_allclose(part.feature_gram / part.n_rows - np.outer(mean, mean), covariance, atol=1e-10)
