"""The whole lasso path of one label by least-angle regression, and the code at any lam on it.

The code is piecewise linear in lam, so the breakpoints say everything. LARS finds them one by one (scikit-learn's
``lars_path_gram``). Where labels are dependent (duplicates, a label that is the sum of others), it can lose its way;
the optimality conditions then fail, and the result says so.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.linear_model import lars_path_gram

from streamlabel.structure.objective import kkt_violation, lam_max, objective
from streamlabel.types import FloatArray

_APART = 1e-11  # by which share correlations are moved at most; moves the solution as little
_PEAK = 1e6  # lam_max as scikit-learn sees it, far above the absolute tolerances in there


@dataclass(frozen=True, eq=False)
class LarsPath:
    """Breakpoints ``lams (p,)``, falling from lam_max, and the codes there, ``codes (m, p)``."""

    lams: FloatArray
    codes: FloatArray

    @property
    def n_steps(self) -> int:
        return int(self.lams.shape[0]) - 1

    def code_at(self, lam: float) -> FloatArray:
        """The code (m,) at lam: empty from lam_max on, linear between breakpoints, the last one below the end."""
        after = int(np.searchsorted(-self.lams, -lam, side="left"))
        if after == 0:
            return np.zeros(self.codes.shape[0])
        if after == self.lams.shape[0]:
            return np.array(self.codes[:, -1])
        high, low = self.lams[after - 1], self.lams[after]
        share = (high - lam) / (high - low)
        return np.asarray((1.0 - share) * self.codes[:, after - 1] + share * self.codes[:, after])


def lars_path(
    label_gram: FloatArray,
    correlation: FloatArray,
    *,
    lam_min: float = 0.0,
    excluded: int | None = None,
    max_iter: int = 10_000,
) -> LarsPath:
    """All minimisers of ``1/2 s'Ls - c's + lam ||s||_1`` for lam from lam_max down to ``lam_min``.

    Parameters
    ----------
    label_gram : (m, m), symmetric positive semi-definite
    correlation : (m,)
    excluded : an entry that must stay zero
    max_iter : breakpoints at most
    """
    kept = np.arange(correlation.shape[0])
    # A label without positives, or with all, has an empty row: it has no place on the path, and LARS divides by it.
    kept = kept[label_gram.diagonal() > 0.0]
    if excluded is not None:
        kept = kept[kept != excluded]
    peak = lam_max(correlation[kept])
    if peak == 0.0:
        return LarsPath(np.zeros(1), np.zeros((correlation.shape[0], 1)))
    # One label may enter at a time: of two that tie, scikit-learn never sees the second. So ties are broken.
    apart = 1.0 - _APART * np.random.default_rng(0).random(kept.shape[0])
    scale = _PEAK / peak
    with warnings.catch_warnings():  # about degenerate labels; `solve_lars` checks the conditions themselves
        warnings.simplefilter("ignore", SklearnConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        lams, _, path = lars_path_gram(
            Xy=correlation[kept] * (scale * apart),
            Gram=label_gram[np.ix_(kept, kept)],
            n_samples=1,  # then scikit-learn's alpha is our lam
            alpha_min=lam_min * scale,
            method="lasso",
            max_iter=max_iter,
            copy_Gram=False,
        )
    codes = np.zeros((correlation.shape[0], lams.shape[0]))
    codes[kept] = path / scale
    return LarsPath(lams / scale, codes)


def solve_lars(
    label_gram: FloatArray,
    correlation: FloatArray,
    lam: float,
    *,
    excluded: int | None = None,
    start: FloatArray | None = None,
    tol: float = 1e-10,
    max_iter: int = 10_000,
) -> tuple[FloatArray, FloatArray, int, bool]:
    """Minimise ``1/2 s'Ls - c's + lam ||s||_1`` by following the path down to lam.

    Parameters are those of `solve_active_set`; ``start`` is not used (a path begins at lam_max), ``max_iter`` counts
    breakpoints. The path itself is exact to about 1e-11 of lam_max: a smaller ``tol`` is not met.

    Returns
    -------
    code (m,), never worse than none; gradient (m,) = L s - c; number of breakpoints; whether no optimality condition
    is missed by more than ``tol * lam_max``
    """
    path = lars_path(label_gram, correlation, lam_min=lam, excluded=excluded, max_iter=max_iter)
    code = path.code_at(lam)
    support = np.flatnonzero(code)
    gradient: FloatArray = code[support] @ label_gram[support] - correlation
    # Worse than none: a path that lost its way. (The second follows from s'Ls >= 0; it holds where that is all noise.)
    if objective(code, gradient, correlation, 0.0, lam) > 0.0 or lam * np.abs(code).sum() > code @ correlation:
        code, gradient = np.zeros_like(code), -correlation
    others = np.arange(code.shape[0]) != excluded
    missed = kkt_violation(code[others], gradient[others], lam) * (lam if lam > 0.0 else 1.0)
    return code, gradient, path.n_steps, missed <= tol * float(np.abs(correlation).max(initial=0.0))
