"""Codes and classifiers from answers: one arrival on one set of rows, or a batch whose labels help each other.

In such a batch every new label is written by the past labels and by the other new ones: ``S = [S1; S2]``, a lasso on
the Gram of all of them with its own entry excluded. Then all classifiers are learned at once, pulled toward
``W S1 + W_new S2``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.classifier.penalty import Penalty, make_penalty, trim
from streamlabel.classifier.ridge import PreparedRidge
from streamlabel.classifier.solve import best_intercept, solve_coupled, solve_prepared
from streamlabel.stats.accelerator import accelerated
from streamlabel.stats.label_gram import centred_cross
from streamlabel.stats.spectral import RidgeFactor, dense
from streamlabel.streaming.kept_rows import FitMemory
from streamlabel.structure.represent import LabelCodes, Mapper, represent
from streamlabel.types import CSC, CSR, BoolArray, FloatArray, IntArray, SolveReport

MOST_JUDGED = 3_000
_MOST_WORK = 1e10  # products, a fraction of a second


@dataclass(frozen=True, eq=False)
class PastAnswers:
    """The answers or scores, on the annotated rows, of the labels that may enter a code.

    labels : (p,), their numbers among all m labels of the model
    responses : (q, p), 0/1 answers (sparse) or scores if nobody answered; None if their products are known
    weights : gives the classifiers (d, len(labels)) of some labels
    gram, correlations : the Gram (p, p) of the responses and their products (p, k) with the new labels, if these are
        known already
    executor : solves the codes; None: here, one after the other
    found : what `find_codes` says of the answers at hand, if it is known already
    """

    n_labels: int
    labels: IntArray
    responses: CSR | FloatArray | None
    weights: Callable[[IntArray], FloatArray]
    gram: FloatArray | None = None
    correlations: FloatArray | None = None
    executor: Mapper | None = None
    found: tuple[CSC, FloatArray | None, tuple[SolveReport, ...]] | None = None


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Some of the annotated rows, to judge new classifiers by: numbers (e,), features (e, d), hat diagonal (e,)."""

    rows: IntArray
    X: CSR | FloatArray
    leverages: FloatArray


@dataclass(frozen=True, eq=False)
class Arrival:
    """The codes, classifiers and unseen scores learned for k new labels on q rows.

    codes : (m, k), or (m + k, k) if the new labels help each other
    judged_rows, judged_scores : some of the rows (None: all), (e,), and their scores (e, k) under classifiers that were
        learned without them
    anchored : (k,), which classifiers were pulled toward their code
    point : (., k), where iterations ended, in their coordinates (`classifier.iterations`)
    """

    weights: FloatArray  # (d, k)
    intercept: FloatArray  # (k,)
    codes: CSC
    judged_rows: IntArray | None
    judged_scores: FloatArray
    reports: tuple[SolveReport, ...]
    anchored: BoolArray
    point: FloatArray | None = None

    def on_line(self, scale: float | FloatArray, shift: float | FloatArray) -> Arrival:
        """The same labels, scores on another scale: one for all, or one each (k,)."""
        return replace(
            self,
            weights=scale * self.weights,
            intercept=scale * self.intercept + shift,
            judged_scores=scale * self.judged_scores + shift,
        )

    def mixed(self, other: Arrival, mix: float) -> Arrival:
        """These labels with so much of other classifiers of them, judged on the rows by which both are judged."""
        scores, others, rows = self.judged_scores, other.judged_scores, other.judged_rows
        if rows is not None and self.judged_rows is None:
            scores = scores[rows]
        elif rows is None and self.judged_rows is not None:
            rows = self.judged_rows
            others = others[rows]
        return replace(
            self,
            weights=(1.0 - mix) * self.weights + mix * other.weights,
            intercept=(1.0 - mix) * self.intercept + mix * other.intercept,
            judged_rows=rows,
            judged_scores=(1.0 - mix) * scores + mix * others,
            anchored=self.anchored | other.anchored,
        )

    def trimmed(self, X: CSR | FloatArray, own: FloatArray, level: float, share: float) -> Arrival:
        """The same labels without their small weights (`classifier.penalty.trim`).

        own : (d, k), what is trimmed: the classifiers without what they have of the past;   share : of the metric

        Leaving a row out is taken to move the classifier along the row, so far that the score of the row changes as
        it did before (``1 - share`` of that; the rest is the past's): what only this row has said is trimmed then.
        """
        rows = X if self.judged_rows is None else X[self.judged_rows]
        small = own - trim(own, level)
        least = np.abs(small).max(axis=0)  # that of a label which is drawn to zero by more than it has is less
        offset = np.asarray(X @ small).mean(axis=0)
        moved = (1.0 - share) * (self.judged_scores - (np.asarray(rows @ self.weights) + self.intercept))
        squares = (
            np.asarray(rows.multiply(rows).sum(axis=1)).ravel() if sparse.issparse(rows) else np.square(rows).sum(1)
        )
        moved /= np.maximum(squares, np.finfo(np.float64).tiny)[:, None]
        scores = self.judged_scores + offset
        for label in range(own.shape[1]):
            bound, column, steps = least[label], own[:, label], moved[:, label]
            if isinstance(rows, np.ndarray):
                scores[:, label] -= np.einsum("ij,ij->i", rows, np.clip(column + steps[:, None] * rows, -bound, bound))
                continue
            of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
            lost = np.clip(column[rows.indices] + steps[of] * rows.data, -bound, bound) * rows.data
            scores[:, label] -= np.bincount(of, weights=lost, minlength=rows.shape[0])
        return replace(self, weights=self.weights - small, intercept=self.intercept + offset, judged_scores=scores)


def learn_arrival(
    X: CSR | FloatArray,
    ridge: PreparedRidge,
    answers: FloatArray,
    past: PastAnswers | None,
    lam: float | None,
    *,
    anchored: bool | None = True,
    centre: bool = True,
    judged: JudgedRows | None = None,
    labels: CSR | None = None,
) -> Arrival:
    """Represent the new labels by the past ones, then learn their classifiers toward the anchor ``W s``.

    Parameters
    ----------
    X : (q, d) the annotated rows;   ridge : the factor of the same rows
    answers : (q, k) targets: 0/1, or -1/+1 if the model has no intercept
    past : None or lam None: no code
    lam : the lasso penalty as a share of the annotated rows
    anchored : False finds the code, to be shown, and learns the classifier without it; None uses it for the labels
        for which `choose_anchor` says so
    judged : the rows to judge by; default all
    labels : the answers as they were given (0/1), if targets are these: products with rows then cost what the
        positives cost
    """
    codes, anchor, reports = find_codes(past, answers, lam, centre)
    if anchor is None or anchored is False:
        anchor = np.zeros((X.shape[1], answers.shape[1]))
    pulled: BoolArray = np.asarray(anchor.any(axis=0))
    targets = answers if labels is None else labels
    if anchored is None and pulled.any():
        weights, pulled = choose_anchor(ridge, targets, anchor, np.diff(codes.indptr))
        intercept, anchor = best_intercept(ridge, answers, weights), anchor * pulled
    elif pulled.any():
        weights, intercept = solve_prepared(ridge, targets, anchor)
    else:
        weights, intercept = solve_prepared(ridge, targets)
    if judged is None:
        residuals = answers - np.asarray(X @ anchor) if pulled.any() else answers
        loo = answers - ridge.leave_one_out(residuals, weights - anchor)
        return Arrival(weights, intercept, codes, None, loo, reports, pulled)
    scores = unseen_scores(np.asarray(judged.X @ weights) + intercept, answers[judged.rows], judged.leverages)
    return Arrival(weights, intercept, codes, judged.rows, scores, reports, pulled)


def name_direction(named: FloatArray, weights: Sequence[float], background: Any, spread: float) -> FloatArray:
    """One direction (d,) of the directions (kinds, d) of a name, each with its weight in units of a spread of scores.

    background : rows that the label does not apply to, on which the directions are brought to one scale
    """
    n_kinds = min(len(named), len(weights))
    deviation, length = np.asarray(background @ named.T).std(axis=0), np.linalg.norm(named, axis=1)
    unit = np.where(deviation > 0, deviation, np.where(length > 0, length / 10.0, np.inf))  # rare words are not there
    return spread * (np.asarray(weights[:n_kinds]) / unit[:n_kinds]) @ named[:n_kinds]


def toward_names(
    arrival: Arrival, X: CSR | FloatArray, truth: FloatArray, named: FloatArray, weights: Sequence[Sequence[float]]
) -> Arrival:
    """Classifiers of an arrival with the directions of their names added.

    truth : (q, k), 0/1;   named : (kinds, d, k);   weights : of the kinds, label by label
    """
    judged = np.arange(len(truth)) if arrival.judged_rows is None else arrival.judged_rows
    found, intercept, scores = arrival.weights.copy(), arrival.intercept.copy(), arrival.judged_scores.copy()
    for j, given in enumerate(weights):
        no, no_judged = np.flatnonzero(truth[:, j] == 0), truth[judged, j] == 0
        if not any(given) or not no.size or not no_judged.any():
            continue
        direction = name_direction(named[:, :, j], given, X[no], float(scores[no_judged, j].std()))
        mean = float(np.asarray(X[no] @ direction).mean())
        found[:, j] += direction
        intercept[j] -= mean
        scores[:, j] += np.asarray(X[judged] @ direction) - mean
    return replace(arrival, weights=found, intercept=intercept, judged_scores=scores)


def choose_anchor(
    ridge: PreparedRidge, answers: CSR | FloatArray, anchor: FloatArray, code_sizes: IntArray
) -> tuple[FloatArray, BoolArray]:
    """Pull each label toward its anchor if that has the smaller generalised error: classifiers (d, k), and which (k,).

    The code was fitted on the same answers, which its share in the degrees of freedom accounts for. Scores are
    ``H y + (I - H) X W s(y)``, and s moves with y as ``G_A^-1 Y_A'`` on its active labels A (the lasso's tangent).
    If the past is ridge on the same rows, ``X W = H Y``, so the share is ``tr((I - H) H P_A)``, with ``P_A`` the
    projection on the active labels. The largest that it can be for so many labels is used: at most a quarter per label.
    """
    both = ridge.compare(answers, anchor)
    freedom = ridge.freedom
    spent = np.maximum(freedom - ridge.hat.most_between(code_sizes), 1e-3)
    pulled = both.residual_toward / np.square(spent) < both.residual_alone / max(freedom, 1e-3) ** 2
    pulled &= code_sizes > 0
    return np.where(pulled, both.toward, both.alone), pulled


def find_codes(
    past: PastAnswers | None, answers: FloatArray, lam: float | None, centre: bool
) -> tuple[CSC, FloatArray | None, tuple[SolveReport, ...]]:
    """Find the codes (m, k), the anchor ``W s`` (d, k) they give (None if they are empty), and their reports."""
    n_rows, n_new = answers.shape
    if past is not None and past.found is not None:
        return past.found
    if past is None or lam is None or not past.labels.size:
        return sparse.csc_array((0 if past is None else past.n_labels, n_new)), None, ()
    energies = np.einsum("ij,ij->j", answers, answers) - (n_rows * np.square(answers.mean(axis=0)) if centre else 0.0)
    if past.gram is None and centre:
        columns, found = _code_of_few(past, answers, energies, lam * n_rows)
    else:
        columns, (gram, correlations) = np.arange(len(past.labels)), label_products(past, answers, centre)
        found = represent(gram, correlations, energies, lam * n_rows, executor=past.executor)
    rows = past.labels[columns[found.codes.indices]]
    codes = sparse.csc_array((found.codes.data, rows, found.codes.indptr), shape=(past.n_labels, n_new))
    codes.sort_indices()
    used = np.unique(codes.indices)
    anchor = None
    if used.size:
        weights, parts = past.weights(used), codes[used].toarray()
        anchor = accelerated("product", weights, parts)
        anchor = weights @ parts if anchor is None else anchor
    return codes, anchor, tuple(found.reports)


def _code_of_few(
    past: PastAnswers, answers: FloatArray, energies: FloatArray, lam: float
) -> tuple[IntArray, LabelCodes]:
    """The codes by a few of the p responses, which columns, and no Gram of all: the others are checked afterwards.

    A label outside enters if its product with what the code leaves over is above lam; if none is, the codes are those
    of all labels.
    """
    correlations = centred_cross(past.responses, answers)
    least = np.abs(correlations).max(axis=1)
    inside = least >= min(lam, float(least.max()))
    while True:
        columns = np.flatnonzero(inside)
        part = past.responses[:, columns]  # type: ignore[index]
        found = represent(centred_cross(part, part), correlations[columns], energies, lam, executor=past.executor)
        left_over = correlations - centred_cross(past.responses, dense(part @ found.codes))
        missing = (np.abs(left_over).max(axis=1) > lam * (1.0 + 1e-9)) & ~inside
        if not missing.any():
            return columns, found
        inside |= missing


def label_products(past: PastAnswers, answers: FloatArray, centre: bool) -> tuple[FloatArray, FloatArray]:
    """The Gram (p, p) of the past responses and their products (p, k) with the answers, centred or not."""
    cross = centred_cross if centre else _plain_cross
    gram = cross(past.responses, past.responses) if past.gram is None else past.gram
    return gram, cross(past.responses, answers) if past.correlations is None else past.correlations


def unseen_scores(scores: FloatArray, targets: FloatArray, leverages: FloatArray) -> FloatArray:
    """Scores (e, k) of rows under the classifiers learned without them: ``f - h/(1 - h) (y - f)``."""
    leverage = np.clip(leverages, 0.0, 1.0 - 1e-9)[:, None]
    return scores - leverage / (1.0 - leverage) * (targets - scores)


def judges_all(X: CSR | FloatArray, n_labels: int) -> bool:
    """Whether thresholds are judged by all rows of a ridge, not by a sample: where that takes no time."""
    n_rows, order = X.shape[0], min(X.shape)
    return bool(n_rows * max(order, n_labels) ** 2 <= _MOST_WORK)


def judged_sample(n_rows: int, seed: int) -> IntArray | None:
    """The rows to judge by if judging takes work per row: None (all) up to a few thousand, else a sample."""
    return None if n_rows <= MOST_JUDGED else FitMemory.sample(n_rows, seed)


def _plain_cross(A: Any, B: Any) -> FloatArray:
    return np.ascontiguousarray(dense(A.T @ B))


def screen(responses: FloatArray, answers: FloatArray, most: int) -> IntArray:
    """The ``most`` columns of the responses (q, p) that correlate best with any of the answers (q, k), increasing."""
    centred = answers - answers.mean(axis=0)
    best = np.abs(responses.T @ centred).max(axis=1)
    return np.sort(np.argsort(-best, kind="stable")[:most])


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
    """Learn k labels that help each other, together on the same q rows.

    Parameters
    ----------
    X : (q, d) the annotated rows;   factor : of the same rows
    answers : (q, k) targets: 0/1, or -1/+1 if the model has no intercept (then ``centre`` is False)
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
    """The anchor ``W S1`` (d, k) and the coupling ``S2`` (k, k) of codes ``[S1; S2]`` (m + k, k)."""
    older = codes[: past.n_labels]
    used = np.unique(older.indices)
    anchor = past.weights(used) @ older[used].toarray() if used.size else np.zeros((n_features, codes.shape[1]))
    return anchor, codes[past.n_labels :].toarray()


def unseen_coupled_scores(
    factor: RidgeFactor, penalty: Penalty, scores: FloatArray, targets: FloatArray, rows: IntArray, centre: bool
) -> FloatArray:
    """Scores (e, k) of these rows under the classifiers learned without them, the codes kept.

    In the columns of ``V Q`` the labels are plain ridges of strengths ``beta q_j`` (`classifier.solve`), so there the
    leave-one-out residual is ``r_ij / (1 - h_ij)`` with ``h_ij = sum_r q_ir^2 a_r / (a_r + beta q_j)``.
    """
    n_rows, n_judged = factor.n_rows, len(rows)
    chosen = sparse.csr_array((np.ones(n_judged), (rows, np.arange(n_judged))), shape=(n_rows, n_judged))
    values = factor.eigenvalues[:, None]
    leverages = np.square(factor.project(chosen)).T @ (values / (values + penalty.beta * penalty.strengths))
    leverages += 1.0 / n_rows if centre else 0.0
    residuals = penalty.rotate(targets - scores) / np.maximum(1.0 - leverages, 1e-9)
    return targets - penalty.unrotate(residuals)
