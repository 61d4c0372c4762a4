"""Label Studio: JSON (tasks with ``annotations``), JSON-MIN and CSV (one row an annotation), ``<Choices>`` and
``<Taxonomy>``.

A submitted annotation answers every label of the control, also where nothing was chosen; a cancelled one (skipped)
says nothing, nor do drafts and predictions. An annotation that is marked as ground truth counts alone. A taxonomy item
is called by its path, ``a / b``. With several controls in a project, ``question`` names the one to read.
"""

from __future__ import annotations

import json
from typing import Any

from streamlabel.data.annotations.answers import AnnotatedText, Answer, parse_time
from streamlabel.data.annotations.options import Options, id_of, name_list, pick_text

__all__ = ["FLAT_FIELDS", "parse_label_studio_csv", "parse_label_studio_flat", "parse_label_studio_task"]

FLAT_FIELDS = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")
_PLACES = {"start", "end", "startOffset", "endOffset", "x", "y", "points", "ranges"}


def parse_label_studio_task(record: dict[str, Any], options: Options) -> AnnotatedText:
    """A task of the JSON export."""
    data, annotations = record.get("data"), record.get("annotations", record.get("completions"))
    if not isinstance(data, dict) or not isinstance(annotations, list):
        raise ValueError("no 'data' and 'annotations'; export as JSON, JSON-MIN or CSV")
    answers = [answer for entry in annotations if (answer := _answer(entry, options)) is not None]
    id_ = id_of(record.get("id"))
    return AnnotatedText(pick_text(data, options.text_field), tuple(answers), key=id_, id=id_)


def parse_label_studio_flat(record: dict[str, Any], options: Options) -> AnnotatedText:
    """A row of JSON-MIN: the fields of the task, and each control by its name."""
    fields = {name: value for name, value in record.items() if name not in FLAT_FIELDS}
    question = options.question
    text_field = options.text_field or ("text" if "text" in fields else None)
    if question is None:
        controls = [name for name in fields if name != text_field]
        if text_field is None or len(controls) > 1:
            raise ValueError(f"which of {controls[:20]} was asked? Pass question= (and text_field=)")
        question = controls[0] if controls else None
    text = pick_text({name: value for name, value in fields.items() if name != question}, text_field)
    id_ = id_of(record.get("id"))
    if record.get("annotation_id") in (None, ""):
        return AnnotatedText(text, key=id_, id=id_)
    labels = _flat_labels(record.get(question) if question is not None else None)
    by = id_of(record.get("annotator"))
    return AnnotatedText(text, (Answer(labels, by=by, when=_time(record, options)),), key=id_, id=id_)


def parse_label_studio_csv(record: dict[str, str], options: Options) -> AnnotatedText:
    """A row of the CSV or TSV export: several choices are JSON in a cell."""
    return parse_label_studio_flat({name: _cell(name, cell) for name, cell in record.items()}, options)


def _answer(entry: Any, options: Options) -> Answer | None:
    if not isinstance(entry, dict):
        raise ValueError("an annotation is no object {...}")
    if entry.get("was_cancelled") or entry.get("skipped"):
        return None
    results = entry.get("result") or []
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise ValueError("'result' of an annotation is no list of objects")
    chosen = [result for result in results if options.question in (None, result.get("from_name"))]
    if results and not chosen:
        return None
    controls = {str(result.get("from_name")) for result in chosen}
    if len(controls) > 1:
        raise ValueError(f"answers {sorted(controls)[:20]}; pass question= to say which to read")
    labels = [label for result in chosen for label in _result_labels(result)]
    by = entry.get("completed_by")
    person = id_of(by.get("email", by.get("id")) if isinstance(by, dict) else by)
    truth = entry.get("ground_truth") is True
    return Answer(tuple(labels), by=person, when=_time(entry, options), is_truth=truth)


def _result_labels(result: dict[str, Any]) -> tuple[str, ...]:
    value, kind = result.get("value"), result.get("type")
    if kind not in ("choices", "taxonomy") or not isinstance(value, dict):
        raise ValueError(f"a result of type {str(kind)[:40]!r}; only choices and taxonomy are labels of a text")
    if _PLACES & value.keys():
        raise ValueError("a choice for a part of the text (perRegion); only labels of the whole text can be read")
    return _paths(value.get("taxonomy")) if kind == "taxonomy" else name_list(value.get("choices"), "choices")


def _flat_labels(value: Any) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return tuple(label for item in value for label in _flat_labels(item))
    if isinstance(value, dict):
        kinds = value.keys() & {"choices", "taxonomy"}
        if len(value) != 1 or not kinds:
            raise ValueError(f"holds {sorted(value)[:10]}; only choices and taxonomy are labels of a text")
        return _paths(value["taxonomy"]) if "taxonomy" in kinds else name_list(value["choices"], "choices")
    return name_list(value, "choices")


def _paths(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(path, list) for path in value):
        raise ValueError("a taxonomy answer is a list of paths")
    return tuple(" / ".join(name_list(path, "taxonomy")) for path in value)


def _time(entry: dict[str, Any], options: Options) -> Any:
    return parse_time(entry.get("updated_at") or entry.get("created_at")) if options.with_times else None


def _cell(name: str, cell: str) -> Any:
    if name in FLAT_FIELDS or not cell.startswith(("{", "[")):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell
