"""Records of annotation tools (doccano, Prodigy, Argilla, Annif, Label Studio) to texts and their answers.

A submitted annotation answers every label of the control, also where nothing was chosen; a cancelled one (skipped)
says nothing, nor do drafts and predictions. An annotation that is marked as ground truth counts alone. A taxonomy item
is called by its path, ``a / b``. With several controls in a project, ``question`` names the one to read.

doccano: ``{"id", "text", "label": [...]}`` (JSONL, JSON), CSV with ``label`` joined by ``#``, fastText lines.

An export says nothing about which labels were offered, nor whether a text without labels was looked at: labels that
were not given to an annotated text are no, a text without labels is unknown (``empty="no"`` for projects where every
text in the file was confirmed). Projects that are not shared give one file a person: read them together.

Prodigy (``db-out``): ``{"text", "options": [{"id", "text"}], "accept": [id], "answer"}`` or ``{"text", "label",
"answer"}``.

With options, "accept" answers each of them: yes for those in ``accept``, no for the others; labels that were not among
the options were not asked. "reject" turns the task down and "ignore" skips it: both say nothing. With a single
``label`` the question was whether it fits: "accept" is yes, "reject" is no. A label is called by the id of its option.

Argilla 2: records of ``to_json`` (``fields``, ``responses``), of ``to_list(flatten=True)``, or of the server.

A submitted response answers every label of the question. The flattened and the server's form say whether a response
was submitted; discarded ones and drafts say nothing. ``to_json`` leaves that out, so there only the responses of
records that are completed count. Suggestions are not answers.

Annif document corpora: JSONL, CSV, TSV, and folders of full texts (``.txt`` beside ``.tsv`` or ``.key``, ``.json``).

The subjects of a document are all that fit; others are no. A document without subjects is unknown, as Annif skips it
in training (``empty="no"`` otherwise). A subject is called by its label where the corpus has one, else by its URI;
``names="uri"`` takes the URI always.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from streamlabel.data.annotations.answers import (
    AnnotatedText,
    Answer,
    Options,
    Place,
    id_of,
    name_list,
    parse_time,
    pick_text,
)
from streamlabel.data.files import decode_line, read_bytes
from streamlabel.data.rows import parse_json
from streamlabel.errors import DataError, Hint

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
    if FAST_TEXT in rest:
        raise ValueError("__label__ is left in the text: a label has a blank in its name; export JSONL from doccano")
    text = rest.partition(" __comment__")[0].rstrip()
    return _annotated_doccano({"text": text}, tuple(labels), Options(empty_is_no=options.empty_is_no))


def _annotated_doccano(record: dict[str, Any], labels: tuple[str, ...], options: Options) -> AnnotatedText:
    answered = bool(labels) or options.empty_is_no or record.get("annotation_approver") is not None
    text, id_ = pick_text(record, options.text_field), id_of(record.get("id"))
    return AnnotatedText(text, (Answer(labels),) if answered else (), id_)


_ANSWERS = ("accept", "reject", "ignore")


def parse_prodigy(record: dict[str, Any], options: Options) -> AnnotatedText:
    said = record.get("answer", "ignore")
    if said not in _ANSWERS:
        raise ValueError(f"'answer' is {str(said)[:40]!r}; Prodigy writes accept, reject or ignore")
    text = pick_text(record, options.text_field)
    id_ = id_of(record.get("_input_hash"))
    answer = _of_options(record, said) if "options" in record or "accept" in record else _of_label(record, said)
    if answer is None:
        return AnnotatedText(text, (), id_, key=id_ or text)
    by = id_of(record.get("_annotator_id")) or id_of(record.get("_session_id"))
    when = parse_time(record.get("_timestamp")) if options.with_times else None
    return AnnotatedText(text, (Answer(answer[0], answer[1], by, when),), id_, key=id_ or text)


def _of_options(record: dict[str, Any], said: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    choices = record.get("options")
    if not isinstance(choices, list):
        raise ValueError("'options' is no list of choices; only with it is known what was asked")
    offered = tuple(_option(choice) for choice in choices)
    accepted = record.get("accept") or []
    if not isinstance(accepted, list):
        raise ValueError("'accept' is no list of option ids")
    yes = name_list([_plain(item) for item in accepted], "accept")
    for name in yes:
        if name not in offered:
            raise ValueError(f"accepts {name[:60]!r}, which is not among its options")
    return (yes, offered) if said == "accept" else None


def _of_label(record: dict[str, Any], said: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    label = record.get("label")
    if not isinstance(label, str):
        raise ValueError("has neither 'options' nor one 'label'; this reader takes text classification only")
    return None if said == "ignore" else ((label,) if said == "accept" else (), (label,))


def _option(choice: Any) -> str:
    if not isinstance(choice, dict) or id_of(choice.get("id")) is None:
        raise ValueError('an option has no \'id\'; Prodigy writes {"id", "text"}')
    return str(choice["id"])


def _plain(item: Any) -> Any:
    return str(item) if isinstance(item, int) and not isinstance(item, bool) else item


def prodigy_task(text: str, id_: str | None, offered: Sequence[str], yes: Sequence[str]) -> dict[str, Any]:
    """A task for Prodigy's choice view: labels to choose from, those that are suggested chosen already."""
    options = [{"id": name, "text": name} for name in offered]
    return {"text": text, "options": options, "accept": list(yes), "meta": {} if id_ is None else {"id": id_}}


def argilla_record(text: str, id_: str | None, yes: Sequence[str], chances: Sequence[float]) -> dict[str, Any]:
    """A record for Argilla's ``from_json``: field ``text``, suggestions for the question ``labels``."""
    value = {"value": list(yes), "score": list(chances), "agent": "streamlabel"}
    suggestions = {"labels": value} if yes else {}
    return {"id": id_, "fields": {"text": text}, "metadata": {}, "suggestions": suggestions, "responses": {}}


_RESPONSES = ".responses"
_Response: TypeAlias = tuple[Any, Any, Any]  # what was said, by whom, in which state
_OWN_FIELDS = ("id", "status", "_server_id", "score")


def parse_argilla(record: dict[str, Any], options: Options) -> AnnotatedText:
    id_ = id_of(record.get("id"))
    if "fields" not in record:
        names = [name.removesuffix(_RESPONSES) for name in record if name.endswith(_RESPONSES)]
        answers = _submitted(_of_columns(record, _question(names, options)))
        fields = {name: value for name, value in record.items() if name not in _OWN_FIELDS and "." not in name}
        return AnnotatedText(pick_text(fields, options.text_field), answers, id_)
    if not isinstance(record["fields"], dict):
        raise ValueError("'fields' is no object; export with dataset.records.to_json of Argilla 2")
    responses = record.get("responses") or {}
    said = _of_server(responses, options) if isinstance(responses, list) else _of_file(record, responses, options)
    return AnnotatedText(pick_text(record["fields"], options.text_field), _submitted(said), id_)


def _submitted(said: Iterable[_Response]) -> tuple[Answer, ...]:
    """The answers among the responses: those that were submitted and hold a value."""
    return tuple(
        Answer(name_list(value, "value"), by=id_of(user))
        for value, user, state in said
        if state == "submitted" and value is not None
    )


def _of_file(record: dict[str, Any], responses: Any, options: Options) -> list[_Response]:
    """``{question: [{"value", "user_id"}]}``."""
    if not isinstance(responses, dict):
        raise ValueError("'responses' is no object question -> responses")
    given = responses.get(_question(list(responses), options)) or []
    if not isinstance(given, list) or not all(isinstance(response, dict) for response in given):
        raise ValueError("the responses to a question are no list of objects")
    if record.get("status") == "pending":
        return []
    return [(said.get("value"), said.get("user_id"), said.get("status", "submitted")) for said in given]


def _of_server(responses: list[Any], options: Options) -> Iterator[_Response]:
    """``[{"values": {question: {"value"}}, "status", "user_id"}]``."""
    for response in responses:
        values = (response.get("values") or {}) if isinstance(response, dict) else None
        if not isinstance(values, dict):
            raise ValueError("a response is no object with 'values'")
        if response.get("status") == "submitted" and values:
            value = values.get(_question(list(values), options))
            yield value.get("value") if isinstance(value, dict) else value, response.get("user_id"), "submitted"


def _of_columns(record: dict[str, Any], question: str | None) -> list[_Response]:
    """``question.responses``, ``question.responses.users`` and ``question.responses.status``, lists side by side."""
    if question is None:
        return []
    column = f"{question}{_RESPONSES}"
    parts = [record.get(name) or [] for name in (column, f"{column}.users", f"{column}.status")]
    if not all(isinstance(part, list) and len(part) == len(parts[0]) for part in parts):
        raise ValueError(f"{column!r}, its users and its status are not lists of one length")
    return list(zip(*parts, strict=True))


def _question(names: list[str], options: Options) -> str | None:
    if options.question is not None or not names:
        return options.question
    if len(names) > 1:
        raise DataError(f"answers {sorted(names)[:20]}", hint=Hint.QUESTION)
    return names[0]


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
                record = parse_json(_content(path))
                if not isinstance(record, dict):
                    raise ValueError("is no object {...}; a document is one object")
                yield place, parse_annif_json(record, options)
            else:
                yield place, _annotated_annif(_content(path), _subjects_beside(path, options), path.stem, options)
        except DataError:
            raise
        except ValueError as error:
            raise place.error(error) from None


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
    return AnnotatedText(text, (Answer(subjects),) if answered else (), id_)


FLAT_FIELDS = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")
_PLACES = {"start", "end", "startOffset", "endOffset", "x", "y", "points", "ranges"}


def parse_label_studio_task(record: dict[str, Any], options: Options) -> AnnotatedText:
    """A task of the JSON export."""
    data, annotations = record.get("data"), record.get("annotations", record.get("completions"))
    if not isinstance(data, dict) or not isinstance(annotations, list):
        raise ValueError("no 'data' and 'annotations'; export as JSON, JSON-MIN or CSV")
    answers = [answer for entry in annotations if (answer := _answer(entry, options)) is not None]
    id_ = id_of(record.get("id"))
    return AnnotatedText(pick_text(data, options.text_field), tuple(answers), id_)


def parse_label_studio_flat(record: dict[str, Any], options: Options) -> AnnotatedText:
    """A row of JSON-MIN: the fields of the task, and each control by its name."""
    fields = {name: value for name, value in record.items() if name not in FLAT_FIELDS}
    question = options.question
    text_field = options.text_field or ("text" if "text" in fields else None)
    if question is None:
        controls = [name for name in fields if name != text_field]
        if text_field is None or len(controls) > 1:
            hint = Hint.TEXT_FIELD if text_field is None else Hint.QUESTION
            raise DataError(f"which of {controls[:20]} was asked is not said", hint=hint)
        question = controls[0] if controls else None
    text = pick_text({name: value for name, value in fields.items() if name != question}, text_field)
    id_ = id_of(record.get("id"))
    if record.get("annotation_id") in (None, ""):
        return AnnotatedText(text, id=id_)
    labels = _flat_labels(record.get(question) if question is not None else None)
    by = id_of(record.get("annotator"))
    return AnnotatedText(text, (Answer(labels, by=by, when=_time(record, options)),), id_)


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
        raise DataError(f"answers {sorted(controls)[:20]}", hint=Hint.QUESTION)
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
