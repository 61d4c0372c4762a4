"""Find what is damaged in a stored model, say what it means, and repair what can be repaired.

Nothing that is whole is lost: a repair ends the versions of labels whose rows are gone (older revisions still show
them), makes files long enough again, and removes files that no revision uses. What is left after it concerns older
revisions only (``kind`` is `HISTORY`); a vacuum forgets these. A catalogue that SQLite cannot read is beyond repair; it
has to come from a backup.
"""

from __future__ import annotations

import os
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from streamlabel.exceptions import DataError, NotFoundError
from streamlabel.store.catalogue import reading
from streamlabel.store.changes import end_versions
from streamlabel.store.files import create_file, header_of, header_problem, sync_directory, write_at
from streamlabel.store.format import CATALOGUE, HEADER_SIZE, PART
from streamlabel.store.limits import check_column, open_regular
from streamlabel.store.parts import read_part
from streamlabel.store.reader import latest_revision, read_files, read_meta
from streamlabel.store.segments import Place, Segment, version_checksum
from streamlabel.store.writer import StoreWriter

__all__ = ["HISTORY", "Finding", "examine"]

HISTORY = "history"
NUMBERED = re.compile(r"(W|V|P)-\d{6}\.(f32|csr|bin)")


@dataclass(frozen=True)
class Finding:
    """Something that is wrong: where, what, what to do or what was done. ``kind`` and ``subject`` are for programs."""

    kind: str
    subject: str | int
    where: str
    problem: str
    remedy: str
    repaired: bool = False


def examine(folder: Path, *, repair: bool = False) -> list[Finding]:
    """Everything that is wrong with a stored model; with ``repair``, also mended where that is possible."""
    try:
        return _examine(folder, repair)
    except DataError as error:
        return [Finding("catalogue", CATALOGUE, CATALOGUE, error.problem, "restore the directory from a backup")]


def _examine(folder: Path, repair: bool) -> list[Finding]:
    with reading(folder) as connection:
        (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        read_meta(connection, folder / CATALOGUE)
        latest_revision(connection, folder / CATALOGUE)
        if said != "ok":
            raise DataError(str(said))
    findings = list(_files(folder))
    if repair and findings:
        with closing(_writer(folder)) as writer:
            findings = [_mend_file(writer, finding) for finding in findings]
    broken = {finding.subject for finding in findings if not finding.repaired}
    more = [*_rows(folder, broken), *_parts(folder), *_answers(folder), *_orphans(folder)]
    if repair and more:
        with closing(_writer(folder)) as writer:
            more = _mend_labels(writer, more)
    return findings + more


def _writer(folder: Path) -> StoreWriter:
    return StoreWriter(folder, actor="doctor")


def _files(folder: Path) -> Iterator[Finding]:
    """Every file of the catalogue is there, as long as it should be, with its header."""
    with reading(folder) as connection:
        files = read_files(connection, folder, int(read_meta(connection, folder)["n_features"]))
    for number, info in files.items():
        try:
            descriptor = open_regular(folder / info.name)
        except (DataError, NotFoundError):
            yield Finding("missing", number, info.name, "is not there", "its rows are lost; put it back if you can")
            continue
        with os.fdopen(descriptor, "rb") as file:
            problem, size = header_problem(info, file.read(HEADER_SIZE)), os.fstat(descriptor).st_size
        if size != HEADER_SIZE + info.n_bytes:
            problem = f"has {size} bytes instead of {HEADER_SIZE + info.n_bytes}"
        if problem:
            yield Finding("file", number, info.name, problem, "rows that are whole can be saved: repair")


def _rows(folder: Path, broken: set[str | int]) -> Iterator[Finding]:
    """Every row of every revision, against its checksum."""
    with reading(folder) as connection:
        files = read_files(connection, folder, int(read_meta(connection, folder)["n_features"]))
        rows = connection.execute(
            "SELECT c.segment, c.slot, c.start, c.nnz, c.checksum, c.intercept, v.label, v.name, "
            "v.retired, c.id, v.threshold, v.checksum FROM classifier c JOIN version v ON v.classifier = c.id"
        ).fetchall()
    numbers = (number for row in rows for number in (*row[:5], row[6]))
    check_column(numbers, int, "the table of classifiers", folder / CATALOGUE)
    check_column((row[5] for row in rows), float, "the table of classifiers", folder / CATALOGUE)
    segments = {n: Segment(folder, info) for n, info in files.items() if info.kind != PART and n not in broken}
    for number, slot, start, nnz, expected, intercept, label, name, retired, *said in rows:
        if number in broken:
            problem = "its segment is damaged"
        elif number not in segments:
            problem = "its segment is not in the catalogue"
        else:
            place = Place(number, slot, start, nnz)
            problem = segments[number].problem(place, expected, intercept)
            if not problem and version_checksum(label, said[0], name, said[1]) != said[2]:
                problem = "its name, threshold or place was written to"
        if problem and retired is None:
            where = f"label {name!r}, row {slot} of segment {number}"
            yield Finding("label", label, where, problem, "repair takes the label out; learn it again")
        elif problem:
            where = f"label {name!r} before revision {retired}, row {slot} of segment {number}"
            yield Finding(HISTORY, label, where, problem, "older revisions cannot use it; vacuum forgets it")


def _parts(folder: Path) -> Iterator[Finding]:
    with reading(folder) as connection:
        files = read_files(connection, folder, int(read_meta(connection, folder)["n_features"]))
        newest = latest_revision(connection, folder)
        for (name,) in connection.execute("SELECT name FROM part WHERE retired IS NULL").fetchall():
            try:
                read_part(folder, connection, files, name, newest)
            except (DataError, NotFoundError) as error:
                yield Finding("part", name, f"part {name!r}", str(error), "repair takes the part out; put it again")


def _answers(folder: Path) -> Iterator[Finding]:
    with reading(folder) as connection:
        for classifier, content, expected in connection.execute("SELECT classifier, positives, checksum FROM answer"):
            if not isinstance(content, bytes) or zlib.crc32(content) != expected:
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
    names = {"label", "part", "answers"}
    if any(finding.kind in names for finding in findings):
        detail = {"found": [finding.where for finding in findings if finding.kind in names][:100]}
        with writer.change("doctor", detail) as change:
            end_versions(change, [int(finding.subject) for finding in findings if finding.kind == "label"])
            for finding in findings:
                _take_out(change.connection, change.revision, finding)
    for finding in findings:
        if finding.kind == "orphan":
            (writer.folder / str(finding.subject)).unlink(missing_ok=True)
    sync_directory(writer.folder)
    return [finding if finding.kind == HISTORY else _done(finding, "was taken out") for finding in findings]


def _take_out(connection: sqlite3.Connection, revision: int, finding: Finding) -> None:
    if finding.kind == "part":
        statement = "UPDATE part SET retired = ? WHERE name = ? AND retired IS NULL"
        connection.execute(statement, (revision, finding.subject))
    elif finding.kind == "answers":
        connection.execute("DELETE FROM answer WHERE classifier = ?", (finding.subject,))


def _done(finding: Finding, what: str) -> Finding:
    return Finding(finding.kind, finding.subject, finding.where, finding.problem, what, repaired=True)
