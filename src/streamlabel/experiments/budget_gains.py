"""The learner of the budget experiment against its competitors, and against itself with fewer rows, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from streamlabel.experiments.budget import MEASURES, BudgetRecord
from streamlabel.experiments.budget_methods import DEFAULT, OWN_RIDGE, VARIANTS
from streamlabel.experiments.budget_savings import savings
from streamlabel.experiments.comparisons import FEWEST_PAIRS, LOSES, UNDECIDED, Comparison, paired
from streamlabel.experiments.sets import marking_made_up

__all__ = ["Fall", "compare", "falls_with_rows", "sentence"]


def compare(records: Iterable[BudgetRecord]) -> tuple[Comparison, ...]:
    """The learner against all others, its own variants among them, over the seeds that both were run on."""
    cells = _cells(records)
    found = []
    for (dataset, n_rows, method), theirs in cells.items():
        ours = cells.get((dataset, n_rows, DEFAULT), {})
        seeds = sorted(ours.keys() & theirs.keys())
        if method == DEFAULT or not seeds:
            continue
        for name, title in MEASURES.items():
            gains = [getattr(ours[seed], name) - getattr(theirs[seed], name) for seed in seeds]
            annotated = None if n_rows == theirs[seeds[0]].n_train else n_rows
            found.append(Comparison(dataset, f"{n_rows} rows", title, method, *paired(gains), annotated))
    return tuple(found)


def _cells(records: Iterable[BudgetRecord]) -> dict[tuple[str, int, str], dict[int, BudgetRecord]]:
    cells: dict[tuple[str, int, str], dict[int, BudgetRecord]] = {}
    for record in records:
        cells.setdefault((record.dataset, record.n_rows, record.method), {})[record.seed] = record
    return cells


@dataclass(frozen=True)
class Fall:
    """A measure of the learner that more rows made worse, by the rule that decides comparisons; means over seeds."""

    dataset: str
    measure: str
    fewer: int
    more: int
    before: float
    after: float
    error: float

    def in_words(self) -> str:
        return (
            f"{self.dataset}: {self.measure} of the learner falls from {self.before:.1f} with {self.fewer:,} rows to "
            f"{self.after:.1f} with {self.more:,} ({self.after - self.before:+.2f} ± {self.error:.2f})."
        )


def falls_with_rows(records: Iterable[BudgetRecord]) -> list[Fall]:
    """From one number of rows to the next; only where the fall is sure and more than a tenth of a point."""
    cells = {
        (dataset, n_rows): by_seed
        for (dataset, n_rows, method), by_seed in _cells(records).items()
        if method == DEFAULT
    }
    found = []
    for dataset in dict.fromkeys(dataset for dataset, _ in cells):
        sizes = sorted(n_rows for name, n_rows in cells if name == dataset)
        for fewer, more in pairwise(sizes):
            few, many = cells[dataset, fewer], cells[dataset, more]
            seeds = sorted(few.keys() & many.keys())
            for name, title in MEASURES.items() if seeds else ():
                before, after = (np.array([getattr(side[seed], name) for seed in seeds]) for side in (few, many))
                change = Comparison(dataset, f"{more} rows", title, DEFAULT, *paired(after - before))
                if change.verdict == LOSES and change.error is not None:
                    means = float(before.mean()), float(after.mean())
                    found.append(Fall(dataset, title, fewer, more, *means, change.error))
    return found


def sentence(records: Sequence[BudgetRecord]) -> str:
    """How much the past is worth on every set, and where more rows do harm."""
    auc = [c for c in compare(records) if c.measure == MEASURES["auc"] and c.competitor not in VARIANTS]
    datasets = list(dict.fromkeys(one.dataset for one in auc if one.competitor == OWN_RIDGE))
    if not datasets:
        return "Nothing was run with the past and without it."
    needed = _rows_needed(records)
    parts = [_gains_of([one for one in auc if one.dataset == name], needed.get(name)) for name in datasets]
    fallen = [fall.in_words() for fall in falls_with_rows(records) if fall.measure == MEASURES["auc"]]
    said = (
        "Gain in points of AUC of new labels with the past, on the same annotated rows, mean over the numbers of rows: "
        f"{'; '.join(parts)}."
    )
    if all(one.verdict == UNDECIDED for one in auc):
        said = f"With fewer than {FEWEST_PAIRS} seeds this decides nothing. {said}"
    return marking_made_up(" ".join([said, *(f"More rows are not always better: {fall}" for fall in fallen)]))


def _gains_of(compared: Sequence[Comparison], factor: float | None) -> str:
    """Of one set: over own ridge, and over the strongest other method that was run on as many numbers of rows."""
    gains: dict[str, list[float]] = {}
    for one in compared:
        gains.setdefault(one.competitor, []).append(one.gain)
    own = gains[OWN_RIDGE]
    extent = f" ({min(own):+z.1f} to {max(own):+z.1f})" if len(own) > 1 else ""
    said = f"{compared[0].dataset} {np.mean(own):+z.1f} over learning alone{extent}"
    whole = {name: float(np.mean(found)) for name, found in gains.items() if len(found) == len(own)}
    if len(whole) > 1:
        strongest = min(whole, key=lambda name: whole[name])
        said += f", {whole[strongest]:+z.1f} over {strongest}, the strongest other"
    if factor is not None:
        said += f", and learning alone needs {factor:.1f} times as many rows to be as good (median)"
    return said


def _rows_needed(records: Iterable[BudgetRecord]) -> dict[str, float]:
    """By set, the median over numbers of rows of how many times as many own ridge needs, where that is known."""
    factors: dict[str, list[float]] = {}
    for one in savings(records):
        if one.measure == "auc":
            factors.setdefault(one.dataset, []).append(np.inf if one.n_needed is None else one.n_needed / one.n_rows)
    return {name: float(np.median(found)) for name, found in factors.items() if np.isfinite(np.median(found))}
