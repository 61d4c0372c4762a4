"""Give back the room of labels that nobody can return to: the rows that are left move to new segments."""

from __future__ import annotations

from contextlib import suppress

from streamlabel.exceptions import DataError
from streamlabel.store.changes import oldest_revision
from streamlabel.store.files import FileInfo
from streamlabel.store.format import PART, SPARSE
from streamlabel.store.reader import Snapshot, latest_revision, read_files
from streamlabel.store.segments import Place, Segment
from streamlabel.store.writer import Change, StoreWriter

__all__ = ["vacuum"]


def vacuum(writer: StoreWriter, snapshot: Snapshot, keep_from: int | None) -> int:
    """Forget the revisions before ``keep_from`` (default: all but the newest); the bytes that were given back.

    Commit first, then the files: a reader that has them mapped keeps them, and a crash in between leaves files that
    are in no catalogue, which doctor removes.
    """
    newest, oldest = latest_revision(writer.connection, snapshot.folder), oldest_revision(writer, snapshot)
    if keep_from is not None and not oldest <= keep_from <= newest:
        raise DataError(f"there is no revision {keep_from}; there are {oldest} to {newest}", source=snapshot.folder)
    before = read_files(writer.connection, snapshot.folder, snapshot.n_features)
    with writer.change("vacuum", {"from": newest if keep_from is None else keep_from}) as change:
        first = change.revision if keep_from is None else keep_from
        _forget_history(change, first)
        _move_rows(writer, change, snapshot, before)
        change.connection.execute(
            "DELETE FROM segment WHERE kind = ? AND number NOT IN (SELECT segment FROM part_array)", (PART,)
        )
        change.connection.execute("UPDATE meta SET value = ? WHERE key = 'oldest'", (str(first),))
    after = read_files(writer.connection, snapshot.folder, snapshot.n_features)
    gone = [info for number, info in before.items() if number not in after]
    for info in gone:
        with suppress(OSError):  # a system that cannot delete what is mapped: doctor does it later
            (snapshot.folder / info.name).unlink()
    return sum(info.n_bytes for info in gone) - sum(info.n_bytes for n, info in after.items() if n not in before)


def _forget_history(change: Change, first: int) -> None:
    """Versions and parts that no revision from ``first`` on has, and what only they used. Ids are not used again."""
    run = change.connection.execute
    run("DELETE FROM version WHERE retired IS NOT NULL AND retired <= ?", (first,))
    run("DELETE FROM part WHERE retired IS NOT NULL AND retired <= ?", (first,))
    run("DELETE FROM part_array WHERE part NOT IN (SELECT number FROM part)")
    run("DELETE FROM classifier WHERE id NOT IN (SELECT classifier FROM version)")
    for table in ("relation", "answer"):
        run(f"DELETE FROM {table} WHERE classifier NOT IN (SELECT id FROM classifier)")


def _move_rows(writer: StoreWriter, change: Change, snapshot: Snapshot, files: dict[int, FileInfo]) -> None:
    """Copy the rows that are left, in their order, byte by byte and checked; then drop the old segments."""
    run = change.connection.execute
    rows = run("SELECT id, segment, slot, start, nnz, checksum, intercept FROM classifier ORDER BY id").fetchall()
    (used,) = run("SELECT coalesce(sum(used_rows), 0) FROM segment WHERE kind != ?", (PART,)).fetchone()
    if used == len(rows):
        return
    old = [number for number, info in files.items() if info.kind != PART]
    segments = {number: Segment(snapshot.folder, files[number]) for number in old}
    writer.forget()
    run("UPDATE segment SET used_rows = n_rows, used_bytes = n_bytes WHERE kind != ?", (PART,))
    for position, (number, segment_number, slot, start, nnz, expected, intercept) in enumerate(rows):
        segment, place = segments[segment_number], Place(segment_number, slot, start, nnz)
        problem = segment.problem(place, expected, intercept)
        content = segment.content(place)
        if problem or content is None:
            raise DataError(f"row {slot} of {segment.info.name}: {problem}; run doctor(repair=True) first")
        moved = change.row(content, segment.info.kind == SPARSE, nnz, len(rows) - position)
        run(
            "UPDATE classifier SET segment = ?, slot = ?, start = ? WHERE id = ?",
            (moved.segment, moved.slot, moved.start, number),
        )
    change.connection.executemany("DELETE FROM segment WHERE number = ?", [(number,) for number in old])
