"""What the direct solvers promise beyond the common suite: the coupled solve, the kept factor."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from streamlabel.classifier.objective import Design, column_blocks, relative_residual
from streamlabel.classifier.penalty import make_penalty
from streamlabel.classifier.ridge import FeatureRidge, RowRidge, solve_anchored_ridge
from streamlabel.classifier.solve import ridge_of_many_strengths, solve_coupled, solve_prepared
from streamlabel.stats.spectral import FeatureFactor, RowFactor


@pytest.fixture
def rows(rng):
    X = sparse.csr_array(rng.standard_normal((40, 8)) * (rng.random((40, 8)) < 0.5))
    Y = (rng.random((40, 3)) < 0.4).astype(float)
    return X, Y, rng.standard_normal((8, 3))


@pytest.mark.parametrize("kind", [FeatureFactor, RowFactor])
def test_without_coupling_it_is_the_anchored_ridge_to_the_bit(rows, kind):
    X, Y, P = rows
    factor = kind(X)
    expected = solve_anchored_ridge(factor, factor.project(Y), P, 0.7)
    for empty in (None, np.zeros((3, 3)), sparse.csc_array((3, 3))):
        np.testing.assert_array_equal(solve_coupled(factor, factor.project(Y), make_penalty(P, empty, 0.7)), expected)


@pytest.mark.parametrize("kind", [FeatureFactor, RowFactor])
def test_a_vanishing_coupling_approaches_the_anchored_ridge(rows, kind, rng):
    X, Y, P = rows
    factor = kind(X)
    S2 = 1e-10 * rng.standard_normal((3, 3))
    found = solve_coupled(factor, factor.project(Y), make_penalty(P, S2, 0.7))
    np.testing.assert_allclose(found, solve_anchored_ridge(factor, factor.project(Y), P, 0.7), atol=1e-8)


@pytest.mark.parametrize("kind", [FeatureFactor, RowFactor])
def test_every_column_has_its_own_strength(rows, kind):
    X, Y, _ = rows
    betas = np.array([1e-3, 1.0, 1e4])
    factor = kind(X)
    found = ridge_of_many_strengths(factor, factor.project(Y), betas)
    for j, beta in enumerate(betas):
        expected = Ridge(alpha=beta, solver="svd").fit(X.toarray(), Y[:, j]).coef_
        np.testing.assert_allclose(found[:, j], expected, atol=1e-10)


@pytest.mark.parametrize("kind", [FeatureRidge, RowRidge])
def test_a_factor_that_is_kept_solves_any_targets(rows, kind):
    X, Y, P = rows
    kept = kind(X, 2.0)
    for columns in ([0], [1, 2]):
        weights, intercept = solve_prepared(kept, sparse.csr_array(Y[:, columns]))
        reference = Ridge(alpha=2.0, solver="svd").fit(X.toarray(), Y[:, columns])
        np.testing.assert_allclose(weights, reference.coef_.T.reshape(weights.shape), atol=1e-10)
        np.testing.assert_allclose(intercept, np.atleast_1d(reference.intercept_), atol=1e-10)
    shifted, _ = solve_prepared(kept, Y + X @ P, P)  # what the anchor explains moves the answer by the anchor
    np.testing.assert_allclose(shifted, P + solve_prepared(kept, Y)[0], atol=1e-10)


@pytest.mark.parametrize("kind", [FeatureRidge, RowRidge])
def test_one_annotated_row_moves_nothing_but_the_intercept(rows, kind):
    X, Y, P = rows
    weights, intercept = solve_prepared(kind(X[[4]], 1.0), Y[[4]], P)
    np.testing.assert_allclose(weights, P, atol=1e-12)
    np.testing.assert_allclose(X[[4]] @ weights + intercept, Y[[4]], atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_design_is_centred_without_centring(rows, fit_intercept, rng):
    X, Y, _ = rows
    Xc = X.toarray() - (X.toarray().mean(axis=0) if fit_intercept else 0.0)
    Z = rng.standard_normal((8, 2))
    for form in (X, X.toarray()):
        design = Design(form, fit_intercept)
        np.testing.assert_allclose(design.normal_product(Z), Xc.T @ Xc @ Z, atol=1e-12)
        np.testing.assert_allclose(design.gram_diagonal(), np.diag(Xc.T @ Xc), atol=1e-12)
        for targets in (Y, sparse.csr_array(Y)):
            np.testing.assert_allclose(design.cross(targets), Xc.T @ Y, atol=1e-12)


def test_the_residual_is_relative_to_the_right_hand_side(rows, rng):
    X, Y, P = rows
    S2 = 0.2 * rng.standard_normal((3, 3))
    penalty = make_penalty(P, S2, 1.5)
    V, M = rng.standard_normal(P.shape), np.eye(3) - S2
    Xc = X.toarray() - X.toarray().mean(axis=0)
    right = Xc.T @ Y + 1.5 * P @ M.T
    expected = np.linalg.norm(right - Xc.T @ Xc @ V - 1.5 * V @ M @ M.T) / np.linalg.norm(right)
    assert relative_residual(Design(X), sparse.csr_array(Y), penalty, V) == pytest.approx(expected)


def test_blocks_cover_every_column_once():
    for n_columns, n_rows in ((1, 10), (5000, 100_000), (983, 12_920), (10, 10**9)):
        covered = np.concatenate([np.arange(n_columns)[block] for block in column_blocks(n_columns, n_rows)])
        np.testing.assert_array_equal(covered, np.arange(n_columns))
