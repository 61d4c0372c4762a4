"""What annotation tools export, read as texts, labels and, cell by cell, what nobody was asked.

`load_annotations` tells the tools apart and reads one file, or one a person, record by record: JSON Lines, a JSON array
of any length, or CSV with a header. Only one record is in memory; one that is longer than ``max_record_bytes`` is
refused before it is read whole. `tools` turns a record into a text and the answers it was given; `answers` settles
them: yes, no, not asked.

A label that was not offered, a task that was skipped and a text that nobody opened say nothing: they are unknown.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeAlias

from streamlabel.data.annotations import tools
from streamlabel.data.annotations.answers import AnnotatedText, Annotations, Gathering, Options, Place, parse_births
from streamlabel.data.csv_table import csv_records
from streamlabel.data.fetch import archive_kind, unpack
from streamlabel.data.files import (
    BYTE_ORDER_MARK,
    MAX_LINE_BYTES,
    MEMORY_CHECK_BYTES,
    Source,
    check_file,
    check_integer,
    check_memory,
    decode_line,
    numbered_lines,
    open_source,
    replayable,
    source_name,
)
from streamlabel.data.rows import parse_json
from streamlabel.errors import DataError, Hint

Parser: TypeAlias = Callable[[Any, Options], AnnotatedText]
Chooser: TypeAlias = Callable[[Any, str], Parser]  # (a record, the format asked for) -> what reads such records

TOOLS = ("annif", "argilla", "doccano", "label_studio", "prodigy")
_CHUNK = 1 << 16
MOST_UNPACKED = 1 << 30  # bytes of all files of a zip
# Whatever lies before a bracket, strings with the brackets in them included; linear, nothing is tried twice.
_UP_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+[\[\]{}]', re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*")


def load_annotations(
    path: Source | Sequence[Source],
    format: str = "auto",
    *,
    text_field: str | None = None,
    question: str | None = None,
    label_names: Sequence[str] | None = None,
    empty: str = "unknown",
    born: Mapping[str, object] | None = None,
    names: str = "label",
    max_record_bytes: int = MAX_LINE_BYTES,
) -> Annotations:
    """Read the export of an annotation tool: multi-label classification of texts.

    Parameters
    ----------
    path : a file, a zip of files (doccano), a folder (Annif), "-" or an open binary file (JSON; give the format); or
        several of them, one a person, whose records are joined by their ids
    format : one of `TOOLS`; "auto" looks at the first record
    text_field : the field with the text; None: ``text``, else the only one that is a string
    question : the control (Label Studio), question (Argilla) or label field (doccano), where a record has several
    label_names : the labels of the project, in the order of Y's columns; others are an error. None: those that occur
    empty : what a text without labels means where the tool does not say (doccano, Annif): "unknown" or "no"
    born : when labels were added to the project (dates); older answers did not see them (Label Studio, Prodigy)
    names : what an Annif subject is called: "label" or "uri"
    max_record_bytes : a longer record is an error

    What was not asked is unknown, not no: skipped, rejected and ignored tasks, texts nobody opened, labels that were
    not offered. Several people: the last word of each, then the majority; a tie is unknown.

    Raises
    ------
    DataError
        With file, line and record, at the first one that cannot be used, spans and other tasks among them.
    """
    for value, allowed, what in ((empty, ("unknown", "no"), "empty"), (names, ("label", "uri"), "names")):
        if value not in allowed:
            raise DataError(f"{what} is {value!r}; use {' or '.join(map(repr, allowed))}")
    if format != "auto" and format not in TOOLS:
        raise DataError(f"format {format!r} is not known; use 'auto' or one of {', '.join(TOOLS)}")
    limit = check_integer(max_record_bytes, "max_record_bytes", low=1)
    births = parse_births(born)
    options = Options(text_field, question, empty == "no", names == "uri", bool(births))
    gathering = Gathering(label_names, births)
    sources: list[Any] = list(path) if isinstance(path, list | tuple) else [path]
    file = 0
    for source in sources:
        with _members(source) as members:
            for name, member in members.items():
                for place, record in _named(_records(member, format, options, limit), name):
                    gathering.add(record, place, file)
                file += 1
    return gathering.annotations(", ".join(source_name(source) for source in sources[:3]))


@contextmanager
def _members(path: Source) -> Iterator[dict[str, Source]]:
    """The files of a source by their names: itself, or those of a zip (which must not hold archives themselves)."""
    if _suffix(path) != ".zip":
        yield {source_name(path): path}
        return
    archive = Path(path)  # type: ignore[arg-type]
    check_file(archive)
    if archive_kind(archive) != "zip":
        raise DataError("is called a zip and is none", source=archive)
    with tempfile.TemporaryDirectory() as folder:
        found = sorted(unpack(archive, Path(folder), max_bytes=MOST_UNPACKED))
        for inner in found:
            if archive_kind(inner) is not None:
                raise DataError(f"holds an archive, {inner.name!r}; unpack it by hand", source=archive)
        yield {f"{archive}/{inner.name}": inner for inner in found}


def _named(records: Iterator[tuple[Place, AnnotatedText]], name: str) -> Iterator[tuple[Place, AnnotatedText]]:
    """Records and errors that name the file as the user knows it."""
    try:
        for place, record in records:
            yield replace(place, source=name) if ".zip/" in name else place, record
    except DataError as error:
        if ".zip/" not in name:
            raise
        hint = {"hint": error.hint, "hint_value": error.hint_value}
        raise DataError(error.problem, source=name, line=error.line, **hint) from None  # type: ignore[arg-type]


def _records(path: Source, format: str, options: Options, limit: int) -> Iterator[tuple[Place, AnnotatedText]]:
    if isinstance(path, str | os.PathLike) and path != "-" and "\0" not in os.fspath(path) and Path(path).is_dir():
        if format not in ("auto", "annif"):
            raise DataError("is a folder; name the file in it", source=path)
        yield from tools.read_annif_folder(Path(path), options)
        return
    records, choose = _opened(path, format, limit)
    parse: Parser | None = None
    for place, raw in records:
        try:
            parse = parse or choose(raw, format)
            yield place, parse(raw, options)
        except ValueError as error:
            id_ = raw.get("id") if isinstance(raw, dict) else None
            raise place.error(error, None if id_ is None else str(id_)) from None


def _opened(path: Source, format: str, limit: int) -> tuple[Iterator[tuple[Place, Any]], Chooser]:
    """The raw records, and who says what reads them."""
    suffix = _suffix(path)
    if suffix == ".csv":
        return _csv_records(path, ",", limit), _parser_of_columns
    if suffix == ".tsv" and format != "annif" and b"annotation_id" in _first_line(path):
        return _csv_records(path, "\t", limit), _parser_of_columns
    if suffix == ".tsv":
        return _text_lines(path, limit), lambda line, format: _only("annif", format, tools.parse_annif_tsv)
    if suffix == ".txt":
        return _fast_text_records(path, limit), lambda line, format: _only(
            "doccano", format, tools.parse_doccano_fast_text
        )
    if format == "auto" and not isinstance(path, str | os.PathLike):
        raise DataError(f"give the format of a stream, one of {', '.join(TOOLS)}", source=source_name(path))
    return _json_records(path, limit), _parser_of_object


def _suffix(path: Source) -> str:
    if not isinstance(path, str | os.PathLike) or path == "-":
        return ""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in (".gz", ".bz2")]
    return suffixes[-1] if suffixes else ""


def _first_line(path: Source) -> bytes:
    with open_source(path) as handle:
        return handle.readline(1 << 16)


def _only(tool: str, format: str, parse: Parser) -> Parser:
    if format not in ("auto", tool):
        raise ValueError(
            f"a file with this ending holds an export of {tool}, not of {format}; rename it if it does not"
        )
    return parse


def _parser_of_columns(record: dict[str, str], format: str) -> Parser:
    if format == "annif" or (format == "auto" and "subject_uris" in record):
        return tools.parse_annif_csv
    if format == "label_studio" or (format == "auto" and "annotation_id" in record):
        return tools.parse_label_studio_csv
    if format == "doccano" or (format == "auto" and "label" in record):
        return tools.parse_doccano_csv
    raise _no_tool(f"the columns {list(record)[:20]} are of no tool that writes CSV")


def _parser_of_object(record: dict[str, Any], format: str) -> Parser:
    if format == "auto":
        format = _tool_of(record)
    if format == "label_studio":
        return tools.parse_label_studio_task if "data" in record else tools.parse_label_studio_flat
    return {"annif": tools.parse_annif_json, "argilla": tools.parse_argilla, "doccano": tools.parse_doccano_json}.get(
        format, tools.parse_prodigy
    )


def _tool_of(record: dict[str, Any]) -> str:
    if "data" in record and ("annotations" in record or "completions" in record):
        return "label_studio"
    if "annotation_id" in record and "annotator" in record:
        return "label_studio"
    if "_input_hash" in record or ("answer" in record and ("options" in record or "label" in record)):
        return "prodigy"
    if ("fields" in record and "responses" in record) or any(name.endswith(".responses") for name in record):
        return "argilla"
    if "subjects" in record:
        return "annif"
    if "text" in record and ("label" in record or "labels" in record or "cats" in record):
        return "doccano"
    raise _no_tool(f"the fields {list(record)[:20]} are of no tool that is known")


def _no_tool(problem: str) -> DataError:
    return DataError(problem, hint=Hint.FORMAT, hint_value=", ".join(TOOLS))


def _json_records(path: Source, max_record_bytes: int) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The objects of JSON Lines or of one array, each with its place."""
    source = source_name(path)
    path, head = replayable(path)
    if head.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"["):
        pieces = _array_elements(path, max_record_bytes)
    else:
        pieces = numbered_lines(path, max_record_bytes)
    for number, (line, text) in enumerate(pieces, start=1):
        place = Place(source, line, number)
        try:
            value = parse_json(text)
        except ValueError as error:
            raise place.error(error) from None
        if not isinstance(value, dict):
            raise place.error("is no object {...}; an export of annotations is a list of objects")
        yield place, value


def _csv_records(path: Source, delimiter: str, max_record_bytes: int) -> Iterator[tuple[Place, dict[str, str]]]:
    """The rows of a table as column name -> cell."""
    header, records = csv_records(path, delimiter, formula_guard=False, max_line_bytes=max_record_bytes)
    if len(set(header)) != len(header):
        raise DataError("the header has a column twice; rename one", source=source_name(path), line=1)
    for number, (line, record) in enumerate(records, start=1):
        yield Place(source_name(path), line, number), record


def _text_lines(path: Source, max_record_bytes: int) -> Iterator[tuple[Place, str]]:
    """The lines that are not blank, without their ends."""
    for number, (line_number, line) in enumerate(numbered_lines(path, max_record_bytes), start=1):
        yield Place(source_name(path), line_number, number), line.rstrip("\r\n")


def _fast_text_records(path: Source, max_record_bytes: int) -> Iterator[tuple[Place, str]]:
    """Lines, or what is quoted as a CSV cell, which may go over several lines: so doccano writes fastText."""
    begin, parts, n_quotes, length = None, [], 0, 0
    for place, line in _text_lines(path, max_record_bytes):
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


def _array_elements(path: Source, max_record_bytes: int) -> Iterator[tuple[int, str]]:
    with open_source(path) as handle:
        yield from _ArrayReader(handle, source_name(path), max_record_bytes).elements()


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
        self._at = len(BYTE_ORDER_MARK) if self._buffer.startswith(BYTE_ORDER_MARK) else 0
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
        chunk = self._handle.read(max(_CHUNK, min(len(rest), self._limit)))
        self._unchecked += len(chunk)
        if self._unchecked > MEMORY_CHECK_BYTES:
            check_memory(4 * self._unchecked, "reading on", source=self._source, line=self._line)
            self._unchecked = 0
        self._buffer, self._at = rest + chunk, 0
        return bool(chunk)

    def _error(self, problem: str, **hint: Any) -> DataError:
        return DataError(problem, source=self._source, line=self._line, **hint)
