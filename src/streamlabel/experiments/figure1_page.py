"""``streamlabel reproduce figure1``: the curves, all methods at 100%, and the experiment itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from streamlabel.experiments import figure1
from streamlabel.experiments.chosen import chosen_cell, edge_note
from streamlabel.experiments.experiment import Experiment, Page
from streamlabel.experiments.figure1 import CURVES, Figure1Record
from streamlabel.experiments.figure1_gains import MEASURES, compare
from streamlabel.experiments.figure1_pictures import pictures
from streamlabel.experiments.figure1_words import same_models, sentence, sets_of
from streamlabel.experiments.method_tables import (
    METHODS_OPTION,
    NOT_RUN_NOTE,
    by_method,
    counted,
    left_out_note,
    parameters_of,
    quick_left_out,
    spread_of,
    tuned_only,
    unfinished_note,
    with_spread,
)
from streamlabel.experiments.methods import METHODS, OWN, PEERS
from streamlabel.experiments.tables import markdown_table

__all__ = ["EXPERIMENT", "page", "pictures"]

_HOW = (
    "A share of the labels is there at the start, the others arrive one by one, in a random order, each annotated on "
    "all training rows; a later one may lean on all before it. Measured at the end, on the test rows, over all labels, "
    "in percent: means ± standard deviation over orders of the labels; a figure without one "
    "was run once, as all are that draw nothing at random and have all labels at the start. SLL is the learner that "
    "budget and timeline call 'with the past'; 'SLL paper' starts as the paper does, past "
    "labels by turns with their structure. Binary relevance does not depend on the share; LEML, SLEEC and the trees "
    "would be trained again for every label and end where they are at 100%."
)


def page(records: Sequence[Figure1Record]) -> Page:
    parts = [*quick_left_out(records), _HOW]
    records = tuned_only(records)
    for dataset in sets_of(records):
        here = [record for record in records if record.dataset == dataset]
        first = here[0]
        n_orders = len({record.seed for record in here})
        parts += [
            f"## {dataset}",
            f"{first.n_labels} labels, {first.n_learned} of them with a yes and a no in training; "
            f"{counted(n_orders, 'order')}. {_tuning(first.tuned)}{unfinished_note(_unfinished(here, n_orders))}",
        ]
        for method, own in by_method([r for r in here if r.method in CURVES], OWN):
            parts += [f"### {dataset}: {method} by the share of labels at the start", _curve_table(own, n_orders)]
        everybody = _all_methods([record for record in here if record.share == 100], n_orders)
        parts += [
            f"### {dataset}: all labels at the start, all methods",
            everybody,
            *edge_note(everybody),
            *same_models([record for record in here if record.share == 100]),
            left_out_note({record.method for record in here}),
        ]
    return Page(sentence(records), "\n\n".join(parts), {"rows": _data(records)}, compare(records))


def _tuning(tuned: bool) -> str:
    if not tuned:
        return "Hyper-parameters: the first of each grid, not chosen (--quick)."
    return (
        "Hyper-parameters: the best P@1 (then P@3, P@5) on a fifth of the training rows, once a set and by one rule "
        "for all methods: of the second half of the labels, which arrive after the first half."
    )


def _curve_table(records: Sequence[Figure1Record], n_orders: int) -> str:
    body = []
    for share in sorted({record.share for record in records}):
        here = [record for record in records if record.share == share]
        body.append([f"{share}%", *_cells(here, n_orders)])
    return markdown_table(["labels at the start", *MEASURES.values()], body)


def _cells(records: Sequence[Figure1Record], n_orders: int) -> list[str]:
    """One method at one share."""
    wanted = _wanted(records[0].method, records[0].share, n_orders)
    return [with_spread([getattr(record, field) for record in records], 2, wanted) for field in MEASURES]


def _wanted(method: str, share: int, n_orders: int) -> int:
    """With all labels at the start one run is all there is of a method that draws nothing."""
    return n_orders if share < 100 or METHODS[method].random else 1


def _unfinished(records: Sequence[Figure1Record], n_orders: int) -> set[str]:
    found = Counter((record.method, record.share) for record in records)
    return {method for (method, share), n in found.items() if n < _wanted(method, share, n_orders)}


def _all_methods(records: Sequence[Figure1Record], n_orders: int) -> str:
    if not records:
        return "Nothing to compare yet: no method was run with all labels at the start."
    body = [
        [method, *_cells(own, n_orders), chosen_cell(method, own)] for method, own in by_method(records, (*OWN, *PEERS))
    ]
    return markdown_table(["method", *MEASURES.values(), "hyper-parameters"], body)


def _data(records: Sequence[Figure1Record]) -> list[dict[str, Any]]:
    rows = []
    for dataset in sets_of(records):
        for method, own in by_method([r for r in records if r.dataset == dataset], (*OWN, *PEERS)):
            for share in sorted({record.share for record in own}):
                cell = [record for record in own if record.share == share]
                rows.append(
                    {
                        "dataset": dataset,
                        "method": method,
                        "share": share,
                        "n_orders": len(cell),
                        "tuned": cell[0].tuned,
                        "parameters": parameters_of(cell),
                        "measures": {field: spread_of([getattr(r, field) for r in cell]) for field in MEASURES},
                    }
                )
    return rows


EXPERIMENT = Experiment(
    name="figure1",
    title="How many labels are needed at the start",
    explanation=(
        "P@k and average AUC over all labels against the share of them that was there at the start (Figure 1).\n\n"
        "The others arrive one by one, annotated on all training rows. With all labels at the start every method is "
        "run. Hyper-parameters are chosen on a fifth of the training rows. " + NOT_RUN_NOTE
    ),
    record=Figure1Record,
    key=figure1.KEY,
    datasets=("bibtex", "mediamill", "delicious"),
    quick_datasets=("mediamill_reduced",),
    tasks=figure1.tasks,
    keys=figure1.keys,
    run=figure1.run,
    parts=figure1.parts,
    page=page,
    pictures=pictures,
    options=(METHODS_OPTION,),
)
