"""One behaviour suite for every lasso solver on the label Gram: optimality, scikit-learn, limits, awkward labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import Lasso

from streamlabel.data.synthetic import make_planted_labels
from streamlabel.stats.label_gram import centred_cross, signed_label_gram
from streamlabel.structure.lasso import duality_gap, kkt_violation, lam_max, objective
from streamlabel.structure.represent import SOLVERS

WARM = ["active_set", "coordinate_descent"]  # the path of LARS begins at lam_max
STEADY = ["active_set", "coordinate_descent"]  # solve dependent labels too; LARS may stop short there, and says so


@pytest.fixture(params=SOLVERS)
def solve(request):
    return SOLVERS[request.param]


def problem(rng, n=200, m=30, rate=0.2):
    B = (rng.random((n, m)) < rate).astype(float)
    y = (rng.random(n) < 0.3 * B[:, 0] + 0.5 * B[:, 1] + 0.05).astype(float)
    return B - B.mean(axis=0), y - y.mean()


def assert_optimal(gram, correlation, energy, lam, answer, *, excluded=None):
    """What is true of the solution, whoever found it; from the code alone."""
    code, gradient, _, done = answer
    assert done
    scale = max(lam_max(correlation), 1.0)
    np.testing.assert_allclose(gradient, gram @ code - correlation, atol=1e-9 * scale)
    gradient = gram @ code - correlation
    if excluded is not None:
        assert code[excluded] == 0.0
        gradient[excluded] = 0.0
    assert kkt_violation(code, gradient, lam) * lam <= 1e-8 * scale
    assert -1e-10 <= duality_gap(code, gradient, correlation, energy, lam) <= 1e-6


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1, 0.01, 0.001])
def test_optimality_conditions_and_gap(rng, solve, share):
    B, y = problem(rng)
    gram, correlation = B.T @ B, B.T @ y
    lam = share * lam_max(correlation)
    assert_optimal(gram, correlation, y @ y, lam, solve(gram, correlation, lam))


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_agrees_with_scikit_learn(rng, solve, share):
    B, y = problem(rng)
    lam = share * lam_max(B.T @ y)
    reference = Lasso(alpha=lam / len(y), fit_intercept=False, tol=1e-12, max_iter=100_000).fit(B, y)
    np.testing.assert_allclose(solve(B.T @ B, B.T @ y, lam)[0], reference.coef_, atol=1e-6)


def test_labels_without_an_intercept_agree_with_scikit_learn(rng, solve):
    """The paper's form: signed labels, a Gram that is far from diagonal."""
    B = (rng.random((150, 12)) < 0.25).astype(np.int8)
    signed = 2.0 * B - 1.0
    gram = signed_label_gram(sparse.csr_array(B))
    correlation = np.ascontiguousarray(gram[:-1, -1])
    lam = 0.05 * lam_max(correlation)
    reference = Lasso(alpha=lam / 150, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(
        signed[:, :-1], signed[:, -1]
    )
    code = solve(np.ascontiguousarray(gram[:-1, :-1]), correlation, lam)[0]
    np.testing.assert_allclose(code, reference.coef_, atol=1e-6)


def test_nothing_is_selected_from_lam_max_on(rng, solve):
    B, y = problem(rng)
    gram, correlation = B.T @ B, B.T @ y
    for factor in (1.0, 1.5, 100.0):
        code, gradient, _, done = solve(gram, correlation, factor * lam_max(correlation))
        assert done
        assert not code.any()
        np.testing.assert_array_equal(gradient, -correlation)
    assert np.count_nonzero(solve(gram, correlation, 0.999 * lam_max(correlation))[0]) == 1


def test_orthogonal_labels_have_a_closed_form(rng, solve):
    """soft(c_j, lam) / L_jj: labels that never occur together, without an intercept."""
    counts = rng.integers(1, 50, size=20).astype(float)
    correlation = rng.standard_normal(20) * counts
    lam = 0.4 * lam_max(correlation)
    expected = np.sign(correlation) * np.maximum(np.abs(correlation) - lam, 0.0) / counts
    np.testing.assert_allclose(solve(np.diag(counts), correlation, lam)[0], expected, atol=1e-8)


def test_empty_columns_are_never_used(rng, solve):
    B, y = problem(rng)
    B = np.hstack([np.zeros((len(B), 1)), B, np.zeros((len(B), 2))])
    gram, correlation = B.T @ B, B.T @ y
    lam = 0.05 * lam_max(correlation)
    answer = solve(gram, correlation, lam)
    assert_optimal(gram, correlation, y @ y, lam, answer)
    assert not answer[0][[0, -2, -1]].any()


def test_a_constant_label_has_an_empty_code(rng, solve):
    """Centred, it is zero: nothing correlates with it, at any lam."""
    B, _ = problem(rng)
    code, gradient, _, done = solve(B.T @ B, np.zeros(30), 0.1)
    assert done
    assert not code.any()
    assert not gradient.any()


def test_no_past_labels_at_all(solve):
    code, gradient, _, done = solve(np.zeros((0, 0)), np.zeros(0), 1.0)
    assert done
    assert code.shape == gradient.shape == (0,)


@pytest.mark.parametrize("name", STEADY)
@pytest.mark.parametrize("share", [0.3, 0.05, 0.005])
def test_duplicate_columns(rng, name, share):
    B, y = problem(rng)
    B = np.hstack([B, B[:, :3], B[:, :2], np.zeros((len(B), 2))])
    gram, correlation = B.T @ B, B.T @ y
    lam = share * lam_max(correlation)
    assert_optimal(gram, correlation, y @ y, lam, SOLVERS[name](gram, correlation, lam))


def test_duplicates_are_solved_or_it_is_said(rng, solve):
    B, y = problem(rng)
    B = np.hstack([B, B, B[:, :5]])
    gram, correlation = B.T @ B, B.T @ y
    lam = 0.02 * lam_max(correlation)
    answer = solve(gram, correlation, lam)
    if answer[3]:
        assert_optimal(gram, correlation, y @ y, lam, answer)


def test_a_past_label_that_is_the_new_one_is_found_alone(rng, solve):
    B, _ = problem(rng)
    gram = B.T @ B
    correlation = np.ascontiguousarray(gram[:, 7])
    lam = 0.01 * lam_max(correlation)
    expected = np.zeros(30)
    expected[7] = 1.0 - lam / gram[7, 7]
    np.testing.assert_allclose(solve(gram, correlation, lam)[0], expected, atol=1e-8)


@pytest.mark.parametrize("own", [0, 11, 29])
def test_the_excluded_entry_stays_zero(rng, solve, own):
    B, _ = problem(rng)
    gram = B.T @ B
    correlation = np.ascontiguousarray(gram[:, own])
    lam = 0.005 * lam_max(correlation)
    answer = solve(gram, correlation, lam, excluded=own)
    assert_optimal(gram, correlation, gram[own, own], lam, answer, excluded=own)
    others = np.delete(np.arange(30), own)
    without = solve(np.ascontiguousarray(gram[np.ix_(others, others)]), correlation[others], lam)[0]
    np.testing.assert_allclose(answer[0][others], without, atol=1e-7)


@pytest.mark.parametrize("name", WARM)
def test_a_warm_start_gives_the_same_code_sooner(rng, name):
    solve = SOLVERS[name]
    B, y = problem(rng, n=400, m=120)
    gram, correlation = B.T @ B, B.T @ y
    lam = 0.02 * lam_max(correlation)
    near = solve(gram, correlation, 1.05 * lam)[0]
    cold, _, cold_steps, _ = solve(gram, correlation, lam)
    warm, _, warm_steps, _ = solve(gram, correlation, lam, start=near)
    np.testing.assert_allclose(warm, cold, atol=1e-7)
    assert warm_steps < cold_steps


@pytest.mark.parametrize("name", WARM)
def test_a_start_can_be_anything(rng, name):
    B, y = problem(rng)
    B[:, 4] = 0.0
    gram, correlation = B.T @ B, B.T @ y
    lam = 0.1 * lam_max(correlation)
    for start in (10.0 * rng.standard_normal(30), np.full(30, -3.0)):
        answer = SOLVERS[name](gram, correlation, lam, start=start)
        assert_optimal(gram, correlation, y @ y, lam, answer)
        assert answer[0][4] == 0.0


def test_rescaling_the_problem_rescales_the_code(rng, solve):
    B, y = problem(rng)
    gram, correlation = B.T @ B, B.T @ y
    lam = 0.1 * lam_max(correlation)
    for factor in (1e-6, 7.0, 1e6):
        np.testing.assert_allclose(
            solve(gram, factor * correlation, factor * lam)[0] / factor, solve(gram, correlation, lam)[0], atol=1e-7
        )


def test_the_order_of_the_labels_is_irrelevant(rng, solve):
    B, y = problem(rng)
    gram, correlation = B.T @ B, B.T @ y
    lam, order = 0.05 * lam_max(correlation), rng.permutation(30)
    shuffled = solve(np.ascontiguousarray(gram[np.ix_(order, order)]), correlation[order], lam)[0]
    np.testing.assert_allclose(shuffled, solve(gram, correlation, lam)[0][order], atol=1e-7)


def test_inputs_are_not_changed(rng, solve):
    B, y = problem(rng)
    gram, correlation, start = B.T @ B, B.T @ y, np.zeros(30)
    start[2] = 1.0
    copies = gram.copy(), correlation.copy(), start.copy()
    solve(gram, correlation, 0.1 * lam_max(correlation), start=start, excluded=3)
    for before, after in zip(copies, (gram, correlation, start), strict=True):
        assert np.array_equal(before, after)


def test_running_out_of_steps_is_said(rng, solve):
    B, y = problem(rng, n=400, m=120)
    gram, correlation = B.T @ B, B.T @ y
    lam = 0.001 * lam_max(correlation)
    code, gradient, _, done = solve(gram, correlation, lam, max_iter=2)
    assert not done
    assert objective(code, gradient, correlation, y @ y, lam) <= 0.5 * (y @ y)


@pytest.mark.parametrize("n_new", [8])
def test_planted_structure_is_recovered(solve, n_new):
    planted = make_planted_labels(n_rows=600, n_past=24, n_new=n_new, n_features=24, random_state=1)
    gram = centred_cross(planted.Y_past, planted.Y_past)
    correlations = centred_cross(planted.Y_past, planted.Y_new)
    expected = planted.codes.toarray()
    for j in range(n_new):
        correlation = np.ascontiguousarray(correlations[:, j])
        code = solve(gram, correlation, 1e-5 * lam_max(correlation))[0]
        np.testing.assert_allclose(code, expected[:, j], atol=1e-3)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(STEADY), st.floats(0.02, 0.9))
def test_any_labels_are_solved(seed, name, share):
    """Few rows, many labels: dependent, duplicate, empty and full columns all at once."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 30)), int(rng.integers(1, 40))
    B = (rng.random((n, m)) < rng.random(m)).astype(float)
    y = (rng.random(n) < 0.4).astype(float)
    B, y = B - B.mean(axis=0), y - y.mean()
    gram, correlation = B.T @ B, B.T @ y
    lam = share * max(lam_max(correlation), 0.1)
    assert_optimal(gram, correlation, y @ y, lam, SOLVERS[name](gram, correlation, lam))


@pytest.mark.parametrize("name", WARM)
def test_a_tighter_tolerance_is_kept(rng, name):
    B, y = problem(rng)
    gram, correlation = B.T @ B, B.T @ y
    lam = 0.05 * lam_max(correlation)
    code, gradient, _, done = SOLVERS[name](gram, correlation, lam, tol=1e-12)
    assert done
    assert kkt_violation(code, gradient, lam) * lam <= 1e-11 * lam_max(correlation)
