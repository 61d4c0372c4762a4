"""Many readers and one writer: all of a revision or nothing of it, and old scores to the bit."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from processes import wait_for
from streamlabel import ModelStore, Tagger
from streamlabel.errors import ConflictError, StreamlabelError
from streamlabel.serve import live_tagger as living_module
from streamlabel.serve.access import GONE
from streamlabel.serve.live_tagger import LivingTagger
from streamlabel.store.classifiers import BlockCache
from tagged_texts import NEW, tagged_texts

DATA = tagged_texts(200, 60)
ASKED = DATA.unseen[:10]


def answers(name: str) -> list[str]:
    return [DATA.texts[i] for i in DATA.rows[name][:5]]


def test_suggestions_while_labels_are_learned_are_of_one_revision(client: Any, living: LivingTagger) -> None:
    """Every answer has the labels of its revision, and the scores of the first one to the bit."""
    old = [dict(row) for row in living.view().tagger.suggest(ASKED, 1000)]
    ended, seen, body = threading.Event(), [], {"texts": ASKED, "k": 100}

    def ask() -> None:
        while not ended.is_set():
            seen.append(client.post("/suggest", json=body).json())

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        try:
            wait_for(lambda: seen)
            for name in NEW[:3]:
                assert client.post("/labels", json={"name": name, "yes": answers(name)}).status_code == 201
        finally:
            ended.set()
        for one in asking:
            one.result()
    seen.append(client.post("/suggest", json=body).json())
    assert {said["revision"] for said in seen} >= {1, 4}
    for said in seen:
        known = {*old[0], *NEW[: said["revision"] - 1]}
        for row, first in zip(said["results"], old, strict=True):
            scores = {one["label"]: one["score"] for one in row}
            assert scores.keys() <= known
            assert len(scores) == min(100, len(known))
            assert all(scores[name] == first[name] for name in scores if name in first)


def test_nobody_waits_for_a_label_that_is_being_learned(living: LivingTagger, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, learn = threading.Event(), threading.Event(), Tagger.learn

    def slowly(tagger: Tagger, *arguments: Any, **options: Any) -> Any:
        begun.set()
        assert go_on.wait(30)
        return learn(tagger, *arguments, **options)

    monkeypatch.setattr(Tagger, "learn", slowly)
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


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["posix_fallocate", "pwrite", "fdatasync", "fsync", "ftruncate", "write"])
def test_a_disk_that_fails_once_does_not_matter_to_the_next_label(
    living: LivingTagger, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    """At each call that a change makes: refused or done, and the service goes on when there is room again."""
    real, failed = getattr(os, call), []

    def fails(*arguments: Any) -> Any:
        if failed:
            return real(*arguments)
        failed.append(call)
        raise OSError(number, os.strerror(number))

    before = living.view().tagger.suggest(ASKED, 3)
    with monkeypatch.context() as patched, suppress(StreamlabelError):
        patched.setattr(os, call, fails)
        living.learn("football", answers("football"), [])
    assert living.view().tagger.suggest(ASKED, 3)[0][0] == before[0][0]
    _, revision = living.learn("hospitals", answers("hospitals"), [])
    assert living.view().revision == revision
    assert "hospitals" in living.view().labels
    assert ModelStore.doctor(living.path) == []


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
    wait_for(lambda: living.view().revision != 1)
    assert living.view().revision == 2


def test_a_model_that_is_gone_is_served_on_and_told(
    client: Any, living: LivingTagger, model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """To the asker without where it was; that is in the log, once."""
    monkeypatch.setattr(living_module, "LOOK_EVERY", 0.0)
    before = client.post("/suggest", json={"texts": ASKED}).json()
    shutil.move(model, model.with_name("elsewhere"))
    for _ in range(2):
        assert client.post("/suggest", json={"texts": ASKED}).json() == before
        said = client.get("/readyz")
        assert said.status_code == 503
        assert not said.json()["ok"]
        assert "cannot be read" in said.json()["problem"]
    assert [str(model) in record.getMessage() for record in caplog.records] == [True]
    for refused in (
        client.post("/labels", json={"name": "football", "yes": answers("football")}),
        client.delete("/labels/1"),
        client.post("/rollback", json={"revision": 1}),
    ):
        assert (refused.status_code, refused.json()) == (503, {"error": GONE})
        assert str(model.parent) not in refused.text + said.text
    shutil.move(model.with_name("elsewhere"), model)
    assert client.get("/readyz").json()["ok"]
    assert client.post("/labels", json={"name": "football", "yes": answers("football")}).status_code == 201


@pytest.mark.parametrize("in_place", [False, True])
def test_another_model_with_the_same_number_of_revisions(
    living: LivingTagger, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    """Moved there as a whole, or written over the files of the old one."""
    monkeypatch.setattr(living_module, "LOOK_EVERY", 0.0)
    living.learn("football", answers("football"), [])
    less = tagged_texts(150, 60)
    other = Tagger().fit(less.texts, [tags[:2] for tags in less.tags])
    other.learn("railways", [less.texts[i] for i in less.rows["railways"][:5]])
    other.save(tmp_path / "other")
    with Tagger.open(tmp_path / "other", "a") as opened:
        opened.learn("vaccination", [less.texts[i] for i in less.rows["vaccination"][:5]])
    if not in_place:
        shutil.rmtree(model)
    shutil.copytree(tmp_path / "other", model, dirs_exist_ok=True)
    assert living.view().revision == 2
    assert living.view().tagger.suggest(ASKED, 1000) == Tagger.open(model).suggest(ASKED, 1000)
    report, revision = living.learn("hospitals", answers("hospitals"), [])
    assert (report.name, revision) == ("hospitals", 3)
    assert Tagger.open(model).label_names_ == (*opened.label_names_, "hospitals") == tuple(living.view().labels)


def test_a_learner_that_meets_a_conflict_is_not_used_again(
    living: LivingTagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    living.learn("football", answers("football"), [])
    with monkeypatch.context() as patched:
        patched.setattr(Tagger, "learn", _conflict)
        with pytest.raises(ConflictError):
            living.learn("hospitals", answers("hospitals"), [])
    assert living._learner is None
    assert living.learn("hospitals", answers("hospitals"), [])[1] == 3


def test_what_the_learner_has_written_is_not_written_again(living: LivingTagger, model: Path, tmp_path: Path) -> None:
    """The files of a service that has learned labels in requests are those of one tagger that stays open."""
    alone = Path(shutil.copytree(model, tmp_path / "alone"))
    with Tagger.open(alone, "a", actor="web") as tagger:
        for name in NEW:
            tagger.learn(name, answers(name))
            living.learn(name, answers(name), [])
    assert sorted(path.name for path in model.glob("?-*")) == sorted(path.name for path in alone.glob("?-*"))
    found, expected = ModelStore.open(model).sizes(), ModelStore.open(alone).sizes()
    assert (found.learning, found.parts, found.labels) == (expected.learning, expected.parts, expected.labels)


def test_a_learner_that_failed_midway_is_not_used_again(living: LivingTagger, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("streamlabel.store.model_store.ModelStore.settled", _out_of_memory)
        with pytest.raises(MemoryError):
            living.learn("football", answers("football"), [])
    _, revision = living.learn("hospitals", answers("hospitals"), [])
    assert revision == 3
    assert {"football", "hospitals"} <= living.view().labels.keys()


def _conflict(*_: Any, **__: Any) -> None:
    raise ConflictError("changed since")


def _out_of_memory(*_: Any) -> None:
    raise MemoryError


def test_blocks_that_were_made_for_a_label_are_not_made_again_for_the_next(
    living: LivingTagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    put = BlockCache.put

    def counted(cache: BlockCache, key: Any, members: bytes, block: Any) -> None:
        made.append(key)
        put(cache, key, members, block)

    monkeypatch.setattr(BlockCache, "put", counted)
    living.learn("football", answers("football"), [])
    first = len(made)
    made.clear()
    living.learn("hospitals", answers("hospitals"), [])
    assert first >= len(living.view().labels) // 64
    assert len(made) <= 1  # the one that has grown


def test_a_label_is_looked_at_without_reading_the_others_of_every_revision(
    living: LivingTagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that its card does not become slower with every answer."""
    living.learn("football", answers("football"), DATA.unseen[:3])
    for text in DATA.unseen[3:6]:
        living.learn("football", [], [text], more=True)

    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("a whole revision was read")

    monkeypatch.setattr("streamlabel.store.stored_model.read_snapshot", read)
    assert living.estimate("football")[2] is False
    living.set_threshold("football", 0.123)
    assert living.estimate("football")[2] is True
