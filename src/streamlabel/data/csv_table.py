"""CSV with a text column and labels: a tag column with a delimiter, or one 0/1 column a label.

The file is UTF-8 (with or without byte order mark), its first line names the columns, cells are quoted with ``"``
as spreadsheets do. Blank lines are skipped; columns that nothing asks for are not read.

Spreadsheets take a cell that begins with ``= + - @`` for a formula and run it. Writers therefore put an apostrophe
before every cell that begins with one of these, a tab or a line end (after any apostrophes), and the reader takes one
apostrophe away from exactly such cells, so that what was written comes back.
"""

from __future__ import annotations

import codecs
import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from streamlabel.data.files import MAX_LINE_BYTES, Source, open_source, read_lines, replacing, source_name
from streamlabel.data.rows import GatheredRows, check_rows, is_encodable, labels_column_of, records_of
from streamlabel.errors import DataError, Hint
from streamlabel.types import TextDataset

# What begins a formula, the full-width forms too, which spreadsheets take as well.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_GUARDED = re.compile(r"'" + _FORMULA.pattern)


def guarded(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def csv_rows(
    path: Source, delimiter: str, *, formula_guard: bool = True, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, list[str]]]:
    """The rows as (line on which the row begins, cells), the header first; a row may go over several lines."""
    csv.field_size_limit(max(csv.field_size_limit(), min(max_line_bytes, 2**31 - 1)))  # process-wide: only ever raised
    source, begin, length = source_name(path), 1, 0

    def lines(handle: IO[bytes]) -> Iterator[str]:
        nonlocal length
        for line in read_lines(handle, source, max_line_bytes):
            length += len(line)
            if length > max_line_bytes:
                problem, hint = f"the row is longer than {max_line_bytes} characters", Hint.CLOSE_QUOTE
                raise DataError(problem, source=source, line=begin, hint=hint, hint_value="max_line_bytes")
            yield line

    with open_source(path) as handle:
        reader = csv.reader(lines(handle), delimiter=delimiter, strict=True)
        while True:
            begin, length = reader.line_num + 1, 0
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                problem = f"a quote or a line end is out of place ({error}); close every quote and double those inside"
                raise DataError(problem, source=source, line=begin) from None
            if row:
                yield begin, [cell[1:] if _GUARDED.match(cell) else cell for cell in row] if formula_guard else row


def csv_records(
    path: Source, delimiter: str, *, formula_guard: bool = True, max_line_bytes: int = MAX_LINE_BYTES
) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """The columns, and the rows as (line, column -> cell); of two columns of one name, the first counts."""
    table = csv_rows(path, delimiter, formula_guard=formula_guard, max_line_bytes=max_line_bytes)
    header = next(table, (1, []))[1]
    places: dict[str, int] = {}
    for at, name in enumerate(header):
        places.setdefault(name, at)

    def records() -> Iterator[tuple[int, dict[str, str]]]:
        for line, row in table:
            if len(row) != len(header):
                problem = f"{len(row)} cells where the header has {len(header)}; is a quote missing?"
                raise DataError(problem, source=source_name(path), line=line)
            yield line, {name: row[at] for name, at in places.items()}

    return header, records()


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
    header, records = csv_records(path, delimiter, formula_guard=formula_guard, max_line_bytes=max_line_bytes)
    check_rows(len(header), source)
    usual = labels_column_of(name for name in header if name != text_column)
    tags = labels_column or usual or "labels"
    ids = "id" if id_column is None and "id" in header else id_column
    dates = "date" if date_column is None and "date" in header else date_column
    wanted = [text_column, *([tags] if label_columns is None else label_columns), ids, dates]
    _check_columns([name for name in wanted if name], header, source, delimiter)
    rows = GatheredRows(source)
    for line, record in records:
        with rows.at(line):
            labels = _tags(record[tags], delimiter_of_tags) if label_columns is None else _ones(record, label_columns)
            rows.add(labels, record[ids] if ids else None, record[dates] if dates else None)
            rows.texts.append(record[text_column])
    first_names = label_columns or ()
    return rows.text_dataset(label_names=label_names, first_names=first_names, repeated_labels=repeated_labels)


def _tags(cell: str, delimiter: str) -> list[str]:
    """The labels that one cell lists."""
    cell = cell.strip()
    tags = [tag.strip() for tag in cell.split(delimiter)] if cell else []
    if "" in tags:
        raise ValueError(f"an empty tag in {cell[:60]!r}; remove the extra {delimiter!r}")
    return tags


def _ones(record: Mapping[str, str], columns: Sequence[str]) -> list[str]:
    """The columns that hold 1; the others must hold 0."""
    for column in columns:
        if record[column] not in ("0", "1"):
            raise ValueError(f"column {column!r} holds {record[column][:40]!r}; a label column holds 0 or 1")
    return [column for column in columns if record[column] == "1"]


def _check_delimiters(delimiter: str, delimiter_of_tags: str) -> None:
    if len(delimiter) != 1 or delimiter in '\r\n"\0' or not delimiter.isascii():
        raise DataError(f"delimiter is {delimiter!r}; use one character such as ',' or a tab")
    if len(delimiter_of_tags) != 1 or delimiter_of_tags == "\0":
        raise DataError(f"tags cannot be separated by {delimiter_of_tags!r}", hint=Hint.TAG_DELIMITER)


def _check_columns(columns: Sequence[str], header: list[str], source: str, delimiter: str) -> None:
    """Each of these columns stands in the header, once; the first is that of the texts."""
    for column in columns:
        if header.count(column) > 1:
            raise DataError(f"the header has the column {column!r} twice; rename one", source=source, line=1)
        if column not in header:
            shown = ", ".join(repr(name[:40]) for name in header[:30]) or "none"
            problem = f"no column {column!r}; the columns are {shown} (with {delimiter!r} as delimiter)"
            hint = Hint.TEXT_COLUMN if column == columns[0] else None
            raise DataError(problem, source=source, line=1, hint=hint)


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
    for name in () if one_column_a_label else dataset.label_names:
        if delimiter_of_tags in name or name != name.strip():
            problem = f"label {name!r} contains {delimiter_of_tags!r} or outer spaces: no tag column can hold it"
            raise DataError(f"{problem}; choose another delimiter_of_tags, or one_column_a_label=True")
    with replacing(path) as handle:
        writer = csv.writer(codecs.getwriter("utf-8")(handle), delimiter=delimiter, lineterminator="\r\n")
        for row, cells in enumerate(_written_rows(dataset, header, one_column_a_label, delimiter_of_tags)):
            if any("\0" in cell or not is_encodable(cell) for cell in cells):
                raise DataError(f"row {row} holds a NUL or half a surrogate pair, which CSV cannot hold", source=path)
            writer.writerow([guarded(cell) for cell in cells])


def _written_rows(
    dataset: TextDataset, header: list[str], one_column_a_label: bool, delimiter_of_tags: str
) -> Iterator[list[str]]:
    yield header
    for record in records_of(dataset, dataset.texts, id_="id", date="date", content="text", labels="labels"):
        *cells, labels = record.values()
        if one_column_a_label:
            present = set(labels)
            tags = ["1" if name in present else "0" for name in dataset.label_names]
        else:
            tags = [delimiter_of_tags.join(labels)]
        yield [*(cell or "" for cell in cells), *tags]
