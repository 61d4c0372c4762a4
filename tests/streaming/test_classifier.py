"""The walking skeleton: labels arrive, the old ones do not move by one bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from streamlabel import StreamingLabelClassifier
from streamlabel.data.synthetic import make_planted_labels
from streamlabel.errors import ConflictError, DataError, NotFoundError


@pytest.fixture
def case(rng):
    X = rng.standard_normal((150, 20))
    Y = (X @ rng.standard_normal((20, 70)) + rng.standard_normal((150, 70)) > 0.8).astype(int)
    return X, Y, rng.standard_normal((40, 20))


def test_past_labels_are_ridge(case):
    X, Y, X_test = case
    clf = StreamingLabelClassifier(beta=2.0).fit(X, Y)
    np.testing.assert_allclose(clf.decision_function(X_test), Ridge(alpha=2.0).fit(X, Y).predict(X_test), atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, lambda a: np.asarray(a, dtype=np.float32)])
@pytest.mark.parametrize("n_past", [3, 63, 64, 66])
def test_old_scores_are_bit_identical(case, form, n_past):
    X, Y, X_test = (form(part) for part in case)
    Y = case[1]
    clf = StreamingLabelClassifier().fit(X, Y[:, :n_past])
    before = clf.decision_function(X_test)
    for j in range(n_past, 70):
        clf.add_labels(X, Y[:, j])
    assert np.array_equal(before, clf.decision_function(X_test)[:, :n_past])
    assert clf.coef_.shape == (70, 20)


def test_an_enormous_penalty_learns_the_label_alone(case):
    X, Y, X_test = case
    helped = StreamingLabelClassifier(lam=100.0, metric=None, beta=3.0).fit(X, Y[:, :50]).add_labels(X, Y[:, 50:])
    alone = StreamingLabelClassifier(lam=None, metric=None, beta=3.0).fit(X, Y[:, :50]).add_labels(X, Y[:, 50:])
    assert np.array_equal(helped.decision_function(X_test), alone.decision_function(X_test))
    np.testing.assert_allclose(
        alone.decision_function(X_test)[:, 50:], Ridge(alpha=3.0).fit(X, Y[:, 50:]).predict(X_test), atol=1e-9
    )


def test_the_planted_neighbours_are_found():
    planted = make_planted_labels(n_rows=400, n_features=30, n_past=20, n_new=4, code_size=3, noise=0.0, random_state=1)
    names = [f"past {j}" for j in range(20)]
    clf = StreamingLabelClassifier(lam=1e-4).fit(planted.X, planted.Y_past, names)
    clf.add_labels(planted.X, planted.Y_new, [f"new {j}" for j in range(4)])
    codes = planted.codes.toarray() if sparse.issparse(planted.codes) else np.asarray(planted.codes)
    for j in range(4):
        expected = {names[i] for i in np.flatnonzero(codes[:, j])}
        assert {name for name, _ in clf.neighbours(f"new {j}", k=len(expected))} == expected


def test_rows_that_were_not_annotated_are_unknown(case):
    X, Y, X_test = case
    rows = np.arange(0, 150, 3)
    mask = np.zeros(150, dtype=bool)
    mask[rows] = True
    garbage = Y[:, [60]].copy()
    garbage[~mask] = 1 - garbage[~mask]
    results = [
        StreamingLabelClassifier().fit(X, Y[:, :60]).add_labels(X, column, annotated=asked).decision_function(X_test)
        for column, asked in ((Y[:, [60]], rows), (garbage, rows), (garbage, mask))
    ]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_rows_that_fit_never_saw(case, rng):
    X, Y, X_test = case
    clf = StreamingLabelClassifier(lam=0.003, metric=0.3).fit(X[:100], Y[:100, :60])
    before = clf.decision_function(X_test)
    clf.add_labels(X[100:], Y[100:, 60:63])
    assert np.array_equal(before, clf.decision_function(X_test)[:, :60])
    alone = StreamingLabelClassifier().fit(X[100:], Y[100:, 60:63]).decision_function(X_test)
    helped = clf.decision_function(X_test)[:, 60:]
    assert helped.shape == alone.shape
    assert not np.allclose(helped, alone)


def test_top_k_is_the_sorted_scores(case):
    X, Y, X_test = case
    clf = StreamingLabelClassifier().fit(X, Y)
    columns, scores = clf.predict_top_k(X_test, k=4)
    everything = clf.decision_function(X_test)
    np.testing.assert_array_equal(columns, np.argsort(-everything, axis=1, kind="stable")[:, :4])
    np.testing.assert_array_equal(scores, -np.sort(-everything, axis=1)[:, :4])


@pytest.mark.parametrize(
    ("labels", "names", "error", "says"),
    [
        (lambda y: y[:10], None, DataError, "X has 150 rows; give one row of answers a row of X"),
        (lambda y: y * 0, ["n"], DataError, "'n' has no positive example"),
        (lambda y: y * 0 + 1, ["n"], DataError, "'n' has no negative example"),
        (lambda y: y * 2, None, DataError, "holds 2"),
        (lambda y: np.where(y == 1, np.nan, 0.0), None, DataError, "say what was asked with annotated="),
        (lambda y: y, "newcomer", DataError, "give a list of names"),
        (lambda y: y, ["label_3"], ConflictError, "'label_3' is taken"),
        (lambda y: y, ["a", "b"], DataError, "2 label names for 1 labels"),
    ],
)
def test_a_failed_arrival_leaves_the_model_as_it_was(case, labels, names, error, says):
    X, Y, X_test = case
    clf = StreamingLabelClassifier().fit(X, Y[:, :60])
    before = clf.decision_function(X_test), clf.label_names_, clf.structure_.shape
    with pytest.raises(error, match=says):
        clf.add_labels(X, labels(Y[:, 60].astype(float)), names)
    assert np.array_equal(before[0], clf.decision_function(X_test))
    assert (clf.label_names_, clf.structure_.shape) == before[1:]


def test_mistakes_are_named(case):
    X, Y, X_test = case
    clf = StreamingLabelClassifier().fit(X, Y[:, :60])
    with pytest.raises(NotFoundError, match="no label is called 'nobody'"):
        clf.neighbours("nobody")
    with pytest.raises(ValueError, match="X has 5 features, but StreamingLabelClassifier is expecting 20"):
        clf.decision_function(X_test[:, :5])
    with pytest.raises(DataError, match="lam is -1"):
        StreamingLabelClassifier(lam=-1).fit(X, Y[:, :60]).add_labels(X, Y[:, 60])
    with pytest.raises(DataError, match="annotated names row 999"):
        clf.add_labels(X, Y[:, 60], annotated=[1, 999])
    with pytest.raises(DataError, match="a 0/1 mask must be boolean"):
        clf.add_labels(X, Y[:, 60], annotated=(np.arange(150) < 60).astype(int))
    with pytest.raises(DataError, match="annotated is empty"):
        clf.add_labels(X, Y[:, 60], annotated=[])


def test_inputs_are_not_changed(case):
    X, Y, _ = case
    copies = X.copy(), Y.copy()
    StreamingLabelClassifier().fit(X, Y[:, :60]).add_labels(X, Y[:, 60:])
    assert np.array_equal(X, copies[0])
    assert np.array_equal(Y, copies[1])
