"""Labels in the order of the calendar: learned from their first year, judged on what follows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from streamlabel.data.label_stream import first_occurrence
from streamlabel.exceptions import DataError
from streamlabel.metrics.auc import label_auc, label_average_precision
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.results import Dataset

__all__ = ["BirthRecord", "run_timeline"]

_YEAR = np.timedelta64(365, "D")


@dataclass(frozen=True)
class BirthRecord:
    """A label born after ``cut``: the answers of its first year, and how both learners rank what follows, in %."""

    cut: str
    label: str
    n_rows: int
    n_yes: int
    n_later_yes: int
    share: float
    anchored: bool
    auc: float
    auc_alone: float
    average_precision: float
    average_precision_alone: float


def run_timeline(
    data: Dataset,
    cuts: Sequence[str],
    *,
    years: int = 2,
    least_yes: int = 2,
    least_later: int = 5,
    on_record: Callable[[BirthRecord], None] = lambda record: None,
) -> list[BirthRecord]:
    """For every cut: fit the labels known before it on the rows before it, then let those born soon after arrive.

    A new label is annotated on all rows of the 365 days from its first occurrence and judged on all rows after these.
    Labels with fewer than ``least_yes`` positives there, or ``least_later`` afterwards, are left out.
    """
    if data.row_dates is None:
        raise DataError("the rows have no dates; a timeline needs them", source=data.source)
    order = np.argsort(data.row_dates, kind="stable")
    X, Y, dates = data.X[order].astype(np.float64), data.Y[order], data.row_dates[order]
    born = first_occurrence(Y, dates)
    columns = Y.tocsc()
    records: list[BirthRecord] = []
    for cut in cuts:
        day = np.datetime64(cut, "D")
        n_before = int(np.searchsorted(dates, day))
        counts = np.asarray(Y[:n_before].sum(axis=0)).ravel()
        past = np.flatnonzero(counts >= 3)
        helped = StreamingLabelClassifier().fit(X[:n_before], Y[:n_before][:, past])
        alone = copy.copy(helped).set_params(lam=None, metric=None)
        for label in np.flatnonzero((born >= day) & (born < day + years * _YEAR)):
            start, end = np.searchsorted(dates, [born[label], born[label] + _YEAR])
            answers = columns[:, [label]].toarray()
            n_yes, n_later = int(answers[start:end].sum()), int(answers[end:].sum())
            if n_yes < least_yes or n_later < least_later or n_yes == end - start:
                continue
            record = _judge(cut, data.label_names[label], X, answers, slice(start, end), helped, alone, n_later)
            on_record(record)
            records.append(record)
    return records


def _judge(
    cut: str,
    name: str,
    X: sparse.csr_array,
    answers: np.ndarray,
    year: slice,
    helped: StreamingLabelClassifier,
    alone: StreamingLabelClassifier,
    n_later: int,
) -> BirthRecord:
    """Learn one label with copies of both models, so that no label of the experiment leans on another."""
    found = []
    for model in (helped, alone):
        grown = copy.copy(model).add_labels(X[year], answers[year], [f"{name} (new)"])
        scores = grown.decision_function(X[year.stop :])[:, -1:]
        truth = answers[year.stop :]
        found.append((100.0 * label_auc(truth, scores)[0], 100.0 * label_average_precision(truth, scores)[0], grown))
    (auc, precision, grown), (auc_alone, precision_alone, _) = found
    report = grown.reports_[-1]
    return BirthRecord(
        cut, name, year.stop - year.start, report.n_yes, n_later, report.share, report.anchored,
        float(auc), float(auc_alone), float(precision), float(precision_alone),
    )  # fmt: skip
