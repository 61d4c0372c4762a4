"""How many annotated rows learning alone needs to be as good as the learner that uses the past."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from streamlabel.experiments.budget import MEASURES, BudgetRecord
from streamlabel.experiments.budget_methods import DEFAULT, OWN_RIDGE

__all__ = ["Saving", "as_words", "rows_needed", "savings"]


@dataclass(frozen=True)
class Saving:
    """Own ridge reaches at ``n_needed`` rows what the learner reaches at ``n_rows``, by one measure.

    n_most : the largest number of rows that own ridge was given; ``n_train`` are all
    n_needed : interpolated; None: more than ``n_most``
    at_most : own ridge is as good from the smallest number of rows on that was measured; it may need fewer
    """

    dataset: str
    measure: str
    n_rows: int
    n_most: int
    n_train: int
    n_needed: float | None
    at_most: bool


def rows_needed(curve: Mapping[int, float], value: float) -> float | None:
    """The first number of rows where the curve reaches the value, linear in log rows between those measured.

    >>> rows_needed({10: 0.0, 1000: 1.0}, 0.5)
    100.0
    """
    sizes = sorted(curve)
    for low, high in zip([sizes[0], *sizes], sizes, strict=False):
        if curve[high] >= value:
            if low == high:
                return float(low)
            part = (value - curve[low]) / (curve[high] - curve[low])
            return float(np.round(np.exp((1.0 - part) * np.log(low) + part * np.log(high)), 6))
    return None


def savings(records: Iterable[BudgetRecord]) -> list[Saving]:
    """For every set, measure and number of rows below all; means over seeds.

    Numbers of rows that not every seed has with and without the past are left out.
    """
    cells: dict[tuple[str, int], dict[tuple[str, int], BudgetRecord]] = {}
    for record in records:
        if record.method in (DEFAULT, OWN_RIDGE):
            cells.setdefault((record.dataset, record.seed), {})[record.method, record.n_rows] = record
    found = []
    for dataset in dict.fromkeys(dataset for dataset, _ in cells):
        draws = [cell for (name, _), cell in cells.items() if name == dataset]
        sizes = sorted(
            n for n in _sizes(draws[0]) if all((m, n) in draw for m in (DEFAULT, OWN_RIDGE) for draw in draws)
        )
        if not sizes:
            continue
        n_train = next(iter(draws[0].values())).n_train
        for measure in MEASURES:
            curves = {
                method: {n: float(np.mean([getattr(cell[method, n], measure) for cell in draws])) for n in sizes}
                for method in (DEFAULT, OWN_RIDGE)
            }
            for n_rows in sizes:
                value = curves[DEFAULT][n_rows]
                needed = rows_needed(curves[OWN_RIDGE], value)
                at_most = needed == sizes[0] and curves[OWN_RIDGE][sizes[0]] > value
                if n_rows < n_train:
                    found.append(Saving(dataset, measure, n_rows, sizes[-1], n_train, needed, at_most))
    return found


def _sizes(draw: Mapping[tuple[str, int], BudgetRecord]) -> set[int]:
    return {n_rows for _, n_rows in draw}


def as_words(saving: Saving) -> str:
    """The number, and how many times the learner's it is."""
    if saving.n_needed is None:
        return "more than all" if saving.n_most == saving.n_train else f"more than {saving.n_most}"
    least = "at most " if saving.at_most else ""
    return f"{least}{saving.n_needed:.0f} ({saving.n_needed / saving.n_rows:.1f}x)"
