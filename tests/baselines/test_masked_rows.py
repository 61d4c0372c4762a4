"""LEML with missing answers: against LEML, the mask written out, and an optimiser that knows no parts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse

from streamlabel import LEML
from streamlabel.baselines.leml import Basis, MaskedRows
from streamlabel.errors import DataError

EXACT = {"tol": 1e-14, "n_iterations": 5000}


@pytest.fixture(params=[(60, 8), (14, 25)], ids=["tall", "wide"])
def case(request, rng):
    """Labels 0, 2 and 4 are known everywhere, 1 and 3 on some rows, 5 on others."""
    n_rows, n_features = request.param
    X = rng.standard_normal((n_rows, n_features)) + 0.5
    Y = (X @ rng.standard_normal((n_features, 6)) + rng.standard_normal((n_rows, 6)) > 0.5).astype(int)
    known = np.ones((n_rows, 6), dtype=bool)
    known[n_rows // 3 :, [1, 3]] = False
    known[: n_rows - 4, 5] = False
    return X, Y, known


def objective_and_slopes(X, Y, known, W, H, b, beta):
    errors = np.where(known, X @ W @ H.T + b - Y, 0.0)
    value = 0.5 * np.square(errors).sum() + 0.5 * beta * (np.square(W).sum() + np.square(H).sum())
    return value, (X.T @ errors @ H + beta * W, errors.T @ X @ W + beta * H, errors.sum(axis=0))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("rank", [2, 6])
def test_the_objective_never_rises_and_ends_where_it_is_flat(case, rank, fit_intercept):
    X, Y, known = case
    clf = LEML(rank, beta=1.5, fit_intercept=fit_intercept, **EXACT).fit_missing(X, Y, known)
    values = np.array(clf.objectives_)
    assert (np.diff(values) <= 1e-13 * values[0]).all()
    found, slopes = objective_and_slopes(X, Y, known, clf.feature_factors_, clf.label_factors_, clf.intercept_, 1.5)
    assert values[-1] == pytest.approx(found, rel=1e-10)
    for slope in slopes[: 3 if fit_intercept else 2]:
        assert np.abs(slope).max() < 1e-4
    assert clf.intercept_.any() == fit_intercept


def test_an_optimiser_that_sees_the_mask_alone_finds_no_better(case, rng):
    X, Y, known = case
    clf = LEML(6, beta=1.5, **EXACT).fit_missing(X, Y, known)
    shapes = [(X.shape[1], 6), (6, 6), (6,)]
    cuts = np.cumsum([np.prod(shape) for shape in shapes])[:-1]

    def parts(flat):
        return [part.reshape(shape) for part, shape in zip(np.split(flat, cuts), shapes, strict=True)]

    def value_and_slope(flat):
        value, slopes = objective_and_slopes(X, Y, known, *parts(flat), 1.5)
        return value, np.concatenate([slope.ravel() for slope in slopes])

    start = rng.standard_normal(sum(int(np.prod(shape)) for shape in shapes))
    best = optimize.minimize(value_and_slope, start, jac=True, options={"maxiter": 5000, "gtol": 1e-8})
    assert clf.objectives_[-1] == pytest.approx(best.fun, rel=1e-6)
    W, H, b = parts(best.x)
    np.testing.assert_allclose(clf.decision_function(X), X @ W @ H.T + b, atol=1e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_every_answer_known_it_is_leml(case, fit_intercept):
    X, Y, _ = case
    model = LEML(3, beta=0.7, fit_intercept=fit_intercept)
    expected = model.fit(X, Y).decision_function(X)
    objectives = model.objectives_
    found = model.fit_missing(X, Y, np.ones(Y.shape, dtype=bool))
    np.testing.assert_allclose(found.decision_function(X), expected, atol=1e-9)
    np.testing.assert_allclose(found.objectives_, objectives, rtol=1e-10)


def test_parts_that_are_known_on_all_rows_are_leml_too(case, monkeypatch):
    """The rows named one by one, so that nothing is diagonal, and the labels in two parts."""
    monkeypatch.setattr("streamlabel.baselines.leml._SHRINK", 1e-12)
    X, Y, _ = case
    labels, every = sparse.csr_array(Y.astype(np.int8)), np.arange(len(X))
    rows = MaskedRows(Basis(X), [(every, labels[:, :2]), (None, labels[:, 2:])])
    found, intercept = rows.learn(3, 0.7, 0)
    expected = LEML(3, beta=0.7).fit(X, Y)
    np.testing.assert_allclose(found.features @ found.labels.T, expected.coef_.T, atol=1e-8)
    np.testing.assert_allclose(intercept, expected.intercept_, atol=1e-8)


@pytest.mark.parametrize("n_part", [3, 12])
def test_the_step_for_features_is_the_kronecker_system(case, rng, n_part, monkeypatch):
    """Few rows are kept as they are, many as their Gram matrix."""
    monkeypatch.setattr("streamlabel.baselines.leml._SHRINK", 1e-13)
    X, Y, _ = case
    labels, some = sparse.csr_array(Y.astype(np.int8)), np.arange(1, 1 + n_part)
    rows = MaskedRows(Basis(X), [(None, labels[:, :4]), (some, labels[some][:, 4:])])
    H = rng.standard_normal((6, 2))
    found = rows.weights(rows.solve(H, 0.7, np.zeros((rows.n_coordinates, 2))))
    system, right = 0.7 * np.eye(2 * X.shape[1]), np.zeros((X.shape[1], 2))
    for part, columns in ((X, slice(0, 4)), (X[some], slice(4, 6))):
        own = Y[:, columns] if part is X else Y[some][:, columns]
        centred, own = part - part.mean(axis=0), own - own.mean(axis=0)
        system += np.kron(centred.T @ centred, H[columns].T @ H[columns])
        right += centred.T @ own @ H[columns]
    np.testing.assert_allclose(found, np.linalg.solve(system, right.ravel()).reshape(-1, 2), atol=1e-8)


def test_answers_that_are_not_known_have_no_part_and_the_known_of_others_has(case):
    X, Y, known = case
    model = LEML(4)
    first = model.fit_missing(X, Y, known, list("abcdef")).decision_function(X)
    assert model.label_names_ == tuple("abcdef")
    hidden = np.where(known, Y, 1 - Y)
    thin = LEML(4).fit_missing(sparse.csr_array(X), sparse.csr_array(hidden), sparse.csr_array(known))
    np.testing.assert_allclose(thin.decision_function(X), first, atol=1e-8)
    assert not np.allclose(LEML(4).fit(X, hidden).decision_function(X), first, atol=1e-2)
    alone = LEML(4).fit(X[known[:, 1]], Y[known[:, 1]]).decision_function(X)
    assert not np.allclose(alone[:, 1], first[:, 1], atol=1e-2)


@pytest.mark.parametrize(
    ("Y", "annotated", "says"),
    [
        ([[0, 1], [1, 0]], [[True], [True]], r"annotated is bool of shape \(2, 1\) and y has shape \(2, 2\)"),
        ([[0, 1], [1, 0]], [[1, 1], [1, 0]], "annotated is int64 of shape"),
        ([[0, 1], [1, 0]], [[True, False], [True, False]], "label 'label_1' is not annotated on any row; leave it out"),
        ([0, 1], [True, False], "y is a vector of classes"),
    ],
)
def test_refusals(Y, annotated, says):
    with pytest.raises(DataError, match=says):
        LEML().fit_missing([[0.0], [1.0]], Y, np.array(annotated))
    with pytest.raises(DataError, match="beta is -1"):
        LEML(beta=-1).fit_missing([[0.0], [1.0]], Y, np.array(annotated))
