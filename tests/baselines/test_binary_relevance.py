"""Every label alone: as scikit-learn would learn it, and with the promises of a growing model."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from streamlabel import BinaryRelevance
from streamlabel.errors import DataError
from streamlabel.streaming.checks import LABEL_ARRIVAL_CHECKS

LOSSES = ("squared", "logistic", "squared_hinge")


@pytest.fixture
def case(rng):
    X = rng.standard_normal((150, 12))
    Y = (X @ rng.standard_normal((12, 9)) + rng.standard_normal((150, 9)) > 0.8).astype(int)
    return X, Y, rng.standard_normal((40, 12))


@parametrize_with_checks([BinaryRelevance(), BinaryRelevance(loss="logistic"), BinaryRelevance(loss="squared_hinge")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", LABEL_ARRIVAL_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("loss", ["squared", *(pytest.param(loss, marks=pytest.mark.slow) for loss in LOSSES[1:])])
def test_promises(check, loss):
    check(functools.partial(BinaryRelevance, loss=loss))


def test_squared_is_ridge_for_the_past_and_for_new_labels(case):
    X, Y, X_test = case
    clf = BinaryRelevance(beta=2.0).fit(X, Y[:, :5]).add_labels(X, Y[:, 5:])
    expected = Ridge(alpha=2.0).fit(X, Y).predict(X_test)
    np.testing.assert_allclose(clf.decision_function(X_test), expected, atol=1e-9)
    few = BinaryRelevance(beta=2.0).fit(X, Y[:, :5]).add_labels(X, Y[:, 5:], annotated=np.arange(60))
    expected = Ridge(alpha=2.0).fit(X[:60], Y[:60, 5:]).predict(X_test)
    np.testing.assert_allclose(few.decision_function(X_test)[:, 5:], expected, atol=1e-9)


def test_logistic_is_that_of_scikit_learn(case):
    X, Y, X_test = case
    clf = BinaryRelevance(loss="logistic", beta=2.0).fit(X, Y[:, :5]).add_labels(X, Y[:, 5:])
    scores = clf.decision_function(X_test)
    for j in range(5, 9):
        expected = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(X, Y[:, j]).decision_function(X_test)
        np.testing.assert_allclose(scores[:, j], expected, atol=1e-5)


def test_squared_hinge_is_that_of_scikit_learn(case):
    """Without an intercept: LinearSVC penalises it. Its loss is twice ours."""
    X, Y, X_test = case
    clf = BinaryRelevance(loss="squared_hinge", beta=2.0, fit_intercept=False).fit(X, Y[:, :5]).add_labels(X, Y[:, 5:])
    scores = clf.decision_function(X_test)
    for j in range(5, 9):
        svm = LinearSVC(C=0.25, dual=False, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, Y[:, j])
        np.testing.assert_allclose(scores[:, j], svm.decision_function(X_test), atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_other_labels_do_not_matter(case, loss):
    X, Y, X_test = case
    one = BinaryRelevance(loss=loss, beta=1.0).fit(X, Y[:, :5]).add_labels(X, Y[:, 8])
    two = BinaryRelevance(loss=loss, beta=1.0).fit(X, Y[:, 2:4]).add_labels(X, Y[:, 8])
    np.testing.assert_allclose(one.decision_function(X_test)[:, -1], two.decision_function(X_test)[:, -1], atol=1e-7)
    assert not one.structure_.nnz
    assert one.neighbours("label_5") == []
    assert not one.reports_[-1].anchored


def test_sparse_rows_are_the_same(case):
    X, Y, X_test = case
    dense = BinaryRelevance().fit(X, Y).decision_function(X_test)
    thin = BinaryRelevance().fit(sparse.csr_array(X), sparse.csr_array(Y)).decision_function(sparse.csr_array(X_test))
    np.testing.assert_allclose(thin, dense, atol=1e-8)


def test_parameters_are_its_own():
    assert sorted(BinaryRelevance().get_params()) == ["beta", "fit_intercept", "loss", "random_state", "threshold"]
    with pytest.raises(TypeError, match="lam"):
        BinaryRelevance(lam=0.1)
    with pytest.raises(DataError, match="no loss is called 'hinge'"):
        BinaryRelevance(loss="hinge").fit([[0.0], [1.0]], [[0], [1]])
