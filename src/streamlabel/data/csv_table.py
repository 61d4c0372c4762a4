"""CSV with a text column and labels: a tag column with a delimiter, or one 0/1 column a label.

The file is UTF-8 (with or without byte order mark), its first line names the columns, cells are quoted with ``"``
as spreadsheets do. Blank lines are skipped; columns that nothing asks for are not read.

What a spreadsheet would run as a formula is guarded (`csv_cells`).

Rows of cells of a CSV file, and cells that no spreadsheet runs.

Spreadsheets take a cell that begins with ``= + - @`` for a formula and run it. Writers therefore put an apostrophe
before every cell that begins with one of these, a tab or a line end (after any apostrophes), and the reader takes one
apostrophe away from exactly such cells, so that what was written comes back.
"""

from __future__ import annotations

import codecs
import csv
import os
import re
from collections.abc import Iterator, Sequence
from typing import IO, Any, TypeAlias

import numpy as np

from streamlabel.data.files import replacing
from streamlabel.data.rows import (
    MAX_LINE_BYTES,
    LabelLists,
    Source,
    check_rows,
    format_date,
    is_encodable,
    labels_column_of,
    open_source,
    parse_date,
    read_lines,
    rows_of_names,
    source_name,
)
from streamlabel.errors import DataError, Hint
from streamlabel.types import TextDataset

# What begins a formula, the full-width forms too, which spreadsheets take as well.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_GUARDED = re.compile(r"'" + _FORMULA.pattern)


def guarded(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def csv_rows(
    handle: IO[bytes], source: str, delimiter: str, formula_guard: bool, max_line_bytes: int
) -> Iterator[tuple[int, list[str]]]:
    """The rows as (line on which the row begins, cells)."""
    csv.field_size_limit(max(csv.field_size_limit(), min(max_line_bytes, 2**31 - 1)))  # process-wide: only ever raised
    lines = _LinesOfRow(handle, source, max_line_bytes)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        begin = lines.begin_row()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"a quote or a line end is out of place ({error}); close every quote and double those inside"
            raise DataError(problem, source=source, line=begin) from None
        if row:
            yield begin, [cell[1:] if _GUARDED.match(cell) else cell for cell in row] if formula_guard else row


class _LinesOfRow:
    """The lines of the file for the csv reader, with a limit on those that one row may take."""

    def __init__(self, handle: IO[bytes], source: str, max_line_bytes: int) -> None:
        self._lines = read_lines(handle, source, max_line_bytes)
        self._source = source
        self._limit = max_line_bytes
        self._line_number = 0
        self._begin = 1
        self._length = 0

    def begin_row(self) -> int:
        """Called before each row; the number of its first line."""
        self._begin, self._length = self._line_number + 1, 0
        return self._begin

    def __iter__(self) -> _LinesOfRow:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._line_number += 1
        self._length += len(line)
        if self._length > self._limit:
            problem, hint = f"the row is longer than {self._limit} characters", Hint.CLOSE_QUOTE
            raise DataError(problem, source=self._source, line=self._begin, hint=hint, hint_value="max_line_bytes")
        return line


def read_csv(
    path: Source,
    *,
    text_column: str = "text",
    labels_column: str | None = None,
    delimiter_of_tags: str = ";",
    label_columns: Sequence[str] | None = None,
    id_column: str | None = None,
    date_column: str | None = None,
    delimiter: str | None = None,
    label_names: Sequence[str] | None = None,
    repeated_labels: str = "error",
    formula_guard: bool = True,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> TextDataset:
    """Read a CSV file into a `TextDataset`.

    Parameters
    ----------
    path : a path, "-" for standard input, or an open binary file
    text_column : the column with the texts
    labels_column : the column with the tags, ``delimiter_of_tags`` between them; spaces around a tag are not part of
        it, an empty cell means no label, an empty tag (``a;;b``) is an error. None: ``labels``, else ``label``,
        ``tags`` or another usual name
    label_columns : instead of a tag column: columns that hold 0 or 1, one a label, which give the label names
    id_column, date_column : columns with row ids and ISO dates (an empty date is NaT). None: the columns ``id`` and
        ``date`` where the file has them; "": neither is read
    delimiter : between cells; None: a tab for ``.tsv`` and ``.tab``, else a comma
    label_names : columns of Y, in this order; other labels are an error. None: order of first appearance
    repeated_labels : "error", or "merge" to count a label that stands twice in one row once
    formula_guard : take away the apostrophe that guards against formulas (see above)
    max_line_bytes : a longer line or row is an error

    Raises
    ------
    DataError
        With file and line, at the first row that cannot be used. Nothing is dropped.
    """
    source = source_name(path)
    delimiter = delimiter or ("\t" if source.lower().endswith((".tsv", ".tab")) else ",")
    _check_delimiters(delimiter, delimiter_of_tags)
    with open_source(path) as handle:
        table = csv_rows(handle, source, delimiter, formula_guard, max_line_bytes)
        header = next(table, (1, []))[1]
        check_rows(len(header), source)
        if label_columns is None:
            wanted = labels_column or labels_column_of(name for name in header if name != text_column) or "labels"
            tags: _Tags = _TagColumn(wanted, delimiter_of_tags)
        else:
            tags = _ZeroOneColumns(label_columns)
        text_at, *tags_at = _positions([text_column, *tags.columns], header, source, delimiter)
        id_at = _optional_position(id_column, "id", header, source, delimiter)
        date_at = _optional_position(date_column, "date", header, source, delimiter)
        rows = _Rows(source, len(header), text_at, tags, tags_at, id_at, date_at)
        for line, row in table:
            rows.add(line, row)
    return rows.dataset(label_names=label_names, first_names=label_columns or (), repeated_labels=repeated_labels)


class _Rows:
    """The rows read so far, column by column."""

    def __init__(
        self, source: str, width: int, text_at: int, tags: _Tags, tags_at: list[int], id_at: int | None,
        date_at: int | None,
    ) -> None:  # fmt: skip
        self._source, self._width, self._tags = source, width, tags
        self._text_at, self._tags_at, self._id_at, self._date_at = text_at, tags_at, id_at, date_at
        self._texts: list[str] = []
        self._ids: list[str] = []
        self._dates: list[np.datetime64] = []
        self._labels = LabelLists()
        self._lines: list[int] = []

    def add(self, line: int, row: list[str]) -> None:
        try:
            if len(row) != self._width:
                raise ValueError(f"{len(row)} cells where the header has {self._width}; is a quote missing?")
            self._labels.add(self._tags.labels_of([row[at] for at in self._tags_at]))
            self._texts.append(row[self._text_at])
            if self._id_at is not None:
                self._ids.append(row[self._id_at])
            if self._date_at is not None:
                self._dates.append(parse_date(row[self._date_at]))
        except ValueError as error:
            raise DataError(str(error), source=self._source, line=line) from None
        self._lines.append(line)

    def dataset(self, **options: Any) -> TextDataset:
        check_rows(len(self._lines), self._source)
        Y, names = self._labels.matrix(source=self._source, row_error=self._error, **options)
        return TextDataset(
            texts=self._texts,
            Y=Y,
            label_names=names,
            row_ids=None if self._id_at is None else tuple(self._ids),
            row_dates=None if self._date_at is None else np.array(self._dates, dtype="datetime64[D]"),
            source=self._source,
        )

    def _error(self, problem: str, row: int) -> DataError:
        return DataError(problem, source=self._source, line=self._lines[row])


class _TagColumn:
    """One column that lists the labels."""

    def __init__(self, column: str, delimiter: str) -> None:
        self.columns = [column]
        self._delimiter = delimiter

    def labels_of(self, cells: list[str]) -> list[str]:
        cell = cells[0].strip()
        tags = [tag.strip() for tag in cell.split(self._delimiter)] if cell else []
        if "" in tags:
            raise ValueError(f"an empty tag in {cell[:60]!r}; remove the extra {self._delimiter!r}")
        return tags


class _ZeroOneColumns:
    """One column a label, with 0 or 1."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = list(columns)

    def labels_of(self, cells: list[str]) -> list[str]:
        for column, cell in zip(self.columns, cells, strict=True):
            if cell not in ("0", "1"):
                raise ValueError(f"column {column!r} holds {cell[:40]!r}; a label column holds 0 or 1")
        return [column for column, cell in zip(self.columns, cells, strict=True) if cell == "1"]


_Tags: TypeAlias = _TagColumn | _ZeroOneColumns


def _check_delimiters(delimiter: str, delimiter_of_tags: str) -> None:
    if len(delimiter) != 1 or delimiter in '\r\n"\0' or not delimiter.isascii():
        raise DataError(f"delimiter is {delimiter!r}; use one character such as ',' or a tab")
    if len(delimiter_of_tags) != 1 or delimiter_of_tags == "\0":
        raise DataError(f"tags cannot be separated by {delimiter_of_tags!r}", hint=Hint.TAG_DELIMITER)


def _positions(columns: Sequence[str], header: list[str], source: str, delimiter: str) -> list[int]:
    """Where these columns stand in the header."""
    for column in columns:
        if header.count(column) > 1:
            raise DataError(f"the header has the column {column!r} twice; rename one", source=source, line=1)
        if column not in header:
            shown = ", ".join(repr(name[:40]) for name in header[:30]) or "none"
            problem = f"no column {column!r}; the columns are {shown} (with {delimiter!r} as delimiter)"
            raise DataError(problem, source=source, line=1)
    return [header.index(column) for column in columns]


def _optional_position(column: str | None, usual: str, header: list[str], source: str, delimiter: str) -> int | None:
    if column == "" or (column is None and usual not in header):
        return None
    return _positions([column or usual], header, source, delimiter)[0]


def write_csv(
    dataset: TextDataset,
    path: str | os.PathLike[str],
    *,
    text_column: str = "text",
    labels_column: str = "labels",
    delimiter_of_tags: str = ";",
    one_column_a_label: bool = False,
    id_column: str = "id",
    date_column: str = "date",
    delimiter: str | None = None,
) -> None:
    """Write a `TextDataset` as CSV, safe to open in a spreadsheet; the file appears whole or not at all.

    ``one_column_a_label`` writes 0/1 columns named after the labels instead of the tag column. Pass ``label_names``
    (or ``label_columns``) to `read_csv` to get the columns of Y back in the same order, exactly.
    """
    if not isinstance(dataset, TextDataset):
        raise DataError("CSV holds texts; write a set of features as JSONL, Parquet, XC text or npz", source=path)
    delimiter = delimiter or ("\t" if os.fspath(path).lower().endswith((".tsv", ".tab")) else ",")
    _check_delimiters(delimiter, delimiter_of_tags)
    header = [id_column] if dataset.row_ids is not None else []
    header += [date_column] if dataset.row_dates is not None else []
    header += [text_column]
    header += dataset.label_names if one_column_a_label else [labels_column]
    if len(set(header)) != len(header):
        raise DataError(f"two columns would have the same name in {path}; rename text_column or a label")
    if not one_column_a_label:
        _check_tags(dataset.label_names, delimiter_of_tags)
    with replacing(path) as handle:
        writer = csv.writer(codecs.getwriter("utf-8")(handle), delimiter=delimiter, lineterminator="\r\n")
        for row, cells in enumerate(_written_rows(dataset, header, one_column_a_label, delimiter_of_tags)):
            if any("\0" in cell or not is_encodable(cell) for cell in cells):
                raise DataError(f"row {row} holds a NUL or half a surrogate pair, which CSV cannot hold", source=path)
            writer.writerow([guarded(cell) for cell in cells])


def _check_tags(label_names: Sequence[str], delimiter_of_tags: str) -> None:
    for name in label_names:
        if delimiter_of_tags in name or name != name.strip():
            problem = f"label {name!r} contains {delimiter_of_tags!r} or outer spaces: no tag column can hold it"
            raise DataError(f"{problem}; choose another delimiter_of_tags, or one_column_a_label=True")


def _written_rows(
    dataset: TextDataset, header: list[str], one_column_a_label: bool, delimiter_of_tags: str
) -> Iterator[list[str]]:
    yield header
    for row, labels in enumerate(rows_of_names(dataset.Y, dataset.label_names)):
        cells = [dataset.row_ids[row]] if dataset.row_ids is not None else []
        cells += [format_date(dataset.row_dates[row]) or ""] if dataset.row_dates is not None else []
        cells += [dataset.texts[row]]
        if one_column_a_label:
            present = set(labels)
            cells += ["1" if name in present else "0" for name in dataset.label_names]
        else:
            cells += [delimiter_of_tags.join(labels)]
        yield cells
