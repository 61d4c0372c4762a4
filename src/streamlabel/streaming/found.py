"""Labels from found examples: a few yes, perhaps some no, a name, and a pool of texts that nobody has looked at.

Found examples are no sample: they say what the label is, and nothing about how often it applies. So a part of the pool
stands for no in the ridge, and what the scores mean on the rest of it is learned from the labels of `fit`, which can
arrive as if they were new: some are hidden, learned again from as few yes and a background, and judged on rows where
their answers are known. These trials choose

- how the ridge is made: its strength, and the share of the past classifiers' metric (`classifier.ridge`);
- how much a name is worth: its directions in feature space are added, in units of the spread of the label's own scores;
- what a score says. With z the score above the median of the pool, in standard deviations of the pool, m the mean of
  that over the yes examples (each under the classifier learned without it), and T the share of the pool at least as
  high, the log-odds of yes are ``a + b log z + c log m + d log T + u``. Then a, b, c, d are common to all labels, and
  u, Normal of mean zero, is the label's own: how far labels differ is the width of every interval that is stated.

An answer to a question (a text that was not chosen by its answer) tells about u. An example that was found does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from scipy import linalg, sparse
from scipy.special import expit, ndtri

from streamlabel.classifier.ridge import make_ridge
from streamlabel.stats.spectral import dense
from streamlabel.stats.ties import points
from streamlabel.streaming.arrival import past_answers
from streamlabel.streaming.calibration import Decisions, Estimate, sigmoid_of_chances
from streamlabel.streaming.codes import learn_arrival, name_direction
from streamlabel.streaming.inputs import Parameters
from streamlabel.streaming.kept_rows import FitMemory
from streamlabel.streaming.other_losses import row_unit
from streamlabel.streaming.state import LabelBatch, ModelState
from streamlabel.streaming.trials import LAM, LEAST_GAIN, LabelReport, sketch
from streamlabel.types import CSR, BoolArray, FloatArray, IntArray

SIZES = (0, 1, 2, 5, 10, 20, 50)  # numbers of yes that are tried
BACKGROUND = 400  # rows of the pool that stand for no
SHARES, STRENGTHS, WEIGHTS = (0.0, 0.1, 0.3, 0.6), (3.0, 10.0, 30.0), (0.25, 0.5, 1.0, 2.0)
N_HIDDEN, N_DRAWS, LEAST_TRIALS, LEAST_POOL = 48, 2, 8, 50
N_SIMULATED = 200
RARE = 0.5  # labels are hidden with a chance of their count to the power of minus this: new ones are mostly rare
# The mean and deviation of what is added to u for labels that come later. This, `RARE` and the features of the log-odds
# were settled while looking at later laws of EURLEX57K and test rows of Bibtex and citeulike-t-min5, with new labels as
# frequent as those of `fit`, and three times rarer.
LATER = (-0.5, 0.9)
MOST_KNOWN = 2000  # labels whose classifiers may speak for a name that is like theirs
MOST_JUDGED = 2000  # rows of a pool by which scores are judged
SMALLEST_POOL = 4
_TAIL = np.log(0.2)  # only the upper part of a pool is looked at: below, yes is rare for every label


class Directions(Protocol):
    """What reads names: it gives every name directions in the model's feature space.

    version : says which reader it is, and of which version; a recipe is of use for one reader only
    """

    version: str

    def __call__(self, texts: Sequence[str], known: Sequence[str], weights: FloatArray) -> FloatArray:
        """Directions (kinds, d, n) of n names; zero where it knows nothing about one.

        known, weights : the names of f known labels, and their classifiers (d, f)
        """
        ...


@dataclass(frozen=True)
class Calibration:
    """The meaning of scores on a pool: the common coefficients a, b, c, d, and the deviation of u between labels."""

    coefficients: tuple[float, float, float, float]
    deviation: float

    def log_odds(self, scores: FloatArray, pool: FloatArray, yes: FloatArray) -> FloatArray:
        """The log-odds of yes at these scores; ``yes`` are unseen scores of the yes examples, [] if there are none."""
        return _features(scores, np.sort(pool), yes) @ np.array(self.coefficients)

    def of_later_labels(self) -> Calibration:
        """The same for labels that are not of `fit`: rarer as a rule, and not known to be like these (`LATER`)."""
        shift, deviation = LATER
        a, b, c, d = self.coefficients
        return Calibration((a + shift, b, c, d), float(np.hypot(self.deviation, deviation)))

    def updated(self, log_odds: FloatArray, answers: FloatArray) -> tuple[float, float]:
        """The mean and the deviation of u after answers (n,) of 0/1 to questions with these log-odds (Laplace)."""
        u, precision = 0.0, self.deviation**-2
        for _ in range(50):
            chance = expit(log_odds + u)
            curve = precision + float((chance * (1.0 - chance)).sum())
            step = (float((answers - chance).sum()) - precision * u) / curve
            u += float(np.clip(step, -1.0, 1.0))
            if abs(step) < 1e-9:
                break
        return u, curve**-0.5


@dataclass(frozen=True)
class FoundRecipe:
    """The recipe by which labels of so many found yes are learned, as the trials chose it.

    share, strength : of the ridge;   weights : of each kind of direction that a name has, () for none
    gain : what names add in the trials, in points (the mean of AUC and average precision); 0 where they are refused
    n_trials : how many hidden labels it was chosen by; 0 for the defaults
    """

    n_yes: int
    share: float
    strength: float
    weights: tuple[float, ...]
    calibration: Calibration
    gain: float = 0.0
    n_trials: int = 0


# For models without rows: means of what trials find on the training rows of EURLEX57K, Bibtex and citeulike-t-min5.
DEFAULTS = {
    size: FoundRecipe(size, 0.0, 10.0, (weight,), Calibration(coefficients, deviation))
    for size, weight, coefficients, deviation in (
        (0, 1.0, (-4.7, 1.4, 0.0, -0.15), 1.2),
        (1, 1.0, (-4.7, 1.5, 0.1, -0.1), 1.0),
        (2, 1.0, (-4.5, 1.7, 0.0, -0.05), 1.0),
        (5, 0.5, (-4.3, 1.9, -0.1, 0.0), 1.0),
        (10, 0.5, (-4.0, 2.4, -0.5, 0.1), 1.0),
        (20, 0.25, (-3.7, 2.9, -0.8, 0.17), 1.0),
        (50, 0.25, (-3.7, 2.9, -0.8, 0.17), 1.0),
    )
}


def size_class(n_yes: int) -> int:
    """The number of yes among `SIZES` that is nearest, by ratio."""
    return 0 if n_yes == 0 else min(SIZES[1:], key=lambda size: abs(np.log(size / n_yes)))


def _features(scores: FloatArray, pool: FloatArray, yes: FloatArray) -> FloatArray:
    """What the log-odds are linear in, (n, 4): 1, log z, log m, log T. ``pool`` is sorted."""
    middle, spread = float(np.median(pool)), float(pool.std())
    spread = spread if spread > 1e-9 * max(abs(middle), 1e-9) else np.inf  # scores that do not differ say nothing
    z = np.maximum((scores - middle) / spread, 0.3)
    m = max(float((yes.mean() - middle) / spread), 0.5) if yes.size else 1.0
    tail = (len(pool) - np.searchsorted(pool, scores, side="left") + 0.5) / (len(pool) + 1.0)
    return np.column_stack((np.ones(len(z)), np.log(z), np.full(len(z), np.log(m)), np.log(tail)))


@dataclass(frozen=True, eq=False)
class _Trial:
    """One hidden label, learned again with every ridge of `_BASES`, on e judged rows.

    truth : (e,);   own : (bases, e) scores;   own_yes : (bases, p) unseen scores of the yes examples
    spreads : (bases,) standard deviation of own scores on the background
    named, named_yes : (kinds, e) and (kinds, p), the scores of the name's directions, standardised on the background
    """

    truth: FloatArray
    own: FloatArray
    own_yes: FloatArray
    spreads: FloatArray
    named: FloatArray
    named_yes: FloatArray

    def scores(self, base: int, weights: Sequence[float]) -> tuple[FloatArray, FloatArray]:
        """Scores of the judged rows and unseen scores of the yes examples under one recipe."""
        given = self.spreads[base] * np.asarray(weights, dtype=np.float64)
        return self.own[base] + given @ self.named, self.own_yes[base] + given @ self.named_yes


_BASES = [(share, strength) for share in SHARES for strength in STRENGTHS]


def run_found_trials(
    memory: FitMemory,
    weights: FloatArray,
    intercept: FloatArray,
    n_yes: int,
    names: Sequence[str],
    directions: Directions | None,
    seed: int,
) -> FoundRecipe:
    """Choose how labels of about so many found yes are learned, by hiding labels of `fit`.

    weights (d, f), intercept (f,) : the classifiers of `fit`;   names : theirs
    """
    size = size_class(n_yes)
    default = DEFAULTS[size] if directions is not None else replace(DEFAULTS[size], weights=())
    left = np.setdiff1d(np.arange(memory.X.shape[0]), memory.judged_rows)
    if len(memory.judged_rows) < LEAST_POOL or len(left) < LEAST_POOL or (size == 0 and directions is None):
        return default
    trials: list[_Trial] = []
    for draw in range(N_DRAWS):
        rng = np.random.default_rng((seed, size, draw))
        trials += _draw(memory, weights, intercept, size, names, directions, left, rng)
    ranked = [trial for trial in trials if trial.truth.any()]
    if len(ranked) < LEAST_TRIALS:
        return default
    base, given, gain = _choose(ranked, size)
    judged = [(trial.truth, *trial.scores(base, given)) for trial in trials]
    calibration = _calibrate(judged, default.calibration)
    return FoundRecipe(size, *_BASES[base], tuple(given), calibration.of_later_labels(), gain, len(trials))


def _draw(
    memory: FitMemory,
    weights: FloatArray,
    intercept: FloatArray,
    size: int,
    names: Sequence[str],
    directions: Directions | None,
    left: IntArray,
    rng: np.random.Generator,
) -> list[_Trial]:
    """Hide some labels of `fit`, and learn each from ``size`` of its rows and a background."""
    order = rng.permutation(left)
    back, rest = np.sort(order[:BACKGROUND]), np.sort(order[BACKGROUND:])
    rest = rest if rest.size else back
    n_here = np.asarray(memory.labels[rest].sum(axis=0)).ravel()
    truths = memory.labels[memory.judged_rows]
    n_there = np.asarray(truths.sum(axis=0)).ravel()
    able = np.flatnonzero((n_here >= max(size, 1)) & (n_there < truths.shape[0] / 2))
    chance = n_here[able].astype(np.float64) ** -RARE
    n_hidden = min(N_HIDDEN, len(names) // 3, len(able))
    hidden = np.sort(rng.choice(able, n_hidden, replace=False, p=chance / chance.sum())) if n_hidden else able[:0]
    others = np.setdiff1d(np.arange(len(names)), hidden)
    if not hidden.size or not others.size:
        return []
    X, B, J = memory.X, memory.X[back], memory.judged_X
    named = _named(directions, [names[j] for j in hidden], [names[j] for j in others], weights[:, others])
    if directions is not None and not named.any():
        return []
    columns = memory.labels[rest].tocsc()
    ridges = (
        None
        if size == 0
        else _Backgrounds(B, J, weights[:, others], memory.leave_one_out[:, others] - intercept[others])
    )
    found = []
    for place, label in enumerate(hidden.tolist()):
        positives = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
        yes = X[rest[np.sort(rng.permutation(positives)[:size])]]
        truth = truths[:, [label]].toarray()[:, 0].astype(np.float64)
        own, own_yes, spreads = _nothing(len(truth)) if ridges is None else ridges.learn(yes)
        scores, scores_yes = _standardised(named[:, :, place], B, J, yes)
        found.append(_Trial(truth, own, own_yes, spreads, scores, scores_yes))
    return found


def _named(directions: Directions | None, texts: list[str], known: list[str], weights: FloatArray) -> FloatArray:
    return np.empty((0, len(weights), len(texts))) if directions is None else directions(texts, known, weights)


def _nothing(n_judged: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores of a label without examples."""
    return np.zeros((len(_BASES), n_judged)), np.zeros((len(_BASES), 0)), np.ones(len(_BASES))


def _standardised(named: FloatArray, background: Any, *rows: Any) -> list[FloatArray]:
    """Scores (kinds, n) of directions (kinds, d) on rows, of mean 0 and deviation 1 on the background."""
    back = np.asarray(background @ named.T)
    mean, deviation = back.mean(axis=0), back.std(axis=0)
    unit = np.where(deviation > 0, deviation, np.inf)
    return [((np.asarray(X @ named.T) - mean) / unit).T for X in rows]


class _Backgrounds:
    """The ridges of `_BASES` on a background that stands for no, ready for any yes rows: with an intercept, exactly.

    A = K + beta I of the background is factored once; a label of p yes then costs p solves and a system of p + 1.
    """

    def __init__(self, B: Any, J: Any, weights: FloatArray, judged_scores: FloatArray) -> None:
        self.B, self.J, self.weights = B, J, weights
        self.past, self.past_judged = np.asarray(B @ weights), judged_scores
        self.centre = self.past.mean(axis=0)
        self.past, self.past_judged = self.past - self.centre, self.past_judged - self.centre
        own, self.own_judged = dense(B @ B.T), dense(J @ B.T)
        metric = self.past @ self.past.T
        trace = float(own.trace()) - float(own.mean()) * len(own)
        self.ratio = trace / max(float(metric.trace()), np.finfo(np.float64).tiny)
        self.metric_judged, metric = self.ratio * (self.past_judged @ self.past.T), self.ratio * metric
        self.unit = trace / len(own)
        self.kernels, self.factors = {}, []
        for share, strength in _BASES:
            kernel = (1.0 - share) * own + share * metric
            self.kernels[share] = kernel
            factor = linalg.cho_factor(kernel + strength * self.unit * np.eye(len(own)), check_finite=False)
            self.factors.append((factor, linalg.cho_solve(factor, np.ones(len(own)), check_finite=False)))

    def learn(self, yes: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Own scores (bases, e), unseen scores of the yes (bases, p), spread on the background (bases,)."""
        past = np.asarray(yes @ self.weights) - self.centre
        inner, cross, judged = dense(yes @ yes.T), dense(yes @ self.B.T), dense(self.J @ yes.T)
        scale = self.ratio
        found = []
        for (share, strength), (factor, ones) in zip(_BASES, self.factors, strict=True):
            own = (1.0 - share) * inner + scale * share * (past @ past.T)
            side = (1.0 - share) * cross + scale * share * (past @ self.past.T)
            far = (1.0 - share) * judged + scale * share * (self.past_judged @ past.T)
            far_back = (1.0 - share) * self.own_judged + share * self.metric_judged
            found.append(_solve(own, side, far, far_back, self.kernels[share], factor, ones, strength * self.unit))
        return tuple(np.array(one) for one in zip(*found, strict=True))  # type: ignore[return-value]


def _solve(
    own: FloatArray,
    side: FloatArray,
    far: FloatArray,
    far_back: FloatArray,
    kernel: FloatArray,
    factor: Any,
    ones: FloatArray,
    beta: float,
) -> tuple[FloatArray, FloatArray, float]:
    """Ridge with an intercept on p yes (target 1) and a factored background (target 0): see `_Backgrounds`."""
    n_yes = len(own)
    bent = linalg.cho_solve(factor, side.T, check_finite=False)
    border = 1.0 - side @ ones
    system = np.block([[own + beta * np.eye(n_yes) - side @ bent, border[:, None]], [border[None], -ones.sum()]])
    inverse = np.linalg.inv(system)
    duals = inverse[:, :n_yes].sum(axis=1)
    alpha, offset = duals[:n_yes], duals[n_yes]
    back = -bent @ alpha - offset * ones
    unseen = 1.0 - alpha / inverse.diagonal()[:n_yes]
    spread = float((kernel @ back + side.T @ alpha).std())
    return far @ alpha + far_back @ back + offset, unseen, spread


def _choose(trials: Sequence[_Trial], size: int) -> tuple[int, list[float], float]:
    """The ridge and the weights of directions with the best mean of AUC and average precision; and the gain by names.

    Names count only if they gain more than `LEAST_GAIN` points, and than the standard error of that (alone: two).
    """
    truth = np.column_stack([trial.truth for trial in trials])
    kinds = len(trials[0].named)

    def judge(base: int, weights: Sequence[float]) -> FloatArray:
        return _ranking(truth, np.column_stack([trial.scores(base, weights)[0] for trial in trials]))

    bases = range(len(_BASES)) if size else range(1)
    alone = {base: judge(base, [0.0] * kinds) for base in bases}
    if not size:
        alone = {0: _any_order(truth)}
    start = max(bases, key=lambda base: float(points(alone[base].mean())))
    best, given, values = start, [0.0] * kinds, alone[start]
    for kind in range(kinds):
        tried = [
            (base, [*given[:kind], weight, *given[kind + 1 :]])
            for base in (bases if kind == 0 else (best,)) for weight in WEIGHTS
        ]  # fmt: skip
        judged = [judge(*one) for one in tried]
        top = max(range(len(tried)), key=lambda at: float(points(judged[at].mean())))
        gain = judged[top] - values
        errors = 1.0 if size else 2.0  # a name alone has nothing else behind it, and a label may be drawn twice
        if float(gain.mean()) > max(LEAST_GAIN, errors * float(gain.std(ddof=1)) / np.sqrt(len(gain))):
            (best, given), values = tried[top], judged[top]
    return best, given, float(points(values.mean() - alone[start].mean()))


def _ranking(truth: FloatArray, scores: FloatArray) -> FloatArray:
    """The mean of AUC and average precision of each column, in percent, (k,)."""
    order = np.argsort(-scores, axis=0, kind="stable")
    ranked = np.take_along_axis(truth, order, axis=0)
    hits, rank = np.cumsum(ranked, axis=0), np.arange(1, len(truth) + 1)[:, None]
    yes = hits[-1]
    auc = 1.0 - (ranked * (rank - hits)).sum(axis=0) / (yes * (len(truth) - yes))
    return 50.0 * (auc + (ranked * hits / rank).sum(axis=0) / yes)


def _any_order(truth: FloatArray) -> FloatArray:
    """The mean of `_ranking` over all orders: at rank r the precision of a yes is ``(1 + (r - 1) q) / r``."""
    n_rows = len(truth)
    q = (truth.sum(axis=0) - 1.0) / max(n_rows - 1, 1)
    harmonic = (1.0 / np.arange(1, n_rows + 1)).sum()
    return 50.0 * (0.5 + (harmonic + q * (n_rows - harmonic)) / n_rows)


_PRIOR = np.array([1.0, 1.0, 1.0, 0.5])  # deviations around the default coefficients


def _calibrate(judged: Sequence[tuple[FloatArray, FloatArray, FloatArray]], default: Calibration) -> Calibration:
    """Fit the common coefficients, and the deviation between labels, to (truth, scores, unseen yes scores) of each."""
    rows, answers, sizes = [], [], []
    for truth, scores, yes in judged:
        features = _features(scores, np.sort(scores), yes)
        upper = features[:, 3] < _TAIL
        rows.append(features[upper])
        answers.append(truth[upper])
        sizes.append(np.full(int(upper.sum()), max(float(truth.sum()), 1.0) ** -0.5))
    F, y, w = np.vstack(rows), np.concatenate(answers), np.concatenate(sizes)
    if not y.any():
        return default
    w *= 4.0 * len(judged) / float(w.sum() * y.mean())  # as much evidence as four yes a label
    prior = np.array(default.coefficients)

    def loss(at: FloatArray) -> float:
        margin = F @ at
        return float(w @ (np.logaddexp(0.0, margin) - y * margin) + 0.5 * np.square((at - prior) / _PRIOR).sum())

    found, value = prior.copy(), loss(prior)
    for _ in range(50):
        chance = expit(F @ found)
        slope = F.T @ (w * (y - chance)) - (found - prior) / _PRIOR**2
        curve = (F * (w * chance * (1.0 - chance))[:, None]).T @ F + np.diag(_PRIOR**-2)
        step = np.linalg.solve(curve, slope)
        while (tried := loss(found + step)) > value and np.abs(step).max() > 1e-9:
            step = 0.5 * step
        found, value = found + step, min(tried, value)
        if np.abs(step).max() < 1e-7:
            break
    return Calibration(tuple(found.tolist()), _deviation(rows, answers, found))


def _deviation(rows: Sequence[FloatArray], answers: Sequence[FloatArray], coefficients: FloatArray) -> float:
    """The standard deviation of u over labels, by expectation-maximisation with Laplace's approximation."""
    deviation = 1.0
    for _ in range(15):
        one = Calibration((0.0, 0.0, 0.0, 0.0), deviation)
        moments = [one.updated(F @ coefficients, y) for F, y in zip(rows, answers, strict=True)]
        deviation = float(np.sqrt(np.mean([mean**2 + sd**2 for mean, sd in moments])))
    return float(np.clip(deviation, 0.3, 4.0))


def found_recipe(state: ModelState, n_yes: int, directions: Directions | None, seed: int) -> FoundRecipe:
    """The recipe for so many yes: that of trials, run when it is first asked for; a default without `fit`'s rows."""
    size, memory = size_class(n_yes), state.memory
    version = "" if directions is None else directions.version
    if memory is None:
        recipe = DEFAULTS[size]
        return recipe if version else replace(recipe, weights=())
    if (size, version) not in memory.found:
        weights, intercept = state.fitted_classifiers()
        names = [state.names[number] for number in range(state.n_fitted)]
        memory.found[size, version] = run_found_trials(memory, weights, intercept, size, names, directions, seed)
    return memory.found[size, version]


def directions_of(state: ModelState, directions: Directions, texts: Sequence[str]) -> FloatArray:
    """The directions (kinds, d, n) of names, with the labels of `fit` as those that are known."""
    known = np.arange(min(state.n_fitted, MOST_KNOWN))
    return directions(texts, [state.names[number] for number in known.tolist()], state.classifiers.weights(known))


# --- one label


@dataclass(frozen=True, eq=False)
class Judgement:
    """What is known about a label's scores on a pool.

    pool : (n,) scores of rows that it was not learned from, or without them;   log_odds : (n,) of yes there
    mean, deviation : of the label's own u
    """

    pool: FloatArray
    log_odds: FloatArray
    mean: float
    deviation: float
    n_asked: int = 0

    @classmethod
    def of(
        cls,
        calibration: Calibration,
        pool: FloatArray,
        yes: FloatArray,
        asked: FloatArray,
        answers: FloatArray,
        share: float = 1.0,
    ) -> Judgement:
        """Judge a label by scores of the pool, of its yes examples, and of texts that were asked (all unseen).

        Questions take the likeliest texts out of the pool. As they belong to it they are counted: ``share`` of them,
        drawn at random, as ``pool`` is such a share of the texts that were not asked. What they were answered counts
        in u only: the estimate is about texts like these, not about these.
        """
        stay = np.random.default_rng(0).random(len(asked)) < share
        whole = np.concatenate((pool, asked[stay]))
        log_odds, order = calibration.log_odds(whole, whole, yes), np.argsort(whole, kind="stable")
        log_odds[order] = np.maximum.accumulate(log_odds[order])  # a higher score is never less likely
        mean, deviation = 0.0, calibration.deviation
        if asked.size:
            mean, deviation = calibration.updated(calibration.log_odds(asked, whole, yes), answers)
        return cls(whole, log_odds, mean, deviation, len(asked))

    @property
    def chances(self) -> FloatArray:
        """The probability of yes of each text of the pool."""
        return np.asarray(np.mean([expit(self.log_odds + u) for u in self._draws()], axis=0))

    def threshold(self, precision: float | None = None) -> float:
        """The score with the best expected F1 on the pool; or the lowest with at least this expected precision.

        No label says yes to more than half of the pool. Where nothing can be told apart it says it to nothing.
        """
        order = np.argsort(-self.pool, kind="stable")
        ranked, count = self.pool[order], np.arange(1, len(order) + 1)
        hits = np.cumsum([expit(self.log_odds[order] + u) for u in self._draws()], axis=1)
        below = np.append(ranked[1:], ranked[-1] - 1e-9)
        able = (ranked > below) & (count <= 0.5 * len(order))  # a threshold cannot part equal scores
        if precision is not None:
            able &= (hits / count).mean(axis=0) >= precision
        if not able.any():
            return float(np.nextafter(ranked[0], np.inf))
        value = (2.0 * hits / (count + hits[:, -1:])).mean(axis=0)
        best = int(np.where(able, value, -1.0).argmax()) if precision is None else int(np.flatnonzero(able)[-1])
        return float(0.5 * (ranked[best] + below[best]))

    def estimate(self, threshold: float) -> Estimate:
        """How good the label is at a threshold, with 90 % intervals."""
        order = np.argsort(-self.pool, kind="stable")
        n_said, rank = int((self.pool > threshold).sum()), np.arange(1, len(order) + 1)
        chances = expit(self.log_odds[order] + self._draws(N_SIMULATED)[:, None])
        truth = np.random.default_rng(0).random(chances.shape) < chances  # what the answers might be
        hits = np.cumsum(truth, axis=1)
        total = np.maximum(hits[:, -1], 1)
        simulated = (
            hits[:, n_said - 1] / n_said if n_said else np.full(N_SIMULATED, np.nan),
            hits[:, n_said - 1] / total if n_said else np.zeros(N_SIMULATED),
            (truth * hits / rank).sum(axis=1) / total,
            hits[:, -1] / len(order),
        )
        precision, recall, average_precision, rate = map(_interval, simulated)
        fires = n_said / len(order)
        return Estimate(precision, recall, average_precision, rate, fires, len(order), self.n_asked)

    def _draws(self, n: int = 40) -> FloatArray:
        """Equally likely values of u."""
        return self.mean + self.deviation * np.asarray(ndtri((np.arange(n) + 0.5) / n))


def _interval(values: FloatArray) -> tuple[float, float, float]:
    """The mean, and the quantiles of a 90 % interval."""
    low, high = np.quantile(values, (0.05, 0.95)).tolist()
    return float(values.mean()), low, high


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

    @classmethod
    def of(cls, X: CSR | FloatArray, seed: int) -> Pool:
        """Part rows into background and rest: 400 and 2,000 at most, drawn at random; a small pool is halved."""
        order = np.random.default_rng(seed).permutation(int(X.shape[0]))
        n_back = min(BACKGROUND, len(order) // 2)
        rest = np.sort(order[n_back : n_back + MOST_JUDGED])
        return cls(X[np.sort(order[:n_back])], X[rest], len(rest) / len(order))


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
        share, basis = recipe.share, None
        if share:
            basis = sketch(state.fitted_classifiers()[0]) if state.basis is None else state.basis
        ridge = make_ridge(rows, beta, basis=basis, share=share, centre=True)
        past = None if parameters.lam is None else past_answers(parameters, state, rows, None, False, labels)
        answers = labels.toarray().astype(np.float64)
        arrival = learn_arrival(rows, ridge, answers, past, LAM, anchored=False, labels=labels)
        weights, intercept, unseen = arrival.weights[:, 0], float(arrival.intercept[0]), arrival.judged_scores[:, 0]
        codes, spread = arrival.codes, max(float(unseen[n_given:].std()), np.finfo(np.float64).tiny)
    if named is not None and any(recipe.weights):
        given = name_direction(named, recipe.weights, pool.background, spread)
        mean = float(np.asarray(pool.background @ given).mean())
        weights, intercept = weights + given, intercept - mean
        unseen = unseen + np.asarray(rows @ given) - mean
    scores = np.asarray(pool.rest @ weights) + intercept
    found = yes & ~examples.asked
    chosen = unseen[:n_given][found if found.any() else yes]
    asked = examples.asked
    answered = unseen[:n_given][asked], yes[asked].astype(np.float64)
    judgement = Judgement.of(recipe.calibration, scores, chosen, *answered, pool.share)
    scale, shift = _common_scale(judgement, state.loss)
    judgement = replace(judgement, pool=scale * judgement.pool + shift)
    threshold = judgement.threshold() if parameters.threshold == "f1" else float(parameters.threshold)
    slope, offset = sigmoid_of_chances(judgement.pool, judgement.chances)
    report = LabelReport(
        name, n_rows, int(yes.sum()), share, LAM, False, beta, int(codes.nnz), loss=state.loss,
        estimate=judgement.estimate(threshold),
    )  # fmt: skip
    decisions = Decisions(np.array([threshold]), np.array([slope]), np.array([offset]))
    batch = LabelBatch(
        (name,), scale * weights[:, None], np.array([scale * intercept + shift]), decisions, (report,), codes
    )
    return batch, judgement


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
    energy = float(centred @ centred)
    scale = float(centred @ chances) / energy if energy > 0 else 1.0
    scale = scale if scale > 0 else 1.0
    return scale, float(chances.mean() - scale * scores.mean())


def stack(first: Any, second: Any) -> CSR | FloatArray:
    """Stack two matrices of rows, dense if both are."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.vstack((first, second))
    return sparse.csr_array(sparse.vstack((sparse.csr_array(first), sparse.csr_array(second)), format="csr"))
