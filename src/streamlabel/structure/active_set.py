"""Lasso on a Gram matrix by an active set with direct solves (feature-sign search).

Inside the active set ``A`` with signs ``z`` the objective is a quadratic whose minimum solves
``L_AA s_A = c_A - lam z_A``. Where that minimum keeps the signs, it is taken whole; where not, the line toward it is
followed to the zero crossing with the lowest objective, and what became zero leaves. Then the labels outside that
violate ``|g_j| <= lam`` most enter. Every accepted step lowers the objective, so no active set comes back.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError

from streamlabel.results import FloatArray, IntArray

__all__ = ["solve_active_set"]

# A ridge on the active block, relative to its mean diagonal: two identical labels share their weight instead of
# making the block singular. It moves the solution by less than the tolerances in use.
_JITTER = 1e-12
# At most this many labels enter at once, or as many as there are: the set at most doubles.
_FIRST_ENTRY = 8


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
    label_gram : (m, m), symmetric positive semi-definite, C-contiguous
    correlation : (m,)
    excluded : an entry that must stay zero (a label may not represent itself)
    start : (m,), a code to start from, e.g. the solution at a neighbouring lam
    tol : stop when no condition off the support is missed by more than ``tol * lam_max``

    Returns
    -------
    code (m,), gradient (m,) = L s - c, number of steps, whether the conditions hold
    """
    code = np.zeros_like(correlation) if start is None else start.copy()
    if excluded is not None:
        code[excluded] = 0.0
    active: IntArray = np.flatnonzero(code)
    gradient = code[active] @ label_gram[active] - correlation
    slack = tol * float(np.abs(correlation).max(initial=0.0))
    step = 0
    if active.size:
        active, step = _settle(label_gram, correlation, lam, code, active, np.sign(code[active]), max_iter)
        gradient = code[active] @ label_gram[active] - correlation
    greedy = False
    while step < max_iter:
        entering = _entering(gradient, code, lam, slack, excluded, alone=greedy)
        if not entering.size:
            return code, gradient, step, True
        signs = np.concatenate((np.sign(code[active]), -np.sign(gradient[entering])))
        candidates = np.concatenate((active, entering))
        active, used = _settle(label_gram, correlation, lam, code, candidates, signs, max_iter - step)
        step += used
        # Labels that enter together can push each other out again; one that enters alone cannot be.
        greedy = not code[entering].any()
        gradient = code[active] @ label_gram[active] - correlation
    return code, gradient, step, False


def _entering(
    gradient: FloatArray, code: FloatArray, lam: float, slack: float, excluded: int | None, *, alone: bool
) -> IntArray:
    """The labels outside the support that violate optimality most: the worst, and (not ``alone``) those half as bad."""
    violation = np.abs(gradient) - lam
    violation[code != 0.0] = 0.0
    if excluded is not None:
        violation[excluded] = 0.0
    worst = violation.max(initial=0.0)
    if worst <= slack:
        return np.empty(0, dtype=np.intp)
    if alone:
        return np.array([violation.argmax()])
    entering = np.flatnonzero(violation > 0.5 * worst)
    most = max(_FIRST_ENTRY, int(np.count_nonzero(code)))
    return entering if entering.size <= most else entering[violation[entering].argsort()[-most:]]


def _settle(
    label_gram: FloatArray,
    correlation: FloatArray,
    lam: float,
    code: FloatArray,
    active: IntArray,
    signs: FloatArray,
    max_iter: int,
) -> tuple[IntArray, int]:
    """Move ``code`` (in place) to the optimum of its active set, dropping labels whose weight crosses zero."""
    for step in range(1, max_iter + 1):
        block = label_gram[active[:, None], active]
        right = correlation[active] - lam * signs
        target = _solve_block(block, right)
        agrees = target * signs > 0.0
        if agrees.all():
            code[active] = target
            return active, step
        now = code[active]
        stays = agrees | (now != 0.0)
        if not stays.all():  # entered, and is not wanted beside the others: leaves before anything moves
            active, signs = active[stays], signs[stays]
        else:
            moved = _best_crossing(block, right + lam * signs, lam, now, target)
            code[active] = moved
            active = active[moved != 0.0]
            signs = np.sign(code[active])
        if not active.size:
            return active, step
    return active, max_iter


def _solve_block(block: FloatArray, right: FloatArray) -> FloatArray:
    size = right.shape[0]
    block = block.copy()
    block.flat[:: size + 1] += _JITTER * (block.trace() / size) + np.finfo(block.dtype).tiny
    try:
        return np.linalg.solve(block, right)
    except LinAlgError:
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
