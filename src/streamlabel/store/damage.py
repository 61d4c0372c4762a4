"""Search for damaged labels: every row against its checksum, however damaged its file is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamlabel.errors import DataError, Hint, NotFoundError
from streamlabel.store.format import CATALOGUE, PART
from streamlabel.store.guard import check_column
from streamlabel.store.reader import LIVE, read_files, read_meta
from streamlabel.store.segments import FileInfo, Place, Segment, version_checksum

SHOWN = 10
QUERY = (
    "SELECT c.segment, c.slot, c.start, c.nnz, c.checksum, c.intercept, v.label, v.name, v.retired, c.id, v.threshold, "
    "v.checksum FROM classifier c JOIN version v ON v.classifier = c.id"
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
    files = read_files(connection, folder, int(read_meta(connection, source)["n_features"]))
    if numbers is None:
        rows = connection.execute(QUERY).fetchall()
    else:
        found = (connection.execute(f"{QUERY} WHERE v.number = ?", (number,)).fetchone() for number in numbers)
        rows = [row for row in found if row is not None]
    check_column((number for row in rows for number in (*row[:5], row[6])), int, "the table of classifiers", source)
    check_column((row[5] for row in rows), float, "the table of classifiers", source)
    segments: dict[int, Segment | None] = {}
    for number, slot, start, nnz, expected, intercept, label, name, retired, classifier, threshold, said in rows:
        if number not in files or files[number].kind == PART:
            problem = "its segment is not in the catalogue"
        else:
            if number not in segments:
                segments[number] = _segment(folder, files[number])
            segment = segments[number]
            problem = "its file is not there"
            if segment is not None:
                problem = segment.problem(Place(number, slot, start, nnz), expected, intercept)
            if not problem and version_checksum(label, classifier, name, threshold) != said:
                problem = "its name, threshold or place was written to"
        if problem:
            yield DamagedVersion(label, name, retired, number, slot, problem)


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
    query = f"SELECT v.number FROM version v WHERE v.label = :label AND {LIVE}"
    found = (connection.execute(query, {"label": label, "revision": revision}).fetchone() for label in labels)
    check_versions(folder, connection, [row[0] for row in found if row is not None], revision)


def _segment(folder: Path, info: FileInfo) -> Segment | None:
    try:
        return Segment(folder, info, lenient=True)
    except (DataError, NotFoundError):
        return None
