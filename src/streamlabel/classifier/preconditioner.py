"""About the inverse of the Hessian of a batch: what makes Newton's inner solves short.

The Hessian of label j is ``X'D_j X + beta N`` with the second derivatives ``D_j`` on a diagonal. With ``D_j`` replaced
by its mean ``w_j`` and the intercept eliminated it is ``w_j A + beta N``, ``A = Xc'Xc``; in ``Z = V diag(w)^1/2``::

    A Z + beta Z (diag(w)^-1/2 N diag(w)^-1/2)

is the Sylvester operator of the squared loss. The kept factor of the rows inverts it exactly; without a factor ``A``
is replaced by its diagonal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from streamlabel.classifier.conjugate_gradient import Operator
from streamlabel.classifier.penalty import Penalty
from streamlabel.results import FloatArray
from streamlabel.stats.factors import RidgeFactor

__all__ = ["ShiftedInverse", "diagonal_inverse", "hessian_inverse", "spectral_inverse"]

# R, s -> about (A + s_j I)^-1 R_j for every column
ShiftedInverse = Callable[[FloatArray, FloatArray], FloatArray]

_SMALLEST_WEIGHT = 1e-8


def diagonal_inverse(diagonal: FloatArray) -> ShiftedInverse:
    """With ``diag(A)`` (d,) for A."""
    return lambda R, shifts: R / (diagonal[:, None] + shifts)


def spectral_inverse(factor: RidgeFactor) -> ShiftedInverse:
    """Exact, from the factor of the rows: ``U diag(1/(a + s) - 1/s) U'R + R/s``."""
    values = factor.eigenvalues[:, None]

    def solve(R: FloatArray, shifts: FloatArray) -> FloatArray:
        # project_scores(R) = diag(a^1/2) U'R and weights(z, 0) = U diag(a^-1/2) z; 1/(a + s) - 1/s = -a / (s (a + s)).
        # So the roots of a cancel and no small eigenvalue is divided by.
        return R / shifts - factor.weights(factor.project_scores(R) * (values / ((values + shifts) * shifts)), 0.0)

    return solve


def hessian_inverse(inverse: ShiftedInverse, penalty: Penalty, weights: FloatArray) -> Operator:
    """About the inverse of the Hessian whose second derivatives have the means `weights`, (k,)."""
    weights = np.maximum(weights, _SMALLEST_WEIGHT)
    if penalty.metric is None:
        return lambda R: inverse(R, penalty.beta / weights) / weights
    roots = np.sqrt(weights)
    strengths, rotation = linalg.eigh(penalty.metric / np.outer(roots, roots))
    shifts = penalty.beta * np.maximum(strengths, np.finfo(np.float64).eps * strengths[-1])
    into = rotation / roots[:, None]
    return lambda R: inverse(R @ into, shifts) @ into.T
