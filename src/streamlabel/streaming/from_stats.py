"""A model from sums alone (`stats.sums`): the same ridge as on the rows, wherever these were summed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logit, ndtr

from streamlabel.classifier.ridge import choose_beta
from streamlabel.errors import DataError
from streamlabel.stats.sums import Stats, SumsFactor
from streamlabel.streaming.blocks import SharedList
from streamlabel.streaming.calibration import Decisions, usual_threshold
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.inputs import check_parameters
from streamlabel.streaming.trials import LabelReport
from streamlabel.types import FloatArray

_N_THRESHOLDS = 200


def classifier_from_stats(stats: Stats, beta: float | str = "auto", **parameters: Any) -> StreamingLabelClassifier:
    """The classifiers that ``StreamingLabelClassifier(beta=beta, **parameters).fit`` would learn from the rows.

    beta : the ridge strength; "auto" has the least generalised cross-validation error of all labels together, which
        needs nothing but the sums (up to 512 labels it is the choice of `fit`, which then looks at a sample of them)
    parameters : of the classifier; the squared loss and the independent start only

    Coefficients and intercepts are those of `fit` up to rounding. Thresholds and probabilities are not: `fit` takes
    them from scores of unseen rows, here they come from the mean scores with and without the label and the spread about
    these. Like `from_coef`, the model has no rows to try anything on: labels can be added
    with rows of their own.
    """
    wanted = StreamingLabelClassifier(beta=beta, **parameters)
    check_parameters(wanted)
    if wanted.loss != "squared" or wanted.start != "independent":
        setting = f"loss={wanted.loss!r}" if wanted.loss != "squared" else f"start={wanted.start!r}"
        raise DataError(f"{setting} needs the rows; sums serve loss='squared' with start='independent'")
    if stats.n_rows < 2:
        raise DataError(f"the sums are over {stats.n_rows} rows; at least two are needed to learn anything")
    factor = SumsFactor(stats, centre=wanted.fit_intercept)
    strength = choose_beta(factor, factor.projected, factor.energy) if beta == "auto" else float(beta)
    weights = factor.weights(strength)
    intercept = np.zeros(stats.n_labels)
    if wanted.fit_intercept:
        intercept = stats.label_counts / stats.n_rows - factor.mean @ weights
    model = StreamingLabelClassifier.from_coef(weights.T, intercept, stats.label_names, beta=beta, **parameters)
    reports = SharedList.of(
        LabelReport(name, stats.n_rows, int(count), 0.0, None, False, strength)
        for name, count in zip(model.label_names_, stats.label_counts, strict=True)
    )
    decisions = _decide(model, stats, factor, strength)
    model.state_ = replace(model.state_, beta=strength, decisions=decisions, reports=reports)
    return model


def _decide(model: StreamingLabelClassifier, stats: Stats, factor: SumsFactor, beta: float) -> Decisions:
    yes = stats.label_counts.astype(np.float64)
    no = stats.n_rows - yes
    with_label, without, spread = _unseen_scores(model, stats, factor, beta)
    gap = with_label - without
    usable = (yes > 0) & (no > 0) & (gap > 0)
    gap = np.where(usable, gap, 1.0)
    spread = np.where(usable, np.maximum(spread, 1e-3 * gap), 1.0)
    # The line that predicts the answer from the score, as a sigmoid through its values at the two means. With the R^2
    # of that line these are rate + (1 - rate) R^2 and rate (1 - R^2).
    rate = (yes + 1.0) / (stats.n_rows + 2.0)
    between = yes * no / float(stats.n_rows) ** 2 * np.square(gap)
    explained = np.where(usable, between / (between + np.square(spread)), 0.0)
    high, low = logit(rate + (1.0 - rate) * explained), logit(rate * (1.0 - explained))
    slope = (high - low) / gap
    offset = low - slope * without
    if model.threshold != "f1":
        return Decisions(np.full(len(yes), float(model.threshold)), slope, offset)
    found = _best_f1(without, gap, spread, yes, no)
    usual = float(np.median(found[usable])) if usable.any() else usual_threshold("squared", model.fit_intercept)
    return Decisions(np.where(usable, found, usual), slope, offset)


def _unseen_scores(
    model: StreamingLabelClassifier, stats: Stats, factor: SumsFactor, beta: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mean score of rows with each label and without it, and the spread about these, as if rows were unseen.

    With the mean leverage h, the leave-one-out score of a row with target t and score s is about (s - h t) / (1 - h).
    """
    n_rows, yes = float(stats.n_rows), stats.label_counts.astype(np.float64)
    no = n_rows - yes
    coef, intercept = model.coef_, model.intercept_
    sums, total = np.einsum("mj,jm->m", coef, stats.cross), coef @ stats.feature_sums
    with_label, without = sums / np.maximum(yes, 1.0) + intercept, (total - sums) / np.maximum(no, 1.0) + intercept
    variance = factor.score_energy(beta) / n_rows
    if not model.fit_intercept:
        variance = variance - np.square(total / n_rows)
    within = np.maximum(variance - yes * no / n_rows**2 * np.square(with_label - without), 0.0)
    freedom = (factor.eigenvalues / (factor.eigenvalues + beta)).sum() + float(model.fit_intercept)
    leverage = min(float(freedom) / n_rows, 0.999)
    target_of_no = 0.0 if model.fit_intercept else -1.0
    seen = 1.0 - leverage
    return (with_label - leverage) / seen, (without - leverage * target_of_no) / seen, np.sqrt(within) / seen


def _best_f1(without: FloatArray, gap: FloatArray, spread: FloatArray, yes: FloatArray, no: FloatArray) -> FloatArray:
    """The threshold of the best expected F1, (m,), for normal scores of one spread about the two means."""
    best, found = np.full(len(gap), -1.0), without
    for share in np.linspace(0.0, 1.0, _N_THRESHOLDS):
        threshold = without + share * (gap + 4.0 * spread)
        hits = yes * ndtr((without + gap - threshold) / spread)
        f1 = 2.0 * hits / (yes + hits + no * ndtr((without - threshold) / spread) + 1e-300)
        better = f1 > best
        best, found = np.where(better, f1, best), np.where(better, threshold, found)
    return found
