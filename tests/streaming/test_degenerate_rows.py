"""Rows that hardly differ, changed inputs, and other things that happen to people."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy import sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.errors import DataError


@pytest.fixture
def case(rng):
    X = rng.standard_normal((200, 20))
    return X, (X @ rng.standard_normal((20, 9)) > 0.5).astype(int)


@pytest.mark.parametrize("n_rows", [3, 5, 12, 40])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_identical_annotated_rows_teach_the_rate_only(case, n_rows, form):
    X, Y = case
    X[:n_rows] = X[0]
    answers = Y[:, 8].copy()
    answers[:2] = 1, 0
    model = StreamingLabelClassifier(lam=None, metric=None, loss="squared").fit(form(X), Y[:, :8])
    scores = model.add_labels(form(X), answers, annotated=np.arange(n_rows)).decision_function(form(X))[:, -1]
    np.testing.assert_allclose(scores, answers[:n_rows].mean(), atol=1e-3)


@pytest.mark.parametrize("shape", [(15, 20), (40, 5)])
@pytest.mark.parametrize("value", [0.0, 3.3])
def test_rows_without_any_variation_give_the_rates(rng, shape, value):
    X = np.full(shape, value)
    Y = (rng.random((shape[0], 4)) < 0.5).astype(int)
    Y[0], Y[1] = 0, 1
    model = StreamingLabelClassifier().fit(X, Y[:, :3]).add_labels(X, Y[:, 3])
    np.testing.assert_allclose(model.decision_function(X), np.tile(Y.mean(axis=0), (shape[0], 1)), atol=1e-6)


def test_an_offset_of_dense_rows_does_not_matter(case):
    X, Y = case
    plain = StreamingLabelClassifier(beta=1.0).fit(X, Y).decision_function(X)
    moved = StreamingLabelClassifier(beta=1.0).fit(X + 1e6, Y).decision_function(X + 1e6)
    np.testing.assert_allclose(moved, plain, atol=1e-6)


def test_a_hopeless_beta_is_said(case):
    X, Y = case
    with pytest.raises(DataError, match="raise beta"):
        StreamingLabelClassifier(beta=1e-14).fit(sparse.csr_array(np.hstack((X, X)) + 1e4), Y)


def test_rows_written_to_since_fit_are_refused(case):
    X, Y = case
    model = StreamingLabelClassifier().fit(X, Y[:, :8])
    X *= 2.0
    with pytest.raises(DataError, match="X was written to since fit"):
        model.add_labels(X, Y[:, 8])


def test_labels_may_be_changed_after_fit(case):
    X, Y = case
    given = sparse.csr_array(Y[:, :8].astype(float))
    model = StreamingLabelClassifier().fit(X, given)
    given.data[::2] = 0.0
    given.eliminate_zeros()
    fresh = StreamingLabelClassifier().fit(X, Y[:, :8]).add_labels(X, Y[:, 8])
    np.testing.assert_array_equal(model.add_labels(X, Y[:, 8]).coef_, fresh.coef_)


def test_thresholds_are_handed_out_as_a_copy(case):
    X, Y = case
    model = StreamingLabelClassifier().fit(X, Y)
    other = copy.copy(model)
    model.thresholds_[0] = 99.0
    assert model.thresholds_[0] != 99.0
    assert other.thresholds_[0] != 99.0


def test_a_name_is_found_in_either_unicode_form(case):
    X, Y = case
    model = StreamingLabelClassifier().fit(X, Y[:, :8]).add_labels(X, Y[:, 8], ["cafe\u0301"])
    assert model.neighbours("cafe\u0301") == model.neighbours("caf\u00e9")


def test_asking_every_cell_is_asking_everything(case):
    X, Y = case
    one = StreamingLabelClassifier().fit(X, Y[:, :7]).add_labels(X, Y[:, [7]], annotated=np.ones((200, 1), dtype=bool))
    two = StreamingLabelClassifier().fit(X, Y[:, :7]).add_labels(X, Y[:, [7]])
    np.testing.assert_array_equal(one.add_labels(X, Y[:, 8]).coef_, two.add_labels(X, Y[:, 8]).coef_)


@pytest.mark.parametrize("seed", [None, -1, "a", True])
def test_a_seed_must_be_a_number(case, seed):
    with pytest.raises(DataError, match="random_state is"):
        StreamingLabelClassifier(random_state=seed).fit(*case)


def test_a_model_needs_a_label(case):
    with pytest.raises(DataError, match="y has no column"):
        StreamingLabelClassifier().fit(case[0], np.empty((200, 0)))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("scale", [1e100, 1e200])
def test_features_whose_squares_overflow_are_refused(case, form, loss, scale):
    X, Y = case
    huge = X.copy()
    huge[7, 3] = scale
    with pytest.raises(DataError, match=r"X holds 1e\+\d00 in row 7.*scale the features"):
        StreamingLabelClassifier(loss=loss).fit(form(huge), Y)
    model = StreamingLabelClassifier(loss=loss).fit(form(X), Y[:, :8])
    before = copy.copy(model.__dict__)
    with pytest.raises(DataError, match="scale the features"):
        model.add_labels(form(huge), Y[:, 8])
    assert model.__dict__.keys() == before.keys()
    assert all(model.__dict__[name] is value for name, value in before.items())
    large = StreamingLabelClassifier(loss=loss).fit(form(1e60 * X), Y)  # far from usual, and still right
    usual = StreamingLabelClassifier(loss=loss).fit(form(X), Y)
    np.testing.assert_allclose(
        large.decision_function(form(1e60 * X)), usual.decision_function(form(X)), rtol=1e-3, atol=1e-3
    )
