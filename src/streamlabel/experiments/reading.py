"""The honest reading: where the learner wins, ties and loses, counted over comparisons, and what to do then."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from scipy.special import stdtrit

from streamlabel.experiments.advice import advice, counts_by_rows
from streamlabel.experiments.comparisons import FEWEST_PAIRS, LEAST, LEVEL, LOSES, TIES, UNDECIDED, WINS, Comparison
from streamlabel.experiments.looked_at import disclosure
from streamlabel.experiments.own_forms import OWN_FORMS
from streamlabel.experiments.sets import NEWS_CORPUS, TWIN, used_name
from streamlabel.experiments.standings import LEAD, Standing, standings
from streamlabel.experiments.tables import markdown_table

__all__ = ["is_counted", "is_made_up", "reading"]

_SHOWN = 5  # losses that are named
_VERDICTS = [WINS, TIES, LOSES, UNDECIDED, "mean gain (points)"]
_NOT_ADVISED_BY = "figure1"  # most of its competitors have one figure; table2 asks the same with pairs


def reading(found: Mapping[str, Sequence[Comparison]]) -> str:
    """The section as Markdown, without its heading."""
    competitors, own_forms = _only(found, is_counted), _only(found, _is_counted_form)
    if not any(found.values()):
        return _NOTHING
    real = [one.dataset for group in found.values() for one in group if not is_made_up(one)]
    parts = [disclosure(real)] if real else []
    parts += _counted(competitors, own_forms, _unfair(found)) if any(competitors.values()) else [_NOT_COUNTED]
    beside = {
        "Against its own other forms, which are no competitors:": own_forms,
        _MADE_UP: _only(found, is_made_up),
        _QUICK: _only(found, lambda one: one.quick and not is_made_up(one)),
    }
    for said, groups in beside.items():
        if any(groups.values()):
            parts += [said, _standings_table(groups)]
    return "\n\n".join(parts)


_NOTHING = "No experiment that compares the learner with others was run, so there is nothing to read."
_NOT_COUNTED = (
    "Nothing here can be counted, and no advice follows: all comparisons with competitors are of quick runs, whose "
    "hyper-parameters were not chosen, or on sets that were made up. Run the experiments without `--quick`, on real "
    "sets."
)
_MADE_UP = (
    "On sets whose rows and labels were made up (the embedded news corpus, or a twin of a real set's shape), which "
    "show that methods run and how they scale, not how good they are, and are not counted above:"
)
_QUICK = "Of quick runs, whose hyper-parameters were not chosen, which decide nothing and are not counted above:"


def _counted(
    competitors: Mapping[str, Sequence[Comparison]],
    own_forms: Mapping[str, Sequence[Comparison]],
    unfair: Sequence[str],
) -> list[str]:
    return [
        *_advice(_advising(competitors), _advising(own_forms)),
        _rules([name for name, group in competitors.items() if group], unfair),
        "By experiment, set and competitor:",
        _standings_table(competitors),
        "By number of rows or labels, over sets and competitors:",
        markdown_table(["experiment", "where", *_VERDICTS], _by_place(competitors)),
        _losses([one for group in competitors.values() for one in group]),
    ]


def _advising(found: Mapping[str, Sequence[Comparison]]) -> list[Comparison]:
    """Those behind the advice; a set has the same name there whether or not it stands in for another."""
    return [
        replace(one, dataset=used_name(one.dataset))
        for experiment, group in found.items()
        if experiment != _NOT_ADVISED_BY
        for one in group
    ]


def _advice(comparisons: Sequence[Comparison], own_forms: Sequence[Comparison]) -> list[str]:
    if not comparisons:
        return [f"No advice follows: {_NOT_ADVISED_BY} alone does not decide it."]
    return [
        "What to do, by how many rows are annotated for a new label. The same method of several libraries counts as "
        f"one; the learner is ahead where its wins exceed its losses by more than {LEAD:.0%} of the comparisons that "
        "were decided (won, tied or lost), behind where its losses exceed its wins by as much, else level:",
        advice(comparisons, own_forms),
        "The counts behind this:",
        markdown_table(
            ["annotated rows", "against", *_VERDICTS, "ahead on", "level on", "behind on"],
            counts_by_rows(comparisons, own_forms),
        ),
    ]


def _only(
    found: Mapping[str, Sequence[Comparison]], wanted: Callable[[Comparison], bool]
) -> dict[str, list[Comparison]]:
    return {name: [one for one in group if wanted(one)] for name, group in found.items()}


def is_counted(one: Comparison) -> bool:
    """Against a competitor, on a real set, of runs whose hyper-parameters were chosen, in a fair measure."""
    return one.counted and not (is_made_up(one) or one.quick or _is_own_form(one))


def _unfair(found: Mapping[str, Sequence[Comparison]]) -> list[str]:
    """The measures that are not counted for a competitor."""
    names = (f"{one.measure} of {one.competitor}" for group in found.values() for one in group if not one.counted)
    return list(dict.fromkeys(names))


def is_made_up(one: Comparison) -> bool:
    return used_name(one.dataset) in (TWIN, NEWS_CORPUS)


def _is_own_form(one: Comparison) -> bool:
    return one.competitor in OWN_FORMS


def _is_counted_form(one: Comparison) -> bool:
    return one.counted and _is_own_form(one) and not (one.quick or is_made_up(one))


def _standings_table(found: Mapping[str, Iterable[Comparison]]) -> str:
    body = [[*key, *standing.cells] for key, standing in standings(found).items()]
    return markdown_table(["experiment", "set", "against", *_VERDICTS], body)


def _rules(experiments: Collection[str], unfair: Sequence[str]) -> str:
    not_counted = [f"- Not counted, because the measure is not fair to the competitor: {', '.join(unfair)}."]
    pairs = "".join(note for name, note in _PAIRS.items() if name in experiments)
    return "\n".join(
        [
            "How this is counted:\n",
            "- A comparison is of one set, number of rows or labels, measure and competitor. The learner wins or loses "
            f"it where the mean difference is more than {LEAST:g} points and zero lies outside its two-sided "
            f"{LEVEL:.0%} interval by Student's t ({_quantile(5):.1f} standard errors with 5 pairs); else it is a tie. "
            "Above zero a difference speaks for the learner, also in the ranking loss, whose sign is turned.",
            f"- Fewer than {FEWEST_PAIRS} pairs decide nothing, for the interval is too wide to tell a tie from too "
            f"few runs ({_quantile(2):.1f} standard errors with 2 pairs).",
            f"- Pairs are runs with the same seed.{pairs}",
            "- The runs on a set share one split into training and test rows and differ in the order of the labels and "
            "in what was drawn, so they say nothing about other splits.",
            "- The batches of one order are nested and the measures are taken on the same scores, so the comparisons "
            f"are not independent of one another, and of true ties up to one in {1 / (1 - LEVEL):.0f} is called won or "
            "lost by chance: read the counts, as a summary, not single comparisons.",
            *(not_counted if unfair else []),
        ]
    )


_PAIRS = {  # by experiment, where they are not runs with the same seed
    "timeline": " In timeline they are labels: the learner and a competitor on the same one.",
    _NOT_ADVISED_BY: f" In {_NOT_ADVISED_BY} a competitor that draws nothing at random is run once: its one figure "
    "stands against those of the learner over several orders of the labels, whose number counts as that of pairs, and "
    "the error is the learner's alone. So it is in the tables by experiment and by number of labels, and not in the "
    "advice and its counts; table2 asks the same with pairs.",
}


def _quantile(n_pairs: int) -> float:
    return float(stdtrit(n_pairs - 1, (1 + LEVEL) / 2))


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


def _losses(comparisons: Sequence[Comparison]) -> str:
    """The deepest losses, one line a competitor."""
    by_competitor: dict[str, list[Comparison]] = {}
    for one in comparisons:
        if one.verdict == LOSES:
            by_competitor.setdefault(one.competitor, []).append(one)
    if not by_competitor:
        decided = any(one.verdict != UNDECIDED for one in comparisons)
        return "No decided comparison is lost." if decided else "Nothing is decided: no comparison has enough pairs."
    lines = []
    for competitor, lost in by_competitor.items():
        deepest = sorted(lost, key=lambda one: one.gain)[:_SHOWN]
        more = f" (the deepest {_SHOWN} of {len(lost)})" if len(lost) > _SHOWN else ""
        lines.append(f"- It loses to {competitor}{more}: {'; '.join(map(_place, deepest))}.")
    return "\n".join(lines)


def _place(one: Comparison) -> str:
    error = "" if one.error is None or one.error < 0.005 else f" ± {one.error:.2f}"
    return f"{one.dataset}, {one.where}: {one.measure} {one.gain:+.2f}{error}"
