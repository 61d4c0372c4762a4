"""Theorem 2 against Kronecker solves and random problems, and what happens to it where an assumption is left out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.theory.streaming_distance import (
    distance_bound,
    solve_streamed,
    solve_together,
    streaming_gradient,
)

BETAS = (1e-6, 1e-2, 1.0, 30.0, 1e6)


def problem(seed: int, n: int, d: int, m: int, n_past: int, kind: str = "random"):
    """X (n, d), Y (n, m) of -1/+1, and a structure in which labels never use later ones, the past ones each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.sign(X @ rng.normal(size=(d, m)) + rng.normal(size=(n, m)))
    S = rng.normal(size=(m, m)) * (rng.random((m, m)) < 0.5) * 0.5
    S[:n_past, :n_past] = rng.normal(size=(n_past, n_past)) * 0.2
    S[n_past:] = np.triu(S, 1)[n_past:]
    np.fill_diagonal(S, 0.0)
    if kind == "no structure":
        S[:] = 0.0
    elif kind == "duplicate labels" and m > 1:
        Y[:, -1] = Y[:, 0]
        S[:, -1] = 0.0
        S[0, -1] = 1.0
    elif kind == "rank deficient":
        X[:, -1] = X[:, 0]
    elif kind == "wide":
        X = X[: max(1, d // 2)]
        Y = Y[: len(X)]
    elif kind == "past labels that copy each other" and n_past > 1:
        S[:n_past, :n_past] = 0.0
        S[0, 1] = S[1, 0] = 1.0  # I - S is singular
    return X, Y, S


KINDS = ("random", "no structure", "duplicate labels", "rank deficient", "wide", "past labels that copy each other")


def by_kronecker(X, Y, S, beta):
    """vec(Z) from ``(I (x) X'X + beta MM' (x) I) vec Z = vec X'Y``: brute force."""
    M = np.eye(len(S)) - S
    d = X.shape[1]
    system = np.kron(np.eye(len(S)), X.T @ X) + beta * np.kron(M @ M.T, np.eye(d))
    return np.linalg.solve(system, (X.T @ Y).T.ravel()).reshape(len(S), d).T


def objective(X, Y, S, beta, Z):
    return 0.5 * np.square(Y - X @ Z).sum() + 0.5 * beta * np.square(Z - Z @ S).sum()


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("seed", range(3))
def test_the_whole_problem_is_solved(seed, beta):
    X, Y, S = problem(seed, 30, 5, 6, 3)
    Z = solve_together(X, Y, S, beta)
    np.testing.assert_allclose(Z, by_kronecker(X, Y, S, beta), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(solve_together(sparse.csr_array(X), Y, S, beta), Z, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_no_small_step_lowers_the_objective(kind):
    X, Y, S = problem(1, 30, 5, 6, 3, kind)
    Z = solve_together(X, Y, S, 0.7)
    least, rng = objective(X, Y, S, 0.7, Z), np.random.default_rng(0)
    for size in (1e-3, 1e-1, 10.0):
        assert objective(X, Y, S, 0.7, Z + size * rng.normal(size=Z.shape)) >= least - 1e-9


def test_a_stream_is_a_sequence_of_anchored_ridges():
    X, Y, S = problem(4, 40, 5, 7, 4)
    W = solve_streamed(X, Y, S, 4, 2.0)
    np.testing.assert_allclose(W[:, :4], by_kronecker(X, Y[:, :4], S[:4, :4], 2.0))
    for j in range(4, 7):
        anchor = W[:, :j] @ S[:j, j]
        expected = np.linalg.solve(X.T @ X + 2.0 * np.eye(5), X.T @ Y[:, j] + 2.0 * anchor)
        np.testing.assert_allclose(W[:, j], expected)
    assert np.array_equal(solve_streamed(X, Y, np.triu(S), 0, 2.0)[:, 0], solve_streamed(X, Y, S, 0, 2.0)[:, 0])


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 25),
    d=st.integers(1, 8),
    n_past=st.integers(0, 6),
    n_new=st.integers(1, 5),
    exponent=st.floats(-6, 6),
)
def test_the_inequality_holds(seed, kind, n, d, n_past, n_new, exponent):
    beta = 10.0**exponent
    X, Y, S = problem(seed, n, d, n_past + n_new, n_past, kind)
    whole, stream = solve_together(X, Y, S, beta), solve_streamed(X, Y, S, n_past, beta)
    bound = distance_bound(X, Y, S, beta, stream)
    distance, rounding = linalg.norm(whole - stream), 1e-7 * (1.0 + linalg.norm(whole) + linalg.norm(stream))
    assert distance <= bound.tight * (1 + 1e-7) + rounding
    assert bound.tight <= bound.printed * (0.5 + 1e-9)
    assert bound.loss == pytest.approx(0.5 * np.square(Y - X @ stream).sum())
    scale = beta * bound.structure_energy * bound.weights_norm + np.abs(X.T @ Y).sum()
    np.testing.assert_allclose(
        streaming_gradient(stream, S, n_past, beta), gradient(X, Y, S, beta, stream), atol=1e-8 * scale
    )


def gradient(X, Y, S, beta, Z):
    M = np.eye(len(S)) - S
    return X.T @ (Y - X @ Z) - beta * Z @ M @ M.T


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**20), kind=st.sampled_from(KINDS), exponent=st.floats(-3, 3))
def test_it_holds_for_any_classifiers_whatever(seed, kind, exponent):
    """The theorem never uses that its classifiers come from a stream."""
    beta = 10.0**exponent
    X, Y, S = problem(seed, 15, 4, 6, 3, kind)
    anything = np.random.default_rng(seed).normal(size=(4, 6)) * 3.0
    bound = distance_bound(X, Y, S, beta, anything)
    distance = linalg.norm(solve_together(X, Y, S, beta) - anything)
    assert distance <= bound.tight * (1 + 1e-9) + 1e-9
    assert distance <= bound.printed


def test_without_a_structure_stream_and_whole_are_the_same():
    X, Y, S = problem(0, 30, 5, 6, 3, "no structure")
    stream = solve_streamed(X, Y, S, 3, 1.5)
    np.testing.assert_allclose(stream, solve_together(X, Y, S, 1.5), atol=1e-12)
    bound = distance_bound(X, Y, S, 1.5, stream)
    assert bound.tight < 1e-12
    assert bound.printed > 1.0
    assert not streaming_gradient(stream, S, 3, 1.5).any()


def test_a_copy_of_a_label_lands_on_its_twin_and_pulls_it_nowhere():
    """``y = y_0`` with code ``e_0`` after ridge of strength beta: w differs from w_0, by half a step of a ridge."""
    X, Y, S = problem(3, 30, 5, 2, 1, "duplicate labels")
    stream = solve_streamed(X, Y, S, 1, 2.0)
    twin = np.linalg.solve(X.T @ X + 2.0 * np.eye(5), X.T @ Y[:, 0])
    np.testing.assert_allclose(stream[:, 0], twin)
    np.testing.assert_allclose(stream[:, 1], np.linalg.solve(X.T @ X + 2.0 * np.eye(5), X.T @ Y[:, 0] + 2.0 * twin))


def test_the_smallest_of_the_nonzero_singular_values_is_not_enough():
    """The paper asks for X of full rank in its features. With fewer rows than features `svdvals` has no 0 in it: used
    as sigma_min(X), it makes a bound that is false."""
    X = np.array([[1.0, 0.0]])
    Y, S, beta = np.array([[1.0]]), np.zeros((1, 1)), 0.01
    Z = np.array([[1.0 / 1.01], [1.0]])  # perfect where there are rows, far off where there are none
    whole = solve_together(X, Y, S, beta)
    distance = linalg.norm(whole - Z)
    bound = distance_bound(X, Y, S, beta, Z)
    assert bound.curvature == pytest.approx(0.01)
    assert distance <= bound.printed
    nonzero = linalg.svdvals(X)[-1] ** 2 + beta
    assert distance > bound.printed * bound.curvature / nonzero


def test_nothing_is_claimed_where_the_whole_problem_has_many_solutions():
    X, Y, S = problem(0, 20, 4, 5, 3, "past labels that copy each other")
    X[:, -1] = X[:, 0]
    bound = distance_bound(X, Y, S, 1.0, np.zeros((4, 5)))
    assert bound.curvature == 0.0
    assert np.isinf(bound.printed)
    assert np.isinf(bound.tight)


@pytest.mark.parametrize("centred", [False, True])
def test_a_fitted_model_is_such_a_stream(centred):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    labels = (X @ rng.normal(size=(6, 8)) + 0.5 * rng.normal(size=(80, 8)) > 0.5).astype(int)
    model = StreamingLabelClassifier(beta=2.0, lam=0.01, metric=None, fit_intercept=centred).fit(X, labels[:, :5])
    for j in range(5, 8):
        model.add_labels(X, labels[:, [j]])
    Y = labels - labels.mean(axis=0) if centred else 2.0 * labels - 1.0
    rows = X - X.mean(axis=0) if centred else X
    W, S = model.coef_.T, model.structure_
    assert S.nnz
    np.testing.assert_allclose(W, solve_streamed(rows, Y, S, 5, 2.0), atol=1e-8)
    bound = distance_bound(rows, Y, S, 2.0, W)
    distance = linalg.norm(solve_together(rows, Y, S, 2.0) - W)
    assert 0.0 < distance <= bound.tight < bound.printed
    np.testing.assert_allclose(linalg.norm(streaming_gradient(W, S, 5, 2.0)), bound.gradient_norm, rtol=1e-6)
