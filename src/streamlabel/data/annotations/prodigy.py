"""Prodigy (``db-out``): ``{"text", "options": [{"id", "text"}], "accept": [id], "answer"}`` or ``{"text", "label",
"answer"}``.

With options, "accept" answers each of them: yes for those in ``accept``, no for the others; labels that were not among
the options were not asked. "reject" turns the task down and "ignore" skips it: both say nothing. With a single
``label`` the question was whether it fits: "accept" is yes, "reject" is no. A label is called by the id of its option.
"""

from __future__ import annotations

from typing import Any

from streamlabel.data.annotations.answers import AnnotatedText, Answer, parse_time
from streamlabel.data.annotations.options import Options, id_of, name_list, pick_text

__all__ = ["parse_prodigy"]

_ANSWERS = ("accept", "reject", "ignore")


def parse_prodigy(record: dict[str, Any], options: Options) -> AnnotatedText:
    said = record.get("answer", "ignore")
    if said not in _ANSWERS:
        raise ValueError(f"'answer' is {str(said)[:40]!r}; Prodigy writes accept, reject or ignore")
    text = pick_text(record, options.text_field)
    id_ = id_of(record.get("_input_hash"))
    answer = _of_options(record, said) if "options" in record or "accept" in record else _of_label(record, said)
    if answer is None:
        return AnnotatedText(text, key=id_ or text, id=id_)
    by = id_of(record.get("_annotator_id")) or id_of(record.get("_session_id"))
    when = parse_time(record.get("_timestamp")) if options.with_times else None
    return AnnotatedText(text, (Answer(answer[0], answer[1], by, when),), key=id_ or text, id=id_)


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
