"""Texts from a file or a stream, one at a time: CSV, JSON Lines, or plain lines. Labels are not read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from streamlabel.data.csv_cells import csv_rows
from streamlabel.data.records import (
    MAX_LINE_BYTES,
    LabelLists,
    Source,
    check_rows,
    open_source,
    parse_json,
    read_lines,
    source_name,
)
from streamlabel.data.text_columns import TextColumns
from streamlabel.exceptions import DataError
from streamlabel.results import TextDataset

__all__ = ["TextRow", "read_one_label_rows", "read_text_lines", "read_text_rows"]


class TextRow(NamedTuple):
    """A text, the id that its row has in the file (None without), its line, and what another column says."""

    id: str | None
    text: str
    line: int
    other: Any = None


def read_text_lines(source: Source) -> Iterator[TextRow]:
    """One text a line; blank lines are skipped."""
    name = source_name(source)
    with open_source(source) as handle:
        for number, line in enumerate(read_lines(handle, name, MAX_LINE_BYTES), start=1):
            if line.strip():
                yield TextRow(None, line.strip(), number)


def read_text_rows(source: Source, columns: TextColumns, other: str | None = None) -> Iterator[TextRow]:
    """The texts of a JSONL or CSV file, with the ids of a column ``id`` and the values of an ``other`` one."""
    read = _json_texts if columns.format == "jsonl" else _csv_texts
    return read(source, columns, other)


def read_one_label_rows(source: Source, columns: TextColumns) -> TextDataset:
    """A JSONL file whose records have one label each, a string; null or "" is none."""
    name, texts, lines, labels = source_name(source), [], [], LabelLists()
    for row in read_text_rows(source, columns, columns.labels):
        if row.other is not None and not isinstance(row.other, str):
            raise DataError(f"{columns.labels!r} is not a string here, as before", source=name, line=row.line)
        labels.add([row.other] if row.other else [])
        texts.append(row.text)
        lines.append(row.line)
    check_rows(len(texts), name)
    Y, names = labels.matrix(
        source=name, row_error=lambda problem, row: DataError(problem, source=name, line=lines[row])
    )
    return TextDataset(texts, Y, names, source=name)


def _json_texts(source: Source, columns: TextColumns, other: str | None) -> Iterator[TextRow]:
    name, fields = source_name(source), dict[str, None]()
    with open_source(source) as handle:
        for number, line in enumerate(read_lines(handle, name, MAX_LINE_BYTES), start=1):
            if not line.strip():
                continue
            try:
                record = parse_json(line)
            except ValueError as error:
                raise DataError(str(error), source=name, line=number) from None
            text = record.get(columns.text) if isinstance(record, dict) else None
            if not isinstance(text, str):
                raise DataError(f"no text in the field {columns.text!r}", source=name, line=number)
            fields |= dict.fromkeys(record)
            id_ = record.get("id")
            value = None if other is None else record.get(other)
            yield TextRow(str(id_) if isinstance(id_, str | int) else None, text, number, value)
    if other is not None and fields and other not in fields:
        raise DataError(f"no field {other!r}; the fields are {_listing(fields)}", source=name)


def _listing(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in itertools.islice(names, 30))


def _csv_texts(source: Source, columns: TextColumns, other: str | None) -> Iterator[TextRow]:
    name = source_name(source)
    with open_source(source) as handle:
        table = csv_rows(handle, name, columns.delimiter, True, MAX_LINE_BYTES)
        header = next(table, (1, []))[1]
        check_rows(len(header), name)
        for column in (columns.text, other):
            if column is not None and column not in header:
                raise DataError(f"no column {column!r}; the columns are {_listing(header)}", source=name, line=1)
        text_at, id_at = header.index(columns.text), header.index("id") if "id" in header else None
        other_at = None if other is None else header.index(other)
        for line, row in table:
            if len(row) != len(header):
                problem = f"{len(row)} cells where the header has {len(header)}; is a quote missing?"
                raise DataError(problem, source=name, line=line)
            value = None if other_at is None else row[other_at]
            yield TextRow(None if id_at is None else row[id_at], row[text_at], line, value)
