"""Label numbers that models share as they grow, and the classifiers in blocks."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from streamlabel import StreamingLabelClassifier
from streamlabel.errors import NotFoundError
from streamlabel.streaming.blocks import BLOCK, ClassifierBlocks, LabelNames, SharedList


def test_a_holder_sees_its_own_part_only():
    old = LabelNames.of(("a", "b"))
    new = old.appended(("c",))
    assert "c" in new
    assert new.number("c") == 2
    assert "c" not in old
    with pytest.raises(NotFoundError):
        old.number("c")


def test_two_branches_do_not_disturb_each_other():
    root = LabelNames.of(("a",))
    left, right = root.appended(("x", "y")), root.appended(("y",))
    assert (left.number("x"), left.number("y")) == (1, 2)
    assert right.number("y") == 1
    assert "x" not in right
    assert left.appended(("z",)).number("z") == 3
    assert right.appended(("x",)).number("x") == 2


def test_a_shared_list_branches():
    root = SharedList.of("ab")
    left, right = root.appended("cd"), root.appended("x")
    assert (root.items(), left.items(), right.items()) == (("a", "b"), ("a", "b", "c", "d"), ("a", "b", "x"))
    assert left.appended("e")[4] == "e"
    assert len(left) == 4
    with pytest.raises(IndexError):
        root[2]


def test_copies_of_a_model_grow_apart(rng):
    X = rng.standard_normal((80, 6))
    Y = (X[:, :4] > 0).astype(int)
    one = StreamingLabelClassifier(lam=0.003, metric=None, beta=1.0).fit(X, Y[:, :2])
    two = copy.copy(one)
    one.add_labels(X, Y[:, 2], ["left"])
    two.add_labels(X, Y[:, 3], ["right"])
    two.add_labels(X, Y[:, 2], ["left"])
    assert one.label_names_ == ("label_0", "label_1", "left")
    assert two.label_names_ == ("label_0", "label_1", "right", "left")
    fresh = StreamingLabelClassifier(lam=0.003, metric=None, beta=1.0).fit(X, Y[:, :2])
    fresh.add_labels(X, Y[:, 3], ["right"]).add_labels(X, Y[:, 2], ["left"])
    np.testing.assert_array_equal(two.decision_function(X), fresh.decision_function(X))


def test_blocks_give_the_weights_back(rng):
    weights, intercept = rng.standard_normal((5, 150)), rng.standard_normal(150)
    blocks = ClassifierBlocks(5).appended(weights[:, :70], intercept[:70]).appended(weights[:, 70:], intercept[70:])
    np.testing.assert_array_equal(blocks.weights(), weights)
    some = np.array([149, 3, BLOCK, 64 + BLOCK])
    np.testing.assert_array_equal(blocks.weights(some), weights[:, some])
    X = rng.standard_normal((7, 5))
    np.testing.assert_allclose(blocks.scores(X), X @ weights + intercept, atol=1e-12)
    np.testing.assert_array_equal(blocks.scores(X, some), blocks.scores(X)[:, some])
