"""A label learned anew: the same id and name, another classifier, in one revision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamlabel.exceptions import DataError
from streamlabel.models.snapshot import export_labels
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.results import IntArray
from streamlabel.store.append import insert_labels
from streamlabel.store.assemble import assemble
from streamlabel.store.changes import end_versions
from streamlabel.store.classifiers import BlockCache, StoredClassifiers
from streamlabel.store.learning import LEARNING, TRIALS, encode_trials
from streamlabel.store.parts import list_parts
from streamlabel.store.reader import Snapshot
from streamlabel.store.writer import StoreWriter

__all__ = ["Learn", "relearn_label", "rest_of"]

Learn = Callable[[StreamingLabelClassifier], StreamingLabelClassifier]


def relearn_label(
    writer: StoreWriter, snapshot: Snapshot, name: str, learn: Learn, cache: BlockCache, key: str | None
) -> None:
    """``learn`` gets the model without the label and gives it back with the label behind the others."""
    column = snapshot.column(name)
    others = np.setdiff1d(np.arange(len(snapshot.labels)), [column])
    past = rest_of(writer, snapshot, others, cache)
    budgets = set() if past._memory is None else set(past._memory._trials)
    model = learn(past)
    states = export_labels(model, len(others))
    if states.names != (snapshot.names[column],):
        raise DataError(f"{name!r} was to be learned anew, but the model has {list(states.names)} behind the others")
    keep = LEARNING in list_parts(writer.connection, snapshot.revision)
    unasked = [0 if rows is not None else None for rows in states.positives]
    label = snapshot.labels[[column]]
    with writer.change("relearn", {"label": name}, key) as change:
        end_versions(change, label.tolist())
        insert_labels(change, states, snapshot.labels[others], origin=None, unasked=unasked, keep=keep, labels=label)
        if keep and model._memory is not None and not model._memory._trials.keys() <= budgets:
            change.part(TRIALS, encode_trials(model._memory._trials, int(model._memory._labels.shape[1])))


def rest_of(writer: StoreWriter, snapshot: Snapshot, others: IntArray, cache: BlockCache) -> StreamingLabelClassifier:
    """The model of these labels alone, with what it needs to learn on."""
    rest = snapshot.take(others)
    return assemble(rest, writer.connection, StoredClassifiers(rest, cache), learning=True)
