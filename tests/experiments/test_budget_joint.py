"""LEML and SLEEC in the budget experiment, against the estimators used by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from planted_past import planted_past
from streamlabel.experiments.budget_choice import Trial
from streamlabel.experiments.budget_methods import METHODS
from streamlabel.experiments.budget_past import Past
from streamlabel.models.leml import LEML
from streamlabel.models.sleec import SLEEC

ROWS = np.arange(0, 120, 3)
MODELS = {"LEML": LEML, "SLEEC": SLEEC}
both = pytest.mark.parametrize("name", list(MODELS))


@pytest.fixture(scope="module")
def past() -> Past:
    return planted_past()


@both
def test_past_and_new_labels_are_learned_together_at_a_candidate_of_the_grid(past, name):
    able = np.array([0, 2, 3])
    found = METHODS[name].learn(past, able, ROWS)
    X, Y = past.X[ROWS].toarray(), np.hstack((past.Y_past.toarray(), past.Y_new.toarray()[:, able]))[ROWS]
    by_hand = [
        MODELS[name](**candidate).fit(X, Y).decision_function(past.X_test.toarray())[:, 12:]
        for candidate in METHODS[name].grid(len(ROWS))
    ]
    assert any(np.allclose(found.scores, scores, atol=1e-6) for scores in by_hand)
    assert (found.share, found.anchored) == (0.0, False)


@both
def test_answers_of_rows_that_are_not_annotated_have_no_part(past, name):
    able = np.array([0, 2, 3])
    hidden = past.Y_new.toarray()
    hidden[np.setdiff1d(np.arange(120), ROWS)] = 1
    other = Past(past.X, past.Y_past, sparse.csr_array(hidden), past.X_test, past.seed)
    assert (METHODS[name].learn(other, able, ROWS).scores == METHODS[name].learn(past, able, ROWS).scores).all()


@both
def test_candidates_are_tried_as_by_models_of_their_own(past, name, monkeypatch):
    fitted = []
    fit = MODELS[name].fit
    trial = Trial(past.X[:80], past.Y_past[:80], np.array([5, 1]), past.X[80:])
    grid = METHODS[name].grid(80)
    by_hand = [
        MODELS[name](random_state=9, **candidate).fit(trial.X, trial.Y).decision_function(trial.X_held)[:, [5, 1]]
        for candidate in grid
    ]
    monkeypatch.setattr(MODELS[name], "fit", lambda self, *given: fitted.append(1) or fit(self, *given))
    found = list(METHODS[name]._trials(grid, 9, trial))
    assert len(found) == len(grid) == 6
    for scores, expected in zip(found, by_hand, strict=True):
        assert scores == pytest.approx(expected, abs=1e-9)
    assert len(fitted) == {"LEML": 6, "SLEEC": 2}[name]  # what differs at scoring only is fitted once


@pytest.mark.parametrize("n_rows", [2, 20, 100, 5000])
def test_the_neighbours_that_vote_are_fewer_than_the_rows(n_rows):
    voters = {candidate["n_predict_neighbours"] for candidate in METHODS["SLEEC"].grid(n_rows)}
    assert voters == {2: {1}, 20: {2, 5, 10}, 100: {12, 25, 50}, 5000: {25, 50, 100}}[n_rows]


@both
def test_what_cannot_be_learned_scores_what_the_model_would_give_it(past, name):
    Y = past.Y_past.toarray()
    Y[:, 3], Y[:, 7] = 0, 1
    scores = MODELS[name](**METHODS[name].grid(120)[0]).fit(past.X, Y).decision_function(past.X_test)[:, [3, 7]]
    constant = METHODS[name].constant(np.array([0, 120]), 120)
    assert scores == pytest.approx(np.tile(constant, (40, 1)), abs=1e-6)
