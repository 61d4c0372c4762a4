"""The OpenAPI document of the service, made from the types that check requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from streamlabel._version import __version__
from streamlabel.serve.access import COOKIE, SCOPES
from streamlabel.serve.requests import (
    JSON,
    ONE_OF,
    ONE_OF_TEXTS,
    AnswersRequest,
    Error,
    PatchRequest,
    Route,
    SuggestRequest,
    schemas_of,
)

REF = "#/components/schemas/{name}"
MEANINGS = {
    400: "The body is not JSON.",
    401: "The token is missing, unknown, revoked or over.",
    403: "The token's scope does not allow this.",
    404: "There is no such label or revision.",
    408: "The body did not come whole within 20 s.",
    409: "The name is taken, its answers are not kept, there is nothing to undo, or somebody else is writing.",
    413: "The body is larger than 4 MiB.",
    415: "The body does not come as application/json, or compressed.",
    421: "The Host header has a name that is not the service's.",
    422: "A field is missing, unknown or wrong, or nothing can be learned from what was sent.",
    429: "Too many requests or answers are under way; try again after Retry-After seconds.",
    500: "The model is damaged, the disk is full, or a bug; the log of the service says which.",
    503: "The service is read-only or ending, or the model cannot be read.",
}
EXACTLY_ONE = {"oneOf": [{"required": [name]} for name in ("name", "threshold", "precision")]}
MORE = {
    SuggestRequest: ONE_OF_TEXTS,
    AnswersRequest: ONE_OF,
    PatchRequest: EXACTLY_ONE | {"dependentRequired": {"pool": ["precision"]}},
}
SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer TOKEN"},
    "basic": {"type": "http", "scheme": "basic", "description": "any user name, and the token as the password"},
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "the cookie of /ui/login, for pages in a browser",
    },
}
ABOUT = (
    "Suggests labels, explains scores and learns new labels while it answers. Every answer names the revision of the "
    'model that it comes from. An error is {"error": "..."} with a status; it says what to do.'
)


def document(routes: Sequence[Route], *, tokens: bool, root: str = "") -> dict[str, Any]:
    """Make the OpenAPI 3.1 document of routes.

    tokens : whether they ask for a token;   root : the path under which they are mounted
    """
    shown = [one for one in routes if one.reply is not None]
    kinds: list[Any] = [Error]
    for one in shown:
        kinds += [kind for kind in (one.body, one.reply) if kind is not None and kind not in kinds]
    schemas = schemas_of(kinds, REF)
    for kind, more in MORE.items():
        if kind.__name__ in schemas:
            schemas[kind.__name__] |= more
    paths: dict[str, dict[str, Any]] = {}
    for one in shown:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, tokens=tokens)
    parts: dict[str, Any] = {"schemas": schemas}
    return {
        "openapi": "3.1.0",
        "info": {"title": "streamlabel", "version": __version__, "description": ABOUT},
        "servers": [{"url": root or "/"}],
        "paths": paths,
        "components": parts | ({"securitySchemes": SECURITY} if tokens else {}),
    }


def _operation(one: Route, *, tokens: bool) -> dict[str, Any]:
    statuses = {421, 429, 500, 503, *one.refuses}
    statuses |= {401, 403} if tokens and one.scope is not None else set()
    statuses |= {409} if one.writes else set()
    statuses |= {400, 408, 413, 415, 422} if one.body else {422} if one.query else set()
    replies = {
        str(one.status): {"description": "Done.", "content": {JSON: {"schema": _ref(one.reply)}}},
        **{str(status): _refusal(status) for status in sorted(statuses)},
    }
    if one.path == "/readyz":
        replies["503"] = {"description": MEANINGS[503], "content": {JSON: {"schema": _ref(one.reply)}}}
    found: dict[str, Any] = {
        "summary": one.about,
        "operationId": "_".join([one.method.lower(), *(re.findall(r"[a-z]+", one.path) or ["index"])]),
        "parameters": [*_path_fields(one), *_query_fields(one.query)],
        "responses": replies,
    }
    if one.body is not None:
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": _ref(one.body)}}}
    if tokens and one.scope is not None:
        allowed = ", ".join(SCOPES[SCOPES.index(one.scope) :])
        found |= {"security": [{name: []} for name in SECURITY], "description": f"Scope of the token: {allowed}."}
    return found


def _refusal(status: int) -> dict[str, Any]:
    found: dict[str, Any] = {"description": MEANINGS[status], "content": {JSON: {"schema": _ref(Error)}}}
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        found["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "seconds"}}
    return found


def _path_fields(one: Route) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", one.path):
        kind = {"type": "integer", "minimum": 1} if one.by_id else {"type": "string", "minLength": 1}
        about = "its id, which GET /labels lists" if one.by_id else "its name"
        yield {"name": name, "in": "path", "required": True, "schema": kind, "description": about}


def _query_fields(kind: type | None) -> Iterable[dict[str, Any]]:
    if kind is not None:
        for name, schema in schemas_of([kind], REF)[kind.__name__]["properties"].items():
            yield {"name": name, "in": "query", "required": False, "schema": schema}


def _ref(kind: type | None) -> dict[str, str]:
    return {"$ref": REF.format(name=getattr(kind, "__name__", ""))}


def kind_in_words(schema: dict[str, Any]) -> tuple[str, str]:
    """What a field is, in words: its type with limits, and the name of the schema that it refers to, or ''."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return name, name
    if "anyOf" in schema:
        kinds = [kind_in_words(one) for one in schema["anyOf"]]
        return " or ".join(one for one, _ in kinds), next((ref for _, ref in kinds if ref), "")
    if "enum" in schema:
        return " or ".join(f'"{one}"' for one in schema["enum"]), ""
    if schema.get("type") == "array":
        inner, ref = kind_in_words(schema.get("items", {}))
        return f"list of {inner}{_limits(schema, 'minItems', 'maxItems')}", ref
    low, high = ("minLength", "maxLength") if schema.get("type") == "string" else ("minimum", "maximum")
    return f"{schema.get('type', 'any')}{_limits(schema, low, high)}", ""


def _limits(schema: dict[str, Any], low: str, high: str) -> str:
    least = schema.get(low, schema.get("exclusiveMinimum"))
    found = [f"at least {least:,}" if low in schema else f"above {least:,}"] if least is not None else []
    found += [f"at most {schema[high]:,}"] if high in schema else []
    return f" ({', '.join(found)})" if found else ""
