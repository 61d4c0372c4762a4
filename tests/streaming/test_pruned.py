"""Pruned models: what they keep is the largest of what an ordinary fit learns; what grows does not change the old."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.classifier.single_precision import SingleRidge
from streamlabel.data.synthetic import make_twin
from streamlabel.errors import ConvergenceWarning, DataError, MissingExtraError
from streamlabel.streaming import label_index, pruned
from streamlabel.streaming.blocks import SharedList, extended
from streamlabel.streaming.calibration import decide, decide_blocks
from streamlabel.streaming.label_index import LabelIndex, scores_at
from streamlabel.streaming.pruned import SparseBlocks, largest

SHAPES = pytest.mark.parametrize("shape", [(600, 150, 90), (200, 400, 90)], ids=["by features", "by rows"])


def twin(shape=(600, 300, 90)):
    data = make_twin(*shape, features_per_row=min(20, shape[1] // 2), labels_per_row=4.0)
    return data.X.astype(np.float64), data.Y


def fitted(X, Y, **parameters):
    return StreamingLabelClassifier(dictionary=30, metric=None, loss="squared", **parameters).fit(X, Y)


@SHAPES
def test_all_weights_are_those_of_an_ordinary_fit(shape) -> None:
    X, Y = twin(shape)
    plain = fitted(X, Y, beta=2.0)
    all_of_them = fitted(X, Y, beta=2.0, prune=shape[1])
    np.testing.assert_allclose(all_of_them.coef_, plain.coef_, atol=1e-5)
    np.testing.assert_allclose(all_of_them.intercept_, plain.intercept_, atol=1e-5)


@SHAPES
def test_the_largest_weights_stay_and_the_intercept_is_the_best_for_them(shape) -> None:
    X, Y = twin(shape)
    full, few = fitted(X, Y, beta=2.0).coef_, fitted(X, Y, beta=2.0, prune=20)
    kept, least = few.coef_ != 0.0, few.state_.least
    assert kept.mean(axis=0).sum() == pytest.approx(20, abs=0.5)
    assert (kept == (np.abs(full) >= least))[np.abs(np.abs(full) - least) > 1e-5].mean() > 0.99  # but of poor labels
    assert kept.sum(axis=1).min() >= 8
    np.testing.assert_allclose(few.coef_[kept], full[kept], atol=1e-5)
    np.testing.assert_allclose(few.decision_function(X).mean(axis=0), Y.mean(axis=0), atol=1e-9)


def test_a_classifier_is_the_sum_of_what_its_rows_have_in_it() -> None:
    X, Y = twin((120, 200, 30))
    inverse = np.linalg.inv(np.cov(X.toarray().T, bias=True) * 120 + 3.0 * np.eye(200))
    closed = inverse @ (X.toarray() - X.toarray().mean(axis=0)).T @ Y.toarray()
    np.testing.assert_allclose(SingleRidge(X, 3.0).influences().T @ Y.toarray(), closed, atol=1e-5)


def test_labels_that_arrive_are_pruned_too_and_old_scores_stay_the_same_bits() -> None:
    X, Y = twin()
    model = fitted(X, Y[:, :80], prune=12)
    before = model.decision_function(X), model.decision_function(X.toarray())
    model.add_labels(X, Y[:, [80, 81]], ["new", "newer"])
    model.add_labels(X, Y[:, [82]], ["few"], annotated=np.arange(0, 600, 2))
    assert np.array_equal(model.decision_function(X)[:, :80], before[0])
    assert np.array_equal(model.decision_function(X.toarray())[:, :80], before[1])
    new = np.abs(model.coef_[80:])
    assert ((new != 0.0).sum(axis=1) < 300).all()
    smallest = np.where(new > 0.0, new, np.inf).min(axis=1)
    assert ((smallest >= model.state_.least) | ((new != 0.0).sum(axis=1) == 8)).all()


def test_blocks_of_any_width_give_the_same_bits(monkeypatch) -> None:
    X, Y = twin()
    model = fitted(X, Y, prune=12)
    for rows in (X[:50], X[:50].toarray()):
        whole = model.decision_function(rows)
        best = model.predict_top_k(rows, 4)
        some = np.array([3, 88, 5])
        assert np.array_equal(model.state_.classifiers.scores(rows, some), whole[:, some])
        with monkeypatch.context() as patch:
            patch.setattr(pruned, "WIDTH", 7)
            narrow = SparseBlocks(300).appended(model.state_.classifiers.columns(np.arange(90)), model.intercept_)
            assert np.array_equal(narrow.scores(rows), whole)
        order = np.argsort(-whole, axis=1, kind="stable")[:, :4]
        assert np.array_equal(best[0], order)
        assert np.array_equal(best[1], np.take_along_axis(whole, order, axis=1))


def test_models_that_grew_apart_keep_their_own_labels(monkeypatch) -> None:
    monkeypatch.setattr(pruned, "WIDTH", 4)
    first, rows = SparseBlocks(3).appended(np.eye(3), np.zeros(3)), sparse.csr_array(np.ones((1, 3)))
    assert first.scores(rows).tolist() == [[1.0, 1.0, 1.0]]
    one, other = (first.appended(value * np.ones((3, 1)), np.zeros(1)) for value in (2.0, 5.0))
    assert one.scores(rows).tolist() == [[1.0, 1.0, 1.0, 6.0]]
    assert other.scores(rows).tolist() == [[1.0, 1.0, 1.0, 15.0]]
    monkeypatch.setattr(SparseBlocks, "columns", None)  # what was asked for once is not made again
    assert first.scores(rows).tolist() == [[1.0, 1.0, 1.0]]


def test_auto_keeps_the_fewest_weights_that_lose_next_to_nothing() -> None:
    full = [50.0, 40.0, 30.0]
    assert pruned._choice({0: full, 8: [49.95, 39.0, 30.0], 16: [49.92, 40.1, 31.0], 32: full}) == 1
    with pytest.warns(ConvergenceWarning, match=r"even 16 weights a label lose 1\.00 points"):
        assert pruned._choice({0: [50.0, 40.0, 30.0], 8: [10.0, 10.0, 10.0], 16: [49.0, 40.0, 30.0]}) == 1
    X, Y = twin()
    model = fitted(X, Y, prune="auto")
    sizes = (model.coef_ != 0.0).sum(axis=1)
    assert min(abs(sizes.mean() - size) / size for size in pruned.CANDIDATES) < 0.2 or sizes.mean() > 250


def test_thresholds_by_blocks_are_those_of_all_at_once() -> None:
    rng = np.random.default_rng(0)
    truth = sparse.csr_array((rng.random((80, 40)) < 0.1).astype(np.float64))
    scores, levels = rng.standard_normal((80, 40)) + truth.toarray(), np.ones(40)
    whole = decide(scores, truth.toarray(), "f1", 0.5, levels)
    parts = decide_blocks(scores, truth, "f1", levels)
    np.testing.assert_allclose(parts.thresholds, whole.thresholds)
    some = truth.sum(axis=0) > 0
    np.testing.assert_allclose(parts.slope[some], whole.slope[some], rtol=1e-3)


@pytest.mark.parametrize("given", [{"prune": 0}, {"prune": "much"}, {"prune": 4, "start": "alternating"}])
def test_a_wrong_prune_is_refused(given) -> None:
    with pytest.raises(DataError, match="prune"):
        StreamingLabelClassifier(**given).fit(*twin((20, 10, 4)))


def test_what_a_pruned_model_cannot_do_is_said() -> None:
    X, Y = twin((60, 30, 6))
    with pytest.raises(DataError, match="not learned again"):
        fitted(X, Y, prune=4).update(X[:5], Y[:5])


def test_a_label_of_small_weights_keeps_a_few(monkeypatch) -> None:
    monkeypatch.setattr(pruned, "_FEWEST", 2)
    label, feature, values = largest(
        np.array([[1.0, -3.0, 2.0, 5.0], [0.1, -0.3, 0.2, 0.0], [0.0, 0.0, 0.0, 0.4]]), 2.0
    )
    assert list(zip(label, feature, strict=True)) == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (2, 3)]
    assert values.tolist() == np.float32([-3.0, 2.0, 5.0, -0.3, 0.2, 0.4]).tolist()


def test_a_vector_grows_behind_its_holders() -> None:
    first = extended(np.arange(3.0), [3.0])
    second = extended(first, [4.0, 5.0])
    assert second.base is first.base  # not copied
    other = extended(first, [9.0])  # somebody else wrote behind it
    assert other.base is not first.base
    same = extended(first, [4.0, 5.0])  # the same values are there
    assert same.base is first.base
    longer = extended(same, np.arange(100.0))
    assert [len(array) for array in (first, second, other, same, longer)] == [4, 6, 5, 6, 106]
    assert first.tolist() == [0, 1, 2, 3]
    assert second.tolist() == same.tolist() == [0, 1, 2, 3, 4, 5]
    assert other.tolist() == [0, 1, 2, 3, 9]
    assert longer.tolist() == [*range(6), *range(100)]


def test_a_list_is_shared_with_one_that_has_the_very_same_behind_it() -> None:
    first, word = SharedList.of(["a"]), "b"
    one, other, third = first.appended([word]), first.appended([word]), first.appended(["c"])
    assert one.starts_with(first)
    assert other.items() == ("a", "b")
    assert third.items() == ("a", "c")
    assert not third.starts_with(one)


def test_the_index_finds_most_of_the_best_and_scores_them_exactly() -> None:
    pytest.importorskip("faiss", reason="the extra ann is not installed")
    X, Y = twin()
    model = fitted(X, Y[:, :80], prune=12)
    exact, scores = model.predict_top_k(X, 5)
    found, seen = model.predict_top_k(X, 5, approximate=True)
    hits = found[:, :, None] == exact[:, None, :]
    assert hits.any(axis=2).mean() > 0.9
    rows, places, same = np.nonzero(hits)
    assert np.array_equal(seen[rows, places], scores[rows, same])


def test_the_index_grows_with_the_labels_and_knows_when_they_are_others() -> None:
    pytest.importorskip("faiss", reason="the extra ann is not installed")
    X, Y = twin()
    model = fitted(X, Y[:, :80], prune=12)
    model.predict_top_k(X[:5], approximate=True)
    index = model._index
    model.add_labels(X, Y[:, [81]], ["new"])
    found, _ = model.predict_top_k(X[Y[:, [81]].toarray().ravel() > 0], 10, approximate=True)
    assert model._index is index
    assert index.n_labels == 81
    assert (found == 80).any()
    other = fitted(X, Y[:, 5:85], prune=12)
    assert LabelIndex.of(other.state_.classifiers, index) is not index


@pytest.mark.parametrize("flat", [0, 20_000])
def test_the_index_gives_no_label_twice(monkeypatch, rng, flat) -> None:
    """A graph of labels that lie in one point need not lead to all of them."""
    pytest.importorskip("faiss", reason="the extra ann is not installed")
    monkeypatch.setattr(label_index, "FLAT", flat)
    for weights in (np.zeros((1000, 20)), np.vstack((rng.standard_normal((50, 20)), np.zeros((3000, 20))))):
        model = StreamingLabelClassifier.from_coef(weights, np.zeros(len(weights)))
        X = rng.standard_normal((40, 20))
        found, scores = model.predict_top_k(X, 5, approximate=True)
        assert all(len(set(row)) == 5 for row in found.tolist())
        assert np.isfinite(scores).all()
        few = np.take_along_axis(model.decision_function(X), found, axis=1)
        np.testing.assert_allclose(scores, few, atol=1e-12)


@pytest.mark.parametrize("flat", [0, 20_000])
def test_the_index_knows_labels_by_their_weights_and_is_made_anew_when_they_double(monkeypatch, rng, flat) -> None:
    pytest.importorskip("faiss", reason="the extra ann is not installed")
    monkeypatch.setattr(label_index, "FLAT", flat)
    weights = np.zeros((400, 300))
    weights[:, :100] = rng.standard_normal((400, 100))
    known = StreamingLabelClassifier.from_coef(weights, np.zeros(400)).state_.classifiers
    index = LabelIndex.of(known)
    assert LabelIndex.of(known, index) is index
    other = StreamingLabelClassifier.from_coef(-weights, np.zeros(400)).state_.classifiers  # of the same intercepts
    assert LabelIndex.of(other, index) is not index
    elsewhere = np.zeros((300, 200))
    elsewhere[200:] = rng.standard_normal((100, 200))  # in directions that the first labels do not have
    X = rng.standard_normal((100, 300))
    for _ in range(2):  # twice as many at the end
        known = known.appended(elsewhere, np.zeros(200))
        index = LabelIndex.of(known, index)
    found = index.top_labels(known, X, 5)[0]
    best = np.argsort(-known.scores(X), axis=1, kind="stable")[:, :5]
    assert (found[:, :, None] == best[:, None, :]).any(axis=2).mean() > 0.9
    assert LabelIndex.of(known.empty().appended(weights.T, np.zeros(400)), index).n_labels == 400


def test_the_index_finds_labels_that_lie_in_clusters(rng) -> None:
    pytest.importorskip("faiss", reason="the extra ann is not installed")
    middles = rng.standard_normal((20, 100))
    weights = middles[rng.integers(0, 20, 3000)] + 0.2 * rng.standard_normal((3000, 100))
    model = StreamingLabelClassifier.from_coef(weights, 0.1 * rng.standard_normal(3000))
    X = rng.standard_normal((100, 100))
    exact, found = (model.predict_top_k(X, 5, approximate=way)[0] for way in (False, True))
    assert (found[:, :, None] == exact[:, None, :]).any(axis=2).mean() > 0.99


def test_chosen_scores_are_the_same_bits_of_dense_models_too() -> None:
    X, Y = twin()
    classifiers = fitted(X, Y).state_.classifiers
    labels = np.random.default_rng(0).integers(0, 90, (600, 3))
    assert np.array_equal(scores_at(classifiers, X, labels), np.take_along_axis(classifiers.scores(X), labels, axis=1))


def test_without_the_package_the_message_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    X, Y = twin((60, 30, 6))
    with pytest.raises(MissingExtraError, match=r"approximate=True needs the package faiss: .*ann"):
        fitted(X, Y, prune=4).predict_top_k(X, approximate=True)
    assert label_index.CANDIDATES
