"""The upper half of an ARFF file: its relation, its attributes, and which of them are labels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn
from xml.parsers import expat

from streamlabel.data.files import check_shape, line_blocks, read_bytes, show
from streamlabel.data.tokens import NUMBER
from streamlabel.errors import DataError, Hint

PathLike = str | os.PathLike[str]
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
                return _header(attributes, relation, path, line), _continued(line + 1, block[start:], blocks)
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


def _header(attributes: list[Attribute], relation: str, path: PathLike, line: int) -> Header:
    if not attributes:
        raise DataError("@data without any @attribute before it", source=path, line=line)
    option = MEKA_OPTION.search(relation.strip("'\""))
    return Header(tuple(attributes), None if option is None else int(option[1]))


def _continued(line: int, rest: bytes, blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    if rest:
        yield line, rest
    yield from blocks


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
