"""The page of the budget experiment: gains, all methods, the answers that the past saves, the bar."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from streamlabel.experiments.budget import MEASURES, BudgetRecord
from streamlabel.experiments.budget_gains import compare, falls_with_rows, sentence
from streamlabel.experiments.budget_methods import DEFAULT, METHODS
from streamlabel.experiments.budget_parameters import NOTE, chosen, chosen_table
from streamlabel.experiments.budget_prototype import PROTOTYPE, PROTOTYPE_NOTE, prototype_table
from streamlabel.experiments.budget_rows import (
    BAR,
    BudgetRow,
    bar_sentence,
    budget_rows,
    falls,
    judged_rows,
    sets_of,
    signed,
)
from streamlabel.experiments.budget_savings import Saving, as_words, savings
from streamlabel.experiments.comparisons import mean_and_error
from streamlabel.experiments.experiment import Page
from streamlabel.experiments.tables import markdown_table

__all__ = ["page"]

_SAVED_MEASURES = ("auc", "average_precision", "p1", "p3", "p5")


def page(records: Sequence[BudgetRecord]) -> Page:
    """The tables of all records; the last line is `bar_sentence`."""
    rows, saved = budget_rows(records), savings(records)
    return Page(sentence(records), _body(records, rows, saved), _data(records, rows, saved), compare(records))


def _data(records: Sequence[BudgetRecord], rows: Sequence[BudgetRow], saved: Sequence[Saving]) -> dict[str, Any]:
    judged = judged_rows(rows)
    low = [
        {"dataset": row.dataset, "n_rows": row.n_rows, "measure": name, **dataclasses.asdict(row.measures[name])}
        for row, name in falls(judged)
    ]
    met = not low if judged else None
    return {
        "rows": [dataclasses.asdict(row) for row in rows],
        "savings": [dataclasses.asdict(one) for one in saved],
        "parameters": [dataclasses.asdict(one) for one in chosen(records)],
        "prototype": {name: PROTOTYPE[name] for name in sets_of(rows) if name in PROTOTYPE},
        "bar": {"points": BAR, "met": met, "falls": low, "in_words": bar_sentence(rows)},
    }


_PREFACE = (
    "*With the past* is the learner that the experiments of the paper call SLL; *own ridge* is the same learner "
    "without the past. Half of the labels are past, all others arrive together on the same random rows. In percent, on "
    "test rows, means over seeds, each with its own order of labels and its own rows; ± is the standard error over "
    "seeds. LEML and SLEEC learn past and new labels together: LEML knows past labels on all rows; SLEEC, which needs "
    "every label on every row, learns from the annotated rows alone. Strengths are chosen on training rows: those of "
    "RidgeCV by leave-one-out, all others by past labels that are learned from as many rows (SLEEC: 2,000 at most). "
    "The bar, which the last line judges: "
    f"with the past, no measure may fall more than {BAR:g} points under own ridge, on any set and number of rows."
)


_SAVING_NOTE = (
    "Where the mean of own ridge first reaches that of the learner, linear in the logarithm of rows between numbers "
    "that were measured. Below 1x own ridge needs fewer rows. Where its curve goes up and down, as P@1 may, read it as "
    "a rough figure."
)


def _body(records: Sequence[BudgetRecord], rows: Sequence[BudgetRow], saved: Sequence[Saving]) -> str:
    parts = [_PREFACE]
    for dataset in sets_of(rows):
        here = [row for row in rows if row.dataset == dataset]
        default = [row for row in here if row.method == DEFAULT]
        if default:
            parts += [f"## {dataset}: own ridge -> {DEFAULT} (gain)", _gain_table(default)]
            parts += [fall.in_words() for fall in falls_with_rows(records) if fall.dataset == dataset]
        found = [record for record in records if record.dataset == dataset]
        if len({record.method for record in found}) > 2:
            for measure, title in MEASURES.items():
                parts += [f"## {dataset}: {title} of all methods", _method_table(found, measure)]
        if spared := [one for one in saved if one.dataset == dataset]:
            title = f"## {dataset}: rows that own ridge needs to match {DEFAULT}"
            parts += [title, _SAVING_NOTE, _saving_table(spared)]
        if values := chosen(found):
            parts += [f"## {dataset}: hyper-parameters that were chosen", NOTE, chosen_table(values)]
        beside = [row for row in default if row.n_rows in PROTOTYPE.get(dataset, {})]
        if beside:
            parts += [f"## {dataset}: beside an earlier prototype", PROTOTYPE_NOTE, prototype_table(beside)]
    return "\n\n".join([*parts, bar_sentence(rows)])


def _gain_table(rows: Sequence[BudgetRow]) -> str:
    header = ["annotated rows", *MEASURES.values(), "past used", "labels learned"]
    body = [
        [
            f"{row.n_rows} (all)" if row.n_rows == row.n_train else str(row.n_rows),
            *(f"{g.own_ridge:.1f} -> {g.method:.1f} ({signed(g)})" for g in row.measures.values()),
            f"{row.n_past_used} of {row.n_seeds}",
            f"{row.n_learned:.0f} of {row.n_labels}",
        ]
        for row in rows
    ]
    return markdown_table(header, body)


def _method_table(records: Sequence[BudgetRecord], measure: str) -> str:
    cells: dict[tuple[int, str], list[float]] = {}
    for record in records:
        cells.setdefault((record.n_rows, record.method), []).append(getattr(record, measure))
    found = {method for _, method in cells}
    methods = [method for method in METHODS if method in found]
    body = [
        [str(n_rows), *(_mean(cells.get((n_rows, method))) for method in methods)]
        for n_rows in sorted({n_rows for n_rows, _ in cells})
    ]
    return markdown_table(["annotated rows", *methods], body)


def _mean(values: Sequence[float] | None) -> str:
    if not values:
        return ""
    mean, error = mean_and_error(values)
    return f"{mean:.1f}" if error is None else f"{mean:.1f} ± {error:.1f}"


def _saving_table(saved: Sequence[Saving]) -> str:
    by_place = {(one.n_rows, one.measure): one for one in saved}
    body = [
        [str(n_rows), *(as_words(by_place[n_rows, measure]) for measure in _SAVED_MEASURES)]
        for n_rows in sorted({one.n_rows for one in saved})
    ]
    return markdown_table([f"rows {DEFAULT}", *(MEASURES[measure] for measure in _SAVED_MEASURES)], body)
