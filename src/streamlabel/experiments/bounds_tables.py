"""Records of the bounds experiment as a page: where the inequalities held, and how tight they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamlabel.experiments.bounds_groups import grouped, last_batch, most_rows, of_theorem, one_grid, place_of
from streamlabel.experiments.bounds_records import DISTANCE, RISK, BoundsRecord
from streamlabel.experiments.experiment import Page
from streamlabel.experiments.tables import markdown_table

__all__ = ["TERMS", "page", "sentence_of"]

TERMS = {
    "bound": "mended bound",
    "confidence": "of which: confidence",
    "own": "of which: deviation from the anchor",
    "past": "of which: freedom of the code",
    "alone": "the same bound for own ridge",
    "actual": "measured: unseen less seen risk",
}


def page(records: Sequence[BoundsRecord]) -> Page:
    """Both theorems; empty parts where nothing was run."""
    records = one_grid(records)
    parts = []
    if risks := of_theorem(records, RISK):
        parts += ["## Theorem 1: new labels on unseen rows", _RISK_NOTE, _rows_table(risks), _stream_table(risks)]
    if distances := of_theorem(records, DISTANCE):
        parts += ["## Theorem 2: label after label against all at once", _DISTANCE_NOTE, _distance_table(distances)]
    data = {"theorem_1": _summary(of_theorem(records, RISK)), "theorem_2": _summary(of_theorem(records, DISTANCE))}
    return Page(sentence_of(records), "\n\n".join(parts), data)


_RISK_NOTE = (
    "Half of the labels are past, learned on one half of the training rows; the others arrive on rows of the other "
    "half. The risk of a label is the mean squared error of its scores, cut to 0..1. The bound (confidence 95%) is on "
    "the risk on unseen rows less that on the rows of learning, and has three parts: *deviation* from the anchor, "
    "*freedom* to choose a code, *confidence*. As printed the theorem has no constants: its two terms are shown, a "
    "label, and cannot be compared with what is measured. All are means over new labels and seeds; unseen rows are the "
    "test rows."
)
_DISTANCE_NOTE = (
    "The distance (Frobenius norm) between the classifiers of the whole problem, Zh, and those of the stream, its "
    "bound as printed, and the mended one, the norm of the gradient by the curvature. Medians over seeds; for random "
    "problems, over problems of every awkward kind: copies of labels, repeated features, more features than rows, rare "
    "and unrelated labels. *Times* says how many times the truth the bound is."
)


def _held(records: Sequence[BoundsRecord]) -> str:
    return f"{sum(r.held for r in records)} of {sum(r.checked for r in records)}"


def _times(records: Sequence[BoundsRecord], name: str) -> float:
    """How many times the bound is what it bounds, median over the records where there is anything to bound."""
    ratios = [getattr(r, name) / r.actual for r in records if r.actual > 1e-9 * r.scale]
    return float(np.median(ratios)) if ratios else 0.0


def sentence_of(records: Sequence[BoundsRecord]) -> str:
    risks, distances = of_theorem(records, RISK), of_theorem(records, DISTANCE)
    parts = []
    if risks:
        places = grouped(last_batch(risks), place_of)
        credit = sum(np.mean([r.bound for r in here]) < np.mean([r.alone for r in here]) for here in places)
        parts.append(
            f"Theorem 1 (mended, with constants) held in {_held(risks)} checks of a label on unseen rows and is "
            f"{_times(risks, 'bound'):,.0f} times the measured gap (median): true, but too wide to choose by, and "
            f"lower than that of own ridge at {credit} of {len(places)} numbers of rows"
        )
    if distances:
        parts.append(
            f"theorem 2 held in {_held(distances)} checks; as printed it is {_times(distances, 'printed'):,.0f} times "
            f"the true distance (median), mended {_times(distances, 'bound'):.1f} times"
        )
    sentence = "; ".join(parts) or "nothing was run"
    return sentence[0].upper() + sentence[1:] + "."


def _summary(records: Sequence[BoundsRecord]) -> dict[str, Any]:
    return {
        "held": sum(record.held for record in records),
        "checked": sum(record.checked for record in records),
        "times_mended": _times(records, "bound"),
        "times_printed": _times(records, "printed"),
        "groups": [
            {"dataset": group[0].dataset, "n_rows": group[0].n_rows, "n_batches": group[0].n_batches}
            | {"batch": group[0].batch, "beta": group[0].beta}
            | {"n_runs": len(group), "held": sum(r.held for r in group), "checked": sum(r.checked for r in group)}
            | {name: float(np.mean([getattr(r, name) for r in group])) for name in _MEANS}
            for group in grouped(records, place_of)
        ],
    }


_MEANS = (
    "actual", "bound", "printed", "scale", "epsilon", "code_norm", "past_norm", "weights_norm", "own", "past",
    "confidence", "alone", "curvature", "gradient_norm",
)  # fmt: skip


def _rows_table(records: Sequence[BoundsRecord]) -> str:
    header = ["set", "rows", *TERMS.values(), "seen risk", "printed terms", "held"]
    body = []
    for group in grouped(last_batch(records), place_of):
        means = [float(np.mean([getattr(r, name) for r in group])) for name in (*TERMS, "scale", "printed")]
        body.append([group[0].dataset, str(group[0].n_rows), *(f"{value:.4f}" for value in means), _held(group)])
    return "### By the number of annotated rows, all batches in\n\n" + markdown_table(header, body)


def _stream_table(records: Sequence[BoundsRecord]) -> str:
    header = ["set", "batch", "new labels", "epsilon", "‖S‖₁₁", "‖W_old‖", "‖W‖", "printed terms", "bound", "measured"]
    body = []
    for group in grouped(most_rows(records), place_of):
        names = ("n_new", "epsilon", "code_norm", "past_norm", "weights_norm", "printed", "bound", "actual")
        means = [float(np.mean([getattr(r, name) for r in group])) for name in names]
        figures = [f"{means[0]:.0f}", *(f"{v:.2f}" for v in means[1:5]), *(f"{v:.4f}" for v in means[5:])]
        body.append([group[0].dataset, str(group[0].batch), *figures])
    return "### Along the stream, most rows\n\n" + markdown_table(header, body)


def _distance_table(records: Sequence[BoundsRecord]) -> str:
    header = ["set", "beta", "true distance", "of ‖Zh‖", "mended bound", "times", "printed bound", "times", "held"]
    body = []
    for group in grouped(records, place_of):
        middle = {name: float(np.median([getattr(r, name) for r in group])) for name in ("actual", "bound", "printed")}
        share = float(np.median([r.actual / r.scale if r.scale else 0.0 for r in group]))
        body.append(
            [
                group[0].dataset,
                f"{group[0].beta:g}",
                f"{middle['actual']:.3g}",
                f"{100 * share:.2g}%",
                *(f"{middle['bound']:.3g}", f"{_times(group, 'bound'):,.1f}"),
                *(f"{middle['printed']:.3g}", f"{_times(group, 'printed'):,.0f}"),
                _held(group),
            ]
        )
    return markdown_table(header, body)
