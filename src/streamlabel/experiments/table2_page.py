"""``streamlabel reproduce table2``: the records as tables beside the published figures, and the experiment itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamlabel.experiments import table2
from streamlabel.experiments.chosen import chosen_cell, edge_note
from streamlabel.experiments.comparisons import Comparison
from streamlabel.experiments.experiment import Experiment, Page
from streamlabel.experiments.method_tables import (
    METHODS_OPTION,
    NOT_RUN_NOTE,
    by_method,
    counted,
    fewer_note,
    left_out_note,
    parameters_of,
    quick_form,
    quick_left_out,
    spread_of,
    tuned_only,
    unfinished_note,
    with_spread,
)
from streamlabel.experiments.methods import OWN, PEERS
from streamlabel.experiments.table2 import Table2Record
from streamlabel.experiments.table2_gains import compare, pictures
from streamlabel.experiments.table2_paper import claim, misprint_note, own_paper_figure, stand_in_parts
from streamlabel.experiments.table2_successor import published_row, successor_parts
from streamlabel.experiments.table2_words import NOTHING, sentence, strength_note, tie_note
from streamlabel.experiments.tables import markdown_table

__all__ = ["EXPERIMENT", "page"]

_PRECISIONS = {"p1": 1, "p3": 3, "p5": 5}
_SHARES = {"micro_auc": "micro AUC", "ranking_loss": "ranking loss"}
_HOW = (
    "Half of the labels are past (Delicious 483), the others arrive in batches; all training rows are annotated. "
    "Measured on the test rows, over the new labels alone (a row without any of them counts as a miss, so P@k grows "
    "with the batch). Means ± standard deviation over orders of the labels: how much the choice of labels matters. How "
    "sure a difference is, is in the table of differences, which compares on the same labels. In parentheses what the "
    "paper printed for the same set (for one that has a stand-in here, in a table of its own): its label orders are "
    "not published and differ from ours, so compare differences between methods, not figures. SLL (the learner that "
    "budget and timeline call 'with the past'), BR and the libraries that learn labels one by one learn the batch "
    "alone; LEML, SLEEC and the trees are trained again on past and new labels (in the paper on the new ones alone). "
    "'SLL paper' is the paper's form: past labels by turns with their structure, a batch coupled, no metric; 'signed' "
    "is that without an intercept, on -1/+1 answers."
)


def page(records: Sequence[Table2Record]) -> Page:
    parts = [*quick_left_out(records), _HOW]
    records = tuned_only(records)
    compared = compare(records)
    for dataset in dict.fromkeys(record.dataset for record in records):
        parts += _set_parts([record for record in records if record.dataset == dataset], compared)
    return Page(
        quick_form(records) + sentence(records, compared),
        "\n\n".join(parts),
        {"rows": _data(records)},
        compared,
    )


def _set_parts(records: Sequence[Table2Record], compared: Sequence[Comparison]) -> list[str]:
    dataset = records[0].dataset
    n_seeds = len({record.seed for record in records})
    first = records[0]
    found = Counter((record.method, record.batch) for record in records)
    parts = [
        f"## {dataset}",
        f"{first.n_past} past labels, {counted(n_seeds, 'order')} of the labels. {_tuning(first.tuned)}"
        f"{unfinished_note(method for (method, _), n in found.items() if n < n_seeds)}",
    ]
    for field, depth in _PRECISIONS.items():
        parts += [f"### {dataset}: P@{depth} of the new labels, percent", _batch_table(records, field, depth, n_seeds)]
    for field, title in _SHARES.items():
        parts += [f"### {dataset}: {title} of the new labels", _batch_table(records, field, None, n_seeds)]
    parts += [*tie_note(records), *successor_parts(records), *stand_in_parts(dataset), *misprint_note(dataset)]
    parts += [
        f"### {dataset}: SLL minus the other, points (± standard error over orders)",
        "Above zero SLL is better, in every column: the sign of the ranking loss, of which less is better, is turned.",
        _gain_table([c for c in compared if c.dataset == dataset], n_seeds),
        *claim(compared, dataset),
        *strength_note(records),
    ]
    largest = max(record.batch for record in records)
    everybody = _all_methods([record for record in records if record.batch == largest], n_seeds)
    parts += [
        f"### {dataset}: {largest} new labels, all methods",
        everybody,
        *edge_note(everybody),
        left_out_note({record.method for record in records}),
    ]
    return parts


def _tuning(tuned: bool) -> str:
    if not tuned:
        return "Hyper-parameters: the first of each grid, not chosen (--quick)."
    return (
        "Hyper-parameters of every method: the best P@1 (then P@3, P@5) of the new labels of order 0 on a fifth of the "
        "training rows, once a set."
    )


def _batch_table(records: Sequence[Table2Record], field: str, depth: int | None, n_orders: int) -> str:
    batches = sorted({record.batch for record in records})
    dataset = records[0].dataset
    body = []
    for method, own in by_method(records, OWN):
        line = [method]
        for batch in batches:
            values = [getattr(record, field) for record in own if record.batch == batch]
            paper = None if depth is None else own_paper_figure(dataset, batch, depth, method)
            text = with_spread(values, 1 if depth else 3, n_orders) or "not run"
            line.append(text if paper is None else f"{text} ({paper:.2f})")
        body.append(line)
    body += published_row(dataset, field, batches)
    return markdown_table(["method", *(f"{batch} labels" for batch in batches)], body)


def _gain_table(here: Sequence[Comparison], n_orders: int) -> str:
    if not here:
        return NOTHING
    measures = list(dict.fromkeys(c.measure for c in here))
    places = list(dict.fromkeys((c.competitor, c.where) for c in here))
    by_place = {(c.competitor, c.where, c.measure): c for c in here}
    body = []
    for competitor, where in places:
        cells = [by_place.get((competitor, where, measure)) for measure in measures]
        body.append([competitor, where, *("" if c is None else _signed(c, n_orders) for c in cells)])
    return markdown_table(["SLL against", "batch", *measures], body)


def _signed(found: Comparison, n_orders: int) -> str:
    error = "" if found.error is None else f" ± {found.error:.2f}"
    return f"{found.gain:+.2f}{error}{fewer_note(round(found.freedom) + 1, n_orders)}"


def _all_methods(records: Sequence[Table2Record], n_orders: int) -> str:
    body = []
    for method, own in by_method(records, (*OWN, *PEERS)):
        precisions = [with_spread([getattr(record, field) for record in own], 1, n_orders) for field in _PRECISIONS]
        shares = [with_spread([getattr(record, field) for record in own], 3, n_orders) for field in _SHARES]
        body.append([method, *precisions, *shares, chosen_cell(method, own)])
    return markdown_table(["method", "P@1", "P@3", "P@5", *_SHARES.values(), "hyper-parameters"], body)


def _data(records: Sequence[Table2Record]) -> list[dict[str, Any]]:
    rows = []
    for dataset in dict.fromkeys(record.dataset for record in records):
        here = [record for record in records if record.dataset == dataset]
        for method, own in by_method(here, (*OWN, *PEERS)):
            for batch in sorted({record.batch for record in own}):
                cell = [record for record in own if record.batch == batch]
                measured = {field: spread_of([getattr(r, field) for r in cell]) for field in (*_PRECISIONS, *_SHARES)}
                paper = {field: own_paper_figure(dataset, batch, depth, method) for field, depth in _PRECISIONS.items()}
                rows.append(
                    {
                        "dataset": dataset,
                        "method": method,
                        "batch": batch,
                        "n_past": cell[0].n_past,
                        "n_orders": len(cell),
                        "n_learned": float(np.mean([r.n_learned for r in cell])),
                        "tuned": cell[0].tuned,
                        "parameters": parameters_of(cell),
                        "measures": measured,
                        "paper": None if paper["p1"] is None else paper,
                    }
                )
    return rows


EXPERIMENT = Experiment(
    name="table2",
    title="New labels in batches, half of the labels past",
    explanation=(
        "P@k, micro AUC and ranking loss of new labels in batches, for every method, beside the paper's Table 2.\n\n"
        "Half of the labels of a set are past (Delicious 483), the others arrive in batches of the paper's sizes; all "
        "training rows are annotated. Hyper-parameters are chosen on a fifth of the training rows. " + NOT_RUN_NOTE
    ),
    record=Table2Record,
    key=table2.KEY,
    datasets=("bibtex", "mediamill", "delicious"),
    quick_datasets=("mediamill_reduced",),
    tasks=table2.tasks,
    keys=table2.keys,
    run=table2.run,
    parts=table2.parts,
    page=page,
    pictures=pictures,
    options=(METHODS_OPTION,),
)
