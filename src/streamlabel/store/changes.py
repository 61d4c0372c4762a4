"""Changes of a stored model in one revision: rename, retire, merge, threshold, roll back, learn again, forget the old.

A label has versions (name, threshold, classifier), each from one revision to another. A change ends versions and
begins others, so every revision can be read, and every change undone, until a vacuum.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from streamlabel.errors import ConflictError, DataError, Hint, NotFoundError
from streamlabel.store.append import begin_versions, insert_labels, write_beside, write_trials
from streamlabel.store.assemble import assemble
from streamlabel.store.classifiers import BlockCache, StoredClassifiers
from streamlabel.store.damage import check_versions
from streamlabel.store.format import CATALOGUE, DENSE, PART, SPARSE
from streamlabel.store.history import LabelRecord, records_of
from streamlabel.store.parts import ANSWERS, ARRAY_COLUMNS, Part, continued, list_parts, read_part
from streamlabel.store.reader import LIVE, Snapshot, latest_revision, read_files, read_meta
from streamlabel.store.seals import place_seal, seal
from streamlabel.store.segments import FileInfo, Place, Segment
from streamlabel.store.sqlite import shrink
from streamlabel.store.stored_rows import LATER, LEARNING, encode_later
from streamlabel.store.writer import Change, StoreWriter
from streamlabel.streaming.calibration import Decisions
from streamlabel.streaming.kept_rows import stack
from streamlabel.streaming.state import LabelBatch
from streamlabel.streaming.trials import LabelReport
from streamlabel.types import FloatArray, IntArray
from streamlabel.validation import check_label_names

if TYPE_CHECKING:
    from streamlabel.streaming.classifier import StreamingLabelClassifier
    from streamlabel.streaming.later_rows import Update


def rename_label(writer: StoreWriter, snapshot: Snapshot, name: str, new_name: str, key: str | None) -> None:
    """Give a label another name; id and classifier stay."""
    column = snapshot.column(name)
    (new_name,) = check_label_names([new_name], 1)
    if new_name in snapshot.names:
        raise ConflictError(f"label name {new_name!r} is taken; choose another name, or merge the two")
    with writer.change("rename", {"label": name, "to": new_name}, key) as change:
        _replace(change, snapshot, column, name=new_name)


def set_threshold(writer: StoreWriter, snapshot: Snapshot, name: str, value: float, key: str | None) -> None:
    """Set the score above which `predict` says yes to a label."""
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


def roll_back(writer: StoreWriter, snapshot: Snapshot, revision: int, action: str, key: str | None) -> None:
    """Make all labels and parts what they were in a revision: those that came later go, those that went return."""
    _check_revision(writer, snapshot, revision)
    connection = writer.connection
    with writer.change(action, {"to": revision}, key) as change:
        before = {"revision": revision}
        back = {}
        for table in ("version", "part"):
            then = set(connection.execute(f"SELECT v.number FROM {table} v WHERE {LIVE}", before).fetchall())
            now = set(connection.execute(f"SELECT v.number FROM {table} v WHERE v.retired IS NULL").fetchall())
            back[table] = sorted(number for (number,) in then - now)
            for gone in now - then:
                change.end(table, "number = ?", gone)
        check_versions(writer.folder, connection, back["version"], revision)
        _check_parts(writer, back["part"], revision)
        query = "SELECT label, classifier, name, threshold FROM version WHERE number = ?"
        begin_versions(change, [connection.execute(query, (number,)).fetchone() for number in back["version"]])
        for number in back["part"]:
            _revive_part(change, number)


def roll_back_label(writer: StoreWriter, snapshot: Snapshot, name: str, revision: int | None, key: str | None) -> None:
    """Bring one label back as it was in a revision, or before its last change; one that was not there is retired."""
    connection = writer.connection
    label = _find_label(writer, snapshot, name)
    if revision is None:
        (changed,) = connection.execute(
            "SELECT max(coalesce(retired, born)) FROM version NOT INDEXED WHERE label = ?", (label,)
        ).fetchone()
        revision = int(changed) - 1
        if revision < oldest_revision(writer, snapshot):
            raise DataError(f"label {name!r} has not changed since the oldest revision; retire takes it out")
    _check_revision(writer, snapshot, revision)
    query = f"classifier, name, threshold, number FROM version v NOT INDEXED WHERE v.label = :label AND {LIVE}"
    found = connection.execute(f"SELECT {query}", {"label": label, "revision": revision}).fetchone()
    taken = found is not None and found[1] in snapshot.names and snapshot.labels[snapshot.column(found[1])] != label
    if taken:
        raise ConflictError(f"label name {found[1]!r} is taken by another label now; rename that one first")
    if found is None and len(snapshot.labels) == 1:
        raise DataError("a model needs at least one label; this one cannot go")
    then, now = (list_parts(connection, number).get(LATER) for number in (revision, snapshot.revision))
    other = found is not None and then != now and found[0] not in snapshot.classifiers
    if other and any(_is_updated(writer, label, number) for number in (revision, snapshot.revision)):
        problem = f"label {name!r}: an update lies between, which taught it together with others"
        raise ConflictError(problem, hint=Hint.WHOLE_MODEL, hint_value=str(revision))
    with writer.change("rollback", {"label": name, "to": revision}, key) as change:
        end_versions(change, [label])
        if found is not None:
            check_versions(writer.folder, connection, [found[3]], revision)
            begin_versions(change, [(label, *found[:3])])
            _revive_answers(writer, change, int(found[0]))


def _is_updated(writer: StoreWriter, label: int, revision: int) -> bool:
    """Whether a label (id) was learned from texts of updates, as a revision has them."""
    if LATER not in list_parts(writer.connection, revision):
        return False
    files = read_files(writer.connection, writer.folder, writer.n_features)
    arrays = read_part(writer.folder, writer.connection, files, LATER, revision).arrays
    return label in arrays["labels"][arrays["again"]]


def put_part(writer: StoreWriter, snapshot: Snapshot, name: str, part: Part, key: str | None) -> None:
    """Put a part beside the labels, in place of what had that name."""
    with writer.change("part", {"name": name}, key) as change:
        change.part(name, part)


def note_metric(
    writer: StoreWriter, snapshot: Snapshot, label: str, name: str, value: float, n_answers: int, key: str | None
) -> None:
    """Store a measurement of a label."""
    number = int(snapshot.labels[snapshot.column(label)])
    if math.isnan(value):
        raise DataError(f"the measurement {name!r} of {label!r} is not a number")
    with writer.change("metric", {"label": label, "name": name}, key) as change:
        (last,) = change.connection.execute("SELECT coalesce(max(number), 0) FROM metric").fetchone()
        change.insert("metric", (last + 1, number, name, float(value) + 0.0, int(n_answers), change.revision))


def end_versions(change: Change, labels: Sequence[int]) -> None:
    """End the versions of these labels (ids): from this revision on they are not in the model."""
    change.end("version", "label IN (SELECT value FROM json_each(?))", (json.dumps(list(labels)),))


def _replace(
    change: Change, snapshot: Snapshot, column: int, name: str | None = None, threshold: float | None = None
) -> None:
    label = int(snapshot.labels[column])
    (known,) = change.connection.execute(
        "SELECT threshold FROM version NOT INDEXED WHERE label = ? AND retired IS NULL", (label,)
    ).fetchone()
    end_versions(change, [label])
    name = snapshot.names[column] if name is None else name
    threshold = known if threshold is None else threshold
    begin_versions(change, [(label, int(snapshot.classifiers[column]), name, threshold)])


def _revive_answers(writer: StoreWriter, change: Change, classifier: int) -> None:
    """Bring back the answers that a classifier was learned from, if a roll-back of the whole has ended them."""
    query = "SELECT number, retired, content FROM part WHERE name = ? ORDER BY number DESC LIMIT 1"
    following: int | None = classifier
    while following is not None:
        last = change.connection.execute(query, (f"{ANSWERS}{following}",)).fetchone()
        if last is None:
            return
        if last[1] is not None:
            _check_parts(writer, [last[0]], int(last[1]) - 1)
            _revive_part(change, int(last[0]))
        following = _continued(following, last[2])


def _revive_part(change: Change, number: int) -> None:
    """A new part with the content of an old one, on the same arrays."""
    run = change.connection.execute
    name, content = run("SELECT name, content FROM part WHERE number = ?", (number,)).fetchone()
    arrays = run(f"SELECT {ARRAY_COLUMNS} FROM part_array WHERE part = ?", (number,)).fetchall()
    (last,) = run("SELECT max(number) FROM part").fetchone()
    change.begin_part(last + 1, name, content, arrays)


def _check_parts(writer: StoreWriter, numbers: Sequence[int], revision: int) -> None:
    files = read_files(writer.connection, writer.folder, writer.n_features)
    for number in numbers:
        (name,) = writer.connection.execute("SELECT name FROM part WHERE number = ?", (number,)).fetchone()
        try:
            read_part(writer.folder, writer.connection, files, name, revision)
        except (DataError, NotFoundError) as error:
            raise DataError(
                f"the part {name!r} is damaged in revision {revision}; nothing was changed",
                source=writer.folder,
                hint=Hint.LABEL_BY_LABEL,
                hint_value="labels",
            ) from error


def _find_label(writer: StoreWriter, snapshot: Snapshot, name: str) -> int:
    """The id of a label by its name now, or by the last name of one that was retired."""
    if name in snapshot.names:
        return int(snapshot.labels[snapshot.column(name)])
    found = writer.connection.execute(
        "SELECT label FROM version WHERE name = ? ORDER BY number DESC LIMIT 1", (name,)
    ).fetchone()
    if found is None:
        raise NotFoundError(f"no label was ever called {name!r}", hint=Hint.HISTORY)
    return int(found[0])


def oldest_revision(writer: StoreWriter, snapshot: Snapshot) -> int:
    """The first revision that can still be read: vacuum moves it."""
    return int(read_meta(writer.connection, snapshot.folder / CATALOGUE)["oldest"])


def _check_revision(writer: StoreWriter, snapshot: Snapshot, revision: int) -> None:
    newest, oldest = latest_revision(writer.connection, snapshot.folder), oldest_revision(writer, snapshot)
    if not oldest <= revision <= newest:
        raise NotFoundError(f"{snapshot.folder}: there is no revision {revision}; there are {oldest} to {newest}")


# What was read and checked before: blocks of classifiers, and rows of labels with their records.
Read: TypeAlias = "tuple[BlockCache, dict[Any, LabelRecord]]"
Learn: TypeAlias = "Callable[[StreamingLabelClassifier], StreamingLabelClassifier]"


def relearn_label(
    writer: StoreWriter, snapshot: Snapshot, name: str, learn: Learn, read: Read, beside: Any, key: str | None
) -> None:
    """Learn a label anew: ``learn`` gets the model without it, and gives it back with the label behind the others.

    beside : None, or gives what to keep beside the label (`append.write_beside`) once it is learned
    """
    column = snapshot.column(name)
    others = np.setdiff1d(np.arange(len(snapshot.labels)), [column])
    past = rest_of(writer, snapshot, others, read)
    memory = past.state_.memory
    model = learn(past)
    states = model.state_.labels(len(others))
    if states.names != (snapshot.names[column],):
        raise DataError(f"{name!r} was to be learned anew, but the model has {list(states.names)} behind the others")
    keep = LEARNING in list_parts(writer.connection, snapshot.revision)
    unasked = [0 if rows is not None else None for rows in states.positives]
    label = snapshot.labels[[column]]
    with writer.change("relearn", {"label": name}, key) as change:
        end_versions(change, label.tolist())
        past_labels = snapshot.labels[others]
        added = insert_labels(change, states, past_labels, origin=None, unasked=unasked, keep=keep, labels=label)
        write_beside(change, states, added, {} if beside is None else beside(model))
        if keep and memory is not None:
            write_trials(change, memory)


def update_labels(
    writer: StoreWriter, snapshot: Snapshot, update: Update, parts: Mapping[str, Part], key: str | None
) -> None:
    """Store labels that were learned again with rows that came later (`streaming.later_rows`), and those rows."""
    later = update.memory.later
    assert later is not None
    labels, states = snapshot.labels[update.numbers], update.batch
    unasked = (~later.known[:, update.numbers]).sum(axis=0).tolist()
    names = list(states.names)
    with writer.change("update", {"labels": names[:100], "n": len(names)}, key) as change:
        end_versions(change, labels.tolist())
        insert_labels(change, states, snapshot.labels, origin=None, unasked=unasked, keep=False, labels=labels)
        change.part(LATER, encode_later(update.memory, snapshot.labels[: update.memory.labels.shape[1]]))
        for name, part in parts.items():
            change.part(name, part)


def rest_of(writer: StoreWriter, snapshot: Snapshot, others: IntArray, read: Read) -> StreamingLabelClassifier:
    """The model of these labels alone, with what it needs to learn on."""
    rest, (cache, known) = snapshot.take(others), read
    records = records_of(writer.connection, rest, known)
    return assemble(rest, writer.connection, StoredClassifiers(rest, cache), learning=True, records=records)


def merge_labels(
    writer: StoreWriter, snapshot: Snapshot, names: Sequence[str], into: str, read: Read, key: str | None
) -> str:
    """Put one new label, with an id of its own, in place of ``names``; returns "relearned" or "averaged".

    It is learned again from all their answers if these are kept, else it is their weighted mean.
    """
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


def vacuum(writer: StoreWriter, snapshot: Snapshot, keep_from: int | None) -> int:
    """Forget the revisions before ``keep_from`` (default: all but the newest); returns the bytes that were freed.

    Commit first, then the files: a reader that has them mapped keeps them, and a crash in between leaves files that
    are in no catalogue, which doctor removes. Last the catalogue is made as small as it can be.
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
        statement = "UPDATE meta SET value = ?, seal = ? WHERE key = 'oldest'"
        change.connection.execute(statement, (str(first), seal("oldest", str(first))))
    after = read_files(writer.connection, snapshot.folder, snapshot.n_features)
    gone = [info for number, info in before.items() if number not in after]
    for info in gone:
        with suppress(OSError):  # a system that cannot delete what is mapped: doctor does it later
            (snapshot.folder / info.name).unlink()
    moved = sum(info.n_bytes for n, info in after.items() if n not in before)
    return sum(info.n_bytes for info in gone) - moved + shrink(writer.connection)


def _forget_history(change: Change, first: int) -> None:
    """Delete versions and parts that no revision from ``first`` on has, and what only they used. Ids stay used."""
    run = change.connection.execute
    run("DELETE FROM version WHERE retired IS NOT NULL AND retired <= ?", (first,))
    run("DELETE FROM classifier WHERE id NOT IN (SELECT classifier FROM version)")
    left = _needed_answers(change, {number for (number,) in run("SELECT id FROM classifier").fetchall()})
    for (name,) in run("SELECT name FROM part WHERE retired IS NULL").fetchall():
        if name.startswith(ANSWERS) and name not in left:
            change.end("part", "name = ?", (name,))
    run("DELETE FROM part WHERE retired IS NOT NULL AND retired <= ?", (first,))
    run("DELETE FROM part_array WHERE part NOT IN (SELECT number FROM part)")
    for table in ("relation", "answer"):
        run(f"DELETE FROM {table} WHERE classifier NOT IN (SELECT id FROM classifier)")


def _needed_answers(change: Change, classifiers: set[int]) -> set[str]:
    """The names of the parts with the answers of these classifiers, and of all that these continue."""
    needed: set[int | None] = {*classifiers}
    parts = change.connection.execute("SELECT name, content FROM part").fetchall()
    mine = [(int(name[len(ANSWERS) :]), content) for name, content in parts if re.fullmatch(rf"{ANSWERS}\d+", name)]
    for number, content in sorted(mine, reverse=True):  # what is continued has a lower number
        if number in needed:
            needed.add(_continued(number, content))
    return {f"{ANSWERS}{number}" for number in needed}


def _continued(classifier: int, content: str) -> int | None:
    """As `parts.continued`, from JSON; None also if it is damaged, which doctor tells."""
    with suppress(ValueError, TypeError, RecursionError):
        return continued(classifier, json.loads(content))
    return None


def _move_rows(writer: StoreWriter, change: Change, snapshot: Snapshot, files: dict[int, FileInfo]) -> None:
    """Copy the rows that are left, in their order, byte by byte and checked; then drop the old segments."""
    run = change.connection.execute
    columns = "id, label, segment, slot, start, nnz, checksum, intercept"
    rows = run(f"SELECT {columns} FROM classifier ORDER BY id").fetchall()
    (used,) = run("SELECT coalesce(sum(used_rows), 0) FROM segment WHERE kind != ?", (PART,)).fetchone()
    if used == len(rows):
        return
    old = [number for number, info in files.items() if info.kind != PART]
    segments = {number: Segment(snapshot.folder, files[number]) for number in old}
    writer.forget()
    for full in old:  # without rows, as they do not count for the room of the new ones
        writer.count(files[full], 0 if files[full].kind == DENSE else files[full].n_rows, files[full].n_bytes)
    for position, (number, label, segment_number, slot, start, nnz, expected, intercept) in enumerate(rows):
        segment, place = segments[segment_number], Place(segment_number, slot, start, nnz)
        problem = segment.problem(place, expected, intercept)
        content = segment.content(place)
        if problem or content is None:
            raise DataError(f"row {slot} of {segment.info.name}: {problem}", hint=Hint.REPAIR)
        moved = change.row(content, segment.info.kind == SPARSE, nnz, len(rows) - position)
        sealed = place_seal(number, label, moved.segment, moved.slot, moved.start, nnz, expected, intercept)
        run(
            "UPDATE classifier SET segment = ?, slot = ?, start = ?, place = ? WHERE id = ?",
            (moved.segment, moved.slot, moved.start, sealed, number),
        )
    change.connection.executemany("DELETE FROM segment WHERE number = ?", [(number,) for number in old])
