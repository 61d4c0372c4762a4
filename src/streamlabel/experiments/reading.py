"""The honest reading: where the learner wins, ties and loses, counted over comparisons, and what to do then."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streamlabel.experiments.comparisons import ERRORS, LEAST, LOSES, TIES, UNDECIDED, WINS, Comparison
from streamlabel.experiments.tables import markdown_table

__all__ = ["Standing", "reading", "standings"]

_SHOWN = 5  # losses that are named


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
    def cells(self) -> list[str]:
        return [*(str(n) for n in (self.wins, self.ties, self.loses, self.undecided)), f"{self.gain:+.2f}"]


_VERDICTS = [WINS, TIES, LOSES, UNDECIDED, "mean gain (points)"]


def standings(found: Mapping[str, Iterable[Comparison]]) -> dict[tuple[str, str, str], Standing]:
    """By experiment, set and competitor, over places and measures."""
    groups: dict[tuple[str, str, str], list[Comparison]] = {}
    for experiment, comparisons in found.items():
        for one in comparisons:
            groups.setdefault((experiment, one.dataset, one.competitor), []).append(one)
    return {key: Standing.of(group) for key, group in groups.items()}


def reading(found: Mapping[str, Sequence[Comparison]]) -> str:
    """The section as Markdown, without its heading."""
    everything = [one for comparisons in found.values() for one in comparisons]
    if not everything:
        return "No experiment that compares the learner with others was run, so there is nothing to read."
    by_competitor = [[*key, *standing.cells] for key, standing in standings(found).items()]
    return "\n\n".join(
        [
            _preface(everything),
            markdown_table(["experiment", "set", "against", *_VERDICTS], by_competitor),
            "The same by place, over sets and competitors:",
            markdown_table(["experiment", "where", *_VERDICTS], _by_place(found)),
            _losses(everything),
            _advice(everything),
        ]
    )


def _preface(comparisons: Sequence[Comparison]) -> str:
    found = Standing.of(comparisons)
    undecided = f", and {found.undecided} with one seed decide nothing" if found.undecided else ""
    return (
        f"Of {len(comparisons)} comparisons (a set, a place, a measure, a competitor), the learner wins {found.wins}, "
        f"ties {found.ties} and loses {found.loses}{undecided}. It wins or loses where the mean difference over seeds "
        f"is more than {ERRORS:g} of its standard errors, and more than {LEAST:g} points; all else is a tie. With many "
        "comparisons some are won and lost by chance: read the counts, not single places."
    )


def _by_place(found: Mapping[str, Iterable[Comparison]]) -> list[list[str]]:
    rows = []
    for experiment, comparisons in found.items():
        groups: dict[str, list[Comparison]] = {}
        for one in comparisons:
            groups.setdefault(one.where, []).append(one)
        rows += [[experiment, where, *Standing.of(groups[where]).cells] for where in sorted(groups, key=_by_number)]
    return rows


def _by_number(where: str) -> tuple[float, str]:
    """As a reader would sort: 50 rows before 100 rows."""
    number = re.search(r"\d+(\.\d+)?", where)
    return (float(number[0]) if number else 0.0), where


def _losses(comparisons: Iterable[Comparison]) -> str:
    """The deepest losses, one line a competitor."""
    by_competitor: dict[str, list[Comparison]] = {}
    for one in comparisons:
        if one.verdict == LOSES:
            by_competitor.setdefault(one.competitor, []).append(one)
    if not by_competitor:
        return "No comparison is lost."
    lines = []
    for competitor, lost in by_competitor.items():
        deepest = sorted(lost, key=lambda one: one.gain)[:_SHOWN]
        more = f" (the deepest {_SHOWN} of {len(lost)})" if len(lost) > _SHOWN else ""
        lines.append(f"- It loses to {competitor}{more}: {'; '.join(map(_place, deepest))}.")
    return "\n".join(lines)


def _place(one: Comparison) -> str:
    return f"{one.dataset}, {one.where}: {one.measure} {one.gain:+.2f} ± {one.error or 0.0:.2f}"


_SAID = {
    WINS: (
        "it wins more often than it loses: use the learner as it is. Where a table shows losses for your kind of set, "
        "number of answers and measure, judge both on held-out rows of your own before you choose."
    ),
    TIES: "neither is ahead: take what is simpler to run where you are.",
    LOSES: (
        "it loses more often than it wins: where that kind of set and measure is what counts, use that instead, or see "
        'whether `loss="logistic"` (or `"auto"`) closes the gap on held-out rows of your own; it keeps everything else '
        "of the learner."
    ),
    UNDECIDED: "nothing is decided by one seed: run more.",
}


def _advice(comparisons: Sequence[Comparison]) -> str:
    """What follows for a user, by what was found about each competitor over all experiments and sets."""
    groups: dict[str, list[str]] = {verdict: [] for verdict in _SAID}
    for competitor in dict.fromkeys(one.competitor for one in comparisons):
        group = [one for one in comparisons if one.competitor == competitor]
        found = Standing.of(group)
        if found.undecided == len(group):
            groups[UNDECIDED].append(competitor)
        else:
            groups[WINS if found.wins > found.loses else LOSES if found.loses > found.wins else TIES].append(competitor)
    lines = [f"- Against {', '.join(names)} {_SAID[verdict]}" for verdict, names in groups.items() if names]
    return "What to do:\n\n" + "\n".join(lines)
