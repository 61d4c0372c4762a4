"""Lasso on a Gram matrix by an active set with direct solves (feature-sign search).

Inside the active set ``A`` with signs ``z`` the objective is a quadratic whose minimum solves
``L_AA s_A = c_A - lam z_A``. Where that minimum keeps the signs, it is taken whole; where not, the line toward it is
followed to the zero crossing with the lowest objective, and what became zero leaves. Then the labels outside that
violate ``|g_j| <= lam`` most enter. Every accepted step lowers the objective, so no active set comes back.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from streamlabel.results import FloatArray, IntArray
from streamlabel.structure._entering import FIRST_ENTRY, most_violating

__all__ = ["solve_active_set"]

# The diagonal of the active block grows by this share: two identical labels share their weight instead of making the
# block singular. It moves the solution by less than the tolerances in use.
_RIDGE = 1.0 + 1e-12


def solve_active_set(
    label_gram: FloatArray,
    correlation: FloatArray,
    lam: float,
    *,
    excluded: int | None = None,
    start: FloatArray | None = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> tuple[FloatArray, FloatArray, int, bool]:
    """Minimise ``1/2 s'Ls - c's + lam ||s||_1``.

    Parameters
    ----------
    label_gram : (m, m), symmetric positive semi-definite
    correlation : (m,)
    excluded : an entry that must stay zero (a label may not represent itself)
    start : (m,), a code to start from, e.g. the solution at a neighbouring lam
    tol : stop when no condition off the support is missed by more than ``tol * lam_max``
    max_iter : direct solves at most

    Returns
    -------
    code (m,), gradient (m,) = L s - c, number of direct solves, whether the conditions hold
    """
    code = np.zeros_like(correlation) if start is None else start.copy()
    if excluded is not None:
        code[excluded] = 0.0
    slack = tol * float(np.abs(correlation).max(initial=0.0))
    active: IntArray = np.flatnonzero(code)
    if active.size:
        code[label_gram.diagonal() <= 0.0] = 0.0  # an empty label can have no weight, and no direct solve
        active = np.flatnonzero(code)
    gradient, step = -correlation, 0
    if active.size:
        signs = np.sign(code[active])
        active, gradient, step = _settle(label_gram, correlation, lam, code, active, signs, max_iter)
    alone = False
    while step < max_iter:
        most = 1 if alone else max(FIRST_ENTRY, active.size)
        entering = most_violating(gradient, code, lam, slack, excluded, most)
        if not entering.size:
            return code, gradient, step, True
        signs = np.sign(np.concatenate((code[active], -gradient[entering])))
        candidates = np.concatenate((active, entering))
        active, gradient, used = _settle(label_gram, correlation, lam, code, candidates, signs, max_iter - step)
        step += used
        # Labels that enter together can push each other out again; one that enters alone cannot be, except by rounding.
        if code[entering].any():
            alone = False
        elif alone:
            break
        else:
            alone = True
    return code, gradient, step, False


def _settle(
    label_gram: FloatArray,
    correlation: FloatArray,
    lam: float,
    code: FloatArray,
    active: IntArray,
    signs: FloatArray,
    max_iter: int,
) -> tuple[IntArray, FloatArray, int]:
    """Move ``code`` (in place) to the optimum of its active set, dropping labels whose weight crosses zero.

    Returns the active set that is left, the gradient there, and the number of direct solves.
    """
    rows = label_gram[active]  # take() would copy the whole of a Gram that is part of a larger one
    step = 0
    while active.size and step < max_iter:
        step += 1
        block = rows.take(active, axis=1)
        right = correlation[active] - lam * signs
        target = _solve_block(block, right)
        agrees = target * signs > 0.0
        if agrees.all():
            code[active] = target
            break
        now = code[active]
        stays = agrees | (now != 0.0)
        if stays.all():
            now = _best_crossing(block, right + lam * signs, lam, now, target)
            code[active] = now
            stays = now != 0.0
            signs = np.sign(now)
        # else: what entered and is not wanted beside the others leaves before anything moves
        active, signs, rows = active[stays], signs[stays], rows[stays]
    return active, code[active] @ rows - correlation, step


def _solve_block(block: FloatArray, right: FloatArray) -> FloatArray:
    """``block^-1 right`` by Cholesky; by least squares where the block is singular. Changes the diagonal of block."""
    block.flat[:: right.shape[0] + 1] *= _RIDGE
    _, solution, info = dposv(block, right)
    if info == 0:
        return solution
    return np.linalg.lstsq(block, right, rcond=None)[0]


def _best_crossing(
    block: FloatArray, correlation: FloatArray, lam: float, now: FloatArray, target: FloatArray
) -> FloatArray:
    """The lowest point of the true objective among the zero crossings on the line from ``now`` to ``target``."""
    crossing = np.flatnonzero(now * target <= 0.0)
    times = now[crossing] / (now[crossing] - target[crossing])
    stops = np.append(times, 1.0)
    points = now + stops[:, None] * (target - now)
    points[np.arange(crossing.size), crossing] = 0.0
    values = (
        0.5 * np.einsum("pi,pi->p", points @ block, points) - points @ correlation + lam * np.abs(points).sum(axis=1)
    )
    return points[int(values.argmin())]
