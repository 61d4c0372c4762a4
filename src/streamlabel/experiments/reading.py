"""The honest reading: where the learner wins, ties and loses, counted over comparisons, and what to do then."""

from __future__ import annotations

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
    """The learner against one competitor on one set, over all places and measures of an experiment."""

    experiment: str
    dataset: str
    competitor: str
    wins: int
    ties: int
    loses: int
    undecided: int
    gain: float


def standings(found: Mapping[str, Iterable[Comparison]]) -> list[Standing]:
    """From comparisons by experiment, in their order."""
    groups: dict[tuple[str, str, str], list[Comparison]] = {}
    for experiment, comparisons in found.items():
        for one in comparisons:
            groups.setdefault((experiment, one.dataset, one.competitor), []).append(one)
    rows = []
    for (experiment, dataset, competitor), group in groups.items():
        counts = Counter(one.verdict for one in group)
        wins, ties, loses, undecided = (counts[verdict] for verdict in (WINS, TIES, LOSES, UNDECIDED))
        gain = float(np.mean([one.gain for one in group]))
        rows.append(Standing(experiment, dataset, competitor, wins, ties, loses, undecided, gain))
    return rows


def reading(found: Mapping[str, Sequence[Comparison]]) -> str:
    """The section as Markdown, without its heading."""
    rows = standings(found)
    if not rows:
        return "No experiment that compares the learner with others was run, so there is nothing to read."
    everything = [one for comparisons in found.values() for one in comparisons]
    parts = [_preface(everything), _table(rows), *_losses(found), _advice(rows)]
    return "\n\n".join(parts)


def _preface(comparisons: Sequence[Comparison]) -> str:
    counts = Counter(one.verdict for one in comparisons)
    undecided = f", and {counts[UNDECIDED]} with one seed decide nothing" if counts[UNDECIDED] else ""
    return (
        f"Of {len(comparisons)} comparisons (a set, a place, a measure, a competitor), the learner wins "
        f"{counts[WINS]}, ties {counts[TIES]} and loses {counts[LOSES]}{undecided}. It wins or loses where the mean "
        f"difference over seeds is more than {ERRORS:g} of its standard errors, and more than {LEAST:g} points; all "
        "else is a tie. With many comparisons some are won and lost by chance: read the counts, not single places."
    )


def _table(rows: Sequence[Standing]) -> str:
    header = ["experiment", "set", "against", "wins", "ties", "loses", "undecided", "mean gain (points)"]
    body = [
        [
            row.experiment,
            row.dataset,
            row.competitor,
            *(str(n) for n in (row.wins, row.ties, row.loses, row.undecided)),
            f"{row.gain:+.2f}",
        ]
        for row in rows
    ]
    return markdown_table(header, body)


def _losses(found: Mapping[str, Sequence[Comparison]]) -> list[str]:
    """The deepest losses, one sentence a competitor."""
    by_competitor: dict[str, list[Comparison]] = {}
    for comparisons in found.values():
        for one in comparisons:
            if one.verdict == LOSES:
                by_competitor.setdefault(one.competitor, []).append(one)
    if not by_competitor:
        return ["It loses nowhere."]
    lines = []
    for competitor, lost in by_competitor.items():
        deepest = sorted(lost, key=lambda one: one.gain)[:_SHOWN]
        places = "; ".join(
            f"{one.dataset}, {one.where}: {one.measure} {one.gain:+.2f} ± {one.error:.2f}" for one in deepest
        )
        more = f" (the deepest {_SHOWN} of {len(lost)})" if len(lost) > _SHOWN else ""
        lines.append(f"- It loses to {competitor}{more}: {places}.")
    return ["\n".join(lines)]


def _place(one: Comparison) -> str:
    return f"{one.dataset}, {one.where}: {one.measure} {one.gain:+.2f} ± {one.error or 0.0:.2f}"


def _advice(rows: Sequence[Standing]) -> str:
    """What follows for a user, by what was found about each competitor over all experiments and sets."""
    groups: dict[str, list[str]] = {"take": [], "either": [], "other": []}
    for competitor in dict.fromkeys(row.competitor for row in rows):
        wins = sum(row.wins for row in rows if row.competitor == competitor)
        loses = sum(row.loses for row in rows if row.competitor == competitor)
        group = "other" if loses > wins else "take" if wins > loses else "either"
        groups[group].append(competitor)
    said = {
        "take": (
            "it wins more often than it loses: use the learner as it is. Where the table shows losses for your kind of "
            "set and measure, judge both on held-out rows of your own before you choose."
        ),
        "either": "neither is ahead: take what is simpler to run where you are.",
        "other": (
            "it loses more often than it wins: where that kind of set and measure is what counts, use that instead, or "
            'see whether `loss="logistic"` (or `"auto"`) closes the gap on held-out rows of your own; it keeps '
            "everything else of the learner."
        ),
    }
    lines = [f"- Against {', '.join(names)} {said[group]}" for group, names in groups.items() if names]
    return "What to do:\n\n" + "\n".join(lines)
