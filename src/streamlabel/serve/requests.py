"""What a body may hold: JSON with known fields, texts that can be written down, and no more than the limits."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from streamlabel.models.explain import N_WORDS
from streamlabel.serve.refusals import Refusal

__all__ = [
    "MOST_BYTES",
    "MOST_K",
    "MOST_TEXTS",
    "ExplainRequest",
    "LearnRequest",
    "RollbackRequest",
    "SuggestRequest",
    "parse_body",
]

MOST_BYTES = 4 << 20
MOST_TEXTS = 1000
MOST_K = 100


def parse_body(content: bytes) -> dict[str, Any]:
    """The JSON object of a body; NaN and infinity are not JSON."""
    try:
        body = json.loads(content.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refusal(400, f"the body is of type {type(body).__name__}; send a JSON object, {{...}}")
    return body


@dataclass(frozen=True)
class SuggestRequest:
    texts: list[str]
    k: int = 5

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> SuggestRequest:
        _check_fields(body, {"texts"}, {"k"})
        return cls(_texts(body, "texts"), _whole(body.get("k", cls.k), "k", MOST_K))


@dataclass(frozen=True)
class ExplainRequest:
    """words : at most so many on each side"""

    text: str
    label: str
    words: int = N_WORDS

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> ExplainRequest:
        _check_fields(body, {"text", "label"}, {"words"})
        words = _whole(body.get("words", cls.words), "words", MOST_K)
        return cls(_text(body["text"], "text"), _name(body["label"], "label"), words)


@dataclass(frozen=True)
class LearnRequest:
    name: str
    yes: list[str]
    no: list[str]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> LearnRequest:
        _check_fields(body, {"name", "yes"}, {"no"})
        return cls(_name(body["name"], "name").strip(), _texts(body, "yes"), _texts(body, "no") if "no" in body else [])


@dataclass(frozen=True)
class RollbackRequest:
    revision: int

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> RollbackRequest:
        _check_fields(body, {"revision"}, set())
        return cls(_whole(body["revision"], "revision", 2**53))


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _check_fields(body: Mapping[str, Any], needed: set[str], more: set[str]) -> None:
    for field in sorted(needed - body.keys()):
        raise Refusal(400, f"the field {field!r} is missing")
    for field in sorted(body.keys() - needed - more):
        raise Refusal(400, f"the field {field!r} is not known; there are {', '.join(sorted(needed | more))}")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise Refusal(400, f"{where} is of type {type(value).__name__}; it must be a string")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(400, f"{where} holds half of a surrogate pair, which is no character") from None
    return value


def _name(value: Any, where: str) -> str:
    """The name of a label, composed as it is in the model."""
    return unicodedata.normalize("NFC", _text(value, where))


def _texts(body: Mapping[str, Any], field: str) -> list[str]:
    values = body[field]
    if not isinstance(values, list):
        raise Refusal(400, f"{field} is of type {type(values).__name__}; it must be a list of texts")
    if len(values) > MOST_TEXTS:
        raise Refusal(400, f"{field} has {len(values):,} texts; at most {MOST_TEXTS:,} are taken at once")
    return [_text(value, f"{field}[{place}]") for place, value in enumerate(values)]


def _whole(value: Any, where: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise Refusal(400, f"{where} must be a whole number from 1 to {most}")
    return value
