"""Whatever the bytes, the answer is a set of annotations or a DataError."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamlabel.data.annotations import TOOLS, Annotations, load_annotations
from streamlabel.errors import DataError

AMOUNTS = [20, pytest.param(500, marks=pytest.mark.slow)]

RECORDS: dict[str, list[dict[str, Any]]] = {
    "doccano": [{"id": 1, "text": "a", "label": ["x", "y"]}, {"id": 2, "text": "b", "label": []}],
    "prodigy": [
        {"text": "a", "options": [{"id": "x"}], "accept": ["x"], "answer": "accept", "_input_hash": 1},
        {"text": "b", "label": "y", "answer": "reject", "_timestamp": 1, "_annotator_id": "u"},
    ],
    "label_studio": [
        {
            "id": 1,
            "data": {"text": "a"},
            "annotations": [
                {
                    "completed_by": {"id": 1},
                    "updated_at": "2026-01-01T00:00:00Z",
                    "result": [{"from_name": "q", "type": "choices", "value": {"choices": ["x"]}}],
                }
            ],
        },
        {"id": 2, "text": "b", "q": {"choices": ["x", "y"]}, "annotation_id": 1, "annotator": 1},
    ],
    "argilla": [
        {"id": "1", "fields": {"text": "a"}, "responses": {"q": [{"value": ["x"], "user_id": "u"}]}},
        {"id": "2", "fields": {"text": "b"}, "responses": [{"values": {"q": {"value": "y"}}, "status": "submitted"}]},
        {
            "id": "3",
            "text": "c",
            "q.responses": [["x"]],
            "q.responses.users": ["u"],
            "q.responses.status": ["submitted"],
        },
    ],
    "annif": [{"document_id": "1", "text": "a", "subjects": [{"uri": "u", "label": "x"}]}, {"text": "b"}],
}
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
keys = st.sampled_from(
    sorted({key for records in RECORDS.values() for record in records for key in record} | {"choices", "value", "uri"})
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.sampled_from(["accept", "choices", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)


def annotations_or_data_error(read: Callable[[], Annotations]) -> None:
    try:
        found = read()
    except DataError:
        return
    data, asked = found.dataset, found.annotated()
    assert data.Y.shape == asked.shape == (len(data.texts), len(data.label_names))
    assert data.Y.has_canonical_format
    assert found.exceptions.has_canonical_format
    assert (data.Y.data == 1).all()
    assert not data.Y.toarray()[~asked].any()
    assert set(found.unanswered.tolist()) == set(np.flatnonzero(~asked.any(axis=1)).tolist())


def fuzz(n_examples: int, strategy: st.SearchStrategy[Any], check: Callable[[Any], None]) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    settings(max_examples=n_examples, deadline=None, database=None, suppress_health_check=checks)(
        given(strategy)(check)
    )()


@st.composite
def altered(draw: st.DrawFn, value: Any) -> Any:
    """The value with some of its parts replaced by anything, left out, or kept."""
    if draw(st.integers(0, 9)) == 0:
        return draw(values)
    if isinstance(value, dict):
        kept = {key: draw(altered(part)) for key, part in value.items() if draw(st.integers(0, 9))}
        return kept | (draw(st.dictionaries(keys, values, max_size=1)) if draw(st.integers(0, 4)) == 0 else {})
    return [draw(altered(part)) for part in value] if isinstance(value, list) else value


@st.composite
def exports(draw: st.DrawFn, tool: str) -> bytes:
    records = [draw(altered(record)) for record in RECORDS[tool] * draw(st.integers(1, 2))]
    if draw(st.booleans()):
        return json.dumps(records, indent=draw(st.sampled_from([None, 1]))).encode()
    return "\n".join(map(json.dumps, records)).encode()


options = st.fixed_dictionaries(
    {},
    optional={
        "question": st.sampled_from(["q", "label", "text"]),
        "text_field": st.sampled_from(["text", "title"]),
        "label_names": st.just(["x", "y"]),
        "empty": st.just("no"),
        "born": st.just({"x": "2026-02-01"}),
        "names": st.just("uri"),
        "max_record_bytes": st.integers(1, 400),
    },
)


@pytest.mark.parametrize("n_examples", AMOUNTS)
@pytest.mark.parametrize("tool", TOOLS)
def test_any_records_of_a_tool(n_examples: int, tool: str) -> None:
    def check(case: tuple[bytes, dict[str, Any]]) -> None:
        annotations_or_data_error(lambda: load_annotations(io.BytesIO(case[0]), tool, **case[1]))

    fuzz(n_examples, st.tuples(exports(tool), options), check)


@pytest.mark.parametrize("n_examples", AMOUNTS)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a.tsv", "a.txt", "a.jsonl.gz"])
def test_any_bytes_in_a_file(n_examples: int, name: str, tmp_path: Path) -> None:
    whole = [json.dumps(records).encode() for records in RECORDS.values()]
    tables = [
        b'id,text,label\n1,"a, b",x#y\n',
        b"text,subject_uris\na,<u> v\n",
        b"annotation_id,annotator,text,q\n1,1,a,x\n",
    ]
    pieces = st.sampled_from([b'"', b",", b"[", b"]", b"{", b"}", b"\\", b"\n", b"\t", b"__label__x ", b"\xef\xbb\xbf"])
    cut = st.builds(
        lambda content, at, piece, end: (
            content[: at % len(content)] + piece + content[at % len(content) : -end or None]
        ),
        st.sampled_from(whole + tables),
        st.integers(0, 10**6),
        pieces,
        st.integers(0, 3),
    )

    def check(content: bytes) -> None:
        (tmp_path / name).write_bytes(content)
        annotations_or_data_error(lambda: load_annotations(tmp_path / name, max_record_bytes=300))

    fuzz(n_examples, st.binary(max_size=40) | cut | st.lists(pieces, max_size=20).map(b"".join), check)


@pytest.mark.parametrize("n_examples", AMOUNTS)
def test_an_array_and_its_lines_are_the_same(n_examples: int) -> None:
    """The reader of arrays finds the records that the json module finds."""

    def check(texts: list[str]) -> None:
        records = [{"id": i, "text": text, "label": ["x"]} for i, text in enumerate(texts)]
        for content in (json.dumps(records), json.dumps(records, indent=2, ensure_ascii=False)):
            read = load_annotations(io.BytesIO(content.encode()), "doccano")
            assert list(read.dataset.texts) == texts

    nasty = st.text(st.sampled_from('a"\\{}[],\n\u2028é😀\x01'), max_size=30)
    fuzz(n_examples, st.lists(nasty, min_size=1, max_size=5), check)


def test_nesting_without_end_is_refused() -> None:
    for content in (b'[{"id": 1, "text": ' + b"[" * 200_000 + b"]" * 200_000 + b"}]", b'{"a": ' + b'{"a": ' * 100_000):
        with pytest.raises(DataError):
            load_annotations(io.BytesIO(content), "doccano")
