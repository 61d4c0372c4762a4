"""Every change can be seen, compared and undone; ids are never used again."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from streamlabel import ModelStore
from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.store.history import LabelChange


@pytest.fixture
def store(stored):
    with ModelStore.open(stored, "a", actor="ann") as store:
        yield store


def test_a_renamed_label_is_the_same_label(store, problem):
    before = store.scores(problem.unseen)
    assert store.rename("first", "primus") == 4
    assert store.label_names[6] == "primus"
    assert np.array_equal(store.scores(problem.unseen), before)
    assert store.labels()[6].id == 7
    assert store.diff(3) == [LabelChange(7, "renamed", "first", "primus")]
    assert ModelStore.open(store.path, revision=3).label_names[6] == "first"
    with pytest.raises(ConflictError, match="taken"):
        store.rename("primus", "second")
    with pytest.raises(NotFoundError, match="first"):
        store.rename("first", "x")
    assert store.revision == 4


def test_a_retired_label_leaves_the_others_alone(store, problem):
    before = store.scores(problem.unseen)
    store.retire("known 2", "first")
    kept = [0, 1, 3, 4, 5, 7]
    assert np.array_equal(store.scores(problem.unseen), before[:, kept])
    model = store.model()
    assert np.array_equal(model.decision_function(problem.unseen), before[:, kept])
    assert "first" not in dict(model.neighbours("second", k=9))
    store.add_labels(None, problem.Y[:, 8], ["first"])
    assert [record.id for record in store.labels()] == [1, 2, 4, 5, 6, 8, 9]
    with pytest.raises(DataError, match="at least one"):
        store.retire(*store.label_names)


def test_learning_goes_on_without_the_retired(store, problem):
    """As in a model that never had them: the rows and answers of the others are all that counts."""
    store.retire("known 0", "known 3", "first", "second")
    store.add_labels(None, problem.Y[:, 9], ["later"])
    names = [f"known {j}" for j in (1, 2, 4, 5)]
    fresh = problem.fitted().fit(problem.X, problem.Y[:, [1, 2, 4, 5]], names)
    assert store.label_names == (*names, "later")
    beta = store.labels()[-1].beta
    weights = Ridge(alpha=beta).fit(problem.X, problem.Y[:, 9])
    fresh.add_labels(problem.X, problem.Y[:, 9], ["later"])
    assert store.model().state_.memory.labels.shape == (240, 4)
    assert np.abs(store.scores(problem.X)[:, -1] - weights.predict(problem.X)).max() < 0.5
    assert {name for name, _ in store.model().neighbours("later", 9)} <= set(names)


def test_one_label_goes_back(store, problem):
    before = store.scores(problem.unseen)
    store.rename("first", "primus")
    store.rollback(label="primus")
    assert store.label_names[6] == "first"
    store.retire("second")
    store.rollback(label="second")
    assert np.array_equal(store.scores(problem.unseen), before)
    store.rollback(2, label="second")
    assert "second" not in store.label_names
    store.rollback(label="first")
    assert store.label_names[6] == "primus"  # the last change of the label was to be "first" again
    with pytest.raises(DataError, match="has not changed"):
        store.rollback(label="known 0")
    with pytest.raises(NotFoundError, match="ever called"):
        store.rollback(label="nobody")
    with pytest.raises(DataError, match="say where"):
        store.rollback()


def test_a_name_that_was_given_away_is_not_taken_back(store, problem):
    store.retire("first")
    store.add_labels(None, problem.Y[:, 8], ["first"])
    store.rename("second", "x")
    store.rename("first", "second")
    with pytest.raises(ConflictError, match="rename that one first"):
        store.rollback(label="x")


def test_the_whole_model_goes_back(store, problem):
    before = store.scores(problem.unseen)
    store.put_part("notes", {"v": 1})
    store.retire("known 1")
    store.rename("first", "x")
    store.add_labels(None, problem.Y[:, 8], ["y"])
    store.put_part("notes", {"v": 2})
    assert store.rollback(4) == 9
    assert np.array_equal(store.scores(problem.unseen), before)
    assert store.get_part("notes").content == {"v": 1}
    assert store.diff(3, 9) == []
    store.rollback(8)
    assert store.get_part("notes").content == {"v": 2}
    assert store.label_names[-1] == "y"
    with pytest.raises(NotFoundError, match="there are 1 to 10"):
        store.rollback(11)


def test_thresholds_are_versions_too(store, problem):
    store.set_threshold("first", -5.0)
    assert store.model().thresholds_[6] == -5.0
    assert store.model().predict(problem.unseen)[:, 6].all()
    (change,) = store.diff(3)
    assert (change.kind, change.after) == ("threshold", "-5")
    store.set_threshold("first", float("inf"))
    assert not store.model().predict(problem.unseen)[:, 6].any()
    store.rollback(3)
    assert store.diff(3) == []
    with pytest.raises(DataError, match="not a number"):
        store.set_threshold("first", float("nan"))


def test_history_says_who_did_what(store):
    store.rename("first", "primus")
    newest, *_, oldest = store.history()
    assert (newest.number, newest.actor, newest.action) == (4, "ann", "rename")
    assert newest.detail == {"label": "first", "to": "primus"}
    assert (oldest.number, oldest.action) == (1, "create")
    assert [revision.number for revision in store.history("primus")] == [4, 2]
    assert [revision.at for revision in store.history()] == sorted((r.at for r in store.history()), reverse=True)


def test_merged_labels_are_learned_from_all_their_answers(store, problem):
    union = problem.Y[:, 1] | problem.Y[:, 6]
    store.merge(["known 1", "first"], "either")
    assert store.history()[0].detail["how"] == "relearned"
    record = store.labels()[-1]
    assert (record.name, record.id, record.origin) == ("either", 9, "merged")
    assert (record.n_yes, record.n_no) == (union.sum(), 240 - union.sum())
    assert not {"known 1", "first"} & set(store.label_names)
    scores = store.scores(problem.X)[:, -1]
    right = Ridge(alpha=record.beta).fit(problem.X, union).predict(problem.X)
    assert np.corrcoef(scores, right)[0, 1] > 0.95
    store.rollback(3)
    assert "first" in store.label_names


def test_labels_without_answers_are_averaged(store, problem):
    scores = store.scores(problem.unseen)
    counts = np.array([store.labels()[column].n_yes for column in (1, 7)])
    store.merge(["known 1", "second"], "second")
    assert store.history()[0].detail["how"] == "averaged"
    np.testing.assert_allclose(
        store.scores(problem.unseen)[:, -1], scores[:, [1, 7]] @ counts / counts.sum(), atol=1e-6
    )
    with pytest.raises(ConflictError):
        store.merge(["known 0", "known 2"], "second")
    store.set_threshold("second", -np.inf)
    store.set_threshold("known 2", np.inf)
    store.merge(["second", "known 2", "known 3"], "third")
    assert store.history()[0].detail["how"] == "averaged"
    assert np.isfinite(store.model().thresholds_).all()
    with pytest.raises(DataError, match="at least two"):
        store.merge(["known 0"], "x")


def test_vacuum_gives_room_back_and_keeps_what_is_there(problem, path):
    with ModelStore.create(path, problem.fitted(), keep_rows=False) as store:
        for number in range(4):
            store.add_labels(problem.X, problem.Y[:, [6] * 50], [f"{number} {j}" for j in range(50)])
        store.put_part("notes", {}, {"x": np.arange(1000)})
        store.put_part("notes", {}, {"x": np.arange(10)})
        store.retire(*(name for name in store.label_names if name.startswith(("0", "2"))))
        before, files, revision = store.scores(problem.unseen), set(path.iterdir()), store.revision
        assert store.vacuum() > 0
        assert np.array_equal(store.scores(problem.unseen), before)
        assert len(list(path.iterdir())) < len(files)
        assert store.get_part("notes").arrays["x"].shape == (10,)
        with pytest.raises(NotFoundError):
            store.rollback(revision)
        store.add_labels(problem.X, problem.Y[:, 7], ["more"])
        assert store.labels()[-1].id == 207
    assert np.array_equal(ModelStore.open(path).scores(problem.unseen)[:, :-1], before)
    assert ModelStore.doctor(path) == []


def test_vacuum_can_keep_some_history(store, problem):
    store.retire("known 0")
    store.retire("known 1")
    store.vacuum(keep_from=4)
    assert ModelStore.open(store.path, revision=4).label_names[0] == "known 1"
    store.rollback(4)
    assert store.label_names[0] == "known 1"
    with pytest.raises(NotFoundError):
        ModelStore.open(store.path, revision=3)


def test_the_threshold_that_a_label_was_learned_with_outlives_a_vacuum(store):
    """Read from what is said about this label alone, and refused where that was written to."""
    learned = store.labels()[-1]
    store.set_threshold("first", 0.25)
    store.vacuum()
    store.set_threshold("second", 0.5)
    moved = store.labels()[-1]
    assert (moved.threshold, store.learned_threshold(moved)) == (0.5, learned.threshold)
    path, label = store.path, moved.id
    store.close()
    with closing(sqlite3.connect(path / "catalogue.db")) as connection:
        connection.execute("UPDATE version SET threshold = 7 WHERE label = ? AND retired IS NOT NULL", (label,))
        connection.commit()
    with pytest.raises(DataError, match="'second': what is said about it in revision 3 was written to"):
        ModelStore.open(path).learned_threshold(moved)
