"""The whole coupled batch with the squared loss: a Sylvester equation, solved in two spectral bases at once.

Setting the gradient to zero gives ``A V + beta V N = R`` with ``A = Xc'Xc``, ``N = M M'`` and ``R = Xc'Y + beta P M'``.
With ``N = Q diag(q) Q'`` the columns of ``V Q`` are separate::

    (A + beta q_j I) (V Q)_j = Xc'(Y Q)_j + beta (P M' Q)_j

and column j is a plain ridge of strength ``beta q_j`` toward the anchor ``(P M' Q)_j / q_j``. The factor of the rows
solves it for every strength without a further factorisation. ``S2 = 0`` is the plain anchored ridge, bit for bit.
"""

from __future__ import annotations

import numpy as np

from streamlabel.classifier.anchored_ridge import solve_anchored_ridge
from streamlabel.classifier.penalty import Penalty
from streamlabel.results import FloatArray
from streamlabel.stats.factors import RidgeFactor

__all__ = ["ridge_of_many_strengths", "solve_coupled"]


def solve_coupled(factor: RidgeFactor, projected: FloatArray, penalty: Penalty) -> FloatArray:
    """The classifiers (d, k) for projected targets (r, k), coupled or not."""
    if not penalty.coupled:
        return solve_anchored_ridge(factor, projected, penalty.anchor, penalty.beta)
    anchor = penalty.rotated_anchor()
    residual = penalty.rotate(projected) - factor.project_scores(anchor)
    return penalty.unrotate(anchor + ridge_of_many_strengths(factor, residual, penalty.beta * penalty.strengths))


def ridge_of_many_strengths(factor: RidgeFactor, projected: FloatArray, betas: FloatArray) -> FloatArray:
    """Ridge (d, k) of projected targets (r, k), column j with its own strength ``betas[j]``, in one product."""
    # weights(z, b) multiplies by 1 / (a + b); any one b will do once z carries (a + b) / (a + b_j).
    middle = float(np.median(betas))
    values = factor.eigenvalues[:, None]
    return factor.weights(projected * ((values + middle) / (values + betas)), middle)
