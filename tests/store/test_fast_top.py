"""Labels that were found in float32 are those of a stable sort of all scores in float64, with the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.store import predict as fast_top
from streamlabel.store.classifiers import StoredClassifiers
from streamlabel.store.predict import fast_top_labels, predict_rows, rows_within


def make_store(path: Path, coef: np.ndarray, intercept: np.ndarray) -> ModelStore:
    return ModelStore.create(path, StreamingLabelClassifier.from_coef(coef, intercept))


def classifiers_of(store: ModelStore) -> StoredClassifiers:
    found = store.model().state_.classifiers
    assert isinstance(found, StoredClassifiers)
    return found


def rows(n_rows: int, n_features: int, seed: int = 0) -> sparse.csr_array:
    X = sparse.random_array((n_rows, n_features), density=0.3, rng=np.random.default_rng(seed)).toarray()
    X[2] = 0.0
    return sparse.csr_array(X)


def check(store: ModelStore, X: sparse.csr_array, k: int) -> None:
    scores = store.scores(X)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    labels, values = fast_top_labels(classifiers_of(store), X, k)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, expected, axis=1))


@pytest.mark.parametrize("n_labels", [3, 8, 64, 65, 300])
@pytest.mark.parametrize("k", [1, 5, 100])
def test_it_is_a_stable_sort_of_all_scores(tmp_path: Path, n_labels: int, k: int) -> None:
    rng = np.random.default_rng(n_labels)
    with make_store(tmp_path / "m", rng.standard_normal((n_labels, 40)), rng.standard_normal(n_labels)) as store:
        check(store, rows(50, 40), min(k, n_labels))


def test_segments_and_labels_out_of_order_do_not_matter(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with make_store(tmp_path / "m", rng.standard_normal((130, 20)), rng.standard_normal(130)) as store:
        X = rows(60, 20)
        for number in range(6):
            store.add_labels(X, (rng.random(60) < 0.5).astype(int), [f"new {number}"])
        store.retire("label_4", "label_77", "new 2")
        store.rollback(label="label_4")
        assert len(store._snapshot.segments) > 1
        check(store, X, 5)
        check(store, X, 1)


def test_rows_that_float32_cannot_part_are_done_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[int] = []
    exact = fast_top.top_labels

    def count(classifiers: StoredClassifiers, X: sparse.csr_array, k: int) -> object:
        again.append(X.shape[0])
        return exact(classifiers, X, k)

    monkeypatch.setattr(fast_top, "top_labels", count)
    rng = np.random.default_rng(0)
    coef = np.repeat(rng.standard_normal((20, 30)), 10, axis=0)  # every classifier ten times, but for the last bits
    coef *= 1.0 + rng.integers(0, 3, (200, 1)) * 2.0**-23
    with make_store(tmp_path / "ties", coef, np.zeros(200)) as store:
        check(store, rows(40, 30), 5)
    assert again == [40]
    again.clear()
    with make_store(tmp_path / "clear", rng.standard_normal((200, 30)), rng.standard_normal(200)) as store:
        check(store, rows(40, 30), 5)
    assert not again


@pytest.mark.parametrize("scale", [1e-30, 1e12, 1e30, 1e200])
def test_values_of_any_size(tmp_path: Path, scale: float) -> None:
    rng = np.random.default_rng(0)
    with make_store(tmp_path / "m", rng.standard_normal((100, 30)), rng.standard_normal(100)) as store:
        check(store, rows(20, 30) * scale, 5)


def test_sparse_classifiers_and_no_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    coef = rng.standard_normal((20, 5000)) * (rng.random((20, 5000)) < 0.05)
    with make_store(tmp_path / "m", coef, np.zeros(20)) as store:
        check(store, rows(10, 5000), 3)
    with make_store(tmp_path / "dense", rng.standard_normal((20, 30)), np.zeros(20)) as store:
        labels, scores = fast_top_labels(classifiers_of(store), rows(10, 30)[:0], 3)
        assert labels.shape == scores.shape == (0, 3)


@pytest.mark.parametrize("rows_per_block", [1, 7, 1000])
def test_rows_come_one_by_one_whatever_the_blocks(tmp_path: Path, rows_per_block: int) -> None:
    rng = np.random.default_rng(0)
    with make_store(tmp_path / "m", rng.standard_normal((100, 30)), rng.standard_normal(100)) as store:
        X, model = rows(25, 30), store.model()
        scores = store.scores(X)
        found = list(predict_rows(model, X, k=2, rows_per_block=rows_per_block))
        assert [row.labels.tolist() for row in found] == np.argsort(-scores, axis=1)[:, :2].tolist()
        yes = list(predict_rows(model, X, k=None, rows_per_block=rows_per_block))
        assert [set(row.labels) for row in yes] == [set(np.flatnonzero(row > 0)) for row in scores]
        dense = list(predict_rows(model, X.toarray(), k=2, rows_per_block=rows_per_block))
        assert [row.labels.tolist() for row in dense] == [row.labels.tolist() for row in found]


def test_memory_gives_the_number_of_rows() -> None:
    assert rows_within(0) == 1
    assert rows_within(100 << 20) > rows_within(10 << 20, 1000) > rows_within(10 << 20, 100_000) > 1
    assert rows_within(1 << 50) == rows_within(1 << 60)
