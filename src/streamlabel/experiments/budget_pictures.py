"""Pictures of the budget experiment: accuracy against annotated rows, and the answers that the past saves."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from streamlabel.experiments.budget import MEASURES, BudgetRecord
from streamlabel.experiments.budget_gains import sentence
from streamlabel.experiments.budget_methods import METHODS
from streamlabel.experiments.comparisons import mean_and_error
from streamlabel.experiments.pictures import Panel, Picture, Series

__all__ = ["pictures"]


def pictures(records: Sequence[BudgetRecord]) -> list[Picture]:
    """AUC and average precision against the annotated rows, a panel a set."""
    return [_picture(records, name) for name in ("auc", "average_precision")] if records else []


def _picture(records: Sequence[BudgetRecord], measure: str) -> Picture:
    panels = []
    for dataset in dict.fromkeys(record.dataset for record in records):
        here = [record for record in records if record.dataset == dataset]
        found = dict.fromkeys(record.method for record in here)
        panels.append(Panel(dataset, tuple(_series(here, method, measure) for method in METHODS if method in found)))
    n_seeds = len({record.seed for record in records})
    return Picture(
        name=measure.replace("_", "-"),
        title=f"New labels: {MEASURES[measure]} against the number of annotated rows",
        x_label="annotated rows",
        y_label=f"{MEASURES[measure]}, mean over new labels (%)",
        panels=tuple(panels),
        reading=sentence(records),
        spread=f"standard error over {n_seeds} seeds" if n_seeds > 1 else "",
        log_x=True,
    )


def _series(records: Sequence[BudgetRecord], method: str, measure: str) -> Series:
    points: dict[int, list[float]] = {}
    for record in records:
        if record.method == method:
            points.setdefault(record.n_rows, []).append(getattr(record, measure))
    x = sorted(points)
    means, errors = zip(*(mean_and_error(points[n_rows]) for n_rows in x), strict=True)
    return Series(method, tuple(x), means, tuple(nan if error is None else error for error in errors))
