"""Texts that were asked are a part of the pool by which a label is judged."""

from __future__ import annotations

import numpy as np
import pytest

from streamlabel.streaming.found import Pool
from streamlabel.streaming.judgement import Calibration, Judgement

CALIBRATION = Calibration((-3.0, 2.0, 0.0, -0.3), 0.5)
NONE = np.empty(0)


@pytest.fixture
def scores() -> np.ndarray:
    return np.sort(np.random.default_rng(0).normal(size=1000))


def judge(pool, asked=NONE, answers=NONE, share=1.0) -> Judgement:
    return Judgement.of(CALIBRATION, pool, np.array([2.0]), asked, answers, share)


def test_asking_about_the_highest_scores_leaves_the_threshold_where_it_was(scores):
    """Before, the likeliest texts were gone from the pool when they were answered, and the threshold fell."""
    before = judge(scores)
    answers = (np.random.default_rng(1).random(40) < before.chances[-40:]).astype(float)
    after = judge(scores[:-40], scores[-40:], answers)
    assert sorted(after.pool) == pytest.approx(scores)
    assert after.threshold() == pytest.approx(before.threshold(), abs=0.25)


def test_answers_move_the_chances_of_texts_like_these(scores):
    before, yes, no = judge(scores[:-9]), *(judge(scores[:-9], scores[-9:], np.full(9, one)) for one in (1.0, 0.0))
    assert (yes.chances[:-9] > no.chances[:-9]).all()
    assert yes.estimate(2.0).rate[0] > before.estimate(2.0).rate[0] > no.estimate(2.0).rate[0]


def test_of_a_large_pool_as_many_asked_texts_count_as_others(scores):
    """Of 20,000 texts the pool shows 2,000: 1,000 questions are a share of 100, not more than the rest."""
    found = judge(scores, np.full(1000, 3.0), np.ones(1000), share=0.1)
    assert len(found.pool) - 1000 == 100
    assert found.n_asked == 1000
    rows = np.zeros((20_000, 1))
    assert Pool.of(rows, 0).share == pytest.approx(0.1)
    assert Pool.of(rows[:500], 0).share == pytest.approx(0.5)


def test_few_asked_texts_are_counted_evenly_by_score(scores):
    """Of ten that were asked of a pool whose half is judged five stay, high and low ones: chance chooses none."""
    asked = np.random.default_rng(2).permutation(np.arange(3.0, 13.0))
    stayed = np.setdiff1d(judge(scores, asked, np.ones(10), share=0.5).pool, scores)
    assert len(stayed) == 5
    assert (np.diff(stayed) == 2.0).all()
