"""A batch whose new labels also help each other: the paper's mini-batch, with the squared loss.

Every new label is written by the past labels and by the other new ones: ``S = [S1; S2]``, a lasso on the Gram of all
of them with its own entry excluded. Then all classifiers are learned at once, pulled toward ``W S1 + W_new S2``.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from streamlabel.classifier.coupled import solve_coupled
from streamlabel.classifier.penalty import Penalty, make_penalty
from streamlabel.models.arrival import Arrival, PastAnswers, label_products
from streamlabel.results import CSC, CSR, FloatArray, IntArray, SolveReport
from streamlabel.stats.factors import RidgeFactor
from streamlabel.structure.represent import represent

__all__ = ["anchor_and_coupling", "coupled_codes", "learn_coupled", "unseen_coupled_scores"]


def learn_coupled(
    X: CSR | FloatArray,
    factor: RidgeFactor,
    answers: FloatArray,
    past: PastAnswers,
    lam: float,
    beta: float,
    *,
    centre: bool = True,
    judged_rows: IntArray | None = None,
) -> Arrival:
    """Learn k labels together on the same q rows.

    Parameters
    ----------
    X : (q, d) the annotated rows;   factor : of the same rows
    answers : (q, k) targets: 0/1, or -1/+1 where the model has no intercept (then ``centre`` is False)
    lam : the lasso penalty as a share of the rows;   beta : the strength of the pull
    judged_rows : the rows to judge by; default all
    """
    codes, reports = coupled_codes(past, answers, lam, centre)
    penalty = make_penalty(*anchor_and_coupling(past, codes, int(X.shape[1])), beta)
    weights = solve_coupled(factor, factor.project(answers), penalty)
    intercept = (answers.mean(axis=0) if centre else np.zeros(answers.shape[1])) - factor.mean @ weights
    rows = np.arange(len(answers)) if judged_rows is None else judged_rows
    scores = np.asarray(X[rows] @ weights) + intercept
    unseen = unseen_coupled_scores(factor, penalty, scores, answers[rows], rows, centre)
    return Arrival(weights, intercept, codes, judged_rows, unseen, reports, np.diff(codes.indptr) > 0)


def coupled_codes(
    past: PastAnswers, answers: FloatArray, lam: float, centre: bool
) -> tuple[CSC, tuple[SolveReport, ...]]:
    """The codes (m + k, k) of k new labels: first the m labels of the model, then the new ones, diagonal 0."""
    n_rows, n_new = answers.shape
    gram, correlations = label_products(past, answers, centre)
    centred = answers - answers.mean(axis=0) if centre else answers
    corner = centred.T @ centred
    everyone = np.block([[gram, correlations], [correlations.T, corner]])
    own = np.arange(len(gram), len(everyone))
    found = represent(everyone, everyone[:, own], corner.diagonal(), lam * n_rows, own=own, executor=past.executor)
    numbers = np.concatenate((past.labels, np.arange(past.n_labels, past.n_labels + n_new)))
    codes = sparse.csc_array(
        (found.codes.data, numbers[found.codes.indices], found.codes.indptr), shape=(past.n_labels + n_new, n_new)
    )
    codes.sort_indices()
    return codes, tuple(found.reports)


def anchor_and_coupling(past: PastAnswers, codes: CSC, n_features: int) -> tuple[FloatArray, FloatArray]:
    """``W S1`` (d, k) and ``S2`` (k, k) for codes ``[S1; S2]`` (m + k, k)."""
    older = codes[: past.n_labels]
    used = np.unique(older.indices)
    anchor = past.weights(used) @ older[used].toarray() if used.size else np.zeros((n_features, codes.shape[1]))
    return anchor, codes[past.n_labels :].toarray()


def unseen_coupled_scores(
    factor: RidgeFactor, penalty: Penalty, scores: FloatArray, targets: FloatArray, rows: IntArray, centre: bool
) -> FloatArray:
    """Scores (e, k) of these rows under the classifiers learned without them, the codes kept.

    In the columns of ``V Q`` the labels are plain ridges of strengths ``beta q_j`` (`classifier.coupled`), so there the
    leave-one-out residual is ``r_ij / (1 - h_ij)`` with ``h_ij = sum_r q_ir^2 a_r / (a_r + beta q_j)``.
    """
    n_rows, n_judged = factor.n_rows, len(rows)
    chosen = sparse.csr_array((np.ones(n_judged), (rows, np.arange(n_judged))), shape=(n_rows, n_judged))
    values = factor.eigenvalues[:, None]
    leverages = np.square(factor.project(chosen)).T @ (values / (values + penalty.beta * penalty.strengths))
    leverages += 1.0 / n_rows if centre else 0.0
    residuals = penalty.rotate(targets - scores) / np.maximum(1.0 - leverages, 1e-9)
    return targets - penalty.unrotate(residuals)
