"""What is particular to the active set; the rest is in tests/contracts/test_lasso_solvers.py."""

from __future__ import annotations

import numpy as np
import pytest

from streamlabel.structure.lasso import duality_gap, lam_max, solve_active_set
from streamlabel.structure.represent import SOLVERS, solve_column


def dependent_labels(seed):
    """Few rows, many labels, copies among them, signed: blocks of the Gram that have no inverse."""
    rng = np.random.default_rng(seed)
    B = (rng.random((15, 120)) < rng.random(120) ** 2).astype(float)
    B[:, rng.integers(120, size=40)] = B[:, rng.integers(120, size=40)]
    return 2.0 * B - 1.0, np.where(rng.random(15) < 0.4, 1.0, -1.0)


@pytest.mark.parametrize("seed", range(40))
def test_dependent_labels_at_a_small_penalty(seed):
    B, y = dependent_labels(seed)
    gram, correlation = B.T @ B, B.T @ y
    lam = 1e-4 * lam_max(correlation)
    column = solve_column(gram, correlation, 15.0, lam, "active_set", excluded=None, start=None, tol=1e-6)
    code = np.zeros(120)
    code[column.rows] = column.values
    assert column.report.converged
    assert duality_gap(code, gram @ code - correlation, correlation, 15.0, lam) <= 1e-6


def test_the_weight_of_two_equal_labels_is_shared(rng):
    B = (rng.random((100, 6)) < 0.3).astype(float)
    B = np.hstack([B, B[:, :1]])
    gram, correlation = B.T @ B, B.T @ B[:, 0]
    code, *_ = solve_active_set(gram, correlation, 0.1 * lam_max(correlation))
    assert code[0] == pytest.approx(code[-1], rel=1e-3)
    assert code[0] + code[-1] == pytest.approx(0.9)


def test_it_is_exact_in_few_solves():
    """One direct solve where the first labels that enter are the right ones."""
    counts = np.arange(1.0, 9.0)
    code, _, steps, done = solve_active_set(np.diag(counts), np.full(8, 3.0), 1.0)
    assert done
    assert steps == 1
    np.testing.assert_allclose(code, 2.0 / counts, rtol=1e-11)


def test_what_it_cannot_finish_coordinate_descent_does(rng, monkeypatch):
    B = (rng.random((200, 40)) < 0.2).astype(float)
    y = B[:, :5].sum(axis=1) - B[:, 5:9].sum(axis=1)
    gram, correlation = B.T @ B, B.T @ y
    lam = 0.01 * lam_max(correlation)
    column = solve_column(gram, correlation, float(y @ y), lam, "active_set", excluded=None, start=None, tol=1e-6)
    assert column.report.note == ""
    monkeypatch.setitem(SOLVERS, "active_set", lambda *args, **options: (np.zeros(40), -correlation, 3, False))
    rescued = solve_column(gram, correlation, float(y @ y), lam, "active_set", excluded=None, start=None, tol=1e-9)
    assert rescued.report.converged
    assert "coordinate descent" in rescued.report.note
    np.testing.assert_allclose(rescued.values, column.values, atol=1e-5)
