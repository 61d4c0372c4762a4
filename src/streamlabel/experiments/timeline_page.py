"""Records of the timeline as a page: measures by years since birth, gains over own ridge, untouched scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamlabel.experiments.comparisons import Comparison, mean_and_error, paired
from streamlabel.experiments.experiment import Page
from streamlabel.experiments.pictures import Panel, Picture, Series
from streamlabel.experiments.tables import markdown_table
from streamlabel.experiments.timeline_records import EVER, METHODS, WITH_PAST, BirthRecord, age_edges

__all__ = ["page", "pictures"]

_MEASURES = {"auc": "AUC", "average_precision": "average precision"}
_OTHERS = tuple(method for method in METHODS if method != WITH_PAST)
Run = tuple[str, int, int]


def page(records: Sequence[BirthRecord]) -> Page:
    parts: list[str] = [_NOTE] if records else []
    data, comparisons = [], []
    for run in _runs(records):
        here = [record for record in records if _run(record) == run]
        parts += [f"## {_title(run)}", _facts(here), _table(here)]
        data.append(_data(here))
        comparisons += _comparisons(here)
    return Page(_sentence(records), "\n\n".join(parts), {"runs": data}, tuple(comparisons))


_NOTE = (
    "A label arrives at its first row, is annotated on all rows of its first years, and is judged on rows that follow: "
    "all of them, or those of some years since its birth. Means over the labels that have a yes at that age, in "
    "percent (older ages have fewer labels: compare columns, not lines), and the gain of the first column over the "
    "others, with its standard error over labels."
)


def _run(record: BirthRecord) -> Run:
    return record.dataset, record.start, record.years


def _runs(records: Sequence[BirthRecord]) -> list[Run]:
    return sorted({_run(record) for record in records})


def _title(run: Run) -> str:
    dataset, start, years = run
    return f"{dataset}, labels born from {start} on, annotated for {years} year{'s' * (years > 1)}"


def _age(age: int, years: int) -> str:
    """In words; the last age has no end."""
    if age == EVER:
        return "all later"
    edges = age_edges(years)
    return f"{age} on" if age == edges[-1] else f"{age} to {edges[edges.index(age) + 1]}"


def _values(records: Sequence[BirthRecord], measure: str, age: int) -> dict[str, Any]:
    """By method, the values of the labels (and seeds) that every method was run on, in one order."""
    cells: dict[str, dict[tuple[str, int], float]] = {method: {} for method in METHODS}
    for record in records:
        if record.age == age:
            cells[record.method][record.label, record.seed] = getattr(record, measure)
    shared = sorted(set.intersection(*(set(found) for found in cells.values())))
    return {method: np.array([found[place] for place in shared]) for method, found in cells.items()}


def _ages(records: Sequence[BirthRecord]) -> list[int]:
    return sorted({record.age for record in records})


def _facts(records: Sequence[BirthRecord]) -> str:
    arrivals = {(r.label, r.seed): r for r in records if r.method == WITH_PAST and r.age == EVER}
    found = sorted(arrivals.values(), key=lambda record: record.n_known)
    prints = sorted({record.old_scores for record in found})
    n_same = sum(record.unchanged for record in found)
    n_seeds = len({record.seed for record in found})
    expected = "one print" if n_seeds == 1 else f"one print a seed, {n_seeds} seeds"
    return (
        f"{found[0].n_known} labels at the start, {len({r.label for r in found})} arrived; median "
        f"{np.median([r.n_rows for r in found]):.0f} annotated rows, {np.median([r.n_yes for r in found]):.0f} of them "
        f"yes; the past was used for {sum(r.past_used for r in found)} of {len(found)}. After {n_same} of {len(found)} "
        f"arrivals all older scores were the same bits; SHA-256 of those of the labels of the start ({expected}): "
        f"{', '.join(prints[:5])}."
    )


def _table(records: Sequence[BirthRecord]) -> str:
    header = ["years since birth", "labels"]
    for measure in _MEASURES.values():
        header += [*(f"{measure}, {method}" for method in METHODS), *(f"gain over {other}" for other in _OTHERS)]
    body = []
    for age in _ages(records):
        line = [_age(age, records[0].years)]
        for measure in _MEASURES:
            values = _values(records, measure, age)
            if len(line) == 1:
                line.append(str(len(values[WITH_PAST])))
            line += [f"{values[method].mean():.1f}" for method in METHODS]
            line += [_signed(*mean_and_error(values[WITH_PAST] - values[other])) for other in _OTHERS]
        body.append(line)
    return markdown_table(header, body)


def _signed(gain: float, error: float | None) -> str:
    return f"{gain:+.2f}" if error is None else f"{gain:+.2f} ± {error:.2f}"


def _data(records: Sequence[BirthRecord]) -> dict[str, Any]:
    first = records[0]
    arrivals = [r for r in records if r.method == WITH_PAST and r.age == EVER]
    return {
        "dataset": first.dataset,
        "start": first.start,
        "years": first.years,
        "n_arrivals": len(arrivals),
        "n_unchanged": sum(record.unchanged for record in arrivals),
        "old_scores": sorted({record.old_scores for record in arrivals}),
        "ages": [
            {"age": _age(age, first.years), "n_labels": len(_values(records, "auc", age)[WITH_PAST])}
            | {
                measure: {method: float(found.mean()) for method, found in _values(records, measure, age).items()}
                for measure in _MEASURES
            }
            for age in _ages(records)
        ],
    }


def _comparisons(records: Sequence[BirthRecord]) -> list[Comparison]:
    found = []
    where, n_rows = f"born from {records[0].start} on", int(np.median([record.n_rows for record in records]))
    for measure, said in _MEASURES.items():
        values = _values(records, measure, EVER)
        for other in _OTHERS:
            gains = paired(values[WITH_PAST] - values[other])
            found.append(Comparison(records[0].dataset, where, said, other, *gains, n_rows))
    return found


def _sentence(records: Sequence[BirthRecord]) -> str:
    if not records:
        return "Nothing was run."
    parts = []
    for run in _runs(records):
        here = [record for record in records if _run(record) == run]
        reached = []
        for measure, said in _MEASURES.items():
            values = _values(here, measure, EVER)
            gains = [f"{_signed(*mean_and_error(values[WITH_PAST] - values[other]))} over {other}" for other in _OTHERS]
            reached.append(f"{said} {values[WITH_PAST].mean():.1f}% ({', '.join(gains)})")
        n_labels = len({record.label for record in here})
        parts.append(f"with the past, {n_labels} labels born from {run[1]} on reach {' and '.join(reached)}")
    arrivals = [r for r in records if r.method == WITH_PAST and r.age == EVER]
    same = sum(record.unchanged for record in arrivals)
    said = "; ".join(parts)
    return said[0].upper() + said[1:] + f"; old scores were untouched after {same} of {len(arrivals)} arrivals."


def pictures(records: Sequence[BirthRecord]) -> list[Picture]:
    return [_picture(records, measure) for measure in _MEASURES] if records else []


def _picture(records: Sequence[BirthRecord], measure: str) -> Picture:
    return Picture(
        name=measure.replace("_", "-"),
        title=f"Labels by age: {_MEASURES[measure]} on rows that followed",
        x_label="years since the label's first row, from",
        y_label=f"{_MEASURES[measure]}, mean over labels (%)",
        panels=tuple(_panel(records, run, measure) for run in _runs(records)),
        reading=_sentence(records),
        spread="standard error over labels",
    )


def _panel(records: Sequence[BirthRecord], run: Run, measure: str) -> Panel:
    here = [record for record in records if _run(record) == run]
    ages = [age for age in _ages(here) if age != EVER]
    values = [_values(here, measure, age) for age in ages]
    series = []
    for method in METHODS:
        found = [mean_and_error(at[method]) for at in values]
        spread = tuple(error or 0.0 for _, error in found)
        series.append(Series(method, tuple(map(float, ages)), tuple(mean for mean, _ in found), spread))
    return Panel(f"born from {run[1]} on, annotated {run[2]} y", tuple(series))
