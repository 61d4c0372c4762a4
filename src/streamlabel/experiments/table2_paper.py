"""The batches beside what the paper prints: whether its gain is there again, and its figures for sets that stand in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamlabel.experiments.comparisons import UNDECIDED, WINS, Comparison
from streamlabel.experiments.methods import BR, PAPER_NAMES, SLL
from streamlabel.experiments.paper_figures import MISPRINTS, PAPER, PAPER_METHODS, paper_figure
from streamlabel.experiments.sets import asked_name, used_name
from streamlabel.experiments.tables import markdown_table

__all__ = ["claim", "claims", "misprint_note", "own_paper_figure", "stand_in_parts"]

_DEPTHS = (1, 3, 5)
_NOTHING = 0.3  # points of P@1 up to which the past is said to give nothing measurable
_SHARE = 0.5  # of the paper's gain, which a sure gain must reach to be that gain again
_AGAIN, _NOT_AGAIN, _UNKNOWN = "reproduced", "not reproduced", "too few orders to tell"


def own_paper_figure(dataset: str, batch: int, depth: int, method: str) -> float | None:
    """What the paper printed for our method on the same set; None on a stand-in, whose levels are others."""
    if _is_stand_in(dataset):
        return None
    return paper_figure(dataset, batch, depth, PAPER_NAMES.get(method, ""))


def _is_stand_in(dataset: str) -> bool:
    return asked_name(dataset) != used_name(dataset)


@dataclass(frozen=True)
class _Claim:
    """The gain of SLL over BR in P@1 on a set of the paper's, batch by batch: ours and the paper's, in points."""

    ours: dict[int, Comparison]
    printed: dict[int, float]

    @classmethod
    def of(cls, compared: Sequence[Comparison], dataset: str) -> _Claim | None:
        """None on a stand-in, where the two were not run, and at batches the paper has not (or has misprinted)."""
        printed = {} if _is_stand_in(dataset) else _printed_gains(dataset)
        here = [c for c in compared if (c.dataset, c.competitor, c.measure) == (dataset, BR, "P@1") and not c.quick]
        ours = {batch: c for c in here if (batch := int(c.where.split()[0])) in printed}
        return cls(ours, {batch: printed[batch] for batch in ours}) if ours else None

    @property
    def figures(self) -> str:
        return f"{_range([c.gain for c in self.ours.values()])} here, {_range([*self.printed.values()])} in the paper"

    @property
    def verdict(self) -> str:
        again = [b for b, c in self.ours.items() if c.verdict == WINS and c.gain >= _SHARE * self.printed[b]]
        if any(c.verdict == UNDECIDED for c in self.ours.values()):
            return _UNKNOWN
        if len(again) in (0, len(self.ours)):
            return _AGAIN if again else _NOT_AGAIN
        return f"{_AGAIN} at {', '.join(map(str, again))} new labels only"

    @property
    def is_nothing(self) -> bool:
        return self.verdict == _NOT_AGAIN and all(abs(c.gain) <= _NOTHING for c in self.ours.values())


def _printed_gains(dataset: str) -> dict[int, float]:
    found = {}
    for batch in PAPER.get(dataset, {}):
        ours, theirs = (paper_figure(dataset, batch, 1, PAPER_NAMES[name]) for name in (SLL, BR))
        if ours is not None and theirs is not None and (dataset, batch, 1, PAPER_NAMES[BR]) not in MISPRINTS:
            found[batch] = ours - theirs
    return found


def _range(gains: Sequence[float]) -> str:
    low, high = f"{min(gains):+.2f}", f"{max(gains):+.2f}"
    return low if low == high else f"{low} to {high}"


def _conclusion(found: Sequence[_Claim]) -> str:
    if not all(one.is_nothing for one in found):
        return ""
    return (
        f" {SLL} and {BR} lie within {_NOTHING:g} points of P@1 there, at every batch: with all rows annotated the "
        "past gives nothing measurable over ridge with an intercept."
    )


def claim(compared: Sequence[Comparison], dataset: str) -> list[str]:
    """A paragraph on one set, where it is the paper's."""
    found = _Claim.of(compared, dataset)
    if found is None:
        return []
    return [f"{SLL} minus {BR} in P@1: {found.figures}; the gain is {found.verdict}.{_conclusion([found])}"]


def claims(compared: Sequence[Comparison]) -> str:
    """A sentence or two after others, over the sets that are the paper's; empty where there is none."""
    names = dict.fromkeys(c.dataset for c in compared)
    found = {name: one for name in names if (one := _Claim.of(compared, name)) is not None}
    if not found:
        return ""
    told = "; ".join(f"{name} {one.figures}: {one.verdict}" for name, one in found.items())
    return (
        f" The paper's main claim, a gain of {SLL} over {BR} in points of P@1: {told}.{_conclusion([*found.values()])}"
    )


def stand_in_parts(dataset: str) -> list[str]:
    """A table of what the paper prints for the set that was wanted, where another stands in for it."""
    asked = asked_name(dataset)
    if not _is_stand_in(dataset) or asked not in PAPER:
        return []
    batches = sorted(PAPER[asked])
    body = [
        [f"{method}, P@{depth}", *(f"{paper_figure(asked, batch, depth, method):.2f}" for batch in batches)]
        for depth in _DEPTHS
        for method in PAPER_METHODS
    ]
    return [
        f"### {dataset}: what the paper prints for {asked} itself",
        "Other rows and other labels than above: these levels do not compare with ours on the stand-in.",
        markdown_table(["the paper's", *(f"{batch} labels" for batch in batches)], body),
    ]


def misprint_note(dataset: str) -> list[str]:
    """A paragraph, where the paper's figures for the set that was wanted look wrong."""
    asked = asked_name(dataset)
    found = [
        f"P@{depth} of {method} at {batch} labels, {paper_figure(asked, batch, depth, method):.2f}"
        for name, batch, depth, method in MISPRINTS
        if name == asked
    ]
    if not found:
        return []
    return [f"Probably misprinted in the paper, being far from all beside them: {'; '.join(found)}."]
