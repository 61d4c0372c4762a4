"""Labels by iterations: against scikit-learn and the closed form with a metric, and rows that stand for many."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from streamlabel.classifier import iterations, objective
from streamlabel.classifier.iterations import IteratedRows, iterates
from streamlabel.classifier.ridge import RowRidge

EXACT = 1e-9


@pytest.fixture
def case(rng):
    X = sparse.random_array((400, 500), density=0.05, rng=rng, format="csr")
    answers = (X @ rng.standard_normal((500, 3)) + 0.3 * rng.standard_normal((400, 3)) > 0.8).astype(float)
    return X, answers


def test_the_metric_is_that_of_the_closed_form(case, rng):
    X, answers = case
    basis, anchor = rng.standard_normal((500, 7)), 0.1 * rng.standard_normal((500, 3))
    assert iterates(X)
    at = IteratedRows(X, basis, 0.3)
    U, intercept, _ = at.learn(answers, at.point(anchor), 2.0, "squared", EXACT)
    ridge = RowRidge(X, 2.0, basis=basis, share=0.3)
    expected = anchor + ridge.solve(answers - X @ anchor)
    np.testing.assert_allclose(at.weights(U), expected, atol=1e-8)
    np.testing.assert_allclose(intercept, answers.mean(axis=0) - ridge.mean @ expected, atol=1e-8)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_rows_that_are_left_out_have_not_been_learned_from(case, loss, monkeypatch):
    X, answers = case
    at = IteratedRows(X)
    monkeypatch.setattr(iterations, "_FOLD_TOLERANCE", EXACT)
    monkeypatch.setattr(iterations, "_FOLD_STEPS", 20)
    rows = np.arange(0, 400, 4)
    kept = np.setdiff1d(np.arange(400), rows)
    U, _, scores = at.learn(answers, np.zeros((500, 3)), 1.0, loss, EXACT, rows=rows)
    for j in range(3):
        other = Ridge(alpha=1.0, tol=1e-10) if loss == "squared" else LogisticRegression(C=1.0, tol=1e-8, max_iter=1000)
        other.fit(X, answers[:, j])
        np.testing.assert_allclose(U[:, j], other.coef_.ravel(), atol=2e-4)
        other.fit(X[kept], answers[kept, j])
        expected = X[rows] @ other.coef_.ravel() + np.ravel(other.intercept_)[0]
        np.testing.assert_allclose(scores[rows, j], expected, atol=5e-3)


def test_rows_that_stand_for_many_change_the_way_and_not_the_answer(case, monkeypatch):
    X, answers = case
    whole = IteratedRows(X).learn(answers, np.zeros((500, 3)), 0.3, "logistic", 1e-8)
    monkeypatch.setattr(objective, "_SOME", 50)
    some = IteratedRows(X).learn(answers, np.zeros((500, 3)), 0.3, "logistic", 1e-8)
    np.testing.assert_allclose(some[0], whole[0], atol=5e-4)
    assert not np.array_equal(some[0], whole[0])
