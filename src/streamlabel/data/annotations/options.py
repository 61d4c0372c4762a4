"""What a reader of annotations may be told, and small helpers that every tool's records need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Options", "id_of", "name_list", "pick_text"]


@dataclass(frozen=True)
class Options:
    """See `load_annotations`."""

    text_field: str | None = None
    question: str | None = None
    empty_is_no: bool = False
    by_uri: bool = False
    with_times: bool = False


def pick_text(fields: Mapping[str, Any], wanted: str | None) -> str:
    """The text of a record: the field that is wanted, else ``text``, else the only field that is a string."""
    if wanted is None and "text" not in fields:
        candidates = [name for name, value in fields.items() if isinstance(value, str)]
        if len(candidates) != 1:
            found = ", ".join(repr(str(name)[:40]) for name in list(fields)[:20]) or "none"
            raise ValueError(f"no field 'text'; the fields are {found}; pass text_field= to say which is the text")
        wanted = candidates[0]
    name = wanted or "text"
    if not isinstance(fields.get(name), str):
        raise ValueError(f"the field {name!r} is no text; this reader takes text classification only")
    return str(fields[name])


def id_of(value: Any) -> str | None:
    """An id as a string; None where there is none."""
    if value is None or isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)


def name_list(value: Any, field: str) -> tuple[str, ...]:
    """Labels of a text. ValueError for what belongs to another kind of task."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise ValueError(f"{field!r} is no list of labels; this reader takes text classification only")
    for item in value:
        if isinstance(item, list | dict):
            raise ValueError(f"{field!r} holds spans or structures; this reader takes text classification only")
        if not isinstance(item, str):
            raise ValueError(f"{field!r} holds {str(item)[:40]!r}, which is no label name")
    return tuple(value)
