"""The whole path: breakpoints, interpolation, and the honest end of it."""

from __future__ import annotations

import numpy as np
import pytest

from streamlabel.structure.lars import lars_path, solve_lars
from streamlabel.structure.lasso import solve_active_set
from streamlabel.structure.objective import duality_gap, kkt_violation, lam_max


@pytest.fixture
def case(rng):
    B = (rng.random((200, 25)) < 0.2).astype(float)
    y = (rng.random(200) < 0.4 * B[:, 0] + 0.4 * B[:, 1] + 0.1).astype(float)
    B, y = B - B.mean(axis=0), y - y.mean()
    return B.T @ B, B.T @ y, float(y @ y)


def test_the_path_falls_from_lam_max_to_least_squares(case):
    gram, correlation, _ = case
    path = lars_path(gram, correlation)
    assert path.lams[0] == pytest.approx(lam_max(correlation))
    assert (np.diff(path.lams) < 0.0).all()
    assert path.lams[-1] == pytest.approx(0.0, abs=1e-10)
    assert not path.codes[:, 0].any()
    np.testing.assert_allclose(path.codes[:, -1], np.linalg.solve(gram, correlation), atol=1e-8)


def test_every_point_between_breakpoints_is_optimal(case):
    gram, correlation, energy = case
    path = lars_path(gram, correlation)
    for lam in np.concatenate((path.lams[:-1], 0.3 * path.lams[:-1] + 0.7 * path.lams[1:])):
        code = path.code_at(lam)
        gradient = gram @ code - correlation
        assert abs(duality_gap(code, gradient, correlation, energy, lam)) <= 1e-8
        np.testing.assert_allclose(code, solve_active_set(gram, correlation, lam)[0], atol=1e-8)


def test_outside_the_path(case):
    gram, correlation, _ = case
    path = lars_path(gram, correlation, lam_min=0.2 * lam_max(correlation))
    assert not path.code_at(2.0 * lam_max(correlation)).any()
    assert np.array_equal(path.code_at(0.0), path.codes[:, -1])
    assert path.lams[-1] == pytest.approx(0.2 * lam_max(correlation))


def test_labels_that_tie_all_enter():
    """Labels of one size that never meet, as correlated as each other: the closed form has all three."""
    gram, correlation = np.diag([4.0, 4.0, 4.0]), np.array([3.0, 3.0, -3.0])
    code, _, _, done = solve_lars(gram, correlation, 1.0)
    assert done
    np.testing.assert_allclose(code, [0.5, 0.5, -0.5], atol=1e-9)


def test_a_path_that_lost_its_way_is_not_called_solved(case):
    gram, correlation, _ = case
    lam = 0.01 * lam_max(correlation)
    code, gradient, n_steps, done = solve_lars(gram, correlation, lam, max_iter=3)
    assert not done
    assert n_steps == 3
    assert kkt_violation(code, gradient, lam) > 0.1


def test_scikit_learn_warnings_stay_inside(rng):
    """Degenerate labels: pytest turns any warning into an error."""
    B = (rng.random((40, 10)) < 0.3).astype(float)
    B = np.hstack([B, B, B[:, :3] + B[:, 3:6]])
    B -= B.mean(axis=0)
    y = B[:, 0] - B[:, 1]
    code, gradient, _, _ = solve_lars(B.T @ B, B.T @ y, 1e-4)
    np.testing.assert_allclose(gradient, B.T @ B @ code - B.T @ y, atol=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_a_code_is_never_worse_than_none(seed):
    rng = np.random.default_rng(seed)
    B = (rng.random((12, 60)) < rng.random(60) ** 2).astype(float)
    B = np.hstack([B, B[:, :20]])
    y = (rng.random(12) < 0.5).astype(float)
    lam = 1e-3 * max(lam_max(B.T @ y), 1.0)
    code = solve_lars(B.T @ B, B.T @ y, lam)[0]
    assert 0.5 * np.sum((y - B @ code) ** 2) + lam * np.abs(code).sum() <= 0.5 * y @ y + 1e-9
