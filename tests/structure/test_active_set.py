"""The active-set lasso: optimality, agreement with scikit-learn, and the awkward columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from streamlabel.structure.active_set import solve_active_set
from streamlabel.structure.objective import duality_gap, kkt_violation, lam_max


def problem(rng, n=200, m=30, rate=0.2):
    B = (rng.random((n, m)) < rate).astype(float)
    y = (rng.random(n) < 0.3 * B[:, 0] + 0.5 * B[:, 1] + 0.05).astype(float)
    return B - B.mean(axis=0), y - y.mean()


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1, 0.01, 1e-4])
def test_optimality_conditions_and_gap(rng, share):
    B, y = problem(rng)
    L, c = B.T @ B, B.T @ y
    lam = share * lam_max(c)
    code, gradient, _, done = solve_active_set(L, c, lam)
    assert done
    np.testing.assert_allclose(gradient, L @ code - c, atol=1e-10)
    assert kkt_violation(code, gradient, lam) <= 1e-6
    assert abs(duality_gap(code, gradient, c, float(y @ y), lam)) <= 1e-9


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_agrees_with_scikit_learn(rng, share):
    B, y = problem(rng)
    lam = share * lam_max(B.T @ y)
    code, *_ = solve_active_set(B.T @ B, B.T @ y, lam)
    reference = Lasso(alpha=lam / len(y), fit_intercept=False, tol=1e-12, max_iter=100_000).fit(B, y)
    np.testing.assert_allclose(code, reference.coef_, atol=1e-6)


def test_nothing_is_selected_from_lam_max_on(rng):
    B, y = problem(rng)
    L, c = B.T @ B, B.T @ y
    assert not solve_active_set(L, c, lam_max(c))[0].any()
    assert np.count_nonzero(solve_active_set(L, c, 0.999 * lam_max(c))[0]) == 1


def test_duplicate_and_empty_columns(rng):
    B, y = problem(rng)
    B = np.hstack([B, B[:, :3], np.zeros((len(B), 2))])
    L, c = B.T @ B, B.T @ y
    lam = 0.05 * lam_max(c)
    code, gradient, _, done = solve_active_set(L, c, lam)
    assert done
    assert kkt_violation(code, gradient, lam) <= 1e-6
    assert not code[-2:].any()


def test_the_excluded_entry_stays_zero(rng):
    B, _ = problem(rng)
    L = B.T @ B
    code, gradient, _, done = solve_active_set(L, L[:, 4].copy(), 0.01 * lam_max(L[:, 4]), excluded=4)
    assert done
    assert code[4] == 0.0
    others = np.arange(len(code)) != 4
    assert kkt_violation(code[others], gradient[others], 0.01 * lam_max(L[:, 4])) <= 1e-6


def test_a_warm_start_gives_the_same_code_in_fewer_steps(rng):
    B, y = problem(rng, n=400, m=120)
    L, c = B.T @ B, B.T @ y
    near = solve_active_set(L, c, 0.021 * lam_max(c))[0]
    cold, _, cold_steps, _ = solve_active_set(L, c, 0.02 * lam_max(c))
    warm, _, warm_steps, _ = solve_active_set(L, c, 0.02 * lam_max(c), start=near)
    np.testing.assert_allclose(warm, cold, atol=1e-8)
    assert warm_steps < cold_steps


def test_rescaling_the_problem_rescales_the_code(rng):
    B, y = problem(rng)
    L, c = B.T @ B, B.T @ y
    lam = 0.1 * lam_max(c)
    np.testing.assert_allclose(
        solve_active_set(L, 7.0 * c, 7.0 * lam)[0], 7.0 * solve_active_set(L, c, lam)[0], rtol=1e-9, atol=1e-12
    )


def test_a_planted_combination_is_found(rng):
    B = (rng.random((500, 40)) < 0.15).astype(float)
    B -= B.mean(axis=0)
    planted = np.zeros(40)
    planted[[3, 17, 29]] = [1.0, 1.0, -0.5]
    y = B @ planted
    code, *_ = solve_active_set(B.T @ B, B.T @ y, 1e-6 * lam_max(B.T @ y))
    np.testing.assert_allclose(code, planted, atol=1e-4)
    assert set(np.flatnonzero(np.abs(code) > 1e-3)) == {3, 17, 29}


def test_inputs_are_not_changed(rng):
    B, y = problem(rng)
    L, c, start = B.T @ B, B.T @ y, np.zeros(30)
    start[2] = 1.0
    copies = L.copy(), c.copy(), start.copy()
    solve_active_set(L, c, 0.1 * lam_max(c), start=start)
    for before, after in zip(copies, (L, c, start), strict=True):
        assert np.array_equal(before, after)


def test_running_out_of_steps_is_said(rng):
    B, y = problem(rng, n=400, m=120)
    L, c = B.T @ B, B.T @ y
    assert not solve_active_set(L, c, 0.001 * lam_max(c), max_iter=2)[3]
