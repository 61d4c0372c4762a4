from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import metrics as sk

from streamlabel.errors import DataError
from streamlabel.metrics.decisions import DecisionAccumulator, hamming_loss, label_f1, macro_f1, micro_f1
from streamlabel.metrics.row_blocks import RowBlocks


@pytest.fixture
def predictions(rng):
    truth = (rng.random((60, 14)) < 0.3).astype(int)
    predicted = np.where(rng.random(truth.shape) < 0.8, truth, 1 - truth)
    truth[:, 0] = predicted[:, 0] = 0  # never true, never predicted
    truth[:, 1], predicted[:, 2] = 0, 0
    truth[0] = 0
    return truth, predicted


def test_against_scikit_learn(predictions):
    truth, predicted = predictions
    assert hamming_loss(truth, predicted) == pytest.approx(sk.hamming_loss(truth, predicted), abs=1e-15)
    for average, ours in (("micro", micro_f1), ("macro", macro_f1)):
        expected = sk.f1_score(truth, predicted, average=average, zero_division=0)
        assert ours(truth, predicted) == pytest.approx(expected, abs=1e-15)
    expected = sk.f1_score(truth, predicted, average=None, zero_division=0)
    np.testing.assert_allclose(label_f1(truth, predicted), expected, rtol=0, atol=1e-15)


def test_against_napkinxc(predictions):
    napkin = pytest.importorskip("napkinxc.metrics")
    truth, predicted = predictions
    # napkinXC counts wrong cells a row and does not divide by the number of labels
    assert hamming_loss(truth, predicted) == pytest.approx(napkin.hamming_loss(truth, predicted) / truth.shape[1])
    assert micro_f1(truth, predicted) == pytest.approx(napkin.f1_measure(truth, predicted, average="micro"))


def test_by_hand():
    truth, predicted = [[1, 1, 0], [0, 1, 0]], [[1, 0, 0], [1, 1, 0]]
    assert hamming_loss(truth, predicted) == 2 / 6
    assert micro_f1(truth, predicted) == 4 / 6
    np.testing.assert_allclose(label_f1(truth, predicted), [2 / 3, 2 / 3, 0])
    assert macro_f1(truth, predicted) == pytest.approx(4 / 9)


def test_nothing_true_and_nothing_predicted():
    nothing = np.zeros((3, 2))
    assert (hamming_loss(nothing, nothing), micro_f1(nothing, nothing), macro_f1(nothing, nothing)) == (0, 0, 0)


def test_dense_sparse_and_blocks_agree(predictions):
    truth, predicted = predictions
    for ours in (hamming_loss, micro_f1, macro_f1):
        value = ours(truth, predicted)
        assert ours(sparse.csr_array(truth), sparse.coo_array(predicted)) == value
        assert ours(truth, RowBlocks(lambda a, b: predicted[a:b], size=7)) == value
        assert ours(truth, RowBlocks(predicted[a : a + 20] for a in (0, 20, 40))) == value
        assert ours(truth, RowBlocks([sparse.csr_array(predicted)])) == value


def test_accumulators_merge(predictions):
    truth, predicted = predictions
    left, right = DecisionAccumulator(14), DecisionAccumulator(14)
    left.update(truth[:10], predicted[:10])
    right.update(truth[10:], predicted[10:])
    left.merge(right)
    assert left.result() == {
        "hamming_loss": hamming_loss(truth, predicted),
        "micro_f1": micro_f1(truth, predicted),
        "macro_f1": macro_f1(truth, predicted),
    }


def test_bad_input():
    with pytest.raises(DataError, match="0 and 1 only"):
        hamming_loss([[1, 0]], [[0.7, 0.2]])
    with pytest.raises(DataError, match="shape"):
        micro_f1([[1, 0]], [[1, 0, 0]])
    with pytest.raises(DataError, match="merged"):
        DecisionAccumulator(2).merge(DecisionAccumulator(3))
    with pytest.raises(DataError, match="no row"):
        DecisionAccumulator(2).result()
