"""Thresholds against all possible ones, sigmoids against a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Ridge
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score

from streamlabel import StreamingLabelClassifier
from streamlabel.streaming.calibration import best_f1_thresholds, fit_sigmoids, sampled_estimates, sigmoid


@pytest.fixture
def judged(rng):
    answers = (rng.random((200, 5)) < [0.5, 0.2, 0.05, 0.3, 0.1]).astype(float)
    return answers * 0.4 + rng.standard_normal((200, 5)) * 0.3, answers


def test_no_other_threshold_has_a_better_f1(judged):
    scores, answers = judged
    for j, threshold in enumerate(best_f1_thresholds(scores, answers)):
        found = f1_score(answers[:, j], scores[:, j] > threshold)
        every = [f1_score(answers[:, j], scores[:, j] > other) for other in np.append(scores[:, j], -np.inf)]
        assert found == pytest.approx(max(every))


def test_a_threshold_does_not_part_equal_scores():
    scores = np.array([[0.9], [0.5], [0.5], [0.5], [0.1]])
    answers = np.array([[1.0], [1.0], [1.0], [0.0], [0.0]])
    threshold = best_f1_thresholds(scores, answers)[0]
    assert 0.1 < threshold < 0.5


def test_without_a_positive_nothing_is_said():
    assert np.isnan(best_f1_thresholds(np.ones((3, 1)), np.zeros((3, 1)))).all()
    assert np.isnan(best_f1_thresholds(np.empty((0, 2)), np.empty((0, 2)))).all()


def test_sigmoids_minimise_platts_loss(judged):
    scores, answers = judged
    slope, offset = fit_sigmoids(scores, answers)
    for j in range(scores.shape[1]):
        yes = answers[:, j].sum()
        target = np.where(answers[:, j] > 0, (yes + 1) / (yes + 2), 1 / (200 - yes + 2))

        def loss(parameters, s=scores[:, j], t=target):
            margin = parameters[0] * s + parameters[1]
            return (np.logaddexp(0, margin) - t * margin).sum()

        best = minimize(loss, [1.0, 0.0], method="BFGS").fun
        assert loss([slope[j], offset[j]]) <= best + 1e-4


def test_probabilities_have_the_rate_of_the_label(judged):
    scores, answers = judged
    found = sigmoid(scores, *fit_sigmoids(scores, answers)).mean(axis=0)
    np.testing.assert_allclose(found, answers.mean(axis=0), atol=0.02)


def test_separable_and_one_sided_labels_stay_finite():
    scores = np.array([[0.0, 0.2, 0.7], [1.0, 0.1, 0.7], [2.0, 0.3, 0.7], [3.0, 0.4, 0.7]])
    answers = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    slope, offset = fit_sigmoids(scores, answers)
    assert np.isfinite(slope).all()
    assert np.isfinite(offset).all()
    assert slope[0] > 0
    assert slope[1] == 1.0  # nobody said yes
    assert slope[2] == 1.0  # all scores equal


def test_a_label_that_scores_the_wrong_way_is_not_turned_round(rng):
    scores = rng.standard_normal((100, 1))
    answers = (scores < 0).astype(float)
    slope, offset = fit_sigmoids(scores, answers)
    assert slope[0] == 0.0
    assert 1.0 / (1.0 + np.exp(-offset[0])) == pytest.approx((answers.sum() + 1.0) / 102.0)  # its rate is all it says
    few, yes = np.array([[0.1], [0.2], [0.3], [0.0]]), np.array([[0.0], [0.0], [0.0], [1.0]])
    slope, offset = fit_sigmoids(few, yes)  # the one yes is below all others
    assert (slope[0], offset[0]) == (0.0, pytest.approx(np.log(2.0 / 4.0)))


def test_estimates_from_a_sample_are_counts(judged):
    scores, answers = judged
    for j, found in enumerate(sampled_estimates(scores, answers, 0.3)):
        y, said = answers[:, j], scores[:, j] > 0.3
        assert found.precision[0] == pytest.approx(precision_score(y, said))
        assert found.recall[0] == pytest.approx(recall_score(y, said))
        assert found.average_precision[0] == pytest.approx(average_precision_score(y, scores[:, j]))
        assert (found.rate[0], found.fires, found.n_pool, found.n_asked) == (y.mean(), said.mean(), 200, 200)
        for value, low, high in (found.precision, found.recall, found.average_precision, found.rate):
            assert 0.0 <= low <= value <= high <= 1.0
    (nothing,) = sampled_estimates(scores[:, :1], np.zeros((200, 1)), "f1")
    assert np.isnan(nothing.precision).all()
    assert np.isnan(nothing.recall).all()
    assert nothing.rate[:2] == (0.0, 0.0)


@pytest.mark.parametrize(("n_rows", "rate"), [(60, 0.2), (300, 0.05), (1000, 0.2)])
def test_intervals_from_a_sample_hold_what_they_say(n_rows, rate, rng):
    """On 200 samples of a population that is known, with each label's own threshold of best F1."""
    draw = lambda y: rng.standard_normal(y.shape) + 1.5 * y  # noqa: E731
    answers, truth = (rng.random((n_rows, 200)) < rate).astype(float), rng.random(100_000) < rate
    scores, population = draw(answers), draw(truth)
    held, gaps = [], []
    for cut, found in zip(best_f1_thresholds(scores, answers), sampled_estimates(scores, answers, "f1"), strict=True):
        said = population > cut
        real = (said & truth).sum() / said.sum(), (said & truth).sum() / truth.sum(), rate
        parts = found.precision, found.recall, found.rate
        held.append([np.isnan(low) or low <= value <= high for value, (_, low, high) in zip(real, parts, strict=True)])
        gaps.append(found.precision[0] - real[0])
    assert (np.mean(held, axis=0) > 0.84).all()
    assert -0.15 < np.nanmean(gaps) < 0.02  # where the threshold was found, precision looks better than it is


def test_thresholds_are_judged_by_all_rows_where_rows_are_few(rng):
    """By scores of classifiers that were learned without the row, one refit a row."""
    X = rng.standard_normal((150, 5))
    Y = (X[:, :4] + rng.standard_normal((150, 4)) > 0.5).astype(float)
    model = StreamingLabelClassifier(beta=3.0, loss="squared", lam=None, metric=None).fit(X, Y[:, :3])
    model.add_labels(X, Y[:, 3])
    left = [np.delete(np.arange(150), row) for row in range(150)]
    loo = np.array([Ridge(alpha=3.0).fit(X[kept], Y[kept]).predict(X[[row]])[0] for row, kept in enumerate(left)])
    alone = best_f1_thresholds(loo, Y)
    np.testing.assert_allclose(model.thresholds_[3], alone[3], rtol=1e-6)
    np.testing.assert_allclose(fit_sigmoids(loo, Y)[0], model.state_.decisions.slope, rtol=1e-6)
