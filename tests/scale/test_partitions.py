"""Rows that are elsewhere: the solvers and a stored model give what they give on the rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.classifier.solve import solve
from streamlabel.errors import DataError
from streamlabel.executors import JoblibExecutor
from streamlabel.scale.partitions import PartitionedRows, predict_blocks


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((400, 12)) + 0.5
    return X, (X[:, :3] + rng.standard_normal((400, 3)) > 0.4).astype(int)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("executor", [None, JoblibExecutor(2)])
def test_products_are_those_of_the_rows(rows, rng, form, executor):
    X, Y = rows
    parted = PartitionedRows([form(X[:150]), form(X[150:160]), form(X[160:])], executor)
    assert parted.shape == X.shape
    Z = rng.standard_normal((12, 4))
    np.testing.assert_allclose(parted @ Z, X @ Z, rtol=1e-12)
    np.testing.assert_allclose(parted.T @ sparse.csr_array(Y), X.T @ Y, rtol=1e-12)
    np.testing.assert_allclose(parted.mean(), X.mean(axis=0), rtol=1e-12)


def test_logistic_labels_are_those_of_scikit_learn(rows):
    X, Y = rows
    weights, intercept, report = solve(
        PartitionedRows([X[:100], X[100:]]), Y, beta=2.0, loss="logistic", tolerance=1e-9
    )
    assert report.converged
    for j in range(3):
        theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(X, Y[:, j])
        np.testing.assert_allclose(weights[:, j], theirs.coef_[0], atol=1e-6)
        np.testing.assert_allclose(intercept[j], theirs.intercept_[0], atol=1e-6)


def test_squared_labels_are_those_of_ridge(rows):
    X, Y = rows
    weights, intercept, report = solve(PartitionedRows([X[:100], X[100:]]), Y, beta=2.0, tolerance=1e-11)
    theirs = Ridge(alpha=2.0).fit(X, Y)
    np.testing.assert_allclose(weights.T, theirs.coef_, rtol=1e-8)
    np.testing.assert_allclose(intercept, theirs.intercept_, rtol=1e-8)
    assert "elsewhere" in report.note


def test_blocks_of_different_widths_are_refused(rows):
    X, _ = rows
    with pytest.raises(DataError, match="same number of features"):
        PartitionedRows([X[:10], X[10:, :3]])
    with pytest.raises(DataError, match="or there are none"):
        PartitionedRows([])


def test_labels_of_blocks_are_those_of_all_rows(rows, tmp_path):
    X, Y = rows
    model = StreamingLabelClassifier(beta=1.0).fit(X, Y)
    ModelStore.create(tmp_path / "model", model).close()
    blocks = [X[:7], X[7:7], sparse.csr_array(X[7:])]
    found = list(predict_blocks(tmp_path / "model", blocks, 2))
    assert [len(labels) for labels, _ in found] == [7, 0, 393]
    scores = ModelStore.open(tmp_path / "model").scores(X)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    assert np.array_equal(np.concatenate([labels for labels, _ in found if len(labels)]), best)
    got = np.concatenate([scores for _, scores in found if len(scores)])
    np.testing.assert_allclose(got, np.take_along_axis(scores, best, axis=1), rtol=1e-6)
    with pytest.raises(DataError, match="a block of 5 features; the model has 12"):
        list(predict_blocks(tmp_path / "model", [X[:, :5]], 2))
