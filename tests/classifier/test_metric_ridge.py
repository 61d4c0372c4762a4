"""Both factors against the formula they are named for, plain ridge, and brute-force leave-one-out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from streamlabel.classifier.ridge import FeatureRidge, HatSpectrum, RowRidge, make_ridge, mean_square_length

KINDS = pytest.mark.parametrize("kind", [RowRidge, FeatureRidge])


@pytest.fixture(params=[(40, 9), (12, 30)], ids=["tall", "wide"])
def case(request, rng):
    n, d = request.param
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    return X, (rng.random((n, 3)) < 0.4).astype(float), rng.standard_normal((d, 4))


def dense_answer(X, y, basis, share, beta, centre):
    Xc = X - X.mean(axis=0) if centre else X
    yc = y - y.mean(axis=0) if centre else y
    K1 = Xc @ basis
    scale = np.trace(Xc @ Xc.T) / np.trace(K1 @ K1.T)
    C = (1 - share) * np.eye(X.shape[1]) + share * scale * basis @ basis.T
    return C @ Xc.T @ np.linalg.solve(Xc @ C @ Xc.T + beta * np.eye(len(X)), yc)


@KINDS
@pytest.mark.parametrize("share", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("centre", [True, False])
def test_solves_its_formula(case, kind, share, centre):
    X, y, basis = case
    ridge = kind(sparse.csr_array(X), 0.8, basis=basis, share=share, centre=centre)
    np.testing.assert_allclose(ridge.solve(y), dense_answer(X, y, basis, share, 0.8, centre), atol=1e-9)


@KINDS
def test_without_a_metric_it_is_scikit_learns_ridge(case, kind):
    X, y, _ = case
    np.testing.assert_allclose(kind(sparse.csr_array(X), 2.0).solve(y), Ridge(alpha=2.0).fit(X, y).coef_.T, atol=1e-8)


@KINDS
@pytest.mark.parametrize("centre", [True, False])
def test_leave_one_out_is_leaving_one_out(case, kind, centre):
    X, y, _ = case
    ridge = kind(sparse.csr_array(X), 0.5, centre=centre)
    found = ridge.leave_one_out(y, ridge.solve(y))
    for i in (0, 5, 11):
        others = np.arange(len(X)) != i
        model = Ridge(alpha=0.5, fit_intercept=centre, solver="cholesky").fit(X[others], y[others])
        np.testing.assert_allclose(found[i], y[i] - model.predict(X[[i]])[0], atol=1e-8)


@KINDS
def test_leave_one_out_with_the_metric_held_fixed(case, kind):
    X, y, basis = case
    ridge = kind(sparse.csr_array(X), 0.5, basis=basis, share=0.4)
    Xc = X - X.mean(axis=0)
    C = 0.6 * np.eye(X.shape[1]) + 0.4 * np.trace(Xc @ Xc.T) / np.trace(Xc @ basis @ basis.T @ Xc.T) * basis @ basis.T
    root = np.linalg.cholesky(C)
    found = ridge.leave_one_out(y, ridge.solve(y))
    others = np.arange(len(X)) != 3
    model = Ridge(alpha=0.5, solver="cholesky").fit(X[others] @ root, y[others])
    np.testing.assert_allclose(found[3], y[3] - model.predict(X[[3]] @ root)[0], atol=1e-8)


def test_the_smaller_factor_is_chosen(case):
    X, _, _ = case
    assert isinstance(make_ridge(sparse.csr_array(X), 1.0), RowRidge if len(X) < X.shape[1] else FeatureRidge)


def test_mean_square_length(case):
    X, _, _ = case
    found = mean_square_length(sparse.csr_array(X), X.mean(axis=0))
    assert found == pytest.approx(np.square(X - X.mean(axis=0)).sum(axis=1).mean())


@KINDS
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_compare_learns_alone_and_toward_an_anchor_and_knows_the_residuals(case, kind, centre, form, rng):
    X, y, _ = case
    anchor = rng.standard_normal((X.shape[1], y.shape[1]))
    found = kind(sparse.csr_array(X), 0.7, centre=centre).compare(form(y), anchor)
    alone = Ridge(alpha=0.7, fit_intercept=centre, solver="cholesky").fit(X, y)
    shifted = Ridge(alpha=0.7, fit_intercept=centre, solver="cholesky").fit(X, y - X @ anchor)
    np.testing.assert_allclose(found.alone, alone.coef_.T, atol=1e-8)
    np.testing.assert_allclose(found.toward, anchor + shifted.coef_.T, atol=1e-8)
    np.testing.assert_allclose(found.residual_alone, np.square(y - alone.predict(X)).sum(axis=0), atol=1e-8)
    toward = np.square(y - X @ anchor - shifted.predict(X)).sum(axis=0)
    np.testing.assert_allclose(found.residual_toward, toward, atol=1e-8)


@KINDS
@pytest.mark.parametrize("centre", [True, False])
def test_freedom_is_rows_less_the_trace_of_the_hat_matrix(case, kind, centre):
    X, _, _ = case
    hat = Ridge(alpha=0.7, fit_intercept=centre, solver="cholesky").fit(X, np.eye(len(X))).predict(X)
    expected = len(X) - np.trace(hat)
    assert kind(sparse.csr_array(X), 0.7, centre=centre).freedom == pytest.approx(expected, abs=1e-8)
    centred = X - X.mean(axis=0) if centre else X
    known = HatSpectrum.of(np.linalg.eigvalsh(centred.T @ centred), 0.7)
    assert kind(sparse.csr_array(X), 0.7, centre=centre, hat=known).freedom == pytest.approx(expected, abs=1e-8)


@KINDS
@pytest.mark.parametrize("centre", [True, False])
def test_what_a_code_can_spend_is_bounded(case, kind, centre, rng):
    """The trace of (I - H) H on random and on the worst spaces, against both forms of the bound."""
    X, _, _ = case
    ridge = kind(sparse.csr_array(X), 0.7, centre=centre)
    Xc = X - X.mean(axis=0) if centre else X
    hat = Xc @ np.linalg.solve(Xc.T @ Xc + 0.7 * np.eye(X.shape[1]), Xc.T)
    between = hat - hat @ hat
    exact = HatSpectrum.of(np.linalg.eigvalsh(Xc.T @ Xc), 0.7)
    worst = np.linalg.eigh(between)[1][:, ::-1]
    for size in (0, 1, 3, 8):
        for space in (worst[:, :size], np.linalg.qr(rng.standard_normal((len(X), size)))[0]):
            spent = float(np.trace(space.T @ between @ space))
            assert spent <= exact.most_between(np.array([size]))[0] + 1e-9
            assert spent <= ridge.hat.most_between(np.array([size]))[0] + 1e-9
        assert exact.most_between(np.array([size]))[0] == pytest.approx(
            np.trace(worst[:, :size].T @ between @ worst[:, :size]), abs=1e-9
        )
