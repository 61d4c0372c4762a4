"""Pictures of the shares: the curves, and all methods at 100%."""

from __future__ import annotations

from collections.abc import Sequence

from streamlabel.experiments.figure1 import CURVES, Figure1Record
from streamlabel.experiments.figure1_gains import MEASURES
from streamlabel.experiments.figure1_words import sentence, sets_of
from streamlabel.experiments.method_tables import by_method, spread_of, tuned_only
from streamlabel.experiments.methods import BR, OWN, PEERS
from streamlabel.experiments.pictures import Panel, Picture, Series, slug

__all__ = ["pictures"]

_LEVELS = (BR, "BR logistic", "LEML", "SLEEC")


def pictures(records: Sequence[Figure1Record]) -> list[Picture]:
    """For every set: four curves, and all methods at 100%."""
    records = tuned_only(records)
    found = []
    for dataset in sets_of(records):
        here = [record for record in records if record.dataset == dataset]
        reading = sentence(here)
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
        if whole:
            found.append(
                Picture(
                    f"{slug(dataset)}-all",
                    f"{dataset}: all labels at the start",
                    "method",
                    "on test rows (percent)",
                    _dots(whole),
                    f"{reading} Methods from the best P@1 down; the axes begin near the smallest value, not at zero.",
                    spread="standard deviation over orders of the labels, of methods that were run on several",
                    kind="dots",
                )
            )
    return found


def _dots(records: Sequence[Figure1Record]) -> tuple[Panel, ...]:
    """A panel a measure; the methods of all of them by their P@1."""
    found = dict(by_method(records, (*OWN, *PEERS)))
    names = sorted(found, key=lambda name: -spread_of([r.p1 for r in found[name]])["mean"])
    panels = []
    for field, title in MEASURES.items():
        cells = [spread_of([getattr(r, field) for r in found[name]]) for name in names]
        mean, sd = (tuple(cell[key] for cell in cells) for key in ("mean", "sd"))
        panels.append(Panel(title, (Series(title, tuple(names), mean, sd),)))
    return tuple(panels)


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
