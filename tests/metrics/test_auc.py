from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score, roc_auc_score

from streamlabel.errors import DataError
from streamlabel.metrics.auc import (
    LabelAccumulator,
    MicroAccumulator,
    label_auc,
    label_average_precision,
    macro_auc,
    macro_average_precision,
    micro_auc,
    micro_average_precision,
)
from streamlabel.metrics.order import true_scores
from streamlabel.metrics.row_blocks import as_block, check_truth


def two_class(truth: np.ndarray) -> np.ndarray:
    return np.flatnonzero((truth.min(axis=0) == 0) & (truth.max(axis=0) == 1))


def finite(scores: np.ndarray) -> np.ndarray:
    """scikit-learn takes no infinities: minus infinity becomes a number below all others."""
    return np.where(scores == -np.inf, -1e6, scores)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(label_auc, roc_auc_score), (label_average_precision, average_precision_score)]
)
def test_each_label_against_scikit_learn(problem, ours, theirs):
    values = ours(problem.truth, problem.scores)
    kept = two_class(problem.truth)
    assert len(kept) > 15
    expected = [theirs(problem.truth[:, j], finite(problem.scores)[:, j]) for j in kept]
    np.testing.assert_allclose(values[kept], expected, rtol=0, atol=1e-12)
    assert np.isnan(np.delete(values, kept)).all()


@pytest.mark.parametrize(
    ("ours", "theirs"), [(macro_auc, roc_auc_score), (macro_average_precision, average_precision_score)]
)
def test_macro_against_scikit_learn(problem, ours, theirs):
    kept = two_class(problem.truth)
    expected = theirs(problem.truth[:, kept], finite(problem.scores)[:, kept], average="macro")
    mean, left_out = ours(problem.truth, problem.scores, return_left_out=True)
    assert mean == pytest.approx(expected, abs=1e-12)
    assert left_out == problem.truth.shape[1] - len(kept)
    assert ours(problem.truth, problem.scores) == mean


@pytest.mark.parametrize(
    ("ours", "theirs"), [(micro_auc, roc_auc_score), (micro_average_precision, average_precision_score)]
)
def test_micro_against_scikit_learn(problem, ours, theirs):
    expected = theirs(problem.truth.ravel(), finite(problem.scores).ravel())
    assert ours(problem.truth, problem.scores) == pytest.approx(expected, abs=1e-12)


def test_by_hand():
    truth = np.array([[1, 1], [0, 0], [1, 0], [0, 0]])
    scores = np.array([[0.5, 0.1], [0.5, 0.9], [0.2, 0.8], [0.1, 0.1]])
    # label 0: pairs (0.5|0.5) half, (0.5|0.1) 1, (0.2|0.5) 0, (0.2|0.1) 1; label 1: (0.1|0.9) 0, (0.1|0.8) 0, tie half
    np.testing.assert_allclose(label_auc(truth, scores), [2.5 / 4, 0.5 / 3])
    np.testing.assert_allclose(label_average_precision(truth, scores), [(1 / 2 + 2 / 3) / 2, 1 / 4])


def test_float32_is_ranked_as_float32(rng):
    truth = (rng.random((50, 5)) < 0.5).astype(int)
    scores = rng.standard_normal((50, 5))
    single = scores.astype(np.float32)
    assert macro_auc(truth, single) == macro_auc(truth, single.astype(float))


def test_infinite_scores_are_the_ends_of_the_ranking():
    assert macro_auc([[1], [0], [0]], [[np.inf], [1e308], [-np.inf]]) == 1.0


def test_stored_zero_is_not_a_missing_score():
    truth = np.array([[1], [0], [0]])
    stored = sparse.csr_array(([0.0, -1.0], ([0, 1], [0, 0])), shape=(3, 1))
    assert stored.nnz == 2
    assert macro_auc(truth, stored) == 1.0
    assert macro_auc(truth, sparse.csr_array(([-1.0], ([1], [0])), shape=(3, 1))) == 0.25  # below one, tied with one


def test_one_class_everywhere_is_nan_and_counted():
    truth, scores = np.array([[1, 0], [1, 0]]), np.zeros((2, 2))
    for ours in (macro_auc, macro_average_precision):
        mean, left_out = ours(truth, scores, return_left_out=True)
        assert np.isnan(mean)
        assert left_out == 2
    assert micro_auc(truth, scores) == 0.5  # over all cells there are two classes
    for ours in (micro_auc, micro_average_precision):
        assert np.isnan(ours(np.zeros((2, 2)), scores))
        assert np.isnan(ours(np.ones((2, 2)), scores))


def test_accumulators_merge_to_the_same_bits(problem):
    truth = check_truth(problem.truth)
    of_true = true_scores(truth, as_block(problem.scores, truth.shape))
    parts = [(LabelAccumulator(truth, of_true), MicroAccumulator(of_true)) for _ in range(2)]
    for where, rows in ((0, slice(25, 40)), (1, slice(0, 7)), (0, slice(7, 25))):
        parts[where][0].update(problem.scores[rows])
        parts[where][1].update(problem.sparse_scores[rows])
    for mine, other in zip(*parts, strict=True):
        mine.merge(other)
    assert parts[0][0].result()["macro_auc"] == macro_auc(problem.truth, problem.scores)
    assert parts[0][0].result()["macro_average_precision"] == macro_average_precision(problem.truth, problem.scores)
    assert parts[0][1].result() == {
        "micro_auc": micro_auc(problem.truth, problem.scores),
        "micro_average_precision": micro_average_precision(problem.truth, problem.scores),
    }


def test_accumulators_refuse_what_does_not_fit():
    truth, scores = np.eye(3), np.arange(9.0).reshape(3, 3)
    labels = LabelAccumulator(truth, [0.0, 4.0, 8.0])
    labels.update(scores[:2])
    with pytest.raises(DataError, match="2 of 3 rows"):
        labels.auc()
    with pytest.raises(DataError, match="same Y_true"):
        labels.merge(LabelAccumulator(truth, [0.0, 4.0, 9.0]))
    with pytest.raises(DataError, match="3 true cells"):
        LabelAccumulator(truth, [0.0, 4.0])
    for make in (MicroAccumulator, lambda values: LabelAccumulator([[1]], values)):
        with pytest.raises(DataError, match="NaN"):
            make([np.nan])
    with pytest.raises(DataError, match="dimension"):
        MicroAccumulator([1.0]).update([1.0, 2.0])
    with pytest.raises(DataError, match="0 cells"):
        MicroAccumulator([1.0]).auc()
    with pytest.raises(DataError, match="same scores_of_true"):
        MicroAccumulator([1.0]).merge(MicroAccumulator([2.0]))
