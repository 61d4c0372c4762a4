"""A map of the rows before the learner (``features``): any transformer of scikit-learn, or the word "kernel"."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from streamlabel import ModelStore, StreamingLabelClassifier, Tagger
from streamlabel.errors import DataError
from streamlabel.stats.sums import Stats
from streamlabel.streaming.features import KernelFeatures
from streamlabel.streaming.from_stats import classifier_from_stats


@pytest.fixture(scope="module")
def case():
    """Rows, and labels that are rings and products: no plane parts them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4)) * [1.0, 1.0, 5.0, 0.1] + 3.0
    z = (X - 3.0) / [1.0, 1.0, 5.0, 0.1]
    scores = np.column_stack([z[:, j] * z[:, k] for j in range(4) for k in range(j, 4)][:8])
    Y = (scores + 0.3 * rng.standard_normal(scores.shape) > np.quantile(scores, 0.7, axis=0)).astype(int)
    return X[:300], Y[:300], X[300:], Y[300:]


def test_labels_added_through_a_map_are_those_of_mapped_rows(case):
    X, Y, far, _ = case
    features = Nystroem(gamma=0.1, n_components=60, random_state=0)
    model = StreamingLabelClassifier(features=features).fit(X, Y[:, :4])
    before = model.decision_function(far)
    model.add_labels(X, Y[:, 4:6]).add_labels(far, case[3][:, 6], ["g"])
    model.update(far, case[3][:, :1], model.label_names_[:1])
    by_hand = clone(features).fit(X)
    plain = StreamingLabelClassifier().fit(by_hand.transform(X), Y[:, :4])
    plain.add_labels(by_hand.transform(X), Y[:, 4:6]).add_labels(by_hand.transform(far), case[3][:, 6], ["g"])
    plain.update(by_hand.transform(far), case[3][:, :1], plain.label_names_[:1])
    np.testing.assert_allclose(model.decision_function(far), plain.decision_function(by_hand.transform(far)), atol=1e-9)
    assert np.array_equal(model.decision_function(far)[:, 1:4], before[:, 1:])
    assert model.n_features_in_ == 4
    assert model.coef_.shape == (7, 60)
    assert not hasattr(features, "components_"), "the transformer that was given is not fitted"


def test_old_labels_do_not_change_by_one_bit(case):
    X, Y, far, truth = case
    model = StreamingLabelClassifier(features="kernel").fit(X, Y[:, :5])
    before = model.decision_function(far)
    model.add_labels(X.copy(), Y[:, 5]).add_labels(far, truth[:, 6], ["six"], annotated=np.arange(90))
    model.add_found("found", X[Y[:, 7] == 1][:8], X[Y[:, 7] == 0][:8])
    assert np.array_equal(model.decision_function(far)[:, :5], before)
    assert model.state_.answers is not None
    assert 5 in model.state_.answers.labels, "a copy of the rows of fit is recognised through the map"
    assert roc_auc_score(truth[:, 7], model.decision_function(far)[:, 7]) > 0.6


def test_the_kernel_ranks_what_no_plane_parts(case):
    X, Y, far, truth = case
    kernel, linear = (StreamingLabelClassifier(features=one).fit(X, Y[:, :4]) for one in ("kernel", StandardScaler()))
    found = [roc_auc_score(truth, one.add_labels(X, Y[:, 4:]).decision_function(far)) for one in (kernel, linear)]
    assert found[0] > 0.8 > 0.65 > found[1]


def test_ridge_on_kernel_features_is_kernel_ridge(case):
    X, Y, far, _ = case
    model = StreamingLabelClassifier(features="kernel", fit_intercept=False, beta=2.0, loss="squared").fit(X, Y)
    chosen = model.features_
    assert chosen.power_ == 1.0
    peer = KernelRidge(kernel="rbf", gamma=chosen.gamma_, alpha=2.0)
    scaler = StandardScaler().fit(X)
    expected = peer.fit(scaler.transform(X), 2.0 * Y - 1.0).predict(scaler.transform(far))
    np.testing.assert_allclose(model.decision_function(far), expected, atol=1e-5)


def test_fewer_components_than_rows(case):
    X, Y, far, truth = case
    few = KernelFeatures(n_components=100)
    model = StreamingLabelClassifier(features=few).fit(X, Y)
    assert model.coef_.shape[1] <= 100
    assert roc_auc_score(truth, model.decision_function(far)) > 0.8


def test_clones_pickles_and_nested_parameters(case):
    X, Y, far, _ = case
    model = StreamingLabelClassifier(features=Nystroem(n_components=20)).set_params(features__n_components=30)
    assert clone(model).fit(X, Y).coef_.shape == (8, 30)
    model = StreamingLabelClassifier(features="kernel").fit(X, Y[:, :7])
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert clone(copy).get_params()["features"] == "kernel"
    scores = [one.add_labels(X, Y[:, 7]).decision_function(far) for one in (model, copy)]
    assert np.array_equal(*scores)


def test_sparse_rows_and_constant_features(case):
    X, Y, far, truth = case
    X, far = (np.column_stack((part, np.full(len(part), 7.0))) for part in (X, far))
    dense = StreamingLabelClassifier(features="kernel").fit(X, Y).decision_function(far)
    model = StreamingLabelClassifier(features="kernel").fit(sparse.csr_array(X), Y)
    assert roc_auc_score(truth, model.decision_function(sparse.csr_array(far))) > 0.8
    assert roc_auc_score(truth, dense) > 0.8


@pytest.mark.parametrize("wrong", ["rbf", 3, Nystroem, object()], ids=["a word", "a number", "a class", "an object"])
def test_what_is_no_map_is_refused(case, wrong):
    with pytest.raises(DataError, match=r"it must be None, .kernel. or"):
        StreamingLabelClassifier(features=wrong).fit(case[0], case[1])


def test_where_there_is_no_map(case, tmp_path):
    X, Y, _, _ = case
    model = StreamingLabelClassifier(features="kernel").fit(X, Y)
    with pytest.raises(DataError, match="not stored or exported"):
        ModelStore.create(tmp_path / "store", model)
    with pytest.raises(DataError, match="features is fitted on rows"):
        StreamingLabelClassifier.from_coef(np.ones((2, 4)), features="kernel")
    with pytest.raises(DataError, match="features='kernel' needs the rows; sums serve features=None"):
        classifier_from_stats(Stats.from_batch(X, Y), features="kernel")
    tagger = Tagger(classifier=StreamingLabelClassifier(features="kernel"))
    with pytest.raises(DataError, match="Tagger"):
        tagger.fit(["red apples", "green pears", "red cherries"] * 9, [["x"], ["y"], []] * 9)
    with pytest.raises(DataError, match="names are directions"):
        model.add_labels(X, Y[:, 0], ["again"], names=lambda texts: None)
    with pytest.raises(DataError, match="features was 'kernel' in fit"):
        model.set_params(features=None).add_labels(X, Y[:, 0], ["again"])
    with pytest.raises(DataError, match="makes 10 rows of 300"):
        StreamingLabelClassifier(features=FunctionTransformer(lambda rows: rows[:10])).fit(X, Y)


def test_a_fit_that_fails_keeps_the_map(case):
    X, Y, far, _ = case
    model = StreamingLabelClassifier(features="kernel").fit(X, Y)
    before = model.decision_function(far)
    with pytest.raises(DataError, match="rows"):
        model.fit(X[:, :3], Y[:5])
    assert np.array_equal(model.decision_function(far), before)


def test_mixtures_of_many_labels_choose_the_kernel_that_all_of_them_would(case, monkeypatch):
    X, Y, _, _ = case
    many = np.hstack([np.where(np.random.default_rng(j).random(Y.shape) < 0.05, 1 - Y, Y) for j in range(10)])
    mixed = KernelFeatures().fit(X, many)
    monkeypatch.setattr("streamlabel.streaming.features._MOST_TARGETS", 1000)
    whole = KernelFeatures().fit(X, many)
    assert mixed.power_ == whole.power_
    assert 0.49 < mixed.gamma_ / whole.gamma_ < 2.1  # the same, or the next of the grid
