"""Models and new labels learned from sums (`stats.sums`): the same ridge as on the rows, wherever these were summed."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logit, ndtr

from streamlabel.classifier.ridge import choose_beta
from streamlabel.errors import ConflictError, DataError
from streamlabel.stats.spectral import dense, row_scale
from streamlabel.stats.sums import Stats, SumsFactor
from streamlabel.streaming.blocks import SharedList
from streamlabel.streaming.calibration import Decisions, usual_threshold
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.inputs import check_parameters, checked_parameters
from streamlabel.streaming.state import LabelBatch
from streamlabel.streaming.trials import LAM, LabelReport
from streamlabel.structure.represent import represent
from streamlabel.types import CSC, FloatArray
from streamlabel.validation import canonical_labels, default_label_names

_N_THRESHOLDS = 200
_BLOCK_ROWS = 10_000


def classifier_from_stats(stats: Stats, beta: float | str = "auto", **parameters: Any) -> StreamingLabelClassifier:
    """Learn from sums what ``StreamingLabelClassifier(beta=beta, **parameters).fit`` would learn from the rows.

    beta : the ridge strength; "auto" has the least generalised cross-validation error of all labels together, which
        needs nothing but the sums (up to 512 labels it is the choice of `fit`, which then looks at a sample of them)
    parameters : of the classifier; the squared loss and the independent start only

    Coefficients and intercepts are those of `fit` up to rounding. Thresholds and probabilities are not: `fit` takes
    them from scores of unseen rows, here they come from the mean scores with and without the label and the spread about
    these. Like `from_coef`, the model has no rows to try anything on: labels can be added with rows of their own.
    """
    wanted = StreamingLabelClassifier(beta=beta, **parameters)
    check_parameters(wanted)
    if wanted.loss not in ("squared", "auto") or wanted.start != "independent":
        setting = f"loss={wanted.loss!r}" if wanted.loss not in ("squared", "auto") else f"start={wanted.start!r}"
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
    names = model.label_names_
    decisions = _decide(wanted, stats, factor, strength, weights, intercept)
    reports = SharedList.of(
        LabelReport(name, stats.n_rows, int(count), 0.0, None, False, strength)
        for name, count in zip(names, stats.label_counts, strict=True)
    )
    model.state_ = replace(model.state_, beta=strength, decisions=decisions, reports=reports)
    return model


def code_labels(past: Any, new: Any, lam: float = LAM, *, fit_intercept: bool = True) -> CSC:
    """Write each new label as a sparse combination of the known ones, (m, k), from answers alone: step 1 of the paper.

    past : (n, m) of 0/1, the answers of the known labels;   new : (n, k) of 0/1, those of the new labels, same rows
    lam : the lasso penalty, as a share of the rows

    No feature is read: with `add_labels_from_stats` for step 2, answers and features are never in memory together.
    """
    known, labels = canonical_labels(past), canonical_labels(new)
    if known.shape[0] != labels.shape[0]:
        raise DataError(f"{known.shape[0]} rows of known labels and {labels.shape[0]} of new ones; they must agree")
    (n_rows, n_past), n_new = known.shape, labels.shape[1]
    gram, correlations = np.zeros((n_past, n_past)), np.zeros((n_past, n_new))
    for start in range(0, n_rows, _BLOCK_ROWS):  # counts are whole numbers, so that blocks change no bit
        block, new_block = (part[start : start + _BLOCK_ROWS].astype(np.float64) for part in (known, labels))
        gram += dense(block.T @ block)
        correlations += dense(block.T @ new_block)
    past_counts, counts = gram.diagonal().copy(), np.asarray(labels.sum(axis=0), dtype=np.float64).ravel()
    if fit_intercept:  # products of centred answers
        gram -= np.outer(past_counts, past_counts / n_rows)
        correlations -= np.outer(past_counts, counts / n_rows)
        energies = counts - np.square(counts) / n_rows
    else:  # products of -1/+1
        gram = 4.0 * gram - 2.0 * (past_counts[:, None] + past_counts) + n_rows
        correlations = 4.0 * correlations - 2.0 * (past_counts[:, None] + counts) + n_rows
        energies = np.full(n_new, float(n_rows))
    return represent(gram, correlations, energies, lam * n_rows).codes


def add_labels_from_stats(
    model: StreamingLabelClassifier, stats: Stats, codes: CSC, beta: float | str = "auto"
) -> StreamingLabelClassifier:
    """Learn new labels from sums of features, as a copy of the model that knows them too: step 2 of the paper.

    stats : sums over rows with the answers of the new labels (`Stats.from_batch`, block by block)
    codes : (m, k), what they are made of (`code_labels`);   beta : the pull; "auto" is that of `fit`, or generalised
        cross-validation if the model was adopted

    The classifiers are those of `add_labels` with ``metric=None`` and a fixed ``lam``, up to rounding; thresholds and
    probabilities are made as in `classifier_from_stats`.
    """
    state, parameters = model.state_, checked_parameters(model)
    if state.loss != "squared":
        raise DataError(f"the model has loss={state.loss!r}; sums serve the squared loss")
    if codes.shape != (len(state.names), stats.n_labels) or stats.n_features != state.classifiers.n_features:
        raise DataError(
            f"codes {codes.shape} and {stats.n_features} features for a model of {len(state.names)} labels and "
            f"{state.classifiers.n_features} features and {stats.n_labels} new labels; they do not go together"
        )
    n_past = len(state.names)
    names = stats.label_names or default_label_names(stats.n_labels, first=n_past)
    for name in names:
        if name in state.names:
            raise ConflictError(f"label name {name!r} is taken; choose another name")
    factor = SumsFactor(stats, centre=parameters.fit_intercept)
    if beta != "auto":
        strength = float(beta)
    elif np.isfinite(state.strength):
        unit = row_scale(float(factor.eigenvalues.sum()) / stats.n_rows, float(factor.mean @ factor.mean))
        strength = float(state.strength * unit)
    else:
        strength = choose_beta(factor, factor.projected, factor.energy)
    used = np.unique(codes.indices)
    weights = factor.weights(strength, state.classifiers.weights(used) @ codes.tocsr()[used].toarray())
    intercept = np.zeros(stats.n_labels)
    if parameters.fit_intercept:
        intercept = stats.label_counts / stats.n_rows - factor.mean @ weights
    sizes = np.diff(codes.indptr)
    reports = tuple(
        LabelReport(name, stats.n_rows, int(stats.label_counts[j]), 0.0, None, bool(sizes[j]), strength, int(sizes[j]))
        for j, name in enumerate(names)
    )
    decisions = _decide(parameters, stats, factor, strength, weights, intercept)
    new = LabelBatch(names, weights, intercept, decisions, reports, codes)
    scored = np.concatenate((state.scored, np.arange(n_past, n_past + len(names))))
    grown = copy.copy(model)
    grown.state_ = state.grown(new, scored=scored if parameters.dictionary == "all" else state.scored)
    return grown


def _decide(
    parameters: Any, stats: Stats, factor: SumsFactor, beta: float, weights: FloatArray, intercept: FloatArray
) -> Decisions:
    yes = stats.label_counts.astype(np.float64)
    no = stats.n_rows - yes
    with_label, without, spread = _unseen_scores(parameters.fit_intercept, stats, factor, beta, weights, intercept)
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
    if parameters.threshold != "f1":
        return Decisions(np.full(len(yes), float(parameters.threshold)), slope, offset)
    found = _best_f1(without, gap, spread, yes, no)
    usual = float(np.median(found[usable])) if usable.any() else usual_threshold("squared", parameters.fit_intercept)
    return Decisions(np.where(usable, found, usual), slope, offset)


def _unseen_scores(
    centred: bool, stats: Stats, factor: SumsFactor, beta: float, weights: FloatArray, intercept: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mean score of rows with each label and without it, and the spread about these, as if rows were unseen.

    With the mean leverage h, the leave-one-out score of a row with target t and score s is about (s - h t) / (1 - h).
    """
    n_rows, yes = float(stats.n_rows), stats.label_counts.astype(np.float64)
    no = n_rows - yes
    sums, total = np.einsum("jm,jm->m", weights, stats.cross), stats.feature_sums @ weights
    with_label, without = sums / np.maximum(yes, 1.0) + intercept, (total - sums) / np.maximum(no, 1.0) + intercept
    variance = np.square(factor.project_scores(weights)).sum(axis=0) / n_rows
    if not centred:
        variance = variance - np.square(total / n_rows)
    within = np.maximum(variance - yes * no / n_rows**2 * np.square(with_label - without), 0.0)
    freedom = (factor.eigenvalues / (factor.eigenvalues + beta)).sum() + float(centred)
    leverage = min(float(freedom) / n_rows, 0.999)
    target_of_no = 0.0 if centred else -1.0
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
