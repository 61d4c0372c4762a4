"""One arrival of new labels: statistics -> structure -> classifier, on one set of annotated rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from streamlabel.classifier.anchored_ridge import choose_beta, solve_anchored_ridge
from streamlabel.results import CSC, CSR, FloatArray, IntArray, SolveReport
from streamlabel.stats.factors import RidgeFactor
from streamlabel.stats.labels import centred_cross
from streamlabel.structure.represent import represent

__all__ = ["Arrival", "learn_alone", "learn_arrival"]


@dataclass(frozen=True, eq=False)
class Arrival:
    """What was learned for k new labels: classifiers (d, k), intercepts (k,), codes (m, k) and how."""

    weights: FloatArray
    intercept: FloatArray
    codes: CSC
    beta: float
    reports: tuple[SolveReport, ...]


def learn_arrival(
    factor: RidgeFactor,
    past_responses: CSR | FloatArray,
    past_weights: Callable[[IntArray], FloatArray],
    Y_new: CSR,
    lam_share: float,
    beta: float | None,
) -> Arrival:
    """Represent the new labels by the past ones, then learn their classifiers toward the anchor ``W s``.

    Parameters
    ----------
    factor : of the features of the annotated rows
    past_responses : (q, m), what the past labels say on those rows: 0/1 answers, or scores where nobody answered
    past_weights : gives the classifiers (d, len(labels)) of some past labels
    Y_new : (q, k) answers
    lam_share : the lasso penalty as a share of the annotated rows
    beta : the pull toward the anchor; None chooses it
    """
    energies = _centred_energy(Y_new)
    structure = represent(
        centred_cross(past_responses, past_responses),
        centred_cross(past_responses, Y_new),
        energies,
        lam_share * factor.n_rows,
    )
    used = np.unique(structure.codes.indices)
    anchor = past_weights(used) @ structure.codes[used].toarray()
    return _solve(factor, Y_new, energies, anchor, structure.codes, beta, tuple(structure.reports))


def learn_alone(factor: RidgeFactor, Y_new: CSR, n_past: int, beta: float | None) -> Arrival:
    """Own ridge: the same solve with no anchor."""
    n_new = int(Y_new.shape[1])
    anchor = np.zeros((factor.mean.shape[0], n_new))
    return _solve(factor, Y_new, _centred_energy(Y_new), anchor, sparse.csc_array((n_past, n_new)), beta, ())


def _solve(
    factor: RidgeFactor,
    Y_new: CSR,
    energies: FloatArray,
    anchor: FloatArray,
    codes: CSC,
    beta: float | None,
    reports: tuple[SolveReport, ...],
) -> Arrival:
    projected = factor.project(Y_new.astype(np.float64))
    if beta is None:
        # Chosen for the labels alone: the code has seen the answers, so an error with the anchor would flatter it.
        beta = choose_beta(factor, projected, energies)
    weights = solve_anchored_ridge(factor, projected, anchor, beta)
    rates = np.asarray(Y_new.sum(axis=0), dtype=np.float64) / factor.n_rows
    return Arrival(weights, rates - factor.mean @ weights, codes, beta, reports)


def _centred_energy(Y: CSR) -> FloatArray:
    """Squared lengths of the centred 0/1 columns: ``c - c^2/n``."""
    counts = np.asarray(Y.sum(axis=0), dtype=np.float64)
    return counts - counts**2 / max(Y.shape[0], 1)
