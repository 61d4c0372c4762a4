"""Merging of several labels: learned again from all their answers if these are kept, else their weighted mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from streamlabel.errors import ConflictError, DataError
from streamlabel.store.append import insert_labels
from streamlabel.store.assemble import assemble
from streamlabel.store.changes import Read, end_versions, rest_of
from streamlabel.store.classifiers import StoredClassifiers
from streamlabel.store.reader import Snapshot
from streamlabel.store.writer import StoreWriter
from streamlabel.streaming.calibration import Decisions
from streamlabel.streaming.kept_rows import stack
from streamlabel.streaming.state import LabelBatch
from streamlabel.streaming.trials import LabelReport
from streamlabel.types import FloatArray, IntArray
from streamlabel.validation import check_label_names

if TYPE_CHECKING:
    from streamlabel.streaming.classifier import StreamingLabelClassifier


def merge_labels(
    writer: StoreWriter, snapshot: Snapshot, names: Sequence[str], into: str, read: Read, key: str | None
) -> str:
    """Put one new label, with an id of its own, in place of ``names``; returns "relearned" or "averaged"."""
    columns = np.array(sorted({snapshot.column(name) for name in names}), dtype=np.intp)
    (into,) = check_label_names([into], 1)
    if len(columns) < 2:
        raise DataError("merging takes at least two labels; rename gives one another name")
    if into in snapshot.names and snapshot.column(into) not in columns:
        raise ConflictError(f"label name {into!r} is taken by a label that is not merged; choose another name")
    model = assemble(snapshot, writer.connection, StoredClassifiers(snapshot, read[0]), learning=True)
    others = np.setdiff1d(np.arange(len(snapshot.labels)), columns)
    relearned = _relearned(writer, snapshot, model, columns, others, into, read)
    states = _averaged(model, columns, into) if relearned is None else relearned
    how = "averaged" if relearned is None else "relearned"
    with writer.change("merge", {"labels": list(names), "into": into, "how": how}, key) as change:
        end_versions(change, snapshot.labels[columns].tolist())
        insert_labels(change, states, snapshot.labels[others], origin="merged", unasked=[0 if relearned else None],
                      keep=relearned is not None)  # fmt: skip
    return how


def _relearned(
    writer: StoreWriter, snapshot: Snapshot, model: StreamingLabelClassifier, columns: IntArray, others: IntArray,
    into: str, read: Read,
) -> LabelBatch | None:  # fmt: skip
    """The union of the answers, learned beside the labels that stay; None if not all answers are kept."""
    memory, answers = model.state_.memory, model.state_.answers
    if memory is None or answers is None or not np.isin(columns, answers.labels).all() or not others.size:
        return None
    learner = rest_of(writer, snapshot, others, read)
    rest = learner.state_.memory
    if rest is None:
        return None
    chosen = np.flatnonzero(np.isin(answers.labels, columns))
    union = np.asarray(answers.by_rows[:, chosen].sum(axis=1)).ravel() > 0
    X, later = rest.X, memory.later
    if later is not None:  # rows of updates count where all labels were answered: a lone yes would say too often yes
        if columns[-1] >= memory.labels.shape[1]:
            return None
        told = np.flatnonzero(later.known[:, columns].all(axis=1))
        yes = np.asarray(later.labels[told][:, columns].sum(axis=1)).ravel() > 0
        X, union = stack(X, later.X[told]), np.append(union, yes)
    if union.all():
        return None
    learner.add_labels(X, union.astype(np.int8), [into])
    return learner.state_.labels(len(others))


def _averaged(model: StreamingLabelClassifier, columns: IntArray, into: str) -> LabelBatch:
    """The mean of the classifiers, each counting as much as it has yes answers."""
    state = model.state_
    reports = [state.reports[int(column)] for column in columns]
    share = np.array([max(report.n_yes, 1) for report in reports], dtype=np.float64)
    share /= share.sum()
    shares = share[:, None]
    decisions = state.decisions
    first = reports[0]
    report = LabelReport(
        into, sum(report.n_rows for report in reports), sum(report.n_yes for report in reports), 0.0, None, False,
        first.beta, loss=first.loss,
    )  # fmt: skip
    return LabelBatch(
        (into,),
        state.classifiers.columns(columns) @ (shares if state.least is None else sparse.csc_array(shares)),
        np.array([state.classifiers.intercept[columns] @ share]),
        Decisions(*(np.array([_finite_mean(part[columns], share)]) for part in
                    (decisions.thresholds, decisions.slope, decisions.offset))),
        (report,),
        sparse.csc_array((0, 1)),
        (None,),
    )  # fmt: skip


def _finite_mean(values: FloatArray, share: FloatArray) -> float:
    """The mean of the finite thresholds. An infinite one (always or never fires) counts only if there is no other."""
    finite = np.isfinite(values)
    return float(values[finite] @ share[finite] / share[finite].sum()) if finite.any() else float(values[0])
