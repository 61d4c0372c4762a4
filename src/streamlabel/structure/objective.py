"""The lasso on label columns: objective, optimality, duality gap. All in Gram form, no label column is read.

With past label columns ``Y (n, m)`` and a new one ``y (n,)``, the code ``s (m,)`` minimises::

    F(s) = 1/2 ||y - Y s||^2 + lam ||s||_1
         = 1/2 y'y - c's + 1/2 s'Ls + lam ||s||_1        L = Y'Y,  c = Y'y

``s`` is optimal where, with the gradient ``g = L s - c``, ``g_j = -lam sign(s_j)`` on the support and
``|g_j| <= lam`` off it.
"""

from __future__ import annotations

import numpy as np

from streamlabel.types import FloatArray


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
