"""Models that are already there, adopted with their scores unchanged."""

from __future__ import annotations

import copy
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from streamlabel import StreamingLabelClassifier
from streamlabel.data.load import load_dataset
from streamlabel.errors import DataError


@pytest.fixture
def case(rng):
    X = rng.standard_normal((200, 12))
    Y = (X @ rng.standard_normal((12, 7)) + rng.standard_normal((200, 7)) > 0.6).astype(int)
    return X, Y, rng.standard_normal((50, 12))


def multi_output_scores(model, X):
    return np.column_stack([part.decision_function(X) for part in model.estimators_])


MODELS = {
    "one-vs-rest": (OneVsRestClassifier(LogisticRegression()), lambda model, X: model.decision_function(X)),
    "multi-output": (MultiOutputClassifier(RidgeClassifier()), multi_output_scores),
    "ridge": (RidgeClassifier(alpha=3.0), lambda model, X: model.decision_function(X)),
}


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(("estimator", "scores"), MODELS.values(), ids=MODELS)
def test_scores_are_theirs_and_stay_the_same_bits(case, estimator, scores, loss):
    X, Y, X_test = case
    names = [f"n{j}" for j in range(5)]
    theirs = estimator.fit(X, Y[:, :5])
    clf = StreamingLabelClassifier.from_estimator(theirs, names, loss=loss)
    before = clf.decision_function(X_test)
    np.testing.assert_allclose(before, scores(theirs, X_test), rtol=0, atol=1e-9)
    clf.add_labels(X, Y[:, 5], ["new"]).add_labels(X, Y[:, 6], ["few"], annotated=np.arange(60))
    assert clf.label_names_ == (*names, "new", "few")
    assert np.array_equal(before, clf.decision_function(X_test)[:, :5])
    learned = clf.predict(X)[:, 5:] == Y[:, 5:]
    assert learned.mean(axis=0).min() > 0.7
    assert clf.reports_[5].loss == loss


def test_classes_one_against_the_rest(case):
    X, Y, X_test = case
    classes = Y[:, 0] + Y[:, 1]
    theirs = SGDClassifier(random_state=0).fit(X, classes)
    clf = StreamingLabelClassifier.from_estimator(theirs, ["none", "one", "two"])
    np.testing.assert_allclose(clf.decision_function(X_test), theirs.decision_function(X_test), rtol=0, atol=1e-9)
    before = clf.decision_function(sparse.csr_array(X_test))
    clf.add_labels(sparse.csr_array(X), Y[:, 5], ["new"])
    assert np.array_equal(before, clf.decision_function(sparse.csr_array(X_test))[:, :3])
    two = SGDClassifier(random_state=0).fit(X, Y[:, 0])
    adopted = StreamingLabelClassifier.from_estimator(two)
    np.testing.assert_allclose(
        adopted.decision_function(X_test).ravel(), two.decision_function(X_test), rtol=0, atol=1e-9
    )
    assert np.array_equal(adopted.predict(X_test).ravel(), two.predict(X_test))


def test_from_coef(case):
    X, Y, X_test = case
    coef, intercept = np.arange(24.0).reshape(2, 12), [1.0, -2.0]
    clf = StreamingLabelClassifier.from_coef(coef, intercept, ["a", "b"])
    np.testing.assert_allclose(clf.decision_function(X_test), X_test @ coef.T + intercept, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(clf.coef_, coef)
    coef[:] = 0.0  # what was given may change; the model does not
    assert clf.coef_[1, 11] == 23.0
    np.testing.assert_allclose(StreamingLabelClassifier.from_coef(coef + 1.0).intercept_, 0.0)
    clf.add_labels(X, Y[:, 2:4], coupled=True)
    assert clf.structure_.shape == (4, 4)
    assert clf.loss_ == "squared"


def test_what_cannot_be_adopted_is_named(case):
    X, Y, _ = case
    adopt = StreamingLabelClassifier.from_estimator
    with pytest.raises(DataError, match="GaussianNB has no linear coefficients"):
        adopt(GaussianNB().fit(X, Y[:, 0]))
    with pytest.raises(DataError, match=r"LogisticRegression has no linear coefficients .* fit it first"):
        adopt(LogisticRegression())
    with pytest.raises(DataError, match="BaggingClassifier has no linear coefficients"):
        adopt(BaggingClassifier(LogisticRegression(), n_estimators=3, random_state=0).fit(X, Y[:, 0]))
    with pytest.raises(DataError, match="SVC has one classifier for each pair of classes"):
        adopt(SVC(kernel="linear").fit(X, Y[:, 0] + Y[:, 1]))
    three = MultiOutputClassifier(LogisticRegression()).fit(X, np.column_stack((Y[:, 0] + Y[:, 1], Y[:, 2])))
    with pytest.raises(DataError, match="output of more than two classes"):
        adopt(three)
    with pytest.raises(DataError, match="3 intercepts for 2 classifiers"):
        StreamingLabelClassifier.from_coef(np.ones((2, 4)), [1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="NaN or infinity"):
        StreamingLabelClassifier.from_coef([[np.nan, 1.0]])


@pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (OneVsRestClassifier(LogisticRegression()), "logistic"),
        (OneVsRestClassifier(LogisticRegressionCV(cv=2)), "logistic"),
        (MultiOutputClassifier(SGDClassifier(loss="log_loss", random_state=0)), "logistic"),
        (OneVsRestClassifier(SGDClassifier(random_state=0)), "squared_hinge"),
        (OneVsRestClassifier(LinearSVC()), "squared_hinge"),
        (RidgeClassifier(), "squared_hinge"),
        (Ridge(), "squared"),
        (LinearRegression(), "squared"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value),
)
@pytest.mark.filterwarnings("ignore")  # of scikit-learn, about parameters that will change
def test_new_labels_are_learned_on_the_scale_of_the_adopted_ones(case, estimator, loss):
    X, Y, _ = case
    theirs = estimator.fit(X, Y[:, :3])
    clf = StreamingLabelClassifier.from_estimator(theirs)
    assert clf.loss_ == loss
    again = clf.add_labels(X, Y[:, 0], ["the first again"])  # as the adopted label: scores of the same size
    scores = again.decision_function(X)
    assert 0.5 < scores[:, 3].std() / scores[:, 0].std() < 3.0
    assert abs(np.median(scores[:, 3] - scores[:, 0])) < 0.5 * scores[:, 0].std()
    assert StreamingLabelClassifier.from_estimator(theirs, loss="squared").loss_ == "squared"


@pytest.mark.data
@pytest.mark.slow
def test_adopted_and_new_labels_share_the_first_places_of_bibtex():
    folder = os.environ.get("STREAMLABEL_DATA")
    if not folder or not Path(folder, "bibtex").is_dir():
        pytest.skip("STREAMLABEL_DATA has no bibtex")
    train, test = (
        load_dataset(f"{folder}/bibtex/bibtex-{part}.arff", xml=f"{folder}/bibtex/bibtex.xml")
        for part in ("train", "test")
    )
    order = np.random.default_rng(0).permutation(train.n_labels)
    Y, truth = (one.Y.toarray().astype(int)[:, order] for one in (train, test))
    whole = OneVsRestClassifier(LogisticRegression(solver="liblinear")).fit(train.X, Y)
    part = copy.copy(whole)
    part.estimators_ = whole.estimators_[:120]
    mixed = StreamingLabelClassifier.from_estimator(part).add_labels(train.X, Y[:, 120:])

    def precision(scores):
        best = np.argsort(-scores, axis=1, kind="stable")[:, :5]
        return 100.0 * np.take_along_axis(truth, best, axis=1).mean(), 100.0 * (best >= 120).mean()

    at_5, share = precision(mixed.decision_function(test.X))
    reference, usual = precision(whole.decision_function(test.X))
    assert at_5 > reference - 1.5  # 27.2 and 28.2; with the squared loss 18.9
    assert share < usual + 12.0  # 28.9 and 19.7, of the true labels 21.5; with the squared loss 85.5
