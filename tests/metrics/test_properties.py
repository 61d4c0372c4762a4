"""What must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from streamlabel.metrics.evaluate import METRICS, evaluate

RANKING = [name for name in METRICS if name not in ("PSP@k", "hamming_loss", "micro_f1", "macro_f1")]


@st.composite
def problems(draw, distinct=False):
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=8))
    truth = draw(hnp.arrays(np.int8, shape, elements=st.integers(0, 1)))
    if distinct:
        order = draw(st.permutations(range(shape[0] * shape[1])))
        return truth, np.array(order, dtype=float).reshape(shape)
    return truth, draw(hnp.arrays(np.float64, shape, elements=st.integers(-3, 3).map(float)))


def same(left, right):
    assert left.keys() == right.keys()
    for name in left:
        assert left[name] == pytest.approx(right[name], abs=1e-12, nan_ok=True), name


@given(problems(), st.lists(st.floats(1e-3, 1e3), min_size=7, max_size=7), st.floats(-1e3, 1e3))
def test_increasing_transformations_change_nothing(problem, steps, start):
    truth, scores = problem
    levels = start + np.cumsum(steps)  # one new value for each of the seven old ones, still ascending
    same(evaluate(truth, scores, metrics=RANKING), evaluate(truth, levels[scores.astype(int) + 3], metrics=RANKING))


@given(problems(), st.randoms(use_true_random=False))
def test_order_of_rows_changes_nothing(problem, random):
    truth, scores = problem
    rows = random.sample(range(len(truth)), len(truth))
    same(evaluate(truth, scores, metrics=RANKING), evaluate(truth[rows], scores[rows], metrics=RANKING))


@given(problems(distinct=True), st.randoms(use_true_random=False))
def test_order_of_labels_changes_nothing_without_ties(problem, random):
    truth, scores = problem
    columns = random.sample(range(truth.shape[1]), truth.shape[1])
    same(evaluate(truth, scores, metrics=RANKING), evaluate(truth[:, columns], scores[:, columns], metrics=RANKING))


@given(problems())
def test_values_lie_in_their_range(problem):
    truth, scores = problem
    found = evaluate(truth, scores, inverse_propensities=np.arange(1.0, truth.shape[1] + 1), threshold=0.0)
    for name, value in found.items():
        top = truth.shape[1] if name in ("coverage", "n_labels_left_out") else 1
        assert np.isnan(value) or 0 <= value <= top + 1e-12, name


@given(problems())
def test_swapping_true_and_false_and_turning_the_scores_keeps_auc(problem):
    truth, scores = problem
    names = ["micro_auc", "macro_auc", "ranking_loss"]
    same(evaluate(truth, scores, metrics=names), evaluate(1 - truth, -scores, metrics=names))


@given(problems())
@settings(max_examples=50)
def test_a_row_twice_changes_no_mean_over_rows(problem):
    truth, scores = problem
    names = ["P@k", "nDCG@k", "ranking_loss", "coverage", "label_ranking_average_precision"]
    twice = evaluate(np.repeat(truth, 2, axis=0), np.repeat(scores, 2, axis=0), metrics=names)
    same(evaluate(truth, scores, metrics=names), twice)
