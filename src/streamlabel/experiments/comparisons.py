"""The learner against a competitor, over the seeds that both were run on: won, tied or lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

__all__ = [
    "FEWEST_PAIRS",
    "LEAST",
    "LEVEL",
    "LOSES",
    "TIES",
    "UNDECIDED",
    "WINS",
    "Comparison",
    "mean_and_error",
    "paired",
    "unpaired",
]

LEVEL, LEAST = 0.95, 0.1  # of the two-sided t interval, and points: what lies closer than either is a tie
FEWEST_PAIRS = 4  # with fewer the interval is so wide that a tie would only mean too few runs
WINS, TIES, LOSES, UNDECIDED = "wins", "ties", "loses", "undecided"


@dataclass(frozen=True)
class Comparison:
    """One measure at one place of an experiment.

    where : what else was fixed: "100 rows", "batches of 15"
    gain : how much better the learner is, in points, whichever way the measure points; a mean, over seeds as a rule
    error : standard error of the gain; None for a single run, which decides nothing
    freedom : degrees of freedom of the error; for n pairs n - 1
    n_rows : annotated rows a new label; None where all training rows are annotated
    quick : of runs whose hyper-parameters were not chosen; such are shown and not counted
    counted : no where the measure is not fair to the competitor; it is then shown only
    """

    dataset: str
    where: str
    measure: str
    competitor: str
    gain: float
    error: float | None
    freedom: float
    n_rows: int | None = None
    quick: bool = False
    counted: bool = True

    @property
    def verdict(self) -> str:
        """Wins, ties or loses; undecided with too few pairs. A gain below a tenth of a point is a tie however sure."""
        if self.error is None or self.freedom < FEWEST_PAIRS - 1:
            return UNDECIDED
        if abs(self.gain) <= max(float(stdtrit(self.freedom, (1 + LEVEL) / 2)) * self.error, LEAST):
            return TIES
        return WINS if self.gain > 0 else LOSES


def mean_and_error(values: ArrayLike) -> tuple[float, float | None]:
    """The mean and its standard error (None for a single value)."""
    found = np.asarray(values, dtype=np.float64)
    error = float(found.std(ddof=1) / np.sqrt(found.size)) if found.size > 1 else None
    return float(found.mean()), error


def paired(gains: ArrayLike) -> tuple[float, float | None, float]:
    """Mean, error and degrees of freedom of differences between pairs."""
    found = np.asarray(gains, dtype=np.float64)
    return *mean_and_error(found), float(found.size - 1)


def unpaired(ours: ArrayLike, theirs: ArrayLike) -> tuple[float, float | None, float]:
    """The same for runs that do not belong together, of equal or unequal spread (Welch).

    A single value counts as one that does not vary; two of them decide nothing.
    """
    sides = [np.asarray(values, dtype=np.float64) for values in (ours, theirs)]
    gain = float(sides[0].mean() - sides[1].mean())
    parts = [(values.var(ddof=1) / values.size, values.size - 1) for values in sides if values.size > 1]
    if not parts:
        return gain, None, 0.0
    variance = sum(part for part, _ in parts)
    weight = sum(part**2 / freedom for part, freedom in parts)
    freedom = variance**2 / weight if weight else sum(freedom for _, freedom in parts)
    return gain, float(np.sqrt(variance)), float(freedom)
