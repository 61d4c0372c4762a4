"""From features to embeddings: ridge, and ridge with an l1 penalty on the embeddings it gives (ADMM).

    min_V  1/2 ||Z - X V||_F^2 + beta/2 ||V||_F^2 + l1 ||X V||_1

With ``A = X V`` and scaled multipliers U, one round is a ridge of ``(Z + rho (A - U)) / (1 + rho)`` with strength
``beta / (1 + rho)``, then ``A = soft(X V + U, l1 / rho)`` and ``U = U + X V - A``. The ridge's factor is made once: of
``X'X`` or of ``X X'``, whichever is smaller.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import linalg

from streamlabel.exceptions import ConvergenceWarning, DataError
from streamlabel.results import CSR, FloatArray, SolveReport
from streamlabel.stats.factors import dense

__all__ = ["regress", "soft_threshold"]

_RHO = 1.0
_MOST_ROUNDS = 500


def regress(
    X: CSR | FloatArray, Z: FloatArray, beta: float, l1: float = 0.0, *, tolerance: float = 1e-3
) -> tuple[FloatArray, SolveReport]:
    """V (d, r) for features X (n, d) and embeddings Z (n, r), without intercept.

    ``tolerance`` is on ADMM's primal and dual residuals, as a share of ||Z||.
    """
    if l1 == 0.0:
        return _Ridge(X, beta).solve(Z), SolveReport("ridge", 1, 0.0, tolerance, True)
    ridge = _Ridge(X, beta / (1.0 + _RHO))
    copy, multipliers = Z.copy(), np.zeros_like(Z)
    size = max(float(np.linalg.norm(Z)), np.finfo(np.float64).tiny)
    violation, n_rounds = np.inf, 0
    while violation > tolerance and n_rounds < _MOST_ROUNDS:
        n_rounds += 1
        weights = ridge.solve((Z + _RHO * (copy - multipliers)) / (1.0 + _RHO))
        scores = np.asarray(X @ weights)
        before, copy = copy, soft_threshold(scores + multipliers, l1 / _RHO)
        multipliers += scores - copy
        violation = max(float(np.linalg.norm(scores - copy)), float(np.linalg.norm(copy - before))) / size
    report = SolveReport("admm", n_rounds, violation, tolerance, violation <= tolerance)
    if not report.converged:
        warnings.warn(
            f"admm stopped after {n_rounds} rounds at {violation:.1e}, short of {tolerance:.1e}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return weights, report


def soft_threshold(values: FloatArray, level: float) -> FloatArray:
    return np.sign(values) * np.maximum(np.abs(values) - level, 0.0)


class _Ridge:
    """``(X'X + beta I)^-1 X'T = X'(X X' + beta I)^-1 T``, by the smaller of the two."""

    def __init__(self, X: CSR | FloatArray, beta: float) -> None:
        self._X = X
        self._dual = X.shape[0] < X.shape[1]
        system = dense(X @ X.T if self._dual else X.T @ X)
        system[np.diag_indices(len(system))] += beta
        try:
            self._factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            raise DataError(f"beta = {beta:g} is too small beside these features; raise it") from None

    def solve(self, targets: FloatArray) -> FloatArray:
        right = targets if self._dual else np.asarray(self._X.T @ targets)
        found = linalg.cho_solve(self._factor, right, check_finite=False)
        return np.asarray(self._X.T @ found if self._dual else found)
