"""LEML and SLEEC in the budget experiment, against the estimators used by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from planted_past import planted_past
from streamlabel import LEML
from streamlabel.baselines.sleec import SLEEC
from streamlabel.experiments.budget_methods import METHODS, Past, trials_of

ROWS, ABLE = np.arange(0, 120, 3), np.array([0, 2, 3])
both = pytest.mark.parametrize("name", ["LEML", "SLEEC"])


@pytest.fixture(scope="module")
def past() -> Past:
    return planted_past()


def leml(candidate, past: Past, tol: float) -> LEML:
    spread = np.linalg.norm(past.X.toarray() - past.X.toarray().mean(axis=0)) / np.sqrt(past.X.shape[0])
    beta = candidate["beta"] * spread
    return LEML(candidate["rank"], beta=beta, tol=tol, n_iterations=500, random_state=past.seed)


@pytest.mark.parametrize("rows", [ROWS, np.arange(120)], ids=["some", "all"])
def test_leml_knows_past_labels_on_all_rows_and_new_ones_where_they_are_annotated(past, rows):
    found = METHODS["LEML"].learn(past, ABLE, rows)
    Y = np.hstack((past.Y_past.toarray(), past.Y_new.toarray()[:, ABLE]))
    known = np.ones(Y.shape, dtype=bool)
    known[np.ix_(np.setdiff1d(np.arange(120), rows), [12, 13, 14])] = False
    by_hand = leml(found.parameters, past, 1e-5).fit_missing(past.X, Y, known).decision_function(past.X_test)
    np.testing.assert_allclose(found.scores, by_hand[:, 12:], atol=1e-8)


def test_past_labels_of_rows_that_are_not_annotated_matter_to_leml(past):
    fixed = replace(METHODS["LEML"], strengths=(1.0,))
    other = past.Y_past.toarray()
    other[1::3] = other[1::3][::-1]
    changed = Past(past.X, sparse.csr_array(other), past.Y_new, past.X_test, past.seed)
    difference = fixed.learn(changed, ABLE, ROWS).scores - fixed.learn(past, ABLE, ROWS).scores
    assert np.abs(difference).max() > 0.01


def test_leml_tries_candidates_with_judged_labels_known_on_few_rows_and_the_others_on_all_but_the_held(past):
    trial, n_left = trials_of(past, 40)[0], len(past.left)
    known = np.ones((n_left, 12), dtype=bool)
    known[np.ix_(~np.isin(past.left, trial.learned), trial.judged)] = False
    order = [*np.setdiff1d(np.arange(12), trial.judged), *trial.judged]  # H is drawn label by label
    grid = METHODS["LEML"].grid(40)[3:6]
    found = METHODS["LEML"].tried(past, trial, grid)
    for scores, candidate in zip(found, grid, strict=True):
        model = leml(candidate, past, 1e-3)
        model.fit_missing(past.X[past.left], past.Y_past[past.left][:, order], known[:, order])
        expected = model.decision_function(past.X[past.held])[:, -len(trial.judged) :]
        np.testing.assert_allclose(scores, expected, atol=1e-8)


def test_sleec_learns_past_and_new_labels_together_at_a_candidate_of_the_grid(past):
    found = METHODS["SLEEC"].learn(past, ABLE, ROWS)
    X, Y = past.X[ROWS].toarray(), np.hstack((past.Y_past.toarray(), past.Y_new.toarray()[:, ABLE]))[ROWS]
    by_hand = SLEEC(**found.parameters).fit(X, Y).decision_function(past.X_test.toarray())[:, 12:]
    assert np.allclose(found.scores, by_hand, atol=1e-6)
    assert (found.share, found.anchored) == (0.0, False)


@both
def test_answers_of_rows_that_are_not_annotated_have_no_part(past, name):
    hidden = past.Y_new.toarray()
    hidden[np.setdiff1d(np.arange(120), ROWS)] = 1
    other = Past(past.X, past.Y_past, sparse.csr_array(hidden), past.X_test, past.seed)
    assert (METHODS[name].learn(other, ABLE, ROWS).scores == METHODS[name].learn(past, ABLE, ROWS).scores).all()


def test_candidates_of_sleec_are_tried_as_by_models_of_their_own(past, monkeypatch):
    trial, steps, fitted, fit = trials_of(past, 60)[0], METHODS["SLEEC"].steps(60)[2:4], [], SLEEC.fit
    with monkeypatch.context() as patch:
        patch.setattr(SLEEC, "fit", lambda self, *given: fitted.append(1) or fit(self, *given))
        found = [scores for step in steps for scores in METHODS["SLEEC"].tried(past, trial, step)]
    assert len(fitted) == 1  # what differs in the map or at scoring only is fitted once
    for scores, candidate in zip(found, [one for step in steps for one in step], strict=True):
        some = np.asarray(trial.Y.sum(axis=1)).ravel() > 0  # every row has a label where all labels are known
        model = SLEEC(random_state=past.seed, **candidate).fit(trial.X[some], trial.Y[some])
        assert (scores == model.decision_function(trial.X_held)[:, trial.judged]).all()


@pytest.mark.parametrize("n_rows", [2, 20, 100, 5000])
def test_the_neighbours_that_vote_are_fewer_than_the_rows(n_rows):
    voters = {candidate["n_predict_neighbours"] for candidate in METHODS["SLEEC"].grid(n_rows)}
    assert voters == {2: {1}, 20: {1, 2, 5, 10}, 100: {6, 12, 25, 50}, 5000: {10, 25, 50, 100, 250}}[n_rows]


@both
def test_what_cannot_be_learned_scores_what_the_model_would_give_it(past, name):
    Y = past.Y_past.toarray()
    Y[:, 3], Y[:, 7] = 0, 1
    model = {"LEML": LEML(250, beta=0.1), "SLEEC": SLEEC(**METHODS["SLEEC"].grid(120)[0])}[name]
    scores = model.fit(past.X, Y).decision_function(past.X_test)[:, [3, 7]]
    constant = METHODS[name].constant(np.array([0, 120]), 120)
    assert scores == pytest.approx(np.tile(constant, (40, 1)), abs=1e-6)
