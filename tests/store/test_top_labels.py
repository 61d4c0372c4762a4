"""The best labels in blocks against a stable sort of all scores at once, in memory and from a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.errors import DataError
from streamlabel.store import predict as module
from streamlabel.store.predict import labels_above, top_labels
from streamlabel.streaming.blocks import ClassifierBlocks


def blocks(n_labels: int, n_features: int = 12, *, whole: bool = False) -> ClassifierBlocks:
    """Classifiers; whole numbers make ties."""
    rng = np.random.default_rng(n_labels)
    draw = rng.integers(-1, 2, (n_features, n_labels)).astype(float)
    weights = draw if whole else rng.standard_normal((n_features, n_labels))
    return ClassifierBlocks(n_features).appended(
        weights, np.zeros(n_labels) if whole else rng.standard_normal(n_labels)
    )


def rows(n_rows: int = 40, n_features: int = 12, *, whole: bool = False) -> np.ndarray:
    rng = np.random.default_rng(1)
    X = rng.integers(-1, 2, (n_rows, n_features)).astype(float) if whole else rng.standard_normal((n_rows, n_features))
    X[3] = 0.0
    return X


@pytest.mark.parametrize("n_labels", [1, 5, 63, 64, 65, 200, 700])
@pytest.mark.parametrize("k", [1, 5, 64, 150])
@pytest.mark.parametrize("whole", [False, True])
def test_it_is_a_stable_sort_of_all_scores(n_labels: int, k: int, whole: bool) -> None:
    classifiers, X = blocks(n_labels, whole=whole), rows(whole=whole)
    scores = classifiers.scores(X)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    labels, values = top_labels(classifiers, X, k)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, expected, axis=1))


def test_scores_that_rise_with_every_label_are_sorted_in_before_they_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 70)
    classifiers = ClassifierBlocks(1).appended(np.arange(1000.0)[None, :], np.zeros(1000))
    labels, _ = top_labels(classifiers, np.array([[1.0], [-1.0], [0.0]]), 3)
    assert labels.tolist() == [[999, 998, 997], [0, 1, 2], [0, 1, 2]]


def test_no_rows_give_no_rows_and_k_must_be_a_count() -> None:
    labels, values = top_labels(blocks(5), np.empty((0, 12)), 2)
    assert labels.shape == values.shape == (0, 2)
    with pytest.raises(DataError, match="k is 0"):
        top_labels(blocks(5), rows(), 0)


@pytest.mark.parametrize("n_labels", [5, 130])
def test_labels_above_their_thresholds(n_labels: int) -> None:
    classifiers, X = blocks(n_labels), rows()
    scores, thresholds = classifiers.scores(X), np.linspace(-1.0, 3.0, n_labels)
    found_rows, labels, values = labels_above(classifiers, X, thresholds)
    mask = np.zeros(scores.shape, dtype=bool)
    mask[found_rows, labels] = True
    np.testing.assert_array_equal(mask, scores > thresholds)
    np.testing.assert_array_equal(values, scores[found_rows, labels])
    assert all((np.diff(values[found_rows == row]) <= 0).all() for row in range(len(X)))


@pytest.mark.parametrize("n_features", [12, 5000])
def test_a_stored_model_gives_the_same_bits_also_after_labels_left(tmp_path: Path, n_features: int) -> None:
    rng = np.random.default_rng(0)
    coef = rng.standard_normal((200, n_features)) * (rng.random((200, n_features)) < (0.1 if n_features > 12 else 1.0))
    with ModelStore.create(tmp_path / "m", StreamingLabelClassifier.from_coef(coef, rng.random(200))) as store:
        store.retire("label_3", "label_70", "label_199")
        X = sparse.random_array((30, n_features), density=0.2, rng=rng, format="csr")
        scores = store.scores(X)
        model = store.model()
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    labels, values = top_labels(model.state_.classifiers, X, 5)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, expected, axis=1))


def test_labels_that_are_not_stored_yet_come_behind_the_stored_ones(tmp_path: Path) -> None:
    X = rows(60)
    model = StreamingLabelClassifier.from_coef(np.eye(3, 12), np.zeros(3))
    with ModelStore.create(tmp_path / "m", model) as store:
        grown = store.model()
    grown.add_labels(X, (X[:, 5] > 0).astype(int), ["new"])
    labels, values = top_labels(grown.state_.classifiers, X, 4)
    scores = grown.decision_function(X)
    np.testing.assert_array_equal(labels, np.argsort(-scores, axis=1, kind="stable"))
    np.testing.assert_array_equal(np.sort(values, axis=1), np.sort(scores, axis=1))


def test_sparse_rows_have_the_same_scores_in_wide_blocks(tmp_path: Path) -> None:
    """To the bit: those of one product with all weights, and of some labels in narrow blocks; also when labels went."""
    rng = np.random.default_rng(0)
    names = [f"label {number}" for number in range(1300)]
    model = StreamingLabelClassifier.from_coef(rng.standard_normal((1300, 9)), rng.standard_normal(1300), names)
    some = sparse.random_array((7, 9), density=0.5, rng=rng, format="csr")
    with ModelStore.create(tmp_path / "model", model) as store:
        for retired, sizes in ((None, [16, 4, 1]), (100, [1, 1, 16, 2, 1]), (700, [1, 1, 8, 1, 8, 1, 1])):
            if retired is not None:
                store.retire(names[retired])
            found = ModelStore.open(tmp_path / "model").model(learning=False).state_.classifiers
            assert [size for (_, size), *_ in found._groups] == sizes
            scores, numbers = found.scores(some), np.arange(found.n_labels)
            np.testing.assert_array_equal(scores, some @ found.weights() + found.intercept)
            np.testing.assert_array_equal(scores[:, 690:710], found.scores(some, numbers[690:710]))
            np.testing.assert_array_equal(scores[:, ::-1][:, :900], found.scores(some, numbers[::-1][:900]))


def test_full_blocks_of_all_segments_are_met_at_once_and_lie_in_memory_once(tmp_path: Path) -> None:
    """Segments double; the scores are those of one product to the bit, also while the blocks become more."""
    rng = np.random.default_rng(1)
    model = StreamingLabelClassifier.from_coef(rng.standard_normal((60, 9)), rng.standard_normal(60))
    some, X = sparse.random_array((7, 9), density=0.5, rng=rng, format="csr"), rng.standard_normal((30, 9))
    with ModelStore.create(tmp_path / "model", model) as store:
        reader = ModelStore.open(tmp_path / "model")
        for number in range(10):
            answers = (X @ rng.standard_normal((9, 70)) > 0).astype(int)
            store.add_labels(X, answers, [f"{number} {j}" for j in range(70)])
            reader.refresh()
            found = reader.model(learning=False).state_.classifiers
            scores = found.scores(some)
            np.testing.assert_array_equal(scores, some @ found.weights() + found.intercept)
            blocks = -(-found.n_labels // 64)
            assert len(found._groups) <= blocks.bit_length() + 1
            kept = found._cache._blocks
            assert sum(block.nbytes for _, block in kept.values()) == 8 * 9 * 64 * blocks
    assert len(reader._snapshot.segments) > 2
