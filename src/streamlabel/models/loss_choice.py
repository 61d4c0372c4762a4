"""Which loss suits the data, and how far the past can be trusted under another loss than the squared one."""

from __future__ import annotations

import numpy as np

from streamlabel.models.calibration import LAMS, RECIPES, Judged, Trial, code_of_hidden, hide_labels, measure
from streamlabel.models.nonlinear import (
    MOST_LABELS,
    STRENGTHS,
    choose_strength,
    most_frequent,
    row_precision,
    row_unit,
    solve_loss,
)
from streamlabel.models.past_fit import fit_ridge
from streamlabel.results import CSR, FloatArray
from streamlabel.stats.ties import points

__all__ = ["choose_loss", "run_loss_trial"]

_COMPARED_ROWS, _HELD_ROWS = 16_000, 1_000
_HIDDEN = 32


def choose_loss(
    X: CSR | FloatArray, labels: CSR, beta: float | str, fit_intercept: bool, seed: int
) -> tuple[str, float | str]:
    """ "squared" or "logistic", and the strength to learn with (as given, or found on the way).

    Both learn the 128 most frequent labels on the same rows (at most 15,000) and are judged by the mean of P@1, P@3 and
    P@5 on other rows (at most 1,000, which the strength of neither was chosen by). Logistic is taken where it is better
    by more than the standard error of the difference over the rows.
    """
    chosen = most_frequent(labels, MOST_LABELS)
    n_rows = int(labels.shape[0])
    if len(chosen) < 2 or n_rows < 20:
        return "squared", beta
    sample = np.random.default_rng(seed).permutation(n_rows)[:_COMPARED_ROWS]
    n_held = min(_HELD_ROWS, len(sample) // 4)
    held, kept = np.sort(sample[:n_held]), np.sort(sample[n_held:])
    rows, answers, truth = X[kept], labels[kept][:, chosen], labels[held][:, chosen].toarray()
    ridge = fit_ridge(rows, answers, beta, fit_intercept, seed)
    found = choose_strength(rows, answers, "logistic", fit_intercept, seed) if beta == "auto" else float(beta)
    weights, intercept, _ = solve_loss(rows, answers, found, "logistic", fit_intercept)
    gains = row_precision(np.asarray(X[held] @ weights) + intercept, truth)
    gains = gains - row_precision(np.asarray(X[held] @ ridge.weights) + ridge.intercept, truth)
    better = bool(points(100.0 * gains.mean()) > points(100.0 * gains.std(ddof=1) / np.sqrt(len(gains))))
    return ("logistic", found) if better else ("squared", beta)


def run_loss_trial(
    X: CSR | FloatArray,
    answers: CSR,
    scores: FloatArray,
    judged: Judged,
    rng: np.random.Generator,
    *,
    weights: FloatArray,
    intercept: FloatArray,
    loss: str,
) -> Trial | None:
    """`calibration.run_trial` under another loss: hidden labels are learned again, alone and toward their code.

    ``weights`` (d, m) and ``intercept`` (m,) are the past classifiers; ``scores`` is not read. There is no metric under
    these losses: its recipes count as learning alone does. The strength is the one of `STRENGTHS` that suits learning
    alone best, by all measures together.
    """
    hidden, others = hide_labels(answers, judged.answers, rng)
    hidden = np.sort(rng.permutation(hidden)[:_HIDDEN])
    if len(hidden) < 2 or not others.size:
        return None
    truth = judged.answers[:, hidden].toarray().astype(np.float64)
    targets = answers[:, hidden].toarray().astype(np.float64)
    unit = row_unit(X, True)
    # The past classifiers have seen the judged rows: what they add there is replaced by what they would add unseen.
    seen = np.asarray(judged.X @ weights[:, others]) + intercept[others]
    codes = {lam: code_of_hidden(answers[:, others], answers[:, hidden], lam) for lam in LAMS}

    def judge(strength: float, code: FloatArray | None = None) -> list[float]:
        anchor = None if code is None else weights[:, others] @ code
        found, offset, _ = solve_loss(X, targets, strength * unit, loss, True, anchor)
        unseen = 0.0 if code is None else (judged.scores[:, others] - seen) @ code
        return measure(truth, np.asarray(judged.X @ found) + offset + unseen)

    alone = {strength: judge(strength) for strength in STRENGTHS}
    strongest_first = STRENGTHS[::-1]
    overall = [(np.mean(alone[value][:3]) + alone[value][3] + alone[value][4]) / 3.0 for value in strongest_first]
    strength = strongest_first[int(points(np.array(overall)).argmax())]
    measures = [
        alone[strength] if share or lam is None else judge(pull * strength, codes[lam]) for share, lam, pull in RECIPES
    ]
    return Trial(strength, np.array(measures))
