"""Found examples: ridges against scikit-learn, scores against simulated labels, decisions against all others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from streamlabel import StreamingLabelClassifier
from streamlabel.streaming import found as learn
from streamlabel.streaming import found_trials as found
from streamlabel.streaming.calibration import sigmoid_of_chances
from streamlabel.streaming.found import Pool
from streamlabel.streaming.found_trials import size_class
from streamlabel.streaming.judgement import Calibration, Judgement

NO_SCORES = np.empty(0)


def made(log_odds, *, mean=0.0, deviation=1.0):
    """A judgement of scores that are the log-odds themselves."""
    log_odds = np.asarray(log_odds, dtype=np.float64)
    return Judgement(log_odds, log_odds, mean, deviation)


def features(X, share, ratio, weights, centre):
    """Rows whose inner products are the kernel: own features, and the scores of the past classifiers."""
    return np.hstack((np.sqrt(1 - share) * X, np.sqrt(share * ratio) * (X @ weights - centre)))


def test_ridges_on_a_background_are_scikit_learns(rng):
    B, J, yes, weights = (rng.normal(size=shape) for shape in ((30, 8), (20, 8), (4, 8), (8, 5)))
    ridges = found._Backgrounds(B, J, weights, J @ weights)
    own, unseen, spreads = ridges.learn(yes)
    centre = (B @ weights).mean(axis=0)
    energy, past_energy = B.var(axis=0).sum(), (B @ weights).var(axis=0).sum()
    rows, target = np.vstack((yes, B)), np.repeat([1.0, 0.0], [4, 30])
    for at, (share, strength) in enumerate(found._BASES):
        made_rows, B_, J_ = (features(X, share, energy / past_energy, weights, centre) for X in (rows, B, J))
        ridge = Ridge(alpha=strength * energy).fit(made_rows, target)
        np.testing.assert_allclose(own[at], ridge.predict(J_), atol=1e-10)
        assert spreads[at] == pytest.approx(ridge.predict(B_).std())
        for row in range(4):
            left = np.delete(np.arange(34), row)
            alone = Ridge(alpha=strength * energy).fit(made_rows[left], target[left])
            assert unseen[at, row] == pytest.approx(alone.predict(made_rows[[row]])[0])


def test_a_ranking_is_judged_by_the_mean_of_auc_and_average_precision(rng):
    truth, scores = (rng.random((60, 6)) < 0.2).astype(float), rng.normal(size=(60, 6))
    expected = [
        50.0 * (roc_auc_score(truth[:, j], scores[:, j]) + average_precision_score(truth[:, j], scores[:, j]))
        for j in range(6)
    ]
    np.testing.assert_allclose(found._ranking(truth, scores), expected)


def trials(rng, *, name_helps, examples=True):
    """Twenty trials in which the fifth ridge is the best, and the first of two directions of a name helps, or none."""
    n_bases = len(found._BASES)
    good = np.where(np.arange(n_bases) == 4, 2.0, 1.0)[:, None]
    made_trials = []
    for _ in range(20):
        truth = (rng.random(200) < 0.1).astype(float)
        own = examples * (rng.normal(size=(n_bases, 200)) + good * truth)
        named = rng.normal(size=(2, 200))
        named[0] += 2.0 * name_helps * truth
        made_trials.append(found._Trial(truth, own, np.empty((n_bases, 0)), np.ones(n_bases), named, np.empty((2, 0))))
    return made_trials


def test_a_higher_threshold_is_told_where_nine_of_ten_are_expected_to_be_right():
    sure = made(np.linspace(-6.0, 5.0, 400), deviation=0.3)
    threshold, precision, recall = sure.estimate(sure.threshold()).raised
    fires = sure.pool > threshold
    assert threshold == sure.threshold(0.9)
    assert precision == pytest.approx(sure.chances[fires].mean())
    assert 0.9 <= precision < 0.91
    assert recall == pytest.approx(sure.chances[fires].sum() / sure.chances.sum())
    assert sure.estimate(sure.threshold(0.95)).raised is None  # it would be lower
    assert made(np.linspace(-6.0, 1.0, 400)).estimate(0.0).raised is None  # nowhere


def test_the_best_ridge_is_chosen_and_a_name_only_where_it_gains(rng):
    base, weights, gain, reached, alone = found._choose(trials(rng, name_helps=False), 5)
    assert (base, weights, gain) == (4, [0.0, 0.0], 0.0)
    plain = [at for at, (share, _) in enumerate(found._BASES) if share == 0.0]
    assert reached == alone if base in plain else reached > alone + 5
    base, weights, gain, more, alone = found._choose(trials(rng, name_helps=True), 5)
    assert (base, weights[1]) == (4, 0.0)
    assert more > reached + 2
    assert weights[0] > 0
    assert gain > 2


def test_the_reference_of_a_name_alone_is_the_mean_over_all_orders(rng):
    truth = np.repeat([1.0, 0.0], [6, 34])[:, None]
    drawn = [found._ranking(truth, rng.normal(size=(40, 1)))[0] for _ in range(4000)]
    assert found._any_order(truth)[0] == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / np.sqrt(4000))


def test_without_examples_a_name_is_compared_with_any_order(rng):
    assert not any(found._choose(trials(rng, name_helps=False, examples=False), 0)[1])
    _, weights, gain, reached, alone = found._choose(trials(rng, name_helps=True, examples=False), 0)
    assert weights[0] > 0
    assert reached - alone == pytest.approx(gain, abs=0.011)  # rounded to hundredths
    assert gain > 20


@pytest.mark.parametrize(("n_yes", "size"), [(0, 0), (1, 1), (3, 2), (4, 5), (7, 5), (8, 10), (15, 20), (1000, 50)])
def test_the_number_of_yes_is_rounded_by_ratio(n_yes, size):
    assert size_class(n_yes) == size


@pytest.mark.parametrize(("n_rows", "n_back", "n_rest"), [(10, 5, 5), (11, 5, 6), (900, 400, 500), (3000, 400, 2000)])
def test_a_pool_is_parted_once(n_rows, n_back, n_rest):
    rows = np.arange(n_rows, dtype=np.float64)[:, None]
    pool = Pool.of(rows, 3)
    back, rest = pool.background[:, 0], pool.rest[:, 0]
    assert (len(back), len(rest)) == (n_back, n_rest)
    assert len(np.union1d(back, rest)) == n_back + n_rest
    np.testing.assert_array_equal(Pool.of(rows, 3).background, pool.background)
    assert n_rows == 10 or not np.array_equal(Pool.of(rows, 4).background, pool.background)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_a_background_is_drawn_from_where_the_examples_were_found(rng, as_rows):
    X, pool = rng.random((60, 7)), Pool(as_rows(rng.random((40, 7))), as_rows(rng.random((5, 7))))
    assert pool.beside(as_rows(X), as_rows(rng.random((3, 7))), 0) is pool, "examples of nowhere"
    examples = np.vstack((X[:30], rng.random((10, 7))))  # three of four are rows of X
    found = sparse.csr_array(pool.beside(as_rows(X), as_rows(examples), 0).background).toarray()
    given = {row.tobytes() for row in sparse.csr_array(pool.background).toarray()}
    old = [row for row in found if row.tobytes() not in given]
    assert len(found) - len(old) == 25
    assert 0 < len(old) < 15, "those that are examples are left out"
    assert {row.tobytes() for row in old} <= {row.tobytes() for row in X[30:]}


def test_examples_of_fit_do_not_teach_what_is_old(rng):
    """The rows of fit have a mark that those of the pool have not; the label depends on another feature."""
    old, new = (rng.normal(size=(400, 12)) for _ in range(2))
    old[:, 0] += 3.0
    yes = old[old[:, 1] > 1.2][:20]
    Y = (old[:, 2:8] > 1.0).astype(int)
    model = StreamingLabelClassifier().fit(old, Y).add_found("late", yes, pool=new)
    weights = model.coef_[-1]
    assert abs(weights[0]) < 0.5 * weights[1]


@pytest.mark.parametrize("n_answers", [0, 3, 30])
def test_answers_move_the_labels_own_part_as_bayes_says(rng, n_answers):
    log_odds = rng.normal(-1.0, 1.0, n_answers)
    answers = (rng.random(n_answers) < expit(log_odds + 1.5)).astype(float)
    mean, deviation = Calibration((0.0, 0.0, 0.0, 0.0), 1.2).updated(log_odds, answers)
    grid = np.linspace(-8, 8, 4001)
    margin = log_odds + grid[:, None]
    log_posterior = -0.5 * (grid / 1.2) ** 2 + (answers * margin - np.logaddexp(0, margin)).sum(axis=1)
    posterior = np.exp(log_posterior - log_posterior.max())
    posterior /= posterior.sum()
    true_mean = posterior @ grid
    assert mean == pytest.approx(true_mean, abs=0.1 * 1.2)
    assert mean == pytest.approx(grid[log_posterior.argmax()], abs=0.005)
    assert deviation == pytest.approx(np.sqrt(posterior @ (grid - true_mean) ** 2), rel=0.1)


def simulated_trials(rng, coefficients, deviation, n_labels, n_rows=1000):
    """Labels whose answers follow the model: (truth, scores, yes scores)."""
    calibration, labels = Calibration(coefficients, deviation), []
    for _ in range(n_labels):
        scores, yes = rng.gamma(2.0, 1.0, n_rows), rng.gamma(2.0, 1.0, 5) + 2.0
        chances = expit(calibration.log_odds(scores, scores, yes)[0] + deviation * rng.normal())
        labels.append(((rng.random(n_rows) < chances).astype(float), scores, yes))
    return labels


def test_the_meaning_of_scores_is_found_from_trials(rng):
    coefficients = (-4.0, 2.5, -0.5, -0.3)
    calibration = found._calibrate(simulated_trials(rng, coefficients, 0.8, 150), found.DEFAULTS[5].calibration)
    assert calibration.deviation == pytest.approx(0.8, abs=0.2)
    scores, yes = rng.gamma(2.0, 1.0, 1000), np.full(5, 4.0)
    upper = np.sort(scores)[-150:]
    given, true = (one.log_odds(upper, scores, yes)[0] for one in (calibration, Calibration(coefficients, 0.8)))
    np.testing.assert_allclose(given, true, atol=0.5)
    assert abs((given - true).mean()) < 0.3


def test_labels_that_do_not_differ_have_a_small_deviation(rng):
    alike = found._calibrate(simulated_trials(rng, (-3.0, 2.0, 0.0, 0.0), 0.0, 60), found.DEFAULTS[5].calibration)
    apart = found._calibrate(simulated_trials(rng, (-3.0, 2.0, 0.0, 0.0), 2.0, 60), found.DEFAULTS[5].calibration)
    assert alike.deviation < 0.4
    assert apart.deviation > 1.4


def test_trials_in_which_no_score_stands_out_say_nothing():
    truth, default = np.repeat([1.0, 0.0], [5, 95]), found.DEFAULTS[0].calibration
    assert found._calibrate([(truth, np.zeros(100), NO_SCORES)] * 9, default) == default
    assert found._calibrate([(truth, 1.0 - truth, NO_SCORES)] * 9, default) == default


def test_no_other_threshold_has_a_better_expected_f1(rng):
    """Expected over labels and answers that are drawn here."""
    judgement = made(rng.normal(-3.0, 2.0, 300), mean=0.3, deviation=0.8)
    threshold = judgement.threshold()
    u = 0.3 + 0.8 * rng.normal(size=(400, 1))
    truth = rng.random((400, 300)) < expit(judgement.log_odds + u)

    def expected(level):
        said = judgement.pool > level
        return f1_score(truth.T, np.tile(said[:, None], 400), average="macro", zero_division=0.0)

    levels = np.quantile(judgement.pool, np.linspace(0.5, 0.99, 50))
    assert expected(threshold) > max(map(expected, levels)) - 0.01


@pytest.mark.parametrize("precision", [0.3, 0.6, 0.9])
def test_a_threshold_for_a_precision_is_the_lowest_that_has_it(rng, precision):
    judgement = made(rng.normal(-1.0, 2.0, 200), deviation=0.5)
    threshold = judgement.threshold(precision)
    u = 0.5 * rng.normal(size=2000)
    chances = np.mean([expit(judgement.log_odds + one) for one in u], axis=0)
    said = np.sort(chances[judgement.pool > threshold])
    assert said.mean() >= precision - 0.01
    rest = np.sort(chances[judgement.pool <= threshold])
    if len(said) < 100:  # no label says yes to more than half
        assert np.append(said, rest[-3:]).mean() < precision + 0.01


def test_a_threshold_that_is_out_of_reach_says_never():
    judgement = made([-5.0, -4.0, -3.0])
    assert not (judgement.pool > judgement.threshold(0.9)).any()


def test_equal_scores_are_not_parted():
    judgement = made([2.0, 0.0, 0.0, 0.0, -9.0], deviation=0.1)
    for threshold in (judgement.threshold(), judgement.threshold(0.55)):
        assert threshold not in judgement.pool
        assert (judgement.pool > threshold).sum() in (1, 4, 5)


def measured(truth, said, pool):
    """The precision, recall, average precision and rate of answers."""
    hits = (truth & said).sum()
    ranked = average_precision_score(truth, pool) if truth.any() else 0.0
    return hits / said.sum(), hits / max(truth.sum(), 1), ranked, truth.mean()


def test_intervals_hold_what_they_say(rng):
    """Of labels drawn from the model nine out of ten lie in each interval: a bit more, since counts are whole."""
    calibration = Calibration((-4.0, 2.5, 0.0, -0.2), 1.0)
    inside = []
    for _ in range(150):
        pool = rng.gamma(2.0, 1.0, 600)
        judgement = Judgement.of(calibration, pool, NO_SCORES, NO_SCORES, NO_SCORES)
        threshold = judgement.threshold()
        estimate = judgement.estimate(threshold)
        truth = rng.random(600) < expit(judgement.log_odds + rng.normal())
        stated = (estimate.precision, estimate.recall, estimate.average_precision, estimate.rate)
        true = measured(truth, pool > threshold, pool)
        inside.append([low <= value <= high for value, (_, low, high) in zip(true, stated, strict=True)])
        assert estimate.fires == (pool > threshold).mean()
    covered = np.mean(inside, axis=0)
    assert (covered > 0.84).all(), covered
    assert (covered < 0.98).all(), covered


def test_what_labels_miss_is_found_from_trials_and_stated(rng):
    """A name is in one text of twenty; as many texts again are about it and have none of its words."""

    def draw():
        scores = np.where(rng.random(800) < 0.05, rng.gamma(4.0, 1.0, 800), 0.0)
        chances = np.where(scores > 0, 0.7, expit(-3.5 + rng.normal()))
        return (rng.random(800) < chances).astype(float), scores, NO_SCORES

    trials = [draw() for _ in range(100)]
    learned = found._calibrate(trials, found.DEFAULTS[0].calibration).of_later_labels()
    inside = {one: [] for one in (learned, replace(learned, lower=(0.0, 0.0)))}
    for truth, scores, _ in (draw() for _ in range(100)):
        for one, kept in inside.items():
            judgement = Judgement.of(one, scores, NO_SCORES, NO_SCORES, NO_SCORES)
            threshold = judgement.threshold()
            estimate = judgement.estimate(threshold)
            _, recall, _, rate = measured(truth > 0, scores > threshold, scores)
            stated = (recall, estimate.recall), (rate, estimate.rate)
            kept.append([low <= value <= high for value, (_, low, high) in stated])
    told, untold = (np.mean(kept, axis=0) for kept in inside.values())
    assert (told > 0.84).all(), told
    assert (untold < 0.6).all(), untold


def test_answers_to_questions_make_intervals_narrower_and_true(rng):
    """Of 640 texts 40 of the higher half are asked; the intervals are about such texts, those that were asked, too."""
    calibration = Calibration((-4.0, 2.5, 0.0, -0.2), 1.5)
    inside, widths = [], []
    for _ in range(150):
        scores, u = np.sort(rng.gamma(2.0, 1.0, 640)), 1.5 * rng.normal()
        chances = expit(calibration.log_odds(scores, scores, NO_SCORES)[0] + u)
        chosen = np.isin(np.arange(640), rng.choice(np.arange(320, 640), 40, replace=False))
        answers = (rng.random(40) < chances[chosen]).astype(float)
        before = Judgement.of(calibration, scores, NO_SCORES, NO_SCORES, NO_SCORES)
        after = Judgement.of(calibration, scores[~chosen], NO_SCORES, scores[chosen], answers)
        truth, threshold = rng.random(640) < chances, after.threshold()
        estimates = before.estimate(threshold), after.estimate(threshold)
        assert [(estimate.n_pool, estimate.n_asked) for estimate in estimates] == [(640, 0), (640, 40)]
        _, low, high = estimates[1].rate
        inside.append(low <= truth.mean() <= high)
        widths.append([estimate.rate[2] - estimate.rate[1] for estimate in estimates])
    assert 0.84 < np.mean(inside) < 0.98
    assert np.mean(widths, axis=0)[1] < 0.7 * np.mean(widths, axis=0)[0]


def test_a_label_that_never_fires_has_no_precision():
    estimate = made([-3.0, -2.0, -1.0]).estimate(5.0)
    assert np.isnan(estimate.precision).all()
    assert estimate.recall == (0.0, 0.0, 0.0)
    assert (estimate.fires, estimate.n_pool) == (0.0, 3)


def test_chances_become_the_nearest_sigmoid(rng):
    scores = rng.normal(size=300)
    chances = expit(1.7 * scores - 2.0 + 0.5 * np.sin(5 * scores))
    slope, offset = sigmoid_of_chances(scores, chances)
    reference = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    reference.fit(
        np.tile(scores, 2)[:, None], np.repeat([1, 0], 300), sample_weight=np.concatenate((chances, 1.0 - chances))
    )
    assert (slope, offset) == pytest.approx((reference.coef_[0, 0], reference.intercept_[0]), abs=1e-3)


def test_a_sigmoid_is_found_where_few_scores_stand_far_out():
    """A name alone and some noes: four texts have a word of it, and of all others the score is the same."""
    scores = np.append(np.full(792, -0.07), [16.69, 14.29, 12.54, 12.41])
    chances = np.append(np.full(792, 0.00098), [0.2329, 0.1856, 0.1552, 0.144])
    slope, offset = sigmoid_of_chances(scores, chances)

    def loss(at):
        margin = at[0] * scores + at[1]
        return float((np.logaddexp(0.0, margin) - chances * margin).sum())

    best = minimize(loss, [0.3, -6.8], method="BFGS")
    assert loss((slope, offset)) == pytest.approx(best.fun, abs=1e-6)
    assert expit(slope * scores + offset).sum() == pytest.approx(chances.sum(), rel=1e-4)


def test_the_part_of_a_name_is_its_share_of_the_variance(rng):
    one, other = rng.normal(size=(2, 4000))
    assert learn._part(one, one + other) == pytest.approx(0.5, abs=0.05)
    assert learn._part(2.0 * one, 2.0 * one + other) == pytest.approx(0.8, abs=0.05)
    assert learn._part(one, one) == pytest.approx(1.0)
    assert learn._part(np.zeros(5), np.ones(5)) == 0.0
