"""Records of the budget experiment in rows: means over seeds, the gain over own ridge, the bar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from streamlabel.experiments.budget import MEASURES, BudgetRecord
from streamlabel.experiments.budget_methods import DEFAULT, METHODS, OWN_RIDGE
from streamlabel.experiments.comparisons import FEWEST_PAIRS, mean_and_error

__all__ = ["BAR", "BudgetRow", "Gain", "bar_sentence", "budget_rows", "falls", "judged_rows", "sets_of", "signed"]

BAR = 0.3  # points: no measure may fall further under own ridge


@dataclass(frozen=True)
class Gain:
    """A measure with own ridge and with the method, means over seeds, and how far they lie apart.

    error : standard error of the gain over seeds; None with one seed
    """

    own_ridge: float
    method: float
    gain: float
    error: float | None


@dataclass(frozen=True)
class BudgetRow:
    """A method against own ridge, on one number of annotated rows of one set, over the seeds that both were run on.

    n_labels, n_learned : new labels, and those that had a yes and a no there (mean over seeds)
    n_past_used : seeds for which the past was used
    measures : by field of `BudgetRecord`
    """

    dataset: str
    method: str
    n_rows: int
    n_train: int
    n_seeds: int
    n_labels: int
    n_learned: float
    n_past_used: int
    measures: dict[str, Gain]


def budget_rows(records: Iterable[BudgetRecord]) -> list[BudgetRow]:
    """One row for every set, method and number of rows: sets as they come, methods as in METHODS, rows ascending."""
    cells: dict[tuple[str, str, int], dict[int, BudgetRecord]] = {}
    for record in records:
        cells.setdefault((record.dataset, record.method, record.n_rows), {})[record.seed] = record
    rows = []
    for (dataset, method, n_rows), by_seed in cells.items():
        own = cells.get((dataset, OWN_RIDGE, n_rows), {})
        seeds = sorted(by_seed.keys() & own.keys())
        if method != OWN_RIDGE and seeds:
            rows.append(_row([by_seed[seed] for seed in seeds], [own[seed] for seed in seeds]))
    datasets, methods = sets_of(rows), list(METHODS)
    return sorted(rows, key=lambda row: (datasets.index(row.dataset), methods.index(row.method), row.n_rows))


def _row(found: Sequence[BudgetRecord], own: Sequence[BudgetRecord]) -> BudgetRow:
    first = found[0]
    return BudgetRow(
        dataset=first.dataset,
        method=first.method,
        n_rows=first.n_rows,
        n_train=first.n_train,
        n_seeds=len(found),
        n_labels=first.n_labels,
        n_learned=float(np.mean([record.n_learned for record in found])),
        n_past_used=sum(record.past_used for record in found),
        measures={name: _gain([getattr(r, name) for r in own], [getattr(r, name) for r in found]) for name in MEASURES},
    )


def _gain(own: Sequence[float], found: Sequence[float]) -> Gain:
    return Gain(float(np.mean(own)), float(np.mean(found)), *mean_and_error(np.subtract(found, own)))


def judged_rows(rows: Iterable[BudgetRow]) -> list[BudgetRow]:
    """Those of the default learner, with seeds enough to pronounce on the bar."""
    return [row for row in rows if row.method == DEFAULT and row.n_seeds >= FEWEST_PAIRS]


def falls(rows: Iterable[BudgetRow], bar: float = BAR) -> list[tuple[BudgetRow, str]]:
    """Where a measure of the default learner fell further under own ridge than the bar allows, deepest first."""
    found = [
        (row, name) for row in rows if row.method == DEFAULT for name, gain in row.measures.items() if gain.gain < -bar
    ]
    return sorted(found, key=lambda place: place[0].measures[place[1]].gain)


def bar_sentence(rows: Sequence[BudgetRow], bar: float = BAR) -> str:
    """In words: whether any measure fell too far under own ridge, and where."""
    if not any(row.method == DEFAULT for row in rows):
        return "The bar: nothing to judge, no run with the past has its own ridge beside it."
    enough = judged_rows(rows)
    if not enough:
        return f"The bar is not judged: that takes {FEWEST_PAIRS} seeds or more."
    judged = [(row, name) for row in enough for name in row.measures]
    low = falls(enough, bar)
    where = "; ".join(_place(row, name) for row, name in low)
    if low:
        return f"The bar is missed: {len(low)} of {len(judged)} measures fell more than {bar:g} points: {where}."
    row, name = min(judged, key=lambda place: place[0].measures[place[1]].gain)
    return (
        f"The bar is met: none of {len(judged)} measures fell more than {bar:g} points under own ridge "
        f"(the lowest: {_place(row, name)})."
    )


def _place(row: BudgetRow, name: str) -> str:
    return f"{row.dataset}, {row.n_rows} rows, {MEASURES[name]} {signed(row.measures[name])}"


def sets_of(rows: Iterable[BudgetRow]) -> list[str]:
    return list(dict.fromkeys(row.dataset for row in rows))


def signed(gain: Gain) -> str:
    """A gain that rounds to zero is +0.00, never -0.00."""
    return f"{gain.gain:+z.2f}" if gain.error is None else f"{gain.gain:+z.2f} ± {gain.error:.2f}"
