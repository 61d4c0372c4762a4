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
        parts.append(f"## {_title(run)}")
        parts += [_facts(here), _table(here)] if _is_judged(here) else [_NOT_YET]
        data.append(_data(here))
        comparisons += _comparisons(here) if _is_judged(here) else []
    return Page(_sentence(records), "\n\n".join(parts), {"runs": data}, tuple(comparisons))


_NOTE = (
    "*With the past* is the learner that the experiments of the paper call SLL, *own ridge* the same without the past. "
    "A label arrives at its first row, is annotated on all rows of its first years, and is judged on rows that follow: "
    "all of them, or those of some years since its birth. Means over the labels that have a yes at that age, in "
    "percent (older ages have fewer labels: compare columns, not lines), and the gain of the first column over the "
    "others, with its standard error over labels; seeds are averaged first, label by label."
)
_NOT_YET = f"Nothing to judge yet: no label has records of all {len(METHODS)} methods."


def _run(record: BirthRecord) -> Run:
    return record.dataset, record.start, record.years


def _runs(records: Sequence[BirthRecord]) -> list[Run]:
    return sorted({_run(record) for record in records})


def _title(run: Run) -> str:
    dataset, start, years = run
    return f"{dataset}, labels born from {start} on, annotated for {_years(years)}"


def _years(years: int) -> str:
    return f"{years} year{'s' * (years > 1)}"


def _age(age: int, years: int) -> str:
    """In words; the last age has no end."""
    if age == EVER:
        return "all later"
    edges = age_edges(years)
    return f"{age} on" if age == edges[-1] else f"{age} to {edges[edges.index(age) + 1]}"


def _values(records: Sequence[BirthRecord], measure: str, age: int) -> dict[str, Any]:
    """By method, one value a label, in one order: the mean over the seeds that every method was run on."""
    cells: dict[str, dict[tuple[str, int], float]] = {method: {} for method in METHODS}
    for record in records:
        if record.age == age:
            cells[record.method][record.label, record.seed] = getattr(record, measure)
    shared: dict[str, list[int]] = {}
    for label, seed in sorted(set.intersection(*(set(found) for found in cells.values()))):
        shared.setdefault(label, []).append(seed)
    return {
        method: np.array([np.mean([found[label, seed] for seed in seeds]) for label, seeds in shared.items()])
        for method, found in cells.items()
    }


def _ages(records: Sequence[BirthRecord]) -> list[int]:
    """Those at which there is a label that every method was run on."""
    ages = sorted({record.age for record in records})
    return [age for age in ages if len(_values(records, "auc", age)[WITH_PAST])]


def _is_judged(records: Sequence[BirthRecord]) -> bool:
    return EVER in _ages(records)


def _arrivals(records: Sequence[BirthRecord]) -> list[BirthRecord]:
    """One record for every label and seed."""
    return [record for record in records if record.method == WITH_PAST and record.age == EVER]


def _past_used(records: Sequence[BirthRecord]) -> str:
    found = _arrivals(records)
    used, labels = {record.label for record in found if record.past_used}, {record.label for record in found}
    seeds = " (with any seed)" if len({record.seed for record in found}) > 1 else ""
    return f"used for {len(used)} of {len(labels)} labels{seeds}"


def _facts(records: Sequence[BirthRecord]) -> str:
    found = sorted(_arrivals(records), key=lambda record: record.n_known)
    prints = sorted({record.old_scores for record in found})
    n_same = sum(record.unchanged for record in found)
    n_seeds = len({record.seed for record in found})
    expected = "one is to be expected" if n_seeds == 1 else f"one a seed is to be expected, of {n_seeds} seeds"
    return (
        f"{found[0].n_known} labels at the start, {len({r.label for r in found})} arrived; median "
        f"{np.median([r.n_rows for r in found]):.0f} annotated rows, {np.median([r.n_yes for r in found]):.0f} of them "
        f"yes; the past was {_past_used(records)}. After {n_same} of {len(found)} arrivals all older scores were the "
        f"same bits; SHA-256 of those of the labels of the start ({expected}): "
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
    first, arrivals = records[0], _arrivals(records)
    return {
        "dataset": first.dataset,
        "start": first.start,
        "years": first.years,
        "n_arrivals": len(arrivals),
        "n_past_used": sum(record.past_used for record in arrivals),
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
        if not _is_judged(here):
            parts.append(f"of labels born from {run[1]} on there is nothing to judge yet")
            continue
        reached = []
        for measure, said in _MEASURES.items():
            values = _values(here, measure, EVER)
            gains = [f"{_signed(*mean_and_error(values[WITH_PAST] - values[other]))} over {other}" for other in _OTHERS]
            reached.append(f"{said} {values[WITH_PAST].mean():.1f}% ({', '.join(gains)})")
        parts.append(f"with the past ({_past_used(here)}), those born from {run[1]} on reach {' and '.join(reached)}")
    arrivals = _arrivals(records)
    same = sum(record.unchanged for record in arrivals)
    said = "; ".join(parts)
    return said[0].upper() + said[1:] + f"; old scores were untouched after {same} of {len(arrivals)} arrivals."


def pictures(records: Sequence[BirthRecord]) -> list[Picture]:
    """Of the runs with an age at which there is something to judge."""
    panels = {measure: _panels(records, measure) for measure in _MEASURES}
    return [_picture(records, measure, found) for measure, found in panels.items() if found]


def _picture(records: Sequence[BirthRecord], measure: str, panels: tuple[Panel, ...]) -> Picture:
    return Picture(
        name=measure.replace("_", "-"),
        title=f"Labels by age: {_MEASURES[measure]} on rows that followed",
        x_label="years since the label's first row, from",
        y_label=f"{_MEASURES[measure]}, mean over labels (%)",
        panels=panels,
        reading=_sentence(records),
        spread="standard error over labels",
    )


def _panels(records: Sequence[BirthRecord], measure: str) -> tuple[Panel, ...]:
    panels = []
    for run in _runs(records):
        here = [record for record in records if _run(record) == run]
        if ages := [age for age in _ages(here) if age != EVER]:
            series = tuple(_series(here, measure, method, ages) for method in METHODS)
            panels.append(Panel(f"{run[0]}: born from {run[1]} on, annotated {_years(run[2])}", series))
    return tuple(panels)


def _series(records: Sequence[BirthRecord], measure: str, method: str, ages: Sequence[int]) -> Series:
    found = [mean_and_error(_values(records, measure, age)[method]) for age in ages]
    spread = tuple(np.nan if error is None else error for _, error in found)
    return Series(method, tuple(map(float, ages)), tuple(mean for mean, _ in found), spread)
