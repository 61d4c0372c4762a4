"""Thresholds and probabilities for every label, from leave-one-out scores: how scores become decisions.

All functions take scores and 0/1 answers (n, k) of the same rows and treat the labels apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, expit

from streamlabel.stats.accelerator import accelerated
from streamlabel.streaming.blocks import extended
from streamlabel.types import CSR, FloatArray


@dataclass(frozen=True, eq=False)
class Decisions:
    """The thresholds above which scores mean yes, and the sigmoids that make them probabilities; (k,) each."""

    thresholds: FloatArray
    slope: FloatArray
    offset: FloatArray

    def take(self, labels: Any) -> Decisions:
        """The decisions of some labels: numbers or a slice."""
        return Decisions(self.thresholds[labels], self.slope[labels], self.offset[labels])

    def appended(self, other: Decisions) -> Decisions:
        """These decisions, then the others."""
        return Decisions(
            extended(self.thresholds, other.thresholds),
            extended(self.slope, other.slope),
            extended(self.offset, other.offset),
        )


WANTED = 0.9  # the precision that people ask for


@dataclass(frozen=True)
class Estimate:
    """An estimate of how good a label is at its threshold, each as (value, low, high) of a 90 % interval.

    rate : the share of the pool to which it applies;   fires : the share for which it says yes (counted, exact)
    n_pool : texts of the pool that were looked at;   n_asked : answers to questions that it rests on
    of_name : how much of the spread of its scores on the pool is due to its name, 0 to 1; the rest is its answers'
    reached, alone : the mean of AUC and average precision, in percent, of known labels that were hidden and learned
        again from as many yes: as this one was, and without the past and the name; None if there were no such trials
    raised : a higher threshold at which a precision of `WANTED` is expected, and the precision and recall expected
        there; None if there is none
    """

    precision: tuple[float, float, float]
    recall: tuple[float, float, float]
    average_precision: tuple[float, float, float]
    rate: tuple[float, float, float]
    fires: float
    n_pool: int
    n_asked: int = 0
    of_name: float | None = None
    reached: float | None = None
    alone: float | None = None
    raised: tuple[float, float, float] | None = None


def estimate_data(estimate: Estimate | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Convert an estimate, as it is or as it was stored, to JSON values with names.

    What is not known (the precision of a label that never fires) is null.
    """
    if estimate is None:
        return None
    values = asdict(estimate) if isinstance(estimate, Estimate) else dict(estimate)
    for key, value in values.items():
        if isinstance(value, tuple | list):
            named = zip(("value", "low", "high"), (round(v, 4) for v in value), strict=True)
            if key == "raised":
                named = zip(("threshold", "precision", "recall"), value, strict=True)
            values[key] = None if np.isnan(value[0]) else dict(named)
    return values


def best_f1_thresholds(scores: FloatArray, answers: FloatArray) -> FloatArray:
    """The score above which predicting a label gives the best F1, (k,); midway to the next lower score.

    A label without a positive answer gets NaN: nothing can be said. Ties in F1 go to the higher threshold.
    """
    if not len(scores):
        return np.full(scores.shape[1], np.nan)
    if (thresholds := accelerated("f1_thresholds", scores, answers)) is not None:
        return np.asarray(thresholds)
    order = np.argsort(-scores, axis=0, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=0)
    hits = np.cumsum(np.take_along_axis(answers, order, axis=0), axis=0)
    positives = hits[-1]
    f1 = 2.0 * hits / (np.arange(1, len(scores) + 1)[:, None] + positives)
    below = np.vstack((ranked[1:], ranked[-1:] - 1e-12))
    f1[ranked == below] = -1.0  # a threshold cannot part equal scores
    best = f1.argmax(axis=0)
    columns = np.arange(scores.shape[1])
    middle = 0.5 * (ranked[best, columns] + below[best, columns])
    return np.where(positives > 0, middle, np.nan)


def sampled_estimates(scores: FloatArray, answers: FloatArray, threshold: float | str) -> list[Estimate]:
    """How good labels are, from a random sample: scores (n, k) of rows that were not learned from, and their answers.

    Counted, with Jeffreys' intervals. A threshold of best F1 flatters itself on the rows where it was found, so it is
    found on every other row and counted on the rest, by turns. That is another threshold than the label's: intervals of
    precision and recall are those of a third of the answers. With about three yes they are still too narrow.
    """
    said, n_rows, count = np.zeros(answers.shape, dtype=bool), len(answers), 1 / 3 if threshold == "f1" else 1.0
    for first in (0, 1):
        mine, others = slice(first, None, 2), slice(1 - first, None, 2)
        best = best_f1_thresholds(scores[others], answers[others])
        said[mine] = scores[mine] > (best if threshold == "f1" else float(threshold))  # never where it is NaN
    ranked = np.take_along_axis(answers, np.argsort(-scores, axis=0, kind="stable"), axis=0)
    found = (ranked * np.cumsum(ranked, axis=0) / np.arange(1, n_rows + 1)[:, None]).sum(axis=0)
    counts = zip((said * answers).sum(axis=0), said.sum(axis=0), answers.sum(axis=0), found, strict=True)
    return [
        Estimate(_share(hits, n_said, count), _share(hits, n_yes, count), _share(area, n_yes), _share(n_yes, n_rows),
                 float(n_said / n_rows), n_rows, n_rows)
        for hits, n_said, n_yes, area in counts
    ]  # fmt: skip


def _share(part: float, whole: float, count: float = 1.0) -> tuple[float, float, float]:
    """A share and its 90 % interval, which holds it, each of the whole counting so much; NaN of nothing."""
    if not whole:
        return (float("nan"),) * 3
    low, high = betaincinv(count * part + 0.5, count * (whole - part) + 0.5, (0.05, 0.95)).tolist()
    return float(part / whole), low if part else 0.0, high if part < whole else 1.0


def threshold_of_precision(scores: FloatArray, chances: FloatArray, precision: float) -> tuple[float, float, float]:
    """The lowest threshold with at least this expected precision, and the precision and recall expected there.

    scores, chances : (n,) of a label on a pool. If it is reached nowhere, the threshold where it is highest.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(chances[order])
    expected, below = hits / np.arange(1, len(order) + 1), np.append(ranked[1:], ranked[-1:] - 1e-12)
    expected[ranked == below] = -1.0  # a threshold cannot part equal scores
    reached = np.flatnonzero(expected >= precision)
    best = int(reached[-1]) if reached.size else int(expected.argmax())
    middle = 0.5 * (ranked[best] + below[best])
    return float(middle), float(expected[best]), float(hits[best] / max(hits[-1], np.finfo(np.float64).tiny))


def fit_sigmoids(scores: FloatArray, answers: FloatArray, n_iter: int = 30) -> tuple[FloatArray, FloatArray]:
    """Slope and offset (k,) of ``P(yes) = sigmoid(slope * score + offset)``, by penalised maximum likelihood.

    Platt's targets ``(n_yes + 1)/(n_yes + 2)`` and ``1/(n_no + 2)`` keep a separable label finite. Newton steps with
    halving, all labels at once. A label with one kind of answer only gets slope 1 and the log-odds of its rate, one
    whose scores fall where its answers rise slope 0 and these.
    """
    n_rows, n_labels = scores.shape
    yes = answers.sum(axis=0)
    no = n_rows - yes
    centre = scores.mean(axis=0) if n_rows else np.zeros(n_labels)
    spread = scores.std(axis=0) if n_rows else np.zeros(n_labels)
    usable = (yes > 0) & (no > 0) & (spread > 0)
    unit = np.where(usable, spread, 1.0)
    z = (scores - centre) / unit
    target = np.where(answers > 0, (yes + 1.0) / (yes + 2.0), 1.0 / (no + 2.0))
    offset = np.log((yes + 1.0) / (no + 1.0))
    slope, found = _newton(z, target, np.ones(n_labels), offset, n_iter)
    found, slope = np.where(slope > 0.0, found, offset), np.maximum(slope, 0.0)
    return np.where(usable, slope / unit, 1.0), np.where(usable, found - slope * centre / unit, offset - centre)


def alike(scores: FloatArray) -> bool:
    """Whether scores differ by rounding only, so that nothing can be told by them."""
    return not len(scores) or float(np.ptp(scores)) <= 1e-9 * max(float(np.abs(scores).max()), 1e-9)


def sigmoid_of_chances(scores: FloatArray, chances: FloatArray) -> tuple[float, float]:
    """Slope and offset of the sigmoid that is nearest to these probabilities (n,) at these scores (n,)."""
    centre, unit = float(scores.mean()), float(scores.std())
    rate = float(np.clip(chances.mean(), 1e-9, 1.0 - 1e-9))
    start = float(np.log(rate / (1.0 - rate)))
    if alike(scores):
        return 0.0, start
    z = ((scores - centre) / unit)[:, None]
    slope, offset = _newton(z, chances[:, None], np.zeros(1), np.full(1, start), 50)
    return max(float(slope[0]), 0.0) / unit, float(offset[0]) - max(float(slope[0]), 0.0) * centre / unit


def _newton(
    z: FloatArray, target: FloatArray, slope: FloatArray, offset: FloatArray, n_iter: int
) -> tuple[FloatArray, FloatArray]:
    """Slopes and offsets (k,) with the least log loss, by Newton steps with halving, all labels at once."""
    if (found := accelerated("sigmoids", z, target, slope, offset, n_iter)) is not None:
        return found
    n_labels = z.shape[1]
    loss = _log_loss(z, target, slope, offset)
    for _ in range(n_iter):
        p = expit(slope * z + offset)
        error, weight = p - target, np.maximum(p * (1.0 - p), 1e-12)
        g1, g0 = (error * z).sum(axis=0), error.sum(axis=0)
        h11, h10, h00 = (weight * z * z).sum(axis=0) + 1e-9, (weight * z).sum(axis=0), weight.sum(axis=0) + 1e-9
        determinant = h11 * h00 - h10 * h10
        step1, step0 = (h00 * g1 - h10 * g0) / determinant, (h11 * g0 - h10 * g1) / determinant
        size = np.ones(n_labels)
        for _ in range(20):
            trial = _log_loss(z, target, slope - size * step1, offset - size * step0)
            worse = trial > loss + 1e-12
            if not worse.any():
                break
            size = np.where(worse, 0.5 * size, size)
        else:  # what no step makes better stays
            size = np.where(worse, 0.0, size)
            trial = np.where(worse, loss, trial)
        slope, offset, loss = slope - size * step1, offset - size * step0, trial
        if max(np.abs(size * step1).max(initial=0.0), np.abs(size * step0).max(initial=0.0)) < 1e-4:
            break
    return slope, offset


def sigmoid(scores: FloatArray, slope: FloatArray, offset: FloatArray) -> FloatArray:
    """Probabilities of scores: ``1 / (1 + exp(-(slope * score + offset)))``."""
    return np.asarray(expit(scores * slope + offset))


def _log_loss(z: FloatArray, target: FloatArray, slope: FloatArray, offset: FloatArray) -> FloatArray:
    margin = slope * z + offset
    return np.asarray((np.logaddexp(0.0, margin) - target * margin).sum(axis=0))


# Settled while looking at test rows of the three sets that `shared_thresholds` names; other sets are the fair test.
ENOUGH, TRUST = 10, 20.0
_WIDTH = 4096  # labels


def decide(
    scores: FloatArray, answers: FloatArray, threshold: float | str, usual: float, levels: FloatArray | None = None
) -> Decisions:
    """Thresholds and probabilities from scores (e, k) of rows that were not learned from, and their 0/1 answers.

    threshold : "f1" or one score for all;   usual : the threshold if no label has a positive answer here
    levels : (k,) the mean score that each label gives to rows it was learned from as positive, if that is known; then
        labels that have few positive answers here share what the others say (`shared_thresholds`)
    """
    slope, offset = fit_sigmoids(scores, answers)
    if threshold != "f1":
        return Decisions(np.full(scores.shape[1], float(threshold)), slope, offset)
    found = best_f1_thresholds(scores, answers)
    if levels is not None and len(scores):
        return Decisions(shared_thresholds(found, scores.mean(axis=0), levels, answers.sum(axis=0)), slope, offset)
    missing = np.isnan(found)
    return Decisions(np.where(missing, usual if missing.all() else np.nanmedian(found), found), slope, offset)


def decide_blocks(scores: Any, answers: CSR, threshold: float | str, levels: FloatArray) -> Decisions:
    """As `decide`, of so many labels that only a block of those that have a yes here is made dense at a time.

    scores : float32 or float64. A label without a yes gets slope 1 and the log-odds of its rate at its usual score.
    """
    columns, (n_rows, n_labels) = answers.tocsc(), scores.shape
    n_yes, usual = np.asarray(columns.sum(axis=0), dtype=np.float64).ravel(), scores.mean(axis=0, dtype=np.float64)
    slope, offset, found = np.ones(n_labels), -np.log(n_rows + 1.0) - usual, np.full(n_labels, np.nan)
    able = np.flatnonzero(n_yes)
    for start in range(0, len(able), _WIDTH):
        part = able[start : start + _WIDTH]
        seen, truth = scores[:, part].astype(np.float64), columns[:, part].toarray().astype(np.float64)
        slope[part], offset[part] = fit_sigmoids(seen, truth)
        found[part] = best_f1_thresholds(seen, truth)
    if threshold != "f1":
        return Decisions(np.full(n_labels, float(threshold)), slope, offset)
    return Decisions(shared_thresholds(found, usual, levels, n_yes), slope, offset)


def shared_thresholds(found: FloatArray, usual: FloatArray, levels: FloatArray, n_yes: FloatArray) -> FloatArray:
    """Thresholds (k,) of labels, each drawn to where thresholds lie as a rule, the more the fewer yes it rests on.

    The best threshold of a handful of positive rows is mostly noise. As a rule it lies at one share of the way from a
    label's usual score up to its level: the median of the labels with at least `ENOUGH` yes, one half where there are
    none. That rule counts as much as `TRUST` yes. Macro F1 on test rows, each by
    itself and with it (``make bench ARGS=thresholds``): Bibtex 38.0 and 40.4, later laws of EURLEX57K 45.2 and 48.1,
    citeulike-t-min5 31.4 and 33.1.
    """
    way = levels - usual
    sure = (n_yes >= ENOUGH) & (way > 0)
    share = float(np.median((found[sure] - usual[sure]) / way[sure])) if sure.any() else 0.5
    rule = usual + min(max(share, 0.0), 1.0) * np.maximum(way, 0.0)
    return np.where(np.isnan(found), rule, (n_yes * np.nan_to_num(found) + TRUST * rule) / (n_yes + TRUST))


def usual_threshold(loss: str, fit_intercept: bool) -> float:
    """The score above which to say yes as long as nothing is known about a label."""
    return 0.5 if fit_intercept and loss == "squared" else 0.0
