"""Labels under the logistic or the squared hinge loss: the strength of the pull, the classifiers, honest scores.

There is no closed form for leaving a row out, so everything that must be judged on unseen rows is learned again
without them: five stratified folds if rows are few, else one refit without a sample of the rows. On many sparse rows
the squared loss is learned in the same way.
"""

from __future__ import annotations

import numpy as np

from streamlabel.classifier.coordinates import Coordinates, affords_coordinates, minimise
from streamlabel.classifier.iterations import IteratedRows, iterates
from streamlabel.classifier.ridge import mean_square_length
from streamlabel.classifier.solve import solve
from streamlabel.errors import DataError
from streamlabel.metrics.topk import top_k
from streamlabel.stats.ties import even_out, points
from streamlabel.streaming.codes import (
    Arrival,
    PastAnswers,
    anchor_and_coupling,
    coupled_codes,
    find_codes,
    judged_sample,
)
from streamlabel.streaming.trials import STRENGTHS
from streamlabel.types import CSR, FloatArray, IntArray, SolveReport

MOST_ROWS, MOST_LABELS = 4_000, 128  # of the sample by which the strength is chosen
_FOLDS = 5
# On the relative gradient. Past labels: P@k no longer changes. New labels: as good as exact, so that it does not matter
# which labels come together; of many rows: average precision no longer changes by a hundredth of a point.
PAST_TOLERANCE, _NEW_TOLERANCE, _LARGE_TOLERANCE = 1e-3, (1e-9, 1e-6), 1e-3  # the second: then of refits


def row_unit(X: CSR | FloatArray, fit_intercept: bool) -> float:
    """The mean squared length of a (centred) row: the unit of ridge strengths."""
    return mean_square_length(X, np.asarray(X.mean(axis=0)) if fit_intercept else np.zeros(X.shape[1]))


def solve_loss(
    X: CSR | FloatArray,
    answers: CSR | FloatArray,
    beta: float,
    loss: str,
    fit_intercept: bool,
    anchor: FloatArray | None = None,
    coupling: FloatArray | None = None,
    tolerance: float = PAST_TOLERANCE,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray, SolveReport]:
    """Learn classifiers (d, k) and intercepts (k,) with any loss toward an anchor (d, k) (`classifier.solve`)."""
    return solve(
        X, answers, anchor, coupling,
        beta=beta, loss=loss, fit_intercept=fit_intercept, tolerance=tolerance, start=start,
    )  # fmt: skip


def choose_strength(X: CSR | FloatArray, labels: CSR, loss: str, fit_intercept: bool, seed: int) -> float:
    """Choose the strength beta for the past labels, by P@1, P@3 and P@5 of held-out rows.

    A sample of at most 4,000 rows is cut into three quarters to learn from and one to judge by, with the 128 most
    frequent labels; the best mean of the three measures wins, ties go to the stronger pull. P@k is left out if there
    are not more than k labels; with one label 1 is taken.
    """
    unit = row_unit(X, fit_intercept)
    sample = np.random.default_rng(seed).permutation(labels.shape[0])[:MOST_ROWS]
    n_held = max(len(sample) // 4, 1)
    held, kept = np.sort(sample[:n_held]), np.sort(sample[n_held:])
    chosen = most_frequent(labels, MOST_LABELS)
    if len(chosen) < 2:
        return unit
    answers, truth = labels[kept][:, chosen], labels[held][:, chosen].toarray()
    best, best_value = STRENGTHS[-1], -1.0
    for strength in reversed(STRENGTHS):
        weights, intercept, _ = solve_loss(X[kept], answers, strength * unit, loss, fit_intercept)
        value = float(points(100.0 * row_precision(np.asarray(X[held] @ weights) + intercept, truth).mean()))
        if value > best_value:
            best, best_value = strength, value
    return best * unit


def most_frequent(labels: CSR, most: int) -> IntArray:
    """The numbers of the most frequent labels, increasing; ties go to the lower number."""
    counts = np.bincount(labels.indices, minlength=labels.shape[1])
    return np.sort(np.argsort(-counts, kind="stable")[:most])


def row_precision(scores: FloatArray, truth: FloatArray) -> FloatArray:
    """The mean of P@1, P@3 and P@5 of every row, (e,), without those for which there are not more than k labels."""
    n_labels = scores.shape[1]
    hits = np.take_along_axis(truth, top_k(even_out(scores), min(5, n_labels)), axis=1)
    return np.mean([hits[:, :k].mean(axis=1) for k in (1, 3, 5) if k < n_labels], axis=0)


def refit_scores(
    X: CSR | FloatArray,
    answers: CSR | FloatArray,
    anchor: FloatArray | None,
    beta: float,
    loss: str,
    fit_intercept: bool,
    rows: IntArray | None,
    seed: int,
    coupling: FloatArray | None = None,
    tolerance: float = PAST_TOLERANCE,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Scores (e, k) of these rows (None: all) under classifiers learned without them; the anchor is kept.

    All rows are judged in five stratified folds, some rows by one refit without them.
    """
    n_rows = int(X.shape[0])
    folds = stratified_folds(answers, seed) if rows is None or len(rows) == n_rows else [rows]
    scores = np.empty((n_rows, answers.shape[1]))
    for held in folds:
        kept = np.setdiff1d(np.arange(n_rows), held)
        weights, intercept, _ = solve_loss(
            X[kept], answers[kept], beta, loss, fit_intercept, anchor, coupling, tolerance, start
        )  # fmt: skip
        scores[held] = np.asarray(X[held] @ weights) + intercept
    return scores if rows is None else scores[rows]


def stratified_folds(answers: CSR | FloatArray, seed: int, n_folds: int = _FOLDS) -> list[IntArray]:
    """Split the rows into folds over which the positives of every label are spread as evenly as a greedy deal allows.

    Labels are dealt out from the rarest on: each of their rows goes to the fold with the fewest positives of the label,
    then the fewest rows. Rows without a positive fill the folds up.
    """
    positive = np.asarray(answers.toarray() if hasattr(answers, "toarray") else answers) > 0
    n_rows = len(positive)
    n_folds = min(n_folds, n_rows)
    order = np.random.default_rng(seed).permutation(n_rows)
    fold = np.full(n_rows, -1)
    sizes = np.zeros(n_folds, dtype=np.intp)
    for label in np.argsort(positive.sum(axis=0), kind="stable"):
        mine = positive[:, label]
        have = np.bincount(fold[mine & (fold >= 0)], minlength=n_folds)
        for row in order[mine[order] & (fold[order] < 0)]:
            place = int(np.lexsort((sizes, have))[0])
            fold[row] = place
            have[place] += 1
            sizes[place] += 1
    for row in order[fold[order] < 0]:
        place = int(np.argmin(sizes))
        fold[row] = place
        sizes[place] += 1
    return [np.flatnonzero(fold == number) for number in range(n_folds) if sizes[number]]


def learn_with_loss(
    X: CSR | FloatArray,
    answers: FloatArray,
    past: PastAnswers | None,
    lam: float | None,
    beta: float,
    loss: str,
    *,
    anchored: bool = True,
    coupled: bool = False,
    centre: bool = True,
    seed: int = 0,
    basis: FloatArray | None = None,
    share: float = 0.0,
    span: FloatArray | float = 1.0,
    judged_rows: IntArray | None = None,
    start: tuple[FloatArray, FloatArray] | None = None,
    at: IteratedRows | None = None,
) -> Arrival:
    """Represent new labels, then learn their classifiers with this loss toward the anchor (`streaming.codes`).

    basis, share : of the metric;   span : what brings the anchor to the scale of this loss
    judged_rows : the rows to judge by; default all, or a sample of them. Their scores are those of folds or of one
        refit; in both the code of all rows is kept.
    start : weights (d, k), or points of ``at``, and intercepts (k,) near the answer
    at : the rows for iterations, if they are prepared already
    """
    anchor: FloatArray | None
    coupling: FloatArray | None = None
    if coupled and past is not None and lam is not None:
        codes, reports = coupled_codes(past, answers, lam, centre)
        anchor, coupling = anchor_and_coupling(past, codes, int(X.shape[1]))
    else:
        codes, anchor, reports = find_codes(past, answers, lam, centre)
        anchor = anchor * span if anchored and anchor is not None else None
    rows = judged_sample(len(answers), seed) if judged_rows is None else judged_rows
    pulled = (np.diff(codes.indptr) > 0) & (anchor is not None or coupling is not None)
    if coupling is None and centre and iterates(X):
        at = IteratedRows(X, basis, share) if at is None else at
        held = at.point(np.zeros((X.shape[1], answers.shape[1])) if anchor is None else anchor)
        U, intercept, scores = at.learn(answers, held, beta, loss, _LARGE_TOLERANCE, start, rows)
        scores = scores if rows is None else scores[rows]
        return Arrival(at.weights(U), intercept, codes, rows, scores, reports, pulled, U)
    if coupling is None and centre and affords_coordinates(X.shape, 0 if basis is None else int(basis.shape[1])):
        found = _learn_in_coordinates(X, answers, anchor, beta, loss, rows, seed, basis, share)
        return Arrival(found[0], found[1], codes, rows, found[2], reports, pulled)
    if share:
        raise DataError(f"a metric with the {loss} loss needs fewer rows or features than {X.shape}; set metric=None")
    tolerance, refit = _NEW_TOLERANCE
    weights, intercept, _ = solve_loss(X, answers, beta, loss, centre, anchor, coupling, tolerance, start)
    scores = refit_scores(
        X, answers, anchor, beta, loss, centre, rows, seed, coupling, refit, (weights, intercept)
    )  # fmt: skip
    return Arrival(weights, intercept, codes, rows, scores, reports, pulled)


def _learn_in_coordinates(
    X: CSR | FloatArray,
    answers: FloatArray,
    anchor: FloatArray | None,
    beta: float,
    loss: str,
    rows: IntArray | None,
    seed: int,
    basis: FloatArray | None,
    share: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Classifiers (d, k), intercepts (k,), and the scores (e, k) of these rows under classifiers without them.

    The refits without some rows are further columns of the same problem.
    """
    past = None
    if basis is not None and share:
        past = np.asarray(X @ basis)
        past -= past.mean(axis=0)
    at, (n_rows, n_labels) = Coordinates(X, past, share), answers.shape
    held: FloatArray = np.zeros((at.Z.shape[1], n_labels))
    fixed: FloatArray = np.zeros(answers.shape)  # what the anchor adds to scores
    if anchor is not None:
        fixed = np.asarray(X @ anchor)
        fixed -= fixed.mean(axis=0)
        held = at.of_scores(fixed)
    V, b = minimise(at.Z, at.squares, answers, beta, loss, held, tolerance=_NEW_TOLERANCE[0])
    folds = stratified_folds(answers, seed) if rows is None else [rows]
    known = np.ones((n_rows, len(folds), n_labels))
    for number, fold in enumerate(folds):
        known[fold, number] = 0.0
    many = [np.tile(part, (1, len(folds))) for part in (answers, held, V, b[None])]
    begin, masks = (many[2], many[3][0]), known.reshape(n_rows, -1)
    V_without, b_without = minimise(
        at.Z, at.squares, many[0], beta, loss, many[1], begin, masks, _NEW_TOLERANCE[1]
    )  # fmt: skip
    scores = np.empty_like(answers)
    for number, fold in enumerate(folds):
        part = slice(number * n_labels, (number + 1) * n_labels)
        scores[fold] = fixed[fold] + at.Z[fold] @ (V_without[:, part] - held) + b_without[part]
    weights = at.weights(V - held, basis)
    weights = weights if anchor is None else weights + anchor
    return weights, b - at.mean @ weights, scores if rows is None else scores[rows]
