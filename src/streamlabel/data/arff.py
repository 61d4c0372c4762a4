"""Mulan and Meka sets: ARFF files, whose labels are named by an XML file (Mulan) or counted in the header (Meka).

Rows may be dense (``1,0,0.5``) or sparse (``{0 1,5 0.5}``). Nominal attributes whose values are numbers are those
numbers; with two values of which one is a word, the first declared is 0 and the second 1. Missing values (``?``),
strings and dates are errors. Labels must be 0 or 1, and come in the order of the file's attributes.

There are two ways to the rows. `RowReader.fast_block` reads the plain form (numbers, no quotes, no spare spaces) with
arrays and gives up, returning None, on anything else; `slow_block` reads one line after the other, knows the whole
form, and is the one that says what is wrong where.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from streamlabel.data.datasets import (
    PathLike,
    RowFormat,
    Rows,
    RowsBuilder,
    named_dataset,
    number_texts,
    row_slices,
    sort_rows,
)
from streamlabel.data.files import check_shape, line_blocks, read_bytes, replacing, show, utf8
from streamlabel.data.tokens import NUMBER, Tokens, byte_table
from streamlabel.errors import DataError, Hint
from streamlabel.types import Dataset

WORD = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^ \t,'"]+"""
TOKEN = re.compile(rf"[ \t]*(?:(,)|({WORD}))[ \t]*", re.DOTALL)
ATTRIBUTE = re.compile(
    r"""@attribute[ \t]+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^ \t'"][^ \t]*)[ \t]*(.*)""", re.IGNORECASE | re.DOTALL
)
MEKA_OPTION = re.compile(r"(?:^|[ \t:])-[cC][ \t]+(-?[0-9]{1,9})(?![0-9])")
NUMERIC_TYPES = ("numeric", "real", "integer")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True)
class Attribute:
    """One column. ``codes`` maps the declared values of a nominal attribute to numbers; None for a numeric one.

    Declared values that are all numbers stand for themselves (and are compared as numbers); two values of which one is
    a word count as 0 and 1, in the order of their declaration.
    """

    name: str
    codes: dict[str, float] | None = None
    in_words: bool = False


@dataclass(frozen=True)
class Header:
    """Everything before the rows. ``n_meka_labels`` is Meka's ``-C``: positive at the start, negative at the end."""

    attributes: tuple[Attribute, ...]
    n_meka_labels: int | None


def read_header(path: PathLike) -> tuple[Header, Iterator[tuple[int, bytes]]]:
    """The header, and the blocks of lines that follow ``@data``."""
    blocks = line_blocks(path)
    attributes: list[Attribute] = []
    relation = ""
    line = 0
    for first_line, block in blocks:
        check_shape(len(attributes), len(attributes), source=path, line=first_line)
        start = 0
        for line in range(first_line, first_line + block.count(b"\n")):
            end = block.index(b"\n", start)
            text = _decoded(block[start:end], path, line).strip(" \t")
            start = end + 1
            keyword = text[:10].lower()
            if keyword.startswith("@attribute"):
                attributes.append(_attribute(text, path, line))
            elif keyword.startswith("@relation"):
                relation = text[9:].strip(" \t")
            elif keyword.startswith("@data"):
                if not attributes:
                    raise DataError("@data without any @attribute before it", source=path, line=line)
                option = MEKA_OPTION.search(relation.strip("'\""))
                header = Header(tuple(attributes), None if option is None else int(option[1]))
                return header, chain([(line + 1, block[start:])] if block[start:] else [], blocks)
            elif text and not text.startswith("%"):
                problem = f"{show(text)} in the header; expected @relation, @attribute, @data or a % comment"
                raise DataError(problem, source=path, line=line)
    raise DataError("the file ends without @data; it may be cut short", source=path, line=max(line, 1))


def label_columns(header: Header, xml: PathLike | None, n_labels: int | None, path: PathLike) -> list[int]:
    """Which attributes are labels, in the order of the file."""
    n_attributes = len(header.attributes)
    if xml is not None:
        if n_labels is not None:
            raise DataError("xml and n_labels both say which attributes are labels; give one", source=path)
        return _columns_by_name(header, read_label_xml(xml), xml, path)
    said = n_labels if n_labels is not None else header.n_meka_labels
    if said is None:
        raise DataError("nothing says which attributes are labels", source=path, hint=Hint.LABELS_OF_ARFF)
    if not 0 < abs(said) <= n_attributes:
        problem = f"{said} labels of {n_attributes} attributes; expected 1 to {n_attributes} (negative: the last ones)"
        raise DataError(problem, source=path)
    return list(range(said) if said > 0 else range(n_attributes + said, n_attributes))


def read_label_xml(path: PathLike) -> tuple[str, ...]:
    """The label names of a Mulan XML file, hierarchies flattened. Declarations of types and entities are refused."""
    content = read_bytes(path, what="the file")
    names: list[str] = []
    parser = expat.ParserCreate(namespace_separator=" ")

    def refuse(*_: object) -> NoReturn:
        problem = "a document type or entity declaration; label files need none, remove it"
        raise DataError(problem, source=path, line=parser.CurrentLineNumber)

    def start(tag: str, given: dict[str, str]) -> None:
        element = tag.rpartition(" ")[2]
        if element == "label" and "name" in given:
            names.append(given["name"])
        elif element != "labels":
            problem = f"the element {show(element)}; expected <labels> with <label name=...> in it"
            raise DataError(problem, source=path, line=parser.CurrentLineNumber)

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    try:
        parser.Parse(content, True)
    except DataError:
        raise
    except expat.ExpatError as error:
        problem = f"not well-formed XML ({expat.ErrorString(error.code)}); correct it or export it again"
        raise DataError(problem, source=path, line=error.lineno) from error
    except (ValueError, LookupError) as error:
        raise DataError(f"not readable as XML: {error}; save it as UTF-8", source=path) from error
    if not names:
        raise DataError("no label in it; expected <label name=...> elements", source=path)
    return tuple(names)


def split_fields(text: str) -> list[list[str]]:
    """The fields between commas, each as its words, quotes and escapes undone. ValueError for an open quote."""
    fields: list[list[str]] = [[]]
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise ValueError("a quote is not closed")
        if match[1]:
            fields.append([])
        else:
            fields[-1].append(_unquoted(match[2]))
        position = match.end()
    return fields


def quoted(name: str) -> str:
    r"""The name in single quotes; backslash, quote and line ends escaped. Inverse of what the reader does."""
    for plain, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        name = name.replace(plain, escaped)
    return f"'{name}'"


def _unquoted(word: str) -> str:
    if word[0] not in "'\"":
        return word
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), word[1:-1], flags=re.DOTALL)


def _decoded(line_bytes: bytes, path: PathLike, line: int) -> str:
    try:
        return line_bytes.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8; save the file as UTF-8", source=path, line=line) from error


def _attribute(text: str, path: PathLike, line: int) -> Attribute:
    match = ATTRIBUTE.fullmatch(text)
    if match is None:
        raise DataError(f"{show(text)}; expected '@attribute name type'", source=path, line=line)
    name, kind = _unquoted(match[1]), match[2]
    if kind.lower() in NUMERIC_TYPES:
        return Attribute(name)
    try:
        return Attribute(name, *_codes(kind))
    except ValueError as error:
        raise DataError(f"attribute {show(name)}: {error}", source=path, line=line) from error


@lru_cache(maxsize=256)
def _codes(kind: str) -> tuple[dict[str, float], bool]:
    """The declared values with their numbers, and whether they are words. Most attributes declare the same."""
    if not (kind.startswith("{") and kind.endswith("}")):
        raise ValueError(f"the type {show(kind)}; expected numeric or {{value,value}}")
    fields = split_fields(kind[1:-1])
    if any(len(field) != 1 for field in fields):
        raise ValueError(f"expected values between commas in {show(kind)}, quoted if they have spaces")
    values = [field[0] for field in fields]
    if len(set(values)) != len(values):
        raise ValueError(f"a value is declared twice in {show(kind)}")
    if all(NUMBER.fullmatch(value.encode("utf-8")) for value in values):
        return {value: float(value) for value in values}, False
    if len(values) > 2:
        raise ValueError(f"{len(values)} values in words; make one 0/1 attribute of each value")
    return {value: float(position) for position, value in enumerate(values)}, True


def _columns_by_name(header: Header, names: tuple[str, ...], xml: PathLike, path: PathLike) -> list[int]:
    if len(set(names)) != len(names):
        twice = next(name for position, name in enumerate(names) if name in names[:position])
        raise DataError(f"label {show(twice)} occurs twice; names must differ", source=xml)
    wanted = set(names)
    columns = [j for j, attribute in enumerate(header.attributes) if attribute.name in wanted]
    found = [header.attributes[j].name for j in columns]
    if len(columns) > len(names):
        twice = next(name for position, name in enumerate(found) if name in found[:position])
        raise DataError(
            f"two attributes are called {show(twice)}, which {os.fspath(xml)} names as a label", source=path
        )
    if len(columns) < len(names):
        missing = next(name for name in names if name not in set(found))
        problem = f"label {show(missing)} is no attribute of {os.fspath(path)}; the two files must belong together"
        raise DataError(problem, source=xml)
    return columns


LINE_END, SPACE, COMMA, OPEN, CLOSE = range(1, 6)
SPARSE = byte_table({b"\n": LINE_END, b" ": SPACE, b",": COMMA, b"{": OPEN, b"}": CLOSE})
DENSE = byte_table({b"\n": LINE_END, b",": COMMA})
NOTHING, INDEX, VALUE = 1, 2, 3
MANY_DOMAINS = 16


def _roles() -> NDArray[np.uint8]:
    """roles[empty, before, after] of a token in a sparse row; 0 where the plain form does not allow it."""
    roles = np.zeros((2, 6, 6), dtype=np.uint8)
    for before, after in ((LINE_END, OPEN), (OPEN, CLOSE), (CLOSE, LINE_END), (LINE_END, LINE_END)):
        roles[1, before, after] = NOTHING
    roles[0, [OPEN, COMMA], SPACE] = INDEX
    roles[0, SPACE, [COMMA, CLOSE]] = VALUE
    return roles


ROLES = _roles()


@dataclass(frozen=True)
class Cells:
    """Stored cells of some rows: ``counts`` of each row, and the line each row stands on."""

    columns: NDArray[np.intp]
    values: NDArray[np.float64]
    counts: NDArray[np.intp]
    lines: NDArray[np.intp]


class RowReader:
    """Reads the rows of one file, whose header is known."""

    def __init__(self, header: Header, source: str | os.PathLike[str]) -> None:
        self._attributes = header.attributes
        self._source = source
        self._in_numbers = not any(attribute.in_words for attribute in header.attributes)
        domains: dict[frozenset[float], int] = {}
        self._domain_of = np.full(len(header.attributes), -1)
        for j, attribute in enumerate(header.attributes):
            if attribute.codes is not None:
                self._domain_of[j] = domains.setdefault(frozenset(attribute.codes.values()), len(domains))
        self._domains = [np.array(sorted(domain)) for domain in domains]
        # A value left out of a sparse row is the first declared one; the matrix can only take it as 0.
        self._not_zero = next(
            (a.name for a in header.attributes if a.codes is not None and next(iter(a.codes.values())) != 0), None
        )

    def read(self, block: bytes, first_line: int) -> Cells:
        """The rows of a block of lines; blank lines and ``%`` comments are not rows."""
        cells = self.fast_block(block, first_line)
        return self.slow_block(block, first_line) if cells is None else cells

    def fast_block(self, block: bytes, first_line: int) -> Cells | None:
        if not self._in_numbers or len(self._domains) > MANY_DOMAINS:
            return None
        if block.lstrip(b"\n").startswith(b"{"):
            return None if self._not_zero is not None else self._fast_sparse(block, first_line)
        return self._fast_dense(block, first_line)

    def _fast_sparse(self, block: bytes, first_line: int) -> Cells | None:
        tokens = Tokens(block, SPARSE)
        after = SPARSE[tokens.after]
        roles = ROLES[(tokens.sizes == 0).astype(np.uint8), SPARSE[tokens.before], after]
        if not roles.all():
            return None
        index_tokens = np.flatnonzero(roles == INDEX)
        columns, right = tokens.integers(index_tokens)
        values, finite = tokens.floats(index_tokens + 1)
        if not (right.all() and finite.all() and (columns < len(self._attributes)).all()):
            return None
        if not self._declared(columns, values):
            return None
        row_ends = np.flatnonzero(after == CLOSE)
        counts = np.diff(np.searchsorted(index_tokens, row_ends, side="right"), prepend=0)
        lines = first_line + np.searchsorted(np.flatnonzero(after == LINE_END), row_ends)
        return Cells(columns, values, counts, lines)

    def _fast_dense(self, block: bytes, first_line: int) -> Cells | None:
        tokens = Tokens(block, DENSE)
        filled = np.flatnonzero(tokens.sizes)
        ends = np.flatnonzero(tokens.after == ord("\n"))
        per_line = np.diff(np.searchsorted(filled, ends, side="right"), prepend=0)
        n_columns = len(self._attributes)
        # Empty tokens may only be empty lines: so many lines without a value as tokens without a byte.
        if not np.isin(per_line, (0, n_columns)).all() or len(tokens.sizes) - len(filled) != (per_line == 0).sum():
            return None
        flat, finite = tokens.floats(filled)
        columns = np.tile(np.arange(n_columns), len(filled) // n_columns)
        if not finite.all() or not self._declared(columns, flat):
            return None
        stored = np.flatnonzero(flat)
        counts = np.count_nonzero(flat.reshape(-1, n_columns), axis=1)
        return Cells(columns[stored], flat[stored], counts, first_line + np.flatnonzero(per_line))

    def _declared(self, columns: NDArray[np.intp], values: NDArray[np.float64]) -> bool:
        """Whether every value of a nominal attribute is one of those declared."""
        domains = self._domain_of[columns]
        return all(
            bool(np.isin(values[domains == number], domain).all()) for number, domain in enumerate(self._domains)
        )

    def slow_block(self, block: bytes, first_line: int) -> Cells:
        cells: list[tuple[int, float]] = []
        counts: list[int] = []
        lines: list[int] = []
        for line, row in enumerate(block.split(b"\n")[:-1], start=first_line):
            try:
                text = row.decode("utf-8").strip(" \t")
                if not text or text.startswith("%"):
                    continue
                found = self._sparse_row(text) if text.startswith("{") else self._dense_row(text)
            except UnicodeDecodeError as error:
                raise DataError("not UTF-8; save the file as UTF-8", source=self._source, line=line) from error
            except ValueError as error:
                raise DataError(str(error), source=self._source, line=line) from error
            cells += found
            counts.append(len(found))
            lines.append(line)
        columns = np.array([column for column, _ in cells], dtype=np.intp)
        values = np.array([value for _, value in cells], dtype=np.float64)
        return Cells(columns, values, np.array(counts, dtype=np.intp), np.array(lines, dtype=np.intp))

    def _dense_row(self, text: str) -> list[tuple[int, float]]:
        fields = split_fields(text)
        if len(fields) != len(self._attributes):
            raise ValueError(f"{len(fields)} values for {len(self._attributes)} attributes; give one a comma")
        numbers = [self._number(j, field) for j, field in enumerate(fields)]
        return [(j, number) for j, number in enumerate(numbers) if number != 0]

    def _sparse_row(self, text: str) -> list[tuple[int, float]]:
        if self._not_zero is not None:
            raise ValueError(
                f"a sparse row, and the first declared value of attribute {show(self._not_zero)} is not 0, so a value "
                "left out would not be 0; declare 0 first, or write dense rows"
            )
        if not text.endswith("}"):
            raise ValueError(f"a sparse row that ends in {show(text[-20:])}; expected '{{index value,index value}}'")
        fields = split_fields(text[1:-1])
        if fields == [[]]:
            return []
        cells = []
        for field in fields:
            if not field or not (field[0].isascii() and field[0].isdigit()):
                raise ValueError(f"{show(' '.join(field))} in a sparse row; expected 'index value'")
            if len(field[0]) > 15 or int(field[0]) >= len(self._attributes):
                raise ValueError(
                    f"attribute index {show(field[0])[1:-1]}, but there are {len(self._attributes)} attributes, "
                    f"so indices run from 0 to {len(self._attributes) - 1}"
                )
            column = int(field[0])
            cells.append((column, self._number(column, field[1:])))
        return cells

    def _number(self, column: int, words: list[str]) -> float:
        attribute = self._attributes[column]
        if len(words) != 1:
            raise ValueError(f"{show(' '.join(words))} for attribute {show(attribute.name)}; expected one value")
        word = words[0]
        if word == "?":
            raise ValueError(f"attribute {show(attribute.name)} is missing (?); remove or impute such rows")
        if attribute.in_words and attribute.codes is not None:
            if word in attribute.codes:
                return attribute.codes[word]
        else:
            number = float(word) if NUMBER.fullmatch(word.encode("utf-8")) else float("nan")
            if np.isfinite(number) and (attribute.codes is None or number in attribute.codes.values()):
                return number
        wanted = "a finite decimal number" if attribute.codes is None else "one of " + show(",".join(attribute.codes))
        raise ValueError(f"value {show(word)} for attribute {show(attribute.name)}; expected {wanted}")


NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_arff(
    path: PathLike,
    xml: PathLike | None = None,
    n_labels: int | None = None,
    *,
    sort: bool = False,
    dtype: Any = np.float64,
) -> Dataset:
    """Read an ARFF file with its labels.

    Parameters
    ----------
    path : the ARFF file, ``.gz`` and ``.bz2`` too
    xml : Mulan's file with the names of the labels
    n_labels : how many attributes are labels: the first ``n``, or for ``-n`` the last ``n``, as in Meka. Without
        ``xml`` and ``n_labels`` the header must say it (``@relation 'name: -C n'``).
    sort : accept the indices of a sparse row in any order; without it, disorder is an error
    dtype : float64 or float32, the type of X

    Raises
    ------
    DataError : with the line, for anything that is not of this form
    NotFoundError : no such file
    """
    header, blocks = read_header(path)
    columns = label_columns(header, xml, n_labels, path)
    is_label = np.zeros(len(header.attributes), dtype=bool)
    is_label[columns] = True
    reader = RowReader(header, path)
    form = RowFormat(path, int((~is_label).sum()), len(columns), sort=sort, dtype=dtype)
    builder = RowsBuilder(form)
    for line, block in blocks:
        builder.add(_split(reader.read(block, line), is_label, header, form))
    X, Y = builder.matrices()
    names = [attribute.name for attribute in header.attributes]
    label_names = [name for name, label in zip(names, is_label, strict=True) if label]
    feature_names = [name for name, label in zip(names, is_label, strict=True) if not label]
    return named_dataset(X, Y, label_names, feature_names, path)


def write_arff(dataset: Dataset, path: PathLike, xml: PathLike | None = None, *, relation: str = "streamlabel") -> None:
    """Write a sparse ARFF file, labels first, with Meka's ``-C n`` in its header, and Mulan's XML file if named.

    Features without names are called ``f0``, ``f1``, ...; row ids and dates have no place in the form. Reading the file
    back with the dtype of X gives exactly the same matrices and names.
    """
    if dataset.n_labels == 0:
        raise DataError("a set without labels; ARFF files of this kind need at least one", source=path)
    names = dataset.feature_names or tuple(f"f{j}" for j in range(dataset.n_features))
    features = set(names)
    for name in () if xml is None else dataset.label_names:
        if name in features:
            problem = f"{show(name)} is a label and a feature; Mulan finds labels by name, so rename one"
            raise DataError(problem, source=xml)
        if NOT_XML.search(name):
            raise DataError(f"label {show(name)} has a character that XML does not allow; remove it", source=xml)
    head = [f"@relation {quoted(f'{relation}: -C {dataset.n_labels}')}", ""]
    head += [f"@attribute {quoted(name)} {{0,1}}" for name in dataset.label_names]
    head += [f"@attribute {quoted(name)} numeric" for name in names]
    with replacing(path) as file:
        file.write(utf8("\n".join([*head, "", "@data", ""]), path))
        for lines in _row_lines(dataset):
            file.write(lines.encode("ascii"))
    if xml is not None:
        labels = "".join(f"<label name={quoteattr(name)}></label>\n" for name in dataset.label_names)
        text = f'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n{labels}'
        with replacing(xml) as file:
            file.write(utf8(f"{text}</labels>\n", xml))


def _split(cells: Cells, is_label: NDArray[np.bool_], header: Header, form: RowFormat) -> Rows:
    """The cells of labels and of features apart, each with its own column numbers."""
    columns, values = sort_rows(
        cells.columns, cells.values, cells.counts, cells.lines, form.source, "attribute", sort=form.sort
    )
    of_label = is_label[columns]
    wrong = np.flatnonzero(of_label & (values != 0) & (values != 1))
    if wrong.size:
        name = header.attributes[columns[wrong[0]]].name
        problem = f"label {show(name)} has the value {values[wrong[0]]:g}; labels are 0 or 1 (is it a label?)"
        raise DataError(problem, source=form.source, line=_line_of(int(wrong[0]), cells))
    positions = np.where(is_label, np.cumsum(is_label), np.cumsum(~is_label)) - 1
    with np.errstate(over="ignore"):
        feature_values = values[~of_label].astype(form.dtype)
    if not np.isfinite(feature_values).all():
        cell = int(np.flatnonzero(~of_label)[np.argmin(np.isfinite(feature_values))])
        problem = f"value {values[cell]:g} is too large for {np.dtype(form.dtype)}; read it as float64"
        raise DataError(problem, source=form.source, line=_line_of(cell, cells))
    positive = of_label & (values == 1)
    return Rows(
        positions[columns[positive]],
        _row_counts(positive, cells.counts),
        positions[columns[~of_label]],
        _row_counts(~of_label, cells.counts),
        feature_values,
    )


def _row_counts(chosen: NDArray[np.bool_], counts: NDArray[Any]) -> NDArray[np.intp]:
    """How many of the chosen entries each row has; ``chosen`` has one entry for each that ``counts`` counts."""
    totals = np.concatenate([[0], np.cumsum(chosen)])
    return np.diff(totals[np.concatenate([[0], np.cumsum(counts)])])


def _line_of(cell: int, cells: Cells) -> int:
    return int(cells.lines[np.searchsorted(np.cumsum(cells.counts), cell, side="right")])


def _row_lines(dataset: Dataset) -> Iterator[str]:
    for x_part, y_part, x_ends, y_ends in row_slices(dataset.X, dataset.Y):
        labels = [f"{j} 1" for j in dataset.Y.indices[y_part].tolist()]
        indices = (dataset.X.indices[x_part].astype(np.int64) + dataset.n_labels).tolist()
        texts = number_texts(dataset.X.data[x_part])
        cells = [f"{index} {text}" for index, text in zip(indices, texts, strict=True)]
        rows = (labels[y_ends[i] : y_ends[i + 1]] + cells[x_ends[i] : x_ends[i + 1]] for i in range(len(x_ends) - 1))
        yield "".join(f"{{{','.join(row)}}}\n" for row in rows)
