"""The methods of the budget experiment, against scikit-learn used by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from planted_past import planted_past
from streamlabel.experiments import budget_methods
from streamlabel.experiments.budget import BudgetRecord, BudgetTask, run_on, tasks
from streamlabel.experiments.budget_methods import DEFAULT, METHODS, OWN_RIDGE, PAPER, Past, parse_methods
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.sets import corpus_sets

ROWS = np.arange(0, 120, 3)


@pytest.fixture(scope="module")
def past() -> Past:
    return planted_past()


@pytest.fixture(scope="module")
def able(past) -> np.ndarray:
    counts = past.Y_new[ROWS].sum(axis=0)
    found = np.flatnonzero((counts > 0) & (counts < len(ROWS)))
    assert len(found) >= 3
    return found


def test_cross_validated_ridge_leaves_one_row_out(past, able):
    X, Y = past.X[ROWS].toarray(), past.Y_new[ROWS][:, able].toarray()
    errors = []
    for alpha in budget_methods._ALPHAS:
        left = [Ridge(alpha).fit(np.delete(X, i, 0), np.delete(Y, i, 0)).predict(X[[i]])[0] for i in range(len(X))]
        errors.append(((Y - np.array(left)) ** 2).mean())
    best = budget_methods._ALPHAS[int(np.argmin(errors))]
    answer = METHODS["RidgeCV"].learn(past, able, ROWS)
    assert answer.scores == pytest.approx(Ridge(best).fit(X, Y).predict(past.X_test.toarray()), abs=1e-8)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("LogisticRegression", lambda C: LogisticRegression(C=C, solver="liblinear")),
        ("LinearSVC", lambda C: LinearSVC(C=C, dual=False)),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 0.15])
def test_one_vs_rest_is_scikit_learns_at_a_strength_of_the_grid_for_rows_of_this_length(past, able, name, make, scale):
    scaled = Past(past.X * scale, past.Y_past, past.Y_new, past.X_test * scale, past.seed)
    answer = METHODS[name].learn(scaled, able, ROWS)
    X = scaled.X[ROWS].toarray()
    unit = np.square(X - X.mean(axis=0)).sum(axis=1).mean()
    column = past.Y_new[ROWS][:, able[:1]].toarray().ravel()
    strength = answer.parameters["C"]
    assert strength in METHODS[name].strengths
    one = make(float(f"{strength / unit:.6g}")).fit(sparse.csr_matrix(X), column)
    assert answer.scores[:, 0] == pytest.approx(one.decision_function(scaled.X_test.toarray()), rel=1e-3, abs=1e-3)


def test_one_learns_from_few_rows_of_one_new_label(past):
    assert METHODS["LinearSVC"].learn(past, np.array([2]), ROWS).scores.shape == (40, 1)


def test_what_cannot_be_learned_scores_what_a_classifier_without_features_would():
    y = np.repeat([1, 0], [30, 90])
    nothing = np.zeros((120, 1))
    logistic = LogisticRegression(C=1e6).fit(nothing, y).intercept_[0]
    assert METHODS["own logistic"].constant(np.array([30]), 120)[0] == pytest.approx(logistic, abs=0.02)
    hinge = LinearSVC(C=1e3, intercept_scaling=100.0, tol=1e-8, max_iter=100_000).fit(nothing, y).intercept_[0]
    assert METHODS["LinearSVC"].constant(np.array([30]), 120)[0] == pytest.approx(hinge, abs=0.01)
    assert METHODS[OWN_RIDGE].constant(np.array([30]), 120)[0] == pytest.approx(Ridge().fit(nothing, y).intercept_)


@pytest.fixture(scope="module")
def rare() -> dict[str, BudgetRecord]:
    """All methods on twenty rows, where most labels have no yes."""
    records = run_on(BudgetTask("rare", 0, (20,), tuple(METHODS)), *corpus_sets(0, 300))
    return {record.method: record for record in records}


@pytest.mark.parametrize("name", list(METHODS))
def test_labels_that_were_not_learned_do_not_stand_above_those_that_were(rare, name):
    """They must not take the first places, on no method's scale."""
    assert 0 < rare[name].n_learned < rare[name].n_labels / 2
    assert rare[name].all_p1 > 0.6 * rare[OWN_RIDGE].all_p1 > 0


def test_the_past_is_fitted_once_a_loss(past, able):
    METHODS[DEFAULT].start(past)
    model = past.model("squared")
    METHODS[DEFAULT].learn(past, able, ROWS)
    METHODS[OWN_RIDGE].start(past)
    assert past.model("squared") is model
    assert len(model.label_names_) == past.Y_past.shape[1]  # copies arrived, not the model


def test_all_methods_are_run_by_default_and_every_strength_has_room_on_both_sides():
    (task,) = tasks(Setting(("news corpus",), (0,)))
    assert task.methods == tuple(METHODS)
    assert {PAPER, "LEML", "SLEEC"} <= set(task.methods)
    for name in ("LogisticRegression", "LinearSVC", "LEML", "SLEEC"):
        steps = METHODS[name].steps(100)
        assert len(steps) >= 9
        assert len(steps) % 2


def test_names_of_methods():
    assert parse_methods("all") == tuple(METHODS)
    assert parse_methods(" LinearSVC ,own ridge") == (OWN_RIDGE, "LinearSVC")
    assert parse_methods("SLL, scikit-learn SVM") == (OWN_RIDGE, DEFAULT, "LinearSVC")  # as pages call them
    with pytest.raises(ValueError, match=r"no method is called 'svm'; there are SLL, BR ridge, .*SLEEC, and 'all'"):
        parse_methods("svm")
