"""The page of the budget experiment: gains, all methods, the answers that the past saves, the bar."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from streamlabel.experiments.budget import MEASURES, BudgetRecord
from streamlabel.experiments.budget_methods import DEFAULT, METHODS, VARIANTS
from streamlabel.experiments.budget_prototype import PROTOTYPE, PROTOTYPE_NOTE, prototype_table
from streamlabel.experiments.budget_rows import BAR, BudgetRow, bar_sentence, budget_rows, falls, sets_of, signed
from streamlabel.experiments.budget_savings import Saving, as_words, savings
from streamlabel.experiments.comparisons import Comparison, mean_and_error, paired
from streamlabel.experiments.experiment import Page
from streamlabel.experiments.tables import markdown_table

__all__ = ["page", "sentence"]

_SAVED_MEASURES = ("auc", "average_precision", "p1", "p3", "p5")


def page(records: Sequence[BudgetRecord]) -> Page:
    """The tables of all records; the last line is `bar_sentence`."""
    rows, saved = budget_rows(records), savings(records)
    return Page(sentence(rows, saved), _body(records, rows, saved), _data(rows, saved), _comparisons(records))


def sentence(rows: Sequence[BudgetRow], saved: Sequence[Saving] = ()) -> str:
    """How much the past is worth over all sets and budgets."""
    gains = [row.measures["auc"].gain for row in rows if row.method == DEFAULT]
    if not gains:
        return "Nothing was run with the past and without it."
    said = (
        f"With the past, new labels gain {np.mean(gains):+.1f} points of AUC over learning alone on the same annotated "
        f"rows, on average over sets and numbers of rows ({min(gains):+.1f} to {max(gains):+.1f})"
    )
    factors = [np.inf if one.n_needed is None else one.n_needed / one.n_rows for one in saved if one.measure == "auc"]
    if factors and np.isfinite(np.median(factors)):
        said += f"; learning alone needs {np.median(factors):.1f} times as many rows to be as good (median)"
    return said + "."


def _data(rows: Sequence[BudgetRow], saved: Sequence[Saving]) -> dict[str, Any]:
    low = [
        {"dataset": row.dataset, "n_rows": row.n_rows, "measure": name, **dataclasses.asdict(row.measures[name])}
        for row, name in falls(rows)
    ]
    return {
        "rows": [dataclasses.asdict(row) for row in rows],
        "savings": [dataclasses.asdict(one) for one in saved],
        "prototype": {name: PROTOTYPE[name] for name in sets_of(rows) if name in PROTOTYPE},
        "bar": {"points": BAR, "met": not low, "falls": low, "in_words": bar_sentence(rows)},
    }


_PREFACE = (
    "Half of the labels are past, all others arrive together on the same random rows. In percent, on test rows, means "
    "over seeds, each with its own order of labels and its own rows; ± is the standard error over seeds. Strengths are "
    "chosen on training rows: *own ridge*, *own logistic*, LogisticRegression and LinearSVC by past labels that are "
    "learned from as many rows, RidgeCV by leave-one-out."
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
        found = [record for record in records if record.dataset == dataset]
        if len({record.method for record in found}) > 2:
            for measure, title in MEASURES.items():
                parts += [f"## {dataset}: {title} of all methods", _method_table(found, measure)]
        if spared := [one for one in saved if one.dataset == dataset]:
            title = f"## {dataset}: rows that own ridge needs to match {DEFAULT}"
            parts += [title, _SAVING_NOTE, _saving_table(spared)]
        beside = [row for row in default if row.n_rows in PROTOTYPE.get(dataset, {})]
        if beside:
            parts += [f"## {dataset}: beside the prototype", PROTOTYPE_NOTE, prototype_table(beside)]
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


def _comparisons(records: Iterable[BudgetRecord]) -> tuple[Comparison, ...]:
    """The learner against all that are no variants of it, over the seeds that both were run on."""
    cells: dict[tuple[str, int, str], dict[int, BudgetRecord]] = {}
    for record in records:
        cells.setdefault((record.dataset, record.n_rows, record.method), {})[record.seed] = record
    found = []
    for (dataset, n_rows, method), theirs in cells.items():
        ours = cells.get((dataset, n_rows, DEFAULT), {})
        seeds = sorted(ours.keys() & theirs.keys())
        if method in VARIANTS or not seeds:
            continue
        for name, title in MEASURES.items():
            gains = [getattr(ours[seed], name) - getattr(theirs[seed], name) for seed in seeds]
            annotated = None if n_rows == theirs[seeds[0]].n_train else n_rows
            found.append(Comparison(dataset, f"{n_rows} rows", title, method, *paired(gains), annotated))
    return tuple(found)
