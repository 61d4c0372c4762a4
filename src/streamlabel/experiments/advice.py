"""What a user should do, by how many rows are annotated for a new label; every word follows from the counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamlabel.experiments.comparisons import LOSES, TIES, UNDECIDED, WINS, Comparison
from streamlabel.experiments.standings import Standing

__all__ = ["advice", "counts_by_rows"]

_FAMILIES = {  # what is the same method in several libraries, by a part of its name in small letters
    "logistic": "logistic regression",
    "napkinxc br": "logistic regression",
    "ridge": "ridge",
    "svc": "linear support vector machines",
    "svm": "linear support vector machines",
    "hinge": "linear support vector machines",
}
_ALL_ROWS = "all rows"
_UP_TO = {100: "up to 100 rows", 1000: "101 to 1,000 rows", None: "more than 1,000 rows, but not all"}


def _rows(one: Comparison) -> str:
    if one.n_rows is None:
        return _ALL_ROWS
    return next(words for most, words in _UP_TO.items() if most is None or one.n_rows <= most)


def _family(competitor: str) -> str:
    """What it is called where the libraries are taken together."""
    return next((name for part, name in _FAMILIES.items() if part in competitor.lower()), competitor)


@dataclass(frozen=True)
class _Match:
    """The learner against a family at a number of rows: over all sets, and the sets on which it is ahead or behind."""

    family: str
    over_all: Standing
    ahead: tuple[str, ...]
    behind: tuple[str, ...]

    @classmethod
    def of(cls, family: str, group: Sequence[Comparison]) -> _Match:
        by_set = {
            dataset: Standing.of([one for one in group if one.dataset == dataset])
            for dataset in dict.fromkeys(one.dataset for one in group)
        }
        ahead, behind = (
            tuple(dataset for dataset, standing in by_set.items() if standing.verdict == verdict)
            for verdict in (WINS, LOSES)
        )
        return cls(family, Standing.of(group), ahead, behind)

    def called(self, but: str) -> str:
        """The family, with the sets on which the learner is behind."""
        return f"{self.family} ({but} {', '.join(self.behind)})" if self.behind else self.family


def _matches(comparisons: Iterable[Comparison]) -> dict[str, list[_Match]]:
    """By number of rows, few first."""
    groups: dict[str, dict[str, list[Comparison]]] = {words: {} for words in (*_UP_TO.values(), _ALL_ROWS)}
    for one in comparisons:
        groups[_rows(one)].setdefault(_family(one.competitor), []).append(one)
    return {
        words: [_Match.of(family, group) for family, group in families.items()]
        for words, families in groups.items()
        if families
    }


def counts_by_rows(comparisons: Iterable[Comparison]) -> list[list[str]]:
    return [
        [words, match.family, *match.over_all.cells, ", ".join(match.ahead), ", ".join(match.behind)]
        for words, matches in _matches(comparisons).items()
        for match in matches
    ]


def advice(comparisons: Iterable[Comparison]) -> str:
    """One line a number of rows: whom the learner is ahead of and behind by the counts, and what follows for a user."""
    return "\n".join(f"- With {words} annotated: {_said(matches)}" for words, matches in _matches(comparisons).items())


def _said(matches: Sequence[_Match]) -> str:
    groups = {
        verdict: [match for match in matches if match.over_all.verdict == verdict]
        for verdict in (WINS, TIES, LOSES, UNDECIDED)
    }
    if len(groups[UNDECIDED]) == len(matches):
        return "nothing is decided: too few runs, run more."
    hows = {WINS: ("ahead of", "behind on"), TIES: ("level with", "behind on"), LOSES: ("behind", "on")}
    found = "; ".join(
        f"{how} {', '.join(match.called(but) for match in groups[verdict])}"
        for verdict, (how, but) in hows.items()
        if groups[verdict]
    )
    if groups[UNDECIDED]:
        found += f"; too few runs to judge it against {', '.join(match.family for match in groups[UNDECIDED])}"
    text = f"the learner is {found}. "
    if groups[LOSES]:
        text += (
            "On sets like those it is behind on, judge both on held-out rows of your own and expect to take the other."
        )
    elif not groups[WINS]:
        text += "It is ahead of none: take what is simpler to run where you are."
    elif any(match.behind for match in matches):
        text += "Use it as it is, but on sets like those it is behind on judge both on held-out rows of your own."
    else:
        text += "Use it as it is."
    if any(match.family == _FAMILIES["logistic"] for match in matches if match.behind):
        text += (
            ' Where that is logistic regression, try `loss="logistic"` or `"auto"`, too: it keeps everything else of '
            "the learner."
        )
    return text
