"""Writing of one change of a stored model: rows and arrays into files, files to the disk, then one commit.

What a killed writer had not committed is invisible: its rows lie behind the used part of a segment, and are
overwritten by the next writer; its new files are not in the catalogue, and are replaced.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from streamlabel.errors import DataError, Hint
from streamlabel.store.format import DENSE, HEADER_SIZE, PART, SPARSE
from streamlabel.store.guard import WriterLock, now, open_regular
from streamlabel.store.parts import ALIGNMENT, Part, array_content, check_part
from streamlabel.store.seals import NOTES, combined, digest_by_revision, mixed, part_checksum, seal
from streamlabel.store.segments import LARGEST, FileInfo, Place, create_file, encode_row, room_for, sync, write_at
from streamlabel.store.sqlite import explain, writing

SPARSE_ROWS = 1 << 20  # more than fit: a segment ends with its bytes, so that none of its room is lost
LEAST_SPARSE_BYTES = 1 << 20


@dataclass
class _OpenSegment:
    info: FileInfo
    descriptor: int
    used_rows: int
    used_bytes: int


class StoreWriter:
    """The one writer of a directory: it holds the lock, the catalogue, and the segments that still have room.

    It gives them back at `close`, or when nobody refers to it any more.
    """

    def __init__(self, folder: Path, n_features: int | None = None, actor: str = "") -> None:
        self.folder, self.actor = folder, actor
        self._lock = WriterLock(folder, actor)
        self._open: dict[int, _OpenSegment] = {}
        try:
            self.connection = writing(folder)
        except BaseException:
            self._lock.release()
            raise
        self._give_back = weakref.finalize(self, _give_back, self._open, self.connection, self._lock)
        try:
            (stored,) = self.connection.execute("SELECT max(value) FROM meta WHERE key = 'n_features'").fetchone()
            self.n_features = int(stored) if n_features is None else n_features
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the files and the catalogue, and give the lock back."""
        self._give_back()

    @contextmanager
    def change(self, action: str, detail: Any, key: str | None = None) -> Iterator[Change]:
        """Make a revision; it becomes visible, whole, when the block ends well."""
        with explain(self.folder), _explain_files(self.folder):
            self.connection.execute("BEGIN IMMEDIATE")
            change = Change(self, action, detail, key)
            try:
                yield change
                change.flush()
            except BaseException:
                self._take_back()
                raise
            try:
                self.connection.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    self._take_back()
                if isinstance(error, sqlite3.Error) and self._is_there(change.revision):
                    problem = f"revision {change.revision} is written, but the disk did not confirm it ({error})"
                    raise DataError(f"{problem}; look at history before it is repeated", source=self.folder) from error
                raise

    def _take_back(self) -> None:
        self.forget()
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def _is_there(self, revision: int) -> bool:
        """Whether a commit that failed is in the catalogue all the same."""
        try:
            (newest,) = self.connection.execute("SELECT max(number) FROM revision").fetchone()
        except sqlite3.Error:
            return True  # nobody knows
        return bool(newest == revision)

    def segment(self, kind: int, n_rows: int, n_bytes: int) -> _OpenSegment:
        """The newest segment of this kind in which a row of so many bytes fits, or a new one."""
        known = self._open.get(kind)
        if known is None:
            known = self._reopen(kind)
        if (
            known is not None
            and known.used_rows < known.info.n_rows
            and known.used_bytes + n_bytes <= known.info.n_bytes
        ):
            return known
        if known is not None:
            self.finish(known)
            os.close(self._open.pop(kind).descriptor)
        return self._create(kind, n_rows, n_bytes)

    def new_file(self, kind: int, n_rows: int, n_bytes: int) -> tuple[FileInfo, int]:
        """Create a new numbered file, on the disk and in the catalogue; its descriptor is the caller's."""
        (last,) = self.connection.execute("SELECT coalesce(max(number), 0) FROM segment").fetchone()
        info = FileInfo(kind, last + 1, self.n_features, n_rows, n_bytes)
        descriptor = create_file(self.folder, info)
        row = (info.number, kind, n_rows, n_bytes, 0, 0)
        self.connection.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, seal(*row)))
        return info, descriptor

    def file_info(self, number: int) -> FileInfo:
        """The facts of a numbered file, from the catalogue."""
        row = self.connection.execute(
            "SELECT kind, n_rows, n_bytes FROM segment WHERE number = ?", (number,)
        ).fetchone()
        return FileInfo(row[0], number, self.n_features, row[1], row[2])

    def finish_all(self) -> None:
        """Finish all open segments (`finish`)."""
        for segment in self._open.values():
            self.finish(segment)

    def finish(self, segment: _OpenSegment) -> None:
        """Flush a segment: its rows are on the disk when this returns, and counted in the catalogue."""
        sync(segment.descriptor)
        self.count(segment.info, segment.used_rows, segment.used_bytes)

    def count(self, info: FileInfo, used_rows: int, used_bytes: int) -> None:
        """Write into the catalogue how much of a file is used."""
        row = (info.number, info.kind, info.n_rows, info.n_bytes, used_rows, used_bytes)
        self.connection.execute(
            "UPDATE segment SET used_rows = ?, used_bytes = ?, seal = ? WHERE number = ?",
            (used_rows, used_bytes, seal(*row), info.number),
        )

    def _create(self, kind: int, n_rows: int, n_bytes: int) -> _OpenSegment:
        """A segment with room for as much again as there is; if the disk has not got that, with room for little."""
        try:
            info, descriptor = self.new_file(kind, *self._room(kind, n_rows, n_bytes, generous=True))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            info, descriptor = self.new_file(kind, *self._room(kind, n_rows, n_bytes, generous=False))
        self._open[kind] = _OpenSegment(info, descriptor, 0, 0)
        return self._open[kind]

    def _room(self, kind: int, n_rows: int, n_bytes: int, *, generous: bool) -> tuple[int, int]:
        query = "SELECT coalesce(sum(used_rows), 0), coalesce(sum(used_bytes), 0) FROM segment WHERE kind = ?"
        rows_before, bytes_before = self.connection.execute(query, (kind,)).fetchone() if generous else (0, 0)
        if kind == SPARSE:
            return SPARSE_ROWS, max(min(max(bytes_before, LEAST_SPARSE_BYTES), LARGEST), n_bytes)
        rows = room_for(self.n_features, rows_before, n_rows)
        return rows, 4 * self.n_features * rows

    def _reopen(self, kind: int) -> _OpenSegment | None:
        row = self.connection.execute(
            "SELECT number, n_rows, n_bytes, used_rows, used_bytes FROM segment WHERE kind = ? "
            "ORDER BY number DESC LIMIT 1",
            (kind,),
        ).fetchone()
        if row is None:
            return None
        number, n_rows, n_bytes, used_rows, used_bytes = row
        info = FileInfo(kind, number, self.n_features, n_rows, n_bytes)
        descriptor = open_regular(self.folder / info.name, os.O_RDWR)
        if os.fstat(descriptor).st_size != HEADER_SIZE + n_bytes:
            os.close(descriptor)
            raise DataError("was cut short", source=self.folder / info.name, hint=Hint.REPAIR)
        self._open[kind] = _OpenSegment(info, descriptor, used_rows, used_bytes)
        return self._open[kind]

    def forget(self) -> None:
        """Forget what is known of the segments, after a failed change; it is read again from the catalogue."""
        _close_segments(self._open)


def _give_back(segments: dict[int, _OpenSegment], connection: sqlite3.Connection, lock: WriterLock) -> None:
    _close_segments(segments)
    connection.close()
    lock.release()


def _close_segments(segments: dict[int, _OpenSegment]) -> None:
    for segment in segments.values():
        os.close(segment.descriptor)
    segments.clear()


class Change:
    """A change in the making: it writes rows and parts, and statements to the catalogue. ``revision`` is its number."""

    def __init__(self, writer: StoreWriter, action: str, detail: Any, key: str | None) -> None:
        self._writer, self._touched = writer, False
        self.connection: sqlite3.Connection = writer.connection
        query = "SELECT number, digest FROM revision ORDER BY number DESC LIMIT 1"
        last, digest = self.connection.execute(query).fetchone() or (0, 0)
        self.revision, self.digest = int(last) + 1, int(digest)
        self._about = (self.revision, now(), writer.actor, action, json.dumps(detail, ensure_ascii=False))
        for what, value in (("key", key), ("actor", writer.actor)):
            if value is not None and not isinstance(value, str):
                raise DataError(f"{what} is {value!r}; it must be a string")
        if key is not None:
            self.insert("event", (key, self.revision))

    def insert(self, table: str, *rows: Sequence[Any]) -> None:
        """Write rows of a table whose last column is their seal."""
        for row in rows:
            places = ", ".join("?" * (len(row) + 1))
            sealed = seal(*row)
            self.connection.execute(f"INSERT INTO {table} VALUES ({places})", (*row, sealed))
            if table in NOTES:
                self.digest ^= mixed(sealed)

    def end(self, table: str, condition: str, values: Sequence[Any]) -> int:
        """End the live versions or parts of which this is true; how many there were. No index leads to a version."""
        live = f"FROM {table}{' NOT INDEXED' * (table == 'version')} WHERE retired IS NULL AND {condition}"
        rows = self.connection.execute(f"SELECT number, checksum {live}", values).fetchall()
        self.connection.executemany(
            f"UPDATE {table} SET retired = ? WHERE number = ?", [(self.revision, number) for number, _ in rows]
        )
        self.digest ^= combined(np.array([checksum for _, checksum in rows], dtype=np.int64))
        return len(rows)

    def recount(self) -> None:
        """Make the digest from what is live, after a repair took out what could not be trusted."""
        self.digest = digest_by_revision(self.connection, [self.revision])[self.revision]

    def rows(self, weights: Any) -> list[tuple[Place, bytes]]:
        """Write classifiers (d, k), an array or a csc_array; returns where they lie, and their bytes."""
        written, n_new = [], weights.shape[1]
        weights = weights if isinstance(weights, np.ndarray) else weights.sorted_indices()
        for number in range(n_new):
            if isinstance(weights, np.ndarray):
                content, is_sparse, nnz = encode_row(weights[:, number])
            else:
                span = slice(weights.indptr[number], weights.indptr[number + 1])
                content, is_sparse, nnz = encode_row(weights.data[span], weights.indices[span])
            written.append((self.row(content, is_sparse, nnz, n_new - number), content))
        return written

    def row(self, content: bytes | memoryview, sparse: bool, nnz: int, n_coming: int) -> Place:
        """Write the bytes of one row; ``n_coming`` rows are about to be written, this one included."""
        segment = self._writer.segment(SPARSE if sparse else DENSE, n_coming, len(content))
        place = Place(segment.info.number, segment.used_rows, segment.used_bytes if sparse else 0, nnz)
        write_at(segment.descriptor, content, HEADER_SIZE + segment.used_bytes)
        segment.used_rows += 1
        segment.used_bytes += len(content)
        self._touched = True
        return place

    def part(self, name: str, part: Part) -> None:
        """Write a part; it takes the place of the one of the same name."""
        content = check_part(name, part)
        self.end("part", "name = ?", (name,))
        (last,) = self.connection.execute("SELECT coalesce(max(number), 0) FROM part").fetchone()
        arrays: list[Sequence[Any]] = []
        if part.arrays:
            arrays = self._arrays({key: array_content(array) for key, array in part.arrays.items()})
        self.begin_part(last + 1, name, content, arrays)

    def begin_part(self, number: int, name: str, content: str, arrays: Sequence[Sequence[Any]]) -> None:
        """A part from this revision on; ``arrays`` are the rows that say where its arrays lie."""
        checksum = part_checksum(name, content, arrays)
        row = (number, name, content, checksum, self.revision)
        self.connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, NULL)", row)
        self.connection.executemany(
            "INSERT INTO part_array VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [(number, *array) for array in arrays]
        )
        self.digest ^= mixed(checksum)

    def flush(self) -> None:
        """Everything written is on the disk when this returns, and the revision is in the catalogue."""
        if self._touched:
            self._writer.finish_all()
        self.insert("revision", (*self._about, self.digest))

    def _arrays(self, arrays: dict[str, tuple[memoryview, str, str]]) -> list[Sequence[Any]]:
        starts, end = [], 0
        rows: list[Sequence[Any]] = []
        for content, _, _ in arrays.values():
            starts.append(-(-end // ALIGNMENT) * ALIGNMENT)  # the next place at which an array may begin
            end = starts[-1] + len(content)
        info, descriptor = self._writer.new_file(PART, 0, end)
        try:
            for start, (name, (content, dtype, shape)) in zip(starts, arrays.items(), strict=True):
                write_at(descriptor, content, HEADER_SIZE + start)
                rows.append((name, dtype, shape, info.number, start, len(content), zlib.crc32(content)))
            sync(descriptor)
        finally:
            os.close(descriptor)
        return rows


@contextmanager
def _explain_files(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot be written: {error.strerror or error}; nothing was changed. Free some space, or see to its rights",
            source=folder,
        ) from error
