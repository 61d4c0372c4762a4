"""The honest reading: where the learner wins, ties and loses, counted over comparisons, and what to do then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from streamlabel.experiments.advice import advice, counts_by_rows
from streamlabel.experiments.comparisons import LEAST, LEVEL, LOSES, TIES, UNDECIDED, WINS, Comparison
from streamlabel.experiments.sets import TWIN, used_name
from streamlabel.experiments.standings import LEAD, Standing, standings
from streamlabel.experiments.tables import markdown_table

__all__ = ["reading"]

_SHOWN = 5  # losses that are named
_OWN_FORMS = "SLL"  # how the names of the learner's other forms begin; they are no competitors
_VERDICTS = [WINS, TIES, LOSES, UNDECIDED, "mean gain (points)"]


def reading(found: Mapping[str, Sequence[Comparison]]) -> str:
    """The section as Markdown, without its heading."""
    real = {name: [one for one in group if not _is_made_up(one)] for name, group in found.items()}
    competitors = {name: [one for one in group if not _is_own_form(one)] for name, group in real.items()}
    everything = [one for group in competitors.values() for one in group]
    if not everything:
        return "No experiment that compares the learner with others was run, so there is nothing to read."
    parts = [
        _preface(everything),
        "What to do, by how many rows are annotated for a new label. The same method of several libraries counts as "
        f"one; the learner is ahead where its wins exceed its losses by more than {LEAD:.0%} of the comparisons, "
        "behind where its losses exceed its wins by as much, else level:",
        advice(everything),
        "The counts behind this:",
        markdown_table(["annotated rows", "against", *_VERDICTS, "ahead on", "behind on"], counts_by_rows(everything)),
        "By experiment, set and competitor:",
        _standings_table(competitors),
        "By place, over sets and competitors:",
        markdown_table(["experiment", "where", *_VERDICTS], _by_place(competitors)),
        _losses(everything),
    ]
    own = {name: [one for one in group if _is_own_form(one)] for name, group in real.items()}
    if any(own.values()):
        parts += ["Against its own other forms, which are not counted above:", _standings_table(own)]
    made_up = {name: [one for one in group if _is_made_up(one)] for name, group in found.items()}
    if any(made_up.values()):
        parts += [
            "On sets of a real one's shape whose rows and labels were made up, which say how methods scale, not how "
            "good they are, and are not counted above:",
            _standings_table(made_up),
        ]
    return "\n\n".join(parts)


def _is_made_up(one: Comparison) -> bool:
    return used_name(one.dataset) == TWIN


def _is_own_form(one: Comparison) -> bool:
    return one.competitor.startswith(_OWN_FORMS)


def _standings_table(found: Mapping[str, Iterable[Comparison]]) -> str:
    body = [[*key, *standing.cells] for key, standing in standings(found).items()]
    return markdown_table(["experiment", "set", "against", *_VERDICTS], body)


def _preface(comparisons: Sequence[Comparison]) -> str:
    found = Standing.of(comparisons)
    undecided = f", and {found.undecided} with one run decide nothing" if found.undecided else ""
    return (
        f"Of {len(comparisons)} comparisons (a set, a place, a measure, a competitor), the learner wins {found.wins}, "
        f"ties {found.ties} and loses {found.loses}{undecided}. It wins or loses where the mean difference is more "
        f"than {LEAST:g} points and zero lies outside its two-sided {LEVEL:.0%} interval by Student's t (2.8 standard "
        "errors with 5 pairs); all else is a tie. Pairs are runs with the same seed, in timeline the same label. Of "
        f"true ties up to one in {1 / (1 - LEVEL):.0f} is called won or lost by chance: read the counts, not single "
        "places."
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
