"""Changes that add no classifier: rename, retire, threshold, roll back. Each is one revision; nothing is overwritten.

A label has versions (name, threshold, classifier), each from one revision to another. A change ends versions and
begins others, so every revision can be read, and every change undone, until a vacuum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from streamlabel._validation import check_label_names
from streamlabel.exceptions import ConflictError, DataError, NotFoundError
from streamlabel.store.append import begin_versions
from streamlabel.store.damage import check_versions
from streamlabel.store.format import CATALOGUE
from streamlabel.store.parts import Part, read_part
from streamlabel.store.reader import LIVE, Snapshot, latest_revision, read_files, read_meta
from streamlabel.store.writer import Change, StoreWriter

__all__ = [
    "end_versions",
    "note_metric",
    "oldest_revision",
    "put_part",
    "rename_label",
    "retire_labels",
    "roll_back",
    "roll_back_label",
    "set_threshold",
]


def rename_label(writer: StoreWriter, snapshot: Snapshot, name: str, new_name: str, key: str | None) -> None:
    """The same label, id and classifier under another name."""
    column = snapshot.column(name)
    (new_name,) = check_label_names([new_name], 1)
    if new_name in snapshot.names:
        raise ConflictError(f"label name {new_name!r} is taken; choose another name, or merge the two")
    with writer.change("rename", {"label": name, "to": new_name}, key) as change:
        _replace(change, snapshot, column, name=new_name)


def set_threshold(writer: StoreWriter, snapshot: Snapshot, name: str, value: float, key: str | None) -> None:
    """Where `predict` says yes to a label."""
    column = snapshot.column(name)
    if math.isnan(value):
        raise DataError(f"the threshold of {name!r} is not a number")
    with writer.change(
        "threshold", {"label": name, "to": value if math.isfinite(value) else str(value)}, key
    ) as change:
        _replace(change, snapshot, column, threshold=float(value))


def retire_labels(
    writer: StoreWriter, snapshot: Snapshot, names: Sequence[str], key: str | None, action: str = "retire"
) -> None:
    """Take labels out of the model. Their rows stay, for older revisions and for a roll-back."""
    columns = [snapshot.column(name) for name in names]
    if len(set(columns)) == len(snapshot.labels):
        raise DataError("a model needs at least one label; retire fewer")
    with writer.change(action, {"labels": list(names)}, key) as change:
        end_versions(change, [int(snapshot.labels[column]) for column in columns])


def roll_back(writer: StoreWriter, snapshot: Snapshot, revision: int, key: str | None) -> None:
    """Make all labels and parts what they were in a revision: those that came later go, those that went return."""
    _check_revision(writer, snapshot, revision)
    connection = writer.connection
    with writer.change("rollback", {"to": revision}, key) as change:
        before = {"revision": revision}
        then = set(connection.execute(f"SELECT v.number FROM version v WHERE {LIVE}", before).fetchall())
        now = set(connection.execute("SELECT v.number FROM version v WHERE v.retired IS NULL").fetchall())
        check_versions(writer.folder, connection, sorted(number for (number,) in then - now), revision)
        _end(change, "version", now - then)
        for (number,) in sorted(then - now):
            connection.execute(
                "INSERT INTO version (label, classifier, name, threshold, checksum, born) SELECT label, classifier, "
                "name, threshold, checksum, ? FROM version WHERE number = ?",
                (change.revision, number),
            )
        parts_then = set(connection.execute(f"SELECT v.number FROM part v WHERE {LIVE}", before).fetchall())
        parts_now = set(connection.execute("SELECT v.number FROM part v WHERE v.retired IS NULL").fetchall())
        _check_parts(writer, sorted(number for (number,) in parts_then - parts_now), revision)
        _end(change, "part", parts_now - parts_then)
        for (number,) in sorted(parts_then - parts_now):
            _revive_part(change, number)


def roll_back_label(writer: StoreWriter, snapshot: Snapshot, name: str, revision: int | None, key: str | None) -> None:
    """One label as it was in a revision, or before its last change. A label that was not there then is retired."""
    connection = writer.connection
    label = _find_label(writer, snapshot, name)
    if revision is None:
        (changed,) = connection.execute(
            "SELECT max(coalesce(retired, born)) FROM version WHERE label = ?", (label,)
        ).fetchone()
        revision = int(changed) - 1
        if revision < oldest_revision(writer, snapshot):
            raise DataError(f"label {name!r} has not changed since the oldest revision; retire takes it out")
    _check_revision(writer, snapshot, revision)
    found = connection.execute(
        f"SELECT v.classifier, v.name, v.threshold, v.number FROM version v WHERE v.label = :label AND {LIVE}",
        {"label": label, "revision": revision},
    ).fetchone()
    taken = found is not None and found[1] in snapshot.names and snapshot.labels[snapshot.column(found[1])] != label
    if taken:
        raise ConflictError(f"label name {found[1]!r} is taken by another label now; rename that one first")
    if found is None and len(snapshot.labels) == 1:
        raise DataError("a model needs at least one label; this one cannot go")
    with writer.change("rollback", {"label": name, "to": revision}, key) as change:
        end_versions(change, [label])
        if found is not None:
            check_versions(writer.folder, connection, [found[3]], revision)
            begin_versions(change, [(label, *found[:3])])


def put_part(writer: StoreWriter, snapshot: Snapshot, name: str, part: Part, key: str | None) -> None:
    """Put a part beside the labels, in place of what had that name."""
    with writer.change("part", {"name": name}, key) as change:
        change.part(name, part)


def note_metric(
    writer: StoreWriter, snapshot: Snapshot, label: str, name: str, value: float, n_answers: int, key: str | None
) -> None:
    """Note a measurement of a label."""
    number = int(snapshot.labels[snapshot.column(label)])
    with writer.change("metric", {"label": label, "name": name}, key) as change:
        change.connection.execute(
            "INSERT INTO metric (label, name, value, n_answers, revision) VALUES (?, ?, ?, ?, ?)",
            (number, name, float(value), int(n_answers), change.revision),
        )


def end_versions(change: Change, labels: Sequence[int]) -> None:
    """These labels (ids) are not in the model from this revision on."""
    change.connection.executemany(
        "UPDATE version SET retired = ? WHERE label = ? AND retired IS NULL",
        [(change.revision, label) for label in labels],
    )


def _end(change: Change, table: str, numbers: Iterable[tuple[int]]) -> None:
    change.connection.executemany(
        f"UPDATE {table} SET retired = ? WHERE number = ?", [(change.revision, number) for (number,) in numbers]
    )


def _replace(
    change: Change, snapshot: Snapshot, column: int, name: str | None = None, threshold: float | None = None
) -> None:
    label = int(snapshot.labels[column])
    (known,) = change.connection.execute(
        "SELECT threshold FROM version WHERE label = ? AND retired IS NULL", (label,)
    ).fetchone()
    end_versions(change, [label])
    name = snapshot.names[column] if name is None else name
    threshold = known if threshold is None else threshold
    begin_versions(change, [(label, int(snapshot.classifiers[column]), name, threshold)])


def _revive_part(change: Change, number: int) -> None:
    """A new part with the content of an old one, on the same arrays."""
    cursor = change.connection.execute(
        "INSERT INTO part (name, content, born) SELECT name, content, ? FROM part WHERE number = ?",
        (change.revision, number),
    )
    change.connection.execute(
        "INSERT INTO part_array SELECT ?, name, dtype, shape, segment, start, n_bytes, checksum FROM part_array "
        "WHERE part = ?",
        (cursor.lastrowid, number),
    )


def _check_parts(writer: StoreWriter, numbers: Sequence[int], revision: int) -> None:
    files = read_files(writer.connection, writer.folder, writer.n_features)
    for number in numbers:
        (name,) = writer.connection.execute("SELECT name FROM part WHERE number = ?", (number,)).fetchone()
        try:
            read_part(writer.folder, writer.connection, files, name, revision)
        except (DataError, NotFoundError) as error:
            raise DataError(
                f"the part {name!r} is damaged in revision {revision}; nothing was changed; choose a revision that is "
                "whole, or bring labels back one by one with rollback(label=...)",
                source=writer.folder,
            ) from error


def _find_label(writer: StoreWriter, snapshot: Snapshot, name: str) -> int:
    """The id of a label by its name now, or by the last name of one that was retired."""
    if name in snapshot.names:
        return int(snapshot.labels[snapshot.column(name)])
    found = writer.connection.execute(
        "SELECT label FROM version WHERE name = ? ORDER BY number DESC LIMIT 1", (name,)
    ).fetchone()
    if found is None:
        raise NotFoundError(f"no label was ever called {name!r}; history() says what there was")
    return int(found[0])


def oldest_revision(writer: StoreWriter, snapshot: Snapshot) -> int:
    """The first revision that can still be read: vacuum moves it."""
    return int(read_meta(writer.connection, snapshot.folder / CATALOGUE)["oldest"])


def _check_revision(writer: StoreWriter, snapshot: Snapshot, revision: int) -> None:
    newest, oldest = latest_revision(writer.connection, snapshot.folder), oldest_revision(writer, snapshot)
    if not oldest <= revision <= newest:
        raise NotFoundError(f"{snapshot.folder}: there is no revision {revision}; there are {oldest} to {newest}")
