"""The paper's start: the objective falls, both steps are optimal, and limits are what the equations say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.linear_model import Lasso, Ridge
from sklearn.metrics import average_precision_score, roc_auc_score

from streamlabel import StreamingLabelClassifier
from streamlabel.classifier.ridge import beta_grid
from streamlabel.errors import ConvergenceWarning, DataError
from streamlabel.stats.spectral import make_factor
from streamlabel.streaming import past
from streamlabel.streaming.past import alternate, fit_alternating


@pytest.fixture(params=["tall", "wide"])
def case(request, rng):
    n_rows, n_features = (120, 12) if request.param == "tall" else (40, 60)
    X = rng.standard_normal((n_rows, n_features))
    Y = (X[:, :10] @ rng.standard_normal((10, 9)) + rng.standard_normal((n_rows, 9)) > 0.5).astype(float)
    Y[:, 8] = np.maximum(Y[:, 0], Y[:, 1])
    return X, Y


def centred(A):
    return A - A.mean(axis=0)


def run(X, Y, l1, l2, l3=1.0, **options):
    factor, gram = make_factor(X), centred(Y).T @ centred(Y)
    return alternate(factor, factor.project(Y), gram, l1, l2, l3, **options)


def objective(X, Y, W, S, l1, l2, l3):
    """As written, on centred rows."""
    X, Y = centred(X), centred(Y)
    square = lambda A: float(np.square(A).sum())  # noqa: E731
    return 0.5 * square(Y - X @ W) + l1 * np.abs(S).sum() + 0.5 * l2 * square(W - W @ S) + 0.5 * l3 * square(Y - Y @ S)


@pytest.mark.parametrize(("l1", "l2", "l3"), [(1.0, 3.0, 1.0), (0.1, 10.0, 0.5), (5.0, 0.3, 2.0)])
def test_the_objective_never_rises_and_is_what_is_written(case, l1, l2, l3):
    X, Y = case
    found = run(X, Y, l1, l2, l3, tolerance=1e-7, max_rounds=200)
    values = np.array(found.objectives)
    assert len(values) == 2 * found.report.n_iter + 1
    assert (np.diff(values) <= 1e-10 * values[0]).all()
    assert values[-1] < values[0]
    assert values[-1] == pytest.approx(objective(X, Y, found.weights, found.codes.toarray(), l1, l2, l3), rel=1e-8)
    assert found.codes.nnz
    assert not found.codes.diagonal().any()


def test_both_steps_are_optimal_at_the_end(case):
    X, Y = case
    l1, l2, l3 = 1.0, 3.0, 0.7
    found = run(X, Y, l1, l2, l3, tolerance=1e-12, max_rounds=2000)
    W, S = found.weights, found.codes.toarray()
    Xc, Yc = centred(X), centred(Y)
    # W: X'X W + l2 W M M' = X'Y, by a solver of Sylvester equations that is not ours
    M = np.eye(9) - S
    np.testing.assert_allclose(W, linalg.solve_sylvester(Xc.T @ Xc, l2 * M @ M.T, Xc.T @ Yc), atol=1e-5)
    # S: each column is a lasso of the stacked columns on the others
    stacked = np.vstack((np.sqrt(l3) * Yc, np.sqrt(l2) * W))
    for j in range(9):
        others = np.delete(np.arange(9), j)
        lasso = Lasso(alpha=l1 / len(stacked), fit_intercept=False, tol=1e-12, max_iter=100_000)
        np.testing.assert_allclose(S[others, j], lasso.fit(stacked[:, others], stacked[:, j]).coef_, atol=1e-3)


def test_without_a_coupling_of_classifiers_it_is_least_squares(case):
    X, Y = case
    found = run(X, Y, 1.0, 0.0)
    least = np.linalg.lstsq(centred(X), centred(Y), rcond=None)[0]
    np.testing.assert_allclose(found.weights, least, atol=1e-8)
    assert found.report.converged
    assert found.report.n_iter <= 2


def test_without_codes_it_is_ridge(case):
    X, Y = case
    found = run(X, Y, 1e9, 2.0)
    assert not found.codes.nnz
    np.testing.assert_allclose(found.weights, Ridge(alpha=2.0).fit(X, Y).coef_.T, atol=1e-9)
    clf = StreamingLabelClassifier(start="alternating", lam=1e9, beta=2.0).fit(X, Y)
    apart = StreamingLabelClassifier(lam=1e9, beta=2.0).fit(X, Y)
    np.testing.assert_allclose(clf.coef_, apart.coef_, atol=1e-9)
    np.testing.assert_allclose(clf.thresholds_, apart.thresholds_, atol=1e-9)


def test_stopping_short_warns(case):
    X, Y = case
    with pytest.warns(ConvergenceWarning, match="after 1 rounds"):
        found = run(X, Y, 1.0, 3.0, tolerance=1e-14, max_rounds=1)
    assert not found.report.converged


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_unseen_scores_are_those_of_classifiers_learned_without_the_row(case, fit_intercept):
    X, Y = case
    found = fit_alternating(X, sparse.csr_array(Y.astype(np.int8)), 0.003, 2.0, fit_intercept, 0)
    M = np.eye(9) - found.codes.toarray()
    targets = Y if fit_intercept else 2.0 * Y - 1.0
    for place in (0, 3, 7):
        row = found.judged_rows[place]
        rest = np.delete(np.arange(len(X)), row)
        x_mean, y_mean = (X[rest].mean(axis=0), targets[rest].mean(axis=0)) if fit_intercept else (0.0, 0.0)
        A, B = X[rest] - x_mean, targets[rest] - y_mean
        W = linalg.solve_sylvester(A.T @ A, 2.0 * M @ M.T, A.T @ B)
        np.testing.assert_allclose(found.unseen[place], (X[row] - x_mean) @ W + y_mean, atol=1e-6)


def test_past_labels_have_neighbours_and_arrivals_go_on(case):
    X, Y = case
    names = [f"n{j}" for j in range(9)]
    clf = StreamingLabelClassifier(start="alternating", beta=2.0).fit(X, Y[:, [0, 1, 2, 3, 4, 8]], names[:6])
    assert clf.structure_.shape == (6, 6)
    assert not clf.structure_.diagonal().any()
    assert {name for name, _ in clf.neighbours("n5", k=2)} == {"n0", "n1"}  # the union of the two
    assert clf.reports_[5].code_size == len(clf.neighbours("n5", k=9))
    before, past = clf.decision_function(X), clf.structure_.toarray()
    clf.add_labels(X, Y[:, 5:7], names[6:8]).add_labels(X, Y[:, 7], ["last"], annotated=np.arange(30))
    assert np.array_equal(before, clf.decision_function(X)[:, :6])
    assert np.array_equal(past, clf.structure_.toarray()[:6, :6])
    assert clf.structure_.shape == (9, 9)
    assert clf.neighbours("n6", k=1)
    # nothing to alternate with: the same as apart
    none = StreamingLabelClassifier(start="alternating", lam=None, beta=2.0).fit(X, Y)
    assert np.array_equal(none.coef_, StreamingLabelClassifier(lam=None, beta=2.0).fit(X, Y).coef_)


def test_what_cannot_be_started_so_is_refused(case):
    X, Y = case
    with pytest.raises(DataError, match="start is 'both'"):
        StreamingLabelClassifier(start="both").fit(X, Y)
    with pytest.raises(DataError, match='set loss="squared"'):
        StreamingLabelClassifier(start="alternating", loss="logistic").fit(X, Y)


@pytest.mark.parametrize("weight", [0.0, 1.0, 5.0])
def test_the_weight_of_the_answers_is_the_papers_l3(rng, weight):
    X, Y = rng.standard_normal((60, 8)), (rng.random((60, 6)) < 0.4).astype(int)
    Y[:, 5] = Y[:, 0] | Y[:, 1]
    clf = StreamingLabelClassifier(start="alternating", start_weight=weight, lam=0.003, beta=2.0).fit(X, Y)
    factor, Yc = make_factor(X), Y - Y.mean(axis=0)
    expected = alternate(factor, factor.project(Yc), Yc.T @ Yc, 0.003 * 60, 2.0, weight)
    np.testing.assert_allclose(clf.coef_.T, expected.weights, atol=1e-10)
    np.testing.assert_allclose(clf.structure_.toarray(), expected.codes.toarray(), atol=1e-10)


@pytest.mark.parametrize("weight", [-1.0, np.inf, np.nan, "much", None])
def test_a_weight_that_is_none(rng, weight):
    with pytest.raises(DataError, match=r"start_weight is .*; it must be a number from 0 on"):
        StreamingLabelClassifier(start_weight=weight).fit(rng.standard_normal((9, 3)), np.eye(9, 3, dtype=int))


@pytest.mark.parametrize("scoring", ["balanced", "p@k", "auc", "average_precision"])
def test_the_strength_of_fit_follows_the_measure_that_was_asked_for(case, scoring, monkeypatch):
    """Every row judged by a ridge of scikit-learn that has not seen it; without a measure by squared error."""
    X, Y = case
    X, Y = X[:59], Y[:59]
    monkeypatch.setattr(past, "_LEAST_SCORED", 30)
    factor = make_factor(X)
    values = []
    for beta in beta_grid(factor)[::-1]:
        unseen = np.empty_like(Y)
        for row in range(len(X)):
            kept = np.arange(len(X)) != row
            unseen[row] = Ridge(alpha=beta).fit(X[kept], Y[kept]).predict(X[[row]])[0]
        top = np.take_along_axis(Y, np.argsort(-unseen, axis=1), axis=1)
        values.append(
            {
                "balanced": -np.square(np.clip(unseen - Y, -1, 1)).mean(),
                "p@k": np.mean([top[:, :k].mean() for k in (1, 3, 5)]),
                "auc": roc_auc_score(Y, unseen, average="macro"),
                "average_precision": average_precision_score(Y, unseen, average="macro"),
            }[scoring]
        )
    chosen = StreamingLabelClassifier(scoring=scoring).fit(X, Y).reports_[0].beta
    place = int(np.abs(np.log(beta_grid(factor)[::-1] / chosen)).argmin())
    if scoring == "balanced":  # by all errors and a ratio of bounded ones
        assert values[place] >= 1.05 * max(values)
        assert min(values) < 1.2 * max(values)
    else:
        assert place == int(np.argmax(np.round(values, 4)))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_with_few_rows_the_strength_is_that_of_the_least_error_of_rows_left_out(fit_intercept, seed):
    """Short and long rows, by scikit-learn's ridge without each in turn; generalised errors miss it by 2 to 13%."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 60)) * np.geomspace(1.0, 0.05, 60)
    X[:20] *= 0.1
    Y = (X[:, :10] @ rng.standard_normal((10, 8)) + 0.5 * rng.standard_normal((40, 8)) > 0.0).astype(float)
    targets = Y if fit_intercept else 2.0 * Y - 1.0
    factor, most = make_factor(X, centre=fit_intercept), 1.0 if fit_intercept else 2.0
    errors = {}
    for beta in beta_grid(factor):
        left_out = np.empty_like(Y)
        for row in range(len(X)):
            kept = np.arange(len(X)) != row
            model = Ridge(alpha=beta, fit_intercept=fit_intercept, solver="svd").fit(X[kept], targets[kept])
            left_out[row] = model.predict(X[[row]])[0] - targets[row]
        errors[beta] = float(np.square(np.clip(left_out, -most, most)).mean())
    assert errors[past.best_beta(factor, targets, fit_intercept)] <= 1.01 * min(errors.values())
