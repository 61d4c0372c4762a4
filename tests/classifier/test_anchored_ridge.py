from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.classifier.ridge import choose_beta, generalised_error, solve_anchored_ridge
from streamlabel.stats.spectral import FeatureFactor, RowFactor


@pytest.fixture(params=[(80, 12), (12, 80)], ids=["tall", "wide"])
def case(request, rng):
    n, d = request.param
    X = rng.standard_normal((n, d))
    y = (rng.random((n, 3)) < 0.3).astype(float)
    return X, y, rng.standard_normal((d, 3))


@pytest.mark.parametrize("kind", [FeatureFactor, RowFactor])
def test_the_gradient_vanishes(case, kind):
    X, y, anchor = case
    factor = kind(sparse.csr_array(X))
    w = solve_anchored_ridge(factor, factor.project(y), anchor, beta=0.7)
    Xc, yc = X - X.mean(axis=0), y - y.mean(axis=0)
    gradient = Xc.T @ (Xc @ w - yc) + 0.7 * (w - anchor)
    assert np.abs(gradient).max() <= 1e-9 * np.abs(Xc.T @ yc).max()


@pytest.mark.parametrize("kind", [FeatureFactor, RowFactor])
def test_limits(case, kind):
    X, y, anchor = case
    factor = kind(sparse.csr_array(X))
    z = factor.project(y)
    np.testing.assert_allclose(solve_anchored_ridge(factor, z, anchor, 1e12), anchor, atol=1e-6)
    alone = solve_anchored_ridge(factor, z, np.zeros_like(anchor), 0.7)
    np.testing.assert_array_equal(alone, factor.weights(z, 0.7))


def test_generalised_error_is_its_definition(case):
    X, y, _ = case
    n = len(X)
    factor = RowFactor(sparse.csr_array(X))
    Xc, yc = X - X.mean(axis=0), y - y.mean(axis=0)
    hat = Xc @ np.linalg.solve(Xc.T @ Xc + 2.0 * np.eye(X.shape[1]), Xc.T) + np.full((n, n), 1 / n)
    expected = n * np.square(yc - hat @ yc).sum(axis=0) / (n - np.trace(hat)) ** 2
    found = generalised_error(factor, factor.project(y), np.square(yc).sum(axis=0), 2.0)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_noise_asks_for_more_shrinkage_than_signal(rng):
    X = rng.standard_normal((200, 10))
    factor = FeatureFactor(sparse.csr_array(X))

    def chosen(target):
        target = target - target.mean()
        return choose_beta(factor, factor.project(target[:, None]), np.array([target @ target]))

    assert chosen(X[:, 0].copy()) < chosen(rng.standard_normal(200))
