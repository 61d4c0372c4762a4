"""The records of the timeline, start by start: one value a label and method, and the learner's gain in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from streamlabel.experiments.comparisons import Comparison, paired
from streamlabel.experiments.timeline_records import COMPARED, EVER, WITH_PAST, BirthRecord

__all__ = [
    "MEASURES",
    "OTHERS",
    "Run",
    "ages",
    "arrivals",
    "by_run",
    "comparisons",
    "in_words",
    "is_judged",
    "signed",
    "values",
]

MEASURES = {"auc": "AUC", "average_precision": "average precision"}
OTHERS = tuple(method for method in COMPARED if method != WITH_PAST)
Run = tuple[str, int, int]  # set, start, years of annotation


def by_run(records: Sequence[BirthRecord]) -> dict[Run, list[BirthRecord]]:
    """Sorted by set, start and years."""
    found: dict[Run, list[BirthRecord]] = {}
    for record in records:
        found.setdefault((record.dataset, record.start, record.years), []).append(record)
    return {run: found[run] for run in sorted(found)}


def in_words(years: int) -> str:
    return f"{years} year{'s' * (years > 1)}"


def signed(gain: float, error: float | None) -> str:
    """A gain that rounds to zero is +0.00, never -0.00."""
    return f"{gain:+z.2f}" if error is None else f"{gain:+z.2f} ± {error:.2f}"


def values(
    records: Sequence[BirthRecord], measure: str, age: int, methods: Collection[str] = COMPARED
) -> dict[str, Any]:
    """By method, one value a label, in one order: the mean over the seeds that all these methods were run on."""
    cells: dict[str, dict[tuple[str, int], float]] = {method: {} for method in methods}
    for record in records:
        if record.age == age and record.method in cells:
            cells[record.method][record.label, record.seed] = getattr(record, measure)
    shared: dict[str, list[int]] = {}
    for label, seed in sorted(set.intersection(*(set(found) for found in cells.values()))):
        shared.setdefault(label, []).append(seed)
    return {
        method: np.array([np.mean([found[label, seed] for seed in seeds]) for label, seeds in shared.items()])
        for method, found in cells.items()
    }


def ages(records: Sequence[BirthRecord], n_labels: int = 1) -> list[int]:
    """Those at which so many labels or more were judged by every compared method."""
    found = sorted({record.age for record in records})
    return [age for age in found if len(values(records, "auc", age)[WITH_PAST]) >= n_labels]


def is_judged(records: Sequence[BirthRecord]) -> bool:
    return EVER in ages(records)


def arrivals(records: Sequence[BirthRecord]) -> list[BirthRecord]:
    """One record for every label and seed."""
    return [record for record in records if record.method == WITH_PAST and record.age == EVER]


def comparisons(records: Sequence[BirthRecord]) -> list[Comparison]:
    """Of one run, on all rows after the annotation."""
    found = []
    where = f"born from {records[0].start} on"
    n_rows = int(np.median([record.n_rows for record in records if record.method == WITH_PAST]))
    for measure, said in MEASURES.items():
        here = values(records, measure, EVER)
        for other in OTHERS:
            gains = paired(here[WITH_PAST] - here[other])
            found.append(Comparison(records[0].dataset, where, said, other, *gains, n_rows))
    return found
