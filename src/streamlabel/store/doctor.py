"""Diagnosis of a stored model: find what is damaged, say what it means, and repair what can be repaired.

Nothing that is whole is lost: a repair ends the versions of labels whose rows are gone (older revisions still show
them), makes files long enough again, and removes files that no revision uses. What is left after it concerns older
revisions only (``kind`` is `HISTORY`); a vacuum forgets these. A catalogue that SQLite cannot read is beyond repair; it
has to come from a backup.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamlabel.errors import DataError, NotFoundError
from streamlabel.store.changes import end_versions
from streamlabel.store.damage import DamagedVersion, damaged_versions
from streamlabel.store.format import CATALOGUE, HEADER_SIZE
from streamlabel.store.guard import UnreadableError, open_regular
from streamlabel.store.parts import ANSWERS, ARRAY_COLUMNS, read_beside, read_part
from streamlabel.store.reader import latest_revision, read_files, read_meta
from streamlabel.store.seals import digest_by_revision, facts_seal, part_checksum, seal
from streamlabel.store.segments import create_file, header_of, header_problem, sync_directory, write_at
from streamlabel.store.sqlite import reading
from streamlabel.store.writer import Change, StoreWriter

HISTORY, UNREADABLE = "history", "unreadable"
FORGETTABLE = "older revisions cannot use it; vacuum forgets it"
WITHOUT = {  # what a model cannot do without a part of ours
    "learning": "the labels stay, and new ones are learned from their own examples only; fit again to have it back",
    "trials": "nothing is lost, they are run again when they are needed",
    "vectorizer": "the model takes no texts any more; restore the directory from a backup, or fit again",
    "texts": "the labels stay; texts that the model was fitted on are taken for new ones",
}
NUMBERED = re.compile(r"(W|V|P)-\d{6}\.(f32|csr|bin)")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: where, what, what to do or what was done. ``kind`` and ``subject`` are for programs."""

    kind: str
    subject: str | int
    where: str
    problem: str
    remedy: str
    repaired: bool = False


def examine(folder: Path, *, repair: bool = False) -> list[Finding]:
    """Find everything that is wrong with a stored model; with ``repair``, mend it if that is possible."""
    if folder.is_file():
        raise DataError("is a file, not a model directory", source=folder)
    try:
        if not repair:
            return _findings(folder, None)
        # what is judged must not change before it is mended
        with closing(StoreWriter(folder, actor="doctor")) as writer:
            return _findings(folder, writer)
    except DataError as error:
        return [Finding("catalogue", CATALOGUE, CATALOGUE, error.problem, "restore the directory from a backup")]


def _findings(folder: Path, writer: StoreWriter | None) -> list[Finding]:
    with reading(folder) as connection:
        (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        read_meta(connection, folder / CATALOGUE)
        latest_revision(connection, folder / CATALOGUE)
        if said != "ok":
            raise DataError(str(said))
        broken = list(_tables(connection))
    if broken:
        return broken
    findings = [*_leftovers(folder), *_files(folder)]
    if any(finding.kind == UNREADABLE for finding in findings):
        return findings  # what cannot be opened now may be whole: nothing is judged, nothing is taken out
    if writer is not None:
        findings = [_mend_file(writer, finding) for finding in findings]
    with reading(folder) as connection:
        damaged = list(damaged_versions(folder, connection))
        findings = [_with_labels(connection, finding, damaged) for finding in findings]
    more = [*map(_lost, damaged), *_parts(folder), *_answers(folder), *_history(folder), *_orphans(folder)]
    if writer is not None and more:
        more = _mend_labels(writer, more)
    return findings + more


def _tables(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Rows of the catalogue that are not what was written, beside those of labels, parts and answers."""
    remedy = "restore the directory from a backup"
    for table in ("revision", "segment", "label", "metric", "event"):
        for row in connection.execute(f"SELECT * FROM {table}").fetchall():
            if _seal_of(row[:-1]) != row[-1]:
                yield Finding("catalogue", CATALOGUE, f"table {table!r}, row {row[0]!r}", "was written to", remedy)

    lost = (
        "SELECT v.name FROM version v LEFT JOIN classifier c ON c.id = v.classifier "
        "LEFT JOIN label l ON l.id = v.label LEFT JOIN revision r ON r.number = l.born "
        "WHERE c.id IS NULL OR l.id IS NULL OR r.number IS NULL"
    )
    for (name,) in connection.execute(lost).fetchall():
        yield Finding("catalogue", CATALOGUE, f"label {name!r}", "is known in part only", remedy)
    numbers = [number for (number,) in connection.execute("SELECT number FROM revision ORDER BY number")]
    latest = "SELECT max(born), max(retired) FROM version UNION SELECT max(revision), 0 FROM metric"
    used = [one for row in connection.execute(latest) for one in row if one is not None]
    if numbers != list(range(1, len(numbers) + 1)) or max(used, default=0) > len(numbers):
        yield Finding("catalogue", CATALOGUE, "table 'revision'", "rows of it are missing", remedy)


def _history(folder: Path) -> Iterator[Finding]:
    """Revisions in which labels or parts are missing, or are too many."""
    with reading(folder) as connection:
        oldest = int(read_meta(connection, folder)["oldest"])
        said = dict(connection.execute("SELECT CAST(number AS INTEGER), digest FROM revision").fetchall())
        found = digest_by_revision(connection, list(said))
        newest = max(said)
    for number in sorted(said):
        if number >= oldest and said[number] != found[number]:
            kind, remedy = HISTORY, "older revisions cannot be read; vacuum forgets them"
            if number == newest:
                kind, remedy = "revision", "repair goes on with the labels and parts that are there"
            problem = "labels or parts of it are missing, or are too many"
            yield Finding(kind, number, f"revision {number}", problem, remedy)


def _seal_of(row: Sequence[Any]) -> int | None:
    try:
        return seal(*row)
    except (TypeError, ValueError):
        return None


def _files(folder: Path) -> Iterator[Finding]:
    """Findings about files: every file of the catalogue is there, as long as it should be, with its header."""
    with reading(folder) as connection:
        files = read_files(connection, folder, int(read_meta(connection, folder)["n_features"]))
    for number, info in files.items():
        try:
            descriptor = open_regular(folder / info.name)
        except NotFoundError:
            yield Finding("missing", number, info.name, "is not there", "its rows are lost; put it back if you can")
            continue
        except UnreadableError as error:
            yield Finding(UNREADABLE, number, info.name, error.problem, "see to that first; repair takes nothing out")
            continue
        with os.fdopen(descriptor, "rb") as file:
            problem, size = header_problem(info, file.read(HEADER_SIZE)), os.fstat(descriptor).st_size
        if size != HEADER_SIZE + info.n_bytes:
            problem = f"has {size} bytes instead of {HEADER_SIZE + info.n_bytes}"
        if problem:
            yield Finding("file", number, info.name, problem, "repair mends it")


def _leftovers(folder: Path) -> Iterator[Finding]:
    """Directories of models that were being written when their process was killed."""
    pattern = re.compile(re.escape(f".{folder.name}.") + r"(\d+)\.new")
    for path in sorted(folder.absolute().parent.iterdir()):
        found = pattern.fullmatch(path.name)
        if found and path.is_dir() and not path.is_symlink() and not _runs(int(found[1])):
            yield Finding("leftover", path.name, path.name, "was left by a run that was killed", "repair removes it")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _with_labels(connection: sqlite3.Connection, finding: Finding, damaged: Sequence[DamagedVersion]) -> Finding:
    """The finding about a file, with how many of its labels are whole."""
    (n_labels,) = connection.execute(
        "SELECT count(*) FROM version v JOIN classifier c ON c.id = v.classifier "
        "WHERE v.retired IS NULL AND c.segment = ?",
        (finding.subject,),
    ).fetchone()
    n_lost = sum(version.segment == finding.subject and version.retired is None for version in damaged)
    if finding.kind in ("missing", "leftover") or not n_labels:
        return finding
    whole = f"{n_labels - n_lost} of its {n_labels} labels are whole and stay"
    return replace(finding, remedy=f"{finding.remedy}; {whole}")


def _lost(version: DamagedVersion) -> Finding:
    name, place = f"label {version.name!r}", f"row {version.slot} of segment {version.segment}"
    if version.retired is None:
        remedy = "repair takes the label out; learn it again"
        return Finding("label", version.label, f"{name}, {place}", version.problem, remedy)
    where = f"{name} before revision {version.retired}, {place}"
    return Finding(HISTORY, version.label, where, version.problem, FORGETTABLE)


def _parts(folder: Path) -> Iterator[Finding]:
    with reading(folder) as connection:
        files = read_files(connection, folder, int(read_meta(connection, folder)["n_features"]))
        newest = latest_revision(connection, folder)
        query = "SELECT c.id, v.name FROM classifier c JOIN version v ON v.label = c.label WHERE v.retired IS NULL"
        owners = dict(connection.execute(query).fetchall())
        for (name,) in connection.execute("SELECT name FROM part WHERE retired IS NULL").fetchall():
            where, lost = f"part {name!r}", WITHOUT.get(name, "what it held is lost; put it again")
            found = re.fullmatch(rf"{ANSWERS}(\d+)", name)
            try:
                read_part(folder, connection, files, name, newest, lenient=True)
                if found:  # and those that it continues
                    read_beside(folder, connection, int(found[1]), newest)
            except (DataError, NotFoundError) as error:
                if found:
                    owner = owners.get(int(found[1]))
                    where += "" if owner is None else f", answers of label {owner!r}"
                    lost = "the label stays; to give it more answers, learn it anew from all of them"
                yield Finding("part", name, where, str(error.args[0]), f"repair takes the part out: {lost}")
        query = "SELECT number, name, content, checksum, retired FROM part WHERE retired IS NOT NULL"
        for number, name, content, expected, retired in connection.execute(query).fetchall():
            arrays = connection.execute(f"SELECT {ARRAY_COLUMNS} FROM part_array WHERE part = ?", (number,)).fetchall()
            if part_checksum(name, content, arrays) != expected:
                where = f"part {name!r} before revision {retired}"
                yield Finding(HISTORY, name, where, "was written to", FORGETTABLE)


def _answers(folder: Path) -> Iterator[Finding]:
    with reading(folder) as connection:
        query = (
            "SELECT c.id, a.positives, a.checksum, c.answers FROM classifier c LEFT JOIN answer a "
            "ON a.classifier = c.id WHERE c.answers IS NOT NULL"
        )
        for classifier, content, expected, sealed in connection.execute(query).fetchall():
            if not isinstance(content, bytes) or zlib.crc32(content) != expected or expected != sealed:
                where = f"answers of classifier {classifier}"
                yield Finding("answers", classifier, where, "the checksum is wrong", "repair forgets these answers")


def _orphans(folder: Path) -> Iterator[Finding]:
    with reading(folder) as connection:
        files = read_files(connection, folder, int(read_meta(connection, folder)["n_features"]))
    known = {info.name for info in files.values()}
    for path in sorted(folder.iterdir()):
        if NUMBERED.fullmatch(path.name) and path.name not in known:
            yield Finding("orphan", path.name, path.name, "belongs to no revision", "repair removes it")


def _mend_file(writer: StoreWriter, finding: Finding) -> Finding:
    """Make a file long enough, with its header; what was in it stays. A file that is gone comes back empty."""
    if finding.kind == "leftover":
        shutil.rmtree(writer.folder.absolute().parent / str(finding.subject), ignore_errors=True)
        return _done(finding, "was removed")
    info = writer.file_info(int(finding.subject))
    path = writer.folder / info.name
    if finding.kind == "missing":
        if path.exists() or path.is_symlink():
            return finding
        os.close(create_file(writer.folder, info))
        return _done(finding, "came back empty")
    with open(open_regular(path, os.O_RDWR), "r+b") as file:
        os.ftruncate(file.fileno(), HEADER_SIZE + info.n_bytes)
        write_at(file.fileno(), header_of(info), 0)
        os.fsync(file.fileno())
    return _done(finding, "has its length and header again")


def _mend_labels(writer: StoreWriter, findings: list[Finding]) -> list[Finding]:
    """Take out what cannot be used, in one revision; remove files that no revision uses."""
    names = {"label", "part", "answers", "revision"}
    if any(finding.kind in names for finding in findings):
        detail = {"found": [finding.where for finding in findings if finding.kind in names][:100]}
        with writer.change("doctor", detail) as change:
            end_versions(change, [int(finding.subject) for finding in findings if finding.kind == "label"])
            for finding in findings:
                _take_out(change, finding)
            change.recount()
    for finding in findings:
        if finding.kind == "orphan":
            (writer.folder / str(finding.subject)).unlink(missing_ok=True)
    sync_directory(writer.folder)
    return [finding if finding.kind == HISTORY else _done(finding, "was taken out") for finding in findings]


def _take_out(change: Change, finding: Finding) -> None:
    if finding.kind == "part":
        change.end("part", "name = ?", (finding.subject,))
    elif finding.kind == "answers":
        run = change.connection.execute
        run("DELETE FROM answer WHERE classifier = ?", (finding.subject,))
        columns = "id, slope, shift, n_yes, n_no, n_unasked, lam, beta, share, anchored, loss, coupled, gap, relations"
        row = run(f"SELECT {columns} FROM classifier WHERE id = ?", (finding.subject,)).fetchone()
        sealed = (facts_seal(row[0], (*row[1:], None)), finding.subject)
        run("UPDATE classifier SET answers = NULL, facts = ? WHERE id = ?", sealed)


def _done(finding: Finding, what: str) -> Finding:
    return replace(finding, remedy=what, repaired=True)
