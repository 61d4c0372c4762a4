from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn import metrics as sk

from streamlabel.errors import DataError
from streamlabel.metrics.ranking import (
    RANKING_METRICS,
    RankingAccumulator,
    coverage,
    inverse_propensity,
    label_ranking_average_precision,
    ndcg_at_k,
    precision_at_k,
    propensity_scored_precision_at_k,
    ranking_loss,
)

# Two rows worked out by hand. Row 0 ranks the columns 2, 0, 3, 1 and has the true labels 0 and 1;
# row 1 ranks 1, 0, 2, 3 (0 and 2 are tied) and has the true label 2.
TRUTH = np.array([[1, 1, 0, 0], [0, 0, 1, 0]])
SCORES = np.array([[0.6, 0.1, 0.9, 0.3], [0.5, 0.8, 0.5, 0.2]])
WEIGHTS = np.array([2.0, 5.0, 3.0, 1.0])


@pytest.mark.parametrize(
    ("k", "expected"), [(1, 0), (2, (1 / 2 + 0) / 2), (3, (1 / 3 + 1 / 3) / 2), (4, (2 / 4 + 1 / 4) / 2)]
)
def test_precision_by_hand(k, expected):
    assert precision_at_k(TRUTH, SCORES, k) == pytest.approx(expected, abs=1e-15)


def test_ndcg_by_hand():
    second, third, fourth = 1 / math.log2(3), 1 / math.log2(4), 1 / math.log2(5)
    assert ndcg_at_k(TRUTH, SCORES, 3) == pytest.approx((second / (1 + second) + third) / 2)
    assert ndcg_at_k(TRUTH, SCORES, 4) == pytest.approx(((second + fourth) / (1 + second) + third) / 2)


def test_psp_by_hand():
    assert propensity_scored_precision_at_k(TRUTH, SCORES, WEIGHTS, 2) == pytest.approx(2 / (2 + 5 + 3))
    assert propensity_scored_precision_at_k(TRUTH, SCORES, WEIGHTS, 3) == pytest.approx((2 + 3) / (2 + 5 + 3))
    assert propensity_scored_precision_at_k(TRUTH, SCORES, WEIGHTS, 1) == 0


def test_ranking_loss_coverage_and_lrap_by_hand():
    # row 0: wrong pairs (0, 2), (1, 2), (1, 3) of 4; row 1: column 1 is above, column 0 is tied: 2 of 3
    assert ranking_loss(TRUTH, SCORES) == pytest.approx((3 / 4 + 2 / 3) / 2)
    assert coverage(TRUTH, SCORES) == (4 + 3) / 2
    assert label_ranking_average_precision(TRUTH, SCORES) == pytest.approx(((1 / 2 + 2 / 4) / 2 + 1 / 3) / 2)


def test_k_beyond_the_labels_divides_by_k():
    assert precision_at_k([[1, 1]], [[0.3, 0.2]], 5) == 2 / 5
    assert ndcg_at_k([[1, 1]], [[0.3, 0.2]], 5) == pytest.approx(1)
    assert propensity_scored_precision_at_k([[1, 1]], [[0.3, 0.2]], [2, 3], 5) == 1


def test_rows_with_no_or_all_labels():
    truth, scores = [[0, 0, 0], [1, 1, 1]], [[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]
    assert precision_at_k(truth, scores, 2) == 0.5
    assert ndcg_at_k(truth, scores, 2) == 0.5
    assert ranking_loss(truth, scores) == 0
    assert coverage(truth, scores) == 1.5
    assert label_ranking_average_precision(truth, scores) == 1
    assert propensity_scored_precision_at_k([[0, 0]], [[1, 2]], [2, 3], 1) == 0


def test_missing_scores_are_below_all_and_never_proposed():
    truth = np.array([[1, 1, 0, 0]])
    scores = sparse.csr_array(([-3.0, -9.0], ([0, 0], [2, 1])), shape=(1, 4))  # ranking 2, 1; 0 and 3 are missing
    assert precision_at_k(truth, scores, 4) == 1 / 4
    # true 1: only 3 is below it; true 0: tied with 3. Of the pairs (1,2) (1,3) (0,2) (0,3) only (1,3) is right.
    assert ranking_loss(truth, scores) == 3 / 4
    assert coverage(truth, scores) == 4
    assert label_ranking_average_precision(truth, scores) == pytest.approx((1 / 2 + 2 / 4) / 2)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (ranking_loss, sk.label_ranking_loss),
        (coverage, sk.coverage_error),
        (label_ranking_average_precision, sk.label_ranking_average_precision_score),
    ],
)
def test_against_scikit_learn(full_problem, ours, theirs):
    expected = theirs(full_problem.truth, full_problem.scores)
    assert ours(full_problem.truth, full_problem.scores) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 5, 23])
def test_ndcg_against_scikit_learn(full_problem, k):
    # scikit-learn averages over the orders of tied labels; scores that break ties by column make both definitions meet
    n_labels = full_problem.scores.shape[1]
    untied = full_problem.scores - 1e-6 * np.arange(n_labels)
    expected = sk.ndcg_score(full_problem.truth, untied, k=k, ignore_ties=True)
    assert ndcg_at_k(full_problem.truth, full_problem.scores, k) == pytest.approx(expected, abs=1e-12)


# -- napkinXC ---------------------------------------------------------------------------------------------------------
# Same conventions: the divisor is k, a row with no true label counts 0, a missing score of a sparse row is never
# proposed. Different there: ties fall as an unstable sort likes; a dense -inf is ranked like any score; PSP is 0/0 when
# no row has a label; Hamming loss is not divided by the number of labels. So on tied scores napkinXC gets the ranking
# as lists, which it takes in the order given.


def napkin_values(truth, ranking, weights, k):
    napkin = pytest.importorskip("napkinxc.metrics")
    return {
        "P@k": napkin.precision_at_k(truth, ranking, k=k),
        "nDCG@k": napkin.ndcg_at_k(truth, ranking, k=k),
        "PSP@k": napkin.psprecision_at_k(truth, ranking, weights, k=k),
    }


def our_values(problem, scores, weights, k):
    accumulator = RankingAccumulator(range(1, k + 1), metrics=("P@k", "nDCG@k", "PSP@k"), inverse_propensities=weights)
    accumulator.update(problem.truth, scores)
    return accumulator.result()


def assert_same(ours, theirs):
    for name, values in theirs.items():
        for place, value in enumerate(values, start=1):
            assert ours[name.replace("@k", f"@{place}")] == pytest.approx(value, abs=1e-12), (name, place)


def test_inverse_propensity_against_napkinxc(full_problem):
    napkin = pytest.importorskip("napkinxc.metrics")
    for A, B in ((0.55, 1.5), (0.6, 2.6)):
        expected = napkin.Jain_et_al_inverse_propensity(full_problem.truth, A=A, B=B)
        np.testing.assert_allclose(inverse_propensity(full_problem.truth, A=A, B=B), expected, rtol=1e-14)


def test_dense_scores_without_ties_against_napkinxc(distinct_problem):
    truth, scores = distinct_problem.truth, distinct_problem.scores
    weights = inverse_propensity(truth)
    assert_same(our_values(distinct_problem, scores, weights, 5), napkin_values(truth, scores, weights, 5))


def test_ranked_lists_against_napkinxc(problem):
    weights = inverse_propensity(problem.truth)
    order = np.argsort(-problem.scores, axis=1, kind="stable")
    lists = [[int(j) for j in row if problem.scores[i, j] > -np.inf] for i, row in enumerate(order)]
    assert_same(our_values(problem, problem.scores, weights, 7), napkin_values(problem.truth, lists, weights, 7))


def test_sparse_scores_against_napkinxc(rng):
    scores = sparse.random_array((60, 30), density=0.1, rng=rng, format="csr")  # some rows store fewer than k
    truth = (rng.random((60, 30)) < 0.1).astype(int)
    weights = inverse_propensity(truth)
    accumulator = RankingAccumulator((1, 2, 3, 4, 5), metrics=("P@k", "nDCG@k", "PSP@k"), inverse_propensities=weights)
    accumulator.update(truth, scores)
    theirs = napkin_values(sparse.csr_matrix(truth), sparse.csr_matrix(scores), weights, 5)
    assert_same(accumulator.result(), theirs)


def test_napkinxc_on_ties_stays_between_the_best_and_the_worst_tie_order(rng):
    napkin = pytest.importorskip("napkinxc.metrics")
    scores = rng.integers(0, 3, (50, 40)).astype(float)
    truth = (rng.random((50, 40)) < 0.2).astype(int)
    theirs = napkin.precision_at_k(truth, scores, k=5)[4]
    worst, best = (precision_at_k(truth, scores + 0.1 * sign * truth, 5) for sign in (-1, 1))
    assert worst <= theirs <= best
    assert worst <= precision_at_k(truth, scores, 5) <= best
    assert worst < best


# -- doors ------------------------------------------------------------------------------------------------------------


def test_perfect_and_reversed_rankings(rng):
    truth = (rng.random((30, 9)) < 0.4).astype(int)
    truth[:, 0], truth[:, 1] = 1, 0
    assert ranking_loss(truth, truth) == 0
    assert ranking_loss(truth, -truth) == 1
    assert ndcg_at_k(truth, truth, 3) == pytest.approx(1)
    assert propensity_scored_precision_at_k(truth, truth * [9, 8, 7, 6, 5, 4, 3, 2, 1], np.arange(9, 0, -1), 3) == 1
    assert coverage(truth, truth) == pytest.approx(truth.sum() / 30)


def test_inverse_propensity_refuses_too_few_rows():
    with pytest.raises(DataError, match="at least 3"):
        inverse_propensity([[1, 0], [0, 1]])


@pytest.mark.parametrize("weights", [None, "abcd", [1.0, 2.0], [1, 2, np.nan, 4], [1, 2, 0, 4], [[1, 2, 3, 4]]])
def test_bad_inverse_propensities(weights):
    with pytest.raises(DataError, match=r"inverse.propensit"):
        propensity_scored_precision_at_k(TRUTH, SCORES, weights)


def test_accumulator_refuses_what_it_does_not_know():
    with pytest.raises(DataError, match="P@K"):
        RankingAccumulator(metrics=["P@K"])
    with pytest.raises(DataError, match="k is empty"):
        RankingAccumulator((), metrics=["P@k"])
    with pytest.raises(DataError, match="same measures"):
        RankingAccumulator((1,)).merge(RankingAccumulator((2,)))
    with pytest.raises(DataError, match="no row"):
        RankingAccumulator((1,)).result()


def test_parts_in_any_order_merge_to_the_same_bits(problem):
    weights = inverse_propensity(problem.truth)
    make = lambda: RankingAccumulator(metrics=RANKING_METRICS, inverse_propensities=weights)  # noqa: E731
    whole, left, right = make(), make(), make()
    whole.update(problem.truth, problem.scores)
    left.update(problem.truth[30:], problem.sparse_scores[30:])
    right.update(problem.truth[11:30], problem.scores[11:30])
    right.update(problem.truth[:11], problem.sparse_scores[:11])
    left.merge(right)
    assert left.result() == whole.result()
