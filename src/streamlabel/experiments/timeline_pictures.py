"""Labels by their age, one picture a measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamlabel.experiments.comparisons import mean_and_error
from streamlabel.experiments.pictures import Panel, Picture, Series
from streamlabel.experiments.timeline_always import complete_ages
from streamlabel.experiments.timeline_records import ALWAYS_USED, COMPARED, EVER, BirthRecord
from streamlabel.experiments.timeline_values import MEASURES, ages, by_run, in_words, values
from streamlabel.experiments.timeline_words import FEWEST_LABELS, caption

__all__ = ["pictures"]


def pictures(records: Sequence[BirthRecord]) -> list[Picture]:
    """Of the runs with an age at which there are labels enough."""
    panels = {measure: _panels(records, measure) for measure in MEASURES}
    return [_picture(records, measure, found) for measure, found in panels.items() if found]


def _picture(records: Sequence[BirthRecord], measure: str, panels: tuple[Panel, ...]) -> Picture:
    return Picture(
        name=measure.replace("_", "-"),
        title=f"Labels by age: {MEASURES[measure]} on rows that followed",
        x_label="years since the label's first row, from",
        y_label=f"{MEASURES[measure]}, mean over labels (%)",
        panels=panels,
        reading=caption(records),
        spread="standard error over labels",
    )


def _panels(records: Sequence[BirthRecord], measure: str) -> tuple[Panel, ...]:
    panels = []
    for (dataset, start, years), here in by_run(records).items():
        if shown := [age for age in ages(here, FEWEST_LABELS) if age != EVER]:
            series = [_series(here, measure, method, shown) for method in COMPARED]
            if complete := complete_ages(here, shown):
                series.append(_series(here, measure, ALWAYS_USED, complete))
            panels.append(Panel(f"{dataset}: born from {start} on, annotated {in_words(years)}", tuple(series)))
    return tuple(panels)


def _series(records: Sequence[BirthRecord], measure: str, method: str, shown: Sequence[int]) -> Series:
    found = [mean_and_error(values(records, measure, age, {*COMPARED, method})[method]) for age in shown]
    spread = tuple(np.nan if error is None else error for _, error in found)
    return Series(method, tuple(map(float, shown)), tuple(mean for mean, _ in found), spread)
