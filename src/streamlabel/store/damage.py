"""Search for damaged labels: every row against its checksum, however damaged its file is."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlabel.errors import DataError, Hint, NotFoundError
from streamlabel.store.format import CATALOGUE, PART
from streamlabel.store.guard import check_column
from streamlabel.store.reader import LIVE, read_files, read_meta
from streamlabel.store.seals import facts_seal, place_seal, relations_digest
from streamlabel.store.segments import Place, Segment, version_checksum

SHOWN = 10
QUERY = (
    "SELECT c.segment, c.slot, c.start, c.nnz, c.checksum, c.intercept, v.label, v.name, v.retired, c.id, v.threshold, "
    "v.checksum, c.label, c.place, c.facts, c.slope, c.shift, c.n_yes, c.n_no, c.n_unasked, c.lam, c.beta, c.share, "
    "c.anchored, c.loss, c.coupled, c.gap, c.relations, c.answers "
    "FROM classifier c JOIN version v ON v.classifier = c.id"
)


@dataclass(frozen=True)
class DamagedVersion:
    """A damaged version of a label, valid until revision ``retired`` (None: still); its row's place, what is wrong."""

    label: int
    name: str
    retired: int | None
    segment: int
    slot: int
    problem: str


def damaged_versions(
    folder: Path, connection: sqlite3.Connection, numbers: Sequence[int] | None = None
) -> Iterator[DamagedVersion]:
    """Iterate over the damaged ones of all versions, or of those with these numbers; only their rows are read."""
    source = folder / CATALOGUE
    files = read_files(connection, folder, int(read_meta(connection, source)["n_features"]), sealed=False)
    if numbers is None:
        rows = connection.execute(QUERY).fetchall()
    else:
        found = (connection.execute(f"{QUERY} WHERE v.number = ?", (number,)).fetchone() for number in numbers)
        rows = [row for row in found if row is not None]
    check_column((number for row in rows for number in (*row[:5], row[6])), int, "the table of classifiers", source)
    check_column((row[5] for row in rows), float, "the table of classifiers", source)
    segments: dict[int, Segment | None] = {}
    related: dict[int, int] = {}
    for owner, neighbour, weight in connection.execute("SELECT classifier, neighbour, weight FROM relation"):
        try:
            digest = relations_digest([(neighbour, weight)])
        except struct.error:
            digest = -1
        related[owner] = related.get(owner, 0) ^ digest
    for row in rows:
        number, slot, start, nnz, expected, intercept, label, name, retired, classifier, threshold, said = row[:12]
        if number not in files or files[number].kind == PART:
            problem = "its segment is not in the catalogue"
        else:
            if number not in segments:
                segments[number] = None
                with suppress(DataError, NotFoundError):
                    segments[number] = Segment(folder, files[number], lenient=True)
            segment = segments[number]
            problem = "its file is not there"
            if segment is not None:
                problem = segment.problem(Place(number, slot, start, nnz), expected, intercept)
            problem = problem or _entry_problem(row, related.get(classifier, 0), said, threshold)
        if problem:
            yield DamagedVersion(label, name, retired, number, slot, problem)


def _entry_problem(row: tuple[Any, ...], related: int, said: Any, threshold: Any) -> str:
    """What is wrong with what the catalogue says about a label, or ""."""
    number, slot, start, nnz, expected, intercept, label, name, _, classifier = row[:10]
    owner, place, facts, *known = row[12:]
    try:
        if version_checksum(label, classifier, name, threshold) != said or label != owner:
            return "its name, threshold or place was written to"
        if place_seal(classifier, owner, number, slot, start, nnz, expected, intercept) != place:
            return "its name, threshold or place was written to"
        if facts_seal(classifier, known) != facts:
            return "what is known of it was written to"
    except (struct.error, AttributeError, UnicodeEncodeError):
        return "what is known of it is not what we write"
    return "its relations to other labels were written to" if related != known[-2] else ""


def check_versions(folder: Path, connection: sqlite3.Connection, numbers: Sequence[int], revision: int) -> None:
    """Raise DataError if one of these versions of a revision, which are to come back, is damaged."""
    damaged = list(damaged_versions(folder, connection, numbers))
    if not damaged:
        return
    names = ", ".join(repr(version.name) for version in damaged[:SHOWN])
    more = f" and {len(damaged) - SHOWN} more" if len(damaged) > SHOWN else ""
    problem = f"revision {revision} has damaged labels: {names}{more} ({damaged[0].problem}); nothing was changed"
    if len(numbers) > 1:
        raise DataError(problem, source=folder, hint=Hint.LABEL_BY_LABEL, hint_value="the other labels")
    raise DataError(f"{problem}; choose another revision, or learn it again", source=folder)


def check_labels(folder: Path, connection: sqlite3.Connection, labels: Iterable[int], revision: int) -> None:
    """Raise DataError if one of these labels (ids), as it was in a revision, is damaged (as `check_versions`)."""
    wanted, query = set(labels), f"SELECT v.number, v.label FROM version v NOT INDEXED WHERE {LIVE} ORDER BY v.label"
    found = connection.execute(query, {"revision": revision})
    check_versions(folder, connection, [number for number, label in found if label in wanted], revision)
