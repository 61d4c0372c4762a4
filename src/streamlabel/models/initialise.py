"""The paper's start: classifiers and structure of the past labels, learned together by turns.

With targets Y (n, m), centred where there is an intercept, it looks for W (d, m) and S (m, m) with ``diag S = 0``::

    J(W, S) = 1/2 ||Y - X W||_F^2 + l1 ||S||_{1,1} + l2/2 ||W - W S||_F^2 + l3/2 ||Y - Y S||_F^2

For fixed W the columns of S are lassos on one Gram, ``l3 Y'Y + l2 W'W``, each with its own entry excluded. For fixed S
the classifiers solve ``X'X W + l2 W M M' = X'Y``, ``M = I - S``: the coupled batch without an anchor. Both steps are
exact, so J never rises. It starts at ``S = 0``, which is ridge of strength l2.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from streamlabel.classifier.coupled import solve_coupled
from streamlabel.classifier.penalty import Penalty, make_penalty
from streamlabel.exceptions import ConvergenceWarning
from streamlabel.results import CSC, FloatArray, SolveReport
from streamlabel.stats.factors import RidgeFactor
from streamlabel.structure.represent import represent

__all__ = ["AlternatingStart", "alternate"]


@dataclass(frozen=True, eq=False)
class AlternatingStart:
    """Where the turns ended.

    weights : (d, m);   codes : (m, m), diagonal 0;   penalty : of the last turn's classifiers
    objectives : J at the start and after every half turn (S, W, S, W, ...)
    """

    weights: FloatArray
    codes: CSC
    penalty: Penalty
    objectives: tuple[float, ...]
    report: SolveReport


def alternate(
    factor: RidgeFactor,
    projected: FloatArray,
    label_gram: FloatArray,
    l1: float,
    l2: float,
    l3: float = 1.0,
    *,
    tolerance: float = 1e-4,
    max_rounds: int = 20,
) -> AlternatingStart:
    """Learn W and S by turns until a turn lowers J by less than `tolerance`, relatively.

    Parameters
    ----------
    factor : of the rows X, centred where there is an intercept
    projected : (r, m), the targets in its coordinates
    label_gram : (m, m), ``Y'Y`` of the (centred) targets
    l1, l2, l3 : as above; l1 above 0, the others not below

    Warns
    -----
    ConvergenceWarning : `max_rounds` turns were not enough
    """
    energy = float(label_gram.trace())
    n_labels = len(label_gram)
    nothing = np.zeros((len(factor.mean), n_labels))
    codes: CSC = sparse.csc_array((n_labels, n_labels))
    penalty = make_penalty(nothing, None, l2)
    weights = solve_coupled(factor, projected, penalty)
    gram = l3 * label_gram + l2 * (weights.T @ weights)
    objectives = [_misfit(factor, projected, weights, energy) + _structure_value(gram, codes, l1)]
    change, rounds = np.inf, 0
    while change > tolerance and rounds < max_rounds:
        rounds += 1
        before = objectives[-1]
        codes = represent(gram, gram, gram.diagonal(), l1, own=np.arange(n_labels), start=codes).codes
        objectives.append(_misfit(factor, projected, weights, energy) + _structure_value(gram, codes, l1))
        penalty = make_penalty(nothing, codes, l2)
        weights = solve_coupled(factor, projected, penalty)
        gram = l3 * label_gram + l2 * (weights.T @ weights)
        objectives.append(_misfit(factor, projected, weights, energy) + _structure_value(gram, codes, l1))
        change = (before - objectives[-1]) / max(before, np.finfo(np.float64).tiny)
    report = SolveReport("alternating", rounds, float(change), tolerance, bool(change <= tolerance), penalty.note)
    if not report.converged:
        warnings.warn(
            f"the alternating start still changed by {change:.1e} after {rounds} rounds, not {tolerance:.0e}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return AlternatingStart(weights, codes, penalty, tuple(objectives), report)


def _misfit(factor: RidgeFactor, projected: FloatArray, weights: FloatArray, energy: float) -> float:
    """``1/2 ||Y - X W||_F^2``: what the rows can explain, in spectral coordinates, and the rest."""
    inside = float(np.square(projected - factor.project_scores(weights)).sum())
    return 0.5 * (inside + energy - float(np.square(projected).sum()))


def _structure_value(gram: FloatArray, codes: CSC, l1: float) -> float:
    """``1/2 tr (I - S)' G (I - S) + l1 ||S||_{1,1}`` with ``G = l3 Y'Y + l2 W'W``."""
    image = codes.T @ gram  # S'G
    bent = np.asarray(codes.T @ image.T)  # S'G S, transposed
    return float(0.5 * (gram.trace() - 2.0 * image.trace() + bent.trace()) + l1 * np.abs(codes.data).sum())
