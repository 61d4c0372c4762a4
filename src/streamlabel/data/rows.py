"""What the record formats (JSONL, CSV, Parquet) share: label lists to Y, strict JSON, dates, files in and out.

A record has labels by name. Columns of Y follow the first appearance of each name in the file, or the order of
``label_names`` where the caller gives it. Names are compared after Unicode NFC normalisation.
"""

from __future__ import annotations

import bz2
import contextlib
import datetime
import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.files import check_memory
from streamlabel.errors import DataError, Hint, NotFoundError
from streamlabel.types import CSR
from streamlabel.validation import check_label_names

TEXT_NAMES = ("text", "texts", "document", "content", "body", "sentence", "abstract", "description", "comment",
              "message", "question", "title", "headline")  # fmt: skip
LABEL_NAMES = ("labels", "label", "tags", "tag", "categories", "category", "topics", "topic", "keywords", "subjects",
               "classes", "class")  # fmt: skip


def labels_column_of(columns: Iterable[str]) -> str | None:
    """The column that is called as columns of tags are; the first of the usual names wins, else None.

    Case does not matter, but a column in lower case wins against its twin.
    """
    by_case: dict[str, str] = {}
    for column in columns:
        usual = column.lower()
        if usual not in by_case or column == usual:
            by_case[usual] = column
    return next((by_case[usual] for usual in LABEL_NAMES if usual in by_case), None)


MAX_LINE_BYTES = 16 * 2**20
MEMORY_CHECK_BYTES = 64 * 2**20
MAX_DENSE_CELLS = 50_000_000

Source: TypeAlias = str | os.PathLike[str] | BinaryIO
RowError: TypeAlias = Callable[[str, int], DataError]  # (problem, 0-based row) -> the error that points there


# ---------------------------------------------------------------------------------------------------- label lists


def label_matrix(
    codes: NDArray[np.integer],
    indptr: NDArray[np.integer],
    names: Sequence[str],
    *,
    source: str,
    row_error: RowError,
    label_names: Sequence[str] | None = None,
    first_names: Sequence[str] = (),
    repeated_labels: str = "error",
) -> tuple[CSR, tuple[str, ...]]:
    """Label lists as (Y, label_names).

    Parameters
    ----------
    codes : (n_occurrences,), row after row: which of ``names`` is meant
    indptr : (n_rows + 1,), where each row's occurrences begin and end
    names : the different names as they stand in the file, in order of first appearance
    source : the file, for errors that belong to no row
    row_error : makes the error for a row
    label_names : the columns of Y; a name outside them is an error. None: the names that occur
    first_names : columns that come first whether they occur or not; others follow (used where label_names is None)
    repeated_labels : "error", or "merge" to count a label that stands twice in one row once
    """
    if repeated_labels not in ("error", "merge"):
        raise DataError(f"repeated_labels is {repeated_labels!r}; use 'error' or 'merge'")
    given = tuple(label_names if label_names is not None else first_names)
    try:
        column_of = {name: j for j, name in enumerate(check_label_names(given, len(given)))}
    except DataError as error:
        raise DataError(error.problem, source=source) from None
    column_of_code = np.zeros(len(names), dtype=np.int64)
    for code, name in enumerate(names):
        try:
            (checked,) = check_label_names((name,), 1)
        except DataError as error:
            problem = error.problem.replace("label name 0", "a label name", 1)
            raise row_error(problem, _row_of_code(codes, indptr, code)) from None
        if label_names is not None and checked not in column_of:
            problem = f"label {checked!r} is not among the {len(column_of)} label_names; add it, or leave them out"
            raise row_error(problem, _row_of_code(codes, indptr, code))
        column_of_code[code] = column_of.setdefault(checked, len(column_of))
    columns = column_of_code[codes] if len(names) else np.zeros(0, dtype=np.int64)
    Y = sparse.csr_array(
        (np.ones(len(columns), dtype=np.int8), columns, np.asarray(indptr, dtype=np.int64)),
        shape=(len(indptr) - 1, len(column_of)),
    )
    ordered = tuple(column_of)
    _settle_repeats(Y, ordered, row_error, repeated_labels)
    return Y, ordered


def _row_of_code(codes: NDArray[np.integer], indptr: NDArray[np.integer], code: int) -> int:
    first = int(np.argmax(codes == code))
    return int(np.searchsorted(indptr, first, side="right")) - 1


def _settle_repeats(Y: CSR, names: tuple[str, ...], row_error: RowError, repeated_labels: str) -> None:
    """Sort Y in place; a label twice in one row is refused or counted once."""
    Y.sort_indices()
    starts = np.zeros(Y.nnz + 1, dtype=bool)
    starts[Y.indptr] = True
    repeats = np.flatnonzero((Y.indices[1:] == Y.indices[:-1]) & ~starts[1:-1]) if Y.nnz else np.zeros(0, dtype=int)
    if not len(repeats):
        return
    if repeated_labels == "error":
        row = int(np.searchsorted(Y.indptr, repeats[0], side="right")) - 1
        name = names[int(Y.indices[repeats[0]])]
        error = row_error(f"label {name!r} stands twice", row)
        error.hint = Hint.REPEATED_LABELS
        raise error
    Y.sum_duplicates()
    Y.data[:] = 1


class LabelLists:
    """Collects label lists row by row, for `label_matrix`."""

    def __init__(self) -> None:
        self._code_of: dict[str, int] = {}
        self._codes: list[int] = []
        self._ends: list[int] = [0]

    def add(self, labels: Iterable[str]) -> None:
        for label in labels:
            self._codes.append(self._code_of.setdefault(label, len(self._code_of)))
        self._ends.append(len(self._codes))

    def matrix(self, **options: Any) -> tuple[CSR, tuple[str, ...]]:
        """(Y, label_names); the options are those of `label_matrix`."""
        codes = np.array(self._codes, dtype=np.int64)
        return label_matrix(codes, np.array(self._ends, dtype=np.int64), list(self._code_of), **options)


def rows_of_names(Y: CSR, label_names: Sequence[str]) -> Iterator[list[str]]:
    """The label names of each row, in the order of the columns."""
    for begin, end in zip(Y.indptr[:-1], Y.indptr[1:], strict=True):
        yield [label_names[j] for j in Y.indices[begin:end]]


# -------------------------------------------------------------------------------------------------------- values


def parse_json(text: str) -> Any:
    """One JSON value, strictly: no NaN or Infinity, no key twice, no half surrogate pair.

    ValueError says what is wrong, for a person.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_pairs)
        if "\\u" in text and not is_encodable(json.dumps(value, ensure_ascii=False)):
            raise ValueError("holds half a surrogate pair (\\ud800 to \\udfff); write the character whole")
        return value
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg}, character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number; remove or impute it")


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {repeated[:60]!r} stands twice in one object; keep one")
    return result


def is_encodable(text: str) -> bool:
    """Whether the text can be written as UTF-8 (no lone surrogates)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def parse_date(text: str) -> np.datetime64:
    """An ISO 8601 date, or the day of an ISO 8601 date and time as written; "" is NaT. ValueError otherwise."""
    if not text:
        return np.datetime64("NaT", "D")
    try:
        return np.datetime64(datetime.datetime.fromisoformat(text).date(), "D")
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a date; write it as YYYY-MM-DD") from None


def format_date(date: np.datetime64) -> str | None:
    """``YYYY-MM-DD``, or None for NaT."""
    if np.isnat(date):
        return None
    day = date.astype("datetime64[D]").astype(object)
    if not isinstance(day, datetime.date):
        raise DataError(f"date {date} cannot be written; years 1 to 9999 can")
    return day.isoformat()


# --------------------------------------------------------------------------------------------------------- files


def source_name(source: Source) -> str:
    """What messages call it."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == "-" else os.fspath(source)
    return str(getattr(source, "name", "input"))


@contextlib.contextmanager
def open_source(source: Source) -> Iterator[IO[bytes]]:
    """A binary file to read: a path (unpacked if it ends in .gz or .bz2), "-" for standard input, or an open file.

    An open file is read as it is and stays open.
    """
    if isinstance(source, io.TextIOBase):
        raise DataError("is open as text; open it in binary mode ('rb')", source=source_name(source))
    if not isinstance(source, str | os.PathLike):
        yield source
    elif source == "-":
        yield sys.stdin.buffer
    else:
        check_file(source)
        name = os.fspath(source)
        opener: Any = gzip.open if name.endswith(".gz") else bz2.open if name.endswith(".bz2") else open
        try:
            with opener(name, "rb") as handle:
                yield handle
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            hint = "" if isinstance(error, PermissionError) else "; it may be damaged or cut short"
            raise DataError(f"cannot be read: {reason}{hint}", source=source) from error


def check_file(path: str | os.PathLike[str]) -> None:
    """NotFoundError or DataError unless the path names a file."""
    if "\0" in os.fspath(path) or not os.path.exists(path):
        raise NotFoundError(f"{os.fspath(path)}: there is no such file")
    if os.path.isdir(path):
        raise DataError("is a folder; name a file in it", source=path)


def read_lines(handle: IO[bytes], source: str, max_line_bytes: int) -> Iterator[str]:
    """The lines with their ends, decoded. A byte order mark is left out; bad bytes and huge lines are errors."""
    line_number, unchecked_bytes = 0, 0
    while line := handle.readline(max_line_bytes + 1):
        line_number += 1
        unchecked_bytes += len(line)
        if unchecked_bytes > MEMORY_CHECK_BYTES:
            check_memory(4 * unchecked_bytes, "reading on", source=source, line=line_number)
            unchecked_bytes = 0
        if len(line) > max_line_bytes:
            problem, hint = f"longer than {max_line_bytes} bytes", Hint.LARGER_LIMIT
            raise DataError(problem, source=source, line=line_number, hint=hint, hint_value="max_line_bytes")
        yield decode_line(line.removeprefix(b"\xef\xbb\xbf") if line_number == 1 else line, source, line_number)


def decode_line(line: bytes, source: str, line_number: int) -> str:
    if b"\0" in line:
        problem = "contains a NUL byte; the file is binary, damaged or UTF-16 (save it as UTF-8)"
        raise DataError(problem, source=source, line=line_number)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        raise DataError(problem, source=source, line=line_number) from None


def check_rows(n_rows: int, source: str) -> None:
    """A file without rows is refused: it is far more often cut off than meant."""
    if not n_rows:
        raise DataError("holds no rows; is it the right file, and whole?", source=source)
