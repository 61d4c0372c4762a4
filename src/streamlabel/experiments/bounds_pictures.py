"""Pictures of the bounds: what the inequalities allow, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan

import numpy as np

from streamlabel.experiments.bounds_groups import grouped, last_batch, of_theorem, one_grid, place_of
from streamlabel.experiments.bounds_records import DISTANCE, RISK, BoundsRecord
from streamlabel.experiments.bounds_tables import TERMS, sentence_of
from streamlabel.experiments.comparisons import mean_and_error
from streamlabel.experiments.pictures import Panel, Picture, Series

__all__ = ["pictures"]

_DISTANCES = {"printed": "bound as printed", "bound": "mended bound", "actual": "true distance"}


def pictures(records: Sequence[BoundsRecord]) -> list[Picture]:
    found, records = [], one_grid(records)
    if risks := of_theorem(records, RISK):
        found.append(
            Picture(
                name="risk",
                title="Theorem 1: how the bound on unseen rows shrinks with annotated rows",
                x_label="annotated rows",
                y_label="squared error a label (risk, 0 to 1)",
                panels=_panels(last_batch(risks), "n_rows", TERMS, _means),
                reading=sentence_of(risks),
                spread=_spread(risks),
                log_x=True,
                log_y=True,
            )
        )
    if distances := of_theorem(records, DISTANCE):
        found.append(
            Picture(
                name="distance",
                title="Theorem 2: classifiers of a stream against those learned all at once",
                x_label="strength beta",
                y_label="distance of classifiers (Frobenius norm)",
                panels=_panels(distances, "beta", _DISTANCES, _medians),
                reading=sentence_of(distances) + " Lines are medians.",
                spread=_quartiles(distances),
                log_x=True,
                log_y=True,
            )
        )
    return found


def _spread(records: Sequence[BoundsRecord]) -> str:
    n_seeds = len({record.seed for record in records})
    return f"standard error over {n_seeds} seeds" if n_seeds > 1 else ""


def _quartiles(records: Sequence[BoundsRecord]) -> str:
    """What the bands of medians are; empty where there is a single record everywhere."""
    if max(len(group) for group in grouped(records, place_of)) < 2:
        return ""
    return "from the lower to the upper quartile over seeds (of random problems over problems)"


def _panels(
    records: Sequence[BoundsRecord], x: str, names: dict[str, str], line: Callable[..., Series]
) -> tuple[Panel, ...]:
    panels = []
    for here in grouped(records, lambda record: record.dataset):
        groups = grouped(here, lambda record: getattr(record, x))
        at = tuple(float(getattr(group[0], x)) for group in groups)
        values = {name: [[getattr(record, name) for record in group] for group in groups] for name in names}
        panels.append(Panel(here[0].dataset, tuple(line(label, at, values[name]) for name, label in names.items())))
    return tuple(panels)


def _means(label: str, at: tuple[float, ...], values: Sequence[Sequence[float]]) -> Series:
    means, errors = zip(*map(mean_and_error, values), strict=True)
    return Series(label, at, means, tuple(nan if error is None else error for error in errors))


def _medians(label: str, at: tuple[float, ...], values: Sequence[Sequence[float]]) -> Series:
    low, middle, high = (tuple(float(np.quantile(group, share)) for group in values) for share in (0.25, 0.5, 0.75))
    several = [len(group) > 1 for group in values]
    band = tuple((a, b) if known else (nan, nan) for a, b, known in zip(low, high, several, strict=True))
    return Series(label, at, middle, band=band)
