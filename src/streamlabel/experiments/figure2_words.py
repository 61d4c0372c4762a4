"""What the records of the times show, in sentences: who takes how long, over how many runs, and who was not timed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamlabel.experiments.figure2 import Figure2Record
from streamlabel.experiments.method_tables import counted
from streamlabel.experiments.methods import BR, METHODS, SLL, Method, installed

__all__ = ["least", "not_timed", "runs", "sentence", "sets_of", "short"]

_TOLD = (BR, "LEML", "SLEEC")


def sets_of(records: Sequence[Figure2Record]) -> list[str]:
    return list(dict.fromkeys(record.dataset for record in records))


def short(seconds: float) -> str:
    if seconds < 0.0005:
        return "0"
    return f"{seconds:.0f}" if seconds >= 99.5 else f"{seconds:.2g}"


def least(records: Sequence[Figure2Record], method: str, n_past: int, field: str) -> float | None:
    found = [getattr(r, field) for r in records if r.method == method and r.n_past == n_past]
    return min(found) if found else None


def runs(records: Sequence[Figure2Record]) -> str:
    """Over how many runs each time of a set was taken, and how far these lie apart."""
    cells: dict[tuple[str, int], list[float]] = {}
    for record in records:
        cells.setdefault((record.method, record.n_past), []).append(record.cpu_seconds)
    fewest, most = (pick(len(cell) for cell in cells.values()) for pick in (min, max))
    if most == 1:
        return "1 run, no spread"
    ratios = [max(cell) / min(cell) for cell in cells.values() if len(cell) > 1 and min(cell) > 0]
    told = counted(most, "run") if fewest == most else f"{fewest} to {most} runs"
    if not ratios:
        return told
    return f"{told}, the longest {np.median(ratios):.2g} times the least at the median, {max(ratios):.2g} at most"


def sentence(records: Sequence[Figure2Record]) -> str:
    """How SLL grows with the past, and how far it is from BR and from those who retrain."""
    parts = []
    for dataset in sets_of(records):
        here = [record for record in records if record.dataset == dataset]
        sizes = sorted({record.n_past for record in here})
        first, last = (least(here, SLL, size, "cpu_seconds") for size in (sizes[0], sizes[-1]))
        if first is None or last is None:
            continue
        text = f"{dataset}: {here[0].n_new} new labels take SLL {short(last)} s of CPU after {sizes[-1]:,} past labels"
        if len(sizes) > 1:
            text += f" ({short(first)} s after {sizes[0]:,})"
        others = {name: least(here, name, sizes[-1], "cpu_seconds") for name in _TOLD}
        told = [f"{name} {cpu / last:.1f}" for name, cpu in others.items() if cpu is not None and last > 0]
        parts.append(text + (f"; as multiples of that: {', '.join(told)}" if told else "") + f" ({runs(here)})")
    return ". ".join(parts) + "." if parts else "SLL was not run."


def not_timed(records: Sequence[Figure2Record]) -> list[str]:
    """A sentence on one set: which methods are absent, by what is known of the reason; none where all are there."""
    absent = [name for name in METHODS if name not in {record.method for record in records}]
    there = set(installed(absent))
    groups: dict[str, list[str]] = {}
    for name in absent:
        groups.setdefault(_reason(name, records) if name in there else "not installed", []).append(name)
    told = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in groups.items())
    return [f"Not timed here: {told}."] if told else []


def _reason(name: str, records: Sequence[Figure2Record]) -> str:
    """A row counts once at least, and more by its features, which records do not have."""
    method, smallest = METHODS[name], min(records, key=lambda record: record.n_past)
    if method.most_cells == Method.most_cells:
        return "not named by --methods"
    if method.cells(smallest.n_rows, 0, smallest.n_past, smallest.n_new) > method.most_cells:
        return "too large by the rule of the page"
    return "not named by --methods, or too large by the rule of the page"
