"""Conjugate gradients: matrix-free, started at the anchor, honest about where they stopped."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import cg

from streamlabel.classifier.conjugate_gradient import conjugate_gradient, solve_conjugate_gradient, still_worked
from streamlabel.classifier.objective import Design
from streamlabel.classifier.penalty import make_penalty


@pytest.fixture
def system(rng):
    factor = rng.standard_normal((30, 12))
    return factor.T @ factor + np.diag(np.logspace(-1, 2, 12)), rng.standard_normal((12, 4))


@pytest.mark.parametrize("together", [False, True])
def test_it_solves_and_each_column_follows_its_own_krylov_space(system, together):
    A, R = system
    Z, taken = conjugate_gradient(lambda V: A @ V, R, lambda V: V, np.full(4, 1e-10), 200, together)
    np.testing.assert_allclose(Z, np.linalg.solve(A, R), atol=1e-9)
    assert (taken > 0).all()
    assert (taken < 200).all()
    if not together:
        for j in range(4):
            steps = []
            theirs, _ = cg(A, R[:, j], rtol=0.0, atol=0.0, maxiter=5, callback=steps.append)
            ours, _ = conjugate_gradient(lambda V: A @ V, R[:, [j]], lambda V: V, np.zeros(1), 5)
            np.testing.assert_allclose(ours[:, 0], theirs, rtol=1e-8)


def test_the_exact_inverse_needs_one_iteration(system):
    A, R = system
    inverse = np.linalg.inv(A)
    _, taken = conjugate_gradient(lambda V: A @ V, R, lambda V: inverse @ V, np.full(4, 1e-8), 50)
    assert taken.tolist() == [1, 1, 1, 1]


def test_a_column_does_not_depend_on_its_company(system):
    A, R = system
    target = np.array([1e-2, 1e-12, 1e-6, 1e-9])
    apply = lambda V: np.einsum("ij,jk->ik", A, V)  # noqa: E731  one column at a time, so that rounding is the same
    together, _ = conjugate_gradient(apply, R, lambda V: V / np.diag(A)[:, None], target, 200)
    for j in range(4):
        alone, _ = conjugate_gradient(apply, R[:, [j]], lambda V: V / np.diag(A)[:, None], target[[j]], 200)
        np.testing.assert_allclose(together[:, [j]], alone, rtol=1e-9)


def test_columns_that_are_done_are_dropped_and_change_no_bit_of_the_others(rng):
    """Columns of very different difficulty: every product is of the columns that still need it, and of two at least."""
    n_columns = 9
    X = sparse.random_array((60, 40), density=0.2, rng=rng, format="csr")
    shifts = np.logspace(2, -3, n_columns)
    R = rng.standard_normal((40, n_columns))
    target = 1e-8 * np.linalg.norm(R, axis=0)
    widths: list[int] = []

    def operators(columns):
        def apply(Z):
            widths.append(Z.shape[1])
            return X.T @ (X @ Z) + Z * shifts[columns]

        return apply, lambda V: V / (1.0 + shifts[columns])

    everything = np.arange(n_columns)
    carried, steps = conjugate_gradient(operators(everything)[0], R, operators(everything)[1], target, 500)
    assert set(widths) == {n_columns}
    n_products = len(widths)
    widths.clear()
    dropped, steps_dropped = conjugate_gradient(
        operators(everything)[0], R, operators(everything)[1], target, 500, take=operators
    )
    np.testing.assert_array_equal(dropped, carried)
    np.testing.assert_array_equal(steps_dropped, steps)
    assert len(widths) == n_products == steps.max() > steps.min() > 0
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] >= 2
    assert sum(widths) < sum(steps) + 2 * n_products  # little more than what the columns need themselves


@pytest.mark.parametrize(
    ("going", "kept"),
    [
        ([True] * 16, None),
        ([True] * 15 + [False], None),  # a copy for one column of sixteen does not pay
        ([False, True, False, *[True] * 13], [1, *range(3, 16)]),
        ([False, False, True, False], [0, 2]),  # two at least, for the rounding
        ([False, False], None),
        ([True], None),
        ([True, False], None),
    ],
)
def test_when_columns_are_dropped(going, kept):
    found = still_worked(np.array(going))
    assert (found if kept is None else found.tolist()) == kept


def test_a_zero_right_hand_side_takes_no_step(system):
    A, R = system
    Z, taken = conjugate_gradient(lambda V: A @ V, np.zeros_like(R), lambda V: V, np.zeros(4), 50)
    assert not taken.any()
    assert not Z.any()


def test_an_anchor_that_is_the_answer_takes_no_step(rng):
    X, P = sparse.csr_array(rng.standard_normal((30, 6))), rng.standard_normal((6, 2))
    weights, taken = solve_conjugate_gradient(Design(X), X @ P, make_penalty(P, None, 1.0))
    assert taken == 0
    np.testing.assert_array_equal(weights, P)


def test_scaling_by_the_diagonal_pays(rng):
    """Features of very different size: the scaled system is far better conditioned."""
    X = rng.standard_normal((200, 20)) * np.logspace(-2, 2, 20)
    Y, P = rng.standard_normal((200, 1)), np.zeros((20, 1))
    penalty, design = make_penalty(P, None, 1e-3), Design(X)
    _, scaled = solve_conjugate_gradient(design, Y, penalty, tolerance=1e-8)
    right = design.cross(Y)
    target = 1e-8 * np.linalg.norm(right, axis=0)
    _, plain = conjugate_gradient(lambda Z: design.normal_product(Z) + 1e-3 * Z, right, lambda R: R, target, 2000)
    assert scaled < 0.5 * plain.max()


def test_sparse_rows_are_not_made_dense(rng):
    X = sparse.random_array((3000, 20_000), density=2e-4, format="csr", rng=rng)
    Y = sparse.random_array((3000, 2), density=0.05, format="csr", rng=rng)
    tracemalloc.start()
    solve_conjugate_gradient(Design(X), Y, make_penalty(np.zeros((20_000, 2)), None, 1.0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3000 * 20_000 * 8 / 50
