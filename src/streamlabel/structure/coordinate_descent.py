"""Lasso on a Gram matrix by cyclic coordinate descent on a growing working set.

One coordinate at a time has a closed form, ``s_j <- soft(L_jj s_j - g_j, lam) / L_jj``. Sweeps run over the block of
the working set only; its gradient is kept up to date, a sweep costs the block and not the Gram. Every few sweeps the
iterates are extrapolated (Anderson), which is what makes ill-conditioned label Grams (signed coding) bearable.
"""

from __future__ import annotations

import numpy as np

from streamlabel.results import FloatArray, IntArray
from streamlabel.structure._entering import FIRST_ENTRY, most_violating

__all__ = ["solve_coordinate_descent"]

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
    """Minimise ``1/2 s'Ls - c's + lam ||s||_1``.

    Parameters
    ----------
    label_gram : (m, m), symmetric positive semi-definite, C-contiguous
    correlation : (m,)
    excluded : an entry that must stay zero (a label may not represent itself)
    start : (m,), a code to start from, e.g. the solution at a neighbouring lam
    tol : stop when no optimality condition is missed by more than ``tol * lam_max``
    max_iter : sweeps over the working set at most

    Returns
    -------
    code (m,), gradient (m,) = L s - c, number of sweeps, whether the conditions hold
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
    """Each coordinate to its own minimum, once; ``values`` and ``gradient`` change in place."""
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
    """The affine combination of the last iterates whose step is shortest, where it is better than the last one."""
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
