"""Many readers and one writer: all of a revision or nothing of it, and old scores to the bit."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from streamlabel import Tagger
from streamlabel.exceptions import ConflictError
from streamlabel.models.tagger import MemoryTagger
from streamlabel.serve import living as living_module
from streamlabel.serve import requests
from streamlabel.serve.living import LivingTagger
from tagged_texts import NEW, tagged_texts

DATA = tagged_texts(200, 60)
ASKED = DATA.unseen[:10]


def answers(name: str) -> list[str]:
    return [DATA.texts[i] for i in DATA.rows[name][:5]]


def test_suggestions_while_labels_are_learned_are_of_one_revision(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer has the labels of its revision, and the scores of the first one to the bit."""
    monkeypatch.setattr(requests, "MOST_K", 1000)
    before = client.post("/suggest", json={"texts": ASKED, "k": 1000}).json()
    old = [{one["label"]: one["score"] for one in row} for row in before["results"]]
    ended, seen = threading.Event(), []

    def ask() -> None:
        while not ended.is_set():
            seen.append(client.post("/suggest", json={"texts": ASKED, "k": 1000}).json())

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        try:
            for name in NEW[:3]:
                assert client.post("/labels", json={"name": name, "yes": answers(name)}).status_code == 201
        finally:
            ended.set()
        for one in asking:
            one.result()
    seen.append(client.post("/suggest", json={"texts": ASKED, "k": 1000}).json())
    assert {said["revision"] for said in seen} >= {1, 4}
    for said in seen:
        expected = {*old[0], *NEW[: said["revision"] - 1]}
        for row, first in zip(said["results"], old, strict=True):
            scores = {one["label"]: one["score"] for one in row}
            assert scores.keys() == expected
            assert {name: scores[name] for name in first} == first


def test_nobody_waits_for_a_label_that_is_being_learned(living: LivingTagger, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, learn = threading.Event(), threading.Event(), MemoryTagger.learn

    def slowly(tagger: MemoryTagger, *arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(30)
        return learn(tagger, *arguments)

    monkeypatch.setattr(MemoryTagger, "learn", slowly)
    with ThreadPoolExecutor(1) as pool:
        learning = pool.submit(living.learn, "football", answers("football"), [])
        assert begun.wait(30)
        view = living.view()
        assert view.revision == 1
        scores = view.tagger.suggest(ASKED, 1000)
        go_on.set()
        report, revision = learning.result()
    assert (report.name, revision, living.view().revision) == ("football", 2, 2)
    assert "football" in living.view().labels
    assert view.tagger.suggest(ASKED, 1000) == scores
    assert "football" not in view.labels


def test_what_another_process_writes_is_seen(
    living: LivingTagger, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(living_module, "LOOK_EVERY", 0.0)
    first = living.view()
    with Tagger.open(model, "a") as other:
        other.learn("football", answers("football"))
    assert living.view().labels.keys() - first.labels.keys() == {"football"}
    _, revision = living.learn("hospitals", answers("hospitals"), [])
    with Tagger.open(model, "a") as other:
        other.learn("railways", answers("railways"))
        with pytest.raises(ConflictError):
            living.learn("vaccination", answers("vaccination"), [])
    _, last = living.learn("vaccination", answers("vaccination"), [])
    assert (revision, last) == (3, 5)
    assert living.view().tagger.label_names_ == Tagger.open(model).label_names_


def test_the_catalogue_is_looked_at_now_and_then(living: LivingTagger, model: Path) -> None:
    with Tagger.open(model, "a") as other:
        other.learn("football", answers("football"))
    limit = time.monotonic() + 20
    while living.view().revision == 1 and time.monotonic() < limit:
        time.sleep(0.05)
    assert living.view().revision == 2


def test_a_model_that_is_gone_is_served_on_and_told(
    client: Any, living: LivingTagger, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(living_module, "LOOK_EVERY", 0.0)
    before = client.post("/suggest", json={"texts": ASKED}).json()
    shutil.move(model, model.with_name("elsewhere"))
    assert client.post("/suggest", json={"texts": ASKED}).json() == before
    said = client.get("/health")
    assert said.status_code == 503
    assert not said.json()["ok"]
    assert str(model) in said.json()["problem"]
    refused = client.post("/labels", json={"name": "football", "yes": answers("football")})
    assert refused.status_code in (404, 500)
    shutil.move(model.with_name("elsewhere"), model)
    assert client.get("/health").json()["ok"]


def test_a_learner_that_failed_midway_is_not_used_again(living: LivingTagger, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("streamlabel.store.tagger_store.replace_classifiers", _out_of_memory)
        with pytest.raises(MemoryError):
            living.learn("football", answers("football"), [])
    _, revision = living.learn("hospitals", answers("hospitals"), [])
    assert revision == 3
    assert {"football", "hospitals"} <= living.view().labels.keys()


def _out_of_memory(*_: Any) -> None:
    raise MemoryError
