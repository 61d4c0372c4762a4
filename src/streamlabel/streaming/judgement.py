"""What the scores of a label on a pool mean: chances of yes, thresholds, and how good it is, with intervals.

Nobody has looked at the pool. With z the score above the median of the pool, in standard deviations of the pool, m the
mean of that over the yes examples (each under the classifier learned without it), and T the share of the pool at least
as high, the log-odds of yes are ``a + b log z + c log m + d log T + u``. Then a, b, c, d are common to all labels, and
u, Normal of mean zero, is the label's own: how far labels differ is the width of every interval that is stated. In the
lower part of a pool, where nobody looks and yes is rare, another Normal number of the label is added: what a label
misses there can hardly be told from its scores.

An answer to a question (a text that was not chosen by its answer) tells about u. An example that was found does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri

from streamlabel.streaming.calibration import WANTED, Estimate, alike
from streamlabel.types import FloatArray

N_SIMULATED = 200
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)  # its multiples, modulo 1, are spread evenly
# The mean and deviation of what is added to u for labels that come later; the deviation counts in the lower part, too.
# This, `RARE`, the features of the log-odds and that there is a lower part were settled while looking at later laws of
# EURLEX57K and test rows of Bibtex and citeulike-t-min5, with new labels as frequent as those of `fit`, and three times
# rarer.
LATER = (-0.25, 0.9)
LOWER = np.log(0.2)  # log T from which on a score belongs to the lower part of its pool


@dataclass(frozen=True)
class Calibration:
    """The meaning of scores on a pool: the common coefficients a, b, c, d, and the deviation of u between labels.

    lower : mean and deviation of what is added in the lower part of a pool
    """

    coefficients: tuple[float, float, float, float]
    deviation: float
    lower: tuple[float, float] = (0.0, 0.0)

    def log_odds(self, scores: FloatArray, pool: FloatArray, yes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The log-odds of yes at these scores, (n,), and the most that they can be: in the lower part that of its edge.

        ``yes`` are unseen scores of the yes examples, [] if there are none.
        """
        ranked, given = np.sort(pool), np.array(self.coefficients)
        features, edge = score_features(scores, ranked, yes), score_features(ranked, ranked, yes)
        edge = edge[edge[:, 3] < LOWER]
        lower, found = features[:, 3] >= LOWER, features @ given
        most = np.where(lower, float(edge[0] @ given) if len(edge) else 0.0, np.inf)
        return np.minimum(found + self.lower[0] * lower, most), most

    def of_later_labels(self) -> Calibration:
        """The same for labels that are not of `fit`: rarer as a rule, and not known to be like these (`LATER`)."""
        (shift, deviation), (a, b, c, d), (mean, missed) = LATER, self.coefficients, self.lower
        wide, missed = np.hypot((self.deviation, missed), deviation).tolist()
        return Calibration((a + shift, b, c, d), wide, (mean, missed))

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
    most : (n,), what log-odds cannot pass before u is added: finite in the lower part;   missed : the deviation there
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
    most: FloatArray | float = np.inf
    missed: float = 0.0

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
        evenly by score, as ``pool`` is such a share of the texts that were not asked. What they were answered counts
        in u only: the estimate is about texts like these, not about these.
        """
        stay = np.diff(np.floor(share * np.arange(len(asked) + 1) + 0.5)) > 0
        whole = np.concatenate((pool, np.sort(asked)[::-1][stay]))
        (log_odds, most), order = calibration.log_odds(whole, whole, yes), np.argsort(whole, kind="stable")
        log_odds[order] = np.maximum.accumulate(log_odds[order])  # a higher score is never less likely
        mean, deviation = 0.0, calibration.deviation
        if asked.size:
            mean, deviation = calibration.updated(calibration.log_odds(asked, whole, yes)[0], answers)
        return cls(whole, log_odds, mean, deviation, len(asked), most=most, missed=calibration.lower[1])

    @property
    def chances(self) -> FloatArray:
        """The probability of yes of each text of the pool."""
        return np.asarray(self._draws().mean(axis=0))

    def threshold(self, precision: float | None = None) -> float:
        """The score with the best expected F1 on the pool; or the lowest with at least this expected precision.

        No label says yes to more than half of the pool. Where nothing can be told apart it says it to nothing.
        """
        order = np.argsort(-self.pool, kind="stable")
        ranked, count = self.pool[order], np.arange(1, len(order) + 1)
        hits = np.cumsum(self._draws()[:, order], axis=1)
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
        chances = self._draws(N_SIMULATED)[:, order]
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
        facts = self.n_asked, self.of_name, self.reached, self.alone, self._raised(threshold)
        return Estimate(precision, recall, average_precision, rate, fires, len(order), *facts)

    def _raised(self, threshold: float) -> tuple[float, float, float] | None:
        value, chances = self.threshold(WANTED), self.chances
        fires = self.pool > value
        if not threshold < value < np.inf or not fires.any():
            return None
        return value, float(chances[fires].mean()), float(chances[fires].sum() / chances.sum())

    def _draws(self, n: int = 40) -> FloatArray:
        """Equally likely chances of yes on the pool, (n, pool): quantiles of u, and shuffled ones of what is missed."""
        place = np.arange(n) + 0.5
        u, v = self.mean + self.deviation * ndtri(place / n), self.missed * ndtri(place * _GOLDEN % 1.0)
        lower = np.isfinite(self.most)
        return np.asarray(expit(np.minimum(self.log_odds + v[:, None] * lower, self.most) + u[:, None]))


def _interval(values: FloatArray) -> tuple[float, float, float]:
    """The mean, and the quantiles of a 90 % interval; of what is known, NaN if that is too little."""
    known = values[~np.isnan(values)]
    if len(known) < 0.1 * len(values):
        return (float("nan"),) * 3
    low, high = np.quantile(known, (0.05, 0.95)).tolist()
    return float(known.mean()), low, high
