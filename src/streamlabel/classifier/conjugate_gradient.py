"""Conjugate gradients on all columns at once, through ``X`` itself: if rows and features are too many for a factor.

The equation ``A V + beta V N = R`` is rotated by the eigenvectors of ``N`` first (`penalty`), so that coupled or not,
every column is a system ``(A + beta q_j I) z = r`` of its own, with its own step and its own end. ``A = Xc'Xc`` is
applied as two products with ``X`` and a rank-one correction; nothing is densified. It starts where the penalty alone
is least, which is the anchor ``P`` for ``S2 = 0``, and is scaled by the diagonal ``diag(A) + beta q_j``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamlabel.classifier.objective import Design, column_blocks
from streamlabel.classifier.penalty import Penalty
from streamlabel.stats.accelerator import accelerated
from streamlabel.types import CSR, BoolArray, FloatArray, IntArray

Operator = Callable[[FloatArray], FloatArray]

_RESTARTS = 4
# Columns that are done are dropped when they are this share of those at work: a copy costs less than a product.
_DROPPED_SHARE = 1 / 8


def column_lengths(Z: FloatArray) -> FloatArray:
    """The Euclidean length of each column, (k,)."""
    return np.sqrt(np.einsum("ij,ij->j", Z, Z))


def still_worked(going: BoolArray) -> IntArray | None:
    """The columns to go on with, increasing, if so many are done that it pays to drop them; else None.

    At least two are kept: a sum over one column is rounded in another order than that of a column among others.
    """
    n_columns, n_going = len(going), int(going.sum())
    n_kept = max(n_going, 2)
    if n_columns - n_kept < max(1.0, _DROPPED_SHARE * n_columns):
        return None
    kept = np.argsort(~going, kind="stable")[:n_kept]
    return np.sort(kept)


def conjugate_gradient(
    apply: Operator,
    right: FloatArray,
    precondition: Operator,
    target: FloatArray,
    max_iter: int,
    together: bool = False,
    take: Callable[[IntArray], tuple[Operator, Operator]] | None = None,
) -> tuple[FloatArray, IntArray]:
    """Solve ``apply(Z) = right`` from ``Z = 0`` for many columns at once; returns Z and the steps of each, (k,).

    Parameters
    ----------
    apply : a symmetric positive definite operator on (d, k) arrays
    precondition : about its inverse, symmetric positive definite too
    target : the residual length at which a column is done, (k,) or (1,)
    together : one system in which all columns touch, instead of k separate ones
    take : both operators for some of the columns; with it, columns that are done cost nothing more
    """

    def inner(A: FloatArray, B: FloatArray) -> FloatArray:
        return np.array([np.vdot(A, B)]) if together else np.einsum("ij,ij->j", A, B)

    n_columns = right.shape[1]
    taken = np.zeros(n_columns, dtype=np.intp)
    found: FloatArray | None = None  # the answers of columns that were dropped; None: none was
    at_work = np.arange(n_columns)
    Z = np.zeros_like(right)
    residual = right
    steepest = precondition(residual)
    direction = steepest
    energy = inner(residual, steepest)
    for _ in range(max_iter):
        going = np.sqrt(inner(residual, residual)) > target
        if not going.any():
            break
        if take is not None and not together and (kept := still_worked(going)) is not None:
            found = np.empty_like(right) if found is None else found
            found[:, at_work] = Z
            at_work, going = at_work[kept], going[kept]
            Z, residual, direction = (np.take(array, kept, axis=1) for array in (Z, residual, direction))
            energy, target = energy[kept], np.broadcast_to(target, n_columns)[kept]
            n_columns = len(kept)
            apply, precondition = take(at_work)
        image = apply(direction)
        curvature = inner(direction, image)
        going &= curvature > 0.0
        if not going.any():
            break
        taken[at_work] += going
        # A column that is done keeps its answer to the bit: it does not depend on which columns came with it.
        step = np.where(going, energy / np.where(going, curvature, 1.0), 0.0)
        Z += step * direction
        residual = residual - step * image
        steepest = precondition(residual)
        previous, energy = energy, inner(residual, steepest)
        direction = steepest + np.where(going, energy / np.where(going, previous, 1.0), 0.0) * direction
    if found is None:
        return Z, taken
    found[:, at_work] = Z
    return found, taken


def solve_conjugate_gradient(
    design: Design,
    targets: FloatArray | CSR,
    penalty: Penalty,
    *,
    tolerance: float = 1e-8,
    max_iter: int = 1000,
    start: FloatArray | None = None,
) -> tuple[FloatArray, int]:
    """Solve the squared loss by conjugate gradients: the classifiers (d, k) and the iterations of the slowest column.

    A column ends when its residual is below `tolerance` times its right-hand side, by the true residual: the one that
    is carried along drifts, so it is computed anew and the column goes on if it was believed too early.
    """
    found = accelerated("conjugate_gradient", design, targets, penalty, tolerance, max_iter, start)
    if found is not None:
        return found
    right = penalty.rotate(design.cross(targets) + penalty.beta * penalty.pull)
    start = penalty.rotated_anchor() if start is None else penalty.rotate(start)
    betas = penalty.beta * penalty.strengths
    diagonal = design.gram_diagonal()[:, None]
    solution = np.empty_like(right)
    slowest = 0
    for block in column_blocks(right.shape[1], design.n_rows):
        solution[:, block], taken = _solve_columns(
            design, right[:, block], start[:, block], betas[block], diagonal, tolerance, max_iter
        )
        slowest = max(slowest, taken)
    return penalty.unrotate(solution), slowest


def _solve_columns(
    design: Design,
    right: FloatArray,
    start: FloatArray,
    betas: FloatArray,
    diagonal: FloatArray,
    tolerance: float,
    max_iter: int,
) -> tuple[FloatArray, int]:
    def operators(columns: IntArray | slice) -> tuple[Operator, Operator]:
        strengths = betas[columns]
        scaling = 1.0 / (diagonal + strengths)
        return lambda Z: design.normal_product(Z) + Z * strengths, lambda R: R * scaling

    apply, precondition = operators(slice(None))
    target = tolerance * column_lengths(right)
    solution = start.copy()
    taken = 0
    for _ in range(_RESTARTS):
        residual = right - apply(solution)
        if taken >= max_iter or (column_lengths(residual) <= target).all():
            break
        step, steps = conjugate_gradient(apply, residual, precondition, 0.5 * target, max_iter - taken, take=operators)
        solution += step
        taken += int(steps.max())
    return solution, taken
