"""Answers beside a label on the disk: they stay with its classifier through renaming, roll-back and vacuum."""

from __future__ import annotations

import math
import shutil
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pytest

from streamlabel import ModelStore, StreamingLabelClassifier, Tagger
from streamlabel.errors import ConflictError, DataError
from streamlabel.store.parts import ANSWERS
from streamlabel.tagging.examples import LabelExamples
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


def told(path: Path, revision: int | None = None, label: str = "football") -> int:
    """How many answers a label has in a revision, by what is stored."""
    store = ModelStore.open(path, revision=revision)
    return len(LabelExamples.from_parts(store.beside(store.label_names.index(label)), store.n_features, path).answers)


def stored_answers(path: Path) -> int:
    """How many answers are written in all parts together, those written again counted again."""
    with sqlite3.connect(path / "catalogue.db") as connection:
        lengths = connection.execute(
            "SELECT json_array_length(content, '$.answers') FROM part WHERE name LIKE 'answers-%'"
        ).fetchall()
    connection.close()
    return sum(length for (length,) in lengths)


def answer_one_by_one(tagger: Tagger, texts: list[str]) -> None:
    for text in texts:
        tagger.answer("football", text, bool(DATA.truth["football"][DATA.unseen.index(text)]))


N_SINGLE = 40


@pytest.fixture(scope="module")
def answered(fitted: Tagger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Revision 1 has 4 answers, revision r has r + 3."""
    path = tmp_path_factory.mktemp("answered") / "tags"
    fitted.save(path)
    with Tagger.open(path, "a") as tagger:
        answer_one_by_one(tagger, DATA.unseen[:N_SINGLE])
    return path


@pytest.fixture
def many(answered: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(answered, tmp_path / "many"))


def test_single_answers_are_written_a_few_times_each_and_read_from_few_parts(fitted: Tagger, many: Path) -> None:
    here = fitted.in_memory()
    answer_one_by_one(here, DATA.unseen[:N_SINGLE])
    ours, theirs = (
        [dict(row)["football"] for row in one.suggest(DATA.unseen, k=ALL)] for one in (here, Tagger.open(many))
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    n = N_SINGLE + 4
    assert stored_answers(many) < n * math.log(n, 1.5)  # all of them with each would be 40 * 48 / 2
    store = ModelStore.open(many)
    assert len(store.beside(store.label_names.index("football"))) <= math.log2(n) + 1
    assert [told(many, revision) for revision in range(1, N_SINGLE + 2)] == list(range(4, n + 1))


def test_an_answer_that_is_taken_back_counts_across_parts(path: Path) -> None:
    again = DATA.unseen[0]
    with Tagger.open(path, "a") as tagger:
        for text in DATA.unseen[:6]:
            tagger.answer("football", text, True)
        report = tagger.answer("football", again, False)
        assert (report.n_yes, report.n_no) == (3 + 5, 1 + 1)
        assert tagger.estimate("football").n_asked == 6
    assert told(path) == 10


@pytest.mark.parametrize("keep_from", [N_SINGLE + 1, 25, 11])
def test_a_vacuum_keeps_every_part_that_a_revision_needs(many: Path, keep_from: int) -> None:
    with ModelStore.open(many, "a") as store:
        store.vacuum(keep_from=keep_from)
        store.vacuum(keep_from=keep_from)
    for revision in range(keep_from, N_SINGLE + 3):
        assert told(many, revision) == min(revision, N_SINGLE + 1) + 3
    assert ModelStore.doctor(many) == []
    with ModelStore.open(many, "a") as store:
        store.rollback(keep_from)
        store.vacuum()
    assert told(many) == keep_from + 3
    with Tagger.open(many, "a") as tagger:
        answer_one_by_one(tagger, DATA.unseen[N_SINGLE : N_SINGLE + 3])
    assert told(many) == keep_from + 6
    assert ModelStore.doctor(many) == []


def test_a_label_comes_back_with_all_answers_it_continues(many: Path) -> None:
    with ModelStore.open(many, "a") as store:
        store.rollback(1)
        assert told(many) == 4
        store.rollback(N_SINGLE, label="football")
        assert told(many) == N_SINGLE + 3
        store.rollback(20)
        store.vacuum()
    assert told(many) == 23
    assert ModelStore.doctor(many) == []


def test_a_vacuum_makes_the_catalogue_small_again(many: Path) -> None:
    def size() -> int:
        return sum(file.stat().st_size for file in many.iterdir())

    before, catalogue = size(), (many / "catalogue.db").stat().st_size
    with ModelStore.open(many, "a") as store:
        freed = store.vacuum()
        store.rename("football", "soccer")  # the writer goes on
        n_labels, bytes_a_row = len(store.label_names), 4 * store.n_features
    assert (many / "catalogue.db").stat().st_size < 0.8 * catalogue
    (rows,) = many.glob("W-*")
    assert rows.stat().st_size < (n_labels + 64) * bytes_a_row  # no room for the rows that went
    assert freed == pytest.approx(before - size(), abs=3 * 4096)


def damage(path: Path, classifier: int) -> None:
    with sqlite3.connect(path / "catalogue.db") as connection:
        connection.execute(
            "UPDATE part SET content = replace(content, 'about', 'abuot') WHERE name = ?", (f"{ANSWERS}{classifier}",)
        )
    connection.close()


def test_damaged_answers_concern_their_label_alone(path: Path) -> None:
    with Tagger.open(path, "a") as tagger:
        tagger.learn("railways", yes=DATA.rows["railways"][:2])
        tagger.answer("football", DATA.unseen[0], True)
        store = tagger.store
        first, last = (number for number, _ in store.beside(store.label_names.index("football")))
    damage(path, first)
    with Tagger.open(path, "a") as tagger:
        with pytest.raises(DataError, match="answers of label 'football' are damaged"):
            tagger.estimate("football")
        assert tagger.estimate("railways") is not None
        with pytest.warns(UserWarning, match="label 'football' are damaged.*goes on without") as warned:
            here = tagger.in_memory()
        assert len(warned) == 1
        assert here.learn_more("railways", yes=DATA.rows["railways"][2:3]).n_yes == 3
        with pytest.raises(ConflictError, match="are not kept"):
            here.learn_more("football", yes=YES[3:4])
        tagger.answer("railways", DATA.unseen[0], False)
    named = [finding.where for finding in ModelStore.doctor(path)]
    assert named == [f"part '{ANSWERS}{number}', answers of label 'football'" for number in (first, last)]
    assert any("'football'" in problem for problem in ModelStore.open(path).verify())
    assert all(finding.repaired for finding in ModelStore.doctor(path, repair=True))
    assert [finding.kind for finding in ModelStore.doctor(path)] == ["history"]
    with Tagger.open(path, "a") as tagger, warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger.in_memory()
        with pytest.raises(ConflictError, match="relearn"):
            tagger.learn_more("football", yes=YES[3:4])
        tagger.relearn("football", yes=YES[:4])
    assert told(path) == 4


def test_nothing_new_makes_no_revision(path: Path) -> None:
    with Tagger.open(path, "a") as tagger:
        with pytest.raises(DataError, match="nothing new about 'football'"):
            tagger.learn_more("football")
        assert tagger.store.revision == 1
        tagger.learn_more("football", pool=DATA.unseen)
        tagger.learn_more("football", about="kicking")
        assert tagger.store.revision == 3
    assert told(path) == 4


def scores_of(tagger: Tagger) -> np.ndarray:
    return tagger.classifier_.decision_function(tagger.vectorizer_.transform(DATA.unseen))


def test_a_label_that_is_learned_further_keeps_its_place_in_memory_as_in_a_store(path: Path) -> None:
    with Tagger.open(path, "a") as tagger:
        tagger.learn("railways", yes=DATA.rows["railways"][:2])
        here = tagger.in_memory()
        names, scores = here.label_names_, scores_of(here)
        for one in (here, tagger):
            one.learn_more("football", yes=YES[3:5])
            assert one.label_names_ == names
        place = names.index("football")
        after = scores_of(here)
        np.testing.assert_allclose(after, scores_of(tagger), atol=1e-4)
        others = np.delete(np.arange(len(names)), place)
        assert np.array_equal(after[:, others], scores[:, others])
        assert not np.array_equal(after[:, place], scores[:, place])
        here.learn_more("railways", yes=DATA.rows["railways"][2:4])
        assert here.label_names_ == names
