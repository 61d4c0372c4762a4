"""A tagger on the disk: the same suggestions after opening, labels kept when `learn` returns, nothing needed but it."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from streamlabel import ModelStore, StreamingLabelClassifier, Tagger
from streamlabel.errors import ConflictError, DataError, NotFoundError
from tagged_texts import NEW, tagged_texts

DATA = tagged_texts()
ALL = 1000


@pytest.fixture(scope="module")
def fitted() -> Tagger:
    tagger = Tagger().fit(DATA.texts, DATA.tags)
    tagger.learn("football", yes=DATA.rows["football"][:4])
    return tagger


@pytest.fixture
def path(fitted: Tagger, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "tags")
    return tmp_path / "tags"


def names_of(rows: list) -> list:
    return [[name for name, _ in row] for row in rows]


def test_an_opened_tagger_suggests_what_the_saved_one_did(fitted: Tagger, path: Path) -> None:
    before, after = fitted.suggest(DATA.unseen, k=ALL), Tagger.open(path).suggest(DATA.unseen, k=ALL)
    assert names_of(Tagger.open(path).suggest(DATA.unseen, k=5)) == names_of([row[:5] for row in before])
    for one, two in zip(before, after, strict=True):
        assert dict(one) == pytest.approx(dict(two), abs=1e-6)
    assert Tagger.open(path, "a").predict(DATA.unseen) == fitted.predict(DATA.unseen)
    assert Tagger.open(path).suggest(DATA.unseen, k=ALL) == after


SCRIPT = """
import os, sys
from streamlabel import Tagger

tagger = Tagger.open(sys.argv[1], "a")
tagger.learn("hospitals", yes=[sys.argv[2]])
print(tagger.suggest(sys.argv[2], k=50), flush=True)
os._exit(9)
"""


def test_a_process_that_dies_after_learning_leaves_the_same_bits(path: Path) -> None:
    text = DATA.unseen[0]
    command = [sys.executable, "-c", SCRIPT, str(path), text]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert found.returncode == 9, found.stderr
    assert found.stdout.strip() == str(Tagger.open(path).suggest(text, k=50))
    assert "hospitals" in found.stdout


def test_labels_are_learned_after_a_restart_as_without_one(fitted: Tagger, path: Path) -> None:
    """The texts are recognised, and rows and answers are there, though nothing but the directory is left."""
    yes = [DATA.texts[i] for i in DATA.rows["hospitals"][:5]]
    here = copy.copy(fitted)
    expected = here.learn("hospitals", yes=yes)
    with Tagger.open(path, "a") as there:
        before = there.suggest(DATA.unseen, k=ALL)
        report = there.learn("hospitals", yes=yes)
        assert (report.n_yes, report.n_background) == (expected.n_yes, expected.n_background)
        assert report.threshold == pytest.approx(expected.threshold, abs=1e-4)
        after = there.suggest(DATA.unseen, k=ALL)
    assert [[pair for pair in row if pair[0] != "hospitals"] for row in after] == before
    ours, theirs = ([dict(row)["hospitals"] for row in rows] for rows in (here.suggest(DATA.unseen, k=ALL), after))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert Tagger.open(path).suggest(DATA.unseen, k=ALL) == after


def test_a_copy_that_a_reader_saved_learns_as_the_original(path: Path, tmp_path: Path) -> None:
    reader = Tagger.open(path)
    reader.save(tmp_path / "copy")
    assert reader.classifier_.state_.memory is None  # a reader still reads no more than it needs
    yes = [DATA.texts[i] for i in DATA.rows["hospitals"][:5]]
    with Tagger.open(path, "a") as one, Tagger.open(tmp_path / "copy", "a") as two:
        for tagger in (one, two):
            tagger.learn("hospitals", yes=yes)
            tagger.learn_more("football", no=[0, 1])
        assert one.suggest(DATA.unseen, k=ALL) == two.suggest(DATA.unseen, k=ALL)
    reader.save(tmp_path / "small", keep_rows=False)
    with Tagger.open(tmp_path / "small", "a") as small, pytest.raises(DataError, match="the texts of fit are not kept"):
        small.learn("hospitals", yes=yes)
    assert reader.in_memory().learn("hospitals", yes=yes).pool == "fit"


def test_a_label_is_on_the_disk_when_learn_returns(path: Path) -> None:
    tagger = Tagger.open(path, "a")
    reader = Tagger.open(path)
    tagger.learn_many({"hospitals": (DATA.rows["hospitals"], []), "railways": (DATA.rows["railways"], ["Nothing"])})
    assert Tagger.open(path).label_names_ == tagger.label_names_
    assert [revision.action for revision in tagger.store.history()] == ["add", "create"]
    assert "railways" not in reader.label_names_
    reader.refresh()
    assert reader.suggest(DATA.unseen, k=ALL) == tagger.suggest(DATA.unseen, k=ALL)
    tagger.close()


def test_learning_again_is_one_label_that_changes(path: Path) -> None:
    with Tagger.open(path, "a") as tagger:
        before = tagger.suggest(DATA.unseen, k=ALL)
        ids = {label.name: label.id for label in tagger.store.labels()}
        tagger.relearn("football", yes=DATA.rows["football"])
        after = tagger.suggest(DATA.unseen, k=ALL)
        assert after != before
        for one, two in zip(before, after, strict=True):
            assert {**dict(two), "football": 0} == {**dict(one), "football": 0}
        assert tagger.store.history()[0].action == "relearn"
        assert tagger.store.revision == 2
        assert {label.name: label.id for label in tagger.store.labels()} == ids
        assert [change.kind for change in tagger.store.diff(1, 2)] == ["threshold", "relearned"]
        assert Tagger.open(path).suggest(DATA.unseen, k=ALL) == after
        tagger.store.rollback(label="football")
    assert Tagger.open(path).suggest(DATA.unseen, k=ALL) == before


def test_trials_of_learning_again_are_kept(path: Path) -> None:
    with Tagger.open(path, "a") as tagger:
        known = tagger.classifier_.state_.memory
        tried, found = set(known.tried), set(known.found)
        tagger.relearn("football", yes=DATA.rows["football"][:10], no=[DATA.texts[0]], sampled=True)
        tagger.relearn("football", yes=DATA.rows["football"][:1])
        recipes = dict(tagger.classifier_.state_.memory.found)
    again = Tagger.open(path, "a").classifier_.state_.memory
    assert len(again.tried) == len(tried) + 1
    assert set(again.found) == found | {(1, "words")}
    assert (1, "words") not in found
    assert again.found == recipes


def test_learning_again_that_fails_leaves_the_label(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of luck")

    with Tagger.open(path, "a") as tagger:
        before = tagger.suggest(DATA.unseen[:5], k=ALL)
        with pytest.raises(DataError, match="in yes and in no"):
            tagger.relearn("football", yes=[1], no=[1])
        monkeypatch.setattr(StreamingLabelClassifier, "learn_examples", fail)
        with pytest.raises(RuntimeError):
            tagger.relearn("football", yes=[1])
        monkeypatch.undo()
        assert tagger.suggest(DATA.unseen[:5], k=ALL) == before
    assert Tagger.open(path).suggest(DATA.unseen[:5], k=ALL) == before


def test_a_change_in_the_store_is_seen_after_refresh(path: Path) -> None:
    with Tagger.open(path, "a") as tagger:
        tagger.store.rename("football", "soccer")
        with pytest.raises(ConflictError, match="call refresh"):
            tagger.learn("railways", yes=[1])
        tagger.refresh()
        assert tagger.label_names_[-1] == "soccer"
        assert tagger.learn("football", yes=[DATA.texts[0]]).n_background == (len(DATA.texts) - 1) // 2


def test_a_reader_does_not_learn_and_a_second_writer_waits(path: Path) -> None:
    with pytest.raises(ConflictError, match="reading only"):
        Tagger.open(path).learn("hospitals", yes=["one"])
    with Tagger.open(path, "a") as tagger:
        with pytest.raises(ConflictError):
            Tagger.open(path, "a")
        with pytest.raises(ConflictError, match="lives in"):
            tagger.fit(DATA.texts, DATA.tags)
        with pytest.raises(ConflictError, match="is known already"):
            tagger.learn("football", yes=[1])
    with pytest.raises(ConflictError, match="is there already"):
        Tagger.open(path).save(path)
    with pytest.raises(ConflictError, match="lives in memory"):
        Tagger().store  # noqa: B018


def test_a_writer_that_is_dropped_gives_everything_back(path: Path) -> None:
    """No ``close``: the next one may write, and Python 3.13 finds no catalogue that was left open."""
    for name in ("hospitals", "railways"):
        tagger = Tagger.open(path, "a")
        tagger.learn(name, yes=DATA.rows[name][:4])
        with warnings.catch_warnings(record=True) as left_open:
            warnings.simplefilter("always")
            del tagger
            gc.collect()
        assert not left_open
    assert Tagger.open(path).label_names_[-2:] == ("hospitals", "railways")


def test_without_rows_a_label_needs_texts_for_both_answers(fitted: Tagger, tmp_path: Path) -> None:
    fitted.save(tmp_path / "small", keep_rows=False)
    with Tagger.open(tmp_path / "small", "a") as tagger:
        with pytest.raises(DataError, match="keeps no texts of fit"):
            tagger.learn("hospitals", yes=[3])
        for answers in ({}, {"yes": [DATA.texts[3]]}, {"no": [DATA.texts[3]]}):
            with pytest.raises(DataError, match="texts of fit are not kept here; give a pool"):
                tagger.learn("hospitals", **answers)
        yes, no = DATA.rows["hospitals"], [i for i in range(40) if i not in DATA.rows["hospitals"]]
        report = tagger.learn("hospitals", yes=[DATA.texts[i] for i in yes], no=[DATA.texts[i] for i in no])
        assert report.n_background == 0
        with pytest.raises(DataError, match="give a pool"):
            tagger.learn_more("football", yes=[DATA.texts[3]], no=[DATA.texts[4]])
        report = tagger.learn_more("football", yes=[DATA.texts[3]], pool=DATA.texts)
        assert (report.n_yes, report.n_background, report.pool) == (5, (len(DATA.texts) - 5) // 2, "given")
    assert "hospitals" in Tagger.open(tmp_path / "small").label_names_


def test_hashing_and_functions_are_stored_or_brought_again(tmp_path: Path) -> None:
    texts, tags = DATA.texts[:150], DATA.tags[:150]
    hashing = Tagger("hashing").fit(texts, tags)
    hashing.save(tmp_path / "hashing")
    again = Tagger.open(tmp_path / "hashing")
    assert names_of(again.suggest(DATA.unseen)) == names_of(hashing.suggest(DATA.unseen))
    own = Tagger(TfidfVectorizer(min_df=3)).fit(texts, tags)
    own.save(tmp_path / "own")
    with pytest.raises(DataError, match=r"TfidfVectorizer.*pass it again"):
        Tagger.open(tmp_path / "own", "a")
    with Tagger.open(tmp_path / "own", "a", vectorizer=own.vectorizer_) as tagger:
        assert tagger.learn(NEW[0], yes=[texts[0]]).n_background == 74
        assert names_of(tagger.suggest(DATA.unseen[:5], k=3))


def test_no_text_is_written(path: Path) -> None:
    words = DATA.texts[0][:40].encode()
    for file in path.rglob("*"):
        assert not file.is_file() or words not in file.read_bytes()


def test_other_directories_are_refused(fitted: Tagger, tmp_path: Path) -> None:
    ModelStore.create(tmp_path / "model", fitted.classifier_).close()
    with pytest.raises(DataError, match="a model without texts"):
        Tagger.open(tmp_path / "model")
    with pytest.raises(NotFoundError):
        Tagger.open(tmp_path / "nowhere")
