"""New labels that help each other: step 1 and step 2 against other libraries and limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg
from sklearn.linear_model import Lasso

from streamlabel import StreamingLabelClassifier
from streamlabel.classifier.penalty import make_penalty
from streamlabel.classifier.solve import solve, solve_coupled
from streamlabel.errors import DataError
from streamlabel.stats.spectral import make_factor

N_PAST, N_NEW = 8, 5


@pytest.fixture
def case(rng):
    X = rng.standard_normal((150, 14))
    latent = X @ rng.standard_normal((14, N_PAST + N_NEW)) + rng.standard_normal((150, N_PAST + N_NEW))
    latent[:, N_PAST:] += latent[:, [0, 1, 2, 3, 4]]
    latent[:, N_PAST + 1] += latent[:, N_PAST]  # a new label that another new label explains
    return X, (latent > 0.7).astype(int), rng.standard_normal((30, 14))


def grown(case, coupled=True, annotated=None, **options):
    X, Y, _ = case
    clf = StreamingLabelClassifier(**{"lam": 0.003, "metric": None, "beta": 2.0, **options})
    return clf.fit(X, Y[:, :N_PAST]).add_labels(X, Y[:, N_PAST:], annotated=annotated, coupled=coupled)


@pytest.mark.parametrize("rows", [None, np.arange(0, 150, 2)], ids=["all rows", "some rows"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_structure_and_classifiers_are_the_paper_s(case, rows, fit_intercept):
    X, Y, _ = case
    clf = grown(case, annotated=rows, fit_intercept=fit_intercept)
    where = np.arange(150) if rows is None else rows
    targets = Y[where] if fit_intercept else 2.0 * Y[where] - 1.0
    centred = targets - targets.mean(axis=0) if fit_intercept else targets
    S = clf.structure_.toarray()
    assert S.shape == (N_PAST + N_NEW,) * 2
    assert not S[:, :N_PAST].any()
    S1, S2 = S[:N_PAST, N_PAST:], S[N_PAST:, N_PAST:]
    assert S2.any()
    assert not S2.diagonal().any()
    for j in range(N_NEW):
        others = np.delete(np.arange(N_PAST + N_NEW), N_PAST + j)
        lasso = Lasso(alpha=0.003, fit_intercept=False, tol=1e-12, max_iter=100_000)
        lasso.fit(centred[:, others], centred[:, N_PAST + j])
        np.testing.assert_allclose(S[others, N_PAST + j], lasso.coef_, atol=1e-4)
    W, anchor = clf.coef_.T, clf.coef_.T[:, :N_PAST] @ S1
    factor = make_factor(X[where], centre=fit_intercept)
    ours = solve_coupled(factor, factor.project(targets[:, N_PAST:]), make_penalty(anchor, S2, 2.0))
    np.testing.assert_allclose(W[:, N_PAST:], ours, atol=1e-10)
    Xc = X[where] - X[where].mean(axis=0) if fit_intercept else X[where]
    M = np.eye(N_NEW) - S2
    scipy_s = linalg.solve_sylvester(Xc.T @ Xc, 2.0 * M @ M.T, Xc.T @ centred[:, N_PAST:] + 2.0 * anchor @ M.T)
    np.testing.assert_allclose(W[:, N_PAST:], scipy_s, atol=1e-8)
    assert all(report.coupled for report in clf.reports_[N_PAST:])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("rows", [None, np.arange(0, 150, 2)], ids=["all rows", "some rows"])
def test_an_enormous_penalty_uncouples(case, rows, loss):
    X_test = case[2]
    one, other = (grown(case, coupled, rows, lam=100.0, loss=loss) for coupled in (True, False))
    assert not one.structure_.nnz
    np.testing.assert_allclose(one.decision_function(X_test), other.decision_function(X_test), atol=1e-9)
    np.testing.assert_allclose(one.thresholds_, other.thresholds_, atol=1e-7 if loss == "squared" else 1e-5)
    np.testing.assert_allclose(one.predict_proba(X_test), other.predict_proba(X_test), atol=1e-6)


def test_old_scores_are_bit_identical_and_the_new_labels_are_neighbours(case):
    X, Y, X_test = case
    clf = StreamingLabelClassifier().fit(X, Y[:, :N_PAST])
    before = clf.decision_function(X_test)
    clf.add_labels(X, Y[:, N_PAST:], [f"new {j}" for j in range(N_NEW)], coupled=True)
    assert np.array_equal(before, clf.decision_function(X_test)[:, :N_PAST])
    assert "new 0" in [name for name, _ in clf.neighbours("new 1", k=4)]
    clf.add_labels(X, Y[:, 0] * (1 - Y[:, 1]), ["after"])  # later labels may use them like any other
    assert clf.structure_.shape == (N_PAST + N_NEW + 1,) * 2


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_order_of_the_batch_does_not_matter(case, loss):
    X, Y, X_test = case
    order = np.array([3, 0, 4, 1, 2])
    clf = StreamingLabelClassifier(loss=loss, beta=1.0).fit(X, Y[:, :N_PAST])
    clf.add_labels(X, Y[:, N_PAST + order], coupled=True)
    straight = grown(case, loss=loss, beta=1.0, lam="auto").decision_function(X_test)
    np.testing.assert_allclose(clf.decision_function(X_test)[:, N_PAST:], straight[:, N_PAST + order], atol=1e-6)


def test_other_losses_go_through_the_door_of_step_2(case):
    X, Y, _ = case
    clf = grown(case, loss="logistic", beta=1.0)
    S = clf.structure_.toarray()
    W = clf.coef_.T
    expected, intercept, _ = solve(
        X, Y[:, N_PAST:], W[:, :N_PAST] @ S[:N_PAST, N_PAST:], S[N_PAST:, N_PAST:],
        beta=1.0, loss="logistic", solver="lbfgs", tolerance=1e-8,
    )  # fmt: skip
    np.testing.assert_allclose(W[:, N_PAST:], expected, atol=1e-5)
    np.testing.assert_allclose(clf.intercept_[N_PAST:], intercept, atol=1e-5)


def test_labels_asked_on_different_rows_cannot_be_coupled(case):
    X, Y, X_test = case
    clf = StreamingLabelClassifier().fit(X, Y[:, :N_PAST])
    before = clf.decision_function(X_test)
    cells = np.ones((150, N_NEW), dtype=bool)
    cells[:20, 2] = False
    with pytest.raises(DataError, match="must have been asked on the same rows; these were asked on 2"):
        clf.add_labels(X, Y[:, N_PAST:], annotated=cells, coupled=True)
    with pytest.raises(DataError, match="coupled labels have none"):
        clf.set_params(metric=0.3).add_labels(X, Y[:, N_PAST:], coupled=True)
    assert np.array_equal(before, clf.decision_function(X_test))
    same = np.tile(np.arange(150)[:, None] % 2 == 0, (1, N_NEW))  # the same rows, said by cells
    clf.set_params(metric=None).add_labels(X, Y[:, N_PAST:], annotated=same, coupled=True)
    assert clf.structure_.shape == (N_PAST + N_NEW,) * 2


def test_without_a_code_there_is_nothing_to_couple(case):
    X_test = case[2]
    one, other = (grown(case, coupled, lam=None) for coupled in (True, False))
    assert np.array_equal(one.decision_function(X_test), other.decision_function(X_test))
    assert not one.reports_[-1].coupled
