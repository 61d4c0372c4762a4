"""The choice of hyper-parameters: what it sees, what it must not see, and that the best wins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.experiments.budget_methods import Competitor, Past, trials_of
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


class Known(Competitor):
    """Scores that are the worse, the further a strength is from the best one; keeps what was tried on how many rows."""

    def __init__(self, best: float, sizes: tuple[int, ...] = (), n_strengths: int = 9) -> None:
        super().__init__("known", "strength", tuple(map(float, range(n_strengths))), sizes=sizes)
        object.__setattr__(self, "best", best)
        object.__setattr__(self, "seen", [])

    __hash__ = object.__hash__

    def tried(self, past, trial, step):
        rng = np.random.default_rng(0)
        for one in step:
            self.seen.append((one["strength"], len(trial.learned)))
            yield trial.truth + rng.random(trial.truth.shape) * (0.5 + abs(one["strength"] - self.best))

    @property
    def strengths_tried(self) -> list[float]:
        return [strength for strength, _ in self.seen]


@pytest.mark.parametrize("best", [0.0, 3.0, 4.0, 8.0])
def test_the_strength_that_ranks_rows_it_did_not_learn_best_wins(past, best):
    method = Known(best)
    assert method.choose(past, 50) == {"strength": best}
    tried = method.strengths_tried
    assert {4.0, best} <= set(tried)
    assert {tried.count(one) for one in tried} == {6}  # draws, none of them twice
    if best == 4.0:
        assert set(tried) == {3.0, 4.0, 5.0}  # both neighbours are worse


def test_the_trials_are_those_of_the_learner_rows_and_labels(past):
    found = []

    def look(X, answers, scores, judged, rng, *_):
        hidden, _ = hide_labels(answers, judged.answers, rng)
        found.append((rows_of(X), rows_of(judged.X), hidden.tolist()))

    held = FitMemory.sample(N_ROWS, 3, N_LABELS)
    memory = FitMemory(
        past.X, past.Y_past, np.zeros((len(held), N_LABELS)), held, np.zeros(len(held)), seed=3, beta=1.0, centre=True
    )
    memory.trials(50, ("squared",), lambda: (np.zeros((N_ROWS, N_LABELS)), np.zeros(N_LABELS)), run=look)
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


def test_a_method_chooses_once_at_a_number_of_rows_and_beyond_those_of_trials(past):
    method, other = Known(4.0), Known(4.0)
    method.choose(past, 200)
    before = len(method.seen)
    method.choose(past, 300)  # 200 rows are left to learn from
    assert len(method.seen) == before
    other.choose(past, 300)
    assert other.seen


def test_dear_methods_choose_at_the_nearest_of_a_few_numbers_of_rows(past):
    method = Known(4.0, sizes=(25, 100))
    assert method.choose(past, 60) == {"strength": 4.0}
    assert {n_rows for _, n_rows in method.seen} == {100}


@pytest.mark.parametrize("n_rows", [9, 50])
def test_without_trials_the_middle_candidate_is_taken(past, n_rows):
    empty = Past(past.X, past.Y_past * 0 if n_rows == 50 else past.Y_past, past.Y_new, past.X_test, 0)
    method = Known(0.0)
    assert method.choose(empty, n_rows) == {"strength": 4.0}
    assert not method.seen
