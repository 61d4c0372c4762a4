from __future__ import annotations

import numpy as np
import pytest

from streamlabel.errors import DataError
from streamlabel.metrics import auc, decisions, ranking
from streamlabel.metrics.evaluate import METRICS, evaluate
from streamlabel.metrics.row_blocks import RowBlocks

THRESHOLD = 0.25


def one_by_one(truth, scores, weights):
    """Every measure by its own function."""
    predicted = (scores > THRESHOLD).astype(int)
    expected = {f"P@{k}": ranking.precision_at_k(truth, scores, k) for k in (1, 4)}
    expected |= {f"nDCG@{k}": ranking.ndcg_at_k(truth, scores, k) for k in (1, 4)}
    expected |= {f"PSP@{k}": ranking.propensity_scored_precision_at_k(truth, scores, weights, k) for k in (1, 4)}
    for function in (ranking.ranking_loss, ranking.coverage, ranking.label_ranking_average_precision):
        expected[function.__name__] = function(truth, scores)
    for function in (auc.macro_auc, auc.macro_average_precision, auc.micro_auc, auc.micro_average_precision):
        expected[function.__name__] = function(truth, scores)
    for function in (decisions.hamming_loss, decisions.micro_f1, decisions.macro_f1):
        expected[function.__name__] = function(truth, predicted)
    return expected | {"n_labels_left_out": auc.macro_auc(truth, scores, return_left_out=True)[1]}


def test_equals_the_single_functions_in_every_form(problem):
    weights = ranking.inverse_propensity(problem.truth)
    expected = one_by_one(problem.truth, problem.scores, weights)
    dense, stored = problem.scores, problem.sparse_scores
    for scores in (dense, stored, RowBlocks(lambda a, b: dense[a:b], size=11), RowBlocks([stored[:3], stored[3:]])):
        found = evaluate(problem.truth, scores, k=(4, 1), inverse_propensities=weights, threshold=THRESHOLD)
        assert found == expected
        assert list(found) == list(expected)
        assert all(type(value) is float for value in found.values())


def test_nothing_is_changed(problem):
    dense, stored = problem.scores.copy(), problem.sparse_scores
    evaluate(problem.truth, dense, threshold=THRESHOLD)
    evaluate(problem.truth, stored, threshold=THRESHOLD)
    np.testing.assert_array_equal(dense, problem.scores)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(stored, name), getattr(problem.sparse_scores, name))


def test_default_leaves_out_what_needs_more(full_problem):
    found = evaluate(full_problem.truth, full_problem.scores)
    assert {"P@1", "P@3", "P@5", "nDCG@5", "micro_auc", "macro_auc", "coverage"} <= set(found)
    assert not any(name.startswith("PSP") for name in found)
    assert "hamming_loss" not in found


def test_only_what_is_asked_for_in_the_order_asked_for(full_problem):
    found = evaluate(full_problem.truth, full_problem.scores, k=[3], metrics=["micro_auc", "P@k"])
    assert list(found) == ["micro_auc", "P@3"]
    assert list(evaluate(full_problem.truth, full_problem.scores, metrics="coverage")) == ["coverage"]
    assert list(evaluate(full_problem.truth, full_problem.scores, 2, ["P@k"])) == ["P@2"]


def test_scores_are_made_twice_at_most(full_problem):
    asked = []

    def rows(start, stop):
        asked.append(start)
        return full_problem.scores[start:stop]

    evaluate(full_problem.truth, RowBlocks(rows, size=10), threshold=0.0)
    assert asked == [0, 10, 20, 30] * 2
    asked.clear()
    evaluate(full_problem.truth, RowBlocks(rows, size=10), metrics=["P@k", "coverage"])
    assert asked == [0, 10, 20, 30]


def test_generator_serves_row_measures_only(full_problem):
    parts = RowBlocks(iter([full_problem.scores]))
    with pytest.raises(DataError, match="read once"):
        evaluate(full_problem.truth, parts, metrics=["P@k", "macro_auc"])
    assert set(evaluate(full_problem.truth, parts, k=(1,), metrics=["P@k"])) == {"P@1"}


def test_refusals():
    truth, scores = np.eye(3), np.eye(3)
    with pytest.raises(DataError, match=r"no measure is called 'auc'; there are P@k"):
        evaluate(truth, scores, metrics=["auc"])
    with pytest.raises(DataError, match="threshold"):
        evaluate(truth, scores, metrics=["micro_f1"])
    with pytest.raises(DataError, match="inverse_propensities"):
        evaluate(truth, scores, metrics=["PSP@k"])
    with pytest.raises(DataError, match="k is 0"):
        evaluate(truth, scores, k=(0,))


def test_names_are_unique():
    assert len(set(METRICS)) == len(METRICS)
