"""What is equal but for rounding is equal, and ties go to what stands first."""

from __future__ import annotations

import numpy as np
import pytest

from streamlabel.stats.ties import even_out, first_least, points, ranked


@pytest.mark.parametrize("k", [None, 5, 40, 60])
def test_the_order_is_that_of_a_stable_sort(rng, k):
    scores, truth = np.round(rng.normal(size=(60, 40)), 1), (rng.random((60, 40)) < 0.3).astype(float)  # many ties
    order = np.argsort(-even_out(scores), axis=1, kind="stable")
    np.testing.assert_array_equal(ranked(truth, even_out(scores), k), np.take_along_axis(truth, order, axis=1)[:, :k])


def test_rounding_does_not_change_an_order(rng):
    scores, truth = np.repeat(rng.normal(size=(50, 8)), 2, axis=0), (rng.random((100, 8)) < 0.3).astype(float)
    order = ranked(truth.T, even_out(scores, axis=0).T)  # every score is there twice
    for _ in range(20):
        moved = scores * (1.0 + 1e-13 * rng.normal(size=scores.shape))
        np.testing.assert_array_equal(ranked(truth.T, even_out(moved, axis=0).T), order)


def test_scores_without_spread_are_one_tie():
    truth = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(ranked(truth, even_out(np.full((2, 3), 0.25))), truth)
    assert even_out(np.empty((0, 3)), axis=0).shape == (0, 3)


@pytest.mark.parametrize(
    ("errors", "place"),
    [([3.0, 1.0, 2.0], 1), ([1.0 + 1e-12, 1.0], 0), ([1.0 + 1e-6, 1.0], 1), ([0.0, 0.0], 0)],
)
def test_the_first_of_equal_errors(errors, place):
    assert first_least(errors) == place


def test_points_are_hundredths_with_halves_up():
    assert points(np.array([0.004, 0.005, 0.005 - 1e-12, -0.05, 0.296])).tolist() == [0.0, 0.01, 0.01, -0.05, 0.3]
