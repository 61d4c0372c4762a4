"""Labels of fit learned again in a store: one revision, as in memory, undone by a roll-back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.errors import ConflictError, DataError

NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture(params=[np.asarray, sparse.csr_array])
def case(request, rng):
    X = rng.standard_normal((260, 15)).astype(np.float32).astype(np.float64)
    Y = (X @ rng.standard_normal((15, 6)) + rng.standard_normal((260, 6)) > 0.8).astype(int)
    return request.param(X), Y


def create(path, case, **options):
    X, Y = case
    model = StreamingLabelClassifier().fit(X[:160], Y[:160, :5], label_names=NAMES)
    model.add_labels(X[:160], Y[:160, 5], ["late"])
    return model, ModelStore.create(path, model, **options)


def test_a_stored_update_is_that_in_memory(tmp_path, case):
    X, Y = case
    model, store = create(tmp_path / "m", case)
    with store:
        before = store.model().decision_function(X)
        assert store.update(X[160:200], Y[160:200, [1, 3]], ["b", "d"], key="first") == 2
        assert store.update(X[160:200], Y[160:200, [1, 3]], ["b", "d"], key="first") == 2
        after = store.model().decision_function(X)
    assert np.array_equal(after[:, [0, 2, 4, 5]], before[:, [0, 2, 4, 5]])
    model.update(X[160:200], Y[160:200, [1, 3]], ["b", "d"])
    with ModelStore.open(tmp_path / "m", "a") as store:
        np.testing.assert_allclose(store.model().coef_, model.coef_, atol=1e-6)
        np.testing.assert_allclose(store.model().thresholds_, model.thresholds_, atol=1e-6)
        memory = store.model().state_.memory
        np.testing.assert_allclose(memory.leave_one_out, model.state_.memory.leave_one_out, atol=1e-6)
        assert np.array_equal(memory.later.known, model.state_.memory.later.known)
        assert (memory.later.labels != model.state_.memory.later.labels).nnz == 0
        known = np.random.default_rng(0).random((60, 5)) < 0.7
        store.update(X[200:], Y[200:, :5], annotated=known)
        model.update(X[200:], Y[200:, :5], annotated=known)
        np.testing.assert_allclose(store.model().coef_, model.coef_, atol=1e-6)
        store.add_labels(None, 1 - Y[:160, 5], ["not late"], annotated=np.arange(60))
        assert [revision.action for revision in store.history()] == ["add", "update", "update", "create"]
        assert [record.origin for record in store.labels()][:2] == ["fit", "fit"]
        assert store.labels()[1].n_unasked == 60 - known[:, 1].sum()
    assert not ModelStore.doctor(tmp_path / "m")
    again = StreamingLabelClassifier.from_state(model.state_)
    with ModelStore.create(tmp_path / "saved", again) as copied:
        np.testing.assert_allclose(copied.model().state_.memory.later.X[:5].sum(), X[160:165].sum(), atol=1e-9)


def test_a_roll_back_undoes_it_to_the_bit_and_retired_labels_are_left_out(tmp_path, case):
    X, Y = case
    _, store = create(tmp_path / "m", case)
    with store:
        before = store.model().decision_function(X)
        store.update(X[160:], Y[160:, :5])
        updated = store.model().decision_function(X)
        store.retire("a")
        model = store.model()
        assert np.array_equal(model.decision_function(X), updated[:, 1:])
        assert model.state_.memory.later.labels.shape == (100, 4)
        assert np.array_equal(model.state_.memory.later.labels.toarray(), Y[160:, 1:5])
        store.update(X[160:170], Y[160:170, 1:5])
        store.rollback(1)
        assert np.array_equal(store.model().decision_function(X), before)
        assert store.model().state_.memory.later is None
        store.vacuum()
        assert np.array_equal(store.model().decision_function(X), before)


def test_a_store_without_rows_and_a_later_label_are_refused(tmp_path, case):
    X, Y = case
    _, store = create(tmp_path / "bare", case, keep_rows=False)
    with store, pytest.raises(DataError, match="the rows of fit are not kept"):
        store.update(X[160:], Y[160:, :5])
    _, store = create(tmp_path / "m", case)
    with store:
        with pytest.raises(ConflictError, match="'late' was added after fit"):
            store.update(X[160:], Y[160:, 5], ["late"])
        assert store.revision == 1
        with pytest.raises(ConflictError, match="is kept for what a model"):
            store.put_part("later", {})


def test_one_label_goes_back_over_an_update_if_that_did_not_teach_it(tmp_path, case):
    X, Y = case
    _, store = create(tmp_path / "m", case)
    with store:
        store.rename("late", "later")
        store.rename("a", "first")
        store.update(X[160:200], Y[160:200, [1]], ["b"])
        store.rename("b", "second")
        store.update(X[200:], Y[200:, [3]], ["d"])
        updated = store.model()
        with pytest.raises(ConflictError, match=r"label 'd': an update .* roll back the whole model, rollback\(4\)"):
            store.rollback(4, label="d")
        with pytest.raises(ConflictError, match="an update lies between"):
            store.rollback(1, label="second")
        store.rollback(1, label="later")
        store.rollback(1, label="first")
        store.rollback(4, label="second")
        assert store.label_names == (*NAMES, "late")
        model = store.model()
        assert np.array_equal(model.decision_function(X), updated.decision_function(X))
        assert np.array_equal(model.state_.memory.later.known, updated.state_.memory.later.known)
        store.update(X[160:200], Y[160:200, [1]], ["b"])
        assert ModelStore.doctor(tmp_path / "m") == []


def test_merged_labels_are_learned_from_the_answers_of_updates_too(tmp_path, case):
    X, Y = case
    known = np.random.default_rng(0).random((100, 2)) < 0.7
    _, store = create(tmp_path / "m", case)
    with store:
        store.update(X[160:], Y[160:, [1, 3]], ["b", "d"], annotated=known)
        store.merge(["b", "d"], "both")
        assert store.history()[0].detail["how"] == "relearned"
        yes = Y[:, [1, 3]].any(axis=1)
        rows = np.concatenate((np.arange(160), 160 + np.flatnonzero(known.all(axis=1))))
        record = store.labels()[-1]
        assert (record.n_yes, record.n_no) == (yes[rows].sum(), (~yes[rows]).sum())
        theirs = Ridge(alpha=record.beta).fit(X[rows], yes[rows]).predict(X)
        assert np.corrcoef(store.scores(X)[:, -1], theirs)[0, 1] > 0.95
        store.rollback(2)
        store.merge(["b", "late"], "either")  # nobody knows 'late' on the rows of the update
        assert store.history()[0].detail["how"] == "averaged"
    assert not ModelStore.doctor(tmp_path / "m")
