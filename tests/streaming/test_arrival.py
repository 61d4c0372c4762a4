"""Whether a fully annotated label leans on the past: the choice, and what it costs in degrees of freedom."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.classifier.ridge import make_ridge
from streamlabel.errors import DataError
from streamlabel.streaming.codes import PastAnswers, choose_anchor, find_codes


@pytest.fixture
def past_case(rng):
    """Rows, past labels by ridge, and answers that depend on the past ones."""
    n, d, m = 120, 15, 6
    X = rng.standard_normal((n, d))
    Y = (X @ rng.standard_normal((d, m)) + rng.standard_normal((n, m)) > 0.4).astype(float)
    ridge = make_ridge(X, 80.0)
    W = ridge.solve(Y)
    return X, Y, ridge, W


def scores_of(X, ridge, past, y):
    """Fitted values of the whole two-step learner, anchor included."""
    _, anchor, _ = find_codes(past, y, 0.01, True)
    shift = ridge.solve(y - X @ anchor)
    fitted = X @ (anchor + shift)
    return fitted - fitted.mean(axis=0) + y.mean(axis=0)


def test_the_bound_on_the_freedom_of_the_code_holds(past_case, rng):
    """The trace of d(fitted)/dy by finite differences is more than that of ridge, by no more than the bound."""
    X, Y, ridge, W = past_case
    past = PastAnswers(6, np.arange(6), sparse.csr_array(Y.astype(np.int8)), lambda labels: W[:, labels])
    y = (0.7 * Y[:, [0]] - 0.4 * Y[:, [3]]) + 0.3 * rng.standard_normal((len(X), 1))
    codes, _, _ = find_codes(past, y, 0.01, True)
    size = codes.nnz
    assert size >= 2
    step, trace = 1e-5, 0.0
    for i in range(len(X)):
        moved = y.copy()
        moved[i] += step
        trace += float((scores_of(X, ridge, past, moved) - scores_of(X, ridge, past, y))[i, 0]) / step
    plain = len(X) - ridge.freedom
    bound = float(ridge.hat.most_between(np.array([size]))[0])
    assert plain < trace <= plain + bound + 1e-4 <= plain + size / 4.0 + 1e-3


def test_a_label_that_is_the_past_leans_on_it_and_one_that_is_noise_does_not(past_case, rng):
    X, Y, ridge, W = past_case
    noise = np.sign(rng.standard_normal((len(X), 1))).clip(0)
    wrong = rng.standard_normal((X.shape[1], 1))  # an anchor that has nothing to do with the label
    answers, anchor = np.hstack((Y[:, [1]], noise)), np.hstack((W[:, [1]], wrong))
    weights, pulled = choose_anchor(ridge, answers, anchor, np.array([1, 6]))
    assert pulled.tolist() == [True, False]
    np.testing.assert_allclose(weights[:, [1]], ridge.solve(noise), atol=1e-10)
    np.testing.assert_allclose(weights[:, [0]], W[:, [1]] + ridge.solve(Y[:, [1]] - X @ W[:, [1]]), atol=1e-10)


def test_an_empty_code_is_never_pulled(past_case):
    X, Y, ridge, _ = past_case
    _, pulled = choose_anchor(ridge, Y[:, [0]], np.zeros((X.shape[1], 1)), np.array([0]))
    assert not pulled.any()


def test_with_all_rows_each_label_says_whether_it_leaned_on_the_past(rng):
    """The report tells it, a label that was not pulled is own ridge to the last digit, and a fixed lam always pulls."""
    X = rng.standard_normal((300, 12))
    Y = (X @ rng.standard_normal((12, 8)) + rng.standard_normal((300, 8)) > 0.5).astype(int)
    near = Y[:, :4] ^ (rng.random((300, 4)) < 0.05)
    new = np.hstack((near, (rng.random((300, 12)) < 0.3).astype(int)))
    model = StreamingLabelClassifier(dictionary="fit", beta=150.0).fit(X, Y).add_labels(X, new)
    alone = StreamingLabelClassifier(lam=None, metric=None, beta=150.0).fit(X, Y).add_labels(X, new)
    fixed = StreamingLabelClassifier(lam=0.003, metric=None, beta=150.0).fit(X, Y).add_labels(X, new)
    pulled = np.array([report.anchored for report in model.reports_[8:]])
    assert 0 < pulled.sum() < len(pulled)
    np.testing.assert_allclose(model.coef_[8:][~pulled], alone.coef_[8:][~pulled], rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.coef_[8:][pulled], fixed.coef_[8:][pulled], rtol=0, atol=1e-10)
    assert np.abs(model.coef_[8:][pulled] - alone.coef_[8:][pulled]).max() > 1e-6
    sizes = np.array([report.code_size for report in fixed.reports_[8:]])
    assert [report.anchored for report in fixed.reports_[8:]] == (sizes > 0).tolist()


@pytest.mark.parametrize("coupled", [False, True])
def test_codes_solved_by_several_threads_are_the_same(rng, coupled):
    X = rng.standard_normal((200, 10))
    Y = (X @ rng.standard_normal((10, 90)) + rng.standard_normal((200, 90)) > 0.7).astype(int)
    models = [StreamingLabelClassifier(n_jobs=n).fit(X, Y[:, :10]) for n in (None, 2)]
    for model in models:
        model.add_labels(X, Y[:, 10:], coupled=coupled)
    one, two = (model.structure_.toarray() for model in models)
    np.testing.assert_array_equal(one, two)
    assert np.count_nonzero(one)


def test_a_wrong_number_of_threads_is_refused(rng):
    with pytest.raises(DataError, match="n_jobs is 0"):
        StreamingLabelClassifier(n_jobs=0).fit(np.eye(3), np.eye(3, dtype=int))
