"""Labels of a set that arrive in batches with few answers each, and one self-contained HTML page of that.

The page has curves as inline SVG and no script, and opens offline.
"""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template

import numpy as np
from scipy import sparse

from streamlabel.data.streams import LabelStream, annotated_rows, dated_stream, random_stream
from streamlabel.errors import DataError
from streamlabel.experiments.sets import learnable, unit_rows
from streamlabel.metrics.evaluate import evaluate
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.types import Dataset, IntArray

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 420, 240, 46, 34, 26, 12
_CURVES = (("p1", "P@1"), ("p3", "P@3"), ("p5", "P@5"), ("auc", "average AUC"))


@dataclass(frozen=True)
class ArrivalSettings:
    """How the labels arrive: a share of past labels, the number of batches, the answers given for each new label."""

    past_share: float = 0.6
    n_batches: int = 6
    budget: int = 100
    seed: int = 0


@dataclass(frozen=True)
class Measures:
    """In percent, over the new labels that have arrived so far, on rows that no model has seen."""

    p1: float
    p3: float
    p5: float
    auc: float


@dataclass(frozen=True)
class Neighbours:
    """A new label, its yes answers, and the signed weights of the past labels in its code, strongest first."""

    label: str
    n_yes: int
    code: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class BatchRecord:
    """What was measured after one batch."""

    labels: tuple[str, ...]
    n_known: int
    with_past: Measures
    alone: Measures
    ms_per_label: float
    ms_per_label_alone: float
    neighbours: tuple[Neighbours, ...]


@dataclass(frozen=True)
class DemoResult:
    """The whole run. ``fingerprint`` is the SHA-256 of the past labels' scores on the test rows, before and after."""

    source: str
    n_train: int
    n_test: int
    n_features: int
    n_past: int
    n_skipped: int
    settings: ArrivalSettings
    fit_seconds: float
    batches: tuple[BatchRecord, ...]
    fingerprint_before: str
    fingerprint_after: str

    @property
    def old_unchanged(self) -> bool:
        return self.fingerprint_before == self.fingerprint_after


def run_arrivals(
    train: Dataset,
    test: Dataset,
    settings: ArrivalSettings,
    progress: Callable[[int, int], None] = lambda done, total: None,
    on_batch: Callable[[BatchRecord], None] = lambda record: None,
) -> DemoResult:
    """Fit the past labels, let the others arrive, measure after every batch.

    Labels arrive by date where the rows have dates, else in random order. Each new label is answered on ``budget``
    rows of its own (at least one yes among them, as from a user who names a label because of an example); everything
    else is unknown. Labels without a yes and a no among the training rows cannot be learned and are counted.
    """
    if settings.budget > train.n_rows:
        raise DataError(f"{settings.budget} answers a label; there are {train.n_rows} training rows: ask for fewer")
    X, X_test = unit_rows(train.X), unit_rows(test.X)
    stream, n_skipped = _stream(train, settings)
    names = train.label_names
    start = time.perf_counter()
    helped = StreamingLabelClassifier().fit(X, train.Y[:, stream.past], [names[j] for j in stream.past])
    fit_seconds = time.perf_counter() - start
    alone = copy.copy(helped).set_params(
        lam=None, metric=None
    )  # the same past labels; an arrival replaces, never writes
    n_past = len(stream.past)
    before = _fingerprint(helped, X_test, n_past)
    asked = annotated_rows(
        train.Y[:, stream.arriving], settings.budget, how="random", stratify=True, random_state=settings.seed
    )
    records: list[BatchRecord] = []
    done = 0
    for batch in stream.batches:
        cells = asked[:, done : done + len(batch)]
        ms = _arrive(helped, X, train, batch, cells)
        ms_alone = _arrive(alone, X, train, batch, cells)
        done += len(batch)
        truth = test.Y[:, stream.arriving[:done]]
        records.append(
            BatchRecord(
                labels=tuple(names[j] for j in batch),
                n_known=n_past + done,
                with_past=_measure(helped, X_test, truth, n_past),
                alone=_measure(alone, X_test, truth, n_past),
                ms_per_label=ms,
                ms_per_label_alone=ms_alone,
                neighbours=tuple(
                    Neighbours(report.label, report.n_yes, _visible(helped.neighbours(report.label)))
                    for report in helped.reports_[-len(batch) :]
                ),
            )
        )
        on_batch(records[-1])
        progress(done, len(stream.arriving))
    return DemoResult(
        source=train.source,
        n_train=train.n_rows,
        n_test=test.n_rows,
        n_features=train.n_features,
        n_past=n_past,
        n_skipped=n_skipped,
        settings=settings,
        fit_seconds=fit_seconds,
        batches=tuple(records),
        fingerprint_before=before,
        fingerprint_after=_fingerprint(helped, X_test, n_past),
    )


def _stream(train: Dataset, settings: ArrivalSettings) -> tuple[LabelStream, int]:
    if not 0.0 < settings.past_share < 1.0:
        raise DataError(f"the share of past labels is {settings.past_share:g}; it must lie between 0 and 1")
    able = learnable(train.Y)
    n_past = round(settings.past_share * len(able))
    if not 0 < n_past < len(able):
        raise DataError(f"only {len(able)} labels have both answers in the training rows; nothing can arrive")
    kept = train.take_labels(able)
    n_batches = min(settings.n_batches, len(able) - n_past)
    if train.row_dates is not None:
        stream = dated_stream(kept, n_past=n_past, n_batches=n_batches)
    else:
        stream = random_stream(len(able), n_past, n_batches=n_batches, random_state=settings.seed)
    back = LabelStream(able[stream.past], tuple(able[batch] for batch in stream.batches))
    return back, train.n_labels - len(able)


def _arrive(
    model: StreamingLabelClassifier, X: sparse.csr_array, train: Dataset, batch: IntArray, cells: sparse.csc_array
) -> float:
    """Add the labels one by one, each with its own annotated rows; milliseconds a label."""
    start = time.perf_counter()
    for position, label in enumerate(batch):
        rows = cells.indices[cells.indptr[position] : cells.indptr[position + 1]]
        model.add_labels(X, train.Y[:, [label]], [train.label_names[label]], annotated=rows)
    return 1000.0 * (time.perf_counter() - start) / len(batch)


def _measure(model: StreamingLabelClassifier, X: sparse.csr_array, truth: sparse.csr_array, n_past: int) -> Measures:
    found = evaluate(truth, model.decision_function(X)[:, n_past:], metrics=["P@k", "macro_auc"])
    return Measures(*(100.0 * found[name] for name in ("P@1", "P@3", "P@5", "macro_auc")))


def _visible(code: list[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """What does not round to zero at two digits."""
    return tuple((name, weight) for name, weight in code if abs(weight) >= 0.005)


def _fingerprint(model: StreamingLabelClassifier, X: sparse.csr_array, n_past: int) -> str:
    return hashlib.sha256(np.ascontiguousarray(model.decision_function(X)[:, :n_past]).tobytes()).hexdigest()


def report_page(result: DemoResult) -> str:
    """The page as text. Label names are data: everything is escaped."""
    charts = "".join(_chart(result.batches, result.n_past, field, title) for field, title in _CURVES)
    last = result.batches[-1]
    n_new = last.n_known - result.n_past
    milliseconds = sum(batch.ms_per_label * len(batch.labels) for batch in result.batches) / n_new
    summary = (
        f"{result.n_past} labels were known at the start. {n_new} more arrived in "
        f"{len(result.batches)} batches; each was answered on {result.settings.budget} rows and learned in about "
        f"{milliseconds:.1f} ms. On {result.n_test} unseen rows the new labels reach P@1 "
        f"{last.with_past.p1:.1f} and average AUC {last.with_past.auc:.1f} with the help of the past, "
        f"{last.alone.p1:.1f} and {last.alone.auc:.1f} without it."
    )
    words = {
        "source": escape(result.source),
        "summary": escape(summary),
        "n_past": result.n_past,
        "seal": "bit-identical to" if result.old_unchanged else "DIFFERENT from",
        "fingerprint": result.fingerprint_after,
        "charts": charts,
        "table": _table(result),
        "codes": _codes(result),
        "n_train": result.n_train,
        "n_features": result.n_features,
        "seed": result.settings.seed,
        "fit_seconds": f"{result.fit_seconds:.1f}",
    }
    template = resources.files("streamlabel.experiments") / "pages" / "demo.html"
    return Template(template.read_text(encoding="utf-8")).substitute(words)


def _chart(batches: Sequence[BatchRecord], n_past: int, field: str, title: str) -> str:
    """Percent against the number of new labels, both learners."""
    xs = [batch.n_known - n_past for batch in batches]
    curves = {kind: [getattr(getattr(batch, kind), field) for batch in batches] for kind in ("with_past", "alone")}
    values = [value for curve in curves.values() for value in curve]
    low, high = 10 * (min(values) // 10), min(100.0, 10 * (max(values) // 10 + 1))

    def at(x: float, y: float) -> str:
        left = _LEFT + (x - xs[0]) / max(xs[-1] - xs[0], 1) * (_WIDTH - _LEFT - _RIGHT)
        top = _TOP + (high - y) / max(high - low, 1) * (_HEIGHT - _TOP - _BOTTOM)
        return f"{left:.1f},{top:.1f}"

    lines = []
    for i in range(5):
        y = low + (high - low) * i / 4
        height = at(xs[0], y).split(",")[1]
        lines.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{height}" y2="{height}"/>')
        lines.append(f'<text class="soft" x="{_LEFT - 6}" y="{height}" text-anchor="end" dy="4">{y:g}</text>')
    for x in xs:
        left = at(x, low).split(",")[0]
        lines.append(f'<text class="soft" x="{left}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{x}</text>')
    for kind, css in (("alone", "alone"), ("with_past", "past")):
        points = [at(x, y) for x, y in zip(xs, curves[kind], strict=True)]
        dots = "".join('<circle r="3" cx="{}" cy="{}"/>'.format(*point.split(",")) for point in points)
        lines.append(f'<g class="{css}"><polyline points="{" ".join(points)}"/>{dots}</g>')
    caption = f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 4}" text-anchor="middle">new labels so far</text>'
    return (
        f'<svg role="img" aria-label="{escape(title)} against the number of new labels" width="{_WIDTH}" '
        f'height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"><text x="{_LEFT}" y="16">{escape(title)}, percent</text>'
        f"{''.join(lines)}{caption}</svg>"
    )


def _table(result: DemoResult) -> str:
    head = "".join(f"<th>{title}</th><th>alone</th>" for _, title in _CURVES)
    rows = []
    for batch in result.batches:
        cells = "".join(
            f"<td>{getattr(batch.with_past, field):.1f}</td><td>{getattr(batch.alone, field):.1f}</td>"
            for field, _ in _CURVES
        )
        rows.append(f"<tr><td>{batch.n_known - result.n_past}</td>{cells}<td>{batch.ms_per_label:.1f}</td></tr>")
    return f"<table><tr><th>new labels</th>{head}<th>ms a label</th></tr>{''.join(rows)}</table>"


def _codes(result: DemoResult) -> str:
    found = [n for batch in result.batches for n in batch.neighbours]
    if not any(n.code for n in found):
        return "<p>No new label was written with past labels.</p>"
    widest = max(abs(weight) for n in found for _, weight in n.code)
    rows = "".join(_code_rows(n, widest) for n in found)
    head = "<tr><th>new label</th><th class='name'>past label</th><th>weight</th><th></th></tr>"
    return f'<div class="table"><table>{head}{rows}</table></div>'


def _code_rows(neighbours: Neighbours, widest: float) -> str:
    if not neighbours.code:
        return f"<tr><td>{escape(neighbours.label)}</td><td colspan='3' class='name'>no related label found</td></tr>"
    rows = []
    for position, (name, weight) in enumerate(neighbours.code):
        width, css = 120 * abs(weight) / widest, "plus" if weight > 0 else "minus"
        rows.append(
            f"<tr><td>{escape(neighbours.label) if position == 0 else ''}</td><td class='name'>{escape(name)}</td>"
            f'<td>{weight:+.2f}</td><td style="text-align:left"><span class="bar {css}" style="width:{width:.0f}px">'
            "</span></td></tr>"
        )
    return "".join(rows)
