"""What the records of the batches show, in sentences."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from streamlabel.experiments.chosen import strength
from streamlabel.experiments.comparisons import WINS, Comparison
from streamlabel.experiments.method_tables import by_method, verdicts
from streamlabel.experiments.methods import BR, PAPER_NAMES, SLL
from streamlabel.experiments.table2 import Table2Record
from streamlabel.experiments.table2_gains import SLEEC, counted_and_own_forms, made_up_note
from streamlabel.experiments.table2_paper import claims

__all__ = ["NOTHING", "sentence", "strength_note", "tie_note"]

NOTHING = "Nothing to compare yet: SLL and another method were not run on the same labels."


def sentence(records: Sequence[Table2Record], compared: Sequence[Comparison]) -> str:
    """How often SLL won, and against whom it lost most, over what the report counts; and the paper's claim."""
    if not compared:
        return NOTHING
    other_strength = _of_other_strength(records)
    competitors, own = counted_and_own_forms(compared)
    rest = [c for c in competitors if c.competitor not in PAPER_NAMES]
    parts = []
    for name in PAPER_NAMES:
        if against := [c for c in competitors if c.competitor == name]:
            parts.append(f"{name}: {verdicts(against)}{_of_strength(against, other_strength) if name == BR else ''}")
    if rest:
        worst = min(rest, key=lambda c: c.gain)
        parts.append(
            f"other loss functions and libraries: {verdicts(rest)}, the lowest difference {worst.gain:+.1f} points of "
            f"{worst.measure} against {worst.competitor} ({worst.dataset}, {worst.where})"
        )
    if own:
        parts.append(f"its own other forms: {verdicts(own)}")
    said = f"With all rows annotated, SLL against {'; against '.join(parts)}." if parts else "Nothing is counted here."
    return said + made_up_note(compared) + claims(compared)


def _of_strength(against: Sequence[Comparison], other_strength: Collection[str]) -> str:
    """How many wins may come from the choice of strength; empty where none may."""
    wins = [c for c in against if c.verdict == WINS]
    names = dict.fromkeys(c.dataset for c in wins if c.dataset in other_strength)
    if not names:
        return ""
    n_such = sum(c.dataset in names for c in wins)
    return f" ({n_such} of these wins where the two chose different strengths: {', '.join(names)})"


def tie_note(records: Sequence[Table2Record]) -> list[str]:
    if all(record.method != SLEEC for record in records):
        return []
    return [
        "A true and a false label that tie are wrong in full in the ranking loss, as in scikit-learn, half wrong in "
        f"AUC. {SLEEC} gives 0 to every label that none of a row's neighbours has: part of its ranking loss is ties, "
        "and it is not counted among wins, ties and losses."
    ]


def _strengths(records: Sequence[Table2Record]) -> tuple[str, str] | None:
    """The chosen strengths of SLL and BR ridge."""
    found = dict(by_method([record for record in records if record.tuned], (SLL, BR)))
    return (strength(found[SLL]), strength(found[BR])) if len(found) == 2 else None


def _of_other_strength(records: Sequence[Table2Record]) -> set[str]:
    """The sets on which these two are not equal."""
    sets = dict.fromkeys(record.dataset for record in records)
    found = {name: _strengths([record for record in records if record.dataset == name]) for name in sets}
    return {name for name, pair in found.items() if pair is not None and pair[0] != pair[1]}


def strength_note(records: Sequence[Table2Record]) -> list[str]:
    pair = _strengths(records)
    if pair is None:
        return []
    if pair[0] == pair[1]:
        return [f"{SLL} and {BR} chose the same strength (`beta` {pair[0]})."]
    return [
        f"{SLL} and {BR} chose different strengths by P@1 (`beta` {pair[0]} and {pair[1]}): differences between "
        "them may come from that and not from the past. What the strength alone can do is in figure1, with all labels "
        "at the start."
    ]
