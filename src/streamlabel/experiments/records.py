"""Results on disk while an experiment runs: one JSON line a record, kept through interruptions and full disks."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Generic, NoReturn, Protocol, TypeAlias, TypeVar, get_type_hints

from streamlabel.data._bytes import replacing
from streamlabel.exceptions import DataError, StreamlabelError

__all__ = ["Key", "Record", "RecordFile", "read_records", "saving", "timeless", "write_whole"]

Key: TypeAlias = tuple[Any, ...]  # the values of a record's key fields


class Record(Protocol):
    """A dataclass of numbers, strings and booleans; a ValueError that it raises is what the user reads."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


R = TypeVar("R", bound=Record)


class RecordFile(Generic[R]):
    """A file of records of one kind, one JSON object a line, in the order in which they were finished.

    What was recorded before is read when the file is opened. A last line without its end (the run was stopped while it
    was being written) is dropped. Of two records with the same values in the ``key`` fields the later one counts.
    """

    def __init__(self, path: Path, kind: type[R], key: Sequence[str]) -> None:
        self.path = path
        self._kind, self._key = kind, tuple(key)
        with saving(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "a+b") as file:  # fails here, before anything is computed, where nothing can be written
                file.seek(0)
                whole, end, rest = file.read().rpartition(b"\n")
                if rest:
                    file.truncate(len(whole) + len(end))
        self._records = {self.key(record): record for record in _parsed(whole + end, kind, path)}

    @property
    def records(self) -> list[R]:
        return list(self._records.values())

    @property
    def sorted_records(self) -> list[R]:
        """By key: the order in which they were finished does not show."""
        return _sorted(self._records)

    def key(self, record: R) -> Key:
        return tuple(getattr(record, name) for name in self._key)

    def __contains__(self, key: object) -> bool:
        return key in self._records

    def append(self, record: R) -> None:
        """Add the record; it is with the operating system when this returns."""
        line = json.dumps(dataclasses.asdict(record), allow_nan=False) + "\n"
        with saving(self.path), open(self.path, "ab") as file:
            file.write(line.encode())
        self._records[self.key(record)] = record


def read_records(path: Path, kind: type[R], key: Sequence[str]) -> list[R]:
    """The records of the file, sorted by key, without a write: another process may be adding to it.

    Raises
    ------
    DataError : the file cannot be read, or a line is no such record
    """
    try:
        whole, end, _ = path.read_bytes().rpartition(b"\n")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", source=path) from error
    return _sorted({tuple(getattr(r, name) for name in key): r for r in _parsed(whole + end, kind, path)})


def _sorted(records: dict[Key, R]) -> list[R]:
    return [records[key] for key in sorted(records)]


def _parsed(lines: bytes, kind: type[R], path: Path) -> Iterator[R]:
    return (_parse(line, kind, path, number) for number, line in enumerate(lines.splitlines(), start=1))


def _parse(line: bytes, kind: type[R], path: Path, number: int) -> R:
    try:
        values = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        values = None
    types = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    if not isinstance(values, dict) or any(not _fits(values.get(name), types[name]) for name in names):
        raise _refused(f"not a {kind.__name__}", path, number)
    try:
        return kind(**{name: values[name] for name in names})
    except ValueError as error:
        raise _refused(str(error), path, number) from None


def _refused(problem: str, path: Path, line: int) -> DataError:
    advice = "remove the line to have it computed again, or write to another folder"
    return DataError(f"{problem}; {advice}", source=path, line=line)


def write_whole(path: Path, text: str) -> None:
    """Write the file aside and put it in place in one step: a reader sees the old text or the new one."""
    with saving(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode())


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _fits(value: object, kind: type) -> bool:
    return type(value) is kind or (kind is float and type(value) is int)


def timeless(record: Record) -> dict[str, Any]:
    """The values of a record without its times (``seconds``, ``..._seconds``): equal for equal runs."""
    names = (field.name for field in dataclasses.fields(record))
    return {name: getattr(record, name) for name in names if not (name == "seconds" or name.endswith("_seconds"))}


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """An error of the operating system in the block becomes one message, which names the file."""
    try:
        yield
    except OSError as error:
        raise StreamlabelError(
            f"{error.filename or path}: {error.strerror or error}; records that were finished are kept, and the same "
            "command goes on after them"
        ) from error
