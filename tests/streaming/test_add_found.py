"""A label from found rows and a name: against scikit-learn's ridge, on labels that are linear by construction."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from streamlabel.errors import ConflictError, DataError
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.found import Examples, Pool, found_recipe
from streamlabel.streaming.found_trials import FoundRecipe
from streamlabel.streaming.judgement import Calibration

N_PAST, D = 24, 30


class Truth:
    """Rows, and labels that are the highest of linear scores."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self.planted = rng.normal(size=(D, N_PAST + 1))
        self.X, self.test = rng.normal(size=(500, D)), rng.normal(size=(400, D))
        self.level = np.quantile(self.X @ self.planted, 0.93, axis=0)
        self.Y, self.Y_test = (self.labels(rows) for rows in (self.X, self.test))

    def labels(self, rows: np.ndarray) -> np.ndarray:
        return (rows @ self.planted > self.level).astype(int)


TRUTH = Truth()
YES, NO = np.flatnonzero(TRUTH.Y[:, -1]), np.flatnonzero(TRUTH.Y[:, -1] == 0)


class Reader:
    """It knows the planted direction of a name, and noise; or nothing."""

    def __init__(self, share: float) -> None:
        self.version, self._share = f"reader {share}", share

    def __call__(self, texts):
        found = np.zeros((1, D, len(texts)))
        for place, text in enumerate(texts):
            if text.startswith("label "):
                noise = np.random.default_rng((1, int(text[6:]))).normal(size=D)
                found[0, :, place] = self._share * TRUTH.planted[:, int(text[6:])] + (1 - self._share) * noise
        return found


NAME = f"label {N_PAST}"


@pytest.fixture(scope="module")
def fitted():
    names = [f"label {j}" for j in range(N_PAST)]
    return StreamingLabelClassifier().fit(TRUTH.X, TRUTH.Y[:, :-1], label_names=names)


@pytest.fixture
def model(fitted):
    return copy.copy(fitted)


def quality(model):
    return roc_auc_score(TRUTH.Y_test[:, -1], model.decision_function(TRUTH.test)[:, -1])


NOTHING = np.empty((0, D))


def test_without_the_past_it_is_scikit_learns_ridge_up_to_the_scale(model, monkeypatch):
    rows = np.vstack((TRUTH.X[YES[:4]], TRUTH.X[NO[:3]]))
    recipe = FoundRecipe(5, 0.0, 10.0, (), Calibration((-4.0, 2.0, 0.0, 0.0), 1.0))
    monkeypatch.setattr("streamlabel.streaming.classifier.found_recipe", lambda *_: recipe)
    model.add_found("new", rows[:4], rows[4:], pool=TRUTH.test)
    report, pool = model.reports_[-1], Pool.of(TRUTH.test, model.random_state)
    pool = pool.beside(TRUTH.X, rows, model.random_state)
    target = np.repeat([1.0, 0.0], [4, 3 + len(pool.background)])
    ridge = Ridge(alpha=report.beta).fit(np.vstack((rows, pool.background)), target)
    ours, theirs = model.decision_function(TRUTH.test)[:, -1], ridge.predict(TRUTH.test)
    slope, offset = np.polyfit(theirs, ours, 1)
    np.testing.assert_allclose(ours, slope * theirs + offset, atol=1e-9)
    assert slope > 0
    assert report.beta == pytest.approx(10.0 * np.vstack((rows, pool.background)).var(axis=0).sum())


def test_scores_are_the_linear_function_nearest_to_the_probabilities(model):
    (_, judgement), = model.learn_examples(
        {"new": Examples(TRUTH.X[YES[:5]], np.ones(5, dtype=bool), np.zeros(5, dtype=bool))}, TRUTH.test
    ).values()  # fmt: skip
    slope, offset = np.polyfit(judgement.pool, judgement.chances, 1)
    assert (slope, offset) == pytest.approx((1.0, 0.0), abs=1e-9)
    rest = Pool.of(TRUTH.test, model.random_state).rest
    np.testing.assert_allclose(judgement.pool, model.decision_function(rest)[:, -1], atol=1e-12)
    chances = model.predict_proba(rest)[:, -1]
    assert chances.mean() == pytest.approx(judgement.chances.mean(), abs=1e-3)


def test_with_another_loss_scores_are_log_odds():
    model = StreamingLabelClassifier(loss="logistic").fit(TRUTH.X, TRUTH.Y[:, :-1])
    model.add_found("new", TRUTH.X[YES[:5]], pool=TRUTH.test)
    decisions = model.state_.decisions
    assert (decisions.slope[-1], decisions.offset[-1]) == pytest.approx((1.0, 0.0), abs=1e-3)
    assert quality(model) > 0.75


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("n_yes", "n_no"), [(1, 0), (5, 0), (5, 20), (20, 0)])
def test_a_label_is_learned_from_few_examples_and_the_old_ones_do_not_move(model, n_yes, n_no, dense):
    form = np.asarray if dense else sparse.csr_array
    before = model.decision_function(TRUTH.test)
    model.add_found("new", form(TRUTH.X[YES[:n_yes]]), form(TRUTH.X[NO[:n_no]]), pool=form(TRUTH.test))
    after = model.decision_function(TRUTH.test)
    np.testing.assert_array_equal(after[:, :-1], before)
    assert quality(model) > {1: 0.6, 5: 0.75, 20: 0.85}[n_yes]
    assert 0 < model.predict(TRUTH.test)[:, -1].mean() < 0.4
    estimate = model.reports_[-1].estimate
    assert estimate.rate[1] <= TRUTH.Y_test[:, -1].mean() <= estimate.rate[2]
    assert estimate.n_pool == 200


def test_a_name_alone_is_enough_if_names_say_something(model):
    model.add_found(NAME, NOTHING, names=Reader(0.8))
    assert quality(model) > 0.8
    assert model.state_.memory.found[0, "reader 0.8"].gain > 20
    assert model.reports_[-1].n_yes == 0


def test_a_name_helps_few_examples(model):
    alone = copy.copy(model).add_found("new", TRUTH.X[YES[:1]])
    named = copy.copy(model).add_found(NAME, TRUTH.X[YES[:1]], names=Reader(0.5))
    assert quality(named) > quality(alone) + 0.05


def test_names_that_say_nothing_are_found_out(model):
    noise = Reader(0.0)
    assert not any(found_recipe(model.state_, 5, noise, 0).weights)
    with pytest.raises(DataError, match="names say nothing about these rows: in trials on"):
        model.add_found(NAME, NOTHING, names=noise)
    with pytest.raises(DataError, match="no word of its name is known"):
        model.add_found("unknown", NOTHING, names=Reader(0.8))
    with pytest.raises(DataError, match="its name is not used"):
        model.add_found(NAME, NOTHING)
    alone, named = (
        copy.copy(model).add_found(NAME, TRUTH.X[YES[:5]], names=reader).decision_function(TRUTH.test)
        for reader in (None, noise)
    )
    np.testing.assert_allclose(alone, named, atol=1e-9)


def test_answers_to_questions_move_the_estimate(model):
    rates = {}
    for said in (None, True, False):
        asked = TRUTH.test[:0] if said is None else TRUTH.test[np.argsort(-TRUTH.test @ TRUTH.planted[:, -1])[:15]]
        examples = Examples(
            np.vstack((TRUTH.X[YES[:5]], asked)),
            np.repeat([True, bool(said)], [5, len(asked)]),
            np.repeat([False, True], [5, len(asked)]),
        )
        grown = copy.copy(model)
        grown.learn_examples({"new": examples}, TRUTH.X)
        rates[said] = grown.reports_[-1].estimate
    assert rates[True].rate[0] > rates[None].rate[0] > rates[False].rate[0]
    assert [one.n_asked for one in rates.values()] == [0, 15, 15]


def test_trials_are_of_the_labels_of_fit_and_run_once(model, monkeypatch):
    recipe = found_recipe(model.state_, 5, None, 0)
    assert recipe.n_trials > 8
    later = copy.copy(model).add_found("new", TRUTH.X[YES[:5]])
    later.add_labels(TRUTH.X, TRUTH.Y[:, -1], ["other"])
    monkeypatch.setattr("streamlabel.streaming.found.run_found_trials", None)
    assert found_recipe(later.state_, 4, None, 0) is recipe
    fresh = StreamingLabelClassifier().fit(TRUTH.X, TRUTH.Y[:, :-1])
    monkeypatch.undo()
    assert found_recipe(fresh.state_, 5, None, 0) == recipe


def test_a_model_without_rows_takes_the_usual_recipe_and_needs_a_pool():
    adopted = StreamingLabelClassifier.from_coef(TRUTH.planted[:, :-1].T)
    with pytest.raises(DataError, match="a pool of 0 rows is too small"):
        adopted.add_found("new", TRUTH.X[YES[:5]])
    adopted.add_found("new", TRUTH.X[YES[:5]], pool=TRUTH.test)
    assert quality(adopted) > 0.75
    assert found_recipe(adopted.state_, 5, None, 0).n_trials == 0


def test_a_refused_label_changes_nothing(model):
    state = model.state_
    with pytest.raises(ConflictError, match="'label 3' is taken"):
        model.add_found("label 3", TRUTH.X[:3])
    with pytest.raises(ValueError, match="features"):
        model.add_found("new", TRUTH.X[:3, :5])
    with pytest.raises(DataError, match="too small"):
        model.add_found("new", TRUTH.X[:3], pool=TRUTH.X[:2])
    classes = StreamingLabelClassifier().fit(TRUTH.X, TRUTH.Y[:, 0])
    with pytest.raises(DataError, match="vector of classes"):
        classes.add_found("new", TRUTH.X[:3])
    assert model.state_ is state


def test_labels_of_few_yes_do_not_enter_the_codes_of_others(model):
    rows = TRUTH.X[YES]
    assert len(rows) > 20
    model.add_found("nine", rows[:9])
    model.add_found("ten", rows[:10])
    model.add_found("both", rows)
    assert "nine" not in dict(model.neighbours("both", 99))
    assert "ten" in dict(model.neighbours("both", 99))
