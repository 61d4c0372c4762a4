"""Learning of new labels beside those that a model knows: which recipe, which labels may enter a code, which solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.classifier.coordinates import affords_coordinates
from streamlabel.classifier.iterations import IteratedRows, iterates
from streamlabel.classifier.losses import log_odds_span
from streamlabel.classifier.objective import very_many
from streamlabel.classifier.ridge import PreparedRidge, make_ridge
from streamlabel.classifier.solve import FACTOR_LIMIT, too_large
from streamlabel.errors import DataError
from streamlabel.executors import JoblibExecutor
from streamlabel.stats.spectral import centred_kernel, make_factor
from streamlabel.streaming.annotated import AskedRows, group_by_rows
from streamlabel.streaming.calibration import Decisions, Estimate, decide, sampled_estimates, sigmoid, usual_threshold
from streamlabel.streaming.codes import (
    Arrival,
    JudgedRows,
    PastAnswers,
    find_codes,
    judged_sample,
    judges_all,
    learn_arrival,
    learn_coupled,
    screen,
    toward_names,
)
from streamlabel.streaming.inputs import Parameters, coded
from streamlabel.streaming.kept_rows import positive_rows
from streamlabel.streaming.other_losses import learn_with_loss, row_unit
from streamlabel.streaming.past import best_beta, fixed_lam
from streamlabel.streaming.state import LabelBatch, ModelState
from streamlabel.streaming.trials import (
    BUDGETS,
    LAM,
    MIXES,
    N_SKETCH,
    LabelReport,
    Recipe,
    Trial,
    choose_recipe,
    own_lines,
)
from streamlabel.types import CSR, FloatArray, IntArray

MOST_SCORED = 512  # labels that may enter a code by their scores
_MOST_FACTORED = 700  # sparse rows of a ridge by a factor: with more, iterations take less time
OLD_ENOUGH = 10  # yes that a label needs before it may enter codes by its scores: a younger one is mostly noise


def learn_labels(
    parameters: Parameters,
    state: ModelState,
    X: CSR | FloatArray,
    asked: AskedRows,
    names: tuple[str, ...],
    *,
    same: bool,
    coupled: bool,
    named: FloatArray | None = None,
    name_weights: Sequence[Sequence[float]] = (),
    sampled: bool = False,
) -> ModelState:
    """Learn new labels: returns the model that knows them too; the one that is given does not change.

    same : X are the rows of `fit`;   coupled : the new labels help each other;   sampled : say how good they are
    named, name_weights : the directions (kinds, d, k) of their names, and how much each label leans on each kind
    """
    parts = list(group_by_rows(asked))
    if coupled:
        _check_coupled(parameters, len(parts))
    groups = [_learn(parameters, state, X, *part, same=same, coupled=coupled) for part in parts]
    if named is not None:
        groups = [_named(group, X, part[1], named, name_weights) for group, part in zip(groups, parts, strict=True)]
    usual = usual_threshold(state.loss, parameters.fit_intercept)
    new = _gather(groups, names, parameters.threshold, usual, sampled)
    answers, scored, n_past = state.answers, state.scored, len(state.names)
    if parameters.dictionary == "all" and answers is not None:
        if same and asked.everything:
            answers = answers.appended(n_past, positive_rows(asked.labels), groups[0].correlations)
        else:
            scored = np.concatenate((scored, np.arange(n_past, n_past + len(names))))
    basis = next((group.basis for group in groups if group.basis is not None), state.basis)
    return state.grown(new, answers=answers, scored=scored, basis=basis)


def _named(
    group: _Group, X: CSR | FloatArray, rows: IntArray | None, named: FloatArray, weights: Sequence[Sequence[float]]
) -> _Group:
    """A group whose classifiers lean on the names of their labels, too."""
    given = [weights[column] for column in group.columns.tolist()]
    X = X if rows is None else X[rows]
    return replace(group, arrival=toward_names(group.arrival, X, group.answers, named[:, :, group.columns], given))


def _check_coupled(parameters: Parameters, n_groups: int) -> None:
    if n_groups > 1:
        raise DataError(
            f"coupled labels must have been asked on the same rows; these were asked on {n_groups} different sets "
            "of rows (add them without coupled=True, or set by set)"
        )
    if parameters.metric not in ("auto", None):
        raise DataError(f'metric is {parameters.metric!r}; coupled labels have none: leave it at "auto" or None')


@dataclass(frozen=True, eq=False)
class _Group:
    """Labels of one arrival that were asked on the same q rows.

    columns : (k,), their places in the arrival;   basis : of the metric, if it was used
    answers : (q, k), 0/1;   correlations : their products with the past, if these were made
    """

    columns: IntArray
    arrival: Arrival
    recipe: Recipe
    beta: float
    loss: str
    answers: FloatArray
    correlations: FloatArray | None
    coupled: bool
    basis: FloatArray | None

    @property
    def judged_answers(self) -> FloatArray:
        """The answers of the rows that were judged."""
        return self.answers if self.arrival.judged_rows is None else self.answers[self.arrival.judged_rows]


def _gather(
    groups: Sequence[_Group], names: tuple[str, ...], threshold: float | str, usual: float, sampled: bool
) -> LabelBatch:
    """The groups as one batch."""
    order = np.argsort(np.concatenate([group.columns for group in groups]))
    arrivals = [group.arrival for group in groups]
    decisions = _decide(groups[0], threshold, usual)
    for other in groups[1:]:
        decisions = decisions.appended(_decide(other, threshold, usual))
    codes = arrivals[0].codes
    if len(groups) > 1:
        codes = sparse.csc_array(sparse.hstack([arrival.codes for arrival in arrivals], format="csc")[:, order])
    reports = [report for group in groups for report in _reports(group, names, threshold if sampled else None)]
    return LabelBatch(
        names,
        np.hstack([arrival.weights for arrival in arrivals])[:, order],
        np.concatenate([arrival.intercept for arrival in arrivals])[order],
        decisions.take(order),
        tuple(reports[place] for place in order),
        codes,
    )


def _decide(group: _Group, threshold: float | str, usual: float) -> Decisions:
    return decide(group.arrival.judged_scores, group.judged_answers, threshold, usual)


def _reports(group: _Group, names: tuple[str, ...], threshold: float | str | None) -> list[LabelReport]:
    recipe, arrival = group.recipe, group.arrival
    good: Sequence[Estimate | None] = [None] * len(group.columns)
    if threshold is not None:
        good = sampled_estimates(arrival.judged_scores, group.judged_answers, threshold)
    anchored = arrival.anchored.tolist()
    sizes, counts = np.diff(arrival.codes.indptr), group.answers.sum(axis=0)
    gaps = [report.violation for report in arrival.reports] or [0.0] * len(group.columns)
    return [
        LabelReport(
            names[column], len(group.answers), int(counts[j]), recipe.share, recipe.lam, anchored[j], group.beta,
            int(sizes[j]), gaps[j], group.loss, group.coupled, recipe.clarity, good[j],
        )
        for j, column in enumerate(group.columns)
    ]  # fmt: skip


def _learn(
    parameters: Parameters,
    state: ModelState,
    matrix: CSR | FloatArray,
    columns: IntArray,
    rows: IntArray | None,
    labels: CSR,
    *,
    same: bool,
    coupled: bool,
) -> _Group:
    """Learn labels that were asked on the same rows; ``rows`` None: on all rows of ``matrix``."""
    centre, seed = parameters.fit_intercept, parameters.random_state
    answers = coded(labels, centre)
    X = matrix if rows is None else matrix[rows]
    everything = same and rows is None
    recipe = _recipe(parameters, state, X, everything, coupled)
    past = None if recipe.lam is None else past_answers(parameters, state, X, rows, same, labels)
    if past is not None and parameters.n_jobs is not None:
        past = replace(past, executor=JoblibExecutor(parameters.n_jobs, "threads"))
    coupled = coupled and past is not None
    correlations = None if past is None else past.correlations
    if past is not None and not coupled:  # once for both losses
        past = replace(past, found=find_codes(past, answers, recipe.lam, centre))
    basis = state.directions() if recipe.share else None
    kept = state.memory if everything else None
    judged_rows = judged_sample(X.shape[0], seed) if kept is None else kept.judged_rows
    loss: str = state.loss
    arrival: Arrival | None = None
    at, factored = None, kept is not None and not recipe.share  # the rows for iterations; whether a factor is kept
    if iterates(X) and centre and not coupled:
        at = kept.iterated if kept is not None and factored else IteratedRows(X, basis, recipe.share)

    kernels: list[FloatArray] = []

    def ridge_of(strength: float, factored: bool) -> tuple[float, Arrival]:
        given = replace(recipe, strength=strength)
        if at is not None and not factored and X.shape[0] > _MOST_FACTORED:
            beta = _arrival_beta(parameters, "squared", X, answers, given, at)
            return beta, learn_with_loss(
                X, answers, past, recipe.lam, beta, "squared", anchored=recipe.anchored is not False, seed=seed,
                basis=basis, share=recipe.share, at=at, judged_rows=judged_rows,
            )  # fmt: skip
        kernel = None
        if recipe.firm and X.shape[0] < X.shape[1] and not (everything and factored):  # of both ridges
            kernels[:] = kernels or [centred_kernel(X, np.asarray(X.mean(axis=0)))]
            kernel = kernels[0].copy()
        scores = None if at is None else at.past
        ridge, judged = _prepared(parameters, state, X, answers, given, everything and factored, basis, kernel, scores)
        return ridge.beta, learn_arrival(
            X, ridge, answers, past, recipe.lam, anchored=recipe.anchored, centre=centre, judged=judged,
            labels=labels if centre else None,
        )  # fmt: skip

    if loss != "squared" or too_large(X):
        beta = _arrival_beta(parameters, loss, X, answers, recipe, at)
        arrival = learn_with_loss(
            X, answers, past, recipe.lam, beta, loss, anchored=recipe.anchored is not False, coupled=coupled,
            centre=centre, seed=seed, basis=basis, share=recipe.share, at=at,
            judged_rows=judged_rows if loss == "squared" else None,
        )  # fmt: skip
    elif coupled:
        assert past is not None
        assert recipe.lam is not None
        beta = _arrival_beta(parameters, loss, X, answers, recipe)
        factor = make_factor(X, centre=centre)
        judged_rows = None if kept is not None and judges_all(X, answers.shape[1]) else judged_rows
        arrival = learn_coupled(X, factor, answers, past, recipe.lam, beta, centre=centre, judged_rows=judged_rows)
    elif recipe.mix < 1.0 or (factored and not very_many(X)):  # where a factor is kept, iterations start at its ridge
        beta, arrival = ridge_of(recipe.strength, factored)
    if recipe.mix and loss == "squared":
        loss, whole = "logistic" if recipe.mix == 1.0 else "both", arrival
        if recipe.firm:
            loss, other = "squared", ridge_of(recipe.other_strength, False)[1]
        else:
            span = log_odds_span(answers)
            start = None
            if arrival is not None:
                constant = np.log(9.0) - span - span * (answers.mean(axis=0) - arrival.intercept)
                point = arrival.point if at is None or arrival.point is not None else at.point(arrival.weights)
                start = span * (arrival.weights if point is None else point), constant
            other_beta = _arrival_beta(
                parameters, "logistic", X, answers, replace(recipe, strength=recipe.other_strength), at
            )
            other = learn_with_loss(
                X, answers, past, recipe.lam, other_beta, "logistic", anchored=recipe.anchored is True, seed=seed,
                basis=basis, share=recipe.share, span=span, judged_rows=judged_rows, start=start, at=at,
            )  # fmt: skip
        other = other.on_line(*(_own_lines(state, other, whole) if recipe.line is None else recipe.line))
        if arrival is None or recipe.mix == 1.0:
            beta, arrival = other_beta, other
        else:
            if recipe.trim:
                anchor = None if past is None or past.found is None else past.found[1]
                own = _own_part(X, answers, arrival, anchor, beta, recipe.share, at)
                arrival = arrival.trimmed(X, own, recipe.trim, recipe.share)
                arrival, loss = arrival.on_line(*_own_lines(state, arrival, whole)), f"{loss}, trimmed"
            arrival = arrival.mixed(other, recipe.mix)
    assert arrival is not None
    truth = answers if centre else 0.5 * (answers + 1.0)
    return _Group(columns, arrival, recipe, beta, loss, truth, correlations, coupled, basis)


def _own_part(
    X: CSR | FloatArray,
    answers: FloatArray,
    arrival: Arrival,
    anchor: FloatArray | None,
    beta: float,
    share: float,
    at: IteratedRows | None,
) -> FloatArray:
    """What ridge classifiers (d, k) are apart from their anchor and from the directions of the metric.

    With the metric ``C`` a solution has ``C^-1 (w - p) = Xc' r / beta``, r what it leaves over of the answers.
    """
    if share and (at is None or arrival.point is None):
        left_over = answers - (np.asarray(X @ arrival.weights) + arrival.intercept)
        return np.asarray((1.0 - share) / beta * (X.T @ (left_over - left_over.mean(axis=0))))
    own = arrival.weights if at is None or arrival.point is None else at.own_part(arrival.point)
    return own if anchor is None else own - anchor * arrival.anchored


def _own_lines(state: ModelState, other: Arrival, ridge: Arrival | None) -> tuple[FloatArray, FloatArray]:
    """The scale and shift of each label that bring its other scores to its squared ones, on rows kept of `fit`."""
    assert ridge is not None
    assert state.memory is not None  # there were trials
    return own_lines(*(np.asarray(state.memory.judged_X @ one.weights) + one.intercept for one in (other, ridge)))


def _prepared(
    parameters: Parameters,
    state: ModelState,
    X: CSR | FloatArray,
    answers: FloatArray,
    recipe: Recipe,
    everything: bool,
    basis: FloatArray | None,
    kernel: FloatArray | None = None,
    scores: FloatArray | None = None,
) -> tuple[PreparedRidge, JudgedRows | None]:
    """The ridge of these rows, and the rows to judge by (None: all): on the rows of `fit` both are kept.

    kernel, scores : of the rows, and of the basis on them, if they are known already; the kernel is written to
    """
    if everything and not recipe.share:
        assert state.memory is not None
        memory = state.memory
        if judges_all(X, answers.shape[1]):
            return memory.ridge, None
        return memory.ridge, JudgedRows(memory.judged_rows, memory.judged_X, memory.leverages)
    beta = _arrival_beta(parameters, state.loss, X, answers, recipe)
    centre, share = parameters.fit_intercept, recipe.share
    return make_ridge(X, beta, basis=basis, share=share, centre=centre, gram=kernel, scores=scores), None


def _recipe(parameters: Parameters, state: ModelState, X: CSR | FloatArray, everything: bool, coupled: bool) -> Recipe:
    """How to learn on these rows: as trials at about this number of them say, run when it is first asked for.

    On all rows of `fit` the factor is kept, and with the squared loss and no metric each label chooses for itself.
    """
    large, lam, metric = too_large(X), parameters.lam, parameters.metric
    if large and metric not in ("auto", None):
        raise DataError(
            f"metric is {parameters.metric!r}; it needs a factor, and rows and features are both more than "
            f'{FACTOR_LIMIT}: leave it at "auto" or None, or annotate fewer rows'
        )
    metric = None if large or coupled else metric
    kept = everything and not large and state.loss == "squared"
    chosen = Recipe(0.0, LAM, None if kept else True, state.strength)
    trials = []
    if parameters.fit_intercept and "auto" in (lam, metric, parameters.beta):
        trials = run_trials(parameters, state, int(X.shape[0]))
    if trials:
        mixes = (1.0,) if state.loss != "squared" else MIXES
        few = affords_coordinates(X.shape, N_SKETCH)
        given = parameters.loss != "auto" or parameters.beta != "auto" or (metric not in ("auto", None) and not few)
        if given or coupled or large:
            mixes = mixes[:1]
        chosen = choose_recipe(
            trials,
            anchors=lam is not None,
            metrics=metric is not None,
            mixes=mixes,
            scoring=parameters.scoring,
            few=few,
            kept=kept,
        )
        if state.loss != "squared":
            chosen = replace(chosen, strength=chosen.other_strength)
    anchored = chosen.anchored if lam == "auto" and not coupled else lam is not None
    share = chosen.share if metric == "auto" else float(metric or 0.0)
    if kept and not share:  # the factor is there
        other = chosen.firm * state.strength if chosen.firm else chosen.other_strength
        chosen = replace(chosen, strength=state.strength, other_strength=other)
        anchored = None if lam == "auto" and not chosen.mix and not coupled else anchored
    lam = chosen.lam if lam == "auto" else fixed_lam(lam)
    return replace(chosen, share=share, lam=lam, anchored=anchored)


def run_trials(parameters: Parameters, state: ModelState, n_rows: int) -> list[Trial]:
    """Learn labels of `fit` again from about this number of rows; no trials for a model without rows."""
    if state.memory is None:
        return []
    losses = ("squared", "logistic") if state.loss == "squared" and parameters.loss == "auto" else (state.loss,)
    return state.memory.trials(n_rows, losses, state.fitted_classifiers)


def run_all_trials(parameters: Parameters, state: ModelState) -> None:
    """Run the trials for every number of rows that labels may arrive with, and factor all rows: no label waits then."""
    if parameters.fit_intercept and state.memory is not None and state.classes is None:
        n_rows = int(state.memory.X.shape[0])
        for budget in (*(size for size in BUDGETS if size < n_rows), n_rows):
            run_trials(parameters, state, budget)
        if state.loss == "squared" and not too_large(X := state.memory.X):
            recipe = _recipe(parameters, state, X, True, False)
            if not recipe.share and (recipe.mix < 1.0 or not very_many(X)):
                state.memory.ridge.solve(np.zeros((n_rows, 1)))


def _arrival_beta(
    parameters: Parameters,
    loss: str,
    X: CSR | FloatArray,
    answers: FloatArray,
    recipe: Recipe,
    at: IteratedRows | None = None,
) -> float:
    centre = parameters.fit_intercept
    if parameters.beta != "auto":
        return float(parameters.beta)
    if np.isfinite(recipe.strength):
        return recipe.strength * (row_unit(X, centre) if at is None else at.unit)
    if loss != "squared":  # an adopted model: nothing is known
        return row_unit(X, centre)
    return best_beta(make_factor(X, centre=centre), answers, centre)


def past_answers(
    parameters: Parameters, state: ModelState, X: CSR | FloatArray, rows: IntArray | None, same: bool, labels: CSR
) -> PastAnswers:
    """The labels that may enter a code on these rows: those answered there by their answers, others by their scores."""
    n_labels, weights, centre = len(state.names), state.classifiers.weights, parameters.fit_intercept
    if not same or state.answers is None:
        allowed = allowed_labels(parameters, state)
        responses: Any = stand_ins(state, X, allowed, centre)
        if len(allowed) > MOST_SCORED:  # the Gram of thousands of score columns would cost more than all the rest
            kept = screen(responses, coded(labels, centre), MOST_SCORED)
            allowed, responses = allowed[kept], responses[:, kept]
        return PastAnswers(n_labels, allowed, responses, weights)
    answers, numbers = state.answers, state.answers.labels
    if rows is None and not state.scored.size and centre:
        return PastAnswers(n_labels, numbers, None, weights, answers.gram, answers.cross(positive_rows(labels)))
    responses = answers.by_rows if rows is None else answers.by_rows[rows]
    if centre:  # a label that does not occur on these rows cannot enter
        present = np.flatnonzero(np.bincount(responses.indices, minlength=len(numbers)))
        numbers, responses = numbers[present], responses[:, present]
    scored = _settled(state, state.scored)
    if scored.size or not centre:
        scores = stand_ins(state, X, scored, centre)
        if centre:
            responses = sparse.csr_array(sparse.hstack((responses, sparse.csr_array(scores)), format="csr"))
        else:
            responses = np.hstack((coded(responses, centre), scores))
        numbers = np.concatenate((numbers, scored))
    return PastAnswers(n_labels, numbers, responses, weights)


def stand_ins(state: ModelState, X: CSR | FloatArray, labels: IntArray, centre: bool) -> FloatArray:
    """Scores in place of answers that nobody gave, (n, len(labels)); probabilities if scores are on another scale."""
    scores = state.classifiers.scores(X, labels)
    if state.loss == "squared":
        return scores
    chances = sigmoid(scores, state.decisions.slope[labels], state.decisions.offset[labels])
    return chances if centre else 2.0 * chances - 1.0


def allowed_labels(parameters: Parameters, state: ModelState) -> IntArray:
    """The labels that may enter a code if there are no answers, only scores."""
    if state.answers is None:
        return _settled(state, np.arange(len(state.names) if parameters.dictionary == "all" else state.n_fitted))
    return np.concatenate((state.answers.labels, _settled(state, state.scored)))


def _settled(state: ModelState, labels: IntArray) -> IntArray:
    """These labels without those that have arrived from fewer than `OLD_ENOUGH` yes."""
    old = [number < state.n_fitted or state.reports[number].n_yes >= OLD_ENOUGH for number in labels.tolist()]
    return labels[np.array(old, dtype=bool)]
