"""Comparisons counted: how often the learner wins, ties and loses, and whether that is a lead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streamlabel.experiments.comparisons import LOSES, TIES, UNDECIDED, WINS, Comparison

__all__ = ["LEAD", "Standing", "standings"]

LEAD = 0.1  # by how much wins must exceed losses, or losses wins, as a share of the comparisons


@dataclass(frozen=True)
class Standing:
    """The verdicts over a group of comparisons, and the mean gain in points."""

    wins: int
    ties: int
    loses: int
    undecided: int
    gain: float

    @classmethod
    def of(cls, group: Sequence[Comparison]) -> Standing:
        counts = Counter(one.verdict for one in group)
        wins, ties, loses, undecided = (counts[verdict] for verdict in (WINS, TIES, LOSES, UNDECIDED))
        return cls(wins, ties, loses, undecided, float(np.mean([one.gain for one in group])))

    @property
    def verdict(self) -> str:
        """Of the counts: ahead or behind by more than a tenth of what was decided, else level."""
        decided = self.wins + self.ties + self.loses
        if not decided:
            return UNDECIDED
        if abs(self.wins - self.loses) <= LEAD * decided:
            return TIES
        return WINS if self.wins > self.loses else LOSES

    @property
    def cells(self) -> list[str]:
        return [*(str(n) for n in (self.wins, self.ties, self.loses, self.undecided)), f"{self.gain:+.2f}"]


def standings(found: Mapping[str, Iterable[Comparison]]) -> dict[tuple[str, str, str], Standing]:
    """By experiment, set and competitor, over places and measures."""
    groups: dict[tuple[str, str, str], list[Comparison]] = {}
    for experiment, comparisons in found.items():
        for one in comparisons:
            groups.setdefault((experiment, one.dataset, one.competitor), []).append(one)
    return {key: Standing.of(group) for key, group in groups.items()}
