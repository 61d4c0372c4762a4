"""SLL against every other method of the second table on the same labels: as comparisons, and as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from streamlabel.experiments.comparisons import Comparison, paired
from streamlabel.experiments.method_tables import by_method, quick_form, tuned_only, verdicts
from streamlabel.experiments.methods import OWN, PEERS, SLL
from streamlabel.experiments.pictures import Panel, Picture, Series, slug
from streamlabel.experiments.table2 import Table2Record

__all__ = ["compare", "pictures"]

_POINTS = (
    ("p1", "P@1", 1.0),
    ("p3", "P@3", 1.0),
    ("p5", "P@5", 1.0),
    ("micro_auc", "micro AUC", 100.0),
    ("ranking_loss", "ranking loss", -100.0),
)


def compare(records: Sequence[Table2Record]) -> tuple[Comparison, ...]:
    """SLL against every other method on the same orders and batches, in points; less ranking loss is a gain."""
    cells = {(r.dataset, r.method, r.batch, r.seed): r for r in records}
    found = []
    for dataset in dict.fromkeys(record.dataset for record in records):
        here = [record for record in records if record.dataset == dataset]
        for method, own in by_method(here, (*OWN, *PEERS)):
            if method == SLL:
                continue
            for batch in sorted({record.batch for record in own}):
                pairs = [
                    (cells[dataset, SLL, batch, r.seed], r)
                    for r in own
                    if r.batch == batch and (dataset, SLL, batch, r.seed) in cells
                ]
                for field, title, scale in _POINTS if pairs else ():
                    gains = [scale * (getattr(ours, field) - getattr(other, field)) for ours, other in pairs]
                    where, quick = f"{batch} new labels", not all(r.tuned for _, r in pairs)
                    found.append(Comparison(dataset, where, title, method, *paired(gains), quick=quick))
    return tuple(found)


def pictures(records: Sequence[Table2Record]) -> list[Picture]:
    """P@1/3/5 against the size of the batch, as differences: the lines themselves lie on one another."""
    records = tuned_only(records)
    compared = compare(records)
    found = []
    for dataset in dict.fromkeys(record.dataset for record in records):
        here = [c for c in compared if c.dataset == dataset and c.competitor in OWN and c.measure.startswith("P@")]
        if here:
            panels = tuple(Panel(measure, _lines(here, measure)) for measure in dict.fromkeys(c.measure for c in here))
            n_orders = len({record.seed for record in records if record.dataset == dataset})
            found.append(
                Picture(
                    slug(dataset),
                    f"{dataset}: SLL against the others on new labels",
                    "new labels in the batch",
                    "SLL minus the other (points)",
                    panels,
                    f"{quick_form(records)}Above zero SLL is better than the method on the same new labels, below zero "
                    f"worse: {verdicts(here)} for SLL over all points shown.",
                    spread=f"standard error over {n_orders} orders of the labels" if n_orders > 1 else "",
                    zero=True,
                )
            )
    return found


def _lines(compared: Sequence[Comparison], measure: str) -> tuple[Series, ...]:
    lines = []
    for method in dict.fromkeys(c.competitor for c in compared):
        own = [c for c in compared if c.competitor == method and c.measure == measure]
        x = tuple(float(c.where.split()[0]) for c in own)
        spread = tuple(nan if c.error is None else c.error for c in own)
        lines.append(Series(method, x, tuple(c.gain for c in own), spread))
    return tuple(lines)
