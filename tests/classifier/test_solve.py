"""The door: what is chosen and said, what is refused, and that stopping short is neither silent nor a lie."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.classifier import solve as choice
from streamlabel.classifier.objective import Design
from streamlabel.classifier.solve import SOLVERS, affords_factor, choose_squared_solver, solve
from streamlabel.errors import ConvergenceWarning, DataError, NotFoundError
from streamlabel.stats.spectral import make_factor


@pytest.fixture
def rows(rng):
    X = sparse.csr_array(rng.standard_normal((40, 6)))
    return X, (rng.random((40, 3)) < 0.4).astype(float), rng.standard_normal((6, 3))


def test_the_choice_follows_the_size(rows, rng):
    X, Y, _ = rows
    S2 = 0.1 * np.ones((3, 3))
    cases = [
        ((X, Y), {}, "cholesky", "one beta and no coupling"),
        ((X.T.tocsr(), np.eye(6)), {}, "dual", "fewer rows than features"),
        ((X, Y, None, S2), {}, "spectral", "coupled"),
        ((X, Y), {"factor": make_factor(X)}, "spectral", "a factor of the rows was given"),
        ((X, Y), {"loss": "logistic"}, "newton", "no closed form"),
    ]
    for given, options, solver, reason in cases:
        _, _, report = solve(*given, beta=1.0, **options)
        assert report.solver == solver
        assert report.note.startswith(f"{solver}: ")
        assert reason in report.note
        assert report.converged


def test_too_much_for_a_factor_is_iterated(rows, monkeypatch):
    X, Y, _ = rows
    exact, _, _ = solve(X, Y, beta=1.0)
    monkeypatch.setattr(choice, "FACTOR_LIMIT", 5)
    weights, _, report = solve(X, Y, beta=1.0)
    assert report.solver == "conjugate_gradient"
    assert "too many of both" in report.note
    np.testing.assert_allclose(weights, exact, atol=1e-6)


def test_one_label_on_large_sparse_rows_is_iterated_and_many_are_not():
    X = sparse.random_array((20_000, 5_000), density=0.002, format="csr", rng=np.random.default_rng(0))
    one, _ = choose_squared_solver(Design(X), 1, coupled=False, has_factor=False)
    many, _ = choose_squared_solver(Design(X), 2_000, coupled=False, has_factor=False)
    assert (one, many) == ("conjugate_gradient", "cholesky")


def test_newton_gets_a_factor_where_it_pays():
    small = Design(sparse.random_array((2000, 300), density=0.1, format="csr", rng=np.random.default_rng(0)))
    assert affords_factor(small, 100)
    assert not affords_factor(small, 1)  # one label does not pay for it
    thin = Design(sparse.random_array((9000, 5000), density=1e-4, format="csr", rng=np.random.default_rng(0)))
    assert not affords_factor(thin, 10**6)  # applying it costs far more than a product with X


@pytest.mark.parametrize(
    ("solver", "loss"), [("conjugate_gradient", "squared"), ("newton", "logistic"), ("lbfgs", "squared_hinge")]
)
def test_stopping_short_warns_and_is_reported(rows, solver, loss):
    X, Y, _ = rows
    with pytest.warns(ConvergenceWarning, match=f"{solver} stopped after 1 iterations"):
        weights, intercept, report = solve(X, Y, beta=1e-3, loss=loss, solver=solver, max_iter=1, tolerance=1e-10)
    assert not report.converged
    assert report.n_iter == 1
    assert report.violation > report.tolerance == 1e-10
    assert np.isfinite(weights).all()
    assert np.isfinite(intercept).all()


def test_the_reported_violation_is_the_true_residual(rows):
    X, Y, P = rows
    weights, _, report = solve(X, Y, P, beta=0.5, solver="conjugate_gradient", tolerance=1e-3)
    Xc = X.toarray() - X.toarray().mean(axis=0)
    right = Xc.T @ Y + 0.5 * P
    residual = np.linalg.norm(right - Xc.T @ Xc @ weights - 0.5 * weights) / np.linalg.norm(right)
    assert report.violation == pytest.approx(residual, rel=1e-6)
    assert 0 < report.n_iter <= 6


def test_a_direct_solve_that_is_not_accurate_says_so(rng):
    X = rng.standard_normal((30, 4)) * np.array([1e6, 1.0, 1.0, 1.0])
    with pytest.warns(ConvergenceWarning, match="dual stopped"):
        solve(X, rng.standard_normal((30, 2)), beta=1e-1, solver="dual")


def test_sparse_float32_and_dense_float64_are_one_problem(rows):
    X, Y, P = rows
    X = X.astype(np.float32)
    answers = [
        solve(X, sparse.csr_array(Y.astype(np.int8)), P, beta=1.0),
        solve(X.toarray().astype(np.float64), Y, P, beta=1.0),
        solve(sparse.coo_array(X), Y.astype(bool), P.astype(np.float32).astype(np.float64), beta=1.0),
    ]
    for weights, intercept, _ in answers:
        assert weights.dtype == np.float64
        np.testing.assert_allclose(weights, answers[0][0], atol=1e-6)
        np.testing.assert_allclose(intercept, answers[0][1], atol=1e-6)


def test_a_label_that_the_anchor_explains_costs_nothing(rows):
    X, _, P = rows
    for solver in SOLVERS:
        weights, intercept, report = solve(X, X @ P + 3.0, P, beta=1.0, solver=solver)
        np.testing.assert_allclose(weights, P, atol=1e-7)
        np.testing.assert_allclose(intercept, 3.0, atol=1e-7)
        assert report.converged


def test_what_cannot_be_solved_is_refused(rows):
    X, Y, P = rows
    wrong = [
        ((X, Y), {"beta": 0.0}, DataError, "beta is 0.0"),
        ((X, Y), {"beta": np.nan}, DataError, "beta is nan"),
        ((X, Y[:-1]), {}, DataError, "X has 40 rows and Y has 39"),
        ((X, Y[:, 0]), {}, DataError, "Y has 1 dimension"),
        ((X, Y[:, :0]), {}, DataError, "there must be a row, a feature and a label"),
        ((np.full((40, 2), np.nan), Y), {}, DataError, "X contains NaN"),
        ((X, Y, P.T), {}, DataError, "the anchor has shape"),
        ((X, Y, np.full_like(P, np.inf)), {}, DataError, "the anchor contains NaN"),
        ((X, Y, P, np.eye(2)), {}, DataError, "the coupling has shape"),
        ((X, Y, P, np.full((3, 3), np.nan)), {}, DataError, "the coupling contains NaN"),
        ((X, Y), {"factor": make_factor(X[:9])}, DataError, "the factor is of 9 rows and 6 features"),
        ((X, Y), {"loss": "hinge"}, NotFoundError, "no loss is called 'hinge'"),
        ((X, Y), {"solver": "svd"}, NotFoundError, "no solver is called 'svd'"),
        ((X, Y), {"solver": "dual", "loss": "logistic"}, DataError, "dual solves the squared loss only"),
        ((X, Y, P, np.full((3, 3), 0.1)), {"solver": "cholesky"}, DataError, "cholesky cannot couple labels"),
    ]
    for given, options, error, message in wrong:
        with pytest.raises(error, match=message):
            solve(*given, **{"beta": 1.0, **options})
