"""``streamlabel reproduce figure1``: the curves, all methods at 100%, and the experiment itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from streamlabel.experiments import figure1
from streamlabel.experiments.experiment import Experiment, Page
from streamlabel.experiments.figure1 import CURVES, Figure1Record
from streamlabel.experiments.figure1_gains import MEASURES, compare
from streamlabel.experiments.method_tables import (
    METHODS_OPTION,
    NOT_RUN_NOTE,
    by_method,
    counted,
    left_out_note,
    parameters_of,
    quick_form,
    quick_left_out,
    spread_of,
    tuned_only,
    unfinished_note,
    with_spread,
)
from streamlabel.experiments.methods import BR, METHODS, OWN, PEERS, SLL
from streamlabel.experiments.pictures import Panel, Picture, Series, slug
from streamlabel.experiments.tables import markdown_table

__all__ = ["EXPERIMENT", "page", "pictures"]

_LEVELS = (BR, "BR logistic", "LEML", "SLEEC")
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
    for dataset in _sets(records):
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
        parts += [
            f"### {dataset}: all labels at the start, all methods",
            _all_methods([record for record in here if record.share == 100], n_orders),
            left_out_note({record.method for record in here}),
        ]
    return Page(_sentence(records), "\n\n".join(parts), {"rows": _data(records)}, compare(records))


def _tuning(tuned: bool) -> str:
    if not tuned:
        return "Hyper-parameters: the first of each grid, not chosen (--quick)."
    return (
        "Hyper-parameters: the best P@1 (then P@3, P@5) on a fifth of the training rows, once a set; for the curves of "
        "the second half of the labels after the first, for all other methods of all labels."
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
        [method, *_cells(own, n_orders), "; ".join(f"`{one}`" for one in parameters_of(own))]
        for method, own in by_method(records, (*OWN, *PEERS))
    ]
    return markdown_table(["method", *MEASURES.values(), "hyper-parameters"], body)


def _sets(records: Sequence[Figure1Record]) -> list[str]:
    return list(dict.fromkeys(record.dataset for record in records))


def _means(records: Sequence[Figure1Record], dataset: str, method: str, field: str) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for record in records:
        if record.dataset == dataset and record.method == method:
            found.setdefault(record.share, []).append(getattr(record, field))
    return {share: spread_of(values)["mean"] for share, values in sorted(found.items())}


def _sentence(records: Sequence[Figure1Record]) -> str:
    """How much the start matters, and who is best with all labels there."""
    parts = []
    for dataset in _sets(records):
        text = f"{dataset}:"
        curve = _means(records, dataset, SLL, "p1")
        if len(curve) > 1:
            low, high = min(curve), max(curve)
            text += (
                f" P@1 of SLL goes from {curve[low]:.1f} with {low}% of the labels at the start to {curve[high]:.1f} "
            )
            text += f"with {high}% (range over shares {max(curve.values()) - min(curve.values()):.1f} points);"
        found = {r.method: _means(records, dataset, r.method, "p1").get(100) for r in records if r.dataset == dataset}
        whole = {method: round(p1, 1) for method, p1 in found.items() if p1 is not None}
        if len(whole) > 1:
            best = [method for method in METHODS if whole.get(method) == max(whole.values())]
            text += (
                f" with all labels at the start the best P@1, {max(whole.values()):.1f}, is that of {', '.join(best)}"
            )
            if SLL in whole and SLL not in best:
                text += f" (SLL {whole[SLL]:.1f})"
        parts.append(f"{text} nothing to compare yet" if text.endswith(":") else text.rstrip(";"))
    return quick_form(records) + ". ".join(parts) + "."


def _data(records: Sequence[Figure1Record]) -> list[dict[str, Any]]:
    rows = []
    for dataset in _sets(records):
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


def pictures(records: Sequence[Figure1Record]) -> list[Picture]:
    """For every set: four curves, and all methods at 100%."""
    records = tuned_only(records)
    found = []
    for dataset in _sets(records):
        here = [record for record in records if record.dataset == dataset]
        reading = _sentence(here)
        curves = tuple(Panel(title, _curves(here, field)) for field, title in MEASURES.items())
        if any(len(series.x) > 1 for panel in curves for series in panel.series):
            n_orders = len({record.seed for record in here})
            found.append(
                Picture(
                    f"{slug(dataset)}-curves",
                    f"{dataset}: all labels at the end, by how many were there at the start",
                    "labels at the start (percent)",
                    "on test rows (percent)",
                    curves,
                    reading,
                    spread=f"standard deviation over {n_orders} orders of the labels" if n_orders > 1 else "",
                )
            )
        whole = [record for record in here if record.share == 100]
        bars = tuple(_bars(whole, field, title) for field, title in MEASURES.items()) if whole else ()
        if bars:
            found.append(
                Picture(
                    f"{slug(dataset)}-all",
                    f"{dataset}: all labels at the start",
                    "method",
                    "on test rows (percent)",
                    (Panel("P@1, P@3, P@5 and average AUC", bars),),
                    reading,
                    kind="bars",
                )
            )
    return found


def _bars(records: Sequence[Figure1Record], field: str, title: str) -> Series:
    found = {
        method: spread_of([getattr(r, field) for r in own])["mean"]
        for method, own in by_method(records, (*OWN, *PEERS))
    }
    return Series(title, tuple(found), tuple(found.values()))


def _curves(records: Sequence[Figure1Record], field: str) -> tuple[Series, ...]:
    """The curves, and the levels of those who do not depend on the start, which give the axis its scale."""
    lines = []
    for method, own in by_method([r for r in records if r.method in CURVES], OWN):
        shares = sorted({record.share for record in own})
        cells = [spread_of([getattr(r, field) for r in own if r.share == share]) for share in shares]
        x, y = tuple(float(share) for share in shares), tuple(cell["mean"] for cell in cells)
        lines.append(Series(method, x, y, tuple(cell["sd"] for cell in cells)))
    shares = sorted({record.share for record in records})
    for method, own in by_method([r for r in records if r.method in _LEVELS and r.share == 100], OWN):
        level = spread_of([getattr(r, field) for r in own])["mean"]
        lines.append(Series(method, (float(shares[0]), float(shares[-1])), (level, level)))
    return tuple(lines)


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
    page=page,
    pictures=pictures,
    options=(METHODS_OPTION,),
)
