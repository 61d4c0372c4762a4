"""What the records of the shares show, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from streamlabel.experiments.chosen import strength
from streamlabel.experiments.figure1 import Figure1Record
from streamlabel.experiments.figure1_gains import MEASURES
from streamlabel.experiments.method_tables import by_method, quick_form, spread_of
from streamlabel.experiments.methods import BR, METHODS, SLL

__all__ = ["same_models", "sentence", "sets_of"]

_SAME = ((SLL, BR), ("SLL logistic", "BR logistic"))  # with all labels at the start


def sets_of(records: Sequence[Figure1Record]) -> list[str]:
    return list(dict.fromkeys(record.dataset for record in records))


def sentence(records: Sequence[Figure1Record]) -> str:
    """How much the start matters, and who is best with all labels there."""
    parts = []
    for dataset in sets_of(records):
        text = f"{dataset}:"
        curve = _means(records, dataset, SLL, "p1")
        if len(curve) > 1:
            low, high = min(curve), max(curve)
            text += (
                f" P@1 of SLL goes from {curve[low]:.1f} with {low}% of the labels at the start to {curve[high]:.1f} "
            )
            text += f"with {high}% (range over shares {max(curve.values()) - min(curve.values()):.1f} points);"
        found = {r.method: _means(records, dataset, r.method, "p1").get(100) for r in records if r.dataset == dataset}
        whole = {method: round(p1, 1) for method, p1 in found.items() if p1 is not None}
        if len(whole) > 1:
            best = [method for method in METHODS if whole.get(method) == max(whole.values())]
            text += (
                f" with all labels at the start the best P@1, {max(whole.values()):.1f}, is that of {', '.join(best)}"
            )
            if SLL in whole and SLL not in best:
                text += f" (SLL {whole[SLL]:.1f})"
        parts.append(f"{text} nothing to compare yet" if text.endswith(":") else text.rstrip(";"))
    return quick_form(records) + ". ".join(parts) + "."


def same_models(records: Sequence[Figure1Record]) -> list[str]:
    """A paragraph, from records of all labels at the start: what the choice of strength alone makes of one model."""
    said = []
    for ours, other in _SAME:
        found = dict(by_method(records, (ours, other)))
        if len(found) < 2:
            continue
        first, second = (strength(found[name]) for name in (ours, other))
        gaps = {title: _mean(found[ours], field) - _mean(found[other], field) for field, title in MEASURES.items()}
        if first == second:
            most = max(abs(gap) for gap in gaps.values())
            said.append(f"{ours} is {other}, of the same strength (`beta` {first}): they differ by {most:.2f} at most.")
        else:
            told = ", ".join(f"{title} {gap:+.2f}" for title, gap in gaps.items())
            said.append(
                f"{ours} is {other}, of another strength (`beta` {first}, not {second}): the difference, {told}, is "
                "the choice of strength alone."
            )
    return [" ".join(["With all labels at the start nothing arrives.", *said])] if said else []


def _mean(records: Sequence[Figure1Record], field: str) -> float:
    return spread_of([getattr(record, field) for record in records])["mean"]


def _means(records: Sequence[Figure1Record], dataset: str, method: str, field: str) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for record in records:
        if record.dataset == dataset and record.method == method:
            found.setdefault(record.share, []).append(getattr(record, field))
    return {share: spread_of(values)["mean"] for share, values in sorted(found.items())}
