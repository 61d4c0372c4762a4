"""How new labels are learned beside those that a model knows: which recipe, who may enter a code, which solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.classifier.ridge import PreparedRidge, make_ridge
from streamlabel.classifier.solve import FACTOR_LIMIT, too_large
from streamlabel.errors import DataError
from streamlabel.executors import JoblibExecutor
from streamlabel.stats.spectral import make_factor
from streamlabel.streaming.blocks import ClassifierBlocks
from streamlabel.streaming.calibration import best_f1_thresholds, fit_sigmoids, sigmoid
from streamlabel.streaming.codes import (
    Arrival,
    JudgedRows,
    PastAnswers,
    judged_sample,
    learn_arrival,
    learn_coupled,
    screen,
)
from streamlabel.streaming.inputs import coded
from streamlabel.streaming.kept_rows import FitMemory, LabelAnswers, positive_rows
from streamlabel.streaming.other_losses import learn_with_loss, row_unit
from streamlabel.streaming.past import best_beta
from streamlabel.streaming.trials import LAM, LabelReport, Recipe, Trial, choose_recipe
from streamlabel.types import CSC, CSR, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Decisions:
    """Where a score means yes, and which probability it means (`streaming.calibration`), (k,) each."""

    thresholds: FloatArray
    slope: FloatArray
    offset: FloatArray

    def appended(self, other: Decisions) -> Decisions:
        """These, then the others."""
        return Decisions(
            np.append(self.thresholds, other.thresholds),
            np.append(self.slope, other.slope),
            np.append(self.offset, other.offset),
        )


@dataclass(frozen=True, eq=False)
class LearnedGroup:
    """Labels of one arrival that were asked on the same q rows.

    columns : (k,), their places in the arrival
    answers : (q, k), 0/1;   correlations : their products with the past, where these were made
    """

    columns: IntArray
    arrival: Arrival
    recipe: Recipe
    beta: float
    loss: str
    answers: FloatArray
    correlations: FloatArray | None
    coupled: bool = False


@dataclass(frozen=True, eq=False)
class NewLabels:
    """All labels of one arrival, in the order of their names."""

    weights: FloatArray
    intercept: FloatArray
    codes: CSC
    decisions: Decisions
    reports: tuple[LabelReport, ...]


def decide(scores: FloatArray, answers: FloatArray, threshold: float | str, usual: float) -> Decisions:
    """Thresholds and probabilities from scores (e, k) of rows that were not learned from, and their 0/1 answers.

    threshold : "f1" or one score for all;   usual : the threshold where no label has a positive answer here
    """
    slope, offset = fit_sigmoids(scores, answers)
    if threshold != "f1":
        return Decisions(np.full(scores.shape[1], float(threshold)), slope, offset)
    found = best_f1_thresholds(scores, answers)
    missing = np.isnan(found)
    return Decisions(np.where(missing, usual if missing.all() else np.nanmedian(found), found), slope, offset)


def gather(groups: Sequence[LearnedGroup], names: tuple[str, ...], threshold: float | str, usual: float) -> NewLabels:
    """The groups as one batch."""
    order = np.argsort(np.concatenate([group.columns for group in groups]))
    arrivals = [group.arrival for group in groups]
    found = [_decide(group, threshold, usual) for group in groups]
    decisions = found[0]
    for other in found[1:]:
        decisions = decisions.appended(other)
    codes = arrivals[0].codes
    if len(groups) > 1:
        codes = sparse.csc_array(sparse.hstack([arrival.codes for arrival in arrivals], format="csc")[:, order])
    reports = [report for group in groups for report in _reports(group, names)]
    return NewLabels(
        np.hstack([arrival.weights for arrival in arrivals])[:, order],
        np.concatenate([arrival.intercept for arrival in arrivals])[order],
        codes,
        Decisions(decisions.thresholds[order], decisions.slope[order], decisions.offset[order]),
        tuple(reports[place] for place in order),
    )


def _decide(group: LearnedGroup, threshold: float | str, usual: float) -> Decisions:
    rows = group.arrival.judged_rows
    return decide(group.arrival.judged_scores, group.answers if rows is None else group.answers[rows], threshold, usual)


def _reports(group: LearnedGroup, names: tuple[str, ...]) -> list[LabelReport]:
    recipe, arrival = group.recipe, group.arrival
    anchored = arrival.anchored.tolist()
    sizes, counts = np.diff(arrival.codes.indptr), group.answers.sum(axis=0)
    gaps = [report.violation for report in arrival.reports] or [0.0] * len(group.columns)
    return [
        LabelReport(
            names[column], len(group.answers), int(counts[j]), recipe.share, recipe.lam, anchored[j], group.beta,
            int(sizes[j]), gaps[j], group.loss, group.coupled, recipe.clarity,
        )
        for j, column in enumerate(group.columns)
    ]  # fmt: skip


MOST_SCORED = 512  # labels that may enter a code by their scores


def fixed_lam(lam: float | str | None) -> float | None:
    """The penalty of the code where nothing is tried."""
    return LAM if lam == "auto" else None if lam is None else float(lam)


@dataclass(frozen=True, eq=False)
class Learning:
    """The parameters of a model, and what it knows when labels arrive. Learning changes nothing of it.

    memory, ridge, answers : of the rows of `fit`; None for a model that was adopted (ridge: and for other losses)
    scored : labels that may enter a code by their scores only;   n_fitted : the labels of `fit`, which come first
    strength : beta of `fit` for rows of unit length
    trials, basis : give the trials at a number of rows, and the directions of the labels of `fit`
    """

    lam: float | str | None
    metric: float | str | None
    beta: float | str
    dictionary: int | str
    fit_intercept: bool
    random_state: int
    n_jobs: int | None
    loss: str
    strength: float
    classifiers: ClassifierBlocks
    decisions: Decisions
    memory: FitMemory | None
    ridge: PreparedRidge | None
    answers: LabelAnswers | None
    scored: IntArray
    n_fitted: int
    trials: Callable[[int], list[Trial]]
    basis: Callable[[], FloatArray]

    def learn(
        self, matrix: Any, columns: IntArray, rows: IntArray | None, labels: CSR, *, same: bool, coupled: bool
    ) -> LearnedGroup:
        """``rows`` None: all rows of ``matrix`` were asked; ``same``: they are the rows of `fit`."""
        centre, loss = self.fit_intercept, self.loss
        answers = coded(labels, centre)
        X = matrix if rows is None else matrix[rows]
        everything = same and rows is None
        iterative = loss != "squared" or too_large(X)
        recipe = self._recipe(X.shape[0], everything, coupled, iterative)
        past = None if recipe.lam is None else self._past(X, rows, same, labels)
        if past is not None and self.n_jobs is not None:
            past = replace(past, executor=JoblibExecutor(self.n_jobs, "threads"))
        coupled = coupled and past is not None
        if iterative:
            beta = self._arrival_beta(X, answers, recipe)
            arrival = learn_with_loss(
                X, answers, past, recipe.lam, beta, loss,
                anchored=recipe.anchored is not False, coupled=coupled, centre=centre, seed=self.random_state,
            )  # fmt: skip
        elif coupled:
            assert past is not None
            assert recipe.lam is not None
            beta = self._arrival_beta(X, answers, recipe)
            kept = self.memory if everything else None
            judged_rows = judged_sample(X.shape[0], self.random_state) if kept is None else kept.judged_rows
            factor = make_factor(X, centre=centre)
            arrival = learn_coupled(X, factor, answers, past, recipe.lam, beta, centre=centre, judged_rows=judged_rows)
        else:
            ridge, judged = self._prepared(X, answers, recipe, everything)
            beta = ridge.beta
            arrival = learn_arrival(
                X, ridge, answers, past, recipe.lam, anchored=recipe.anchored, centre=centre, judged=judged,
                labels=labels if centre else None,
            )  # fmt: skip
        correlations = None if past is None else past.correlations
        truth = answers if centre else 0.5 * (answers + 1.0)
        return LearnedGroup(columns, arrival, recipe, beta, loss, truth, correlations, coupled)

    def _prepared(
        self, X: Any, answers: FloatArray, recipe: Recipe, everything: bool
    ) -> tuple[PreparedRidge, JudgedRows | None]:
        """The ridge of these rows, and the rows to judge by (None: all): on the rows of `fit` both are kept."""
        if everything and not recipe.share:
            assert self.ridge is not None
            assert self.memory is not None
            memory = self.memory
            return self.ridge, JudgedRows(memory.judged_rows, memory.judged_X, memory.leverages)
        beta = self._arrival_beta(X, answers, recipe)
        basis = self.basis() if recipe.share else None
        return make_ridge(X, beta, basis=basis, share=recipe.share, centre=self.fit_intercept), None

    def _recipe(self, n_rows: int, everything: bool, coupled: bool, iterative: bool) -> Recipe:
        """How to learn on so many rows. On all rows of `fit` the factor is kept, and each label chooses for itself.

        Where there is no factor, there is no metric.
        """
        if iterative and self.loss == "squared" and self.metric not in ("auto", None):
            raise DataError(
                f"metric is {self.metric!r}; it needs a factor, and rows and features are both more than "
                f'{FACTOR_LIMIT}: leave it at "auto" or None, or annotate fewer rows'
            )
        metric = None if iterative or coupled else self.metric
        kept = everything and not iterative and metric in ("auto", None)
        trials: list[Trial] = []
        if self.fit_intercept and not kept and "auto" in (self.lam, metric, self.beta):
            trials = self.trials(n_rows)
        if trials:
            chosen = choose_recipe(trials, anchors=self.lam is not None, metrics=metric is not None)
        else:
            chosen = Recipe(0.0, LAM, None if kept else True, self.strength)
        anchored = chosen.anchored if self.lam == "auto" and not coupled else self.lam is not None
        lam = chosen.lam if self.lam == "auto" else fixed_lam(self.lam)
        share = chosen.share if metric == "auto" else float(metric or 0.0)
        return Recipe(share, lam, anchored, chosen.strength, chosen.clarity)

    def _arrival_beta(self, X: Any, answers: FloatArray, recipe: Recipe) -> float:
        if self.beta != "auto":
            return float(self.beta)
        if np.isfinite(recipe.strength):
            return recipe.strength * row_unit(X, self.fit_intercept)
        if self.loss != "squared":  # an adopted model: nothing is known
            return row_unit(X, self.fit_intercept)
        return best_beta(make_factor(X, centre=self.fit_intercept), answers, self.fit_intercept)

    def _past(self, X: Any, rows: IntArray | None, same: bool, labels: CSR) -> PastAnswers:
        """Who may enter a code on these rows: labels answered there, by their answers; the others, by their scores."""
        n_labels, weights = len(self.classifiers.intercept), self.classifiers.weights
        if not same or self.answers is None:
            allowed = self._allowed()
            responses: Any = self.stand_ins(X, allowed)
            if len(allowed) > MOST_SCORED:  # the Gram of thousands of score columns would cost more than all the rest
                kept = screen(responses, coded(labels, self.fit_intercept), MOST_SCORED)
                allowed, responses = allowed[kept], responses[:, kept]
            return PastAnswers(n_labels, allowed, responses, weights)
        answers, numbers = self.answers, self.answers.labels
        if rows is None and not self.scored.size and self.fit_intercept:
            return PastAnswers(n_labels, numbers, None, weights, answers.gram, answers.cross(positive_rows(labels)))
        responses = answers.by_rows if rows is None else answers.by_rows[rows]
        if self.fit_intercept:  # a label that does not occur on these rows cannot enter
            present = np.flatnonzero(np.bincount(responses.indices, minlength=len(numbers)))
            numbers, responses = numbers[present], responses[:, present]
        if self.scored.size or not self.fit_intercept:
            responses = np.hstack((coded(responses, self.fit_intercept), self.stand_ins(X, self.scored)))
            numbers = np.concatenate((numbers, self.scored))
        return PastAnswers(n_labels, numbers, responses, weights)

    def stand_ins(self, X: Any, labels: IntArray) -> FloatArray:
        """What stands for the answers (n, len(labels)) that nobody gave: scores, or probabilities where scores are not
        on the scale of answers."""
        scores = self.classifiers.scores(X, labels)
        if self.loss == "squared":
            return scores
        chances = sigmoid(scores, self.decisions.slope[labels], self.decisions.offset[labels])
        return chances if self.fit_intercept else 2.0 * chances - 1.0

    def _allowed(self) -> IntArray:
        """The labels that may enter a code where there are no answers, only scores."""
        if self.answers is None:
            return np.arange(len(self.classifiers.intercept) if self.dictionary == "all" else self.n_fitted)
        return np.concatenate((self.answers.labels, self.scored))
