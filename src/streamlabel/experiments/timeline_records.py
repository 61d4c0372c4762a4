"""What one run of the timeline gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamlabel.experiments.records import Key

__all__ = [
    "ALWAYS_USED",
    "COMPARED",
    "EVER",
    "KEY",
    "LOGISTIC",
    "METHODS",
    "OWN_RIDGE",
    "WITH_PAST",
    "BirthRecord",
    "age_edges",
    "named",
]

WITH_PAST, OWN_RIDGE, LOGISTIC = "with the past", "own ridge", "logistic regression"
COMPARED = (WITH_PAST, OWN_RIDGE, LOGISTIC)
ALWAYS_USED = "past always used"  # the learner whose choice is switched off: a variant, which older records lack
METHODS = (*COMPARED, ALWAYS_USED)
EVER = 0  # the age that stands for all rows after the annotation
KEY = ("dataset", "start", "years", "label", "method", "age", "seed")
_LATER = (0, 1, 2, 5, 10)


@dataclass(frozen=True)
class BirthRecord:
    """A label born after the start, learned by one method and judged on rows of one age; measures in percent.

    start, years : the year from which on labels arrive; the years for which each is annotated
    age : years since birth from which on rows are judged, up to the next of `age_edges`; `EVER`: all after the answers
    n_known : labels that the growing model knew before this one
    n_rows, n_yes : annotated;   n_judged, n_judged_yes : judged
    past_used : whether this method leaned on the past (`OWN_RIDGE` and `LOGISTIC` never do)
    old_scores : SHA-256 of the scores of the labels of the start on fixed rows, after this arrival
    unchanged : whether these, and those of all labels that had arrived, were the same bits as before
    """

    dataset: str
    start: int
    years: int
    label: str
    method: str
    age: int
    seed: int
    born: str
    n_known: int
    n_rows: int
    n_yes: int
    n_judged: int
    n_judged_yes: int
    auc: float
    average_precision: float
    past_used: bool
    old_scores: str
    unchanged: bool

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"no method of the timeline is called {self.method!r}")


def age_edges(years: int) -> tuple[int, ...]:
    """Where the ages begin, in years since birth; the last one has no end."""
    return tuple(years + later for later in _LATER)


def named(key: Key) -> dict[str, Any]:
    """The values of a key by the names of its fields."""
    return dict(zip(KEY, key, strict=True))
