"""Labels from found examples: a few yes, perhaps some no, a name, and a pool of texts that nobody has looked at.

Found examples are no sample: they say what the label is, and nothing about how often it applies. So a part of the pool
stands for no in the ridge, and what the scores mean on the rest of it (`streaming.judgement`) is learned from the
labels of `fit`, as is how the ridge is made and what a name is worth (`streaming.found_trials`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import sparse

from streamlabel.classifier.ridge import make_ridge
from streamlabel.errors import DataError
from streamlabel.stats.spectral import dense
from streamlabel.stats.threads import one_thread
from streamlabel.streaming.arrival import past_answers
from streamlabel.streaming.blocks import SharedList
from streamlabel.streaming.calibration import Decisions, alike, sigmoid, sigmoid_of_chances, threshold_of_precision
from streamlabel.streaming.codes import find_codes, learn_arrival, name_direction
from streamlabel.streaming.found_trials import (
    BACKGROUND,
    DEFAULTS,
    SIZES,
    Directions,
    FoundRecipe,
    run_found_trials,
    size_class,
)
from streamlabel.streaming.inputs import Parameters
from streamlabel.streaming.judgement import Judgement
from streamlabel.streaming.kept_rows import stack
from streamlabel.streaming.other_losses import row_unit
from streamlabel.streaming.state import LabelBatch, ModelState
from streamlabel.streaming.trials import LAM, LabelReport
from streamlabel.types import CSR, BoolArray, FloatArray, IntArray

MOST_JUDGED = 2000  # rows of a pool by which scores are judged
MOST_CODED = 300  # rows of the background by which a code is found, which is only shown: scores of all labels cost most
SMALLEST_POOL = 4


def found_recipe(
    state: ModelState, n_yes: int, directions: Directions | None, seed: int, by_name: bool = False
) -> FoundRecipe:
    """The recipe for so many yes: that of trials, run when it is first asked for; a default without `fit`'s rows.

    by_name : whether all yes are answers to questions that began with the name. They are like the name, so that what
        is far from it is missed as if there were nothing but the name.
    """
    if by_name and n_yes:
        usual, alone = (found_recipe(state, n, directions, seed) for n in (n_yes, 0))
        return replace(usual, calibration=replace(usual.calibration, lower=alone.calibration.lower))
    size, memory = size_class(n_yes), state.memory
    version = "" if directions is None else directions.version
    if memory is None:
        recipe = DEFAULTS[size]
        return recipe if version else replace(recipe, weights=())
    if (size, version) not in memory.found:
        weights, intercept = state.fitted_classifiers()
        numbers = range(state.n_fitted) if memory.few is None else memory.few.tolist()
        names, few = [state.names[number] for number in numbers], memory.small()
        with one_thread():  # so that it is the same everywhere
            memory.found[size, version] = run_found_trials(few, weights, intercept, size, names, directions, seed)
    return memory.found[size, version]


def run_found(state: ModelState, directions: Directions | None, seed: int) -> None:
    """Run the trials for every number of yes, so that no label waits for them."""
    for size in SIZES:
        found_recipe(state, size, directions, seed)


@dataclass(frozen=True, eq=False)
class Examples:
    """The answers for one label, as rows.

    rows : (n, d);   answers : (n,) bool, yes or no
    asked : (n,) bool, whether the row was put as a question; the others were found: chosen for their answer
    """

    rows: CSR | FloatArray
    answers: BoolArray
    asked: BoolArray


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows that nobody has looked at: ``background`` stands for no in the ridge, by ``rest`` scores are judged.

    share : how many of all of them are in rest
    """

    background: CSR | FloatArray
    rest: CSR | FloatArray
    share: float = 1.0

    @staticmethod
    def n_background(n_rows: int) -> int:
        """How many rows of a pool of so many stand for no."""
        return min(BACKGROUND, n_rows // 2)

    @classmethod
    def of(cls, X: CSR | FloatArray, seed: int, numbers: IntArray | None = None) -> Pool:
        """Part rows (of these numbers, increasing) into background and rest: 400 and 2,000 at most, or halves."""
        n_rows = int(X.shape[0]) if numbers is None else len(numbers)
        if n_rows < SMALLEST_POOL:
            raise DataError(f"a pool of {n_rows} rows is too small; give some hundred rows as they come")
        order = np.random.default_rng(seed).permutation(n_rows)
        n_back = cls.n_background(len(order))
        back, rest = np.sort(order[:n_back]), np.sort(order[n_back : n_back + MOST_JUDGED])
        share = len(rest) / n_rows
        return cls(X[back], X[rest], share) if numbers is None else cls(X[numbers[back]], X[numbers[rest]], share)

    def beside(self, X: CSR | FloatArray, examples: CSR | FloatArray, seed: int) -> Pool:
        """The pool with up to half of its background drawn from the rows X: as much as examples were found there.

        Rows of `fit` are often older than those of a pool. With examples of `fit` and a background of the pool alone
        the classifier tells old rows from new ones, the better the more examples there are.
        """
        n_back = int(self.background.shape[0])
        n_drawn = round(0.5 * n_back * _are_among(examples, X).mean()) if examples.shape[0] else 0
        if not n_drawn:
            return self
        rng = np.random.default_rng((seed, 1))
        drawn = X[np.sort(rng.permutation(int(X.shape[0]))[:n_drawn])]
        kept = self.background[np.sort(rng.permutation(n_back)[n_drawn:])]
        return replace(self, background=stack(kept, drawn[~_are_among(drawn, examples)]))


def _are_among(rows: Any, others: Any) -> BoolArray:
    """Whether each row is one of the others, but for rounding."""
    squares, theirs = (np.asarray((one * one).sum(axis=1)).ravel() for one in (rows, others))
    distance = squares[:, None] + theirs - 2.0 * dense(rows @ others.T)
    return np.asarray((distance <= 1e-9 * (squares[:, None] + theirs)).any(axis=1))


def learn_found(
    parameters: Parameters,
    state: ModelState,
    name: str,
    examples: Examples,
    pool: Pool,
    recipe: FoundRecipe,
    named: FloatArray | None,
) -> tuple[LabelBatch, Judgement]:
    """Learn one label from found examples, beside those that the model knows.

    named : (kinds, d), the directions of its name; None for a name that is not used
    """
    yes = examples.answers
    rows = stack(examples.rows, pool.background)
    n_given, n_rows = len(yes), int(rows.shape[0])
    labels = sparse.csr_array(np.concatenate((yes, np.zeros(n_rows - n_given, dtype=bool)))[:, None].astype(np.int8))
    weights: FloatArray = np.zeros(state.classifiers.n_features)
    intercept, unseen = 0.0, cast(FloatArray, np.zeros(n_rows))
    codes, spread, share = sparse.csc_array((len(state.names), 1)), 1.0, 0.0
    beta = recipe.strength * row_unit(rows, True)
    if yes.any():
        share, basis = recipe.share, state.directions() if recipe.share else None
        ridge = make_ridge(rows, beta, basis=basis, share=share, centre=True)
        answers = labels.toarray().astype(np.float64)
        if parameters.lam is not None:
            few = np.unique(np.append(np.arange(n_given), np.linspace(n_given, n_rows - 1, MOST_CODED).astype(np.intp)))
            past = past_answers(parameters, state, rows[few], None, False, labels[few])
            codes = find_codes(past, answers[few], LAM, True)[0]
        arrival = learn_arrival(rows, ridge, answers, None, None, labels=labels)
        weights, intercept, unseen = arrival.weights[:, 0], float(arrival.intercept[0]), arrival.judged_scores[:, 0]
        spread = max(float(unseen[n_given:].std()), np.finfo(np.float64).tiny)
    of_name = 0.0
    if named is not None and any(recipe.weights):
        given = name_direction(named, recipe.weights, pool.background, spread)
        mean = float(np.asarray(pool.background @ given).mean())
        weights, intercept = weights + given, intercept - mean
        unseen = unseen + np.asarray(rows @ given) - mean
        of_name = _part(np.asarray(pool.rest @ given), np.asarray(pool.rest @ weights))
    scores = np.asarray(pool.rest @ weights) + intercept
    found = yes & ~examples.asked
    chosen = unseen[:n_given][found if found.any() else yes]
    asked = examples.asked
    answered = unseen[:n_given][asked], yes[asked].astype(np.float64)
    judgement = Judgement.of(recipe.calibration, scores, chosen, *answered, pool.share)
    scale, shift = _common_scale(judgement, state.loss)
    judgement = replace(
        judgement, pool=scale * judgement.pool + shift, of_name=of_name, reached=recipe.reached, alone=recipe.alone
    )
    threshold = judgement.threshold() if parameters.threshold == "f1" else float(parameters.threshold)
    slope, offset = sigmoid_of_chances(judgement.pool, judgement.chances)
    report = LabelReport(
        name, n_rows, int(yes.sum()), share, LAM, False, beta, int(codes.nnz), loss=state.loss,
        estimate=judgement.estimate(threshold), n_background=n_rows - n_given,
    )  # fmt: skip
    decisions = Decisions(np.array([threshold]), np.array([slope]), np.array([offset]))
    batch = LabelBatch(
        (name,), scale * weights[:, None], np.array([scale * intercept + shift]), decisions, (report,), codes
    )
    return batch, judgement


def _part(some: FloatArray, whole: FloatArray) -> float:
    """The part of the variance of scores that is due to some of what they are the sum of, 0 to 1."""
    centred = whole - whole.mean()
    energy = float(centred @ centred)
    return float(np.clip((some - some.mean()) @ centred / energy, 0.0, 1.0)) if energy > 0 else 0.0


def _common_scale(judgement: Judgement, loss: str) -> tuple[float, float]:
    """The scale and shift that put scores on the scale of the model's other labels.

    With the squared loss the scores of a label are the linear function that is nearest to its answers; so here, with
    the probabilities on the pool in place of answers. With other losses scores are log-odds.
    """
    scores, chances = judgement.pool, judgement.chances
    if loss != "squared":
        slope, offset = sigmoid_of_chances(scores, chances)
        return (slope, offset) if slope > 0 else (1.0, 0.0)
    centred = scores - scores.mean()
    scale = 1.0 if alike(scores) else float(centred @ chances) / float(centred @ centred)
    scale = scale if scale > 0 else 1.0
    return scale, float(chances.mean() - scale * scores.mean())


def with_precision(state: ModelState, name: str, judgement: Judgement, precision: float) -> ModelState:
    """The model with the threshold of a label where this precision is expected, and what is expected there."""
    if isinstance(precision, bool) or not isinstance(precision, float | int) or not 0.0 < precision <= 1.0:
        raise DataError(f"precision is {precision!r}; it must be a number above 0, at most 1")
    threshold = judgement.threshold(precision)
    if threshold == np.inf:
        problem = f"a precision of {precision:g} cannot be expected of {name!r}, whatever the threshold"
        raise DataError(f"{problem}; more answers may help")
    number, reports = state.names.number(name), list(state.reports.items())
    thresholds = state.decisions.thresholds.copy()
    thresholds[number] = threshold
    reports[number] = replace(reports[number], estimate=judgement.estimate(threshold))
    decisions = replace(state.decisions, thresholds=thresholds)
    return replace(state, decisions=decisions, reports=SharedList.of(reports))


def threshold_for_precision(
    state: ModelState, number: int, precision: float, X: Any = None
) -> tuple[float, float, float, int]:
    """The threshold of a label for a precision, by its probabilities on the rows X, or on unseen scores of fit's rows.

    Returns also the precision and the recall that are expected there, and on how many rows; X None needs these kept.
    """
    memory = state.memory
    if X is None and memory is None:
        raise DataError("the rows of fit are not kept; give a pool")
    if X is None and memory is not None and memory.few is None and number < state.n_fitted:
        scores = memory.leave_one_out[:, number]
    else:
        scores = state.classifiers.scores(memory.X if X is None and memory else X, np.array([number]))[:, 0]
    if not len(scores):
        raise DataError("no text of the pool has a word that is known; give others")
    chances = sigmoid(scores, state.decisions.slope[number], state.decisions.offset[number])
    threshold, reached, recall = threshold_of_precision(scores, chances, precision)
    if reached < precision:
        raise DataError(
            f"a precision of {precision:g} cannot be expected of {state.names[number]!r}, whatever the threshold: "
            f"{reached:.2f} at best, above {threshold:.3f}"
        )
    return threshold, reached, recall, len(scores)
