"""One behaviour suite for every solver of the squared loss, coupled and not.

The reference is scipy's Sylvester solver on dense, explicitly centred matrices, refined in extended precision: where
``I - S2`` is nearly singular it is scipy's answer that misses the eighth digit.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse

from streamlabel.classifier.penalty import SMALLEST_SHARE
from streamlabel.classifier.solve import solve

SOLVERS = ["spectral", "cholesky", "dual", "conjugate_gradient", "newton", "lbfgs"]
COUPLING_SOLVERS = ["spectral", "conjugate_gradient", "newton", "lbfgs"]
SHAPES = {"tall": (60, 12), "wide": (12, 50), "square": (20, 20)}
# What the iterative ones need to be as exact as the direct ones. L-BFGS is not: it ends where differences of J drown in
# rounding, at about the root of the machine precision.
TOLERANCE = {"conjugate_gradient": 1e-12, "newton": 1e-13, "lbfgs": 1e-7}
N_LABELS = 5


def rows_of(kind: str, rng: np.random.Generator) -> np.ndarray:
    if kind == "rank-deficient":
        return rng.standard_normal((40, 6)) @ rng.standard_normal((6, 15))
    X = rng.standard_normal(SHAPES[kind])
    return X * (rng.random(X.shape) < 0.6) + 0.3


def coupling_of(kind: str, rng: np.random.Generator) -> np.ndarray | None:
    """S2 with an empty diagonal; ``near-singular`` makes the smallest singular value of I - S2 about 2.5e-3."""
    if kind == "none":
        return None
    S2 = 0.25 * rng.standard_normal((N_LABELS, N_LABELS)) * (rng.random((N_LABELS, N_LABELS)) < 0.5)
    np.fill_diagonal(S2, 0.0)
    if kind == "near-singular":
        S2[:2] = S2[:, :2] = 0.0
        S2[0, 1], S2[1, 0] = 1.0, 1.0 - 5e-3
    elif kind == "singular":
        S2[:2] = S2[:, :2] = 0.0
        S2[0, 1] = S2[1, 0] = 1.0
    return S2


def reference(X, Y, P, S2, beta, fit_intercept):
    X, Y, P = (part.astype(np.longdouble) for part in (X, Y, P))
    mean_x, mean_y = X.mean(axis=0), Y.mean(axis=0)
    Xc, Yc = (X - mean_x, Y - mean_y) if fit_intercept else (X, Y)
    M = np.eye(Y.shape[1], dtype=np.longdouble) - (0.0 if S2 is None else S2)
    q = np.square(linalg.svdvals(M.astype(float)))
    N = M @ M.T + max(0.0, SMALLEST_SHARE * q[0] - q[-1]) * np.eye(len(M))
    A, B, R = Xc.T @ Xc, beta * N, Xc.T @ Yc + beta * P @ M.T
    V = np.zeros_like(P)
    for _ in range(4):
        V += linalg.solve_sylvester(*(part.astype(float) for part in (A, B, R - A @ V - V @ B)))
    return V, (mean_y - mean_x @ V) if fit_intercept else np.zeros(Y.shape[1])


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-300))


@pytest.fixture
def case(rows, rng):
    X = rows_of(rows, rng)
    Y = (rng.random((len(X), N_LABELS)) < 0.4).astype(float)
    Y[0], Y[1] = 0.0, 1.0
    return X, Y, rng.standard_normal((X.shape[1], N_LABELS))


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "plain"])
@pytest.mark.parametrize("form", ["sparse", "dense"])
@pytest.mark.parametrize("rows", ["tall", "wide", "square", "rank-deficient"])
@pytest.mark.parametrize(
    ("solver", "coupling"),
    [(solver, "none") for solver in SOLVERS]
    + [(solver, "coupled") for solver in COUPLING_SOLVERS]
    + [(solver, "near-singular") for solver in COUPLING_SOLVERS if solver != "lbfgs"],  # its condition is beyond L-BFGS
)
def test_agrees_with_scipy(case, rows, form, solver, coupling, fit_intercept, rng):
    X, Y, P = case
    S2 = coupling_of(coupling, rng)
    expected, expected_b = reference(X, Y, P, S2, 1.5, fit_intercept)
    given = (sparse.csr_array(X), sparse.csr_array(Y)) if form == "sparse" else (X, Y)
    weights, intercept, report = solve(
        *given, P, S2, beta=1.5, solver=solver, fit_intercept=fit_intercept,
        tolerance=TOLERANCE.get(solver, 1e-10), max_iter=5000,
    )  # fmt: skip
    bound = 1e-5 if solver == "lbfgs" else 1e-8
    assert distance(weights, expected) <= bound
    assert distance(np.append(intercept, 1.0), np.append(expected_b, 1.0)) <= bound
    assert report.converged
    assert report.solver == solver
    assert report.violation <= report.tolerance
    assert ("nearly singular" in report.note) == (coupling == "near-singular")


@pytest.mark.parametrize("rows", ["tall", "rank-deficient"])
@pytest.mark.parametrize("solver", ["spectral", "conjugate_gradient", "newton"])
def test_a_singular_coupling_stays_well_defined_and_is_said(case, rows, solver, rng):
    X, Y, P = case
    S2 = coupling_of("singular", rng)
    expected, _ = reference(X, Y, P, S2, 1.5, True)
    weights, _, report = solve(X, Y, P, S2, beta=1.5, solver=solver, tolerance=1e-9, max_iter=5000)
    assert np.isfinite(weights).all()
    # The ridge bounds the condition, at up to 1e8 times that of the rows: predictions agree, weights to fewer digits.
    assert distance(X @ weights, X @ expected.astype(float)) <= 1e-5
    assert "nearly singular" in report.note
    assert "a ridge of" in report.note


def from_its_svd(rng):
    """Rows with known singular values and centred columns, so that every ridge answer is known."""
    left = linalg.qr(np.column_stack([np.ones(30), rng.standard_normal((30, 6))]), mode="economic")[0][:, 1:]
    right = linalg.qr(rng.standard_normal((6, 6)))[0]
    values = np.array([5.0, 3.0, 2.0, 1.0, 0.5, 0.1])
    return left, values, right


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_answer_known_by_construction(solver, rng):
    left, values, right = from_its_svd(rng)
    X, P, Y = left * values @ right.T, rng.standard_normal((6, 2)), rng.standard_normal((30, 2))
    beta = 0.7
    # Along every singular direction the answer is a weighted mean of least squares and the anchor.
    free = (left.T @ Y) / values[:, None]
    share = (values**2 / (values**2 + beta))[:, None]
    expected = right @ (share * free + (1.0 - share) * (right.T @ P))
    weights, intercept, _ = solve(X, Y, P, beta=beta, solver=solver, tolerance=TOLERANCE.get(solver, 1e-10))
    assert distance(weights, expected) <= (1e-5 if solver == "lbfgs" else 1e-10)
    np.testing.assert_allclose(intercept, Y.mean(axis=0), atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_limits_are_the_anchor_and_least_squares(solver, rng):
    left, values, right = from_its_svd(rng)
    X, P, Y = left * values @ right.T, rng.standard_normal((6, 2)), rng.standard_normal((30, 2))
    tolerance = TOLERANCE.get(solver, 1e-10)
    strong, _, _ = solve(X, Y, P, beta=1e9, solver=solver, tolerance=tolerance)
    assert distance(strong, P) <= 1e-7
    if solver == "dual":  # its kernel (30, 30) has rank 6, so beta = 1e-9 is all that holds it
        tolerance = 1e-5
    weak, _, _ = solve(X, Y, P, beta=1e-9, solver=solver, tolerance=tolerance, max_iter=5000)
    least_squares = np.linalg.lstsq(np.column_stack([X, np.ones(30)]), Y, rcond=None)[0][:-1]
    assert distance(weak, least_squares) <= (1e-3 if solver == "lbfgs" else 1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("rows", ["tall"])
def test_the_order_of_labels_and_their_company_do_not_matter(case, rows, solver, rng):
    X, Y, P = case
    tolerance = TOLERANCE.get(solver, 1e-10)
    together, b, _ = solve(X, Y, P, beta=2.0, solver=solver, tolerance=tolerance)
    order = rng.permutation(N_LABELS)
    permuted, b_permuted, _ = solve(X, Y[:, order], P[:, order], beta=2.0, solver=solver, tolerance=tolerance)
    bound = 1e-5 if solver == "lbfgs" else 1e-11
    np.testing.assert_allclose(permuted, together[:, order], rtol=0, atol=bound)
    np.testing.assert_allclose(b_permuted, b[order], rtol=0, atol=bound)
    alone, _, _ = solve(X, Y[:, [3]], P[:, [3]], beta=2.0, solver=solver, tolerance=tolerance)
    np.testing.assert_allclose(alone, together[:, [3]], rtol=0, atol=bound)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("rows", ["wide"])
def test_inputs_are_not_changed(case, rows, solver):
    X, Y, P = case
    copies = X.copy(), Y.copy(), P.copy()
    solve(X, Y, P, beta=1.0, solver=solver, tolerance=1e-5)
    for before, after in zip(copies, (X, Y, P), strict=True):
        np.testing.assert_array_equal(before, after)
