"""Annif document corpora: JSONL, CSV, TSV, and folders of full texts (``.txt`` beside ``.tsv`` or ``.key``, ``.json``).

The subjects of a document are all that fit; others are no. A document without subjects is unknown, as Annif skips it
in training (``empty="no"`` otherwise). A subject is called by its label where the corpus has one, else by its URI;
``names="uri"`` takes the URI always.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamlabel.data._bytes import read_bytes
from streamlabel.data.annotations.answers import AnnotatedText, Answer
from streamlabel.data.annotations.options import Options, id_of
from streamlabel.data.annotations.stream import Place
from streamlabel.data.records import decode_line
from streamlabel.data.records import parse_json as json_of
from streamlabel.exceptions import DataError

__all__ = ["parse_annif_csv", "parse_annif_json", "parse_annif_tsv", "read_annif_folder"]


def parse_annif_json(record: dict[str, Any], options: Options) -> AnnotatedText:
    """``{"document_id", "text", "metadata", "subjects": [{"uri", "label"}]}``."""
    subjects = record.get("subjects") or []
    if not isinstance(subjects, list) or not all(isinstance(subject, dict) for subject in subjects):
        raise ValueError("'subjects' is no list of objects with 'uri' or 'label'")
    metadata = record.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise ValueError("'metadata' is no object")
    text = record.get("text", "") if options.text_field is None else metadata.get(options.text_field)
    if not isinstance(text, str):
        raise ValueError(f"no text ({options.text_field or 'text'!r} is missing or no string)")
    named = tuple(_subject_name(subject, options) for subject in subjects)
    return _annotated_annif(text, named, id_of(record.get("document_id")), options)


def parse_annif_csv(record: dict[str, str], options: Options) -> AnnotatedText:
    """Columns ``text``, ``subject_uris`` (separated by spaces) and, if there, ``document_id``."""
    field = options.text_field or "text"
    if field not in record or "subject_uris" not in record:
        raise ValueError(f"the columns {field!r} and 'subject_uris' are needed; there are {list(record)[:20]}")
    uris = tuple(_uri(uri) for uri in record["subject_uris"].split())
    return _annotated_annif(record[field], uris, id_of(record.get("document_id") or None), options)


def parse_annif_tsv(line: str, options: Options) -> AnnotatedText:
    """The text, a tab, and URIs separated by spaces."""
    text, tab, uris = line.partition("\t")
    if not tab:
        raise ValueError("no tab between text and subjects")
    return _annotated_annif(text, tuple(_uri(uri) for uri in uris.split()), None, options)


def read_annif_folder(folder: Path, options: Options) -> Iterator[tuple[Place, AnnotatedText]]:
    """Every ``.txt`` and ``.json`` of the folder, in the order of their names."""
    paths = (*sorted(folder.glob("*.txt")), *sorted(folder.glob("*.json")))
    for number, path in enumerate(paths, start=1):
        place = Place(str(path), 1, number)
        try:
            if path.suffix == ".json":
                record = json_of(_content(path))
                if not isinstance(record, dict):
                    raise ValueError("is no object {...}; a document is one object")
                yield place, parse_annif_json(record, options)
            else:
                yield place, _annotated_annif(_content(path), _subjects_beside(path, options), path.stem, options)
        except DataError:
            raise
        except ValueError as error:
            raise place.error(str(error)) from None


def _subjects_beside(path: Path, options: Options) -> tuple[str, ...]:
    """From ``.tsv`` (URI, tab, label a line) or ``.key`` (a label a line)."""
    table, keys = path.with_suffix(".tsv"), path.with_suffix(".key")
    beside = table if table.exists() else keys
    if not beside.exists():
        return ()
    lines = [line.strip() for line in _content(beside).splitlines() if line.strip()]
    if beside is keys:
        return tuple(lines)
    pairs = [line.partition("\t") for line in lines]
    return tuple(
        _subject_name({"uri": _uri(uri.strip())} | ({"label": label.strip()} if label.strip() else {}), options)
        for uri, _, label in pairs
    )


def _content(path: Path) -> str:
    return decode_line(read_bytes(path, what="the document").removeprefix(b"\xef\xbb\xbf"), str(path), 1)


def _subject_name(subject: dict[str, Any], options: Options) -> str:
    wanted = ("uri", "label") if options.by_uri else ("label", "uri")
    for part in wanted:
        if isinstance(subject.get(part), str) and subject[part]:
            return _uri(subject[part]) if part == "uri" else str(subject[part])
    raise ValueError("a subject has neither 'label' nor 'uri'")


def _uri(text: str) -> str:
    return text[1:-1] if text.startswith("<") and text.endswith(">") else text


def _annotated_annif(text: str, subjects: tuple[str, ...], id_: str | None, options: Options) -> AnnotatedText:
    answered = bool(subjects) or options.empty_is_no
    return AnnotatedText(text, (Answer(subjects),) if answered else (), key=id_, id=id_)
