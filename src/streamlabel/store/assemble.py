"""Assembly of a stored model as the estimator it was, on the classifiers as they are stored."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from streamlabel.errors import DataError, Hint
from streamlabel.store.format import CATALOGUE
from streamlabel.store.guard import check_column
from streamlabel.store.history import LabelRecord, records_of
from streamlabel.store.parts import list_parts, read_part
from streamlabel.store.reader import Snapshot, read_files
from streamlabel.store.seals import relations_digest
from streamlabel.store.segments import FileInfo
from streamlabel.store.stored_rows import (
    FOUND,
    LATER,
    LEARNING,
    TRIALS,
    decode_found,
    decode_later,
    decode_rows,
    decode_trials,
    later_answers,
)
from streamlabel.streaming.blocks import ClassifierBlocks
from streamlabel.streaming.calibration import Decisions
from streamlabel.streaming.inputs import check_parameters
from streamlabel.streaming.state import ModelState
from streamlabel.streaming.trials import LabelReport
from streamlabel.types import CSC

if TYPE_CHECKING:
    from streamlabel.streaming.classifier import StreamingLabelClassifier


@dataclass(frozen=True)
class ModelFacts:
    """The facts of a model as a whole, in values that JSON knows. beta and strength are None for adopted models."""

    parameters: dict[str, Any]
    n_features: int
    loss: str
    beta: float | None
    strength: float | None
    feature_names: list[str] | None = None
    least: float | None = None


def facts_of_model(model: StreamingLabelClassifier) -> ModelFacts:
    """The facts of a fitted model as a whole, to be stored."""
    if not hasattr(model, "state_"):
        raise DataError("the model is not fitted; fit it before it is stored")
    state, names = model.state_, getattr(model, "feature_names_in_", None)
    if state.classes is not None:
        raise DataError("the model was fitted on a vector of classes; fit it on a 0/1 label matrix to store it")
    if model.features is not None:
        raise DataError(
            "a model with features is not stored or exported; map the rows yourself, and store a model of these"
        )
    parameters = {key: value for key, value in model.get_params().items() if key != "prune" or value is not None}
    return ModelFacts(
        {key: value.item() if isinstance(value, np.generic) else value for key, value in parameters.items()},
        int(model.n_features_in_),
        state.loss,
        None if state.beta is None else float(state.beta),
        float(state.strength) if np.isfinite(state.strength) else None,
        None if names is None else [str(name) for name in names],
        state.least,
    )


def facts_of(snapshot: Snapshot) -> ModelFacts:
    """The facts of a stored model; the parameters are checked as those of a user are."""
    from streamlabel.streaming.classifier import StreamingLabelClassifier

    source = snapshot.folder / CATALOGUE
    try:
        meta = {"least": None, **snapshot.meta}
        facts = ModelFacts(**{field.name: meta[field.name] for field in fields(ModelFacts)})
        check_column((facts.beta, facts.strength, facts.least), (float, int, type(None)), "meta", source)
        check_column((facts.loss,), str, "meta", source)
        model = StreamingLabelClassifier(**facts.parameters)
        check_parameters(model)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the parameters of the model are damaged: {error}", source=source) from error
    return facts


def assemble(
    snapshot: Snapshot,
    connection: sqlite3.Connection,
    classifiers: ClassifierBlocks,
    *,
    learning: bool,
    maps: Mapping[int, memoryview] | None = None,
    records: list[LabelRecord] | None = None,
) -> StreamingLabelClassifier:
    """The estimator; ``learning`` False leaves out the rows that it was fitted on.

    maps : as in `read_part`;   records : of the labels of the snapshot, if they were read already
    """
    from streamlabel.streaming.classifier import StreamingLabelClassifier

    facts = facts_of(snapshot)
    records = records_of(connection, snapshot) if records is None else records
    numbers = [(record.threshold, record.slope, record.shift) for record in records]
    check_column(itertools.chain.from_iterable(numbers), float, "the numbers of a label", snapshot.folder / CATALOGUE)
    thresholds, slope, shift = np.array(numbers, dtype=np.float64).reshape(-1, 3).T
    if np.isnan(thresholds).any() or not np.isfinite([slope, shift]).all():
        raise DataError("a threshold or a probability is not a number; it is damaged", source=snapshot.folder)
    codes = _codes(snapshot, connection)
    sizes = np.diff(codes.indptr)
    reports = [_report(record, int(size)) for record, size in zip(records, sizes, strict=True)]
    decisions = Decisions(thresholds.copy(), slope.copy(), shift.copy())
    strength = np.nan if facts.strength is None else facts.strength
    state = ModelState.begin(
        snapshot.listed, classifiers, decisions, reports, codes,
        loss=facts.loss, settings={}, beta=facts.beta, strength=strength, least=facts.least,
    )  # fmt: skip
    if learning:
        state = _with_rows(state, facts, snapshot, connection, maps)
    return StreamingLabelClassifier.from_state(state, facts.feature_names, **facts.parameters)


def _with_rows(
    state: ModelState,
    facts: ModelFacts,
    snapshot: Snapshot,
    connection: sqlite3.Connection,
    maps: Mapping[int, memoryview] | None,
) -> ModelState:
    """The state with the rows of `fit`, if they were kept."""
    names = list_parts(connection, snapshot.revision)
    if LEARNING not in names or facts.beta is None:
        return state
    files: Mapping[int, FileInfo] = read_files(connection, snapshot.folder, snapshot.n_features)
    part = read_part(snapshot.folder, connection, files, LEARNING, snapshot.revision, maps=maps)
    seed, centre = facts.parameters["random_state"], facts.parameters["fit_intercept"]
    found = decode_rows(part, snapshot, seed=seed, beta=facts.beta, centre=centre)
    if found is None:
        return state
    memory, atoms = found
    if TRIALS in names:
        trials = read_part(snapshot.folder, connection, files, TRIALS, snapshot.revision, maps=maps)
        memory.tried.update(decode_trials(trials, snapshot, int(memory.labels.shape[1])))
    if FOUND in names:
        memory.found.update(
            decode_found(read_part(snapshot.folder, connection, files, FOUND, snapshot.revision), snapshot)
        )
    if LATER in names:
        part = read_part(snapshot.folder, connection, files, LATER, snapshot.revision, maps=maps)
        memory = decode_later(part, snapshot, memory)
    later = later_answers(connection, snapshot, int(memory.X.shape[0]))
    return state.with_rows(memory, atoms, facts.parameters["dictionary"], later)


def _codes(snapshot: Snapshot, connection: sqlite3.Connection) -> CSC:
    """The codes (m, m); labels that were retired since do not appear."""
    n_labels = len(snapshot.labels)
    source = snapshot.folder / CATALOGUE
    rows = connection.execute("SELECT classifier, neighbour, weight FROM relation").fetchall()
    owners, neighbours, weights = zip(*rows, strict=True) if rows else ((), (), ())
    check_column(owners + neighbours, int, "the table of relations", source)
    check_column(weights, float, "the table of relations", source)
    _check_relations(snapshot, connection, rows)
    if not rows:
        return sparse.csc_array((n_labels, n_labels))
    column = {number: place for place, number in enumerate(snapshot.classifiers.tolist())}
    row = {number: place for place, number in enumerate(snapshot.labels.tolist())}
    where = np.array([(row.get(a, -1), column.get(b, -1)) for a, b in zip(neighbours, owners, strict=True)])
    kept = (where >= 0).all(axis=1)
    values = np.array(weights)[kept]
    if not np.isfinite(values).all():
        raise DataError("a relation between labels is not finite; it is damaged", source=source)
    return sparse.csc_array((values, (where[kept, 0], where[kept, 1])), shape=(n_labels, n_labels))


def _check_relations(snapshot: Snapshot, connection: sqlite3.Connection, rows: list[tuple[int, int, float]]) -> None:
    expected = dict(connection.execute("SELECT id, relations FROM classifier").fetchall())
    found = dict.fromkeys(snapshot.classifiers.tolist(), 0)
    for owner, neighbour, weight in rows:
        if owner in found:
            found[owner] ^= relations_digest([(neighbour, weight)])
    for place, (owner, digest) in enumerate(found.items()):
        if expected.get(owner) != digest:
            problem = f"label {snapshot.names[place]!r}: its relations to other labels were written to"
            raise DataError(f"{problem}; it is damaged", source=snapshot.folder, hint=Hint.DOCTOR_OR_BACKUP)


def _report(record: LabelRecord, size: int) -> LabelReport:
    beta = np.nan if record.beta is None else record.beta
    return LabelReport(
        record.name, record.n_yes + record.n_no, record.n_yes, record.share, record.lam, record.anchored, beta,
        size, gap=record.gap, loss=record.loss, coupled=record.coupled,
    )  # fmt: skip
