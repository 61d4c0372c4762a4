"""Labels of fit, learned again with rows that came later: as a fit on all rows, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from streamlabel import StreamingLabelClassifier
from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.streaming import later_rows
from streamlabel.streaming.other_losses import row_unit, solve_loss

NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture
def case(rng):
    X = rng.standard_normal((260, 15))
    Y = (X @ rng.standard_normal((15, 6)) + rng.standard_normal((260, 6)) > 0.8).astype(int)
    return X, Y


def fitted(case, **parameters):
    X, Y = case
    return StreamingLabelClassifier(**parameters).fit(X[:160], Y[:160, :5], label_names=NAMES)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_an_update_is_ridge_on_all_rows(case, form):
    X, Y = case
    clf = StreamingLabelClassifier().fit(form(X[:160]), Y[:160, :5], label_names=NAMES)
    before = clf.decision_function(form(X))
    clf.update(form(X[160:]), Y[160:, [1, 3]], ["b", "d"])
    beta = clf.state_.strength * row_unit(X, True)
    assert [report.beta for report in clf.reports_[1:4:2]] == pytest.approx([beta, beta])
    fresh = StreamingLabelClassifier(beta=beta).fit(form(X), Y[:, :5], label_names=NAMES)
    theirs = Ridge(alpha=beta).fit(X, Y[:, [1, 3]])
    for coef, intercept in ((fresh.coef_[[1, 3]], fresh.intercept_[[1, 3]]), (theirs.coef_, theirs.intercept_)):
        np.testing.assert_allclose(clf.coef_[[1, 3]], coef, atol=1e-8)
        np.testing.assert_allclose(clf.intercept_[[1, 3]], intercept, atol=1e-8)
    after = clf.decision_function(form(X))
    assert np.array_equal(after[:, [0, 2, 4]], before[:, [0, 2, 4]])
    assert clf.reports_[1].n_rows == 260
    assert clf.reports_[1].n_yes == Y[:, 1].sum()


def test_two_updates_are_one(case):
    X, Y = case
    once, twice = fitted(case), fitted(case)
    once.update(X[160:], Y[160:, :5])
    twice.update(X[160:200], Y[160:200, :5]).update(X[200:], Y[200:, :5])
    np.testing.assert_allclose(twice.coef_, once.coef_, atol=1e-10)
    assert twice.state_.memory.later.X.shape == (100, 15)


def test_what_is_unknown_stays_unknown(case, rng):
    X, Y = case
    known = rng.random((100, 5)) < 0.6
    hidden = np.where(known, Y[160:, :5], 1 - Y[160:, :5])  # cells that nobody answered say anything
    clf = fitted(case).update(X[160:], hidden, NAMES, annotated=known)
    for j in range(5):
        rows = np.concatenate((np.arange(160), 160 + np.flatnonzero(known[:, j])))
        beta = clf.state_.strength * row_unit(X[rows], True)
        theirs = Ridge(alpha=beta).fit(X[rows], Y[rows, j])
        np.testing.assert_allclose(clf.coef_[j], theirs.coef_, atol=1e-8)
        assert clf.reports_[j].n_rows == len(rows)
    by_rows = fitted(case).update(X[160:], Y[160:, :5], annotated=np.arange(50))
    np.testing.assert_allclose(by_rows.coef_, fitted(case).update(X[160:210], Y[160:210, :5]).coef_, atol=1e-12)


def test_thresholds_and_scores_of_unseen_rows_are_those_of_learning_without_each_row(case):
    X, Y = case
    clf = fitted(case).update(X[160:], Y[160:, :5])
    memory, beta = clf.state_.memory, clf.reports_[0].beta
    for place in (0, 7):
        rows = np.delete(np.arange(260), memory.judged_rows[place])
        alone = Ridge(alpha=beta).fit(X[rows], Y[rows, :5])
        unseen = alone.predict(X[[memory.judged_rows[place]]])[0]
        np.testing.assert_allclose(memory.leave_one_out[place], unseen, atol=1e-8)
    before = fitted(case)
    assert (clf.thresholds_ != before.thresholds_).all()
    assert (clf.predict(X) == Y[:, :5]).mean() > 0.85


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_other_losses_are_solved_on_all_rows(case, loss):
    X, Y = case
    clf = fitted(case, loss=loss)
    before = clf.decision_function(X)
    clf.update(X[160:], Y[160:, [0]], ["a"])
    assert np.array_equal(clf.decision_function(X)[:, 1:], before[:, 1:])
    beta = clf.reports_[0].beta
    assert beta == pytest.approx(clf.state_.strength * row_unit(X, True))
    if loss == "logistic":
        theirs = LogisticRegression(C=1.0 / beta, tol=1e-10, max_iter=10_000).fit(X, Y[:, 0])
        np.testing.assert_allclose(clf.coef_[0], theirs.coef_[0], atol=2e-2 * np.abs(theirs.coef_).max())
    fresh = StreamingLabelClassifier(loss=loss, beta=beta).fit(X, Y[:, :5], label_names=NAMES)
    np.testing.assert_allclose(clf.coef_[0], fresh.coef_[0], atol=1e-2 * np.abs(fresh.coef_[0]).max())


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_other_losses_begin_where_they_are_and_end_where_a_solve_from_zero_ends(case, loss, monkeypatch):
    X, Y = case
    clf, starts = fitted(case, loss=loss), []
    weights, intercept = clf.coef_.T.copy(), clf.intercept_.copy()

    def noted(*given, **options):
        starts.append((given[0].shape[0], options["start"]))
        return solve_loss(*given, **options)

    monkeypatch.setattr(later_rows, "solve_loss", noted)
    clf.update(X[160:], Y[160:, :5])
    (n_rows, start), beta = starts[0], clf.reports_[0].beta
    assert n_rows == 260
    np.testing.assert_array_equal(start[0], weights)
    np.testing.assert_array_equal(start[1], intercept)
    exact, offset, _ = solve_loss(X, Y[:, :5].astype(float), beta, loss, True, tolerance=1e-10)
    np.testing.assert_allclose(clf.coef_, exact.T, atol=1e-3 * np.abs(exact).max())
    np.testing.assert_allclose(clf.intercept_, offset, atol=1e-3)
    signs, scores = 2.0 * Y[:, :5] - 1.0, X @ clf.coef_.T + clf.intercept_
    pull = signs / (1.0 + np.exp(signs * scores)) if loss == "logistic" else signs * np.maximum(1 - signs * scores, 0)
    slope = beta * clf.coef_.T - X.T @ pull  # what must vanish at the optimum, beside what it is at zero
    at_zero = X.T @ (Y[:, :5] - Y[:, :5].mean(axis=0))
    assert (np.linalg.norm(slope, axis=0) < 5e-4 * np.linalg.norm(at_zero, axis=0)).all()
    assert (np.abs(pull.sum(axis=0)) < 5e-4 * np.linalg.norm(at_zero, axis=0)).all()


def test_the_papers_form_has_no_intercept(case):
    X, Y = case
    clf = fitted(case, fit_intercept=False).update(X[160:], Y[160:, :5])
    theirs = Ridge(alpha=clf.reports_[0].beta, fit_intercept=False).fit(X, 2 * Y[:, :5] - 1)
    np.testing.assert_allclose(clf.coef_, theirs.coef_, atol=1e-8)


def test_labels_that_came_later_stay_and_new_ones_still_come(case):
    X, Y = case
    clf = fitted(case).add_labels(X[:160], Y[:160, 5], ["late"])
    before = clf.decision_function(X)[:, 5]
    clf.update(X[160:], Y[160:, :5])
    assert np.array_equal(clf.decision_function(X)[:, 5], before)
    clf.add_labels(X[:160], 1 - Y[:160, 5], ["not late"], annotated=np.arange(80))
    assert clf.label_names_ == (*NAMES, "late", "not late")
    with pytest.raises(ConflictError, match="label 'late' was added after fit"):
        clf.update(X[160:], Y[160:, [5]], ["late"])


def test_what_cannot_be_exact_is_refused_and_changes_nothing(case):
    X, Y = case
    clf = fitted(case)
    state = clf.state_
    for wrong, error, says in (
        ((X[160:], Y[160:, :2], ["a", "zebra"]), NotFoundError, "no label is called 'zebra'"),
        ((X[160:], Y[160:, :2]), DataError, "names"),
        ((X[160:], Y[160:, :2], ["a", "a"]), DataError, "twice|repeat|same"),
        ((X[160:, :3], Y[160:, :5]), ValueError, "features"),
        ((X[160:170], Y[160:, :5]), DataError, "one row of answers a row of X"),
    ):
        with pytest.raises(error, match=says):
            clf.update(*wrong)
        assert clf.state_ is state
    adopted = StreamingLabelClassifier.from_coef(clf.coef_, clf.intercept_, NAMES)
    with pytest.raises(DataError, match="the rows of fit are not kept"):
        adopted.update(X[160:], Y[160:, :5])
    with pytest.raises(DataError, match="learned together"):
        fitted(case, start="alternating").update(X[160:], Y[160:, :5])
    with pytest.raises(DataError, match="vector of classes"):
        StreamingLabelClassifier().fit(X[:160], Y[:160, 0] + Y[:160, 1]).update(X[160:], Y[160:, :3])
