"""The estimator among scikit-learn's: pipelines, searches, clones, float32; thresholds and probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamlabel import StreamingLabelClassifier
from streamlabel.data.news import make_news_corpus
from streamlabel.errors import DataError


@pytest.fixture
def case(rng):
    X = rng.standard_normal((300, 10))
    Y = (X @ rng.standard_normal((10, 6)) + rng.standard_normal((300, 6)) > 1.0).astype(int)
    return X, Y


def test_numbers_in_a_pipeline(case):
    X, Y = case
    X = 100.0 * X + 7.0
    pipeline = make_pipeline(StandardScaler(), StreamingLabelClassifier()).fit(X[:200], Y[:200])
    by_hand = StandardScaler().fit(X[:200])
    clf = StreamingLabelClassifier().fit(by_hand.transform(X[:200]), Y[:200])
    assert np.array_equal(pipeline.predict(X[200:]), clf.predict(by_hand.transform(X[200:])))
    assert np.array_equal(pipeline.predict_proba(X[200:]), clf.predict_proba(by_hand.transform(X[200:])))
    assert f1_score(Y[200:], pipeline.predict(X[200:]), average="micro") > 0.6
    # the last step of a pipeline can still be given labels
    before = pipeline.decision_function(X[200:])
    pipeline[-1].add_labels(pipeline[:-1].transform(X[:200]), 1 - Y[:200, 0], ["not the first"])
    assert np.array_equal(before, pipeline.decision_function(X[200:])[:, :6])


def test_texts_in_a_pipeline():
    texts = make_news_corpus(400, random_state=0)
    frequent = np.argsort(-np.asarray(texts.Y.sum(axis=0)).ravel())[:10]
    Y = texts.Y[:, np.sort(frequent)]
    pipeline = make_pipeline(TfidfVectorizer(), StreamingLabelClassifier())
    pipeline.fit(texts.texts[:300], Y[:300])
    scores = pipeline.decision_function(texts.texts[300:])
    assert scores.shape == (100, 10)
    best = scores.argmax(axis=1)
    truth = Y[300:].toarray()
    asked = truth.any(axis=1)
    assert truth[np.arange(100), best][asked].mean() > truth[asked].mean(axis=0).max()


def test_a_search_over_beta_with_sparse_labels(case):
    X, Y = case
    search = GridSearchCV(
        StreamingLabelClassifier(), {"beta": [1e-3, 1.0, 1e6]}, scoring="f1_micro", cv=3, error_score="raise"
    ).fit(X, sparse.csr_array(Y))
    assert search.best_params_["beta"] in (1e-3, 1.0)
    assert search.best_estimator_.beta_ == search.best_params_["beta"]
    dense = GridSearchCV(StreamingLabelClassifier(), {"beta": [1e-3, 1.0, 1e6]}, scoring="f1_micro", cv=3).fit(X, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"])
    losses = GridSearchCV(StreamingLabelClassifier(beta=1.0), {"loss": ["squared", "logistic"]}, cv=2).fit(X, Y)
    assert losses.best_params_["loss"] in ("squared", "logistic")
    assert cross_val_score(StreamingLabelClassifier(), X, Y, cv=3, scoring="f1_macro").min() > 0.5


def test_a_clone_has_the_parameters_and_nothing_else(case):
    X, Y = case
    parameters = {
        "lam": 0.01, "metric": None, "beta": 2.0, "loss": "logistic", "start": "independent", "start_weight": 2.0,
        "dictionary": 3, "fit_intercept": False, "threshold": 0.4, "random_state": 5, "n_jobs": 2,
        "scoring": "auc", "tune": "arrival", "features": None, "prune": None,
    }  # fmt: skip
    clf = StreamingLabelClassifier(**parameters).fit(X, Y)
    copy = clone(clf)
    assert copy.get_params() == parameters
    assert not hasattr(copy, "label_names_")
    assert np.array_equal(copy.fit(X, Y).coef_, clf.coef_)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_float32_input(case, form):
    X, Y = case
    X = X.astype(np.float32)
    clf = StreamingLabelClassifier().fit(form(X), Y[:, :4])
    before = clf.decision_function(form(X))
    assert before.dtype == np.float64
    clf.add_labels(form(X), Y[:, 4]).add_labels(form(X), Y[:, [5]], annotated=np.arange(80))
    assert np.array_equal(before, clf.decision_function(form(X))[:, :4])
    wide = StreamingLabelClassifier().fit(X.astype(np.float64), Y[:, :4])
    np.testing.assert_allclose(before, wide.decision_function(X.astype(np.float64)), atol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_probabilities_are_calibrated(rng, loss):
    """On new rows, among all predictions near p about a share p is right, and the mean probability is the rate."""
    X = rng.standard_normal((2000, 10))
    Y = (X @ rng.standard_normal((10, 8)) + 2.0 * rng.standard_normal((2000, 8)) > 2.0).astype(int)
    clf = StreamingLabelClassifier(loss=loss).fit(X[:1000], Y[:1000, :6])
    clf.add_labels(X[:1000], Y[:1000, 6]).add_labels(X[:1000], Y[:1000, 7], annotated=np.arange(400))
    chances, truth = clf.predict_proba(X[1000:]), Y[1000:]
    assert ((chances >= 0.0) & (chances <= 1.0)).all()
    assert np.abs(chances.mean(axis=0) - truth.mean(axis=0)).max() < 0.06
    for low in (0.1, 0.3, 0.5, 0.7):
        inside = (chances >= low) & (chances < low + 0.2)
        assert abs(truth[inside].mean() - chances[inside].mean()) < 0.08


def test_thresholds_can_be_set(case):
    X, Y = case
    clf = StreamingLabelClassifier().fit(X, Y)
    clf.thresholds_ = 0.3
    assert np.array_equal(clf.predict(X), (clf.decision_function(X) > 0.3).astype(int))
    clf.thresholds_ = np.arange(6) / 10.0
    assert np.array_equal(clf.predict(X), (clf.decision_function(X) > np.arange(6) / 10.0).astype(int))
    clf.add_labels(X, 1 - Y[:, 0], ["new"])
    assert np.array_equal(clf.thresholds_[:6], np.arange(6) / 10.0)
    assert clf.thresholds_.shape == (7,)
    with pytest.raises(DataError, match="NaN"):
        clf.thresholds_ = np.nan
    with pytest.raises(ValueError, match="broadcast"):
        clf.thresholds_ = [0.1, 0.2]
    fixed = StreamingLabelClassifier(threshold=0.25).fit(X, Y).add_labels(X, 1 - Y[:, 0], ["new"])
    np.testing.assert_array_equal(fixed.thresholds_, 0.25)
