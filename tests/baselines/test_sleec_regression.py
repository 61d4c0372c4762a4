"""Ridge against scikit-learn, ADMM against closed forms and the lasso."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Lasso, Ridge

from streamlabel.baselines import sleec_embedding as sleec_regression
from streamlabel.baselines.sleec_embedding import regress, soft_threshold
from streamlabel.errors import ConvergenceWarning, DataError


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_without_l1_it_is_ridge(rng, shape, form):
    X, Z = rng.standard_normal(shape), rng.standard_normal((shape[0], 3))
    weights, report = regress(form(X), Z, 0.7)
    np.testing.assert_allclose(weights, Ridge(alpha=0.7, fit_intercept=False).fit(X, Z).coef_.T, atol=1e-9)
    assert report.converged


def test_on_separate_rows_the_l1_solution_is_a_soft_threshold(rng):
    Z = rng.standard_normal((12, 3))
    weights, _ = regress(sparse.csr_array(np.eye(12)), Z, 0.5, 0.4, tolerance=1e-10)
    np.testing.assert_allclose(weights, soft_threshold(Z, 0.4) / 1.5, atol=1e-8)


def test_an_invertible_matrix_gives_a_lasso_in_the_embeddings(rng):
    """With W = X V the problem is a lasso in W, on the rows of the identity and of sqrt(beta) X^-1."""
    X, Z, beta, l1 = rng.standard_normal((9, 9)) + 3.0 * np.eye(9), rng.standard_normal((9, 2)), 0.8, 0.3
    weights, _ = regress(X, Z, beta, l1, tolerance=1e-10)
    design = np.vstack((np.eye(9), np.sqrt(beta) * np.linalg.inv(X)))
    lasso = Lasso(alpha=l1 / 18, fit_intercept=False, tol=1e-12, max_iter=100_000)
    expected = lasso.fit(design, np.vstack((Z, np.zeros((9, 2))))).coef_.T
    assert (expected == 0.0).any()
    np.testing.assert_allclose(X @ weights, expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(40, 7), (15, 30)])
def test_no_step_lowers_the_objective_with_l1(rng, shape):
    X, Z = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))

    def objective(V):
        scores = X @ V
        return 0.5 * np.square(Z - scores).sum() + 0.25 * np.square(V).sum() + 0.2 * np.abs(scores).sum()

    weights, report = regress(X, Z, 0.5, 0.2, tolerance=1e-7)
    best = objective(weights)
    assert report.solver == "admm"
    assert best < objective(regress(X, Z, 0.5)[0])
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(50):
            assert objective(weights + size * rng.standard_normal(weights.shape)) > best


def test_stopping_short_is_told(rng, monkeypatch):
    monkeypatch.setattr(sleec_regression, "_MOST_ROUNDS", 2)
    X = rng.standard_normal((20, 5))
    with pytest.warns(ConvergenceWarning, match="admm stopped after 2 rounds"):
        report = regress(X, rng.standard_normal((20, 2)), 0.1, 0.5, tolerance=1e-9)[1]
    assert not report.converged
    assert report.n_iter == 2


def test_a_hopeless_beta_is_refused():
    with pytest.raises(DataError, match="beta = 1e-30 is too small"):
        regress(np.ones((6, 3)) * 1e3, np.ones((6, 1)), 1e-30)
