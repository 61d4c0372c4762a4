"""What a user should do, by how many rows are annotated for a new label; every word follows from the counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from streamlabel.experiments.comparisons import LOSES, TIES, UNDECIDED, WINS, Comparison
from streamlabel.experiments.own_forms import OWN_FORMS
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
_UP_TO = {100: "up to 100 rows", 1000: "101 to 1,000 rows", None: "more than 1,000 rows, but not all,"}


def _rows(one: Comparison) -> str:
    if one.n_rows is None:
        return _ALL_ROWS
    return next(words for most, words in _UP_TO.items() if most is None or one.n_rows <= most)


def _family(competitor: str) -> str:
    """What it is called where the libraries are taken together."""
    return next((name for part, name in _FAMILIES.items() if part in competitor.lower()), competitor)


def _form(competitor: str) -> str:
    return OWN_FORMS[competitor]


@dataclass(frozen=True)
class _Match:
    """The learner against a family at a number of rows: over all sets, and the sets by verdict.

    behind_in : by measure, the sets on which the learner is behind in it, though not in all measures together, with
        its mean gain in points
    """

    family: str
    over_all: Standing
    sets: dict[str, list[str]]
    behind_in: dict[str, dict[str, float]]

    @classmethod
    def of(cls, family: str, group: Sequence[Comparison]) -> _Match:
        sets: dict[str, list[str]] = {verdict: [] for verdict in (WINS, TIES, LOSES, UNDECIDED)}
        behind_in: dict[str, dict[str, float]] = {}
        for dataset in dict.fromkeys(one.dataset for one in group):
            mine = [one for one in group if one.dataset == dataset]
            verdict = Standing.of(mine).verdict
            sets[verdict].append(dataset)
            for measure in dict.fromkeys(one.measure for one in mine):
                alone = Standing.of([one for one in mine if one.measure == measure])
                if alone.verdict == LOSES != verdict:
                    behind_in.setdefault(measure, {})[dataset] = alone.gain
        return cls(family, Standing.of(group), sets, behind_in)

    @property
    def called(self) -> str:
        """The family, with the sets on which the learner is behind, and those that are otherwise than the whole."""
        whole = self.over_all.verdict
        hows = {LOSES: "on" if whole == LOSES else "behind on", TIES: "level on", WINS: "ahead on"}
        parts = [
            f"{how} {', '.join(self.sets[verdict])}"
            for verdict, how in hows.items()
            if self.sets[verdict] and (verdict == LOSES or verdict != whole)
        ]
        return f"{self.family} ({'; '.join(parts)})" if parts else self.family


def _matches(comparisons: Iterable[Comparison], name: Callable[[str], str]) -> dict[str, list[_Match]]:
    """By number of rows, few first; all that have the same name together."""
    groups: dict[str, dict[str, list[Comparison]]] = {words: {} for words in (*_UP_TO.values(), _ALL_ROWS)}
    for one in comparisons:
        groups[_rows(one)].setdefault(name(one.competitor), []).append(one)
    return {words: [_Match.of(*family) for family in families.items()] for words, families in groups.items()}


def counts_by_rows(comparisons: Iterable[Comparison], own_forms: Iterable[Comparison]) -> list[list[str]]:
    """The competitors, then the learner's own forms, at every number of rows."""
    competitors, forms = _matches(comparisons, _family), _matches(own_forms, _form)
    return [
        [words.rstrip(","), match.family, *match.over_all.cells]
        + [", ".join(match.sets[verdict]) for verdict in (WINS, TIES, LOSES)]
        for words in competitors
        for match in (*competitors[words], *forms[words])
    ]


def advice(comparisons: Iterable[Comparison], own_forms: Iterable[Comparison]) -> str:
    """A point a number of rows: what to do, and under it whom the learner is ahead of and behind by the counts."""
    forms = _matches(own_forms, _form)
    lines = []
    for words, matches in _matches(comparisons, _family).items():
        if matches:
            better = [match for match in forms[words] if match.sets[LOSES]]
            lines.append(f"- With {words} annotated: {_to_do(matches, bool(better))}{_measures_to_mind(matches)}")
            points = (*_found(matches), *_behind_in_one_measure(matches), *map(_better, better))
            lines += [f"  - {point}." for point in points]
    return "\n".join(lines)


def _to_do(matches: Sequence[_Match], form_is_better: bool) -> str:
    verdicts = {match.over_all.verdict for match in matches}
    if verdicts == {UNDECIDED}:
        return "nothing is decided: too few runs, run more."
    if LOSES in verdicts:
        said = "on sets like those the learner is behind on, judge both on held-out rows and expect to take the other."
    elif WINS not in verdicts:
        said = "the learner is ahead of none: take what is simpler to run where you are."
    elif any(match.sets[LOSES] for match in matches):
        said = "use the learner, but on sets like those it is behind on judge both on held-out rows."
    else:
        said = "use the learner." if form_is_better else "use the learner as it is."
    return f"{said} Where another form of it is better, take that." if form_is_better else said


def _measures_to_mind(matches: Sequence[_Match]) -> str:
    """Where the learner is advised, but a measure speaks against it."""
    if any(match.over_all.verdict == LOSES for match in matches):
        return ""
    names = " or ".join(dict.fromkeys(measure for match in matches for measure in match.behind_in))
    if not names:
        return ""
    if any(match.sets[LOSES] for match in matches):
        return f" So too where {names} is what you need."
    return f" Where {names} is what you need, judge both on held-out rows."


def _behind_in_one_measure(matches: Sequence[_Match]) -> list[str]:
    """One point, or none."""
    found: dict[str, list[str]] = {}
    for match in matches:
        for measure, sets in match.behind_in.items():
            gains = ", ".join(f"{dataset} {gain:+.1f}" for dataset, gain in sets.items())
            found.setdefault(measure, []).append(f"{match.family} ({gains})")
    said = "; ".join(f"in {measure} {', '.join(families)}" for measure, families in found.items())
    return [f"Behind in one measure, though not in all together (mean gains in points): {said}"] if said else []


def _found(matches: Sequence[_Match]) -> list[str]:
    hows = {WINS: "Ahead of", TIES: "Level with", LOSES: "Behind", UNDECIDED: "Too few runs to judge it against"}
    groups: dict[str, list[str]] = {verdict: [] for verdict in hows}
    for match in matches:
        groups[match.over_all.verdict].append(match.called)
    return [f"{how} {', '.join(groups[verdict])}" for verdict, how in hows.items() if groups[verdict]]


def _better(form: _Match) -> str:
    """Where the learner is behind a form of its own, and where that is worse."""
    worse = f"; worse on {', '.join(form.sets[WINS])}" if form.sets[WINS] else ""
    return f"{form.family[0].upper()}{form.family[1:]} is better on {', '.join(form.sets[LOSES])}{worse}"
