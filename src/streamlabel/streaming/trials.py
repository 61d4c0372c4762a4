"""Trials of how far to trust the past: known labels are hidden, learned again from few rows, and judged.

Whether the past helps is a property of the data much more than of one label, and a new label with three positive
answers cannot tell. The labels of `fit` can, by arriving as if they were new: some of them are hidden, learned again
from a few rows with every recipe, and judged on other rows, where their answers are known. The hidden labels' own
classifiers are left out of the past, and the past labels' scores on the judged rows are leave-one-out scores, as on
rows the model has never seen.

No answer for a new label is used, so nothing is flattered by it, and the choice does not depend on what arrives.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from streamlabel.classifier.coordinates import Coordinates, affords_coordinates, minimise
from streamlabel.classifier.losses import get_loss, log_odds_span
from streamlabel.classifier.newton import Start, sketched_inverse
from streamlabel.classifier.objective import Design, SingleRows, suits_single
from streamlabel.classifier.penalty import trim
from streamlabel.classifier.ridge import BETA_STEPS
from streamlabel.stats.label_gram import centred_cross
from streamlabel.stats.ties import even_out, first_least, leading, points, ranked
from streamlabel.streaming.calibration import Estimate
from streamlabel.streaming.inputs import SCORINGS
from streamlabel.structure.represent import represent
from streamlabel.types import CSC, CSR, BoolArray, FloatArray, IntArray

LOGGER = logging.getLogger("streamlabel.trials")
SAYS = "trying out on known labels how to learn from %s: once per number of answers ..."
BUDGETS = (25, 50, 100, 200, 500, 1000, 2000, 5000, 15000, 50000)
# RECIPES, `PAIRS`, how many labels and rows judge, how strengths are chosen, and `choose_recipe` were settled with
# test rows of Bibtex, Delicious, mediamill_reduced, EURLEX57K (its later laws), citeulike-t, Reuters in sight, which
# flatters the design; `benchmarks/unseen.py` is fairer, though few labels choose a loss since a first look at its sets.
MOST_ROWS = 8_000  # of a trial that learns alone
LAM = 0.003


class Way(NamedTuple):
    """One way to learn a new label: a squared classifier, one of the other loss, or a mixture of the two.

    mix : how much of it is the classifier of the other loss: that of the model if it is not squared, else logistic
    share : of the metric;   lam : the penalty of the code, None for no anchor
    pull : the strength in multiples of that which is best for learning alone with this loss
    own : whether each label of a mixture has a line of its own that brings one loss to the scale of the other
    trim : the small weights of the squared classifier are drawn to zero by so many of their root mean squares
        (`classifier.penalty.trim`), 0 by none; then ``pull`` is its own alone, and lines are the label's own
    firm : the classifier that is mixed in is a ridge, too, so many times as strong; 0: of the other loss
    """

    mix: float
    share: float
    lam: float | None
    pull: float
    own: bool = False
    trim: float = 0.0
    firm: float = 0.0


# Own ridge first. What leans on the past can be pulled toward it harder than toward zero; the more rows, the finer a
# code they bear.
MIXES, _TRIMS, _FIRM = (0.0, 1.0, 0.3, 0.5, 0.7), (1.5, 3.0), 30.0
RECIPES: tuple[Way, ...] = (
    *(Way(mix, 0.0, None, 1.0) for mix in MIXES),
    *(Way(mix, 0.0, None, 1.0, True) for mix in MIXES[2:4]),
    *(Way(0.5, 0.0, None, pull, True, level, firm) for firm in (_FIRM, 0.0) for level in _TRIMS for pull in (1.0, 0.3)),
    *(Way(0.0, share, lam, pull) for share in (0.0, 0.1, 0.3) for lam in (None, LAM, LAM / 3.0, LAM / 10.0)
      for pull in (1.0, 3.0, 10.0) if share or lam),
    *(Way(mix, share, lam, pull) for mix in MIXES[1:4] for share in (0.0, 0.1, 0.3) for lam in (None, LAM / 3.0)
      for pull in (1.0, 3.0) if share or lam),
    *(Way(0.5, share, lam, 0.3, True, level, firm) for firm in (_FIRM, 0.0) for level in _TRIMS
      for share, lam in ((0.1, None), (0.3, None), (0.0, LAM / 3.0), (0.1, LAM / 3.0))),
)  # fmt: skip
_ALONE = np.array([not way.share and way.lam is None for way in RECIPES])
_TIERS = np.where(_ALONE, [2 if way.trim else 1 for way in RECIPES], 3)
LAMS = tuple(sorted({way.lam for way in RECIPES if way.lam is not None}, reverse=True))
SHARES = tuple(sorted({way.share for way in RECIPES}))
N_ALONE, N_SKETCH = 128, 512  # labels that losses alone are judged by; directions
MOST_WIDE = 2_000_000  # features times such labels: of each a dozen classifiers are held
_MANY_ROWS, N_HIDDEN_OTHER = 300, 32  # with more rows, labels to hide if a loss has no closed form
SOME_ROWS, WIDE = 1_000, 588  # with more rows than these, of more features, a trial with every metric takes seconds
_MOST_TRIMMED = 1_000  # rows up to which weights are trimmed much: of more rows small weights are less noise
_MOST_VALUES = 0.3  # of rows that are words: the share that is not zero
_LEAST_HIDDEN = 4  # labels by which losses are compared; of many rows two do where no more are known
PAIRS, _DRAWS = 2, 8  # rows that P@k is judged by together, and how often they are drawn
_ROUGH = 3e-3  # tolerance of a trial
_LEAST_OF_PAST = 0.1  # points that it has to gain over the best recipe without it
_EQUAL = 0.05  # points: of recipes that are no further apart the simplest is taken
_FAR_BEHIND = 1.5  # points after which a recipe is not tried any more
_FORGIVEN = 0.05  # points that a recipe may fall short
# beta in units of the mean squared length of a centred row, for losses that have no closed form
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
# What leans on the past, or is trimmed, has to gain so many points (`choose_recipe`): the best of many recipes seems to
# gain a fifth of a point where none helps (EURLEX57K by date).
LEAST_GAIN = 0.3


@dataclass(frozen=True)
class Clarity:
    """The clarity of the choice of a recipe, in points: the mean of P@k, AUC and average precision over the trials.

    gain : over learning alone (0 if that was chosen)
    lead, lead_error : over the best other recipe that might have been chosen, and the standard error of that over the
        trials, 0 where one draw decides; None if there was no other. A lead below its error could have gone the other
        way with other draws.
    """

    gain: float
    lead: float | None = None
    lead_error: float | None = None


@dataclass(frozen=True)
class Recipe:
    """The recipe by which new labels are learned: with which loss, how the past is used, and how strong the pull is.

    share : of the metric (`classifier.ridge`); 0 is none
    lam : the lasso penalty of the code, as a share of the annotated rows; None is no code
    anchored : whether the classifier is pulled toward what the code says, or toward zero; None: label by label
    strength : beta in units of the mean squared length of a centred row
    clarity : how clear the choice was; None if nothing was tried
    mix : how much of the classifier is one of the other loss (`Way`);   other_strength : the strength of that
    line : the scale and shift that bring scores of the other loss to the scale of squared ones, for all labels alike;
        None: each label has its own
    trim, firm : as of `Way`; with ``firm`` the other strength is that of the second ridge
    """

    share: float
    lam: float | None
    anchored: bool | None
    strength: float
    clarity: Clarity | None = None
    mix: float = 0.0
    other_strength: float = np.nan
    line: tuple[float, float] | None = (1.0, 0.0)
    trim: float = 0.0
    firm: float = 0.0


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows to judge by: features (e, d), answers (e, m), and scores (e, m) as if the rows had not been learned from."""

    X: CSR | FloatArray
    answers: CSR
    scores: FloatArray


@dataclass(frozen=True, eq=False)
class Trial:
    """The result of one trial.

    strengths : (2,), those best for learning alone, with the squared and with the other loss; NaN if not tried
    measures : (n_recipes, 5) P@1, P@3, P@5, AUC, average precision; NaN if not tried
    lines : (n_recipes, 2), scale and shift of scores of the other loss (`Recipe`), for all labels alike
    missed : (n_recipes, 5), where losses alone were tried apart: by how much they gain more there than in this trial
    """

    strengths: FloatArray
    measures: FloatArray
    lines: FloatArray
    missed: FloatArray = field(default_factory=lambda: np.zeros((len(RECIPES), 5)))

    def over_best(self, able: BoolArray | bool = True) -> FloatArray:
        """The measures, with what leans on the past as far over the best of the losses alone as in the trial itself."""
        measures = self.measures.copy()
        if self.missed.any():
            gains = np.where(_ALONE & able, overall_of(measures - measures[0]), np.nan)
            measures[~_ALONE] += np.nan_to_num(self.missed[np.nanargmax(gains)])
        return measures


def budget_class(n_rows: int, shape: tuple[int, ...] = (10**9, 1)) -> int:
    """The standard budget nearest to this number of rows, by ratio, for a model fitted on rows of this shape.

    Of many features, the classes above 2,000 rows are tried without the past, and none above 8,000.
    """
    found = min(BUDGETS, key=lambda budget: abs(np.log(budget / max(n_rows, 1))))
    if not affords_coordinates((min(found, shape[0]), shape[1]), N_SKETCH):
        found = min(found, MOST_ROWS)
    return min(found, shape[0])


def sketch(weights: FloatArray, size: int = N_SKETCH) -> FloatArray:
    """A sketch ``R (d, r)`` of classifiers W, ``R R'`` about ``W W'``: W itself if small, else (fixed) Gaussian."""
    mixing = _mixing(weights.shape[1], size)
    return weights if mixing is None else (weights.astype(np.float32) @ mixing.astype(np.float32)).astype(np.float64)


def run_trial(
    X: CSR | FloatArray,
    answers: CSR,
    scores: Callable[[IntArray], FloatArray],
    judged: Judged,
    rng: np.random.Generator,
    losses: Sequence[str] = ("squared", "logistic"),
    ways: Sequence[Way] = RECIPES,
    sketched: tuple[FloatArray, FloatArray] | None = None,
    apart: Trial | None = None,
    by_itself: bool = False,
) -> Trial | None:
    """Run one trial: hide some labels, learn them from the rows X (q, d) with these recipes, judge them.

    answers : (q, m) sparse 0/1;  scores : gives those of the model on these rows of some labels
    losses : which are tried: the squared one, one other, or both. The scores are those of the first.
    sketched : of all labels, the scores of both rows in the directions that `sketch` makes of them, if these are fewer
    apart : a trial of the losses alone, if there was one: what it says of them counts
    by_itself : without the past, as where rows are too many; then the scores are not used
    None if fewer than two labels have both answers on both sides.
    """
    most = 0.0 if _dense(X) else _TRIMS[0] if X.shape[0] > _MOST_TRIMMED else _TRIMS[1]
    ways = [way for way in ways if way.trim <= most]
    n_labels = answers.shape[1]

    def alone(least: int) -> Trial | None:
        n_most = int(np.clip(MOST_WIDE // X.shape[1], N_HIDDEN_OTHER, N_ALONE))
        able, _ = hide_labels(answers, judged.answers, rng, 1, n_most)  # without the past nothing is hidden from it
        return _Hidden(X, answers, judged, able, losses, ways).run_alone() if len(able) >= least else None

    if by_itself:
        return alone(2)
    hidden, others = hide_labels(answers, judged.answers, rng)
    if len(hidden) < _LEAST_HIDDEN:
        if apart is None and n_labels // 3 < _LEAST_HIDDEN and len(losses) > 1:
            apart = alone(_LEAST_HIDDEN if X.shape[0] <= _MANY_ROWS else 2)
        losses = losses[:1]
    if losses[-1] != "squared" and X.shape[0] > _MANY_ROWS:
        hidden = np.sort(rng.permutation(hidden)[:N_HIDDEN_OTHER])
    if len(hidden) < 2 or not others.size:
        return apart
    trial = _Hidden(X, answers, judged, hidden, losses, ways)
    if apart is not None:
        trial.strengths[1] = apart.strengths[1]
    past, mixing = np.setdiff1d(np.arange(n_labels), hidden), _mixing(n_labels, N_SKETCH)
    if mixing is None or sketched is None:
        basis = scores(past), judged.scores[:, past]
    else:
        own = scores(hidden) @ mixing[hidden], judged.scores[:, hidden] @ mixing[hidden]
        basis = sketched[0] - own[0], sketched[1] - own[1]
    basis = basis[0] - basis[0].mean(axis=0), basis[1] - basis[0].mean(axis=0)
    for lam, code in codes_of_hidden(answers[:, past], answers[:, hidden]).items():
        used = np.unique(code.indices)
        here, weights = scores(past[used]), code[used]
        there, mean = judged.scores[:, past[used]], here.mean(axis=0)
        trial.anchors[lam] = (here - mean) @ weights, (there - mean) @ weights
    first: Coordinates | None = None
    for share in SHARES:
        if any(way.share == share for way in ways):
            first = trial.run(share, *basis, first)
    return trial.result() if apart is None else _joined(trial.result(), apart)


def _dense(X: CSR | FloatArray) -> bool:
    """Whether rows are no words: a small weight counts in every one of them, and is not trimmed."""
    n_values = np.count_nonzero(X) if isinstance(X, np.ndarray) else X.count_nonzero()
    return bool(n_values > _MOST_VALUES * X.shape[0] * X.shape[1])


def _joined(trial: Trial, apart: Trial) -> Trial:
    """A trial with the gains of the losses alone that other labels have shown."""
    measures, lines = trial.measures.copy(), trial.lines.copy()
    gains, before = apart.measures - apart.measures[0], trial.measures - trial.measures[0]
    measures[_ALONE], lines[_ALONE] = trial.measures[0] + gains[_ALONE], apart.lines[_ALONE]
    return Trial(np.array([trial.strengths[0], apart.strengths[1]]), measures, lines, gains - before)


class _Hidden:
    """Hidden labels, learned again from q rows, scored on e others.

    anchors : the scores (q, k) and (e, k) that the code of each penalty gives
    scores : (e, k) of what was learned, by way: of one loss, or of a ridge after it was trimmed
    """

    def __init__(
        self, X: CSR | FloatArray, answers: CSR, judged: Judged, labels: IntArray, losses: Sequence[str],
        ways: Sequence[Way],
    ) -> None:  # fmt: skip
        self.X, self.judged_X, self.ways, self.design = X, judged.X, ways, Design(X)
        self.squares = self.design.gram_diagonal()
        self.single = X.shape[0] > _MANY_ROWS and suits_single(self.design, self.squares)
        self.truth, self.answers = (part[:, labels].toarray().astype(np.float64) for part in (judged.answers, answers))
        self.squared, self.other = losses[0] == "squared", losses[-1] if losses[-1] != "squared" else None
        self.rates: FloatArray = self.answers.mean(axis=0)
        self.anchors: dict[float | None, tuple[Any, Any]] = {None: (0.0, 0.0)}
        self.scores: dict[Way, FloatArray] = {}
        self.strengths: FloatArray = np.full(2, np.nan)
        self.span: FloatArray | float = 1.0
        if self.squared and self.other is not None:
            self.span = log_odds_span(self.answers)

    def run(self, share: float, past: FloatArray, past_judged: FloatArray, first: Coordinates | None) -> Coordinates:
        """Try all ways with this share of the metric; returns the coordinates, for other shares to begin with."""
        at = Coordinates(self.X, past, share, first, self.single)
        far = at.across(self.judged_X, past_judged)
        if self.squared:
            if not share:
                self.strengths[0] = self._own_strength(at, far)
            for way in (way for way in self.ways if way.share == share):
                whole, kept, other = _parts(way)
                for one in (whole, other):
                    if not one.mix and one not in self.scores:
                        self.scores[one] = self._ridge(at, far, one)[1]
                if kept not in self.scores:
                    weights, of_basis = at.parts(self._ridge(at, far, whole)[0])
                    weights = trim(weights, way.trim)
                    found = np.asarray(self.judged_X @ weights) - at.mean @ weights + self.anchors[way.lam][1]
                    self.scores[kept] = self.rates + (found if of_basis is None else found + past_judged @ of_basis)
        if self.other is None:
            return at
        if np.isnan(self.strengths[1]):
            self.strengths[1] = self._climb(self.other, functools.partial(self._learn_other, at, far, None), RECIPES[1])
        start: Start | None = None
        needed = {_parts(way)[2] for way in self.ways if way.mix and way.share == share and not way.firm}
        for way in sorted(needed, key=lambda way: (way.lam is not None, -way.pull)):  # each begins where one has ended
            if way not in self.scores:
                self.scores[way], start = self._learn_other(at, far, way.lam, way.pull * self.strengths[1], start)
        return at

    def _ridge(self, at: Coordinates, far: FloatArray, way: Way) -> tuple[FloatArray, FloatArray]:
        """Ridge in coordinates, and its scores."""
        anchor, anchor_far = self.anchors[way.lam]
        V = at.ridge(self.answers - self.rates - anchor, way.pull * self.strengths[0] * at.unit)
        return V, self.rates + anchor_far + far @ V

    def _learn_other(
        self, at: Coordinates, far: FloatArray, lam: float | None, strength: float, start: Start | None
    ) -> tuple[FloatArray, Start]:
        assert self.other is not None
        anchor, anchor_far = self.anchors[lam]
        held = None if lam is None else at.of_scores(self.span * anchor)
        beta = strength * at.unit
        rows = SingleRows(at.Z) if self.single else at.Z
        V, b = minimise(rows, at.squares, self.answers, beta, self.other, held, start, tolerance=_ROUGH)
        found = far @ (V if held is None else V - held).astype(far.dtype, copy=False) + b
        return found + self.span * anchor_far, (V, b)

    def run_alone(self) -> Trial:
        """Try the losses alone, by iterations: for rows that are too many for coordinates."""
        squares, mean, unit = self.squares, self.design.mean, float(self.squares.sum()) / self.X.shape[0]
        rows, judged = (SingleRows(X) if self.single else X for X in (self.X, self.judged_X))
        sketched = self.single and self.squared and self.X.shape[1] <= MOST_WIDE // 16
        known, inverse = dict[tuple[str, float], Start](), sketched_inverse(rows, mean) if sketched else None

        def learn(loss: str, strength: float, start: Start | None = None) -> tuple[FloatArray, Start]:
            if (loss, strength) not in known:
                given = self.answers, strength * unit, loss, None, start, None, _ROUGH
                known[loss, strength] = minimise(rows, squares, *given, inverse=inverse if loss == "squared" else None)
            weights, offsets = found = known[loss, strength]
            return np.asarray(judged @ weights) + offsets, found

        if self.other is not None:
            self.strengths[1] = self._climb(self.other, functools.partial(learn, self.other), RECIPES[1])
        if self.squared:
            own = self.strengths[0] = self._climb("squared", functools.partial(learn, "squared"), RECIPES[0])
            start = learn("squared", own)[1]
        for way in (way for way in self.ways if way.trim and not way.share and way.lam is None and self.squared):
            whole, kept, other = _parts(way)
            if kept not in self.scores:
                self.scores[whole], (weights, offset) = learn("squared", way.pull * own, start)
                lighter = trim(weights, way.trim)
                self.scores[kept] = np.asarray(judged @ lighter) + offset + mean @ (weights - lighter)
            if way.firm and other not in self.scores:
                self.scores[other] = learn("squared", way.firm * own, start)[0]
        return self.result()

    def _own_strength(self, at: Coordinates, far: FloatArray) -> float:
        """The strength of own ridge with the least squared error on the judged rows, all hidden labels together."""
        strongest_first = BETA_STEPS[::-1]
        truth, targets = self.truth - self.rates, self.answers - self.rates
        errors = [float(np.square(far @ at.ridge(targets, step * at.unit) - truth).sum()) for step in strongest_first]
        return float(strongest_first[first_least(errors)])

    def _climb(self, loss: str, learn: Callable[..., Any], way: Way) -> float:
        """The strength that is best for a loss alone on the judged rows: a climb from the middle.

        By all measures together; with many rows by the loss itself, which is less easily flattered.
        """
        kind = get_loss(loss)

        def value(scores: FloatArray) -> float:
            if len(self.answers) > _MANY_ROWS:
                return -float(kind.value(scores, kind.encode(self.truth)).sum())
            return float(points(overall_of(np.array(measure(self.truth, scores, PAIRS)))))

        found, starts = dict[int, tuple[float, FloatArray]](), dict[int, Start]()
        place = len(STRENGTHS) // 2
        while True:
            for near in (place, place + 1, place - 1):
                if 0 <= near < len(STRENGTHS) and near not in found:
                    scores, starts[near] = learn(STRENGTHS[near], starts.get(place))
                    found[near] = value(scores), scores
                if near in found and (found[near][0], near) > (found[place][0], place):  # of equal ones the stronger
                    place = near
                    break
            else:
                self.scores[way] = found[place][1]
                return STRENGTHS[place]

    def result(self) -> Trial:
        """What was found."""
        measures, lines = np.full((len(RECIPES), 5), np.nan), np.tile([1.0, 0.0], (len(RECIPES), 1))
        for number, way in enumerate(RECIPES):
            whole, kept, other = _parts(way)
            needed = {whole} if self.squared else set[Way]()
            needed |= ({kept} if way.mix < 1.0 else set()) | ({other} if way.mix else set())
            if way not in self.ways or not needed <= self.scores.keys():
                continue
            if way.mix and self.squared:
                ridge, found = self.scores[whole], [self.scores[one] for one in (kept, other) if one in needed]
                lines[number] = common_line(found[-1], ridge)
                scale, shift = own_lines(found[-1], ridge) if way.own else lines[number]
                scores = scale * found[-1] + shift
                if way.mix < 1.0:
                    scale, shift = own_lines(found[0], ridge) if way.trim else (1.0, 0.0)
                    scores = (1.0 - way.mix) * (scale * found[0] + shift) + way.mix * scores
            else:
                scores = self.scores[other if way.mix else kept]
            measures[number] = measure(self.truth, scores, PAIRS)
        return Trial(self.strengths, measures, lines)


def _parts(way: Way) -> tuple[Way, Way, Way]:
    """Of what a way is mixed: its ridge before it is trimmed, and after; and what is mixed in."""
    share, lam, pull = way[1:4]
    other = Way(0.0, share, lam, way.firm) if way.firm else Way(1.0, share, lam, 1.0 if way.trim else pull)
    return Way(0.0, share, lam, pull), Way(0.0, share, lam, pull, trim=way.trim), other


def promising(trials: Sequence[Trial]) -> list[Way]:
    """The ways that may be the best one yet: not far behind the best of these trials by one of the `SCORINGS`.

    Of every kind the best stays, too: a choice may be restricted to it.
    """
    measures = np.mean([trial.over_best() for trial in trials], axis=0)
    kinds = [(way.mix, way.share > 0.0, way.lam is None, way.trim, way.trim and way.pull) for way in RECIPES]
    near = _ALONE & [way.mix in (0.0, 1.0) for way in RECIPES]
    for scoring in SCORINGS:
        values = np.nan_to_num(scored(measures, scoring), nan=-np.inf)
        near |= values > values.max() - _FAR_BEHIND
        for kind in set(kinds):
            mine = np.array([one == kind for one in kinds])
            near |= mine & (values == values[mine].max()) & np.isfinite(values)
    return [way for way, one in zip(RECIPES, near, strict=True) if one]


def common_line(scores: FloatArray, target: FloatArray) -> tuple[float, float]:
    """The scale and shift, the same for all labels, that give scores (e, k) the mean and spread of others, pooled."""
    scale = np.sqrt(target.var(axis=0).mean() / max(float(scores.var(axis=0).mean()), np.finfo(np.float64).tiny))
    return float(scale), float(target.mean() - scale * scores.mean())


def own_lines(scores: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The scale and shift, (k,), that give the scores (e, k) of each label the mean and spread of others of it."""
    spread = scores.std(axis=0)
    scale = np.divide(target.std(axis=0), spread, out=np.zeros_like(spread), where=spread > 0.0)
    return scale, target.mean(axis=0) - scale * scores.mean(axis=0)


def choose_recipe(
    trials: Sequence[Trial],
    *,
    anchors: bool = True,
    metrics: bool = True,
    few: bool = True,
    kept: bool = False,
    mixes: Sequence[float] = MIXES,
    scoring: str = "balanced",
) -> Recipe:
    """Choose the recipe with the largest mean gain over learning alone with the first of these mixes of losses.

    The gain of "balanced" is the mean of P@k (three together), AUC and average precision, less what a recipe lacks,
    measure by measure, of the better of the losses alone; that of the other `SCORINGS` is their measure's. What is
    trimmed has to gain three tenths of a point over the best of the losses alone; what leans on the past over learning
    alone, before it is made less, and a tenth over the best that does not; of three trials or more also more than the
    standard error. Another loss has to gain at all, before it is made less.

    Of recipes a twentieth of a point behind the best the first of `RECIPES` is taken: alone before with the past,
    without a metric before with one, without a code before with one. ``anchors`` or ``metrics`` False leaves recipes
    with them out, ``few`` False those with a metric under another loss: there are too many rows for it. ``kept`` True
    leaves out what is trimmed at another strength than that of learning alone: there is one factor.
    """
    measures = np.stack([trial.measures for trial in trials])
    own = next(number for number, way in enumerate(RECIPES) if way.mix == mixes[0])
    able = np.asarray(~np.isnan(measures).any(axis=(0, 2)))
    able &= [way.mix in mixes and (anchors or way.lam is None) and (metrics or not way.share) for way in RECIPES]
    able &= [(few or not (way.mix and way.share)) and not (kept and way.trim and way.pull != 1.0 and not way.share)
             for way in RECIPES]  # fmt: skip
    single = able & _ALONE & [way.mix in (0.0, 1.0) for way in RECIPES]
    measures = np.stack([trial.over_best(able) for trial in trials])
    gains = measures - measures[:, own : own + 1]
    worth = overall = scored(gains, scoring)
    if scoring == "balanced":
        each = gains.mean(axis=0)
        worth = overall - 3.0 * overall_of(np.maximum(each[single].max(axis=0) - each - _FORGIVEN, 0.0))
    value = points(worth.mean(axis=0))
    allowed = np.zeros(len(RECIPES), dtype=bool)
    allowed[own], base, bar = True, own, np.zeros(len(RECIPES))
    for tier in (1, 2, 3):  # losses alone, what is trimmed, what leans on the past
        ahead = worth - worth[:, base : base + 1] if tier == 2 else overall
        if tier > 1:
            error = ahead.std(axis=0, ddof=1) / np.sqrt(len(trials)) if len(trials) > 2 else 0.0  # two cannot say
            bar = np.maximum(points(error), LEAST_GAIN)
        enough = value[base] + _LEAST_OF_PAST if tier == 3 else -np.inf
        allowed |= able & (tier == _TIERS) & (points(ahead.mean(axis=0)) > bar) & (value > enough)
        base = int(np.where(allowed, value, -np.inf).argmax())
    value = np.where(allowed, value, -np.inf)
    best = int((value >= value.max() - _EQUAL).argmax())
    others = np.where(np.arange(len(RECIPES)) == best, -np.inf, value)
    second = int(others.argmax()) if others.max() > -np.inf else best
    lead = overall[:, best] - overall[:, second]
    clarity = Clarity(float(points(overall[:, best].mean())))
    if second != best:
        spread = float(lead.std(ddof=1)) / np.sqrt(len(lead)) if len(lead) > 1 else 0.0
        clarity = replace(clarity, lead=float(points(lead.mean())), lead_error=float(points(spread)))
    way = RECIPES[best]
    squared, other = np.exp(np.mean([np.log(trial.strengths) for trial in trials], axis=0))
    other = squared * way.firm if way.firm else other * (1.0 if way.trim else way.pull)
    scales, shifts = np.array([trial.lines[best] for trial in trials]).T
    line = None if way.own else (float(np.exp(np.log(scales).mean())), float(shifts.mean()))
    anchored = way.lam is not None
    return Recipe(
        way.share, way.lam or LAM, anchored, float(squared * way.pull), clarity, way.mix, float(other), line, way.trim,
        way.firm,
    )  # fmt: skip


def scored(measures: FloatArray, scoring: str) -> FloatArray:
    """What the choice of a recipe maximises, from (..., 5) measures as `measure` gives them."""
    if scoring == "p@k":
        return measures[..., :3].mean(axis=-1)
    return overall_of(measures) if scoring == "balanced" else measures[..., 3 if scoring == "auc" else 4]


def overall_of(measures: FloatArray) -> FloatArray:
    """The mean of P@k (three together), AUC and average precision, from (..., 5) measures as `measure` gives them."""
    return (measures[..., :3].mean(axis=-1) + measures[..., 3] + measures[..., 4]) / 3.0


def hide_labels(
    answers: CSR, judged_answers: CSR, rng: np.random.Generator, part: int = 3, most: int = 64
) -> tuple[IntArray, IntArray]:
    """Choose labels to hide, at most ``most`` and one in ``part``, with both answers on both sides; and all others."""
    n_rows, n_labels = answers.shape
    here, there = (np.asarray(part.sum(axis=0)).ravel() for part in (answers, judged_answers))
    able = np.flatnonzero((here > 0) & (here < n_rows) & (there > 0) & (there < judged_answers.shape[0]))
    hidden = np.sort(rng.permutation(able)[: min(most, n_labels // part)])
    return hidden, np.setdiff1d(np.arange(n_labels), hidden)


def measure(truth: FloatArray, scores: FloatArray, together: int = 1) -> list[float]:
    """P@1, P@3, P@5, AUC and average precision in percent; every label has both answers. One sort per label.

    together : P@k is of so many rows side by side, as the best of thirty labels says little about the best of
        thousands: with two it follows test rows most closely, with eight single labels decide
    P@k is over what has a label, rows or rows together. Else the conventions of `metrics`, but for ties (also of scores
    that differ by rounding only), which fall as the rows and labels stand.
    """
    n_rows, some, best = len(truth), np.asarray(truth.any(axis=1)), leading(truth, even_out(scores), 5)
    draws = [np.random.default_rng(draw).permutation(n_rows) for draw in range(_DRAWS if together > 1 else 0)]
    hits = []
    for rows in draws or [np.arange(n_rows)]:
        beside = rows[: n_rows // together * together].reshape(-1, together)
        true, order = (part[beside].reshape(-1, together * part.shape[1]) for part in best)
        hits.append(ranked(true, order, 5)[some[beside].any(axis=1)])
    top = np.concatenate(hits)
    values = [float(top[:, :k].sum()) / (k * max(len(top), 1)) for k in (1, 3, 5)]
    label, place = np.nonzero(ranked(truth.T, even_out(scores, axis=0).T))
    yes = np.bincount(label)
    above = np.arange(len(label)) - np.repeat(np.cumsum(yes) - yes, yes)  # how many yes are ranked higher
    values.append(float((1.0 - np.bincount(label, place - above) / (yes * (n_rows - yes))).mean()))
    values.append(float((np.bincount(label, (above + 1) / (place + 1)) / yes).mean()))
    return [100.0 * value for value in values]


@functools.lru_cache(maxsize=1)
def _mixing(n_labels: int, size: int) -> FloatArray | None:
    if n_labels <= size:
        return None
    return np.random.default_rng(0).standard_normal((n_labels, size)) / np.sqrt(size)


def codes_of_hidden(past: CSR, hidden: CSR) -> dict[float, CSC]:
    """Codes (n_past, n_hidden) of the hidden labels, by penalty; labels that do not occur here cannot enter."""
    present = np.flatnonzero(np.asarray(past.sum(axis=0)).ravel())
    columns = past[:, present]
    counts = np.asarray(hidden.sum(axis=0), dtype=np.float64).ravel()
    energies = counts - counts**2 / past.shape[0]
    gram, correlations = centred_cross(columns, columns), centred_cross(columns, hidden)
    found = {lam: represent(gram, correlations, energies, lam * past.shape[0], tol=1e-4).codes for lam in LAMS}
    shape = past.shape[1], hidden.shape[1]
    return {
        lam: sparse.csc_array((code.data, present[code.indices], code.indptr), shape=shape)
        for lam, code in found.items()
    }


@dataclass(frozen=True)
class LabelReport:
    """A report of how a label was learned.

    share, lam, anchored, beta : the recipe (`streaming.trials`): share of the metric, lasso penalty of the code as a
        share of the rows, whether the classifier was pulled toward the code, ridge strength
    code_size, gap : labels in its code, and the duality gap of the code (0 without one)
    loss : what its classifier minimises ("squared", "both, trimmed", ...: `Way`)
    coupled : whether the labels of its batch helped each other
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
