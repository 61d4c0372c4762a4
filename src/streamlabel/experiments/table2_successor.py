"""The batches beside DSLL, the deep successor of the method, as it was published for the same protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamlabel.experiments.method_tables import by_method, spread_of
from streamlabel.experiments.methods import METHODS, SLL
from streamlabel.experiments.paper_figures import DSLL, DSLL_OF_SLL
from streamlabel.experiments.table2 import Table2Record

__all__ = ["published_row", "successor_parts"]

_MEASURES = {"micro_auc": ("micro AUC", 1.0), "ranking_loss": ("ranking loss", -1.0)}
_SIGNED = "SLL paper signed"  # without an intercept
_DIGITS = 3  # as published


def published_row(dataset: str, field: str, batches: Sequence[int]) -> list[list[str]]:
    """A line for the table of a measure; none where there is nothing."""
    found = DSLL.get(dataset, {}).get(field)
    if not found:
        return []
    cells = (f"{found[batch]:.{_DIGITS}f}" if batch in found else "" for batch in batches)
    return [["DSLL (deep successor of SLL, ICML 2020), as published", *cells]]


def successor_parts(records: Sequence[Table2Record]) -> list[str]:
    """A paragraph on one set, where DSLL was published for it."""
    dataset = records[0].dataset
    published = DSLL.get(dataset)
    if not published:
        return []
    leads = {name: _leads(own, published) for name, own in by_method(records, tuple(METHODS))}
    said = []
    if SLL in leads:
        said += [f"{SLL} against DSLL: {'; '.join(_told(*one) for one in leads[SLL].items())}."]
    whole = len({record.batch for record in records} & {*published["micro_auc"]})
    full = {name: found for name, found in leads.items() if all(len(one) == whole for one in found.values())}
    better = [name for name, found in full.items() if all(lead > 0 for one in found.values() for lead in one.values())]
    said += [
        f"Better than DSLL in both measures at all batches: {', '.join(better) or 'none'} (of the {len(full)} methods "
        "that were run at all of them)."
    ]
    return [" ".join([*said, *_without_intercept(records), "Label orders, splits of the labels and tuning differ."])]


def _leads(own: Sequence[Table2Record], published: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    """By measure and batch: how much better we are, at the digits that are published."""
    return {
        field: {
            batch: sign * (round(mean, _DIGITS) - published[field][batch])
            for batch, mean in _means(own, field).items()
            if batch in published[field]
        }
        for field, (_, sign) in _MEASURES.items()
    }


def _means(own: Sequence[Table2Record], field: str) -> dict[int, float]:
    batches = sorted({record.batch for record in own})
    return {b: spread_of([getattr(record, field) for record in own if record.batch == b])["mean"] for b in batches}


def _told(field: str, leads: Mapping[int, float]) -> str:
    """
    >>> _told("micro_auc", {100: 0.01, 200: 0.02, 300: -0.01})
    'micro AUC better at 100, 200, worse at 300'
    """
    groups = {
        "better": [batch for batch, lead in leads.items() if lead > 0],
        "equal": [batch for batch, lead in leads.items() if lead == 0],
        "worse": [batch for batch, lead in leads.items() if lead < 0],
    }
    parts = [f"{word} at {', '.join(map(str, batches))}" for word, batches in groups.items() if batches]
    return f"{_MEASURES[field][0]} {', '.join(parts)}"


def _without_intercept(records: Sequence[Table2Record]) -> list[str]:
    """What that publication gives for SLL itself, and which of our forms is nearer to it."""
    theirs = DSLL_OF_SLL[records[0].dataset]
    found = dict(by_method(records, (SLL, _SIGNED)))
    if len(found) < 2:
        return []
    told, nearer = [], []
    for field, (title, _) in _MEASURES.items():
        means = {name: _means(own, field) for name, own in found.items()}
        signed = means[_SIGNED].values()
        told.append(f"{title} {min(signed):.2f} to {max(signed):.2f} (its row about {theirs[field]:.2f})")
        away = {name: abs(sum(m.values()) / len(m) - theirs[field]) for name, m in means.items()}
        if away[_SIGNED] < away[SLL]:
            nearer.append(title)
    so = (
        f"its row is nearer to this than to {SLL} in {' and '.join(nearer)}"
        if nearer
        else f"its row is nearer to {SLL}"
    )
    return [
        f"That publication has a row of SLL, too. Without an intercept ('{_SIGNED}') ours has {', '.join(told)}: {so}."
    ]
