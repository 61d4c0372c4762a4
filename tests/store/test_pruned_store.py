"""A pruned model in a store: the same bits as in memory, small, checked, and able to grow."""

from __future__ import annotations

import copy
import os
from pathlib import Path

import numpy as np
import pytest

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.data.synthetic import make_twin
from streamlabel.errors import DataError
from streamlabel.store import classifiers as stored


@pytest.fixture
def data():
    twin = make_twin(600, 400, 90, features_per_row=20, labels_per_row=4.0)
    return twin.X.astype(np.float64), twin.Y


@pytest.fixture
def model(data):
    X, Y = data
    return StreamingLabelClassifier(dictionary=30, metric=None, loss="squared", prune=12).fit(X, Y[:, :80])


def test_the_store_gives_the_scores_of_the_model(tmp_path: Path, data, model) -> None:
    X, _ = data
    with ModelStore.create(tmp_path / "m", model) as store:
        assert list(tmp_path.glob("m/V-*.csr"))
        assert not list(tmp_path.glob("m/W-*.f32"))
        for rows in (X[:40], X[:40].toarray()):
            assert np.array_equal(store.scores(rows), model.decision_function(rows))
            for mine, its in zip(store.predict_top_k(rows, 3), model.predict_top_k(rows, 3), strict=True):
                assert np.array_equal(mine, its)
        assert store.verify() == []
        assert (store.model().prune, store.model().state_.least) == (12, model.state_.least)


def test_labels_arrive_as_in_memory_and_the_old_stay_the_same_bits(tmp_path: Path, data, model, monkeypatch) -> None:
    X, Y = data
    monkeypatch.setattr(stored, "WIDTH", 16)
    with ModelStore.create(tmp_path / "m", model) as store:
        before = store.scores(X)
        store.add_labels(None, Y[:, [80]], ["new"])
        store.add_labels(X[:300], Y[:300, [81]], ["newer"])
        model.add_labels(X, Y[:, [80]], ["new"]).add_labels(X[:300], Y[:300, [81]], ["newer"])
        after = store.scores(X)
        assert np.array_equal(after[:, :80], before)
        np.testing.assert_allclose(after, model.decision_function(X), atol=1e-6)
        assert np.array_equal(store.model().state_.classifiers.scores(X, np.array([81, 2])), after[:, [81, 2]])
    again = ModelStore.open(tmp_path / "m")
    assert np.array_equal(again.scores(X), after)
    assert np.array_equal(again.predict_top_k(X, 3)[0], np.argsort(-after, axis=1, kind="stable")[:, :3])


def test_readers_keep_their_revision_while_labels_arrive(tmp_path: Path, data, model) -> None:
    X, Y = data
    with ModelStore.create(tmp_path / "m", model) as store:
        held, names = store.model(), store.label_names
        before = held.decision_function(X)
        for column in range(80, 84):
            store.add_labels(None, Y[:, [column]], [f"new {column}"])
        assert np.array_equal(held.decision_function(X), before)
        assert held.label_names_ == names == store.label_names[:80]
        assert store.label_names[80:] == ("new 80", "new 81", "new 82", "new 83")
        held.add_labels(X, Y[:, [88]], ["another"])  # it did not grow from the newest revision
        with pytest.raises(Exception, match="did not grow from"):
            store.append(held)


def test_retired_labels_leave_and_a_vacuum_gives_their_room_back(tmp_path: Path, data, model) -> None:
    X, _ = data
    with ModelStore.create(tmp_path / "m", model) as store:
        before = store.scores(X)
        store.retire(*store.label_names[10:20])
        store.vacuum()
        assert np.array_equal(store.scores(X), np.delete(before, np.arange(10, 20), axis=1))
        assert store.verify() == []
        assert store.model().state_.memory.few.max() < 70


def test_damage_is_found(tmp_path: Path, data, model) -> None:
    X, _ = data
    ModelStore.create(tmp_path / "m", model).close()
    (file,) = tmp_path.glob("m/V-*.csr")
    with open(file, "r+b") as content:
        content.seek(64 + 500)
        byte = content.read(1)
        content.seek(-1, os.SEEK_CUR)
        content.write(bytes([byte[0] ^ 1]))
    store = ModelStore.open(tmp_path / "m")
    with pytest.raises(DataError, match="checksum is wrong"):
        store.scores(X)
    assert len(store.verify()) == 1


def test_the_index_of_a_store_grows(tmp_path: Path, data, model) -> None:
    pytest.importorskip("faiss", reason="the extra ann is not installed")
    X, Y = data
    with ModelStore.create(tmp_path / "m", model) as store:
        found, _ = store.predict_top_k(X, 5, approximate=True)
        exact, _ = store.predict_top_k(X, 5)
        assert (found[:, :, None] == exact[:, None, :]).any(axis=2).mean() > 0.9
        index = store._index
        store.add_labels(None, Y[:, [80]], ["new"])
        store.predict_top_k(X[:3], approximate=True)
        assert store._index is index
        assert index.n_labels == 81


def test_what_is_made_of_a_stored_model_is_sparse_too(tmp_path: Path, data, model) -> None:
    X, _ = data
    with ModelStore.create(tmp_path / "m", model) as store:
        scores, names = store.scores(X), store.label_names
        assert np.array_equal(copy.deepcopy(store.model()).decision_function(X), scores)
        store.merge(names[:2], "both")
        assert not list(tmp_path.glob("m/W-*.f32"))
        n_yes = np.maximum([report.n_yes for report in model.reports_[:2]], 1)
        np.testing.assert_allclose(store.scores(X)[:, -1], scores[:, :2] @ n_yes / n_yes.sum(), atol=1e-6)
