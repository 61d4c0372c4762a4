"""Models from sums against models from rows, scikit-learn's Ridge, and scores that were never seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score, log_loss

from streamlabel import StreamingLabelClassifier
from streamlabel.classifier.ridge import beta_grid, generalised_error
from streamlabel.errors import AnnotationWarning, DataError
from streamlabel.executors import SerialExecutor
from streamlabel.stats.spectral import make_factor
from streamlabel.stats.sums import Stats, SumsFactor
from streamlabel.streaming.from_stats import add_labels_from_stats, classifier_from_stats, code_labels, code_scores


@pytest.fixture(params=[(120, 15), (25, 60)], ids=["tall", "wide"])
def rows(request, rng):
    X = rng.standard_normal(request.param) + 0.5
    X[:, -1] = X[:, 0]
    scores = X @ rng.standard_normal((request.param[1], 5)) + rng.standard_normal((request.param[0], 5))
    return X, (scores > np.quantile(scores, 0.7, axis=0)).astype(int)


def in_parts(X, Y, names=None) -> Stats:
    third = X.shape[0] // 3
    parts = [
        Stats.from_batch(X[i:j], Y[i:j], names) for i, j in ((0, third), (third, 2 * third), (2 * third, X.shape[0]))
    ]
    return parts[2] + (parts[0] + parts[1])


def log_losses(answers, chances):
    return np.array([log_loss(answers[:, j], chances[:, j]) for j in range(answers.shape[1])])


@pytest.mark.parametrize("beta", [0.01, 3.0])
def test_coefficients_are_those_of_ridge(rows, beta):
    X, Y = rows
    model = classifier_from_stats(in_parts(X, Y), beta)
    ridge = Ridge(alpha=beta).fit(X, Y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, atol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("beta", ["auto", 0.5])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_model_is_the_one_of_the_rows(rows, fit_intercept, beta, form):
    X, Y = rows
    parameters = {"beta": beta, "fit_intercept": fit_intercept}
    model = classifier_from_stats(in_parts(form(X), form(Y), list("abcde")), **parameters)
    known = StreamingLabelClassifier(**parameters).fit(X, Y, label_names=list("abcde"))
    assert model.beta_ == pytest.approx(known.beta_, rel=1e-9)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, known.intercept_, atol=1e-8)
    assert model.label_names_ == known.label_names_
    assert [(r.n_rows, r.n_yes) for r in model.reports_] == [(r.n_rows, r.n_yes) for r in known.reports_]


@pytest.mark.parametrize("centre", [True, False])
def test_generalised_errors_are_those_of_the_rows(rows, centre):
    X, Y = rows
    targets = Y.astype(float) if centre else 2.0 * Y - 1.0
    factor, sums = make_factor(X, centre=centre), SumsFactor(Stats.from_batch(X, Y), centre=centre)
    np.testing.assert_allclose(beta_grid(sums), beta_grid(factor), rtol=1e-9)
    energy = np.square(targets - centre * targets.mean(axis=0)).sum(axis=0)
    for beta in beta_grid(factor):
        expected = generalised_error(factor, factor.project(targets), energy, beta)
        np.testing.assert_allclose(generalised_error(sums, sums.projected, sums.energy, beta), expected, rtol=1e-8)


def test_many_labels_are_all_looked_at(rng):
    X, Y = rng.standard_normal((80, 6)), (rng.random((80, 600)) < 0.3).astype(int)
    stats = Stats.from_batch(X, Y)
    factor = make_factor(X)
    energy = np.square(Y - Y.mean(axis=0)).sum(axis=0)
    errors = [generalised_error(factor, factor.project(Y), energy, beta).sum() for beta in beta_grid(factor)]
    assert classifier_from_stats(stats).beta_ == pytest.approx(beta_grid(factor)[np.argmin(errors)])


def test_a_constant_feature_gets_no_weight_however_large(rng):
    X, Y = rng.standard_normal((60, 4)), (rng.random((60, 2)) < 0.5).astype(int)
    X[:, 1] = 1e7 + 1.0 / 3.0
    model = classifier_from_stats(in_parts(X, Y), 1e-3)
    np.testing.assert_allclose(model.coef_[:, 1], 0.0, atol=1e-15)
    others = [0, 2, 3]
    np.testing.assert_allclose(model.coef_[:, others], Ridge(alpha=1e-3).fit(X[:, others], Y).coef_, atol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_decisions_hold_on_rows_that_were_not_summed(rng, fit_intercept):
    """Thresholds are about as good as those that `fit` finds on the rows; so are probabilities, and they
    say more than the rates."""
    X = rng.standard_normal((3000, 40))
    noise = 2.0 * rng.standard_normal((3000, 6))
    scores = X[:, :6] * 2.0 + X[:, 6:12] + noise
    Y = (scores > np.quantile(scores, [0.5, 0.6, 0.7, 0.8, 0.9, 0.95], axis=0).diagonal()).astype(int)
    learn, unseen = slice(0, 300), slice(300, None)
    model = classifier_from_stats(Stats.from_batch(X[learn], Y[learn]), fit_intercept=fit_intercept)
    known = StreamingLabelClassifier(fit_intercept=fit_intercept).fit(X[learn], Y[learn])
    f1 = [f1_score(Y[unseen], one.predict(X[unseen]), average="macro") for one in (model, known)]
    assert f1[0] > f1[1] - 0.03
    losses = [log_losses(Y[unseen], one.predict_proba(X[unseen])) for one in (model, known)]
    rates = log_losses(Y[unseen], np.broadcast_to(Y[learn].mean(axis=0), (2700, 6)))
    assert losses[0].mean() < losses[1].mean() + 0.02
    assert losses[0].mean() < 0.95 * rates.mean()


def test_labels_that_nobody_or_everybody_has(rng):
    X, Y = rng.standard_normal((40, 3)), np.zeros((40, 3), dtype=int)
    Y[:, 1] = 1
    Y[:20, 2] = 1
    model = classifier_from_stats(Stats.from_batch(X, Y), 1.0)
    np.testing.assert_allclose(model.decision_function(X)[:, :2], [[0.0, 1.0]] * 40, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X)[:, :2], [[1 / 42, 41 / 42]] * 40, atol=1e-12)
    assert np.isfinite(model.thresholds_).all()
    assert classifier_from_stats(Stats.from_batch(X, Y[:, :1])).thresholds_ == 0.5
    assert classifier_from_stats(Stats.from_batch(X, Y), threshold=0.3).thresholds_.tolist() == [0.3] * 3


def test_labels_can_be_added(rng):
    X = rng.standard_normal((80, 6))
    Y = (X[:, :3] > 0).astype(int)
    model = classifier_from_stats(Stats.from_batch(X, Y, ["a", "b", "c"]))
    before = model.decision_function(X)
    model.add_labels(X[:30], (X[:30, 0] + X[:30, 1] > 0.5).astype(int), ["both"])
    assert model.label_names_ == ("a", "b", "c", "both")
    assert np.array_equal(model.decision_function(X)[:, :3], before)


def test_what_sums_cannot_do_is_refused(rng):
    X, Y = rng.standard_normal((9, 2)), np.eye(9, 2, dtype=int)
    stats = Stats.from_batch(X, Y)
    for parameters, problem in [
        ({"loss": "logistic"}, "loss='logistic' needs the rows"),
        ({"start": "alternating"}, "start='alternating' needs the rows"),
        ({"beta": -1.0}, "beta is -1.0"),
    ]:
        with pytest.raises(DataError, match=problem):
            classifier_from_stats(stats, **parameters)
    with pytest.raises(DataError, match="over 1 rows"):
        classifier_from_stats(Stats.from_batch(X[:1], Y[:1]))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_each_label_is_ridge_on_the_rows_where_it_was_asked(rng, fit_intercept):
    X = rng.standard_normal((150, 6)) + np.repeat([[0.0], [2.0], [-1.0]], 50, axis=0)  # parts that differ
    Y = (X @ rng.standard_normal((6, 4)) + rng.standard_normal((150, 4)) > 0.3).astype(int)
    asked = {"a": [0, 1, 2], "b": [0, 1], "c": [1, 2], "d": [0, 1]}
    parts = []
    for part in range(3):
        names = [name for name in asked if part in asked[name]]
        rows = slice(50 * part, 50 * part + 50)
        parts.append(Stats.from_batch(X[rows], Y[rows][:, ["abcd".index(name) for name in names]], names))
    for order in ([0, 1, 2], [2, 0, 1]):
        stats = parts[order[0]].joined(parts[order[1]]).joined(parts[order[2]])
        for executor in (None, SerialExecutor()):
            model = classifier_from_stats(stats, 3.0, executor=executor, fit_intercept=fit_intercept)
            for name, where in asked.items():
                rows = np.isin(np.arange(150) // 50, where)
                target = Y[rows, "abcd".index(name)]
                ridge = Ridge(3.0, fit_intercept=fit_intercept).fit(
                    X[rows], target if fit_intercept else 2 * target - 1
                )
                place = model.label_names_.index(name)
                np.testing.assert_allclose(model.coef_[place], ridge.coef_, rtol=1e-9, atol=1e-12)
                np.testing.assert_allclose(model.intercept_[place], ridge.intercept_, rtol=1e-9, atol=1e-12)
                report = model.reports_[place]
                assert (report.n_rows, report.n_yes) == (rows.sum(), target.sum())
    known = stats.asked_rows.tolist()
    assert dict(zip(stats.label_names, known, strict=True)) == {"a": 150, "b": 100, "c": 100, "d": 100}
    with pytest.raises(DataError, match="by_asked"):
        SumsFactor(stats)


def test_new_labels_of_some_parts(rng):
    X = rng.standard_normal((120, 5))
    Y = (X @ rng.standard_normal((5, 4)) > 0.2).astype(int)
    model = classifier_from_stats(Stats.from_batch(X, Y[:, :2], ["a", "b"]), 1.0)
    codes = code_labels(Y[:, :2], Y[:, 2:])
    part = Stats.from_batch(X[:60], Y[:60, 2:], ["c", "d"]), Stats.from_batch(X[60:], Y[60:, 2:3], ["c"])
    grown = add_labels_from_stats(model, part[0].joined(part[1]), codes, 2.0)
    alone = add_labels_from_stats(model, Stats.from_batch(X[:60], Y[:60, 3:], ["d"]), codes[:, [1]], 2.0)
    np.testing.assert_allclose(grown.coef_[3], alone.coef_[2], rtol=1e-10)


def test_scores_that_stand_for_answers_are_those_of_the_rows_that_were_asked(rng):
    X = rng.standard_normal((120, 5))
    Y = (X @ rng.standard_normal((5, 5)) > 0.2).astype(int)
    model = classifier_from_stats(Stats.from_batch(X, Y[:, :2], ["a", "b"]), 1.0)
    c, d, e = (
        Stats.from_batch(X[:rows], Y[:rows, [j]], [n]) for j, n, rows in ((2, "c", 50), (3, "d", 120), (4, "e", 50))
    )
    both = Stats.from_batch(X[:50], Y[:50, 2:], ["c", "d", "e"]).joined(Stats.from_batch(X[50:], Y[50:, [3]], ["d"]))
    found = code_scores(model, both, 0.01).toarray()
    alone = np.hstack([code_scores(model, one, 0.01).toarray() for one in (c, d, e)])
    assert found.any(axis=0).all()
    np.testing.assert_allclose(found, alone, atol=1e-9)


def test_an_assumption_is_said(rng, monkeypatch):
    X = rng.standard_normal((200, 4))
    Y = (X[:, :3] > 0).astype(int)
    monkeypatch.setattr("streamlabel.stats.sums.MAX_CROSS", 20)
    stats = Stats.from_batch(X, Y, asked=rng.random((200, 3)) < 0.7)
    with pytest.warns(AnnotationWarning, match="a random sample"):
        model = classifier_from_stats(stats, 1.0)
    assert (model.predict(X) == Y).mean() > 0.9
