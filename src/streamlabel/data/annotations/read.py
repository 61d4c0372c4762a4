"""One door for the exports of annotation tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from streamlabel.data.annotations.answers import AnnotatedText, Annotations, Gathering, Options, parse_births
from streamlabel.data.annotations.stream import Place, csv_records, fast_text_records, json_records, text_lines
from streamlabel.data.annotations.tools import (
    parse_annif_csv,
    parse_annif_json,
    parse_annif_tsv,
    parse_argilla,
    parse_doccano_csv,
    parse_doccano_fast_text,
    parse_doccano_json,
    parse_label_studio_csv,
    parse_label_studio_flat,
    parse_label_studio_task,
    parse_prodigy,
    read_annif_folder,
)
from streamlabel.data.files import check_integer
from streamlabel.data.rows import MAX_LINE_BYTES, Source, open_source, source_name
from streamlabel.errors import DataError, Hint

Parser: TypeAlias = Callable[[Any, Options], AnnotatedText]
Chooser: TypeAlias = Callable[[Any, str], Parser]  # (a record, the format asked for) -> what reads such records

TOOLS = ("annif", "argilla", "doccano", "label_studio", "prodigy")


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
    path : a file, a folder (Annif), "-" or an open binary file (JSON; give the format); or several of them, one a
        person, whose records are joined by their ids
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
    for file, source in enumerate(sources):
        for place, record in _records(source, format, options, limit):
            gathering.add(record, place, file)
    return gathering.annotations(", ".join(source_name(source) for source in sources[:3]))


def _records(path: Source, format: str, options: Options, limit: int) -> Iterator[tuple[Place, AnnotatedText]]:
    if isinstance(path, str | os.PathLike) and path != "-" and "\0" not in os.fspath(path) and Path(path).is_dir():
        if format not in ("auto", "annif"):
            raise DataError("is a folder; name the file in it", source=path)
        yield from read_annif_folder(Path(path), options)
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
        return csv_records(path, ",", limit), _parser_of_columns
    if suffix == ".tsv" and format != "annif" and b"annotation_id" in _first_line(path):
        return csv_records(path, "\t", limit), _parser_of_columns
    if suffix == ".tsv":
        return text_lines(path, limit), lambda line, format: _only("annif", format, parse_annif_tsv)
    if suffix == ".txt":
        return fast_text_records(path, limit), lambda line, format: _only("doccano", format, parse_doccano_fast_text)
    if format == "auto" and not isinstance(path, str | os.PathLike):
        raise DataError(f"give the format of a stream, one of {', '.join(TOOLS)}", source=source_name(path))
    return json_records(path, limit), _parser_of_object


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
        return parse_annif_csv
    if format == "label_studio" or (format == "auto" and "annotation_id" in record):
        return parse_label_studio_csv
    if format == "doccano" or (format == "auto" and "label" in record):
        return parse_doccano_csv
    raise _no_tool(f"the columns {list(record)[:20]} are of no tool that writes CSV")


def _parser_of_object(record: dict[str, Any], format: str) -> Parser:
    if format == "auto":
        format = _tool_of(record)
    if format == "label_studio":
        return parse_label_studio_task if "data" in record else parse_label_studio_flat
    return {"annif": parse_annif_json, "argilla": parse_argilla, "doccano": parse_doccano_json}.get(
        format, parse_prodigy
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
