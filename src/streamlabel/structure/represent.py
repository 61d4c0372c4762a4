"""The door of step 1: label columns in, sparse codes with a certificate out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from streamlabel.exceptions import ConvergenceWarning
from streamlabel.results import CSC, FloatArray, SolveReport
from streamlabel.structure.active_set import solve_active_set
from streamlabel.structure.objective import duality_gap

__all__ = ["LabelCodes", "represent"]


@dataclass(frozen=True, eq=False)
class LabelCodes:
    """Codes (m, k), one column a new label, and how well each was solved."""

    codes: CSC
    reports: Sequence[SolveReport]


def represent(
    label_gram: FloatArray,
    correlations: FloatArray,
    energies: FloatArray,
    lam: float,
    *,
    tol: float = 1e-6,
) -> LabelCodes:
    """Write every new label as a sparse combination of the past ones.

    Parameters
    ----------
    label_gram : (m, m) Gram of the past label columns
    correlations : (m, k), past columns times new columns
    energies : (k,), squared lengths of the new columns
    lam : the l1 penalty
    tol : the relative duality gap from which on a column counts as solved; a wider one warns
    """
    columns, reports = [], []
    for j in range(correlations.shape[1]):
        correlation = np.ascontiguousarray(correlations[:, j])
        code, gradient, n_iter, _ = solve_active_set(label_gram, correlation, lam)
        gap = duality_gap(code, gradient, correlation, float(energies[j]), lam)
        reports.append(SolveReport("active set", n_iter, gap, tol, bool(gap <= tol)))
        columns.append(sparse.csc_array(code[:, None]))
    short = [j for j, report in enumerate(reports) if not report.converged]
    if short:
        worst = max(reports[j].violation for j in short)
        warnings.warn(
            f"{len(short)} of {len(reports)} label codes stopped short (worst relative gap {worst:.1e}, not {tol:.0e})",
            ConvergenceWarning,
            stacklevel=2,
        )
    codes = sparse.hstack(columns, format="csc") if columns else sparse.csc_array((label_gram.shape[0], 0))
    return LabelCodes(sparse.csc_array(codes), tuple(reports))
