"""The learner against a competitor, over the seeds that both were run on: won, tied or lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["ERRORS", "LEAST", "LOSES", "TIES", "UNDECIDED", "WINS", "Comparison", "mean_and_error"]

ERRORS, LEAST = 2.0, 0.1  # standard errors, and points: what lies closer than either is a tie
WINS, TIES, LOSES, UNDECIDED = "wins", "ties", "loses", "undecided"


@dataclass(frozen=True)
class Comparison:
    """One measure at one place of an experiment.

    where : what else was fixed: "100 rows", "batches of 15"
    gain : how much better the learner is, in points, whichever way the measure points; mean over seeds
    error : standard error of the gain over seeds; None with one seed, which decides nothing
    """

    dataset: str
    where: str
    measure: str
    competitor: str
    gain: float
    error: float | None

    @property
    def verdict(self) -> str:
        """Wins, ties or loses; undecided with one seed. A gain below a tenth of a point is a tie however sure it is."""
        if self.error is None:
            return UNDECIDED
        if abs(self.gain) <= max(ERRORS * self.error, LEAST):
            return TIES
        return WINS if self.gain > 0 else LOSES


def mean_and_error(values: ArrayLike) -> tuple[float, float | None]:
    """The mean and its standard error (None for a single value)."""
    found = np.asarray(values, dtype=np.float64)
    error = float(found.std(ddof=1) / np.sqrt(found.size)) if found.size > 1 else None
    return float(found.mean()), error
