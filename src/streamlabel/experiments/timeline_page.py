"""Records of the timeline as a page: measures by years since birth, gains over own ridge, untouched scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamlabel.experiments.comparisons import mean_and_error
from streamlabel.experiments.experiment import Page
from streamlabel.experiments.tables import markdown_table
from streamlabel.experiments.timeline_always import NOTE, PAIR, pair_ages, was_run
from streamlabel.experiments.timeline_pictures import pictures
from streamlabel.experiments.timeline_records import (
    ALWAYS_USED,
    COMPARED,
    EVER,
    OWN_RIDGE,
    WITH_PAST,
    BirthRecord,
    age_edges,
)
from streamlabel.experiments.timeline_values import (
    MEASURES,
    ages,
    arrivals,
    by_run,
    comparisons,
    is_judged,
    signed,
    values,
)
from streamlabel.experiments.timeline_words import past_used, sentence, title, why

__all__ = ["page", "pictures"]


def page(records: Sequence[BirthRecord]) -> Page:
    parts: list[str] = [_NOTE, *([NOTE] if was_run(records) else []), *why(records)] if records else []
    data, compared = [], []
    for run, here in by_run(records).items():
        parts.append(f"## {title(run)}")
        data.append(_data(here))
        if not is_judged(here):
            parts.append(_NOT_YET)
            continue
        parts += [_facts(here), _table(here, COMPARED, ages(here))]
        if shown := pair_ages(here):
            parts.append(_table(here, PAIR, shown))
        compared += comparisons(here)
    return Page(sentence(records), "\n\n".join(parts), {"runs": data}, tuple(compared))


_NOTE = (
    "*With the past* is the learner that the experiments of the paper call SLL, *own ridge* the same without the past. "
    "A label arrives at its first row, is annotated on all rows of its first years, and is judged on rows that follow: "
    "all of them, or those of some years since its birth. Means over the labels that have a yes at that age, in "
    "percent (older ages have fewer labels: compare columns, not lines), and the gain of the first column over the "
    "others, with its standard error over labels; seeds are averaged first, label by label."
)
_NOT_YET = f"Nothing to judge yet: no label has records of all {len(COMPARED)} methods."


def _age(age: int, years: int) -> str:
    """In words; the last age has no end."""
    if age == EVER:
        return "all later"
    edges = age_edges(years)
    return f"{age} on" if age == edges[-1] else f"{age} to {edges[edges.index(age) + 1]}"


def _facts(records: Sequence[BirthRecord]) -> str:
    found = sorted(arrivals(records), key=lambda record: record.n_known)
    prints = sorted({record.old_scores for record in found})
    n_same = sum(record.unchanged for record in found)
    n_seeds = len({record.seed for record in found})
    expected = "one is to be expected" if n_seeds == 1 else f"one a seed is to be expected, of {n_seeds} seeds"
    return (
        f"{found[0].n_known} labels at the start, {len({r.label for r in found})} arrived; median "
        f"{np.median([r.n_rows for r in found]):.0f} annotated rows, {np.median([r.n_yes for r in found]):.0f} of them "
        f"yes; the past was {past_used(records)}. After {n_same} of {len(found)} arrivals all older scores were the "
        f"same bits; SHA-256 of those of the labels of the start ({expected}): "
        f"{', '.join(prints[:5])}."
    )


def _table(records: Sequence[BirthRecord], methods: Sequence[str], shown: Sequence[int]) -> str:
    """One line an age: the methods, and the gain of the first over the others."""
    first, *others = methods
    header = ["years since birth", "labels"]
    for measure in MEASURES.values():
        header += [*(f"{measure}, {method}" for method in methods), *(f"gain over {other}" for other in others)]
    body = []
    for age in shown:
        line = [_age(age, records[0].years)]
        for measure in MEASURES:
            found = values(records, measure, age, methods)
            if len(line) == 1:
                line.append(str(len(found[first])))
            line += [f"{found[method].mean():.1f}" for method in methods]
            line += [signed(*mean_and_error(found[first] - found[other])) for other in others]
        body.append(line)
    return markdown_table(header, body)


def _data(records: Sequence[BirthRecord]) -> dict[str, Any]:
    first, born = records[0], arrivals(records)
    return {
        "dataset": first.dataset,
        "start": first.start,
        "years": first.years,
        "n_arrivals": len(born),
        "n_past_used": sum(record.past_used for record in born),
        "n_unchanged": sum(record.unchanged for record in born),
        "old_scores": sorted({record.old_scores for record in born}),
        "ages": [
            {"age": _age(age, first.years), "n_labels": len(values(records, "auc", age)[WITH_PAST])}
            | {
                measure: {method: float(found.mean()) for method, found in values(records, measure, age).items()}
                for measure in MEASURES
            }
            for age in ages(records)
        ],
        "past_always_used": [
            {"age": _age(age, first.years)} | {measure: _change(records, measure, age) for measure in MEASURES}
            for age in pair_ages(records)
        ],
    }


def _change(records: Sequence[BirthRecord], measure: str, age: int) -> dict[str, Any]:
    found = values(records, measure, age, PAIR)
    change, error = mean_and_error(found[ALWAYS_USED] - found[OWN_RIDGE])
    return {"n_labels": len(found[OWN_RIDGE]), "change": change, "error": error}
