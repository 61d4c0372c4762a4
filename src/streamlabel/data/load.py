"""One door for every file format, and which columns of a JSONL or CSV file hold the texts and the tags.

`load_dataset` picks the reader by the file's name, else by how it begins. Where nobody has said which columns are
meant, `guess_columns` tries the names that people use first, then the contents of the first rows. What was guessed is
said, and a guess that is not clear is an error that lists the columns.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from streamlabel.data.arff import read_arff
from streamlabel.data.catalogue import ENTRIES
from streamlabel.data.csv_table import csv_records, read_csv
from streamlabel.data.files import HEAD, MAX_LINE_BYTES, Source, numbered_lines, open_source, source_name
from streamlabel.data.jsonl import json_records, read_jsonl
from streamlabel.data.npz import read_npz
from streamlabel.data.parquet import read_parquet
from streamlabel.data.rows import LABEL_NAMES, TEXT_NAMES, GatheredRows, check_rows, labels_column_of, parse_json
from streamlabel.data.xc_svmlight import read_svmlight, read_xc_pair, read_xc_text
from streamlabel.errors import DataError, Hint, NotFoundError
from streamlabel.types import Dataset, TextDataset

OTHER_NAMES = ("id", "date")
ROWS_LOOKED_AT = 50
Reader: TypeAlias = Callable[..., Dataset | TextDataset]


def _read_xc(
    path: str | os.PathLike[str], *, labels_path: str | os.PathLike[str] | None = None, **options: Any
) -> Dataset:
    """One file, or the features file of the two-file form with ``labels_path``."""
    return read_xc_text(path, **options) if labels_path is None else read_xc_pair(path, labels_path, **options)


FORMATS: dict[str, Reader] = {
    "arff": read_arff,
    "csv": read_csv,
    "jsonl": read_jsonl,
    "npz": read_npz,
    "parquet": read_parquet,
    "svmlight": read_svmlight,
    "xc": _read_xc,
}
STREAMED = ("csv", "jsonl")

_FORMAT_OF_SUFFIX = {
    ".arff": "arff",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".npy": "npz",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".txt": "xc",
}
_FORMAT_OF_BEGINNING = (
    (re.compile(rb"PAR1"), "parquet"),
    (re.compile(rb"PK\x03\x04"), "npz"),
    (re.compile(rb"(?:\xef\xbb\xbf)?\s*\{"), "jsonl"),
    (re.compile(rb"(?:\s*%[^\n]*\n)*\s*@relation\b", re.IGNORECASE), "arff"),
    (re.compile(rb"[ \t]*\d+[ \t]+\d+[ \t]+\d+[ \t]*\r?\n"), "xc"),
    (re.compile(rb"(?:#[^\n]*\n)*[\d,]*[ \t]+\d+:[-+.\dEe]"), "svmlight"),
)


def load_dataset(path: Source, format: str | None = None, **options: Any) -> Dataset | TextDataset:
    """Read a data set in any of the formats.

    Parameters
    ----------
    path : a file, a folder of npz files, "-" for standard input or an open binary file (CSV and JSONL; give the
        format)
    format : one of `FORMATS`. None: by the suffix (``.txt`` is XC text), else by how the file begins
    options : passed on to the reader of that format (for XC text, ``labels_path`` names the second file of the
        two-file form)

    Returns
    -------
    `Dataset`, or `TextDataset` where rows hold texts: `streamlabel.data.text.vectorise` makes a `Dataset` of it.

    Raises
    ------
    NotFoundError
        There is no such file.
    DataError
        The format cannot be told, or the reader refuses the file.
    """
    name = format_of(path) if format is None else format
    if name not in FORMATS:
        raise DataError(f"format {name!r} is not known; use one of {', '.join(FORMATS)}")
    if _is_stream(path) and name not in STREAMED:
        raise DataError(f"{name} cannot be read from a stream; give a file name", source=source_name(path))
    return FORMATS[name](path, **options)


def format_of(path: Source) -> str:
    """The name of the format, by suffix, else by how the file begins."""
    if not isinstance(path, str | os.PathLike) or path == "-":
        raise DataError("give the format, 'jsonl' or 'csv', when reading a stream", source=source_name(path))
    place = Path(path)
    if "\0" in str(place) or not place.exists():
        raise NotFoundError(f"{str(place)!r}: there is no such file{_catalogue_hint(str(place))}")
    if place.is_dir():
        return "npz"
    suffixes = [suffix.lower() for suffix in place.suffixes if suffix not in (".gz", ".bz2")]
    return _FORMAT_OF_SUFFIX.get(suffixes[-1] if suffixes else "") or _format_of_beginning(place)


def _catalogue_hint(name: str) -> str:
    known = {alias.lower() for entry in ENTRIES for alias in entry.names}
    return f"; load_catalogue_set({name!r}) reads the data set of this name" if name.lower() in known else ""


def _is_stream(path: Source) -> bool:
    return not isinstance(path, str | os.PathLike) or path == "-"


def _format_of_beginning(path: Path) -> str:
    with open_source(path) as handle:
        beginning = handle.read(4096)
    for pattern, name in _FORMAT_OF_BEGINNING:
        if pattern.match(beginning):
            return name
    raise DataError("its format cannot be told", source=path, hint=Hint.FORMAT, hint_value=", ".join(FORMATS))


@dataclass(frozen=True)
class TextColumns:
    """Where texts and tags stand in a file.

    format : "jsonl" or "csv";   delimiter : between the cells of a CSV file
    labels : the column with the tags, None where ``label_columns`` hold 0 or 1, or where there are none
    one_label : the tags of a JSONL record are a string, not a list: one, or several if ``tag_delimiter`` is not ""
    guessed : what was not given, in words
    doubt : why the mark between tags that was given is hardly the right one, or ""
    """

    format: str
    text: str
    labels: str | None
    label_columns: tuple[str, ...] = ()
    delimiter: str = ","
    tag_delimiter: str = ";"
    one_label: bool = False
    guessed: str = ""
    doubt: str = ""

    def options(self) -> dict[str, Any]:
        """The options of `load_dataset` for this file; ids and dates, which may be of any form, are not read."""
        if self.format == "jsonl":
            fields = {"text_field": self.text, "labels_field": self.labels, "features_field": None}
            return fields | {"id_field": "", "date_field": ""}
        options: dict[str, Any] = {"text_column": self.text, "delimiter": self.delimiter}
        options |= {"id_column": "", "date_column": ""}
        if self.label_columns:
            return options | {"label_columns": list(self.label_columns)}
        return options | {"labels_column": self.labels, "delimiter_of_tags": self.tag_delimiter}


def begins_as_table(head: bytes) -> bool:
    """Whether what begins like this is CSV and not one text a line: by a header with usual names, or by its cells.

    Names stand without spaces around them, as the parts of a sentence do not.
    """
    lines = head.decode("utf-8-sig", "replace").splitlines(keepends=True)
    whole = lines if len(head) < HEAD else lines[:-1]
    try:
        rows = [row for row in csv.reader(whole[:ROWS_LOOKED_AT], delimiter=_cell_delimiter("", head)) if row]
    except csv.Error:
        return False
    header = rows[0] if rows else []
    if not header or len(set(header)) < len(header) or any(not name or name != name.strip() for name in header):
        return False
    same = all(len(row) == len(header) for row in rows)
    names = {name.lower() for name in header}
    if len(header) == 1:
        return same and not names.isdisjoint(TEXT_NAMES)
    return not names.isdisjoint((*TEXT_NAMES, *LABEL_NAMES)) or (same and len(rows) > 2)


def guess_columns(
    source: Source,
    head: bytes,
    *,
    format: str | None = None,
    text: str | None = None,
    labels: str | None = None,
    tag_delimiter: str | None = None,
    need_labels: bool = True,
) -> TextColumns | None:
    """The columns of a file that begins like this; None where its rows are not texts.

    format, text, labels, tag_delimiter : what is known; the rest is guessed from the first rows
    """
    name = source_name(source)
    if format is None:
        format = format_of(source) if isinstance(source, str) else "jsonl" if head.lstrip()[:1] == b"{" else "csv"
    if format not in ("jsonl", "csv"):
        return None
    if b"\0" in head:
        raise DataError("contains NUL bytes; the file is binary or UTF-16 (save it as UTF-8)", source=name)
    delimiter = "," if format == "jsonl" else _cell_delimiter(name, head)
    rows = _json_rows(head) if format == "jsonl" else _csv_rows(head, delimiter)
    if not rows or (format == "jsonl" and text is None and "features" in rows[0]):
        return None
    found_text = text or _text_column(rows, labels, name)
    label_columns: tuple[str, ...] = ()
    found_labels = labels
    if labels is None and need_labels:
        found_labels, label_columns = _label_columns(rows, found_text, format, name)
    given = [row[found_labels] for row in rows if found_labels and row.get(found_labels) is not None]
    one_label = format == "jsonl" and bool(given) and isinstance(given[0], str)
    cells = [str(one) for one in given] if one_label or format == "csv" else []
    found_delimiter = tag_delimiter or ("" if one_label else _tag_delimiter(cells, delimiter))
    guesses = [f"texts in {found_text!r}"] if text is None else []
    if labels is None and need_labels:
        guesses.append(
            f"tags in {found_labels!r}" if found_labels else f"one 0/1 column for each of {len(label_columns)} tags"
        )
    if tag_delimiter is None and found_delimiter and any(found_delimiter in cell for cell in cells):
        guesses.append(f"tags parted by {found_delimiter!r}")
    return TextColumns(
        format, found_text, found_labels, label_columns, delimiter, found_delimiter, one_label, ", ".join(guesses),
        "" if tag_delimiter is None and not one_label else _doubt(cells, tag_delimiter or ""),
    )  # fmt: skip


def _json_rows(head: bytes) -> list[dict[str, Any]]:
    """The first whole records; what is not JSON is left to the reader, which says where."""
    lines = head.decode("utf-8-sig", "replace").splitlines()
    rows = []
    for line in lines[: ROWS_LOOKED_AT if len(head) < HEAD else min(len(lines) - 1, ROWS_LOOKED_AT)]:
        try:
            record = parse_json(line) if line.strip() else None
        except ValueError:
            break
        if isinstance(record, dict):
            rows.append(record)
    return rows


def _csv_rows(head: bytes, delimiter: str) -> list[dict[str, Any]]:
    try:
        table = csv.DictReader(io.StringIO(head.decode("utf-8-sig", "replace")), delimiter=delimiter)
        rows = [row for row, _ in zip(table, range(ROWS_LOOKED_AT), strict=False)]
        return rows or ([dict.fromkeys(table.fieldnames, "")] if table.fieldnames else [])
    except csv.Error:
        return []


def _cell_delimiter(name: str, head: bytes) -> str:
    if name.lower().removesuffix(".gz").removesuffix(".bz2").endswith((".tsv", ".tab")):
        return "\t"
    header = head.partition(b"\n")[0].decode("utf-8", "replace")
    return max((",", "\t", ";"), key=header.count)


def _text_column(rows: Sequence[dict[str, Any]], labels: str | None, name: str) -> str:
    columns = [column for column in rows[0] if isinstance(column, str) and column != labels]
    for usual in TEXT_NAMES:
        for column in columns:
            if column.lower() == usual and isinstance(rows[0][column], str):
                return column
    lengths = {
        column: sum(len(str(row.get(column) or "")) for row in rows)
        for column in columns
        if column.lower() not in (*LABEL_NAMES, *OTHER_NAMES) and isinstance(rows[0][column], str)
    }
    if not lengths:
        raise DataError(
            f"no column looks like texts; --text NAME says which one is (there are {_names(rows[0])})", source=name
        )
    return max(lengths, key=lambda column: lengths[column])


def _label_columns(
    rows: Sequence[dict[str, Any]], text: str, format: str, name: str
) -> tuple[str | None, tuple[str, ...]]:
    """The column with the tags, or several of 0 and 1."""
    columns = [column for column in rows[0] if isinstance(column, str) and column != text]
    if (usual := labels_column_of(columns)) is not None:
        return usual, ()
    if format == "jsonl":
        lists = [column for column in columns if isinstance(rows[0][column], list)]
        if len(lists) == 1:
            return lists[0], ()
    else:
        binary = [column for column in columns if {row.get(column) for row in rows} <= {"0", "1"}]
        if binary:
            return None, tuple(binary)
    raise DataError(
        f"no column looks like tags; --labels NAME says which one is (there are {_names(rows[0])})", source=name
    )


def _tag_delimiter(cells: list[str], delimiter: str) -> str:
    """The first of the usual ones that occurs in the cells."""
    usual = [mark for mark in (";", "|", ",") if mark != delimiter or mark == ","]
    return next((mark for mark in usual if any(mark in cell for cell in cells)), usual[0])


def _doubt(cells: list[str], given: str) -> str:
    """Why the mark between tags, or "", is hardly the right one: no cell has it, and many have another usual one."""
    filled = [cell for cell in cells if cell.strip()]
    counts = {mark: sum(mark in cell for cell in filled) for mark in (";", "|", ",") if mark != given}
    usual = max(counts, key=lambda mark: counts[mark])
    if (given and any(given in cell for cell in filled)) or 3 * counts[usual] < len(filled) or counts[usual] < 2:
        return ""
    many = f"{counts[usual]} of {len(filled)} cells have {usual!r}"
    return f"no tags of the first rows are parted by {given!r}, and {many}" if given else f"{many}, each one tag"


class TextRow(NamedTuple):
    """A text, the id that its row has in the file (None without), its line, and what another column says."""

    id: str | None
    text: str
    line: int
    other: Any = None


def read_text_lines(source: Source) -> Iterator[TextRow]:
    """One text a line; blank lines are skipped."""
    return (TextRow(None, line.strip(), number) for number, line in numbered_lines(source, MAX_LINE_BYTES))


def read_text_rows(
    source: Source, columns: TextColumns, other: str | None = None, ids: str | None = None
) -> Iterator[TextRow]:
    """The texts of a JSONL or CSV file, with the values of an ``other`` column and the ids of ``ids``.

    ids : None for the column ``id``, if there is one
    """
    name, fields = source_name(source), dict[str, None]()
    records: Iterable[tuple[int, dict[str, Any]]]
    if columns.format == "jsonl":
        records = json_records(source)
    else:
        header, records = csv_records(source, columns.delimiter)
        check_rows(len(header), name)
        for column in (columns.text, other, ids):
            if column is not None and column not in header:
                raise DataError(f"no column {column!r}; the columns are {_names(header)}", source=name, line=1)
    for line, record in records:
        text, id_ = record.get(columns.text), record.get("id" if ids is None else ids)
        if not isinstance(text, str):
            raise DataError(f"no text in the field {columns.text!r}", source=name, line=line)
        fields |= dict.fromkeys(record)
        value = None if other is None else record.get(other)
        if ids is not None and id_ is None:
            raise DataError(f"no field {ids!r}; the fields are {_names(record)}", source=name, line=line)
        yield TextRow(str(id_) if isinstance(id_, str | int | float) else None, text, line, value)
    if other is not None and fields and other not in fields:
        raise DataError(f"no field {other!r}; the fields are {_names(fields)}", source=name)


def read_one_label_rows(source: Source, columns: TextColumns) -> TextDataset:
    """A JSONL file whose records have one label each, a string, or several in one; null or "" is none."""
    rows = GatheredRows(source_name(source))
    for row in read_text_rows(source, columns, columns.labels):
        with rows.at(row.line):
            if row.other is not None and not isinstance(row.other, str):
                raise ValueError(f"{columns.labels!r} is not a string here, as before")
            tags = (row.other or "").split(columns.tag_delimiter) if columns.tag_delimiter else [row.other or ""]
            rows.add(list(dict.fromkeys(tag.strip() for tag in tags if tag.strip())))
            rows.texts.append(row.text)
    return rows.text_dataset()


def _names(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in itertools.islice(names, 30))
