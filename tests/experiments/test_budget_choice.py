"""The choice of hyper-parameters: what it sees, what it must not see, and that the best wins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.experiments.budget_past import Past, Trial, choose

N_ROWS, N_LABELS = 200, 40


@pytest.fixture
def past(rng) -> Past:
    """Row i has the one feature i, so that it can be told which rows were taken; there are no new labels to see."""
    X = sparse.csr_array(np.eye(N_ROWS))
    Y = sparse.csr_array((rng.random((N_ROWS, N_LABELS)) < 0.3).astype(np.int8))
    return Past(X, Y, Y[:, :0], X[:0], seed=3)


def rows_of(X) -> np.ndarray:
    return X.indices


def seen(past: Past, n_rows: int, most_rows: int | None = None) -> Trial:
    trials: list[Trial] = []

    def keep(trial: Trial):
        trials.append(trial)
        return [np.zeros((trial.X_held.shape[0], len(trial.judged)))]

    choose(past, n_rows, ["only"], keep, most_rows)
    return trials[0]


@pytest.mark.parametrize("best", range(3))
def test_the_candidate_that_ranks_rows_it_did_not_learn_best_wins(past, best, rng):
    def trials(trial: Trial):
        truth = past.Y_past[rows_of(trial.X_held)][:, trial.judged].toarray()
        for number in range(3):
            yield truth + rng.random(truth.shape) * (0.5 if number == best else 3.0)

    assert choose(past, 50, "abc", trials) == "abc"[best]


@pytest.mark.parametrize(
    ("n_rows", "most_rows", "n_learned"), [(50, None, 50), (200, None, 160), (200, 70, 70), (50, 70, 50)]
)
def test_as_many_rows_are_learned_and_others_judged(past, n_rows, most_rows, n_learned):
    trial = seen(past, n_rows, most_rows)
    learned, held = rows_of(trial.X), rows_of(trial.X_held)
    assert (len(learned), len(held)) == (n_learned, N_ROWS - n_learned)
    assert not set(learned) & set(held)
    assert learned.tolist() == trial.learned.tolist()
    assert held.tolist() == trial.held.tolist()
    assert (trial.Y.toarray() == past.Y_past[learned].toarray()).all()
    assert len(set(trial.judged)) == 30


def test_only_labels_with_both_answers_on_either_side_are_judged(past):
    few = Past(past.X, past.Y_past.multiply(np.arange(N_LABELS) < 4).tocsr(), past.Y_new, past.X_test, 3)
    assert set(seen(few, 50).judged) == {0, 1, 2, 3}


def test_the_draw_depends_on_seed_and_number_of_rows(past):
    first = rows_of(seen(past, 50).X)
    assert (first == rows_of(seen(past, 50).X)).all()
    past.seed = 4
    assert (first != rows_of(seen(past, 50).X)).any()


def test_where_no_past_label_can_be_judged_the_middle_candidate_is_taken(past):
    empty = Past(past.X, past.Y_past * 0, past.Y_new, past.X_test, 0)
    assert choose(empty, 50, "abcde", lambda trial: pytest.fail("nothing can be tried")) == "c"
