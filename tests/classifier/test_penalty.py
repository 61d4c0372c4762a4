from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.classifier.penalty import SMALLEST_SHARE, make_penalty


def test_no_coupling_and_an_empty_one_are_the_same(rng):
    P, V = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    for empty in (None, np.zeros((3, 3)), sparse.csc_array((3, 3)), sparse.coo_array((3, 3))):
        penalty = make_penalty(P, empty, 2.0)
        assert not penalty.coupled
        np.testing.assert_array_equal(penalty.gradient(V), 2.0 * V - 2.0 * P)


def test_rotated_columns_are_separate_and_the_anchor_costs_nothing(rng):
    P, S2 = rng.standard_normal((4, 3)), 0.3 * rng.standard_normal((3, 3))
    penalty = make_penalty(P, sparse.csr_array(S2), 2.0)
    M = np.eye(3) - S2
    np.testing.assert_allclose(penalty.rotation @ np.diag(penalty.strengths) @ penalty.rotation.T, M @ M.T, atol=1e-12)
    np.testing.assert_allclose(penalty.unrotate(penalty.rotated_anchor()), P @ np.linalg.inv(M), atol=1e-12)
    np.testing.assert_allclose(penalty.values(P @ np.linalg.inv(M)), 0.0, atol=1e-20)
    assert penalty.note == ""


def test_a_singular_coupling_gets_a_ridge_that_bounds_the_condition(rng):
    P = rng.standard_normal((4, 2))
    penalty = make_penalty(P, np.array([[0.0, 1.0], [1.0, 0.0]]), 2.0)
    assert penalty.strengths.min() == pytest.approx(SMALLEST_SHARE * 4.0)
    assert np.linalg.cond(penalty.metric) <= 1.01 / SMALLEST_SHARE
    assert "nearly singular" in penalty.note
    assert "a ridge of" in penalty.note


def test_the_ridge_enters_without_a_jump():
    """Just above the bound there is none; it grows from zero below."""
    edge = np.sqrt(SMALLEST_SHARE)
    ridges = []
    for smallest in (2.0 * edge, 0.999 * edge, 0.5 * edge, 0.0):
        # I - S2 = diag(1, smallest)
        ridges.append(make_penalty(np.zeros((1, 2)), np.diag([0.0, 1.0 - smallest]), 1.0).ridge / SMALLEST_SHARE)
    np.testing.assert_allclose(ridges, [0.0, 1.0 - 0.999**2, 0.75, 1.0], atol=1e-9)


def test_a_coupled_batch_cannot_be_taken_apart(rng):
    P = rng.standard_normal((4, 3))
    np.testing.assert_array_equal(make_penalty(P, None, 1.0).take(np.array([2, 0])).anchor, P[:, [2, 0]])
    with pytest.raises(AssertionError):
        make_penalty(P, np.full((3, 3), 0.1), 1.0).take(np.array([0]))
