"""Argilla 2: records of ``to_json`` (``fields``, ``responses``), of ``to_list(flatten=True)``, or of the server.

A submitted response answers every label of the question. The flattened and the server's form say whether a response
was submitted; discarded ones and drafts say nothing. ``to_json`` leaves that out, so there only the responses of
records that are completed count. Suggestions are not answers.
"""

from __future__ import annotations

from typing import Any

from streamlabel.data.annotations.answers import AnnotatedText, Answer
from streamlabel.data.annotations.options import Options, id_of, name_list, pick_text

__all__ = ["parse_argilla"]

_RESPONSES = ".responses"
_OWN_FIELDS = ("id", "status", "_server_id", "score")


def parse_argilla(record: dict[str, Any], options: Options) -> AnnotatedText:
    id_ = id_of(record.get("id"))
    if "fields" not in record:
        names = [name.removesuffix(_RESPONSES) for name in record if name.endswith(_RESPONSES)]
        answers = _of_columns(record, _question(names, options))
        fields = {name: value for name, value in record.items() if name not in _OWN_FIELDS and "." not in name}
        return AnnotatedText(pick_text(fields, options.text_field), answers, key=id_, id=id_)
    if not isinstance(record["fields"], dict):
        raise ValueError("'fields' is no object; export with dataset.records.to_json of Argilla 2")
    text = pick_text(record["fields"], options.text_field)
    responses = record.get("responses") or {}
    answers = _of_server(responses, options) if isinstance(responses, list) else _of_file(record, responses, options)
    return AnnotatedText(text, answers, key=id_, id=id_)


def _of_file(record: dict[str, Any], responses: Any, options: Options) -> tuple[Answer, ...]:
    """``{question: [{"value", "user_id"}]}``."""
    if not isinstance(responses, dict):
        raise ValueError("'responses' is no object question -> responses")
    question = _question(list(responses), options)
    given = responses.get(question) or []
    if not isinstance(given, list) or not all(isinstance(response, dict) for response in given):
        raise ValueError("the responses to a question are no list of objects")
    if record.get("status") == "pending":
        return ()
    return tuple(
        Answer(name_list(response["value"], "value"), by=id_of(response.get("user_id")))
        for response in given
        if response.get("value") is not None and response.get("status", "submitted") == "submitted"
    )


def _of_server(responses: list[Any], options: Options) -> tuple[Answer, ...]:
    """``[{"values": {question: {"value"}}, "status", "user_id"}]``."""
    answers = []
    for response in responses:
        values = (response.get("values") or {}) if isinstance(response, dict) else None
        if not isinstance(values, dict):
            raise ValueError("a response is no object with 'values'")
        if response.get("status") != "submitted" or not values:
            continue
        value = values.get(_question(list(values), options))
        value = value.get("value") if isinstance(value, dict) else value
        if value is not None:
            answers.append(Answer(name_list(value, "value"), by=id_of(response.get("user_id"))))
    return tuple(answers)


def _of_columns(record: dict[str, Any], question: str | None) -> tuple[Answer, ...]:
    """``question.responses``, ``question.responses.users`` and ``question.responses.status``, lists side by side."""
    if question is None:
        return ()
    column = f"{question}{_RESPONSES}"
    values, users = record.get(column) or [], record.get(f"{column}.users") or []
    states = record.get(f"{column}.status") or []
    if not all(isinstance(part, list) for part in (values, users, states)) or not (
        len(values) == len(users) == len(states)
    ):
        raise ValueError(f"{column!r}, its users and its status are not lists of one length")
    return tuple(
        Answer(name_list(value, "value"), by=id_of(user))
        for value, user, state in zip(values, users, states, strict=True)
        if state == "submitted" and value is not None
    )


def _question(names: list[str], options: Options) -> str | None:
    if options.question is not None or not names:
        return options.question
    if len(names) > 1:
        raise ValueError(f"answers {sorted(names)[:20]}; pass question= to say which to read")
    return names[0]
