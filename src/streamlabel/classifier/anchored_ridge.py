"""Step 2 with the squared loss: ridge toward an anchor, in the spectral coordinates of a kept factor.

With an intercept, targets and features centred on the annotated rows, the new classifier minimises::

    1/2 ||y - X w||^2 + beta/2 ||w - p||^2          p = W s, the anchor

With ``v = w - p`` this is plain ridge on the residual target ``t = y - X p``: ``(X'X + beta I) v = X't``. Its
leave-one-out error is ``r_i / (1 - h_i)``, with the hat diagonal ``h`` that does not depend on the label.
"""

from __future__ import annotations

import numpy as np

from streamlabel.results import FloatArray
from streamlabel.stats.factors import RidgeFactor, Spectrum, row_scale
from streamlabel.stats.ties import first_least

__all__ = ["BETA_STEPS", "beta_grid", "choose_beta", "generalised_error", "solve_anchored_ridge"]

BETA_STEPS = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0])


def beta_grid(factor: Spectrum) -> FloatArray:
    """`BETA_STEPS` in units of the mean squared length of a centred row."""
    scale = float(factor.eigenvalues.sum()) / max(factor.n_rows, 1)
    return row_scale(scale, float(factor.mean @ factor.mean)) * BETA_STEPS


def generalised_error(factor: Spectrum, projected: FloatArray, energy: FloatArray, beta: float) -> FloatArray:
    """Generalised cross-validation: ``n RSS / (n - trace H)^2`` for each target, (k,).

    projected : (r, k) = Q't;   energy : (k,) = ||t||^2 of the centred targets
    """
    shrink = factor.eigenvalues / (factor.eigenvalues + beta)
    residual = energy - np.square(projected).T @ (1.0 - np.square(1.0 - shrink))
    freedom = factor.n_rows - 1.0 - shrink.sum()
    return factor.n_rows * np.maximum(residual, 0.0) / max(freedom, 1e-3) ** 2


def choose_beta(factor: Spectrum, projected: FloatArray, energy: FloatArray) -> float:
    """The strength of `beta_grid` with the least generalised error, one for all targets together; the larger of two."""
    grid = beta_grid(factor)[::-1]
    errors = [float(generalised_error(factor, projected, energy, beta).sum()) for beta in grid]
    return float(grid[first_least(errors)])


def solve_anchored_ridge(factor: RidgeFactor, projected: FloatArray, anchor: FloatArray, beta: float) -> FloatArray:
    """``w = p + (X'X + beta I)^-1 X'(y - X p)``, (d, k), for projected targets (r, k) and anchors (d, k)."""
    if not anchor.any():
        return factor.weights(projected, beta)
    return anchor + factor.weights(projected - factor.project_scores(anchor), beta)
