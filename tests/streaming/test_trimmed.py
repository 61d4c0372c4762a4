"""Labels whose small weights are trimmed: against scikit-learn's ridge, and against learning without a row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from streamlabel import StreamingLabelClassifier
from streamlabel.classifier import penalty
from streamlabel.classifier.iterations import IteratedRows
from streamlabel.classifier.penalty import trim
from streamlabel.classifier.ridge import make_ridge
from streamlabel.streaming import arrival
from streamlabel.streaming.codes import learn_arrival
from streamlabel.streaming.other_losses import row_unit
from streamlabel.streaming.trials import LAM, RECIPES, Recipe


def made(rng, n, d=60, m=12):
    """Sparse rows, and labels that few features each decide."""
    X = sparse.random_array((n, d), density=0.2, rng=rng, format="csr")
    W = rng.standard_normal((d, m)) * (rng.random((d, m)) < 0.15)
    Y = (X @ W + 0.3 * rng.standard_normal((n, m)) > 0.4).astype(int)
    return X, Y


def forced(monkeypatch, recipe):
    monkeypatch.setattr(arrival, "run_trials", lambda *_: [None])
    monkeypatch.setattr(arrival, "choose_recipe", lambda *_, **__: recipe)


def test_trimming_is_the_step_of_an_l1_penalty(rng):
    """What is least of ``1/2 ||v - w||^2 + l ||v||_1``: w - v is a subgradient of it at v."""
    W = rng.standard_normal((40, 3)) * (rng.random((40, 3)) < 0.7)
    level = 1.5 * np.sqrt(np.square(W).sum(axis=0) / np.count_nonzero(W, axis=0))
    V = trim(W, 1.5)
    assert 0 < np.count_nonzero(V) < np.count_nonzero(W)
    np.testing.assert_allclose((W - V)[V != 0], (np.sign(V) * level)[V != 0])
    assert (np.abs(W - V) <= level * (1 + 1e-12)).all()
    assert not trim(np.zeros((4, 1)), 1.5).any()
    alike = np.array([[1.0], [-1.0], [1.2]])
    np.testing.assert_array_equal(trim(alike, 1.5), alike)  # nothing would be left


@pytest.mark.parametrize("is_sparse", [True, False])
def test_a_trimmed_label_is_two_ridges_of_scikit_learn_of_equal_spread(rng, monkeypatch, is_sparse):
    X, Y = made(rng, 400)
    X = X if is_sparse else X.toarray()
    forced(monkeypatch, Recipe(0.0, LAM, False, 0.3, mix=0.5, other_strength=9.0, line=None, trim=1.5, firm=30.0))
    rows = np.arange(0, 400, 3)
    clf = StreamingLabelClassifier().fit(X, Y[:, :11]).add_labels(X, Y[:, 11], annotated=rows)
    dense, unit = X.toarray() if is_sparse else X, row_unit(X[rows], True)
    weak, firm = (Ridge(alpha=strength * unit).fit(dense[rows], Y[rows, 11]) for strength in (0.3, 9.0))
    judged = clf.state_.memory.judged_X.toarray() if is_sparse else clf.state_.memory.judged_X
    target, expected = weak.predict(judged), 0.0
    for coef in (trim(weak.coef_[:, None], 1.5)[:, 0], firm.coef_):
        scale = target.std() / (judged @ coef).std()
        expected += 0.5 * (target.mean() + scale * (dense - judged.mean(axis=0)) @ coef)
    np.testing.assert_allclose(clf.decision_function(X)[:, 11], expected, atol=1e-6)
    assert clf.reports_[-1].loss == "squared, trimmed"


@pytest.mark.parametrize("is_sparse", [True, False])
def test_scores_of_trimmed_labels_are_about_those_of_learning_without_the_row(rng, is_sparse):
    X, Y = made(rng, 150)
    X, y = X if is_sparse else X.toarray(), Y[:, :3].astype(float)
    beta, level = 1.0 * row_unit(X, True), 0.7

    def learned(rows):
        found = learn_arrival(X[rows], make_ridge(X[rows], beta), y[rows], None, None)
        return found.trimmed(X[rows], found.weights, level, 0.0)

    everyone = np.arange(150)
    found = learned(everyone)
    seen = np.asarray(X @ found.weights) + found.intercept
    without = np.empty_like(seen)
    for row in everyone:
        one = learned(np.setdiff1d(everyone, [row]))
        without[row] = np.asarray(X[[row]] @ one.weights)[0] + one.intercept
    np.testing.assert_allclose(found.weights, trim(learn_arrival(X, make_ridge(X, beta), y, None, None).weights, level))
    missed, change = np.abs(found.judged_scores - without), np.abs(seen - without)
    assert missed.mean() < 0.2 * change.mean()
    assert abs((found.judged_scores - without)[y > 0].mean()) < 0.15 * (seen - without)[y > 0].mean()


def test_with_a_metric_only_what_the_label_has_learned_itself_is_trimmed(rng, monkeypatch):
    """What is left without its own part (all of which is trimmed away here) is a combination of known classifiers."""
    X, Y = made(rng, 400)
    rows = np.arange(0, 400, 3)
    parts = {}
    monkeypatch.setattr(penalty, "_MOST_TRIMMED", np.inf)
    for trimmed in (0.0, 1e9):
        recipe = Recipe(0.3, LAM, False, 0.3, mix=0.0 if not trimmed else 0.5, other_strength=9.0, line=None,
                        trim=trimmed, firm=30.0)  # fmt: skip
        forced(monkeypatch, recipe)
        found = []
        real = arrival.Arrival.trimmed
        monkeypatch.setattr(arrival.Arrival, "trimmed", lambda *a, real=real, to=found: to.append(real(*a)) or to[-1])
        clf = StreamingLabelClassifier().fit(X, Y[:, :11]).add_labels(X, Y[:, 11], annotated=rows)
        parts[trimmed] = found[0].weights if found else clf.coef_[[11]].T
        past = clf.coef_[:11].T
    left = parts[1e9]
    inside = past @ np.linalg.lstsq(past, left, rcond=None)[0]
    np.testing.assert_allclose(left, inside, atol=1e-8)  # a combination of known classifiers
    assert np.linalg.norm(parts[0.0] - past @ np.linalg.lstsq(past, parts[0.0], rcond=None)[0]) > 1e-3


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_scores_of_folds_are_near_those_of_learning_without_the_row(rng, loss):
    """Folds know a fifth fewer rows, so they change scores somewhat more."""
    X, Y = made(rng, 330, d=320)
    X, y = sparse.csr_array(X), Y[:, :2].astype(float)
    at, start = IteratedRows(X), np.zeros((320, 2))
    beta = 0.1 * at.unit
    U, b, scores = at.learn(y, start, beta, loss, 1e-6)
    seen, without = np.asarray(X @ U) + b, np.empty_like(y)
    rows = np.flatnonzero(y.any(axis=1))[:40]
    for row in rows:
        others = np.setdiff1d(np.arange(330), [row])
        V, c, _ = IteratedRows(X[others]).learn(y[others], start, beta, loss, 1e-6)
        without[row] = np.asarray(X[[row]] @ V)[0] + c
    assert np.abs(scores - without)[rows].mean() < 0.8 * np.abs(seen - without)[rows].mean()


def test_a_model_of_few_labels_and_many_features_takes_labels_of_many_rows(rng):
    """With so few that none can be hidden, trials at 1,000 rows say nothing of those at 2,000."""
    X = sparse.random_array((2600, 600), density=0.02, rng=rng, format="csr")
    Y = (X @ rng.standard_normal((600, 4)) > 0.3).astype(int)
    clf = StreamingLabelClassifier(loss="squared").fit(X, Y[:, :3])
    clf.add_labels(X, Y[:, 3], annotated=np.arange(1500))
    assert len(clf.reports_) == 4


def test_few_labels_of_dense_rows_are_not_trimmed_either(rng):
    X = rng.standard_normal((600, 30))
    Y = (X @ rng.standard_normal((30, 9)) > 1.0).astype(int)
    clf = StreamingLabelClassifier().fit(X, Y[:, :8]).add_labels(X, Y[:, 8], annotated=np.arange(60))
    tried = [trial.measures for trials in clf.state_.memory.tried.values() for trial in trials]
    trims = [way.trim > 0.0 for way in RECIPES]
    assert tried
    assert np.isnan(np.array(tried)[:, trims]).all()
