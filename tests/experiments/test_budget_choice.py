"""The choice of hyper-parameters: what it sees, what it must not see, and that the best wins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.experiments.budget_past import Past, choose, trials_of
from streamlabel.streaming.kept_rows import FitMemory, n_trials
from streamlabel.streaming.trials import hide_labels

N_ROWS, N_LABELS = 300, 40


@pytest.fixture
def past(rng) -> Past:
    """Row i has the one feature i, so that it can be told which rows were taken; there are no new labels to see."""
    X = sparse.csr_array(np.eye(N_ROWS))
    Y = sparse.csr_array((rng.random((N_ROWS, N_LABELS)) < 0.3).astype(np.int8))
    return Past(X, Y, Y[:, :0], X[:0], seed=3)


def rows_of(X) -> list[int]:
    return X.indices.tolist()


def one_a_step(n_rows: int) -> list[list[dict]]:
    return [[{"strength": number}] for number in range(9)]


def noisy(past: Past, best: int, rng, tried: list[int]):
    """Scores that are the worse, the further a strength is from the best one."""

    def scores(trial, step):
        for one in step:
            tried.append(one["strength"])
            yield trial.truth + rng.random(trial.truth.shape) * (0.5 + abs(one["strength"] - best))

    return scores


@pytest.mark.parametrize("best", [0, 3, 4, 8])
def test_the_strength_that_ranks_rows_it_did_not_learn_best_wins(past, best, rng):
    tried: list[int] = []
    assert choose(past, "m", 50, one_a_step, noisy(past, best, rng, tried)) == {"strength": best}
    assert {4, best} <= set(tried)
    assert max(tried.count(one) for one in tried) == 6  # draws, none of them twice
    if best == 4:
        assert set(tried) == {3, 4, 5}  # both neighbours are worse


def test_the_trials_are_those_of_the_learner_rows_and_labels(past):
    found = []

    def look(X, answers, scores, judged, rng):
        hidden, _ = hide_labels(answers, judged.answers, rng)
        found.append((rows_of(X), rows_of(judged.X), hidden.tolist()))

    held = FitMemory.sample(N_ROWS, 3, N_LABELS)
    memory = FitMemory(past.X, past.Y_past, np.zeros((len(held), N_LABELS)), held, np.zeros(len(held)), seed=3)
    memory.trials(50, np.zeros((N_ROWS, N_LABELS)), np.zeros(N_LABELS), run=look)
    trials = trials_of(past, 50)
    assert [(one.learned.tolist(), rows_of(one.X_held), one.judged.tolist()) for one in trials] == found
    assert len(trials) == n_trials(50) == 6
    assert {len(one.judged) for one in trials} == {N_LABELS // 3}


def test_rows_that_are_judged_are_never_learned_from(past):
    for trial in trials_of(past, 80):
        learned, held = rows_of(trial.X), rows_of(trial.X_held)
        assert (len(learned), len(held)) == (80, 100)
        assert not set(learned) & set(held)
        assert learned == trial.learned.tolist()
        assert held == past.held.tolist()
        assert (trial.Y.toarray() == past.Y_past[learned].toarray()).all()
        assert (trial.truth == past.Y_past[held][:, trial.judged].toarray()).all()


def test_only_labels_with_both_answers_on_either_side_are_judged(past):
    few = Past(past.X, past.Y_past.multiply(np.arange(N_LABELS) < 4).tocsr(), past.Y_new, past.X_test, 3)
    assert {label for trial in trials_of(few, 50) for label in trial.judged} == {0, 1, 2, 3}


def test_the_draw_depends_on_seed_and_number_of_rows(past):
    first = trials_of(past, 50)[0].learned
    assert (first == trials_of(past, 50)[0].learned).all()
    other = Past(past.X, past.Y_past, past.Y_new, past.X_test, 4)
    assert set(first) != set(trials_of(other, 50)[0].learned)


def test_a_method_chooses_once_at_a_number_of_rows_and_beyond_those_of_trials(past, rng):
    tried: list[int] = []
    scores = noisy(past, 4, rng, tried)
    choose(past, "m", 200, one_a_step, scores)
    before = len(tried)
    choose(past, "m", 300, one_a_step, scores)  # 200 rows are left to learn from
    assert len(tried) == before
    choose(past, "other", 300, one_a_step, scores)
    assert len(tried) > before


def test_dear_methods_choose_at_the_nearest_of_a_few_numbers_of_rows(past, rng):
    def steps(n_rows: int) -> list[list[dict]]:
        return [[{"strength": 0, "rows": n_rows}], [{"strength": 1, "rows": n_rows}]]

    seen: list[int] = []

    def scores(trial, step):
        seen.append(len(trial.learned))
        yield trial.truth * (step[0]["strength"] == 1)

    assert choose(past, "m", 60, steps, scores, sizes=(25, 100)) == {"strength": 1, "rows": 60}
    assert set(seen) == {100}


@pytest.mark.parametrize("n_rows", [9, 50])
def test_without_trials_the_middle_candidate_is_taken(past, n_rows):
    empty = Past(past.X, past.Y_past * 0 if n_rows == 50 else past.Y_past, past.Y_new, past.X_test, 0)
    assert choose(empty, "m", n_rows, one_a_step, lambda *given: pytest.fail("nothing can be tried")) == {"strength": 4}
