"""Results on disk while an experiment runs: one JSON line a record, kept through interruptions and full disks."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from streamlabel.data.files import replacing
from streamlabel.errors import DataError, StreamlabelError
from streamlabel.experiments.experiment import Key, Record

R = TypeVar("R", bound=Record)
_WORDS = {bool: "true or false", float: "a finite number", int: "a whole number", str: "text", type(None): "null"}


class RecordFile(Generic[R]):
    """A file of records of one kind, one JSON object a line, in the order in which they were finished.

    What was recorded before is read when the file is opened. A last line without its end (the run was stopped while it
    was being written) is dropped, and ``was_cut`` says so. Two lines with the same values in the ``key`` fields are one
    record, kept once; where they contradict each other, by more than their times, the file is refused. ``n_added``
    counts what was added since.
    """

    def __init__(self, path: Path, kind: type[R], key: Sequence[str]) -> None:
        self.path = path
        self.n_added = 0
        self._kind, self._key = kind, tuple(key)
        with opening(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "a+b") as file:  # fails here, before anything is computed, where nothing can be written
                file.seek(0)
                whole, end, rest = file.read().rpartition(b"\n")
                self._records = _parsed(whole + end, kind, self._key, path)
                self.was_cut = bool(rest)
                if rest:
                    file.truncate(len(whole) + len(end))

    @property
    def records(self) -> list[R]:
        return list(self._records.values())

    @property
    def sorted_records(self) -> list[R]:
        """By key: the order in which they were finished does not show."""
        return _sorted(self._records)

    def key(self, record: R) -> Key:
        return _key_of(record, self._key)

    def __contains__(self, key: object) -> bool:
        return key in self._records

    def among(self, keys: Iterable[Key]) -> dict[Key, R]:
        """Those of the records that are here already."""
        return {key: self._records[key] for key in keys if key in self._records}

    def append(self, record: R) -> None:
        """Add the record; it is with the operating system when this returns."""
        line = json.dumps(dataclasses.asdict(record), allow_nan=False) + "\n"
        with saving(self.path), open(self.path, "ab") as file:
            file.write(line.encode())
        self._records[self.key(record)] = record
        self.n_added += 1


def read_records(path: Path, kind: type[R], key: Sequence[str]) -> list[R]:
    """The records of the file, sorted by key, without a write: another process may be adding to it.

    Raises
    ------
    DataError : the file cannot be read, a line is no such record, or two lines contradict each other
    """
    try:
        whole, end, _ = path.read_bytes().rpartition(b"\n")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", source=path) from error
    return _sorted(_parsed(whole + end, kind, key, path))


def _sorted(records: dict[Key, R]) -> list[R]:
    return [records[key] for key in sorted(records)]


def _key_of(record: Record, names: Sequence[str]) -> Key:
    return tuple(getattr(record, name) for name in names)


def _parsed(lines: bytes, kind: type[R], names: Sequence[str], path: Path) -> dict[Key, R]:
    found: dict[Key, R] = {}
    numbers: dict[Key, int] = {}
    for number, line in enumerate(lines.splitlines(), start=1):
        record = _parse(line, kind, path, number)
        key = _key_of(record, names)
        if key in found:
            _check_equal(found[key], numbers[key], record, number, path)
        else:
            found[key], numbers[key] = record, number
    return found


def _check_equal(first: R, first_line: int, second: R, line: int, path: Path) -> None:
    before = timeless(first)
    for name, value in timeless(second).items():
        if value != before[name]:
            problem = f"{name} is {value!r}, and {before[name]!r} in line {first_line}, for the same run"
            advice = "remove the wrong line, or both to have it computed again"
            raise DataError(f"{problem}; {advice}", source=path, line=line)


def _parse(line: bytes, kind: type[R], path: Path, number: int) -> R:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    types = get_type_hints(kind)
    if not isinstance(values, dict):
        raise _refused(f"not a {kind.__name__}: no JSON object", path, number)
    fields = dataclasses.fields(kind)
    names = [field.name for field in fields if field.name in values or field.default is dataclasses.MISSING]
    for name in names:
        if name not in values:
            raise _refused(f"not a {kind.__name__}: {name} is missing", path, number)
        allowed = get_args(types[name]) or (types[name],)
        if not any(_fits(values[name], one) for one in allowed):
            shown = f"{name} is {json.dumps(values[name]):.40}"
            must = " or ".join(_WORDS[one] for one in allowed)
            raise _refused(f"not a {kind.__name__}: {shown}, and must be {must}", path, number)
    try:
        return kind(**{name: values[name] for name in names})
    except ValueError as error:
        raise _refused(str(error), path, number) from None


def _refused(problem: str, path: Path, line: int) -> DataError:
    advice = "remove the line to have it computed again, or write to another folder"
    return DataError(f"{problem}; {advice}", source=path, line=line)


def write_whole(path: Path, text: str) -> None:
    """Write the file aside and put it in place in one step: a reader sees the old text or the new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", source=path) from error
    with replacing(path) as file:
        file.write(text.encode())


def _fits(value: Any, kind: type) -> bool:
    """Of the kind, and neither NaN nor infinite nor a whole number beyond all floats where it is to be one."""
    if kind is float:
        return type(value) in (float, int) and abs(value) <= sys.float_info.max
    return type(value) is kind


def timeless(record: Record) -> dict[str, Any]:
    """The values of a record without its times (``seconds``, ``..._seconds``): equal for equal runs."""
    names = (field.name for field in dataclasses.fields(record))
    return {name: getattr(record, name) for name in names if not (name == "seconds" or name.endswith("_seconds"))}


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """An error of the operating system in the block says that nothing can be written here, so nothing was."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise StreamlabelError(f"cannot write to {path}: {reason}; choose another folder with --out") from error


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


@contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """An error of the operating system in the block, raw or as a DataError, says that this folder keeps the records."""
    try:
        yield
    except (OSError, DataError) as error:
        if isinstance(error, StreamlabelError):
            if not isinstance(error.__cause__, OSError):
                raise
            told = str(error)
        else:
            told = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
        raise StreamlabelError(
            f"{told}; records that were finished are kept in {folder}, and the same command goes on after them"
        ) from error
