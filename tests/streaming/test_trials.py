"""How far to trust the past: the choice follows the trials, and trials say what is true by construction."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score, roc_auc_score

from streamlabel import StreamingLabelClassifier
from streamlabel.metrics.ranking import precision_at_k
from streamlabel.streaming import trials as trials_module
from streamlabel.streaming.trials import (
    LAM,
    LAMS,
    RECIPES,
    Judged,
    Trial,
    Way,
    budget_class,
    choose_recipe,
    measure,
    own_lines,
    promising,
    run_trial,
)


def trial_of(measures):
    return Trial(np.ones(2), measures, np.tile([1.0, 0.0], (len(RECIPES), 1)))


def trials(**gains):
    """Six trials in which recipes have these mean gains on all five measures, with a little spread."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(6):
        measures = np.full((len(RECIPES), 5), 50.0) + rng.normal(0, 0.01, (len(RECIPES), 5))
        for name, gain in gains.items():
            measures[int(name[1:])] += gain
        found.append(trial_of(measures))
    return found


def test_own_ridge_is_first_and_stays_where_nothing_helps():
    assert RECIPES[0] == Way(0.0, 0.0, None, 1.0)
    chosen = choose_recipe(trials(**{f"r{i}": -1.0 for i in range(1, len(RECIPES))}))
    assert (chosen.share, chosen.anchored, chosen.strength) == (0.0, False, 1.0)


def test_the_largest_gain_wins_if_nothing_is_lost():
    best = RECIPES.index(Way(0.0, 0.3, LAM, 3.0))
    chosen = choose_recipe(trials(**{f"r{best}": 2.0, "r1": 1.0}))
    assert (chosen.share, chosen.anchored) == (0.3, True)
    assert chosen.strength == pytest.approx(3.0)


@pytest.mark.parametrize("lam", LAMS)
def test_the_penalty_of_the_code_is_chosen_too(lam):
    best = RECIPES.index(Way(0.0, 0.1, lam, 1.0))
    assert choose_recipe(trials(**{f"r{best}": 2.0})).lam == lam


def test_a_recipe_that_loses_much_on_one_measure_is_out():
    best, second = RECIPES.index(Way(0.0, 0.3, LAM, 3.0)), RECIPES.index(Way(0.0, 0.1, None, 1.0))
    losing = np.array([3.0, 3.0, 3.0, 3.0, -2.0])
    chosen = choose_recipe(trials(**{f"r{best}": losing, f"r{second}": 1.0}))
    assert (chosen.share, chosen.anchored) == (0.1, False)


def test_what_the_user_excludes_is_not_chosen():
    both = {f"r{i}": 1.0 + recipe.share + (recipe.lam is not None) for i, recipe in enumerate(RECIPES) if i}
    assert choose_recipe(trials(**both), metrics=False).share == 0.0
    assert not choose_recipe(trials(**both), anchors=False).anchored
    alone = choose_recipe(trials(**both), anchors=False, metrics=False)
    assert (alone.share, alone.anchored) == (0.0, False)


def test_the_measures_are_those_of_the_metrics(rng):
    truth = (rng.random((80, 9)) < 0.3).astype(float)
    truth[0], truth[1] = 0.0, 1.0
    scores = rng.standard_normal((80, 9))
    some = truth.any(axis=1)  # P@k is over the rows that have a label
    at_k = [100 * precision_at_k(truth[some], scores[some], k) for k in (1, 3, 5)]
    rest = [100 * roc_auc_score(truth, scores, average="macro")]
    rest += [100 * average_precision_score(truth, scores, average="macro")]
    np.testing.assert_allclose(measure(truth, scores), at_k + rest)
    # of pairs: that of rows side by side
    pairs = [np.random.default_rng(draw).permutation(80).reshape(40, 2) for draw in range(8)]
    true, order = (np.concatenate([part[pair].reshape(40, 18) for pair in pairs]) for part in (truth, scores))
    some = true.any(axis=1)
    at_k = [100 * precision_at_k(true[some], order[some], k) for k in (1, 3, 5)]
    np.testing.assert_allclose(measure(truth, scores, 2), at_k + rest)


def test_together_false_scores_in_rows_without_a_label_count():
    truth, scores = np.zeros((100, 4)), np.zeros((100, 4))
    truth[:40, 0], scores[:40, 0], scores[40:, 1:3] = 1.0, 1.0, 2.0  # right in its own rows, far too high in others
    truth[99, 1:] = 1.0
    assert measure(truth, scores)[0] > 97.0
    assert 20.0 < measure(truth, scores, 2)[0] < 30.0  # a right row is beside a wrong one in three pairs of four


@pytest.mark.parametrize(("n_rows", "expected"), [(1, 25), (30, 25), (60, 50), (100, 100), (700, 500), (10**6, 50_000)])
def test_budget_classes(n_rows, expected):
    assert budget_class(n_rows) == expected


def word_counts(rng, n_rows, n_features, n_labels):
    """Sparse rows, and labels that depend on a few of their features."""
    X = sparse.random_array((n_rows, n_features), density=0.03, format="csr", rng=rng)
    scores = X @ (rng.standard_normal((n_features, n_labels)) * (rng.random((n_features, n_labels)) < 0.1))
    return X, sparse.csr_array((scores > np.quantile(scores, 0.9, axis=0)).astype(int))


def made(related: bool, rng):
    """Rows, labels and perfect scores: hidden labels either repeat known ones or have nothing to do with them."""
    n, m = 400, 30
    X = sparse.csr_array(rng.standard_normal((n, 60)))
    half = (rng.random((n, m // 2)) < 0.3).astype(int)
    other = half if related else (rng.random((n, m // 2)) < 0.3).astype(int)
    Y = sparse.csr_array(np.hstack((half, other)))
    return X, Y, Y.toarray() + 0.01 * rng.standard_normal((n, m))


def test_a_past_that_knows_the_answer_is_used_and_one_that_does_not_is_refused():
    for related in (True, False):
        rng = np.random.default_rng(1)
        X, Y, scores = made(related, rng)
        judged = Judged(X[200:], Y[200:], scores[200:])
        few = partial(np.take, scores[:100], axis=1)
        found = [run_trial(X[:100], Y[:100], few, judged, np.random.default_rng(i)) for i in range(6)]
        chosen = choose_recipe([trial for trial in found if trial is not None])
        assert (chosen.share > 0 or chosen.anchored) == related


def test_too_few_labels_give_no_trial(rng):
    X, Y, scores = made(True, rng)
    judged = Judged(X[50:], Y[50:, :3], scores[50:, :3])
    assert run_trial(X[:50], Y[:50, :3], lambda of: scores[:50, of], judged, rng) is None


def test_of_many_rows_three_labels_say_which_loss_is_best_alone(rng):
    X, Y, scores = made(True, rng)
    judged = Judged(X[310:], Y[310:, :3], scores[310:, :3])
    found = run_trial(X[:310], Y[:310, :3], lambda of: scores[:310, of], judged, rng)
    assert found is not None
    tried = [way for way, row in zip(RECIPES, found.measures, strict=True) if not np.isnan(row).any()]
    assert {way.mix for way in tried} > {0.0, 1.0}
    assert all(not way.share and way.lam is None for way in tried)


@pytest.mark.parametrize(("gain", "taken"), [(0.25, False), (0.35, True)])
def test_a_gain_that_trials_cannot_tell_from_none_is_refused(gain, taken):
    """The same gain in every trial, so that its standard error is zero."""
    measures = np.zeros((len(RECIPES), 5))
    anchored = RECIPES.index(Way(0.0, 0.0, LAM, 1.0))
    measures[anchored] = gain
    chosen = choose_recipe([trial_of(measures)] * 3)
    assert chosen.anchored is taken


@pytest.mark.parametrize("way", [Way(0.3, 0.0, None, 1.0), Way(0.0, 0.0, LAM, 1.0)])
def test_an_unsure_gain_is_enough_for_another_loss_and_not_for_the_past(way):
    """The mean gain is half a point, its standard error 0.6."""
    found = []
    for gain in (-0.5, 0.5, 1.5):
        measures = np.zeros((len(RECIPES), 5))
        measures[RECIPES.index(way)] = gain
        found.append(trial_of(measures))
    chosen = choose_recipe(found)
    assert (chosen.mix, chosen.anchored) == (way.mix, False)


def test_ties_go_to_the_recipe_that_stands_first_and_the_report_says_how_clear_it_was():
    """Gains that differ by less than a hundredth of a point are ties; a clear lead is said with its error."""
    first, later = RECIPES.index(Way(0.0, 0.1, None, 1.0)), RECIPES.index(Way(0.0, 0.3, LAM, 3.0))
    measures = np.full((len(RECIPES), 5), 50.0)
    measures[first] += 2.0
    measures[later] += 2.0 + 1e-9
    tied = choose_recipe([trial_of(measures)] * 6)
    assert (tied.share, tied.anchored) == (0.1, False)
    assert (tied.clarity.gain, tied.clarity.lead, tied.clarity.lead_error) == (2.0, 0.0, 0.0)
    apart = [trial_of(measures + (np.arange(len(RECIPES)) == later)[:, None] * lead) for lead in (1.0, 2.0, 3.0)]
    clear = choose_recipe(apart)
    assert (clear.share, clear.anchored) == (0.3, True)
    assert (clear.clarity.gain, clear.clarity.lead, clear.clarity.lead_error) == (4.0, 2.0, 0.58)  # 1 / sqrt(3)


def test_where_nothing_else_is_allowed_there_is_no_lead():
    clarity = choose_recipe(trials(**{f"r{i}": -1.0 for i in range(1, len(RECIPES))})).clarity
    assert (clarity.gain, clarity.lead, clarity.lead_error) == (0.0, None, None)


def test_a_mixture_is_taken_where_each_loss_alone_falls_short():
    """Ridge ranks the top better, logistic the tail; the mixture loses a little on both, and is the best balance."""
    measures = np.full((len(RECIPES), 5), 50.0)
    logistic, half = RECIPES.index(Way(1.0, 0.0, None, 1.0)), RECIPES.index(Way(0.5, 0.0, None, 1.0))
    measures[logistic] += [-1.0, -1.0, -1.0, 2.0, -2.0]
    measures[half] += [0.1, 0.1, 0.1, 1.5, -0.2]
    chosen = choose_recipe([trial_of(measures)] * 3)
    assert (chosen.mix, chosen.share) == (0.5, 0.0)
    assert choose_recipe([trial_of(measures)] * 3, scoring="auc").mix == 1.0
    assert choose_recipe([trial_of(measures)] * 3, scoring="average_precision").mix == 0.0
    assert choose_recipe([trial_of(measures)] * 3, mixes=(0.0,)).mix == 0.0
    measures[half] = np.nan  # not tried
    assert choose_recipe([trial_of(measures)] * 3, scoring="p@k").mix == 0.0


def test_of_the_losses_alone_the_best_is_taken_however_small_its_sure_gain():
    """There are few of them and none is a risk; what leans on the past, of many, has to be worth a little."""
    measures = np.full((len(RECIPES), 5), 50.0)
    own = RECIPES.index(Way(0.3, 0.0, None, 1.0, True))
    measures[own] += 0.06
    measures[RECIPES.index(Way(0.5, 0.1, None, 1.0))] += 0.2
    measures[[way.trim > 0.0 for way in RECIPES]] += 0.25
    chosen = choose_recipe([trial_of(measures)] * 3)
    assert (chosen.mix, chosen.share, chosen.line) == (0.3, 0.0, None)


def test_lines_of_their_own_give_each_label_the_mean_and_spread_of_its_other_scores(rng):
    scores, target = rng.standard_normal((50, 4)) * [1, 10, 0.1, 0] + 3.0, rng.standard_normal((50, 4)) * [1, 2, 3, 4]
    scale, shift = own_lines(scores, target)
    np.testing.assert_allclose((scale * scores + shift).mean(axis=0), target.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose((scale * scores + shift).std(axis=0)[:3], target.std(axis=0)[:3])
    assert scale[3] == 0.0  # nothing to spread


def test_what_is_trimmed_has_to_be_worth_it_and_the_past_is_used_where_it_is_better_still():
    measures = np.full((len(RECIPES), 5), 50.0)
    trimmed = RECIPES.index(Way(0.5, 0.0, None, 1.0, True, 1.5, 30.0))
    past = RECIPES.index(Way(0.0, 0.1, None, 1.0))
    measures[trimmed] += 2.0
    chosen = choose_recipe([trial_of(measures)] * 3)
    assert (chosen.trim, chosen.firm, chosen.mix, chosen.line) == (1.5, 30.0, 0.5, None)
    assert chosen.other_strength == 30.0 * chosen.strength
    measures[past] += 2.05
    assert choose_recipe([trial_of(measures)] * 3).share == 0.0
    measures[past] += 0.25
    assert choose_recipe([trial_of(measures)] * 3).share == 0.1


@pytest.mark.parametrize(("gains", "taken"), [((-0.5, 1.5), True), ((-0.5, 0.5, 1.5), False), ((-0.9, 1.4), False)])
def test_two_trials_say_nothing_of_the_error_of_a_gain(gains, taken):
    measures = np.zeros((len(gains), len(RECIPES), 5))
    measures[:, RECIPES.index(Way(0.0, 0.0, LAM, 1.0))] = np.array(gains)[:, None]
    assert choose_recipe([trial_of(one) for one in measures]).anchored is taken


@pytest.mark.parametrize(("auc", "taken"), [(0.6, True), (0.1, False)])
def test_what_the_losses_alone_lack_on_one_measure_counts_for_what_is_trimmed(auc, taken):
    """Logistic regression has a point more AUC than ridge; three times a third of it counts."""
    measures = np.full((len(RECIPES), 5), 50.0)
    measures[RECIPES.index(Way(1.0, 0.0, None, 1.0))] += [-3.0, -3.0, -3.0, 1.0, 0.0]
    measures[RECIPES.index(Way(0.5, 0.0, None, 1.0, True, 1.5, 30.0))] += [0.0, 0.0, 0.0, auc, 0.0]
    assert (choose_recipe([trial_of(measures)] * 3).trim > 0.0) is taken


def test_where_a_factor_is_kept_nothing_is_trimmed_at_another_strength():
    measures = np.full((len(RECIPES), 5), 50.0)
    weak = RECIPES.index(Way(0.5, 0.0, None, 0.3, True, 1.5, 30.0))
    measures[weak] += 2.0
    assert choose_recipe([trial_of(measures)] * 3).trim == 1.5
    assert choose_recipe([trial_of(measures)] * 3, kept=True).trim == 0.0


def test_only_what_may_still_be_best_is_tried_again():
    measures = np.full((len(RECIPES), 5), 50.0)
    far = RECIPES.index(Way(0.0, 0.1, None, 1.0))
    top = RECIPES.index(Way(0.0, 0.3, None, 1.0))
    measures[far] -= 5.0
    measures[top, :3] -= 5.0
    measures[top, 3] += 5.0  # the best by one measure
    ways = promising([trial_of(measures)] * 2)
    assert RECIPES[far] not in ways
    assert {RECIPES[top], RECIPES[0], RECIPES[1]} <= set(ways)


def test_of_many_features_at_most_8000_rows_are_tried():
    assert budget_class(4_000, (40_000, 5_000)) == budget_class(4_000, (40_000, 500)) == 5_000
    assert budget_class(40_000, (40_000, 5_000)) == 8_000
    assert budget_class(40_000, (40_000, 120)) == 40_000


def test_what_more_labels_say_of_losses_alone_counts_and_the_past_is_over_their_best():
    metric, logistic = RECIPES.index(Way(0.0, 0.3, None, 1.0)), RECIPES.index(Way(1.0, 0.0, None, 1.0))
    few, many = np.full((len(RECIPES), 5), 50.0), np.full((len(RECIPES), 5), 70.0)
    few[logistic] += 4.0
    few[metric] += 5.0
    many[logistic] += 2.0
    trial, apart = (
        Trial(np.array([1.0, there]), part, np.ones((len(RECIPES), 2))) for there, part in ((2, few), (3, many))
    )
    found = trials_module._joined(trial, apart)
    assert found.strengths.tolist() == [1.0, 3.0]
    chosen = choose_recipe([found])
    assert (chosen.share, chosen.mix, chosen.clarity.gain) == (0.3, 0.0, 3.0)  # one over logistic regression, as here
    chosen = choose_recipe([found], mixes=(0.0,))
    assert (chosen.share, chosen.clarity.gain) == (0.3, 5.0)  # five over own ridge, of which nothing else is known
    assert choose_recipe([found], metrics=False, anchors=False).clarity.gain == 2.0


def test_by_themselves_losses_are_tried_on_all_labels_and_their_strength_is_taken_over(rng, monkeypatch):
    X, Y, scores = made(True, rng)
    judged, few = Judged(X[200:], Y[200:], scores[200:]), partial(np.take, scores[:200], axis=1)
    asked, climb = [], trials_module._Hidden._climb
    monkeypatch.setattr(
        trials_module._Hidden, "_climb", lambda self, *given: asked.append(self.truth.shape[1]) or climb(self, *given)
    )
    apart = run_trial(X[:200], Y[:200], few, Judged(X[200:], Y[200:], np.empty((0, 0))), rng, by_itself=True)
    assert asked == [30, 30]  # of 30 labels, for both losses
    alone = [not way.share and way.lam is None and not way.trim for way in RECIPES]
    np.testing.assert_array_equal(np.isnan(apart.measures).any(axis=1), [not one for one in alone])
    whole = run_trial(X[:200], Y[:200], few, judged, rng, apart=apart)
    assert len(asked) == 2
    assert whole.strengths[1] == apart.strengths[1]
    np.testing.assert_allclose((whole.measures - whole.measures[0])[alone], (apart.measures - apart.measures[0])[alone])
    kept = Judged(X[200:], Y[200:, :9], scores[200:, :9])  # so few that they are tried alone anyway: not once more
    run_trial(X[:200], Y[:200, :9], lambda of: scores[:200, of], kept, rng, apart=apart)
    assert len(asked) == 2


def test_losses_of_many_features_are_tried_apart_from_700_rows_on(rng):
    X = sparse.random_array((2400, 600), density=0.02, format="csr", rng=rng)
    Y = sparse.csr_array((X[:, :40].toarray() > 0.5).astype(int))
    memory = StreamingLabelClassifier().fit(X, Y).state_.memory
    seen = []

    def look(X, answers, scores, judged, rng, losses, ways, sketched, apart, by_itself):
        seen.append((by_itself, len(judged.scores), judged.X.shape[0], apart))
        return trial_of(np.full((len(RECIPES), 5), 50.0))

    for n_rows, calls in ((500, 3), (1_000, 3)):
        memory.trials(n_rows, ("squared", "logistic"), lambda: (np.zeros((600, 40)), np.zeros(40)), run=look)
        assert len(seen) == calls
        assert [one[0] for one in seen] == [n_rows == 1_000, False, False]
        seen, before = [], seen
    n_judged = before[1][1]
    assert before[0][:3] == (True, 0, 2400 - 1_000)  # all that it does not learn from
    assert all(one[1] == one[2] == n_judged and one[3] is not None for one in before[1:])


def test_the_best_of_every_kind_is_tried_again_for_choices_that_are_restricted():
    measures = np.full((len(RECIPES), 5), 50.0)
    mixture, metric = RECIPES.index(Way(0.5, 0.0, None, 1.0)), RECIPES.index(Way(0.0, 0.3, None, 1.0))
    measures[mixture] += 3.0
    measures[metric] += 6.0
    ways = promising([trial_of(measures)])
    assert {RECIPES[mixture], RECIPES[metric]} <= set(ways)
    measures[[way not in ways for way in RECIPES]] = np.nan
    assert choose_recipe([trial_of(measures)] * 2, anchors=False, metrics=False).mix == 0.5


def test_a_way_of_the_other_loss_alone_needs_no_squared_one_beside_it(rng):
    X, Y, scores = made(True, rng)
    judged, few = Judged(X[200:], Y[200:], scores[200:]), partial(np.take, scores[:100], axis=1)
    ways = [*RECIPES[:2], Way(1.0, 0.1, None, 1.0)]
    found = run_trial(X[:100], Y[:100], few, judged, np.random.default_rng(0), ways=ways)
    assert not np.isnan(found.measures[[RECIPES.index(way) for way in ways]]).any()


def test_of_many_rows_weights_are_trimmed_less_and_of_dense_ones_never(rng):
    X, Y, scores = made(True, rng)
    judged, few = Judged(X[200:], Y[200:], scores[200:]), partial(np.take, scores[:200], axis=1)
    words = sparse.csr_array(X.toarray() * (rng.random(X.shape) < 0.2))
    for rows, limit, most in ((words, 200, 3.0), (words, 100, 1.5), (X, 200, 0.0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trials_module, "_MOST_TRIMMED", limit)
            found = run_trial(rows[:200], Y[:200], few, judged, np.random.default_rng(0))
        np.testing.assert_array_equal(np.isnan(found.measures).any(axis=1), [way.trim > most for way in RECIPES])


def test_trials_of_many_rows_are_in_single_precision_and_say_the_same(rng):
    X, Y = word_counts(rng, 1600, 700, 200)
    judged, scores = Judged(X[600:], Y[600:], rng.standard_normal((1000, 200))), rng.standard_normal((600, 200))
    few, init, found = partial(np.take, scores, axis=1), trials_module._Hidden.__init__, []

    def in_double(self, *given):
        init(self, *given)
        assert self.single
        self.single = False

    for single in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not single:
                patch.setattr(trials_module._Hidden, "__init__", in_double)
            for alone in (True, False):
                found.append(run_trial(X[:600], Y[:600], few, judged, np.random.default_rng(0), by_itself=alone))
    for single, double in zip(found[:2], found[2:], strict=True):
        assert single.strengths.tolist() == double.strengths.tolist()
        np.testing.assert_allclose(single.measures[:, :3], double.measures[:, :3], atol=0.3)  # of 800 pairs of rows two
        np.testing.assert_allclose(single.measures[:, 3:], double.measures[:, 3:], atol=0.02)


@pytest.mark.parametrize("past", [True, False])
def test_with_more_rows_the_past_is_tried_only_where_1000_rows_choose_it(rng, past):
    X, Y = word_counts(rng, 3200, 600, 40)
    memory, seen, measures = StreamingLabelClassifier().fit(X, Y).state_.memory, [], np.full((len(RECIPES), 5), 50.0)
    measures[RECIPES.index(Way(0.0, 0.1, None, 1.0)) if past else RECIPES.index(Way(1.0, 0.0, None, 1.0))] += 2.0

    def look(X, answers, scores, judged, rng, losses, ways, sketched, apart, by_itself):
        seen.append((X.shape[0], by_itself, {way.share for way in ways}))
        return trial_of(measures)

    memory.trials(2_000, ("squared", "logistic"), lambda: (np.zeros((600, 40)), np.zeros(40)), run=look)
    assert [one[:2] for one in seen[:3]] == [(1_000, True), (1_000, False), (1_000, False)]
    assert [one[:2] for one in seen[3:]] == [(2_000, True), (2_000, False), (2_000, False)][: 3 if past else 1]
    assert seen[4:] == [] or seen[4][2] == {0.0, 0.1}


@pytest.mark.parametrize("spoiled", ["a long mean", "one long column"])
def test_trials_of_rows_that_lose_digits_in_single_precision_are_those_of_double(rng, spoiled):
    X = rng.standard_normal((1000, 600))
    Y = sparse.csr_array((X[:, :24] + rng.standard_normal((1000, 24)) > 1.0).astype(int))
    X = X + 1000.0 if spoiled == "a long mean" else X * np.where(np.arange(600), 1.0, 1e9)
    judged = Judged(X[700:], Y[700:], np.empty((0, 0)))
    found = run_trial(X[:700], Y[:700], None, judged, np.random.default_rng(0), ways=RECIPES[:2], by_itself=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials_module, "suits_single", lambda *rows: False)
        double = run_trial(X[:700], Y[:700], None, judged, np.random.default_rng(0), ways=RECIPES[:2], by_itself=True)
    np.testing.assert_array_equal(found.measures, double.measures)
