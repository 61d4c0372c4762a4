"""Logistic and squared hinge: against scikit-learn, against each other, coupled, and at the edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from streamlabel.classifier import conjugate_gradient
from streamlabel.classifier import newton as truncated_newton
from streamlabel.classifier import solve as minimise
from streamlabel.classifier.losses import get_loss
from streamlabel.classifier.objective import AnchoredObjective, Design, SingleRows, suits_single
from streamlabel.classifier.penalty import make_penalty
from streamlabel.classifier.solve import solve
from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.errors import DataError
from streamlabel.metrics.ranking import precision_at_k
from streamlabel.stats.spectral import make_factor

LOSSES = ["logistic", "squared_hinge"]
SOLVERS = ["newton", "lbfgs"]


@pytest.fixture(params=[(150, 10), (15, 40)], ids=["tall", "wide"])
def rows(request, rng):
    n, d = request.param
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6) + 0.2
    Y = (X @ rng.standard_normal((d, 3)) + rng.standard_normal((n, 3)) > [0.0, 1.0, 2.0]).astype(float)
    Y[0], Y[1] = 0.0, 1.0
    return X, Y


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_is_scikit_learns(rows, solver, fit_intercept):
    X, Y = rows
    weights, intercept, report = solve(
        sparse.csr_array(X), sparse.csr_array(Y), beta=0.5, loss="logistic", solver=solver,
        fit_intercept=fit_intercept, tolerance=1e-7,
    )  # fmt: skip
    assert report.converged
    for j in range(3):
        reference = LogisticRegression(C=2.0, fit_intercept=fit_intercept, tol=1e-12, max_iter=10_000)
        reference.set_params(solver="newton-cholesky").fit(X, Y[:, j])
        np.testing.assert_allclose(weights[:, j], reference.coef_[0], atol=1e-5)
        np.testing.assert_allclose(intercept[j], reference.intercept_[0] if fit_intercept else 0.0, atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_squared_hinge_is_scikit_learns(rows, solver):
    """LinearSVC minimises ||w||^2/2 + C sum max(0, 1 - y f)^2, so C = 1/(2 beta); it penalises its intercept, so here
    the constant is a feature for both."""
    X, Y = rows
    X = np.column_stack([X, np.ones(len(X))])
    weights, _, report = solve(X, Y, beta=0.5, loss="squared_hinge", solver=solver, fit_intercept=False, tolerance=1e-7)
    assert report.converged
    for j in range(3):
        reference = LinearSVC(C=1.0, dual=False, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, Y[:, j])
        np.testing.assert_allclose(weights[:, j], reference.coef_[0], atol=1e-5)


def test_a_free_intercept_is_one_whose_penalty_vanishes(rows):
    X, Y = rows
    weights, intercept, _ = solve(X, Y, beta=0.5, loss="squared_hinge", tolerance=1e-9)
    for j in range(3):
        reference = LinearSVC(C=1.0, dual=False, intercept_scaling=1e3, tol=1e-12, max_iter=100_000).fit(X, Y[:, j])
        np.testing.assert_allclose(weights[:, j], reference.coef_[0], atol=1e-4)
        np.testing.assert_allclose(intercept[j], reference.intercept_[0], atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("coupled", [True, False])
def test_the_gradient_vanishes_at_the_answer(rows, loss, fit_intercept, coupled, rng):
    X, Y = rows
    P = rng.standard_normal((X.shape[1], 3))
    S2 = 0.3 * rng.standard_normal((3, 3)) if coupled else None
    weights, intercept, report = solve(X, Y, P, S2, beta=1.5, loss=loss, fit_intercept=fit_intercept, tolerance=1e-9)
    kind = get_loss(loss)
    objective = AnchoredObjective(X, kind.encode(Y), kind, make_penalty(P, S2, 1.5), fit_intercept)
    slope, slope_b = objective.gradient(weights, intercept)
    scale = objective.gradient_scale()
    assert report.converged
    assert (np.linalg.norm(slope, axis=0) <= 2e-9 * scale).all()
    assert (np.abs(slope_b) <= 2e-9 * scale).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_newton_and_lbfgs_agree_on_coupled_labels(rows, loss, rng):
    X, Y = rows
    P, S2 = rng.standard_normal((X.shape[1], 3)), 0.3 * rng.standard_normal((3, 3))
    newton, b, _ = solve(X, Y, P, S2, beta=1.5, loss=loss, solver="newton", tolerance=1e-8)
    lbfgs, b_lbfgs, _ = solve(X, Y, P, S2, beta=1.5, loss=loss, solver="lbfgs", tolerance=1e-6)
    np.testing.assert_allclose(newton, lbfgs, atol=1e-4)
    np.testing.assert_allclose(b, b_lbfgs, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_strong_pull_gives_the_anchor(rows, loss, rng):
    X, Y = rows
    P = rng.standard_normal((X.shape[1], 3))
    weights, _, _ = solve(X, Y, P, beta=1e8, loss=loss)
    np.testing.assert_allclose(weights, P, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_given_factor_changes_the_way_not_the_answer(rows, loss):
    X, Y = rows
    X = sparse.csr_array(X)
    plain, _, _ = solve(X, Y, beta=0.1, loss=loss, tolerance=1e-10)
    helped, _, _ = solve(X, Y, beta=0.1, loss=loss, tolerance=1e-10, factor=make_factor(X))
    np.testing.assert_allclose(plain, helped, atol=1e-8)


@pytest.mark.parametrize("has_factor", [False, True])
def test_labels_that_are_done_cost_nothing_more_and_change_nothing(rng, monkeypatch, has_factor):
    """Labels of very different frequency, against all of them carried to the end.

    On sparse rows the bits are the same, unless a factor is applied, whose products BLAS rounds by their width.
    """
    X = sparse.random_array((400, 60), density=0.1, rng=rng, format="csr")
    Y = rng.random((400, 12)) < np.logspace(-2.3, -0.4, 12)
    widths: list[int] = []
    real = AnchoredObjective.gradient_from

    def counted(self, V, first):
        widths.append(V.shape[1])
        return real(self, V, first)

    monkeypatch.setattr(minimise, "affords_factor", lambda design, n_labels: has_factor)
    monkeypatch.setattr(AnchoredObjective, "gradient_from", counted)
    dropped, offsets, report = solve(X, Y, beta=0.05, loss="logistic", tolerance=1e-9)
    assert min(widths) < 12
    widths.clear()
    for module in (conjugate_gradient, truncated_newton):
        monkeypatch.setattr(module, "still_worked", lambda going: None)
    carried, same_offsets, same = solve(X, Y, beta=0.05, loss="logistic", tolerance=1e-9)
    assert set(widths) == {12}
    if has_factor:
        np.testing.assert_allclose(dropped, carried, atol=1e-7)
        np.testing.assert_allclose(offsets, same_offsets, atol=1e-7)
        return
    np.testing.assert_array_equal(dropped, carried)
    np.testing.assert_array_equal(offsets, same_offsets)
    assert (report.n_iter, report.note) == (same.n_iter, same.note)


def test_many_labels_are_solved_in_blocks(rng):
    X = sparse.csr_array(rng.standard_normal((2000, 6)))
    Y = (rng.random((2000, 900)) < rng.uniform(0.05, 0.5, 900)).astype(float)
    together, _, report = solve(X, Y, beta=1.0, loss="logistic", tolerance=1e-8)
    assert "2 block(s)" in report.note
    some = [0, 500, 899]
    np.testing.assert_allclose(
        solve(X, Y[:, some], beta=1.0, loss="logistic", tolerance=1e-8)[0], together[:, some], atol=1e-8
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_labels_of_one_kind_and_separable_ones_end(loss, solver, rng):
    X = rng.standard_normal((30, 3))
    Y = np.column_stack([np.ones(30), np.zeros(30), X[:, 0] > 0]).astype(float)
    weights, intercept, report = solve(X, Y, beta=1e-3, loss=loss, solver=solver)
    assert report.converged
    scores = X @ weights + intercept
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores > 0, Y > 0)


@pytest.mark.slow
@pytest.mark.data
def test_delicious_reaches_the_published_precision(data_root):
    train, test = load_catalogue_set("delicious"), load_catalogue_set("delicious", "test")
    X, X_test = (sparse.csr_array(normalize(part.X.astype(np.float64))) for part in (train, test))
    weights, intercept, report = solve(X, train.Y, beta=1.0, loss="logistic")
    assert report.converged
    scores = X_test @ weights + intercept
    found = [100 * precision_at_k(test.Y, scores, k) for k in (1, 3, 5)]
    np.testing.assert_allclose(found, [67.5, 61.0, 56.3], atol=0.25)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_start_changes_the_way_not_the_answer(rows, loss, solver, fit_intercept, rng):
    X, Y = rows
    given = {"beta": 0.5, "loss": loss, "solver": solver, "fit_intercept": fit_intercept, "tolerance": 1e-6}
    weights, intercept, report = solve(X, Y, **given)
    for scale in (1e-3, 1.0, 100.0):  # near the answer, beside it, and so far off that the anchor is the better start
        start = weights + scale * rng.standard_normal(weights.shape), intercept + scale
        found, offset, again = solve(X, Y, **given, start=start)
        assert again.converged
        np.testing.assert_allclose(found, weights, atol=1e-4)
        np.testing.assert_allclose(offset, intercept, atol=1e-4)
        if scale == 1e-3:
            assert again.n_iter < report.n_iter


def test_a_start_shortens_coupled_labels_and_ridge_by_iterations(rows, rng):
    X, Y = rows
    S2 = 0.3 * rng.standard_normal((3, 3))
    for given in ({"loss": "logistic"}, {"loss": "squared", "solver": "conjugate_gradient"}):
        weights, intercept, report = solve(X, Y, None, S2, beta=0.5, tolerance=1e-7, **given)
        again, _, short = solve(X, Y, None, S2, beta=0.5, tolerance=1e-7, **given, start=(weights, intercept))
        np.testing.assert_allclose(again, weights, atol=1e-6)
        assert short.n_iter < report.n_iter
        with pytest.raises(DataError, match="the start has shape"):
            solve(X, Y, None, S2, beta=0.5, **given, start=(weights[:, :2], intercept))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_single_precision_and_a_sketch_change_the_way_not_the_answer(loss, rng):
    topics = rng.standard_normal((400, 20)) @ rng.standard_normal((20, 300))
    X = sparse.csr_array((topics + rng.standard_normal((400, 300))) * (rng.random((400, 300)) < 0.5) / 10.0)
    answers = (X @ rng.standard_normal((300, 6)) + 0.1 * rng.standard_normal((400, 6)) > 0.2).astype(float)
    squares, steps, kind = Design(X).gram_diagonal(), [], get_loss(loss)
    objective = AnchoredObjective(X, kind.encode(answers), kind, make_penalty(np.zeros((300, 6)), None, 3.0))
    exact = truncated_newton.minimise_newton(
        objective, truncated_newton.diagonal_inverse(squares), tolerance=1e-9, max_iter=100
    )  # fmt: skip
    single = SingleRows(X)
    for inverse in (
        truncated_newton.diagonal_inverse(squares), truncated_newton.sketched_inverse(single, X.mean(axis=0), 64)
    ):  # fmt: skip
        rough = truncated_newton.minimise_newton(replace(objective, X=single), inverse, tolerance=1e-4, max_iter=100)
        np.testing.assert_allclose(rough.weights, exact.weights, atol=2e-3 * np.abs(exact.weights).max())
        np.testing.assert_allclose(rough.intercept, exact.intercept, atol=1e-3)
        steps.append(rough.n_inner)
    if loss == "squared":
        assert steps[1] < 0.7 * steps[0]


def test_products_in_single_precision_are_those_of_the_rows(rng):
    for X in (rng.standard_normal((30, 20)), sparse.random_array((30, 20), density=0.3, format="csr", rng=rng)):
        rows, V, G = SingleRows(X), rng.standard_normal((20, 3)), rng.standard_normal((30, 3))
        assert (rows @ V).dtype == np.float64
        assert (rows.T @ G.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(rows @ V, X @ V, atol=1e-5)
        np.testing.assert_allclose(rows.T @ G, X.T @ G, atol=1e-5)
        np.testing.assert_allclose(rows.T.T @ V, X @ V, atol=1e-5)
        assert rows.T.shape == (20, 30)


def test_rows_that_would_lose_their_digits_are_not_for_single_precision(rng):
    X, shift = rng.standard_normal((400, 60)), np.zeros(60)
    shift[0] = 1e5
    for rows, suited in (
        (X, True), (sparse.csr_array(np.maximum(X, 0.0)), True), (X + 3.0, True), (X + 30.0, False), (X + shift, False),
        (X * np.where(shift, 1000.0, 1.0), False), (X * 1e-22, False), (X * 1e20, False),
        (np.full((400, 60), 0.1), False), (np.zeros((400, 60)), False),
    ):  # fmt: skip
        design = Design(rows)
        assert suits_single(design, design.gram_diagonal()) == suited
