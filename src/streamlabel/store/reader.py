"""Reading of one whole revision: from the catalogue in one transaction, and from the mapped segments."""

from __future__ import annotations

import gc
import json
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from streamlabel.errors import DataError, Hint, NotFoundError, did_you_mean
from streamlabel.store.format import CATALOGUE, DENSE, KINDS, MOST_FEATURES, PART, file_name
from streamlabel.store.guard import check_column
from streamlabel.store.seals import NOTES, combined, place_seal, seal
from streamlabel.store.segments import FileInfo, Place, Segment, version_checksum
from streamlabel.store.sqlite import copied, explain
from streamlabel.streaming.blocks import SharedList
from streamlabel.types import FloatArray, IntArray

ARRAYS = (
    "labels", "names", "classifiers", "segment", "slot", "checksums", "intercept", "start", "nnz",
)  # fmt: skip
COLUMNS = (
    "v.label, v.name, c.id, c.segment, c.slot, c.checksum, c.intercept, c.start, c.nnz, "
    "v.threshold, v.checksum, c.label, c.place"
)
LIVE = "v.born <= :revision AND (v.retired IS NULL OR v.retired > :revision)"
MOST_TRIES = 3


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The labels of one revision, (m,) each, in the order of their ids, which is the order of arrival.

    labels, listed : stable ids, and names;   classifiers : the rows of the catalogue's table that they use
    segment, slot, start, nnz, checksums : where the weights lie (`segments.Place`)

    What else is known about a label (`history.LabelRecord`) is read when somebody asks.
    """

    folder: Path
    revision: int
    meta: dict[str, Any]
    segments: dict[int, Segment]
    labels: IntArray
    listed: SharedList[str]
    classifiers: IntArray
    segment: IntArray
    slot: IntArray
    checksums: IntArray
    intercept: FloatArray
    start: IntArray
    nnz: IntArray

    @property
    def names(self) -> tuple[str, ...]:
        return self.listed.items()

    @property
    def n_features(self) -> int:
        return int(self.meta["n_features"])

    def place(self, column: int) -> Place:
        """The place of a label's row."""
        where = (self.segment[column], self.slot[column], self.start[column], self.nnz[column])
        return Place(*(int(value) for value in where))

    def problem(self, column: int) -> str:
        """The problem with the row of a label, or ""."""
        place = self.place(column)
        intercept = float(self.intercept[column])
        return self.segments[place.segment].problem(place, int(self.checksums[column]), intercept)

    def complaint(self, column: int, problem: str) -> str:
        """The problem with the row of a label, as a message for people."""
        info = self.segments[int(self.segment[column])].info
        return f"label {self.listed[column]!r}, row {self.slot[column]} of {info.name}: {problem}"

    def take(self, columns: IntArray) -> Snapshot:
        """The same revision with these labels only."""
        arrays = {name: getattr(self, name)[columns] for name in ARRAYS if name != "names"}
        return replace(self, listed=SharedList.of(self.listed[column] for column in columns.tolist()), **arrays)

    def column(self, name: str) -> int:
        """The column of the label with this name."""
        try:
            return self.names.index(name)
        except ValueError:
            close = did_you_mean(name, self.names) if isinstance(name, str) else ""
            problem = f"no label is called {name!r} in revision {self.revision}" + (f"; {close}" if close else "")
            raise NotFoundError(problem, hint=None if close else Hint.LABELS) from None


def load_snapshot(
    folder: Path, revision: int | None = None, *, lenient: bool = False, mapped: bool = True
) -> tuple[Snapshot, sqlite3.Connection]:
    """The newest revision, or that one, and a copy of the catalogue that it was read from.

    A file that a vacuum took away in between makes it read again. ``lenient`` leaves out labels whose entries in the
    catalogue are damaged.
    """
    for attempt in range(MOST_TRIES):
        catalogue = copied(folder)
        try:
            with explain(folder):
                return read_snapshot(folder, catalogue, revision, lenient=lenient, mapped=mapped), catalogue
        except NotFoundError:
            catalogue.close()
            if attempt == MOST_TRIES - 1:
                raise
        except BaseException:
            catalogue.close()
            raise
    raise AssertionError("unreachable")


def read_snapshot(
    folder: Path,
    connection: sqlite3.Connection,
    revision: int | None = None,
    known: dict[int, Segment] | None = None,
    *,
    lenient: bool = False,
    mapped: bool = True,
) -> Snapshot:
    """As `load_snapshot`, from a catalogue that is open; ``known`` segments are not mapped again."""
    source = folder / CATALOGUE
    newest = latest_revision(connection, source)
    meta = read_meta(connection, source)
    revision = newest if revision is None else revision
    oldest = int(meta["oldest"])
    if not oldest <= revision <= newest:
        raise NotFoundError(f"{folder}: there is no revision {revision}; there are {oldest} to {newest}")
    files = read_files(connection, folder, int(meta["n_features"]))
    query = f"SELECT {COLUMNS} FROM version v JOIN classifier c ON c.id = v.classifier WHERE {LIVE}"
    with _collector_paused():
        rows = connection.execute(query, {"revision": revision}).fetchall()
        damaged = _damaged_rows(rows)
        digest = _digest(rows, connection, revision)
        if lenient:
            left_out = set(damaged)
            rows = [row for place, row in enumerate(rows) if place not in left_out]
        columns = _columns(rows, source)
    used = np.unique(columns["segment"]).tolist()
    segments = dict(known or {})
    for number in used:
        if number not in files or files[number].kind == PART:
            raise DataError(f"a label lies in segment {number}, which is not there", source=source, hint=Hint.DOCTOR)
        if number not in segments:
            segments[number] = Segment(folder, files[number], mapped=mapped)
    snapshot = Snapshot(folder, revision, meta, {number: segments[number] for number in used}, **columns)
    _check_places(snapshot, source)
    if not lenient:
        _check_sealed(connection, rows, damaged, digest, revision, source)
    return snapshot


def _damaged_rows(rows: list[tuple[Any, ...]]) -> list[int]:
    """The places of labels that are not what was written: name, threshold, where the weights lie."""
    found = []
    for place, row in enumerate(rows):
        label, name, number, segment, slot, checksum, intercept, start, nnz, threshold, said, owner, sealed = row
        try:
            if (
                version_checksum(label, number, name, threshold) != said
                or place_seal(number, owner, segment, slot, start, nnz, checksum, intercept) != sealed
                or label != owner
            ):
                found.append(place)
        except (struct.error, UnicodeEncodeError):
            found.append(place)
    return found


def _digest(rows: list[tuple[Any, ...]], connection: sqlite3.Connection, revision: int) -> int:
    queries = (
        f"SELECT v.checksum FROM part v WHERE {LIVE}",
        *(f"SELECT seal FROM {table} WHERE revision <= :revision" for table in NOTES),
    )
    others = [one for query in queries for (one,) in connection.execute(query, {"revision": revision})]
    checksums = [*(row[10] for row in rows), *others]
    return combined(np.array([one if isinstance(one, int) else 1 for one in checksums], dtype=np.int64))


def _check_sealed(
    connection: sqlite3.Connection,
    rows: list[tuple[Any, ...]],
    damaged: list[int],
    digest: int,
    revision: int,
    source: object,
) -> None:
    """Refuse what the catalogue cannot have said when it was written."""
    if damaged:
        name = rows[damaged[0]][1]
        problem = f"label {name!r}: the checksum of its entry in the catalogue is wrong"
        raise DataError(problem, source=source, hint=Hint.LEAVE_OUT)
    columns = "number, at, actor, action, detail, digest"
    row = connection.execute(f"SELECT {columns}, seal FROM revision WHERE number = ?", (revision,)).fetchone()
    check_seal(row or (None,), f"revision {revision}", source)
    if row[5] != digest:
        problem = f"labels or parts of revision {revision} are missing, or are too many; it is damaged"
        raise DataError(problem, source=source, hint=Hint.DOCTOR_OR_BACKUP)


def check_seal(row: tuple[Any, ...], what: str, source: object) -> None:
    """Refuse a row whose last column is not the seal of the others."""
    if seal(*row[:-1]) != row[-1]:
        problem = f"what is said about {what} was written to; it is damaged"
        raise DataError(problem, source=source, hint=Hint.DOCTOR_OR_BACKUP)


def latest_revision(connection: sqlite3.Connection, source: object) -> int:
    """The number of the newest revision."""
    (newest,) = connection.execute("SELECT max(number) FROM revision").fetchone()
    check_column([newest], int, "the number of the revision", source)
    return int(newest)


def read_meta(connection: sqlite3.Connection, source: object) -> dict[str, Any]:
    """Read what is said about the whole model, as plain values; the few numbers that sizes depend on are bounded."""
    try:
        rows = connection.execute("SELECT key, value, seal FROM meta").fetchall()
        meta = {key: json.loads(value) for key, value, _ in rows}
        check_column([meta["n_features"], meta["oldest"]], int, "meta", source)
        check_column([meta["parameters"]], dict, "meta", source)
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise DataError(f"its table meta cannot be read ({error}); it is damaged", source=source) from error
    if not 1 <= meta["n_features"] <= MOST_FEATURES:
        raise DataError(f"it claims {meta['n_features']} features; refused", source=source)
    for key, value, said in rows:
        if seal(key, value) != said:
            raise DataError(f"{key!r} in its table meta was written to; it is damaged", source=source, hint=Hint.BACKUP)
    return meta


def read_files(
    connection: sqlite3.Connection, folder: Path, n_features: int, *, sealed: bool = True
) -> dict[int, FileInfo]:
    """Read the numbered files; each exists with the size that its counts need, so that no count can lie."""
    source = folder / CATALOGUE
    files = {}
    query = "SELECT number, kind, n_rows, n_bytes, used_rows, used_bytes, seal FROM segment"
    for row in connection.execute(query).fetchall():
        check_column(row, int, "the table of segments", source)
        number, kind, n_rows, n_bytes = row[:4]
        if kind not in KINDS or min(number, n_rows + 1, n_bytes + 1) < 1 or n_bytes > 2**62:
            raise DataError(f"segment {number} has impossible counts; refused", source=source)
        if kind == DENSE and n_bytes != 4 * n_features * n_rows:
            raise DataError(f"segment {number} has {n_bytes} bytes for {n_rows} rows; refused", source=source)
        try:
            file_name(kind, number)
        except ValueError as error:
            raise DataError(f"segment {number}: {error}; refused", source=source) from error
        if sealed:
            check_seal(row, file_name(kind, number), source)
        files[number] = FileInfo(kind, number, n_features, n_rows, n_bytes)
    return files


def _columns(rows: list[tuple[Any, ...]], source: object) -> dict[str, Any]:
    kinds: dict[str, type] = {"names": str, "intercept": float}
    parts = list(zip(*rows, strict=True)) or [()] * len(ARRAYS)
    columns: dict[str, Any] = {}
    for name, part in zip(ARRAYS, parts, strict=False):
        check_column(part, kinds.get(name, int), f"the column {name!r} of the labels", source)
        if name == "names":
            columns[name] = part
            continue
        try:
            columns[name] = np.array(part, dtype=np.float64 if name in kinds else np.int64)
        except OverflowError as error:
            raise DataError(f"the column {name!r} of the labels is out of range", source=source) from error
    if not np.isfinite(columns["intercept"]).all():
        raise DataError("an intercept is not finite; it is damaged", source=source, hint=Hint.DOCTOR)
    order = np.argsort(columns["labels"], kind="stable")
    if (np.diff(order) != 1).any():
        columns = {name: tuple(part[i] for i in order) if name == "names" else part[order]
                   for name, part in columns.items()}  # fmt: skip
    names = columns.pop("names")
    if (np.diff(columns["labels"]) <= 0).any() or len(set(names)) != len(names):
        raise DataError("two labels share an id or a name; it is damaged", source=source, hint=Hint.DOCTOR)
    return {**columns, "listed": SharedList.of(names)}


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the garbage collector over a million objects that become a few arrays: a quarter of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _check_places(snapshot: Snapshot, source: object) -> None:
    """Check that every row lies inside its segment, before anything is read from there."""
    for number, segment in snapshot.segments.items():
        mine = snapshot.segment == number
        slot, start, nnz = snapshot.slot[mine], snapshot.start[mine], snapshot.nnz[mine]
        info = segment.info
        wrong = (slot < 0) | (slot >= info.n_rows)
        if info.kind != DENSE:
            wrong |= (start < 0) | (nnz < 0) | (nnz > info.n_features) | (start % 4 != 0)
            wrong |= start > info.n_bytes - 8 * np.clip(nnz, 0, info.n_features)
        if wrong.any():
            raise DataError(f"a label lies outside of {info.name}; refused", source=source)


def damaged_columns(snapshot: Snapshot) -> Iterator[tuple[int, str]]:
    """Iterate over the damaged labels of a snapshot: (column, what is wrong). Reads every row."""
    for column in range(len(snapshot.labels)):
        problem = snapshot.problem(column)
        if problem:
            yield column, problem
