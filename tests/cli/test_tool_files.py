"""Texts with suggestions for Prodigy and Argilla, and the answers back: what was suggested is never taken for one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from processes import PATIENCE
from streamlabel import Tagger
from streamlabel.data.annotations import load_annotations
from tagged_texts import tagged_texts

DATA = tagged_texts(300, 100)
TEXTS = DATA.unseen[:30]
# A person accepts every suggestion but for the last text, which is skipped; then records go out as Argilla writes them.
ANSWER_IN_ARGILLA = """
import json, sys, uuid
from argilla.records._io._json import JsonIO
from argilla.records._resource import Record
from argilla.responses import Response

user, found = uuid.uuid4(), []
for place, record in enumerate(JsonIO._records_from_json(sys.argv[1])):
    value = [name for one in record.suggestions for name in one.value]
    said = Response("labels", value, status="submitted", user_id=user)
    found.append(Record(id=record.id, fields=dict(record.fields), responses=[said]).to_dict() | {"status": "completed"})
found[-1]["status"] = "pending"
json.dump(found, open(sys.argv[2], "w"))
"""


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": f"t{at}", "text": text}) + "\n" for at, text in enumerate(TEXTS)))
    return path


def test_prodigy_round_trip(texts: Path, model: Path, tmp_path: Path, call: Callable[..., Result]) -> None:
    """The first is corrected, the second ignored, the others accepted as suggested: the form of a published db-out."""
    call("predict", model, texts, "-k", 8, "--to", "prodigy", "--out", tmp_path / "tasks.jsonl")
    tasks = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text("utf-8").splitlines()]
    tagger = Tagger.open(model)
    best = [[name for name, _ in row] for row in tagger.suggest(TEXTS, 8)]
    assert [[option["id"] for option in task["options"]] for task in tasks] == best
    said = [[name for name in row if name in yes] for row, yes in zip(best, tagger.predict(TEXTS), strict=True)]
    assert [task["accept"] for task in tasks] == said
    assert tasks[3]["meta"] == {"id": "t3"}
    tasks[0]["accept"] = best[0][-1:]
    done = [
        task | {"_input_hash": at, "_task_hash": at, "_view_id": "choice", "answer": "ignore" if at == 1 else "accept"}
        for at, task in enumerate(tasks)
    ]
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(one) + "\n" for one in done))
    read = load_annotations(tmp_path / "out.jsonl")
    assert read.unanswered.tolist() == [1]
    for at, expected in {0: best[0][-1:], 2: said[2], 5: said[5]}.items():
        yes = [name for name in best[at] if TEXTS[at] in read.answers(name)[0]]
        no = [name for name in best[at] if TEXTS[at] in read.answers(name)[1]]
        assert (yes, no) == (expected, [name for name in best[at] if name not in expected])


def test_argilla_gets_what_is_a_yes_and_how_likely(texts: Path, model: Path, call: Callable[..., Result]) -> None:
    out = texts.with_name("records.json")
    call("predict", model, texts, "-k", 100, "--to", "argilla", "--out", out)
    records = json.loads(out.read_text("utf-8"))
    suggested = [set(record["suggestions"].get("labels", {"value": []})["value"]) for record in records]
    assert suggested == [set(row) for row in Tagger.open(model).predict(TEXTS)]
    assert [record["fields"]["text"] for record in records] == TEXTS
    assert all(0 <= score <= 1 for one in records for score in one["suggestions"].get("labels", {"score": []})["score"])
    assert load_annotations(out, "argilla").dataset.n_labels == 0


def test_the_real_argilla_round_trip(texts: Path, model: Path, tmp_path: Path, call: Callable[..., Result]) -> None:
    """``STREAMLABEL_ARGILLA`` is a Python with argilla 2: its own reader, responses and writer."""
    python: Any = os.environ.get("STREAMLABEL_ARGILLA")
    if not python:
        pytest.skip("no Python with this package is named")
    call("predict", model, texts, "-k", 100, "--to", "argilla", "--out", tmp_path / "records.json")
    command = [python, "-c", ANSWER_IN_ARGILLA, str(tmp_path / "records.json"), str(tmp_path / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    read = load_annotations(tmp_path / "out.json")
    assert read.unanswered.tolist() == [len(TEXTS) - 1]
    ours = Tagger.open(model).predict(TEXTS)
    for name in read.dataset.label_names:
        assert read.answers(name)[0] == [text for text, row in zip(TEXTS[:-1], ours, strict=False) if name in row]


def test_a_wrong_ending_is_a_mistake(texts: Path, model: Path, call: Callable[..., Result]) -> None:
    said = call("predict", model, texts, "--to", "argilla", "--out", texts.with_name("x.jsonl"), code=2).stderr
    assert "contradict each other" in said
