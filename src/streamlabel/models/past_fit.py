"""The classifiers of the past labels, three ways: each by ridge, by turns with their structure, or by another loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from streamlabel.classifier.anchored_ridge import choose_beta
from streamlabel.classifier.metric_ridge import HatSpectrum, PreparedRidge, make_ridge
from streamlabel.models.arrival import unseen_scores
from streamlabel.models.coupled_batch import unseen_coupled_scores
from streamlabel.models.initialise import alternate
from streamlabel.models.inputs import coded
from streamlabel.models.memory import FitMemory
from streamlabel.models.nonlinear import choose_strength, refit_scores, solve_loss
from streamlabel.results import CSC, CSR, FloatArray, IntArray
from streamlabel.stats.factors import RidgeFactor, make_factor
from streamlabel.stats.labels import centred_cross, signed_label_gram

__all__ = ["PastFit", "best_beta", "fit_alternating", "fit_ridge", "fit_with_loss"]

MOST_TUNED = 512  # labels by which the ridge strength of all is chosen


@dataclass(frozen=True, eq=False)
class PastFit:
    """What `fit` learned for m labels.

    ridge : the factor of the rows, for labels that arrive with answers on all of them; None for other losses
    judged_rows : (e,), a sample of the rows;  unseen : (e, m), their scores under classifiers learned without them
    leverages : (e,), their hat diagonal in the ridge; zero without one
    codes : (m, m), empty where the labels were learned apart
    """

    weights: FloatArray
    intercept: FloatArray
    beta: float
    loss: str
    ridge: PreparedRidge | None
    judged_rows: IntArray
    unseen: FloatArray
    leverages: FloatArray
    codes: CSC


def fit_ridge(X: CSR | FloatArray, labels: CSR, beta: float | str, fit_intercept: bool, seed: int) -> PastFit:
    """One ridge a label, one strength for all: given, or that of the least generalised error."""
    beta, ridge, _ = _ridge(X, labels, beta, fit_intercept, seed)
    n_rows, n_labels = labels.shape
    weights = ridge.solve(labels.astype(np.float64))
    if fit_intercept:
        intercept = np.asarray(labels.sum(axis=0), dtype=np.float64).ravel() / n_rows - ridge.mean @ weights
    else:  # targets 2B - 1: the solve is linear
        weights = 2.0 * weights - ridge.solve(np.ones((n_rows, 1)))
        intercept = np.zeros(n_labels)
    rows = FitMemory.sample(n_rows, seed, int(labels.shape[1]))
    leverages = ridge.leverages(rows)
    scores = np.asarray(X[rows] @ weights) + intercept
    unseen = unseen_scores(scores, coded(labels[rows], fit_intercept), leverages)
    return PastFit(weights, intercept, beta, "squared", ridge, rows, unseen, leverages, _no_codes(n_labels))


def fit_alternating(
    X: CSR | FloatArray, labels: CSR, lam: float, beta: float | str, fit_intercept: bool, seed: int
) -> PastFit:
    """The paper's start (`models.initialise`) with ``l1 = lam n``, ``l2 = beta`` and ``l3 = 1``."""
    beta, ridge, factor = _ridge(X, labels, beta, fit_intercept, seed)
    factor = make_factor(X, centre=fit_intercept) if factor is None else factor
    n_rows = int(labels.shape[0])
    targets = coded(labels, fit_intercept)
    gram = centred_cross(labels, labels) if fit_intercept else signed_label_gram(labels)
    found = alternate(factor, factor.project(targets), gram, lam * n_rows, beta)
    rates = targets.mean(axis=0) if fit_intercept else np.zeros(labels.shape[1])
    intercept = rates - factor.mean @ found.weights
    rows = FitMemory.sample(n_rows, seed, int(labels.shape[1]))
    scores = np.asarray(X[rows] @ found.weights) + intercept
    unseen = unseen_coupled_scores(factor, found.penalty, scores, targets[rows], rows, fit_intercept)
    return PastFit(found.weights, intercept, beta, "squared", ridge, rows, unseen, ridge.leverages(rows), found.codes)


def fit_with_loss(
    X: CSR | FloatArray, labels: CSR, loss: str, beta: float | str, fit_intercept: bool, seed: int
) -> PastFit:
    """One classifier a label with the logistic or the squared hinge loss; for the unseen scores it is learned twice."""
    if beta == "auto":
        beta = choose_strength(X, labels, loss, fit_intercept, seed)
    beta = float(beta)
    weights, intercept, _ = solve_loss(X, labels, beta, loss, fit_intercept)
    rows = FitMemory.sample(int(labels.shape[0]), seed, int(labels.shape[1]))
    unseen = refit_scores(X, labels, None, beta, loss, fit_intercept, rows, seed)
    no_leverages = np.zeros(len(rows))
    codes = _no_codes(int(labels.shape[1]))
    return PastFit(weights, intercept, beta, loss, None, rows, unseen, no_leverages, codes)


def best_beta(factor: RidgeFactor, targets: FloatArray, fit_intercept: bool) -> float:
    """The strength of the least generalised error for these targets (n, k)."""
    energy = np.square(targets - targets.mean(axis=0) if fit_intercept else targets).sum(axis=0)
    return choose_beta(factor, factor.project(targets), energy)


def _ridge(
    X: CSR | FloatArray, labels: CSR, beta: float | str, fit_intercept: bool, seed: int
) -> tuple[float, PreparedRidge, RidgeFactor | None]:
    """The ridge of all rows at the given strength, or at the best for (a sample of) the labels, with its factor."""
    if beta != "auto":
        return float(beta), make_ridge(X, float(beta), centre=fit_intercept), None
    n_labels = int(labels.shape[1])
    if n_labels > MOST_TUNED:
        chosen = np.random.default_rng(seed).permutation(n_labels)[:MOST_TUNED]
        labels = labels[:, np.sort(chosen)]
    factor = make_factor(X, centre=fit_intercept)
    chosen_beta = best_beta(factor, coded(labels, fit_intercept), fit_intercept)
    hat = HatSpectrum.of(factor.eigenvalues, chosen_beta)
    return chosen_beta, make_ridge(X, chosen_beta, centre=fit_intercept, gram=factor.gram, hat=hat), factor


def _no_codes(n_labels: int) -> CSC:
    return sparse.csc_array((n_labels, n_labels))
