"""Models and new labels learned from sums (`stats.sums`): the same ridge as on the rows, wherever these were summed."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import logit, ndtr

from streamlabel.classifier.ridge import choose_beta
from streamlabel.errors import AnnotationWarning, ConflictError, DataError
from streamlabel.stats.spectral import dense, row_scale
from streamlabel.stats.sums import Stats, SumsFactor
from streamlabel.streaming.arrival import MOST_SCORED, allowed_labels
from streamlabel.streaming.blocks import SharedList
from streamlabel.streaming.calibration import Decisions, decide, usual_threshold
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.codes import unseen_scores
from streamlabel.streaming.inputs import check_parameters, checked_parameters, coded
from streamlabel.streaming.past import tuned_labels
from streamlabel.streaming.state import LabelBatch
from streamlabel.streaming.trials import LAM, LabelReport
from streamlabel.structure.represent import Mapper, represent
from streamlabel.types import CSC, CSR, FloatArray, IntArray
from streamlabel.validation import canonical_labels, default_label_names

_N_THRESHOLDS = 200
_BLOCK_ROWS = 10_000
_COLUMNS = 256  # labels an executor is handed at a time


class _Learned(NamedTuple):
    """Classifiers (d, m), intercepts (m,), decisions, the strength of each label (m,), also in units of its rows."""

    weights: FloatArray
    intercept: FloatArray
    decisions: Decisions
    strengths: FloatArray
    relative: FloatArray


def classifier_from_stats(
    stats: Stats,
    beta: float | str = "auto",
    judged: tuple[CSR, CSR] | None = None,
    *,
    executor: Mapper | None = None,
    **parameters: Any,
) -> StreamingLabelClassifier:
    """Learn from sums what ``StreamingLabelClassifier(beta=beta, **parameters).fit`` would learn from the rows.

    beta : the ridge strength; "auto" has the least generalised cross-validation error of all labels together, which
        needs nothing but the sums (the choice of `fit` with ``scoring="balanced"`` and twice as many rows as features,
        up to 512 labels; beyond, `fit` looks at a sample of them, with ``judged`` the same)
    judged : some of the rows (e, d) and their labels (e, m), if every label was asked on every row: thresholds and
        probabilities then come from the scores that these have under classifiers learned without them, as in `fit`
    executor : solves the labels, 256 at a time; it is given the factor once. None: here, all at once
    parameters : of the classifier; the squared loss and the independent start only

    Coefficients and intercepts are those of `fit` up to rounding. Thresholds and probabilities are not, without
    ``judged``: they come from the mean scores with and without the label and the spread about these. Like `from_coef`,
    the model has no rows to try anything on: labels can be added with rows of their own. Labels that were not asked on
    the same rows are learned apart, each from its own (`Stats.by_asked`).
    """
    wanted = checked_for_sums(StreamingLabelClassifier(beta=beta, **parameters))
    tuned = slice(None) if judged is None else tuned_labels(stats.n_labels, wanted.random_state)

    def choose(factor: SumsFactor, _: Stats) -> float:
        return choose_beta(factor, factor.projected[:, tuned], factor.energy[tuned])

    learned = _learn(wanted, stats, None, choose, beta, executor, judged)
    model = StreamingLabelClassifier.from_coef(
        learned.weights.T, learned.intercept, stats.label_names, beta=beta, **parameters
    )
    reports = SharedList.of(_reports(model.label_names_, stats, learned, np.zeros(stats.n_labels, dtype=np.intp)))
    strength, relative = float(np.median(learned.strengths)), float(np.median(learned.relative))
    model.state_ = replace(model.state_, beta=strength, strength=relative, decisions=learned.decisions, reports=reports)
    return model


def _learn(
    parameters: Any,
    stats: Stats,
    anchor: FloatArray | None,
    choose: Callable[[SumsFactor, Stats], float],
    beta: float | str,
    executor: Mapper | None,
    judged: tuple[CSR, CSR] | None,
) -> _Learned:
    """Learn every label from the sums over the rows on which it was asked, toward an anchor (d, m) or zero."""
    found = []
    for labels, part in stats.by_asked():
        if part.n_rows < 2:
            which = "" if stats.asked is None else f", where label {int(labels[0])} was asked"
            raise DataError(f"the sums are over {part.n_rows} rows{which}; at least two are needed to learn anything")
        factor = SumsFactor(part, centre=parameters.fit_intercept)
        strength = choose(factor, part) if beta == "auto" else float(beta)
        own = None if anchor is None else anchor if stats.asked is None else anchor[:, labels]
        solve = partial(_solve, parameters.fit_intercept, strength, factor.of_targets(np.empty((0, 0))))
        if executor is None:
            weights, intercept, *scores = solve((part, factor.projected, own))
        else:
            blocks = [slice(start, start + _COLUMNS) for start in range(0, part.n_labels, _COLUMNS)]
            items = ((part.thin(at), factor.projected[:, at], None if own is None else own[:, at]) for at in blocks)
            weights, intercept, *scores = (
                np.concatenate(parts, axis=-1) for parts in zip(*executor.map(solve, items), strict=True)
            )
        if judged is None or stats.asked is not None:
            decisions = _decide(parameters, part, *scores)
        else:
            levels = np.einsum("jm,jm->m", weights, part.cross) / np.maximum(part.label_counts, 1) + intercept
            decisions = _judge(
                parameters, judged, factor, strength, weights, intercept, levels if anchor is None else None
            )
        strengths = np.full(part.n_labels, strength)
        found.append((labels, _Learned(weights, intercept, decisions, strengths, strengths / _unit(factor))))
    if stats.asked is None:
        return found[0][1]
    if stats.asked.grams is None:
        warnings.warn(
            "labels were asked on too many different sets of rows for an X'X each; that of all rows serves, as if the "
            "rows on which a label was asked were a random sample",
            AnnotationWarning,
            stacklevel=3,
        )
    order = np.argsort(np.concatenate([labels for labels, _ in found]))
    weights, intercept, strengths, relative = (
        np.concatenate([getattr(one, name) for _, one in found], axis=-1)[..., order]
        for name in ("weights", "intercept", "strengths", "relative")
    )
    decisions = Decisions(
        *(
            np.concatenate([getattr(one.decisions, name) for _, one in found])[order]
            for name in ("thresholds", "slope", "offset")
        )
    )
    return _Learned(weights, intercept, decisions, strengths, relative)


def _solve(centred: bool, strength: float, factor: SumsFactor, item: Any) -> tuple[FloatArray, ...]:
    """Classifiers and intercepts of some labels, and their `_unseen_scores`; ``item``: sums, targets, anchor."""
    stats, projected, anchor = item
    factor = factor.of_targets(projected)
    weights = factor.weights(strength, anchor)
    intercept = np.zeros(stats.n_labels)
    if centred:
        intercept = stats.label_counts / stats.n_rows - factor.mean @ weights
    return weights, intercept, *_unseen_scores(centred, stats, factor, strength, weights, intercept)


def _reports(names: tuple[str, ...], stats: Stats, learned: _Learned, sizes: IntArray) -> list[LabelReport]:
    rows, yes = stats.asked_rows.tolist(), stats.label_counts.tolist()
    return [
        LabelReport(name, rows[j], yes[j], 0.0, None, bool(sizes[j]), float(learned.strengths[j]), int(sizes[j]))
        for j, name in enumerate(names)
    ]


def checked_for_sums(wanted: StreamingLabelClassifier) -> StreamingLabelClassifier:
    """The classifier, or DataError where one with these parameters cannot be learned from sums."""
    check_parameters(wanted)
    served = {"loss": ("squared", "auto"), "start": ("independent",), "features": (None,), "prune": (None,)}
    for name, usual in served.items():
        if (given := getattr(wanted, name)) not in usual:
            raise DataError(f"{name}={given!r} needs the rows; sums serve {name}={usual[0]!r}")
    return wanted


def code_labels(
    past: Any, new: Any, lam: float = LAM, *, fit_intercept: bool = True, executor: Mapper | None = None
) -> CSC:
    """Write each new label as a sparse combination of the known ones, (m, k), from answers alone: step 1 of the paper.

    past : (n, m) of 0/1, the answers of the known labels;   new : (n, k) of 0/1, those of the new labels, same rows
    lam : the lasso penalty, as a share of the rows;   executor : solves the codes; None: here, one after the other

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
    counts = np.asarray(labels.sum(axis=0), dtype=np.float64).ravel()
    return code_counts(n_rows, gram, correlations, counts, lam, fit_intercept=fit_intercept, executor=executor)


def code_counts(
    n_rows: int,
    gram: FloatArray,
    correlations: FloatArray,
    counts: FloatArray,
    lam: float,
    *,
    fit_intercept: bool,
    executor: Mapper | None = None,
) -> CSC:
    """The codes (p, k) of new labels from counts over the rows: what `code_labels` finds from the answers.

    gram : (p, p), how often two known labels occur together;   correlations : (p, k), a known and a new one
    counts : (k,), how often each new label occurs
    """
    past_counts = gram.diagonal().copy()
    if fit_intercept:  # products of centred answers
        gram = gram - np.outer(past_counts, past_counts / n_rows)
        correlations = correlations - np.outer(past_counts, counts / n_rows)
        energies = counts - np.square(counts) / n_rows
    else:  # products of -1/+1
        gram = 4.0 * gram - 2.0 * (past_counts[:, None] + past_counts) + n_rows
        correlations = 4.0 * correlations - 2.0 * (past_counts[:, None] + counts) + n_rows
        energies = np.full(len(counts), float(n_rows))
    return represent(gram, correlations, energies, lam * n_rows, executor=executor).codes


def code_scores(model: StreamingLabelClassifier, stats: Stats, lam: float) -> CSC:
    """The codes (m, k) of new labels where the model's own scores stand for answers that nobody gave, from sums alone.

    With the scores ``S = X W + b`` these are ``S'S`` and ``S'B``, which ``X'X`` and ``X'B`` say. As in `add_labels` the
    512 labels that correlate best with any of the new ones may enter.
    """
    if stats.asked is not None:  # each by its own rows
        numbers, parts = zip(*((at, code_scores(model, own, lam)) for at, own in stats.by_asked()), strict=True)
        return sparse.csc_array(sparse.hstack(parts, format="csc")[:, np.argsort(np.concatenate(numbers))])
    state, centre = model.state_, checked_parameters(model).fit_intercept
    allowed = allowed_labels(checked_parameters(model), state)
    weights, n_rows = state.classifiers.weights(allowed), stats.n_rows
    counts, cross, gram = stats.label_counts.astype(np.float64), stats.cross, stats.feature_gram
    if centre:
        mean = stats.feature_sums / n_rows
        correlations = weights.T @ cross - np.outer(mean @ weights, counts)
        energies = counts - np.square(counts) / n_rows
    else:
        correlations = 2.0 * (weights.T @ cross) - (stats.feature_sums @ weights)[:, None]
        energies = np.full(stats.n_labels, float(n_rows))
    if len(allowed) > MOST_SCORED:
        kept = np.sort(np.argsort(-np.abs(correlations).max(axis=1), kind="stable")[:MOST_SCORED])
        allowed, weights, correlations = allowed[kept], weights[:, kept], correlations[kept]
    products = weights.T @ (gram @ weights)
    if centre:
        products -= n_rows * np.outer(mean @ weights, mean @ weights)
    return placed_codes(represent(products, correlations, energies, lam * n_rows).codes, allowed, len(state.names))


def placed_codes(codes: CSC, labels: IntArray, n_labels: int) -> CSC:
    """Codes (p, k) over some labels as codes (m, k) over all of them; ``labels`` (p,) are their numbers."""
    found = sparse.csc_array((codes.data, labels[codes.indices], codes.indptr), shape=(n_labels, codes.shape[1]))
    found.sort_indices()
    return found


def add_labels_from_stats(
    model: StreamingLabelClassifier,
    stats: Stats,
    codes: CSC,
    beta: float | str = "auto",
    judged: tuple[CSR, CSR] | None = None,
    *,
    executor: Mapper | None = None,
) -> StreamingLabelClassifier:
    """Learn new labels from sums of features, as a copy of the model that knows them too: step 2 of the paper.

    stats : sums over rows with the answers of the new labels (`Stats.from_batch`, block by block)
    codes : (m, k), what they are made of (`code_labels`);   beta : the pull; "auto" is that of `fit`, or generalised
        cross-validation if the model was adopted;   judged, executor : as in `classifier_from_stats`

    The classifiers are those of `add_labels` with ``metric=None``, a fixed ``lam`` and ``beta``, up to rounding;
    thresholds and probabilities are made as in `classifier_from_stats`.
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

    def choose(factor: SumsFactor, _: Stats) -> float:
        if not np.isfinite(state.strength):
            return choose_beta(factor, factor.projected, factor.energy)
        return float(state.strength * _unit(factor))

    used = np.unique(codes.indices)
    anchor = state.classifiers.weights(used) @ codes.tocsr()[used].toarray()
    learned = _learn(parameters, stats, anchor, choose, beta, executor, judged)
    reports = tuple(_reports(names, stats, learned, np.diff(codes.indptr)))
    new = LabelBatch(names, learned.weights, learned.intercept, learned.decisions, reports, codes)
    scored = np.concatenate((state.scored, np.arange(n_past, n_past + len(names))))
    grown = copy.copy(model)
    grown.state_ = state.grown(new, scored=scored if parameters.dictionary == "all" else state.scored)
    return grown


def _unit(factor: SumsFactor) -> float:
    """The unit of ridge strengths on these rows."""
    return row_scale(float(factor.eigenvalues.sum()) / factor.n_rows, float(factor.mean @ factor.mean))


def _judge(
    parameters: Any, judged: tuple[CSR, CSR], factor: SumsFactor, beta: float, weights: FloatArray,
    intercept: FloatArray, levels: FloatArray | None,
) -> Decisions:  # fmt: skip
    """Thresholds and probabilities from the leave-one-out scores of some of the rows, as `fit` makes them."""
    (rows, labels), centre = judged, parameters.fit_intercept
    scores = np.asarray(rows @ weights) + intercept
    unseen = unseen_scores(scores, coded(labels, centre), factor.leverages(rows, beta))
    answers = labels.toarray().astype(np.float64)
    return decide(unseen, answers, parameters.threshold, usual_threshold("squared", centre), levels)


def _decide(
    parameters: Any, stats: Stats, with_label: FloatArray, without: FloatArray, spread: FloatArray
) -> Decisions:
    yes = stats.label_counts.astype(np.float64)
    no = stats.n_rows - yes
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
