"""LEML: both steps against numpy, the whole against optimality, ridge and a planted answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.preprocessing import normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from streamlabel import LEML
from streamlabel.baselines import leml
from streamlabel.baselines.leml import SparseRows, SpectralRows, alternate
from streamlabel.classifier.objective import Design
from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.errors import ConvergenceWarning, DataError
from streamlabel.metrics.ranking import precision_at_k
from streamlabel.stats.spectral import make_factor

SOLVERS = ("spectral", "conjugate_gradient")


@pytest.fixture(params=[(120, 14), (20, 31)], ids=["tall", "wide"])
def case(request, rng):
    n_rows, n_features = request.param
    X = rng.standard_normal((n_rows, n_features)) + 0.5
    Y = (X @ rng.standard_normal((n_features, 9)) + rng.standard_normal((n_rows, 9)) > 1.0).astype(int)
    return X, Y, rng.standard_normal((40, n_features))


def make_rows(solver, X, Y, centre=True):
    labels = sparse.csr_array(Y)
    if solver == "spectral":
        return SpectralRows(make_factor(X, centre=centre), labels)
    return SparseRows(Design(X, centre), labels)


def centred(X, Y):
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def objective(X, Y, W, H, beta):
    return 0.5 * np.square(Y - X @ W @ H.T).sum() + 0.5 * beta * (np.square(W).sum() + np.square(H).sum())


@parametrize_with_checks([LEML(), LEML(solver="conjugate_gradient")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_step_for_features_is_the_kronecker_system(case, rng, solver, monkeypatch):
    monkeypatch.setattr("streamlabel.baselines.leml._SPARSE_SHRINK", 1e-12)
    X, Y, _ = case
    Xc, Yc = centred(X, Y)
    H, start = rng.standard_normal((9, 4)), rng.standard_normal((X.shape[1], 4))
    rows = make_rows(solver, X, Y)
    found = rows.weights(rows.solve(H, 0.7, start if solver == "conjugate_gradient" else start[: rows.n_coordinates]))
    system = np.kron(Xc.T @ Xc, H.T @ H) + 0.7 * np.eye(X.shape[1] * 4)
    expected = np.linalg.solve(system, (Xc.T @ Yc @ H).ravel()).reshape(-1, 4)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_step_for_labels_is_least_squares(case, rng, solver):
    X, Y, _ = case
    Xc, Yc = centred(X, Y)
    with pytest.warns(ConvergenceWarning, match="after 1 rounds"):
        found = alternate(make_rows(solver, X, Y), np.square(Yc).sum(), rng.standard_normal((9, 4)), 0.7, max_rounds=1)
    stacked = np.vstack((Xc @ found.features, np.sqrt(0.7) * np.eye(4)))
    expected = np.linalg.lstsq(stacked, np.vstack((Yc, np.zeros((4, 9)))), rcond=None)[0].T
    np.testing.assert_allclose(found.labels, expected, atol=1e-9)
    assert found.objectives[-1] == pytest.approx(objective(Xc, Yc, found.features, found.labels, 0.7))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_objective_never_rises_and_ends_where_it_is_flat(case, solver, fit_intercept):
    X, Y, _ = case
    clf = LEML(3, beta=2.0, tol=1e-14, n_iterations=5000, solver=solver, fit_intercept=fit_intercept).fit(X, Y)
    values = np.array(clf.objectives_)
    assert len(values) == 2 * clf.n_iter_
    assert (np.diff(values) <= 1e-13 * values[0]).all()
    Xc, Yc = centred(X, Y) if fit_intercept else (X, Y)
    W, H = clf.feature_factors_, clf.label_factors_
    assert clf.report_.converged
    assert values[-1] == pytest.approx(objective(Xc, Yc, W, H, 2.0), rel=1e-12)
    step = 1e-5
    for factor, other in ((W, "W"), (H, "H")):
        for place in np.ndindex(factor.shape):
            moved = factor.copy(), factor.copy()
            moved[0][place] += step
            moved[1][place] -= step
            pairs = [(m, H) if other == "W" else (W, m) for m in moved]
            slope = (objective(Xc, Yc, *pairs[0], 2.0) - objective(Xc, Yc, *pairs[1], 2.0)) / (2 * step)
            assert abs(slope) < 1e-4


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_is_its_two_steps_by_turns(case, solver):
    """Written out for labels that are all known."""
    X, Y, _ = case
    clf = LEML(4, beta=0.6, tol=1e-3, solver=solver, random_state=5).fit(X, Y)
    rows = make_rows(solver, X, Y)
    H, V = np.random.default_rng(5).standard_normal((9, 4)), np.zeros((rows.n_coordinates, 4))
    for _ in range(clf.n_iter_):
        V = rows.solve(H, 0.6, V)
        ((cross, gram),) = rows.products(V)
        H = np.linalg.solve(gram + 0.6 * np.eye(4), cross.T).T
    np.testing.assert_allclose(clf.label_factors_, H, atol=1e-8)
    np.testing.assert_allclose(clf.feature_factors_, rows.weights(V), atol=1e-8)


def test_both_solvers_agree(case):
    X, Y, X_test = case
    one, two = (LEML(9, beta=1.0, tol=1e-13, n_iterations=5000, solver=solver).fit(X, Y) for solver in SOLVERS)
    assert one.objectives_[-1] == pytest.approx(two.objectives_[-1], rel=1e-9)
    np.testing.assert_allclose(one.decision_function(X_test), two.decision_function(X_test), atol=1e-4)


def test_labels_fixed_and_orthonormal_is_ridge(case):
    """With ``H = I`` the step for the features is ridge, label by label."""
    X, Y, X_test = case
    for solver in SOLVERS:
        rows = make_rows(solver, X, Y)
        weights = rows.weights(rows.solve(np.eye(9), 3.0, np.zeros((rows.n_coordinates, 9))))
        scores = (X_test - X.mean(axis=0)) @ weights + Y.mean(axis=0)
        tolerance = 1e-9 if solver == "spectral" else 1e-2
        np.testing.assert_allclose(scores, Ridge(alpha=3.0).fit(X, Y).predict(X_test), atol=tolerance)


def test_orthonormal_rows_have_a_closed_form(rng):
    """``X'X = I``: the answer shrinks the singular values of ``X'Y`` by beta and keeps the first `rank`."""
    X = np.linalg.qr(rng.standard_normal((60, 10)))[0]
    Y = (rng.random((60, 8)) < 0.4).astype(int)
    left, values, right = np.linalg.svd(X.T @ Y, full_matrices=False)
    for rank in (2, 8):
        expected = (left[:, :rank] * np.maximum(values[:rank] - 0.3, 0.0)) @ right[:rank]
        clf = LEML(rank, beta=0.3, tol=1e-15, n_iterations=5000, fit_intercept=False).fit(X, Y)
        np.testing.assert_allclose(clf.coef_.T, expected, atol=1e-5)


def test_planted_classifiers_of_low_rank_are_found(rng):
    X, H = rng.uniform(-1.0, 1.0, (5000, 12)), rng.uniform(-1.0, 1.0, (20, 2))
    W = rng.uniform(-1.0, 1.0, (12, 2)) / 24.0
    chances = 0.5 + X @ W @ H.T
    Y = (rng.random(chances.shape) < chances).astype(int)
    scores = {rank: LEML(rank, beta=1e-3).fit(X, Y).decision_function(X) for rank in (1, 2, 20)}
    errors = {rank: float(np.square(found - chances).mean()) for rank, found in scores.items()}
    assert errors[2] < 0.5 * min(errors[1], errors[20])
    np.testing.assert_allclose(LEML(2, beta=1e-3).fit(X, Y).coef_.T, W @ H.T, atol=0.05)


def test_order_does_not_matter(case, rng):
    """Beyond the start, which is drawn label by label: the whole rank has one optimum only."""
    X, Y, X_test = case
    options = {"rank": 9, "beta": 2.0, "tol": 1e-12, "n_iterations": 5000}
    scores = LEML(**options).fit(X, Y).decision_function(X_test)
    rows, features, labels = (rng.permutation(size) for size in (*X.shape, 9))
    np.testing.assert_allclose(LEML(**options).fit(X[rows], Y[rows]).decision_function(X_test), scores, atol=1e-6)
    by_features = LEML(**options).fit(X[:, features], Y).decision_function(X_test[:, features])
    np.testing.assert_allclose(by_features, scores, atol=1e-6)
    by_labels = LEML(**options).fit(X, Y[:, labels]).decision_function(X_test)
    np.testing.assert_allclose(by_labels, scores[:, labels], atol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_is_dense(case, solver, fit_intercept, monkeypatch):
    monkeypatch.setattr("streamlabel.baselines.leml._SPARSE_SHRINK", 1e-12)
    X, Y, X_test = (np.where(np.abs(part) < 0.6, 0.0, part) for part in case)
    Y = Y.astype(int)
    clf = LEML(4, solver=solver, fit_intercept=fit_intercept)
    dense = clf.fit(X, Y).decision_function(X_test)
    thin = clf.fit(sparse.csr_array(X), sparse.csr_array(Y)).decision_function(sparse.csr_array(X_test))
    np.testing.assert_allclose(thin, dense, atol=1e-7)


def test_random_state(case):
    X, Y, X_test = case
    scores = [LEML(2, tol=1e-2, random_state=seed).fit(X, Y).decision_function(X_test) for seed in (0, 0, 1)]
    assert np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])


def test_scores_are_those_of_the_coefficients(case):
    X, Y, X_test = case
    clf = LEML(4).fit(X, Y, label_names=list("abcdefghi"))
    scores = clf.decision_function(X_test)
    np.testing.assert_allclose(scores, X_test @ clf.coef_.T + clf.intercept_, atol=1e-10)
    np.testing.assert_array_equal(clf.predict(X_test), scores > 0.5)
    columns, best = clf.predict_top_k(X_test, k=3)
    np.testing.assert_array_equal(columns, np.argsort(-scores, axis=1, kind="stable")[:, :3])
    np.testing.assert_array_equal(best, np.take_along_axis(scores, columns, axis=1))
    assert clf.label_names_ == tuple("abcdefghi")
    assert not hasattr(clf, "add_labels")


def test_a_rank_beyond_the_labels_changes_nothing(case):
    X, Y, X_test = case
    assert np.array_equal(*(LEML(rank).fit(X, Y).decision_function(X_test) for rank in (9, 5000)))


def test_rows_without_any_difference(rng):
    Y = (rng.random((30, 4)) < 0.5).astype(int)
    for solver in SOLVERS:
        clf = LEML(2, solver=solver).fit(np.ones((30, 3)), Y)
        np.testing.assert_allclose(clf.decision_function(np.ones((1, 3)))[0], Y.mean(axis=0), atol=1e-12)


def test_hardly_any_ridge_is_least_squares(rng):
    X = rng.standard_normal((80, 6))
    Y = (X @ rng.standard_normal((6, 5)) > 0.3).astype(int)
    Y = np.hstack((Y, Y[:, :3]))
    clf = LEML(8, beta=1e-13).fit(X, Y)
    design = np.hstack((X, np.ones((80, 1))))
    expected = design @ np.linalg.lstsq(design, Y, rcond=None)[0]
    np.testing.assert_allclose(clf.decision_function(X), expected, atol=1e-6)


@pytest.fixture
def made(monkeypatch):
    """The factors that LEML makes."""
    found = []

    def counted(X, *, centre):
        found.append(make_factor(X, centre=centre))
        return found[-1]

    monkeypatch.setattr(leml, "make_factor", counted)
    return found


def test_prepared_rows_change_nothing_but_the_time(case, made):
    X, Y, _ = case
    model = LEML(rank=3, beta=0.5, solver="spectral").prepare(X)
    again = [model.set_params(rank=rank).fit(X, labels).coef_ for labels, rank in ((Y, 3), (Y[:, :4], 2))]
    assert len(made) == 1
    for coef, labels, rank in zip(again, (Y, Y[:, :4]), (3, 2), strict=True):
        expected = LEML(rank=rank, beta=0.5, solver="spectral").fit(X, labels)
        np.testing.assert_array_equal(coef, expected.coef_)


def test_what_was_prepared_is_for_the_same_rows_alone(case, made):
    X, Y, _ = case
    model = LEML(rank=2, solver="spectral").prepare(X)
    model.fit(X[:-1], Y[:-1])
    assert len(made) == 2
    model.set_params(fit_intercept=False).fit(X, Y)
    assert len(made) == 3
    X[0, 0] += 1.0
    model.set_params(fit_intercept=True).fit(X, Y)
    assert len(made) == 4


def test_rows_that_would_not_be_factored_are_not(case, made, monkeypatch):
    monkeypatch.setattr(leml, "_MOST_FACTORED", 2)
    X, Y, _ = case
    assert LEML(rank=2).prepare(X).fit(X, Y).report_.solver == "conjugate gradient"
    assert not made


def test_auto_goes_by_size(case, monkeypatch):
    X, Y, _ = case
    assert LEML(2).fit(X, Y).report_.solver == "spectral"
    monkeypatch.setattr(leml, "_MOST_FACTORED", 10)
    assert LEML(2).fit(X, Y).report_.solver == "conjugate gradient"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rank": 0}, "rank is 0; it must be a whole number from 1 on"),
        ({"rank": 2.5}, "rank is 2.5"),
        ({"n_iterations": True}, "n_iterations is True"),
        ({"beta": 0.0}, "beta is 0.0; it must be a positive number"),
        ({"beta": "auto"}, "beta is 'auto'"),
        ({"tol": np.nan}, "tol is nan"),
        ({"solver": "newton"}, "solver is 'newton'"),
        ({"random_state": None}, "random_state is None"),
        ({"threshold": np.inf}, "threshold is inf"),
        ({"threshold": "f1"}, "threshold is 'f1'"),
    ],
)
def test_refusals(options, says):
    with pytest.raises(DataError, match=says):
        LEML(**options).fit([[0.0], [1.0]], [[0], [1]])


def test_stopping_short_is_said(case):
    X, Y, _ = case
    with pytest.warns(ConvergenceWarning, match="after 2 rounds, not 1e-12; allow more n_iterations or a larger tol"):
        clf = LEML(3, n_iterations=2, tol=1e-12).fit(X, Y)
    assert not clf.report_.converged
    assert clf.n_iter_ == 2


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "options", "published"),
    [
        ("bibtex", {"rank": 159, "beta": 2.0}, (62.54, 38.41, 28.21)),
        ("delicious", {"rank": 250, "beta": 10.0}, (65.67, 60.55, 56.08)),
    ],
)
def test_published_figures_are_met(data_root, name, options, published):
    """The extreme classification repository's P@1/3/5, of other splits of the same sizes: not below by more than half
    a point, not above by more than one and a half. `benchmarks/baselines.py` chose the parameters on training rows."""
    train, test = (load_catalogue_set(name, split) for split in ("train", "test"))
    X, X_test = (sparse.csr_array(normalize(part.X.astype(np.float64))) for part in (train, test))
    scores = LEML(**options).fit(X, train.Y).decision_function(X_test)
    gains = np.array([100.0 * precision_at_k(test.Y, scores, k) for k in (1, 3, 5)]) - published
    assert (gains > -0.5).all()
    assert (gains < 1.5).all()
