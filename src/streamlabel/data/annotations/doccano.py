"""doccano: ``{"id", "text", "label": [...]}`` (JSONL, JSON), CSV with ``label`` joined by ``#``, fastText lines.

An export says nothing about which labels were offered, nor whether a text without labels was looked at: labels that
were not given to an annotated text are no, a text without labels is unknown (``empty="no"`` for projects where every
text in the file was confirmed). Projects that are not shared give one file a person: read them together.
"""

from __future__ import annotations

from typing import Any

from streamlabel.data.annotations.answers import AnnotatedText, Answer
from streamlabel.data.annotations.options import Options, id_of, name_list, pick_text

__all__ = ["FAST_TEXT", "parse_doccano_csv", "parse_doccano_fast_text", "parse_doccano_json"]

FAST_TEXT = "__label__"
_LABEL_FIELDS = ("label", "labels", "cats")
_OTHER_TASKS = ("entities", "relations", "bbox", "segmentation")


def parse_doccano_json(record: dict[str, Any], options: Options) -> AnnotatedText:
    for field in _OTHER_TASKS:
        if record.get(field):
            raise ValueError(f"has {field!r}: spans, boxes and relations are not text classification")
    fields = [name for name in (options.question, *_LABEL_FIELDS) if name is not None and name in record]
    if not fields:
        raise ValueError("no field 'label'; is this an export of a text classification project?")
    return _annotated_doccano(record, name_list(record[fields[0]], fields[0]), options)


def parse_doccano_csv(record: dict[str, str], options: Options) -> AnnotatedText:
    field = options.question or "label"
    if field not in record:
        raise ValueError(f"no column {field!r}; the columns are {', '.join(map(repr, list(record)[:20]))}")
    cell = record[field]
    return _annotated_doccano(record, tuple(cell.split("#")) if cell else (), options)


def parse_doccano_fast_text(line: str, options: Options) -> AnnotatedText:
    labels, rest = [], line.lstrip()
    while rest.startswith(FAST_TEXT):
        label, _, rest = rest.partition(" ")
        labels.append(label.removeprefix(FAST_TEXT))
        rest = rest.lstrip()
    text = rest.partition(" __comment__")[0].rstrip()
    return _annotated_doccano({"text": text}, tuple(labels), Options(empty_is_no=options.empty_is_no))


def _annotated_doccano(record: dict[str, Any], labels: tuple[str, ...], options: Options) -> AnnotatedText:
    answered = bool(labels) or options.empty_is_no or record.get("annotation_approver") is not None
    id_ = id_of(record.get("id"))
    return AnnotatedText(pick_text(record, options.text_field), (Answer(labels),) if answered else (), key=id_, id=id_)
