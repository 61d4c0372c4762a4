"""Writing of a model into a new directory, and of new labels behind those that are there, each in one revision."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlabel._version import __version__
from streamlabel.errors import ConflictError, DataError
from streamlabel.store.assemble import facts_of_model
from streamlabel.store.parts import ANSWERS, Part, list_parts
from streamlabel.store.reader import Snapshot
from streamlabel.store.seals import combined, facts_seal, place_seal, relations_digest
from streamlabel.store.segments import Place, Segment, checksum, sync_directory, version_checksum
from streamlabel.store.sqlite import create_catalogue, explain
from streamlabel.store.stored_rows import (
    FOUND,
    LATER,
    LEARNING,
    TRIALS,
    TRIED,
    encode_found,
    encode_later,
    encode_positives,
    encode_rows,
    encode_trials,
)
from streamlabel.store.writer import Change, StoreWriter
from streamlabel.streaming.blocks import extended
from streamlabel.streaming.kept_rows import FitMemory
from streamlabel.streaming.state import LabelBatch
from streamlabel.types import IntArray

if TYPE_CHECKING:
    from streamlabel.streaming.classifier import StreamingLabelClassifier

CHUNK = 64


def write_model(
    path: Path,
    model: StreamingLabelClassifier,
    *,
    keep_rows: bool,
    parts: Mapping[str, Part],
    private: bool,
    actor: str,
) -> None:
    """Write a model into a new directory, which appears whole, or not at all."""
    facts = facts_of_model(model)
    if path.exists() or path.is_symlink():
        raise ConflictError(f"{path} is there already; open(path, 'a') goes on with a stored model")
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.parent.mkdir(parents=True, exist_ok=True)
        aside.mkdir(0o700 if private else 0o777)
        create_catalogue(aside)
        writer = StoreWriter(aside, facts.n_features, actor)
        try:
            with writer.change("create", {"labels": len(model.label_names_), "version": __version__}) as change:
                for key, value in {**vars(facts), "oldest": 1}.items():
                    change.insert("meta", (key, json.dumps(value)))
                _write_labels(change, model, keep_rows=keep_rows)
                for name, part in parts.items():
                    change.part(name, part)
        finally:
            writer.close()
        sync_directory(aside)
        os.rename(aside, path)
        sync_directory(path.parent)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", source=path) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_labels(change: Change, model: StreamingLabelClassifier, *, keep_rows: bool) -> None:
    state = model.state_
    memory, n_labels, n_fitted = state.memory, len(state.names), state.n_fitted
    ids = np.arange(1, n_labels + 1)
    keep = keep_rows and memory is not None
    origin = "adopted" if memory is None else "fit"
    starts = sorted({*range(0, n_fitted, CHUNK), *range(n_fitted, n_labels, CHUNK), n_labels})
    for start, stop in pairwise(starts):
        fitted = start < n_fitted
        batch = state.labels(start, stop, answers=not fitted and keep)
        everywhere = fitted and origin == "fit"
        unasked = [0 if everywhere or positives is not None else None for positives in batch.positives]
        insert_labels(change, batch, ids[:start], origin=origin if fitted else "added", unasked=unasked, keep=keep)
    if keep and memory is not None:
        change.part(LEARNING, encode_rows(memory, state.atoms, ids[:n_fitted]))
        change.part(TRIALS, encode_trials(memory.tried, n_fitted))
        if memory.later is not None:
            change.part(LATER, encode_later(memory, ids[:n_fitted]))
        if memory.found:
            change.part(FOUND, encode_found(memory.found))


CLASSIFIER = f"INSERT INTO classifier VALUES ({', '.join('?' * 24)})"


class Added:
    """The ids, classifiers, places and checksums that `insert_labels` gave to labels."""

    def __init__(self, labels: IntArray, classifiers: IntArray, places: Sequence[Place], checksums: IntArray) -> None:
        self.labels, self.classifiers, self.places, self.checksums = labels, classifiers, places, checksums


def append_labels(
    writer: StoreWriter,
    snapshot: Snapshot,
    states: LabelBatch,
    unasked: Sequence[int | None],
    key: str | None,
    memory: FitMemory | None = None,
    beside: Mapping[str, Any] | None = None,
) -> Snapshot:
    """Store labels behind those of the snapshot, in one revision; with trials of ``memory`` that are not stored yet.

    beside : what to keep beside some of the labels (JSON), by their names
    """
    names = list(states.names)
    with explain(snapshot.folder):
        keep = LEARNING in list_parts(writer.connection, snapshot.revision)
    with writer.change("add", {"labels": names[:100], "n": len(names)}, key) as change:
        added = insert_labels(change, states, snapshot.labels, origin="added", unasked=unasked, keep=keep)
        write_beside(change, states, added, beside or {})
        if keep and memory is not None:
            write_trials(change, memory)
    return grown(writer, snapshot, change.revision, states, added)


def write_beside(change: Change, states: LabelBatch, added: Added, beside: Mapping[str, Any]) -> None:
    """Keep something beside the classifiers of labels: it stays theirs, also if the label is learned anew later."""
    for name, number in zip(states.names, added.classifiers.tolist(), strict=True):
        if name in beside:
            change.part(f"{ANSWERS}{number}", Part(beside[name]))


def write_trials(change: Change, memory: FitMemory) -> None:
    """Keep trials that were run since the model was read, so that they need not be run again."""
    query = "SELECT content FROM part WHERE name = ? AND retired IS NULL"
    if memory.found:
        found, stored = encode_found(memory.found), change.connection.execute(query, (FOUND,)).fetchone()
        if stored is None or json.loads(stored[0]) != json.loads(json.dumps(found.content)):
            change.part(FOUND, found)
    known = change.connection.execute(query, (TRIALS,)).fetchone()
    trials = encode_trials(memory.tried, int(memory.labels.shape[1]))
    now, before = json.loads(json.dumps(trials.content)), {} if known is None else json.loads(known[0])
    stale = any(now[key] != before.get(key) for key in ("labels", TRIED))  # such trials are not read
    if stale or not set(now["budgets"]) <= set(before["budgets"]):
        change.part(TRIALS, trials)


def insert_labels(
    change: Change,
    states: LabelBatch,
    past: IntArray,
    *,
    origin: str | None,
    unasked: Sequence[int | None],
    keep: bool,
    labels: IntArray | None = None,
) -> Added:
    """Write labels. ``past`` has the ids of the labels before them; ``keep`` writes the answers that they came with.

    ``labels`` are the ids of labels that are there already, to be learned anew; their old versions must have ended,
    and their ``origin`` (None) stays.
    """
    connection, n_new = change.connection, len(states.names)
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM classifier").fetchone()
    if labels is None:
        (newest,) = connection.execute("SELECT coalesce(max(id), 0) FROM label").fetchone()
        labels = np.arange(newest + 1, newest + 1 + n_new)
        change.insert("label", *((label, change.revision, origin) for label in labels.tolist()))
    intercept = _finite(states.intercept, "intercepts")
    slope, shift = _finite(states.decisions.slope, "slopes"), _finite(states.decisions.offset, "offsets")
    written = change.rows(states.weights)
    sums = [checksum(written[j][1], intercept[j]) for j in range(n_new)]
    rows, versions, answers = [], [], []
    relations: list[tuple[int, int, float]] = []
    for j, (place, _) in enumerate(written):
        number, label, report = last + 1 + j, int(labels[j]), states.reports[j]
        beta = float(report.beta) + 0.0 if np.isfinite(report.beta) else None
        lam = None if report.lam is None else float(report.lam) + 0.0
        neighbours, weights = states.code(j)
        related = list(zip(_ids(past, labels, neighbours), (weights + 0.0).tolist(), strict=True))
        positives, answered = states.positives[j], None
        if keep and positives is not None:
            content, answered = encode_positives(positives)
            answers.append((number, content, answered))
        where = (number, label, place.segment, place.slot, place.start, place.nnz, sums[j], intercept[j])
        facts = (
            slope[j], shift[j], report.n_yes, report.n_rows - report.n_yes - report.n_background, unasked[j], lam, beta,
            float(report.share) + 0.0,
            int(report.anchored), report.loss, int(report.coupled), float(report.gap) + 0.0, relations_digest(related),
            answered,
        )  # fmt: skip
        rows.append((*where, *facts, place_seal(*where), facts_seal(number, facts)))
        versions.append((label, number, states.names[j], float(states.decisions.thresholds[j])))
        relations += [(number, *one) for one in related]
    connection.executemany(CLASSIFIER, rows)
    begin_versions(change, versions)
    connection.executemany("INSERT INTO relation VALUES (?, ?, ?)", relations)
    connection.executemany("INSERT INTO answer VALUES (?, ?, ?)", answers)
    return Added(labels, np.arange(last + 1, last + 1 + n_new), [place for place, _ in written], np.array(sums))


def _ids(past: IntArray, labels: IntArray, numbers: IntArray) -> list[int]:
    """The ids of the labels of these numbers, among past labels and new ones behind them."""
    size = len(past)
    return [int(past[number] if number < size else labels[number - size]) for number in numbers.tolist()]


def begin_versions(change: Change, versions: Sequence[tuple[int, int, str, float]]) -> None:
    """Set what labels are from this revision on: (label, classifier, name, threshold) each."""
    plain = [(label, number, name, threshold + 0.0) for label, number, name, threshold in versions]
    rows = [(*version, version_checksum(*version), change.revision) for version in plain]
    change.connection.executemany(
        "INSERT INTO version (label, classifier, name, threshold, checksum, born) VALUES (?, ?, ?, ?, ?, ?)", rows
    )
    change.digest ^= combined(np.array([row[4] for row in rows]))


def check_grown(model: StreamingLabelClassifier, snapshot: Snapshot) -> None:
    """Check that the model has the labels of the snapshot, to the bit of their intercepts, and more behind them."""
    state, n_past = model.state_, len(snapshot.labels)
    same = state.names.starts_with(snapshot.listed)
    if not same or not np.array_equal(state.classifiers.intercept[:n_past], snapshot.intercept):
        raise ConflictError(
            f"{snapshot.folder}: the model did not grow from revision {snapshot.revision}; add the labels to "
            "model() of the store, or use add_labels of the store"
        )
    if len(state.names) == n_past:
        raise DataError("the model has no label that is not stored yet; nothing to append", source=snapshot.folder)


def grown(writer: StoreWriter, snapshot: Snapshot, revision: int, states: LabelBatch, added: Added) -> Snapshot:
    """The snapshot with the labels that were just committed, without reading the catalogue again."""
    segments = dict(snapshot.segments)
    for number in {place.segment for place in added.places} - segments.keys():
        segments[number] = Segment(snapshot.folder, writer.file_info(number))
    columns: dict[str, Any] = {
        name: extended(getattr(snapshot, name), [getattr(place, name) for place in added.places])
        for name in ("segment", "slot", "start", "nnz")
    }
    return replace(
        snapshot,
        revision=revision,
        segments=segments,
        labels=extended(snapshot.labels, added.labels),
        listed=snapshot.listed.appended(states.names),
        classifiers=extended(snapshot.classifiers, added.classifiers),
        checksums=extended(snapshot.checksums, added.checksums),
        intercept=extended(snapshot.intercept, states.intercept),
        **columns,
    )


def _finite(values: np.ndarray, what: str) -> list[float]:
    if not np.isfinite(values).all():
        raise DataError(f"the model has {what} that are not finite; it cannot be stored")
    return [float(value) + 0.0 for value in values]  # SQLite knows no -0.0, and checksums must be of what it gives back
