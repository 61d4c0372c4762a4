"""What goes into a store comes out of it: scores, decisions, relations, and the means to go on learning."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.store.parts import Part


def test_scores_are_those_of_weights_rounded_to_float32(problem, path):
    clf = problem.fitted()
    with ModelStore.create(path, clf) as store:
        by_hand = problem.unseen @ clf.coef_.astype(np.float32).astype(np.float64).T + clf.intercept_
        np.testing.assert_allclose(store.scores(problem.unseen), by_hand, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(store.scores(problem.unseen), clf.decision_function(problem.unseen), atol=1e-6)
        model = store.model()
    assert np.array_equal(model.decision_function(problem.unseen), ModelStore.open(path).scores(problem.unseen))
    np.testing.assert_array_equal(model.coef_, clf.coef_.astype(np.float32))


def test_everything_else_comes_back(problem, path):
    clf = problem.fitted().add_labels(problem.X, problem.Y[:, 6:8], ["first", "second"])
    clf.add_labels(problem.X, problem.Y[:, 8], ["third"], annotated=np.arange(0, 240, 4))
    ModelStore.create(path, clf).close()
    model = ModelStore.open(path).model()
    assert model.get_params() == clf.get_params()
    assert model.label_names_ == clf.label_names_
    assert model.reports_ == tuple(replace(report, clarity=None) for report in clf.reports_)
    assert (model.loss_, model.beta_, model.n_features_in_) == (clf.loss_, clf.beta_, clf.n_features_in_)
    for name in ("intercept_", "thresholds_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(clf, name))
    np.testing.assert_array_equal(model.structure_.toarray(), clf.structure_.toarray())
    assert model.neighbours("first") == clf.neighbours("first")
    np.testing.assert_allclose(model.predict_proba(problem.unseen), clf.predict_proba(problem.unseen), atol=1e-5)
    np.testing.assert_array_equal(model.state_.scored, clf.state_.scored)
    np.testing.assert_array_equal(model.state_.answers.labels, clf.state_.answers.labels)
    np.testing.assert_array_equal(model.state_.answers.by_rows.toarray(), clf.state_.answers.by_rows.toarray())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_old_scores_do_not_move_by_one_bit(form, path):
    """Through several blocks and segments, appended one by one and in batches."""
    rng = np.random.default_rng(0)
    coef, intercept = rng.standard_normal((200, 40)), rng.standard_normal(200)
    X = form(rng.standard_normal((33, 40)) * (rng.random((33, 40)) < 0.5))
    model = StreamingLabelClassifier.from_coef
    with ModelStore.create(path, model(coef[:3], intercept[:3])) as store:
        before = store.scores(X)
        for size in (4, 63, 64, 65, 66, 130, 200):
            store.append(model(coef[:size], intercept[:size]))
            now = store.scores(X)
            assert np.array_equal(now[:, : before.shape[1]], before)
            before = now
    fresh = ModelStore.open(path)
    assert np.array_equal(fresh.scores(X), before)
    assert np.array_equal(fresh.model().decision_function(X), before)
    np.testing.assert_allclose(before, X @ coef.T + intercept, atol=1e-4)


def test_memory_for_blocks_may_be_short(stored, problem):
    """With room for no block, or for some, scores are the same bits."""
    right = ModelStore.open(stored).scores(problem.unseen)
    for room in (0, 24 * 64 * 8):
        store = ModelStore.open(stored, cache_bytes=room)
        assert np.array_equal(store.scores(problem.unseen), right)
        assert np.array_equal(store.scores(problem.unseen), right)


def test_another_process_gives_the_same_bytes(stored, problem):
    np.save(stored.parent / "X.npy", problem.unseen)
    script = (
        "import sys, hashlib, numpy as np; from streamlabel import ModelStore; "
        "print(hashlib.sha256(ModelStore.open(sys.argv[1]).scores(np.load(sys.argv[2]))).hexdigest())"
    )
    command = [sys.executable, "-c", script, str(stored), str(stored.parent / "X.npy")]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout.strip()
    assert said == hashlib.sha256(ModelStore.open(stored).scores(problem.unseen)).hexdigest()


def test_a_restart_makes_no_difference_to_learning(problem, tmp_path):
    """The same arrivals, with the store closed and opened before each, and without."""
    paths = tmp_path / "one", tmp_path / "many"
    for path in paths:
        ModelStore.create(path, problem.fitted()).close()
    arrivals = [(None, None), (problem.X, np.arange(30)), (problem.X, None), (None, np.arange(0, 240, 2))]
    with ModelStore.open(paths[0], "a") as store:
        for number, (X, annotated) in enumerate(arrivals):
            store.add_labels(X, problem.Y[:, 6 + number], [f"new {number}"], annotated=annotated)
    for number, (X, annotated) in enumerate(arrivals):
        with ModelStore.open(paths[1], "a") as store:
            store.add_labels(X, problem.Y[:, 6 + number], [f"new {number}"], annotated=annotated)
    one, many = (ModelStore.open(path) for path in paths)
    np.testing.assert_allclose(many.scores(problem.unseen), one.scores(problem.unseen), rtol=1e-6, atol=1e-6)
    assert [r.anchored for r in many.model().reports_] == [r.anchored for r in one.model().reports_]


def test_trials_are_run_once_in_the_life_of_a_model(problem, path):
    """By the store, or by a model that came from it and was appended; fit has run none."""
    ModelStore.create(path, problem.fitted()).close()
    with ModelStore.open(path, "a") as store:
        assert not store.model().state_.memory.tried
        store.add_labels(None, problem.Y[:, 6], ["by the store"], annotated=np.arange(50))
    with ModelStore.open(path, "a") as store:
        model = store.model()
        assert set(model.state_.memory.tried) == {50}
        store.append(model.add_labels(problem.X, problem.Y[:, 7], ["by a model"], annotated=np.arange(100)))
    stored = ModelStore.open(path).model().state_.memory.tried
    assert set(stored) == {50, 100}
    np.testing.assert_array_equal(stored[100][0].measures, model.state_.memory.tried[100][0].measures)


def test_learning_from_the_store_is_learning(problem, path):
    """A label learned through the store is the one that the estimator learns in memory, but for rounding."""
    clf = problem.fitted()
    with ModelStore.create(path, clf) as store:
        store.add_labels(None, problem.Y[:, 6], ["first"])
        store.add_labels(problem.unseen, problem.Y[:60, 7], ["second"])
    clf.add_labels(problem.X, problem.Y[:, 6], ["first"]).add_labels(problem.unseen, problem.Y[:60, 7], ["second"])
    np.testing.assert_allclose(
        ModelStore.open(path).scores(problem.unseen), clf.decision_function(problem.unseen), atol=1e-5
    )


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_other_losses_go_on_learning(loss, problem, path):
    with ModelStore.create(path, problem.fitted(loss=loss)) as store:
        store.add_labels(None, problem.Y[:, 6], ["first"])
    store = ModelStore.open(path)
    assert store.labels()[-1].loss == loss
    truth = problem.Y[:, 6] == 1
    scores = store.scores(problem.X)[:, -1]
    assert scores[truth].mean() > scores[~truth].mean()


def test_sparse_rows_of_features_are_kept_as_they_are(problem, path):
    X = sparse.csr_array(np.where(problem.X > 0.8, problem.X, 0.0))
    clf = StreamingLabelClassifier().fit(X, problem.Y[:, :6])
    with ModelStore.create(path, clf) as store:
        kept = store.model().state_.memory.X
        assert (kept != X).nnz == 0
        before = store.sizes().learning
        store.add_labels(X, problem.Y[:, 6], ["first"])
        assert store.labels()[-1].n_unasked == 0
        assert store.sizes().learning - before >= 4 * problem.Y[:, 6].sum()


def test_without_rows_labels_come_with_their_own(problem, path):
    with ModelStore.create(path, problem.fitted(), keep_rows=False) as store:
        assert store.sizes().learning == 0
        assert store.parts() == []
        with pytest.raises(DataError, match="not kept"):
            store.add_labels(None, problem.Y[:, 6], ["first"])
        store.add_labels(problem.X, problem.Y[:, 6], ["first"])
        assert store.label_names[-1] == "first"


def test_mostly_zero_classifiers_take_little_room(path):
    rng = np.random.default_rng(2)
    coef = rng.standard_normal((70, 5000)) * (rng.random((70, 5000)) < 0.01)
    coef[3] = 0.0
    coef[5] = rng.standard_normal(5000)
    clf = StreamingLabelClassifier.from_coef(coef, np.arange(70.0))
    X = rng.standard_normal((9, 5000))
    with ModelStore.create(path, clf) as store:
        scores = store.scores(X)
        np.testing.assert_allclose(scores, X @ coef.astype(np.float32).T + np.arange(70.0), atol=1e-9)
        np.testing.assert_array_equal(store.scores(sparse.csr_array(X)).shape, (9, 70))
        np.testing.assert_array_equal(store.model().coef_, coef.astype(np.float32))
        grown = StreamingLabelClassifier.from_coef(np.vstack((coef, coef[:9])), np.arange(79.0) % 70)
        with pytest.raises(ConflictError):
            store.append(StreamingLabelClassifier.from_coef(coef[:9], np.arange(9.0)))
        store.append(grown)
        assert np.array_equal(store.scores(X)[:, :70], scores)
    assert {file.suffix for file in path.glob("[VW]-*")} == {".f32", ".csr"}
    used = store.sizes()
    assert used.labels - used.room < 5000 * 4 * 3 + 80 * 50 * 8 * 2


def test_an_adopted_model_is_stored(problem, path):
    theirs = OneVsRestClassifier(LogisticRegression()).fit(problem.X, problem.Y[:, :4])
    clf = StreamingLabelClassifier.from_estimator(theirs)
    with ModelStore.create(path, clf) as store:
        np.testing.assert_allclose(store.scores(problem.X), theirs.decision_function(problem.X), atol=1e-5)
        store.add_labels(problem.X, problem.Y[:, 6], ["first"])
        assert [record.origin for record in store.labels()] == ["adopted"] * 4 + ["added"]


def test_a_model_that_grew_elsewhere_is_refused(problem, stored):
    with ModelStore.open(stored, "a") as store:
        with pytest.raises(ConflictError, match="did not grow"):
            store.append(problem.fitted())
        with pytest.raises(DataError, match="nothing to append"):
            store.append(store.model())
        model = store.model().add_labels(problem.X, problem.Y[:, 8:10], ["x", "y"])
        assert store.append(model) == 4
        assert store.label_names == model.label_names_


def test_the_same_key_does_nothing_again(problem, stored):
    with ModelStore.open(stored, "a") as store:
        first = store.add_labels(None, problem.Y[:, 8], ["x"], key="hook-1")
        assert store.add_labels(None, problem.Y[:, 9], ["y"], key="hook-1") == first
        assert store.rename("x", "z", key="hook-2") == store.rename("z", "w", key="hook-2")
        assert store.label_names[-1] == "z"


def test_parts_are_json_and_arrays(stored):
    arrays = {"idf": np.linspace(0, 1, 5), "mask": np.array([True, False]), "empty": np.empty((0, 3), np.float32)}
    with ModelStore.open(stored, "a") as store:
        store.put_part("words", {"words": ["é", "b"], "lower": True}, arrays)
        store.put_part("words", {"words": []}, arrays | {"idf": np.arange(3)})
        for name, content, wrong in (
            ("../x", {}, {}),
            ("x", {"y": float("nan")}, {}),
            ("x", {}, {"o": np.array([object()])}),
            ("x", object(), {}),
        ):
            with pytest.raises(DataError):
                store.put_part(name, content, wrong)
    new, old = ModelStore.open(stored), ModelStore.open(stored, revision=4)
    assert old.get_part("words").content == {"words": ["é", "b"], "lower": True}
    for name, array in arrays.items():
        np.testing.assert_array_equal(old.get_part("words").arrays[name], array)
        assert old.get_part("words").arrays[name].dtype == array.dtype
    np.testing.assert_array_equal(new.get_part("words").arrays["idf"], [0, 1, 2])
    with pytest.raises(NotFoundError):
        ModelStore.open(stored, revision=3).get_part("words")


def test_parts_can_come_with_the_model(problem, path):
    part = Part({"a": 1}, {"x": np.arange(4)})
    with ModelStore.create(path, problem.fitted(), parts={"words": part}) as store:
        assert store.revision == 1
        assert store.get_part("words").content == {"a": 1}


def test_labels_know_their_answers(problem, stored):
    records = ModelStore.open(stored).labels()
    assert [record.id for record in records] == list(range(1, 9))
    for column, record in enumerate(records[:7]):
        yes = int(problem.Y[:, column].sum())
        assert (record.n_yes, record.n_no, record.n_unasked) == (yes, 240 - yes, 0)
    asked = problem.Y[::3, 7]
    assert (records[7].n_yes, records[7].n_no, records[7].n_unasked) == (asked.sum(), 80 - asked.sum(), 160)
    assert [record.born for record in records] == [1] * 6 + [2, 3]
    assert records[6].lam is not None
    assert records[6].beta > 0


def test_measurements_are_kept(stored):
    with ModelStore.open(stored, "a") as store:
        store.put_metric("first", "auc", 0.75, 240)
        store.put_metric("second", "auc", 0.5, 80)
        assert [(m.label, m.value) for m in store.metrics()] == [(7, 0.75), (8, 0.5)]
        assert [m.value for m in store.metrics("second")] == [0.5]


@pytest.mark.parametrize("keep", [True, False])
def test_what_cannot_be_stored_is_refused_and_leaves_nothing(keep, problem, path):
    classes = StreamingLabelClassifier().fit(problem.X, problem.Y[:, 0])
    huge = StreamingLabelClassifier.from_coef([[1e300, 0.0]])
    for model in (StreamingLabelClassifier(), classes, huge):
        with pytest.raises(DataError):
            ModelStore.create(path, model, keep_rows=keep)
    assert list(path.parent.iterdir()) == []
    ModelStore.create(path, problem.fitted()).close()
    with pytest.raises(ConflictError, match="there already"):
        ModelStore.create(path, problem.fitted())


def test_a_reader_does_not_write(stored, problem):
    store = ModelStore.open(stored)
    with pytest.raises(ConflictError, match="mode='a'"):
        store.add_labels(None, problem.Y[:, 8], ["x"])
    with pytest.raises(DataError, match="features"):
        store.scores(problem.X[:, :3])
    with pytest.raises(DataError, match="mode"):
        ModelStore.open(stored, "w")
    with pytest.raises(NotFoundError):
        ModelStore.open(stored.parent / "nothing")
