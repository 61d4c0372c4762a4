"""Parts of a stored model beside its labels (the rows kept for learning, a vectoriser): JSON and plain arrays."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlabel.errors import DataError, Hint, NotFoundError
from streamlabel.store.format import CATALOGUE, PART
from streamlabel.store.guard import check_column
from streamlabel.store.seals import part_checksum
from streamlabel.store.segments import FileInfo, map_file

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
TYPES = re.compile(r"[<|](?:[fiu][1248]|b1)")
ALIGNMENT = 64
ARRAY_COLUMNS = "name, dtype, shape, segment, start, n_bytes, checksum"  # of part_array, all but the part
MOST_READ = 64 << 20  # bytes of an array that is read instead of mapped


VECTORIZER, TEXTS, LATER_TEXTS, NAMES = "vectorizer", "texts", "later-texts", "names"  # those of a tagger
FEW = 500  # names that a query may list
ANSWERS = "answers-"  # the answers that a classifier was learned from: its number follows


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a stored model: ``content`` is JSON, ``arrays`` are numbers or booleans, read-only when read back."""

    content: Any
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def check_part(name: str, part: Part) -> str:
    """Check a part and return its JSON; DataError if its name, content or arrays cannot be stored."""
    for text in (name, *part.arrays):
        if NAME.fullmatch(text) is None:
            raise DataError(f"the name {text!r} of a part: letters, digits, '.', '_' and '-' only, at most 64")
    for key, array in part.arrays.items():
        if TYPES.fullmatch(_stored_type(array).str) is None:
            raise DataError(f"array {key!r} of part {name!r} has the type {array.dtype}; numbers and booleans only")
    try:
        return json.dumps(part.content, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"the content of part {name!r} cannot be written as JSON: {error}") from error


def array_content(array: NDArray[Any]) -> tuple[memoryview, str, str]:
    """The bytes, type and shape of an array, as they are stored."""
    plain = np.ascontiguousarray(array, dtype=_stored_type(array))
    return plain.reshape(-1).view(np.uint8).data, plain.dtype.str, json.dumps(array.shape)


LIVE_PART = "v.born <= :revision AND (v.retired IS NULL OR v.retired > :revision)"


def list_parts(connection: sqlite3.Connection, revision: int) -> dict[str, int]:
    """The numbers of the parts of a revision, by name."""
    query = f"SELECT name, number FROM part v WHERE {LIVE_PART}"
    return dict(connection.execute(query, {"revision": revision}).fetchall())


def part_number(connection: sqlite3.Connection, name: str, revision: int) -> int | None:
    """The number of one part of a revision; None if there is none of this name."""
    query = f"SELECT number FROM part v WHERE v.name = :name AND {LIVE_PART}"
    found = connection.execute(query, {"name": name, "revision": revision}).fetchone()
    return None if found is None else int(found[0])


def read_part(
    folder: Path,
    connection: sqlite3.Connection,
    files: Mapping[int, FileInfo],
    name: str,
    revision: int,
    *,
    lenient: bool = False,
    maps: Mapping[int, memoryview] | None = None,
) -> Part:
    """A part of a revision: its arrays are mapped (`segments.map_file`), and checked against their checksums.

    maps : files that are mapped already, by their numbers
    """
    number = part_number(connection, name, revision)
    if number is None:
        raise NotFoundError(f"{folder}: revision {revision} has no part {name!r}")
    found = connection.execute("SELECT content, checksum FROM part WHERE number = ?", (number,)).fetchone()
    rows = connection.execute(f"SELECT {ARRAY_COLUMNS} FROM part_array WHERE part = ?", (number,)).fetchall()
    source = folder / CATALOGUE
    try:
        value = json.loads(found[0])
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"the content of part {name!r} is damaged ({error})"
        raise DataError(problem, source=source, hint=Hint.DOCTOR) from error
    arrays = {row[0]: _read_array(folder, files, row, source, lenient, maps) for row in rows}
    if part_checksum(name, found[0], rows) != found[1]:
        problem = f"part {name!r} is damaged: the checksum of its content is wrong"
        raise DataError(problem, source=source, hint=Hint.DOCTOR)
    return Part(value, arrays)


def read_beside(folder: Path, connection: sqlite3.Connection, classifier: int, revision: int) -> list[tuple[int, Any]]:
    """What is kept beside a classifier, (number, content), after what it continues; [] if there is nothing."""
    found: list[tuple[int, Any]] = []
    following: int | None = classifier
    while following is not None and (found or part_number(connection, f"{ANSWERS}{following}", revision) is not None):
        content = read_part(folder, connection, {}, f"{ANSWERS}{following}", revision).content
        found.insert(0, (following, content))
        following = continued(following, content)
    return found


def read_estimates(connection: sqlite3.Connection, revision: int, names: Sequence[str]) -> list[tuple[str, Any]]:
    """The estimates in parts of these names, (name, estimate); without their checksums, so that many are read fast."""
    query = f"SELECT name, content FROM part v WHERE {LIVE_PART}"
    values: dict[str, Any] = {"revision": revision}
    if len(names) <= FEW:
        values |= {f"n{at}": name for at, name in enumerate(names)}
        query += f" AND name IN ({', '.join(f':n{at}' for at in range(len(names)))})"
    wanted = frozenset(names)
    rows = connection.execute(query, values).fetchall()
    found = ((name, _estimate_in(content)) for name, content in rows if name in wanted)
    return [(name, estimate) for name, estimate in found if estimate is not None]


def read_estimates_since(connection: sqlite3.Connection, revision: int, label: int) -> list[tuple[int, Any]]:
    """The estimates of a label (id) each time that it was learned, (revision, estimate), oldest first."""
    rows = connection.execute(
        "SELECT min(v.born), p.content FROM version v NOT INDEXED "
        "JOIN part p ON p.name = :answers || v.classifier "
        "WHERE v.label = :label AND v.born <= :revision GROUP BY v.classifier ORDER BY 1",
        {"answers": ANSWERS, "label": label, "revision": revision},
    ).fetchall()
    found = ((born, _estimate_in(content)) for born, content in rows)
    return [(born, estimate) for born, estimate in found if estimate is not None]


def _estimate_in(content: Any) -> Any:
    """The estimate that is kept with answers; None if there is none, also if it is damaged, which doctor tells."""
    with suppress(ValueError, TypeError, AttributeError, RecursionError):
        return json.loads(content).get("estimate")
    return None


def continued(classifier: int, content: Any) -> int | None:
    """The earlier classifier whose answers those of a classifier continue; None if they are all that it has."""
    after = content.get("after") if isinstance(content, dict) else None
    if after is not None and (type(after) is not int or not 0 < after < classifier):
        raise DataError(f"part '{ANSWERS}{classifier}' says that it continues {after!r}; it is damaged")
    return after


def _read_array(
    folder: Path,
    files: Mapping[int, FileInfo],
    row: tuple[Any, ...],
    source: object,
    lenient: bool,
    maps: Mapping[int, memoryview] | None,
) -> NDArray[Any]:
    name, dtype, shape_text, number, start, n_bytes, expected = row
    check_column((name, dtype, shape_text), str, "the table of arrays", source)
    check_column((number, start, n_bytes, expected), int, "the table of arrays", source)
    info = files.get(number)
    shape = _shape(shape_text)
    known = info is not None and info.kind == PART and TYPES.fullmatch(dtype) is not None and shape is not None
    if info is None or shape is None or not known or math.prod(shape) * np.dtype(dtype).itemsize != n_bytes:
        raise DataError(f"array {name!r} is not described as we describe arrays; refused", source=source)
    if start < 0 or start % ALIGNMENT or start + n_bytes > info.n_bytes:
        raise DataError(f"array {name!r} lies outside of {info.name}; refused", source=source)
    mapped = None if maps is None else maps.get(number)
    whole = map_file(folder, info, lenient=lenient) if mapped is None else mapped
    content = whole[start : start + n_bytes]
    if len(content) != n_bytes or zlib.crc32(content) != expected:
        problem = f"array {name!r} is damaged: its checksum is wrong"
        raise DataError(problem, source=folder / info.name, hint=Hint.DOCTOR)
    if n_bytes < MOST_READ:  # a file that is cut later does not matter to what was read
        content = memoryview(bytes(content))
    return np.frombuffer(content, dtype).reshape(shape) if n_bytes else np.empty(shape, dtype)


def _shape(text: str) -> tuple[int, ...] | None:
    if re.fullmatch(r"\[(\d{1,18}(, \d{1,18}){0,7})?\]", text) is None:
        return None
    return tuple(json.loads(text))


def _stored_type(array: NDArray[Any]) -> np.dtype[Any]:
    return array.dtype.newbyteorder("<")
