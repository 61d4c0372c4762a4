"""Records of an export, one at a time: JSON Lines, a JSON array of any length, or CSV with a header.

Only one record is in memory; one that is longer than ``max_record_bytes`` is refused before it is read whole.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from streamlabel.data.csv_table import csv_rows
from streamlabel.data.files import check_memory
from streamlabel.data.rows import (
    MEMORY_CHECK_BYTES,
    Source,
    decode_line,
    open_source,
    parse_json,
    read_lines,
    source_name,
)
from streamlabel.errors import DataError, Hint

CHUNK = 1 << 16
# Whatever lies before a bracket, strings with the brackets in them included; linear, nothing is tried twice.
_UP_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+[\[\]{}]', re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Place:
    """Where a record stands: its file, its first line, its number (both from 1)."""

    source: str
    line: int
    number: int

    def error(self, problem: str | ValueError, id_: str | None = None, **hint: Any) -> DataError:
        if isinstance(problem, DataError):
            hint = {"hint": problem.hint, "hint_value": problem.hint_value}
            problem = problem.problem
        name = f"record {self.number}" + (f" (id {id_[:60]})" if id_ is not None else "")
        return DataError(f"{name}: {problem}", source=self.source, line=self.line, **hint)


def json_records(path: Source, max_record_bytes: int) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The objects of JSON Lines or of one array, each with its place."""
    source = source_name(path)
    with open_source(path) as handle, _peekable(handle) as peekable:
        beginning = peekable.peek(CHUNK).removeprefix(_BYTE_ORDER_MARK).lstrip()  # type: ignore[attr-defined]
        if beginning.startswith(b"["):
            pieces = _ArrayReader(peekable, source, max_record_bytes).elements()
        else:
            lines = enumerate(read_lines(peekable, source, max_record_bytes), start=1)
            pieces = ((number, line) for number, line in lines if line.strip())
        for number, (line, text) in enumerate(pieces, start=1):
            place = Place(source, line, number)
            try:
                value = parse_json(text)
            except ValueError as error:
                raise place.error(error) from None
            if not isinstance(value, dict):
                raise place.error("is no object {...}; an export of annotations is a list of objects")
            yield place, value


def csv_records(path: Source, delimiter: str, max_record_bytes: int) -> Iterator[tuple[Place, dict[str, str]]]:
    """The rows of a table as column name -> cell."""
    source = source_name(path)
    with open_source(path) as handle:
        rows = csv_rows(handle, source, delimiter, False, max_record_bytes)
        _, header = next(rows, (1, []))
        if len(set(header)) != len(header):
            raise DataError("the header has a column twice; rename one", source=source, line=1)
        for number, (line, cells) in enumerate(rows, start=1):
            place = Place(source, line, number)
            if len(cells) != len(header):
                raise place.error(f"{len(cells)} cells where the header has {len(header)}; is a quote missing?")
            yield place, dict(zip(header, cells, strict=True))


def text_lines(path: Source, max_record_bytes: int) -> Iterator[tuple[Place, str]]:
    """The lines that are not blank, without their ends."""
    source = source_name(path)
    with open_source(path) as handle:
        lines = ((n, line) for n, line in enumerate(read_lines(handle, source, max_record_bytes), 1) if line.strip())
        for number, (line_number, line) in enumerate(lines, start=1):
            yield Place(source, line_number, number), line.rstrip("\r\n")


def fast_text_records(path: Source, max_record_bytes: int) -> Iterator[tuple[Place, str]]:
    """Lines, or what is quoted as a CSV cell, which may go over several lines: so doccano writes fastText."""
    begin, parts, n_quotes, length = None, [], 0, 0
    for place, line in text_lines(path, max_record_bytes):
        begin = begin or place
        parts.append(line)
        n_quotes, length = n_quotes + line.count('"'), length + len(line)
        if length > max_record_bytes:
            problem = f"longer than {max_record_bytes} bytes"
            raise begin.error(problem, hint=Hint.CLOSE_QUOTE, hint_value="max_record_bytes")
        if parts[0].startswith('"') and n_quotes % 2:
            continue
        text = "\n".join(parts)
        quoted = text.startswith('"') and text.endswith('"') and len(text) > 1
        yield begin, text[1:-1].replace('""', '"') if quoted else text
        begin, parts, n_quotes, length = None, [], 0, 0
    if begin is not None:
        raise begin.error("a quote is not closed; the file is damaged or cut short")


@contextmanager
def _peekable(handle: IO[bytes]) -> Iterator[IO[bytes]]:
    if hasattr(handle, "peek"):
        yield handle
        return
    buffered = io.BufferedReader(handle)  # type: ignore[type-var]
    try:
        yield buffered
    finally:
        buffered.detach()


class _ArrayReader:
    """Cuts ``[{...}, {...}]`` into its elements by counting brackets, so that one element is in memory at a time."""

    def __init__(self, handle: IO[bytes], source: str, limit: int) -> None:
        self._handle, self._source, self._limit = handle, source, limit
        self._buffer = b""
        self._at = 0
        self._line = 1
        self._unchecked = 0

    def elements(self) -> Iterator[tuple[int, str]]:
        """(line on which the element begins, its text)."""
        self._more()
        self._at = len(_BYTE_ORDER_MARK) if self._buffer.startswith(_BYTE_ORDER_MARK) else 0
        self._expect(b"[", "an array begins with [")
        if self._next() == b"]":
            return
        while True:
            if self._next() != b"{":
                raise self._error("an element is no object {...}; an export of annotations is a list of objects")
            begin = self._line
            text = decode_line(self._element(), self._source, begin)
            yield begin, text
            if self._next() == b"]":
                break
            self._expect(b",", "elements are separated by commas")
        self._expect(b"]", "")
        if self._next():
            raise self._error("something follows the end of the array; is the file two exports in one?")

    def _next(self) -> bytes:
        """The next byte that is no white space, not consumed; b"" at the end."""
        while True:
            self._move(_SPACE.match(self._buffer, self._at).end())  # type: ignore[union-attr]
            if self._at < len(self._buffer) or not self._more():
                return self._buffer[self._at : self._at + 1]

    def _move(self, at: int) -> None:
        self._line += self._buffer.count(b"\n", self._at, at)
        self._at = at

    def _expect(self, byte: bytes, rule: str) -> None:
        if self._next() != byte:
            raise self._error(f"{rule}; the file is damaged or cut short")
        self._at += 1

    def _element(self) -> bytes:
        """The object that begins here, consumed."""
        depth, at = 0, self._at
        while True:
            found = _UP_TO_BRACKET.match(self._buffer, at)
            if found is None:
                at = self._longer(at)
                continue
            at = found.end()
            depth += 1 if self._buffer[at - 1] in b"[{" else -1
            if depth == 0:
                self._check_length(at - self._at)
                element = self._buffer[self._at : at]
                self._move(at)
                return element

    def _longer(self, at: int) -> int:
        """Read on, inside an element; where ``at`` is then."""
        self._check_length(len(self._buffer) - self._at)
        dropped = self._at
        if not self._more():
            raise self._error("the object that begins here is not closed; the file is damaged or cut short")
        return at - dropped

    def _check_length(self, length: int) -> None:
        if length > self._limit:
            problem = f"a record longer than {self._limit} bytes"
            raise self._error(problem, hint=Hint.LARGER_LIMIT, hint_value="max_record_bytes")

    def _more(self) -> bool:
        """Let go of what is consumed and read on: as much again, so that a long string is not searched many times."""
        rest = self._buffer[self._at :]
        chunk = self._handle.read(max(CHUNK, min(len(rest), self._limit)))
        self._unchecked += len(chunk)
        if self._unchecked > MEMORY_CHECK_BYTES:
            check_memory(4 * self._unchecked, "reading on", source=self._source, line=self._line)
            self._unchecked = 0
        self._buffer, self._at = rest + chunk, 0
        return bool(chunk)

    def _error(self, problem: str, **hint: Any) -> DataError:
        return DataError(problem, source=self._source, line=self._line, **hint)
