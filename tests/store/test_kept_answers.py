"""Answers beside a label on the disk: they stay with its classifier through renaming, roll-back and vacuum."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from streamlabel import ModelStore, StreamingLabelClassifier, Tagger
from streamlabel.errors import ConflictError, DataError
from streamlabel.store.parts import ANSWERS
from tagged_texts import tagged_texts

DATA = tagged_texts()
ALL = 1000
YES = DATA.rows["football"]


@pytest.fixture(scope="module")
def fitted() -> Tagger:
    tagger = Tagger().fit(DATA.texts, DATA.tags)
    tagger.learn("football", yes=YES[:3], no=["Nothing"], about="goals")
    return tagger


@pytest.fixture
def path(fitted: Tagger, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "tags")
    return tmp_path / "tags"


def parts(path: Path) -> set[str]:
    return {name for name in ModelStore.open(path).parts() if name.startswith(ANSWERS)}


def n_answers(path: Path, label: str = "football") -> int:
    """How many answers a label has, by one more."""
    with Tagger.open(path, "a") as tagger:
        report = tagger.in_memory().learn_more(label, no=[DATA.unseen[0]])
    return report.n_yes + report.n_no - 1


def test_a_tagger_that_learned_in_memory_is_saved_with_its_answers(fitted: Tagger, path: Path) -> None:
    assert len(parts(path)) == 1
    assert n_answers(path) == 4
    assert Tagger.open(path).estimate("football") == fitted.estimate("football")
    here = fitted.in_memory()
    expected = here.learn_more("football", yes=YES[3:5])
    with Tagger.open(path, "a") as tagger:
        report = tagger.learn_more("football", yes=YES[3:5])
    assert (report.n_yes, report.n_no, report.n_background) == (5, 1, expected.n_background)
    assert report.threshold == pytest.approx(expected.threshold, abs=1e-4)
    ours, theirs = (
        [dict(row)["football"] for row in one.suggest(DATA.unseen, k=ALL)] for one in (here, Tagger.open(path))
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def without(rows: list, *names: str) -> list:
    return [[pair for pair in row if pair[0] not in names] for row in rows]


def test_answers_survive_saving_elsewhere_and_reopening(path: Path, tmp_path: Path) -> None:
    with Tagger.open(path, "a") as tagger:
        tagger.learn("railways", yes=DATA.rows["railways"][:2])
        before = tagger.suggest(DATA.unseen, k=ALL)
        tagger.answer("railways", DATA.unseen[1], yes=False)
        after = tagger.suggest(DATA.unseen, k=ALL)
        assert after != before
        assert without(after, "railways") == without(before, "railways")
    assert Tagger.open(path).suggest(DATA.unseen, k=ALL) == after
    with Tagger.open(path, "a") as tagger:
        tagger.save(tmp_path / "copy")
    for where in (path, tmp_path / "copy"):
        assert (n_answers(where), n_answers(where, "railways")) == (4, 3)
        assert Tagger.open(where).estimate("railways").n_asked == 1


def test_answers_follow_a_label_through_its_life(path: Path) -> None:
    with Tagger.open(path, "a") as tagger:
        tagger.store.rename("football", "soccer")
    assert n_answers(path, "soccer") == 4
    with Tagger.open(path, "a") as tagger:
        tagger.learn_more("soccer", yes=YES[3:6])
        assert tagger.store.revision == 3
    assert n_answers(path, "soccer") == 7
    with ModelStore.open(path, "a") as store:
        store.rollback(label="soccer")
    assert n_answers(path, "soccer") == 4
    with ModelStore.open(path, "a") as store:
        store.rollback(3)
    assert n_answers(path, "soccer") == 7
    with ModelStore.open(path, "a") as store:
        store.retire("soccer")
        store.rollback(label="soccer")
    assert n_answers(path, "soccer") == 7
    with ModelStore.open(path, "a") as store:
        store.rollback(1)
    assert n_answers(path, "football") == 4
    assert ModelStore.doctor(path) == []


def test_a_vacuum_takes_the_answers_of_what_it_forgets(path: Path) -> None:
    with Tagger.open(path, "a") as tagger:
        tagger.learn("railways", yes=DATA.rows["railways"][:2])
        tagger.learn_more("football", yes=YES[3:6])
        tagger.store.retire("railways")
        tagger.store.vacuum(keep_from=3)
        assert len(parts(path)) == 2  # the first version of football is in no revision that is left
        assert ModelStore.open(path, revision=3).verify() == []
        tagger.store.vacuum()
    assert len(parts(path)) == 1
    with sqlite3.connect(path / "catalogue.db") as connection:
        kept = connection.execute("SELECT name FROM part WHERE name LIKE 'answers-%'").fetchall()
    connection.close()
    assert {name for (name,) in kept} == parts(path)
    assert n_answers(path) == 7
    assert ModelStore.doctor(path) == []


@pytest.mark.parametrize("label", ["railways", "football"])
def test_a_label_without_its_answers_is_never_written(path: Path, monkeypatch: pytest.MonkeyPatch, label: str) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("out of luck")

    for module in ("append", "changes"):
        monkeypatch.setattr(f"streamlabel.store.{module}.write_beside", fail)
    with Tagger.open(path, "a") as tagger:
        before = tagger.suggest(DATA.unseen[:5], k=ALL)
        with pytest.raises(RuntimeError):
            (tagger.learn_more if label == "football" else tagger.learn)(label, yes=DATA.rows[label][:2])
        assert tagger.suggest(DATA.unseen[:5], k=ALL) == before
    monkeypatch.undo()
    assert Tagger.open(path).suggest(DATA.unseen[:5], k=ALL) == before
    assert n_answers(path) == 4
    assert ModelStore.doctor(path) == []


def test_no_text_of_an_answer_is_written(path: Path) -> None:
    with Tagger.open(path, "a") as tagger:
        tagger.learn("railways", yes=[f"{DATA.unseen[0]} zebrafoo"], no=["zebrafoo said nothing"])
    for file in path.rglob("*"):
        assert not file.is_file() or b"zebrafoo" not in file.read_bytes()


def test_parts_of_answers_are_the_packages_own(path: Path) -> None:
    with ModelStore.open(path, "a") as store, pytest.raises(ConflictError, match="is kept for what a model itself"):
        store.put_part(f"{ANSWERS}7", {})


def test_damaged_answers_are_told_and_do_not_keep_from_scoring(path: Path) -> None:
    (name,) = parts(path)
    with sqlite3.connect(path / "catalogue.db") as connection:
        connection.execute("UPDATE part SET content = replace(content, 'goals', 'gaols') WHERE name = ?", (name,))
    connection.close()
    assert len(Tagger.open(path).suggest(DATA.unseen[0], k=ALL)) == len(Tagger.open(path).label_names_)
    with Tagger.open(path, "a") as tagger, pytest.raises(DataError):
        tagger.learn_more("football", yes=YES[3:4])
    assert any(name in finding.problem or name in finding.where for finding in ModelStore.doctor(path))


def test_a_fixed_threshold_that_is_never_reached_is_stored(tmp_path: Path) -> None:
    """Its precision is not known: that is no number, and JSON has none."""
    tagger = Tagger(classifier=StreamingLabelClassifier(threshold=9.0)).fit(DATA.texts, DATA.tags)
    tagger.save(tmp_path / "high")
    with Tagger.open(tmp_path / "high", "a") as living:
        assert living.learn("football", yes=YES[:3]).fires[0] == 0
    assert np.isnan(Tagger.open(tmp_path / "high").estimate("football").precision).all()
