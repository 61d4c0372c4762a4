"""Lasso on a Gram matrix: an active set with direct solves, and coordinate descent if these have no digits left.

All in Gram form: no label column is read. With past label columns ``Y (n, m)`` and a new one ``y (n,)``, the code
``s (m,)`` minimises::

    F(s) = 1/2 ||y - Y s||^2 + lam ||s||_1
         = 1/2 y'y - c's + 1/2 s'Ls + lam ||s||_1        L = Y'Y,  c = Y'y

``s`` is optimal where, with the gradient ``g = L s - c``, ``g_j = -lam sign(s_j)`` on the support and
``|g_j| <= lam`` off it.

The active set (feature-sign search): inside the active set ``A`` with signs ``z`` the objective is a quadratic whose
minimum solves ``L_AA s_A = c_A - lam z_A``. If that minimum keeps the signs, it is taken whole; if not, the line toward
it is followed to the zero crossing with the lowest objective, and what became zero leaves. Then the labels outside that
violate ``|g_j| <= lam`` most enter. Every accepted step lowers the objective, so no active set comes back.

Coordinate descent: one coordinate at a time has a closed form, ``s_j <- soft(L_jj s_j - g_j, lam) / L_jj``. Sweeps run
over the block of the working set only; its gradient is kept up to date, a sweep costs the block and not the Gram. Every
few sweeps the iterates are extrapolated (Anderson), which makes ill-conditioned label Grams (signed coding) bearable.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from streamlabel.types import FloatArray, IntArray

# Labels that may enter at once at first; later as many as there are, so that the set at most doubles.
FIRST_ENTRY = 8
# Of the worst violation: what is less bad waits for the next gradient. Measured on Delicious: 0.5 takes a third more
# direct solves, 0.1 brings in more labels that leave again.
_SHARE = 0.2
# Of the worst violation: what differs by less is rounding.
_SAME = 1e-9


def lam_max(correlation: FloatArray) -> float:
    """The smallest lam at which the code is empty: ``max |c|``."""
    return float(np.abs(correlation).max(initial=0.0))


def objective(code: FloatArray, gradient: FloatArray, correlation: FloatArray, energy: float, lam: float) -> float:
    """The lasso objective F(s), from ``g = L s - c`` and ``energy = y'y``."""
    # s'Ls = s'(g + c)
    return float(0.5 * energy + 0.5 * code @ (gradient - correlation) + lam * np.abs(code).sum())


def duality_gap(code: FloatArray, gradient: FloatArray, correlation: FloatArray, energy: float, lam: float) -> float:
    """The relative duality gap: F(s) minus a lower bound on its minimum, divided by ``1/2 y'y``.

    Zero at the optimum, below only by rounding. The bound is the dual value ``a y'r - 1/2 a^2 ||r||^2`` at the residual
    ``r = y - Y s`` scaled by the largest feasible ``a <= 1`` (``||a Y'r||_inf <= lam``, and ``Y'r = -g``).
    """
    if energy <= 0.0:
        return 0.0
    fit = float(code @ correlation)
    residual_energy = max(energy - fit + float(code @ gradient), 0.0)
    steepest = float(np.abs(gradient).max(initial=0.0))
    scale = 1.0 if steepest <= lam else lam / steepest
    dual = scale * (energy - fit) - 0.5 * scale * scale * residual_energy
    return (objective(code, gradient, correlation, energy, lam) - dual) / (0.5 * energy)


def kkt_violation(code: FloatArray, gradient: FloatArray, lam: float) -> float:
    """The largest amount by which an optimality condition is missed, in units of lam."""
    if lam <= 0.0 or code.size == 0:
        return float(np.abs(gradient).max(initial=0.0))
    on = np.abs(gradient + lam * np.sign(code))
    off = np.maximum(np.abs(gradient) - lam, 0.0)
    return float(np.where(code != 0.0, on, off).max() / lam)


def most_violating(
    gradient: FloatArray, code: FloatArray, lam: float, slack: float, excluded: int | None, most: int
) -> IntArray:
    """The labels off the support that violate ``|g_j| <= lam`` most: the worst, and up to ``most`` nearly as bad.

    Empty if none misses it by more than ``slack``.
    """
    size = np.abs(gradient)
    size[code != 0.0] = 0.0
    if excluded is not None:
        size[excluded] = 0.0
    worst = size.max(initial=0.0) - lam
    if not worst > slack:
        return np.empty(0, dtype=np.intp)
    if most == 1:
        return np.array([size.argmax()])
    entering = np.flatnonzero(size > lam + _SHARE * worst)
    if entering.size <= most:
        return entering
    order = np.rint(size[entering] / (_SAME * worst)).argsort(kind="stable")  # labels often miss it by the same
    return entering[order[-most:]]


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
    """Minimise ``1/2 s'Ls - c's + lam ||s||_1`` by an active set with direct solves.

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
    """Compute ``block^-1 right`` by Cholesky, by least squares if it is singular. Changes the diagonal of block."""
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


_MEMORY = 5  # sweeps between two extrapolations
_INNER = 0.1  # how far the sweeps lower the violation before the working set is chosen anew


def solve_coordinate_descent(
    label_gram: FloatArray,
    correlation: FloatArray,
    lam: float,
    *,
    excluded: int | None = None,
    start: FloatArray | None = None,
    tol: float = 1e-10,
    max_iter: int = 20_000,
) -> tuple[FloatArray, FloatArray, int, bool]:
    """Minimise ``1/2 s'Ls - c's + lam ||s||_1`` by coordinate descent on a working set.

    Parameters and results are those of `solve_active_set`, but ``label_gram`` must be C-contiguous, ``tol`` holds for
    every condition, and ``max_iter`` counts sweeps over the working set.
    """
    code = np.zeros_like(correlation) if start is None else start.copy()
    if excluded is not None:
        code[excluded] = 0.0
    slack = tol * float(np.abs(correlation).max(initial=0.0))
    others = np.arange(code.shape[0]) != excluded
    working: IntArray = np.flatnonzero(code)
    gradient = code[working] @ label_gram.take(working, axis=0) - correlation
    sweeps = 0
    while (missed := _violation(code[others], gradient[others], lam)) > slack and sweeps < max_iter:
        entering = most_violating(gradient, code, lam, slack, excluded, max(FIRST_ENTRY, working.size))
        working = np.concatenate((np.flatnonzero(code), entering))
        rows = label_gram.take(working, axis=0)
        # No more exactly than the choice of the working set deserves.
        enough = max(slack, _INNER * missed)
        sweeps += _sweep_block(rows, correlation, lam, enough, code, working, max_iter - sweeps)
        gradient = code[working] @ rows - correlation
    return code, gradient, sweeps, missed <= slack


def _sweep_block(
    rows: FloatArray,
    correlation: FloatArray,
    lam: float,
    slack: float,
    code: FloatArray,
    working: IntArray,
    max_iter: int,
) -> int:
    """Sweep over the working set until its own conditions hold to ``slack``; ``code`` changes in place."""
    block, target, values = rows.take(working, axis=1), correlation[working], code[working]
    gradient = block @ values - target
    diagonal = block.diagonal().tolist()
    history = [values.copy()]
    sweeps, settled = 0, False
    while sweeps < max_iter and not settled:
        _sweep(block, diagonal, lam, values, gradient)
        sweeps += 1
        history.append(values.copy())
        if len(history) > _MEMORY:
            values = _extrapolate(block, target, lam, history)
            gradient = block @ values - target
            history = [values.copy()]
        settled = _violation(values, gradient, lam) <= slack
    code[working] = values
    return sweeps


def _sweep(block: FloatArray, diagonal: list[float], lam: float, values: FloatArray, gradient: FloatArray) -> None:
    """Move each coordinate to its own minimum, once; ``values`` and ``gradient`` change in place."""
    for i, curvature in enumerate(diagonal):
        before = values.item(i)
        pull = curvature * before - gradient.item(i)
        after = 0.0
        if pull > lam:
            after = (pull - lam) / curvature
        elif pull < -lam:
            after = (pull + lam) / curvature
        if after != before:
            values[i] = after
            gradient += (after - before) * block[i]


def _extrapolate(block: FloatArray, target: FloatArray, lam: float, history: list[FloatArray]) -> FloatArray:
    """The affine combination of the last iterates whose step is shortest, if it is better than the last one."""
    iterates = np.array(history)
    steps = np.diff(iterates, axis=0)
    products = steps @ steps.T
    products.flat[:: _MEMORY + 1] += 1e-12 * products.trace() + np.finfo(float).tiny
    shares = np.linalg.solve(products, np.ones(_MEMORY))
    mixed = (shares / shares.sum()) @ iterates[1:]
    last = iterates[-1]
    return mixed if _value(block, target, lam, mixed) < _value(block, target, lam, last) else last


def _value(block: FloatArray, target: FloatArray, lam: float, values: FloatArray) -> float:
    return float(values @ (0.5 * (block @ values) - target) + lam * np.abs(values).sum())


def _violation(values: FloatArray, gradient: FloatArray, lam: float) -> float:
    """The largest amount by which an optimality condition is missed inside the working set."""
    on = np.abs(gradient + lam * np.sign(values))
    off = np.abs(gradient) - lam
    return float(np.where(values != 0.0, on, off).max(initial=0.0))
