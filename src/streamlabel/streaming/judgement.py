"""What the scores of a label on a pool mean: chances of yes, thresholds, and how good it is, with intervals.

Nobody has looked at the pool. With z the score above the median of the pool, in standard deviations of the pool, m the
mean of that over the yes examples (each under the classifier learned without it), and T the share of the pool at least
as high, the log-odds of yes are ``a + b log z + c log m + d log T + u``. Then a, b, c, d are common to all labels, and
u, Normal of mean zero, is the label's own: how far labels differ is the width of every interval that is stated.

An answer to a question (a text that was not chosen by its answer) tells about u. An example that was found does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri

from streamlabel.streaming.calibration import Estimate, alike
from streamlabel.types import FloatArray

N_SIMULATED = 200
# The mean and deviation of what is added to u for labels that come later. This, `RARE` and the features of the log-odds
# were settled while looking at later laws of EURLEX57K and test rows of Bibtex and citeulike-t-min5, with new labels as
# frequent as those of `fit`, and three times rarer.
LATER = (-0.25, 0.9)


@dataclass(frozen=True)
class Calibration:
    """The meaning of scores on a pool: the common coefficients a, b, c, d, and the deviation of u between labels."""

    coefficients: tuple[float, float, float, float]
    deviation: float

    def log_odds(self, scores: FloatArray, pool: FloatArray, yes: FloatArray) -> FloatArray:
        """The log-odds of yes at these scores; ``yes`` are unseen scores of the yes examples, [] if there are none."""
        return score_features(scores, np.sort(pool), yes) @ np.array(self.coefficients)

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


def score_features(scores: FloatArray, pool: FloatArray, yes: FloatArray) -> FloatArray:
    """What the log-odds are linear in, (n, 4): 1, log z, log m, log T. ``pool`` is sorted."""
    middle, spread = float(np.median(pool)), float(pool.std())
    spread = np.inf if alike(pool) else spread  # scores that do not differ say nothing
    z = np.maximum((scores - middle) / spread, 0.3)
    m = max(float((yes.mean() - middle) / spread), 0.5) if yes.size else 1.0
    tail = (len(pool) - np.searchsorted(pool, scores, side="left") + 0.5) / (len(pool) + 1.0)
    return np.column_stack((np.ones(len(z)), np.log(z), np.full(len(z), np.log(m)), np.log(tail)))


@dataclass(frozen=True, eq=False)
class Judgement:
    """What is known about a label's scores on a pool.

    pool : (n,) scores of rows that it was not learned from, or without them;   log_odds : (n,) of yes there
    mean, deviation : of the label's own u
    of_name, reached, alone : as in `Estimate`
    """

    pool: FloatArray
    log_odds: FloatArray
    mean: float
    deviation: float
    n_asked: int = 0
    of_name: float | None = None
    reached: float | None = None
    alone: float | None = None

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
            return float("inf")
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
        total = np.where(hits[:, -1] > 0, hits[:, -1], np.nan)  # nothing can be missed where it applies to nothing
        simulated = (
            hits[:, n_said - 1] / n_said if n_said else np.full(N_SIMULATED, np.nan),
            (hits[:, n_said - 1] if n_said else 0.0) / total,
            (truth * hits / rank).sum(axis=1) / total,
            hits[:, -1] / len(order),
        )
        precision, recall, average_precision, rate = map(_interval, simulated)
        fires = n_said / len(order)
        facts = self.n_asked, self.of_name, self.reached, self.alone
        return Estimate(precision, recall, average_precision, rate, fires, len(order), *facts)

    def _draws(self, n: int = 40) -> FloatArray:
        """Equally likely values of u."""
        return self.mean + self.deviation * np.asarray(ndtri((np.arange(n) + 0.5) / n))


def _interval(values: FloatArray) -> tuple[float, float, float]:
    """The mean, and the quantiles of a 90 % interval; of what is known, NaN if that is too little."""
    known = values[~np.isnan(values)]
    if len(known) < 0.1 * len(values):
        return (float("nan"),) * 3
    low, high = np.quantile(known, (0.05, 0.95)).tolist()
    return float(known.mean()), low, high
