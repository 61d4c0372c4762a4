"""Records of a stored model: its labels, its revisions, their differences, and its size."""

from __future__ import annotations

import json
import sqlite3
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlabel.errors import DataError, Hint, NotFoundError
from streamlabel.store.format import CATALOGUE, HEADER_SIZE, PART
from streamlabel.store.reader import LIVE, Snapshot, check_seal, latest_revision, read_meta
from streamlabel.store.seals import facts_seal, seal
from streamlabel.store.segments import version_checksum


@dataclass(frozen=True)
class LabelRecord:
    """The record of one label in one revision.

    id : stable, never used again;   born, born_at : the revision that brought it, and when
    n_yes, n_no, n_unasked : the answers it was learned from; rows it was not asked on, None if nobody counted
    lam, beta, share, anchored, loss, coupled : how it was learned (`streaming.trials.LabelReport`)
    threshold : the score from which `predict` says yes;  slope, shift : of the sigmoid that makes probabilities
    checksum : CRC-32 of its weights and its intercept
    """

    id: int
    name: str
    born: int
    born_at: str
    origin: str
    n_yes: int
    n_no: int
    n_unasked: int | None
    lam: float | None
    beta: float | None
    share: float
    anchored: bool
    loss: str
    coupled: bool
    gap: float
    threshold: float
    slope: float
    shift: float
    checksum: int


@dataclass(frozen=True)
class Revision:
    """One change of a stored model: its number, when, by whom, what it did."""

    number: int
    at: str
    actor: str
    action: str
    detail: Any


@dataclass(frozen=True)
class LabelChange:
    """A difference of a label between two revisions: "added", "retired", "renamed", "threshold" or "relearned"."""

    id: int
    kind: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Metric:
    """A measurement of a label (its id) after so many answers, noted in a revision."""

    label: int
    name: str
    value: float
    n_answers: int
    revision: int


@dataclass(frozen=True)
class StoreSizes:
    """The size of a stored model: bytes on the disk.

    labels : segments of classifiers, with ``room`` of them still free;   learning : what is kept to go on learning
    parts : everything else that was put beside the labels;   catalogue : names, numbers, history
    """

    labels: int
    room: int
    learning: int
    parts: int
    catalogue: int

    @property
    def total(self) -> int:
        return self.labels + self.learning + self.parts + self.catalogue


def read_labels(
    connection: sqlite3.Connection, revision: int, source: object, known: dict[Any, LabelRecord] | None = None
) -> list[LabelRecord]:
    """Read the labels of a revision, in the order of their ids; not by way of an index, which no checksum covers.

    known : rows that were checked before, with their records; then those of this revision. Only others are checked.
    """
    rows = connection.execute(
        "SELECT v.label, v.name, l.born, r.at, l.origin, c.n_yes, c.n_no, c.n_unasked, c.lam, c.beta, c.share, "
        "c.anchored, c.loss, c.coupled, c.gap, v.threshold, c.slope, c.shift, c.checksum, "
        "c.id, c.relations, c.answers, c.facts, l.seal "
        "FROM version v NOT INDEXED JOIN classifier c ON c.id = v.classifier JOIN label l ON l.id = v.label "
        "JOIN revision r ON r.number = l.born "
        f"WHERE {LIVE} ORDER BY v.label",
        {"revision": revision},
    )
    before = {} if known is None else known.copy()
    found = {row: before.get(row) or _label_record(row, source) for row in rows}
    if known is not None:
        known.clear()
        known.update(found)
    return list(found.values())


def records_of(
    connection: sqlite3.Connection, snapshot: Snapshot, known: dict[Any, LabelRecord] | None = None
) -> list[LabelRecord]:
    """The records of the labels of a snapshot, in its order; ``known`` as in `read_labels`."""
    source = snapshot.folder / CATALOGUE
    found = {record.id: record for record in read_labels(connection, snapshot.revision, source, known)}
    try:
        return [found[label] for label in snapshot.labels.tolist()]
    except KeyError as error:
        problem = f"label {error} is known in part only; it is damaged"
        raise DataError(problem, source=source, hint=Hint.DOCTOR) from error


def read_thresholds(connection: sqlite3.Connection, folder: Path, label: int) -> list[tuple[int, int, float]]:
    """Read the thresholds of a label (id), oldest first: (since which revision, checksum of its classifier, value)."""
    rows = connection.execute(
        "SELECT v.label, v.classifier, v.name, v.threshold, v.checksum, v.born, c.checksum "
        "FROM version v NOT INDEXED JOIN classifier c ON c.id = v.classifier WHERE v.label = ? ORDER BY v.born",
        (label,),
    ).fetchall()
    for row in rows:
        if version_checksum(*row[:4]) != row[4]:
            problem = f"label {row[2]!r}: what is said about it in revision {row[5]} was written to; it is damaged"
            raise DataError(problem, source=folder / CATALOGUE, hint=Hint.DOCTOR_OR_BACKUP)
    return [(born, checksum, threshold) for *_, threshold, _, born, checksum in rows]


def read_history(connection: sqlite3.Connection, folder: Path, label: str | None = None) -> list[Revision]:
    """Read every revision, newest first; or those in which a label that once had this name changed."""
    query = "SELECT number, at, actor, action, detail, digest, seal FROM revision ORDER BY number DESC"
    rows = connection.execute(query).fetchall()
    for row in rows:
        check_seal(row, f"revision {row[0]}", folder / CATALOGUE)
    if label is not None:
        ids = "SELECT label FROM version NOT INDEXED WHERE name = ?"
        query = f"SELECT born, retired FROM version NOT INDEXED WHERE label IN ({ids})"
        numbers = {number for row in connection.execute(query, (label,)) for number in row}
        if not numbers:
            raise NotFoundError(f"{folder}: no label was ever called {label!r}")
        rows = [row for row in rows if row[0] in numbers]
    try:
        return [Revision(row[0], row[1], row[2], row[3], json.loads(row[4])) for row in rows]
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"its history is damaged ({error})", source=folder / CATALOGUE, hint=Hint.DOCTOR) from error


def read_metrics(connection: sqlite3.Connection, label: int | None) -> list[Metric]:
    """Read all measurements, or those of a label, oldest first."""
    query = "SELECT number, label, name, value, n_answers, revision, seal FROM metric ORDER BY number"
    rows = connection.execute(query).fetchall()
    for row in rows:
        check_seal(row, f"measurement {row[0]}", CATALOGUE)
    return [Metric(*row[1:-1]) for row in rows if label is None or row[1] == label]


def read_sizes(connection: sqlite3.Connection, folder: Path) -> StoreSizes:
    """Read the sizes of the files as the catalogue knows them, and of the catalogue itself."""
    rows = connection.execute("SELECT number, kind, n_bytes, used_bytes FROM segment").fetchall()
    owners = dict(connection.execute("SELECT a.segment, p.name FROM part_array a JOIN part p ON p.number = a.part"))
    parts = {number: HEADER_SIZE + n_bytes for number, kind, n_bytes, _ in rows if kind == PART}
    learning = sum(size for number, size in parts.items() if owners.get(number) in ("later", "learning", "trials"))
    (answers,) = connection.execute("SELECT coalesce(sum(length(positives)), 0) FROM answer").fetchone()
    return StoreSizes(
        labels=sum(HEADER_SIZE + n_bytes for _, kind, n_bytes, _ in rows if kind != PART),
        room=sum(n_bytes - used for _, kind, n_bytes, used in rows if kind != PART),
        learning=learning + answers,
        parts=sum(parts.values()) - learning,
        catalogue=(folder / CATALOGUE).stat().st_size - answers,
    )


def read_diff(connection: sqlite3.Connection, folder: Path, before: int, after: int) -> list[LabelChange]:
    """Read what happened to the labels between two revisions, in the order of their ids."""
    source = folder / CATALOGUE
    newest, oldest = latest_revision(connection, source), int(read_meta(connection, source)["oldest"])
    for revision in (before, after):
        if not oldest <= revision <= newest:
            raise NotFoundError(f"{folder}: there is no revision {revision}; there are {oldest} to {newest}")
    one, two = _versions(connection, before), _versions(connection, after)
    changes = []
    for label in sorted(one.keys() | two.keys()):
        old, new = one.get(label), two.get(label)
        if old is None or new is None:
            kind = "added" if old is None else "retired"
            changes.append(LabelChange(label, kind, old and old[0], new and new[0]))
            continue
        if old[0] != new[0]:
            changes.append(LabelChange(label, "renamed", old[0], new[0]))
        if old[1] != new[1]:
            changes.append(LabelChange(label, "threshold", f"{old[1]:g}", f"{new[1]:g}"))
        if old[2] != new[2]:
            changes.append(LabelChange(label, "relearned", f"{old[2]:08x}", f"{new[2]:08x}"))
    return changes


def _versions(connection: sqlite3.Connection, revision: int) -> dict[int, tuple[str, float, int]]:
    rows = connection.execute(
        "SELECT v.label, v.name, v.threshold, c.checksum FROM version v JOIN classifier c ON c.id = v.classifier "
        f"WHERE {LIVE}",
        {"revision": revision},
    )
    return {label: (name, threshold, checksum) for label, name, threshold, checksum in rows}


def _label_record(row: tuple[Any, ...], source: object) -> LabelRecord:
    *values, number, relations, answers, facts, sealed = row
    name, born, origin, slope, shift = values[1], values[2], values[4], values[16], values[17]
    problem = ""
    try:
        if facts_seal(number, (slope, shift, *values[5:15], relations, answers)) != facts:
            problem = f"label {name!r}: what is known of it was written to"
    except (struct.error, AttributeError, UnicodeEncodeError):
        kinds = ", ".join(sorted({type(value).__name__ for value in values[5:18] if value is not None}))
        problem = f"label {name!r}: what is known of it holds {kinds}"
    if not problem and seal(values[0], born, origin) != sealed:
        problem = f"label {name!r}: where it came from was written to"
    if problem:
        raise DataError(f"{problem}; it is damaged", source=source, hint=Hint.DOCTOR_OR_BACKUP)
    values[11], values[13] = bool(values[11]), bool(values[13])
    return LabelRecord(*values)
