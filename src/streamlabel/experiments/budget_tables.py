"""Records of the budget experiment as a page: means over seeds, the gain over own ridge, the bar."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamlabel.experiments.budget import DEFAULT, MEASURES, METHODS, OWN_RIDGE, BudgetRecord
from streamlabel.experiments.comparisons import Comparison, mean_and_error
from streamlabel.experiments.experiment import Page
from streamlabel.experiments.pictures import Panel, Picture, Series
from streamlabel.experiments.tables import markdown_table

__all__ = ["BAR", "PROTOTYPE", "BudgetRow", "Gain", "bar_sentence", "budget_rows", "falls", "page", "pictures"]

BAR = 0.3  # points: no measure may fall further under own ridge

# Measured with a prototype before this package was written: P@1, P@5, AUC of own ridge, then of the learner, by
# annotated rows. Official splits, half of the labels past, 3 draws; label orders and draws differ from ours.
PROTOTYPE = {
    "bibtex": {
        50: ((15.0, 6.0, 60.5), (16.6, 6.4, 61.6)),
        100: ((18.5, 7.7, 66.8), (20.4, 8.3, 67.8)),
        200: ((21.3, 9.0, 73.8), (23.0, 9.5, 75.1)),
        500: ((26.8, 10.9, 80.9), (27.4, 11.4, 83.9)),
        1000: ((29.4, 12.2, 86.4), (30.8, 12.6, 87.5)),
        2000: ((33.8, 13.5, 89.4), (34.2, 13.8, 89.8)),
    },
    "delicious": {
        50: ((37.3, 22.1, 54.8), (38.1, 24.0, 55.9)),
        100: ((45.9, 29.6, 57.8), (48.7, 32.8, 60.8)),
        200: ((48.8, 32.1, 60.6), (51.6, 35.5, 65.6)),
        500: ((50.4, 34.1, 65.5), (54.1, 38.1, 71.9)),
        1000: ((52.0, 36.7, 68.2), (54.7, 39.8, 75.9)),
        2000: ((54.4, 38.6, 71.3), (55.7, 40.7, 77.4)),
    },
}
_PROTOTYPE_MEASURES = ("p1", "p5", "auc")


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
    datasets, methods = _sets(rows), list(METHODS)
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


def falls(rows: Iterable[BudgetRow], bar: float = BAR) -> list[tuple[BudgetRow, str]]:
    """Where a measure of the default learner fell further under own ridge than the bar allows, deepest first."""
    found = [
        (row, name) for row in rows if row.method == DEFAULT for name, gain in row.measures.items() if gain.gain < -bar
    ]
    return sorted(found, key=lambda place: place[0].measures[place[1]].gain)


def bar_sentence(rows: Sequence[BudgetRow], bar: float = BAR) -> str:
    """In words: whether any measure fell too far under own ridge, and where."""
    judged = [(row, name) for row in rows if row.method == DEFAULT for name in row.measures]
    if not judged:
        return "The bar: nothing to judge, no run with the past has its own ridge beside it."
    low = falls(rows, bar)
    where = "; ".join(_place(row, name) for row, name in low)
    if low:
        return f"The bar is missed: {len(low)} of {len(judged)} measures fell more than {bar:g} points: {where}."
    row, name = min(judged, key=lambda place: place[0].measures[place[1]].gain)
    return (
        f"The bar is met: none of {len(judged)} measures fell more than {bar:g} points under own ridge "
        f"(the lowest: {_place(row, name)})."
    )


def _place(row: BudgetRow, name: str) -> str:
    return f"{row.dataset}, {row.n_rows} rows, {MEASURES[name]} {_signed(row.measures[name])}"


def page(records: Sequence[BudgetRecord]) -> Page:
    """The tables of all records; the last line is `bar_sentence`."""
    rows = budget_rows(records)
    return Page(_sentence(rows), _body(rows), _data(rows), _comparisons(rows))


def _data(rows: Sequence[BudgetRow]) -> dict[str, Any]:
    low = [
        {"dataset": row.dataset, "n_rows": row.n_rows, "measure": name, **dataclasses.asdict(row.measures[name])}
        for row, name in falls(rows)
    ]
    return {
        "rows": [dataclasses.asdict(row) for row in rows],
        "prototype": {name: PROTOTYPE[name] for name in _sets(rows) if name in PROTOTYPE},
        "bar": {"points": BAR, "met": not low, "falls": low, "in_words": bar_sentence(rows)},
    }


def _sentence(rows: Sequence[BudgetRow]) -> str:
    """How much the past is worth over all sets and budgets."""
    gains = [row.measures["auc"].gain for row in rows if row.method == DEFAULT]
    if not gains:
        return "Nothing was run with the past and without it."
    return (
        f"With the past, new labels gain {np.mean(gains):+.1f} points of AUC over learning alone on the same annotated "
        f"rows, on average over sets and numbers of rows ({min(gains):+.1f} to {max(gains):+.1f})."
    )


def _comparisons(rows: Sequence[BudgetRow]) -> tuple[Comparison, ...]:
    return tuple(
        Comparison(row.dataset, f"{row.n_rows} rows", MEASURES[name], OWN_RIDGE, gain.gain, gain.error)
        for row in rows
        if row.method == DEFAULT
        for name, gain in row.measures.items()
    )


def _body(rows: Sequence[BudgetRow]) -> str:
    parts = [
        "Half of the labels are past, all others arrive together on the same random rows. In percent, on test rows, "
        "means over seeds, each with its own order of labels and its own rows: own ridge -> the method (gain ± its "
        "standard error over seeds).",
    ]
    for dataset in _sets(rows):
        here = [row for row in rows if row.dataset == dataset]
        for method in dict.fromkeys(row.method for row in here):
            chosen = [row for row in here if row.method == method]
            parts += [f"## {dataset}: own ridge -> {method}", _gain_table(chosen)]
        default = [row for row in here if row.method == DEFAULT and row.n_rows in PROTOTYPE.get(dataset, {})]
        if default:
            parts += [f"## {dataset}: beside the prototype", _PROTOTYPE_NOTE, _prototype_table(default)]
    return "\n\n".join([*parts, bar_sentence(rows)])


_PROTOTYPE_NOTE = (
    "P@1 / P@5 / AUC. The prototype chose by leave-one-out, over 3 draws; label orders and draws differ from ours, so "
    "compare gains rather than figures."
)


def _sets(rows: Iterable[BudgetRow]) -> list[str]:
    return list(dict.fromkeys(row.dataset for row in rows))


def _gain_table(rows: Sequence[BudgetRow]) -> str:
    header = ["annotated rows", *MEASURES.values(), "past used", "labels learned"]
    body = [
        [
            f"{row.n_rows} (all)" if row.n_rows == row.n_train else str(row.n_rows),
            *(f"{g.own_ridge:.1f} -> {g.method:.1f} ({_signed(g)})" for g in row.measures.values()),
            f"{row.n_past_used} of {row.n_seeds}",
            f"{row.n_learned:.0f} of {row.n_labels}",
        ]
        for row in rows
    ]
    return markdown_table(header, body)


def _prototype_table(rows: Sequence[BudgetRow]) -> str:
    columns = ("own ridge", "with the past", "gain")
    header = ["annotated rows", *(f"{column}, {who}" for column in columns for who in ("prototype", "here"))]
    body = []
    for row in rows:
        own, past = (np.array(values) for values in PROTOTYPE[row.dataset][row.n_rows])
        gains = [row.measures[name] for name in _PROTOTYPE_MEASURES]
        own_here, past_here = np.array([g.own_ridge for g in gains]), np.array([g.method for g in gains])
        figures = [" / ".join(f"{v:.1f}" for v in values) for values in (own, own_here, past, past_here)]
        figures += [" / ".join(f"{v:+.1f}" for v in values) for values in (past - own, past_here - own_here)]
        body.append([str(row.n_rows), *figures])
    return markdown_table(header, body)


def _signed(gain: Gain) -> str:
    return f"{gain.gain:+.2f}" if gain.error is None else f"{gain.gain:+.2f} ± {gain.error:.2f}"


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
        reading=_sentence(budget_rows(records)),
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
    return Series(method, tuple(x), means, tuple(error or 0.0 for error in errors))
