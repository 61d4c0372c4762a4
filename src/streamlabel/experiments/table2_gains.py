"""SLL against every other method of the second table on the same labels: as comparisons, and as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from streamlabel.experiments.comparisons import Comparison, paired
from streamlabel.experiments.method_tables import by_method, quick_form, tuned_only, verdicts
from streamlabel.experiments.methods import OWN, PEERS, SLL
from streamlabel.experiments.pictures import Panel, Picture, Series, slug
from streamlabel.experiments.reading import is_counted, is_made_up
from streamlabel.experiments.table2 import Table2Record

__all__ = ["SLEEC", "compare", "counted_and_own_forms", "made_up_note", "pictures"]

_POINTS = (
    ("p1", "P@1", 1.0),
    ("p3", "P@3", 1.0),
    ("p5", "P@5", 1.0),
    ("micro_auc", "micro AUC", 100.0),
    ("ranking_loss", "ranking loss", -100.0),
)
SLEEC = "SLEEC"
_PANELS = {"ranking loss": "ranking loss (sign turned: the other minus SLL)"}


def compare(records: Sequence[Table2Record]) -> tuple[Comparison, ...]:
    """SLL against every other method on the same orders and batches, in points; less ranking loss is a gain.

    The ranking loss of SLEEC is not to be counted: ties, which it has many of, are wrong in full there.
    """
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
                    fair = not (method == SLEEC and field == "ranking_loss")
                    found.append(Comparison(dataset, where, title, method, *paired(gains), quick=quick, counted=fair))
    return tuple(found)


def counted_and_own_forms(compared: Sequence[Comparison]) -> tuple[list[Comparison], list[Comparison]]:
    """What the report counts, and, by the same rule, SLL against its own other forms, which are no competitors."""
    sure = [c for c in compared if c.counted and not (c.quick or is_made_up(c))]
    return [c for c in sure if is_counted(c)], [c for c in sure if not is_counted(c)]


def made_up_note(compared: Sequence[Comparison]) -> str:
    """A sentence after others; empty where all sets are real."""
    names = dict.fromkeys(c.dataset for c in compared if is_made_up(c))
    return f" Not counted, because rows and labels were made up: {', '.join(names)}." if names else ""


def pictures(records: Sequence[Table2Record]) -> list[Picture]:
    """All measures against the size of the batch, as differences: the lines themselves lie on one another."""
    records = tuned_only(records)
    compared = compare(records)
    found = []
    for dataset in dict.fromkeys(record.dataset for record in records):
        here = [c for c in compared if c.dataset == dataset and c.competitor in OWN]
        if here:
            panels = tuple(
                Panel(_PANELS.get(name, name), _lines(here, name)) for name in dict.fromkeys(c.measure for c in here)
            )
            n_orders = len({record.seed for record in records if record.dataset == dataset})
            found.append(
                Picture(
                    slug(dataset),
                    f"{dataset}: SLL against the others on new labels",
                    "new labels in the batch",
                    "SLL minus the other (percentage points)",
                    panels,
                    quick_form(records) + _reading(here),
                    spread=f"standard error over {n_orders} orders of the labels" if n_orders > 1 else "",
                    zero=True,
                )
            )
    return found


def _reading(here: Sequence[Comparison]) -> str:
    said = "Above zero SLL is better than the method on the same new labels, below zero worse, in every panel"
    competitors, own = counted_and_own_forms(here)
    counts = [f"{verdicts(competitors)} for SLL over all points of its competitors"] if competitors else []
    counts += [f"{verdicts(own)} over those of its own other forms"] if own else []
    if not counts:
        return f"{said}.{made_up_note(here)}"
    tied = (
        "" if all(c.counted for c in here) else f" The ranking loss of {SLEEC}, whose ties count as wrong, is left out."
    )
    return f"{said}: {'; '.join(counts)}.{tied}"


def _lines(compared: Sequence[Comparison], measure: str) -> tuple[Series, ...]:
    lines = []
    for method in dict.fromkeys(c.competitor for c in compared):
        own = [c for c in compared if c.competitor == method and c.measure == measure]
        x = tuple(float(c.where.split()[0]) for c in own)
        spread = tuple(nan if c.error is None else c.error for c in own)
        lines.append(Series(method, x, tuple(c.gain for c in own), spread))
    return tuple(lines)
