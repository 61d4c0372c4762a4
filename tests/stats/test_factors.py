"""Both factors against direct solves, scikit-learn's ridge and brute-force leave-one-out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from streamlabel.stats.spectral import FeatureFactor, RowFactor, make_factor


@pytest.fixture(params=[(60, 15), (15, 60), (30, 30)], ids=["tall", "wide", "square"])
def rows(request, rng):
    X = rng.standard_normal(request.param)
    X[:, -1] = X[:, 0]  # rank-deficient, as real data are
    Y = (rng.random((request.param[0], 4)) < 0.4).astype(float)
    Y[0], Y[1] = 0.0, 1.0
    return sparse.csr_array(X), Y


@pytest.mark.parametrize("kind", [FeatureFactor, RowFactor])
@pytest.mark.parametrize("beta", [1e-3, 1.0, 100.0])
def test_weights_are_ridge(rows, kind, beta):
    X, Y = rows
    factor = kind(X)
    reference = Ridge(alpha=beta, solver="cholesky").fit(X.toarray(), Y)
    for targets in (Y, sparse.csr_array(Y)):
        np.testing.assert_allclose(factor.weights(factor.project(targets), beta), reference.coef_.T, atol=1e-8)


@pytest.mark.parametrize("kind", [FeatureFactor, RowFactor])
def test_leverages_are_the_diagonal_of_the_hat_matrix(rows, kind):
    X, _ = rows
    centred = X.toarray() - X.toarray().mean(axis=0)
    hat = centred @ np.linalg.solve(centred.T @ centred + 2.0 * np.eye(X.shape[1]), centred.T) + 1 / X.shape[0]
    np.testing.assert_allclose(kind(X).leverages(2.0), np.diag(hat), atol=1e-9)


@pytest.mark.parametrize("kind", [FeatureFactor, RowFactor])
def test_scores_project_like_the_targets_they_are(rows, kind, rng):
    X, _ = rows
    V = rng.standard_normal((X.shape[1], 3))
    factor = kind(X)
    np.testing.assert_allclose(factor.project_scores(V), factor.project(X @ V), atol=1e-8)


def test_the_smaller_factor_is_made():
    assert isinstance(make_factor(sparse.csr_array(np.eye(4)[:, :2])), FeatureFactor)
    assert isinstance(make_factor(sparse.csr_array(np.eye(4)[:2])), RowFactor)


@pytest.mark.parametrize("kind", [FeatureFactor, RowFactor])
def test_constant_features_carry_nothing(kind):
    factor = kind(sparse.csr_array(np.ones((5, 3))))
    weights = factor.weights(factor.project(np.array([[0.0], [1.0], [0.0], [1.0], [1.0]])), 1.0)
    assert np.array_equal(weights, np.zeros((3, 1)))
