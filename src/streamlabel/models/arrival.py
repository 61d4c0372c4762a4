"""One arrival of new labels: statistics -> structure -> classifier, on one set of annotated rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.classifier.metric_ridge import PreparedRidge
from streamlabel.results import CSC, CSR, FloatArray, IntArray, SolveReport
from streamlabel.stats.factors import dense
from streamlabel.stats.labels import centred_cross
from streamlabel.structure.represent import represent

__all__ = ["Arrival", "PastAnswers", "learn_arrival"]


@dataclass(frozen=True, eq=False)
class PastAnswers:
    """What the labels that may enter a code say on the annotated rows.

    labels : (p,), their numbers among all m labels of the model
    responses : (q, p), 0/1 answers (sparse) or scores where nobody answered; None where their products are known
    weights : gives the classifiers (d, len(labels)) of some labels
    gram, correlations : the Gram (p, p) of the responses and their products (p, k) with the new labels, where these are
        known already
    """

    n_labels: int
    labels: IntArray
    responses: CSR | FloatArray | None
    weights: Callable[[IntArray], FloatArray]
    gram: FloatArray | None = None
    correlations: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Arrival:
    """What was learned for k new labels on q rows."""

    weights: FloatArray  # (d, k)
    intercept: FloatArray  # (k,)
    codes: CSC  # (m, k)
    loo_scores: FloatArray | None  # (q, k): scores of each row under the classifier learned without it
    reports: tuple[SolveReport, ...]


def learn_arrival(
    X: CSR | FloatArray,
    ridge: PreparedRidge,
    answers: FloatArray,
    past: PastAnswers | None,
    lam: float | None,
    *,
    anchored: bool = True,
    centre: bool = True,
    with_loo: bool = True,
) -> Arrival:
    """Represent the new labels by the past ones, then learn their classifiers toward the anchor ``W s``.

    Parameters
    ----------
    X : (q, d) the annotated rows;   ridge : the factor of the same rows
    answers : (q, k) targets: 0/1, or -1/+1 where the model has no intercept
    past : None or lam None: no code
    lam : the lasso penalty as a share of the annotated rows
    anchored : False finds the code, to be shown, and learns the classifier without it
    """
    n_rows, n_new = answers.shape
    n_past = 0 if past is None else past.n_labels
    codes: CSC = sparse.csc_array((n_past, n_new))
    reports: tuple[SolveReport, ...] = ()
    anchor = None
    if past is not None and lam is not None and past.labels.size:
        codes, reports = _codes(past, answers, lam * n_rows, centre)
        used = np.unique(codes.indices)
        if used.size and anchored:
            anchor = past.weights(used) @ codes[used].toarray()
    targets = answers if anchor is None else answers - np.asarray(X @ anchor)
    shift = ridge.solve(targets)
    weights = shift if anchor is None else anchor + shift
    rates = answers.mean(axis=0) if centre else np.zeros(n_new)
    intercept = rates - ridge.mean @ weights
    loo = answers - ridge.leave_one_out(targets, shift) if with_loo else None
    return Arrival(weights, intercept, codes, loo, reports)


def _codes(past: PastAnswers, answers: FloatArray, lam: float, centre: bool) -> tuple[CSC, tuple[SolveReport, ...]]:
    cross = centred_cross if centre else _plain_cross
    gram = cross(past.responses, past.responses) if past.gram is None else past.gram
    correlations = cross(past.responses, answers) if past.correlations is None else past.correlations
    energies = np.square(answers - answers.mean(axis=0) if centre else answers).sum(axis=0)
    found = represent(gram, correlations, energies, lam)
    rows = past.labels[found.codes.indices]
    codes = sparse.csc_array((found.codes.data, rows, found.codes.indptr), shape=(past.n_labels, answers.shape[1]))
    codes.sort_indices()
    return codes, tuple(found.reports)


def _plain_cross(A: Any, B: Any) -> FloatArray:
    return np.ascontiguousarray(dense(A.T @ B))
