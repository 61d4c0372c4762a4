"""Trials of found examples: known labels arrive as if they were new, from a few yes, and choose how that is done.

Some labels of `fit` are hidden, learned again from as few yes and a background that stands for no, and judged on rows
where their answers are known. These trials choose

- how the ridge is made: its strength, and the share of the past classifiers' metric (`classifier.ridge`);
- how much a name is worth: its directions in feature space are added, in units of the spread of the label's own scores;
- what a score says (`streaming.judgement`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import linalg
from scipy.special import expit

from streamlabel.stats.spectral import dense
from streamlabel.stats.ties import points
from streamlabel.streaming.judgement import LOWER, Calibration, score_features
from streamlabel.streaming.kept_rows import FitMemory
from streamlabel.streaming.trials import LEAST_GAIN, LOGGER, SAYS
from streamlabel.types import FloatArray, IntArray

SIZES = (0, 1, 2, 5, 10, 20, 50)  # numbers of yes that are tried
BACKGROUND = 400  # rows of the pool that stand for no
SHARES, STRENGTHS, WEIGHTS = (0.0, 0.1, 0.3, 0.6), (3.0, 10.0, 30.0), (0.25, 0.5, 1.0, 2.0)
N_HIDDEN, N_DRAWS, LEAST_TRIALS, LEAST_POOL = 48, 2, 8, 50
# Texts that a label has if somebody makes it: where there are enough such labels, rarer ones are not hidden. Settled
# after later laws had been looked at, with a model of 1,683 labels.
WORTH = 10
RARE = 0.5  # labels are hidden with a chance of their count to the power of minus this: new ones are mostly rare


class Directions(Protocol):
    """What reads names: it gives every name directions in the model's feature space.

    version : says which reader it is, and of which version; a recipe is of use for one reader only
    """

    version: str

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """Directions (kinds, d, n) of n names; zero where it knows nothing about one."""
        ...


@dataclass(frozen=True)
class FoundRecipe:
    """The recipe by which labels of so many found yes are learned, as the trials chose it.

    share, strength : of the ridge;   weights : of each kind of direction that a name has, () for none
    gain : what names add in the trials, in points (the mean of AUC and average precision); 0 where they are refused
    reached, alone : that mean in the trials, by this recipe, and by ridge without the past and the name
    n_trials : how many hidden labels it was chosen by; 0 for the defaults
    """

    n_yes: int
    share: float
    strength: float
    weights: tuple[float, ...]
    calibration: Calibration
    gain: float = 0.0
    n_trials: int = 0
    reached: float | None = None
    alone: float | None = None


# For models without rows: means of what trials find on the training rows of EURLEX57K, Bibtex and citeulike-t-min5.
DEFAULTS = {
    size: FoundRecipe(size, 0.0, 10.0, (weight,), Calibration(coefficients, deviation, (0.0, 1.2)))
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
    LOGGER.info(SAYS, f"about {size} yes" if size else "a name alone")
    trials: list[_Trial] = []
    for draw in range(N_DRAWS):
        rng = np.random.default_rng((seed, size, draw))
        trials += _draw(memory, weights, intercept, size, names, directions, left, rng)
    ranked = [trial for trial in trials if trial.truth.any()]
    if len(ranked) < LEAST_TRIALS:
        return default
    base, given, gain, reached, alone = _choose(ranked, size)
    judged = [(trial.truth, *trial.scores(base, given)) for trial in trials]
    calibration = _calibrate(judged, default.calibration)
    return FoundRecipe(
        size, *_BASES[base], tuple(given), calibration.of_later_labels(), gain, len(trials), reached, alone
    )


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
    common = able[n_here[able] >= WORTH]
    able = common if len(common) >= N_HIDDEN else able
    chance = n_here[able].astype(np.float64) ** -RARE
    n_hidden = min(N_HIDDEN, len(names) // 3, len(able))
    hidden = np.sort(rng.choice(able, n_hidden, replace=False, p=chance / chance.sum())) if n_hidden else able[:0]
    others = np.setdiff1d(np.arange(len(names)), hidden)
    if not hidden.size or not others.size:
        return []
    X, B, J = memory.X, memory.X[back], memory.judged_X
    named: FloatArray = np.empty((0, len(weights), len(hidden)))
    if directions is not None:
        named = directions([names[j] for j in hidden])
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


def _choose(trials: Sequence[_Trial], size: int) -> tuple[int, list[float], float, float, float]:
    """The ridge and the weights of directions with the best mean of AUC and average precision; and the gain by names.

    Also that mean, and the best without names and without the past.

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
    plain = max(float(alone[base].mean()) for base in alone if not _BASES[base][0])
    gained, reached, plain = points(np.array([values.mean() - alone[start].mean(), values.mean(), plain])).tolist()
    return best, given, gained, reached, plain


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
    rows, answers, sizes, lower = [], [], [], []
    for truth, scores, yes in judged:
        features = score_features(scores, np.sort(scores), yes)
        upper = features[:, 3] < LOWER
        rows.append(features[upper])
        answers.append(truth[upper])
        sizes.append(np.full(int(upper.sum()), max(float(truth.sum()), 1.0) ** -0.5))
        lower.append((features[~upper], float(truth[~upper].sum())))
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
    deviation = 1.0  # of u over labels, by expectation-maximisation with Laplace's approximation
    for _ in range(15):
        one = Calibration((0.0, 0.0, 0.0, 0.0), deviation)
        moments = [one.updated(part @ found, part_y) for part, part_y in zip(rows, answers, strict=True)]
        deviation = float(np.sqrt(np.mean([mean**2 + sd**2 for mean, sd in moments])))
    expected = [float(expit(part @ found + u).sum()) for (part, _), (u, _) in zip(lower, moments, strict=True)]
    missed = np.log([(count + 0.5) / (most + 0.5) for (_, count), most in zip(lower, expected, strict=True)])
    below = float(missed.mean()), float(np.clip(missed.std(), 0.5, 3.0))
    return Calibration(tuple(found.tolist()), float(np.clip(deviation, 0.3, 4.0)), below)
