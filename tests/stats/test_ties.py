"""What is equal but for rounding is equal, and ties go to what stands first."""

from __future__ import annotations

import numpy as np
import pytest

from streamlabel.stats.ties import best_first, even_out, first_least, points


@pytest.mark.parametrize("axis", [0, 1])
def test_the_order_is_that_of_a_stable_sort(rng, axis):
    scores = np.round(rng.normal(size=(60, 40)), 1)  # many ties
    found = best_first(even_out(scores, axis=0), axis)
    np.testing.assert_array_equal(found, np.argsort(-even_out(scores, axis=0), axis=axis, kind="stable"))
    ranked = np.take_along_axis(scores, found, axis=0)
    if axis == 0:
        assert (np.diff(ranked, axis=0) <= 0).all()


def test_rounding_does_not_change_an_order(rng):
    scores = np.repeat(rng.normal(size=(50, 8)), 2, axis=0)  # every row twice
    order = best_first(even_out(scores, axis=0), 0)
    for _ in range(20):
        moved = scores * (1.0 + 1e-13 * rng.normal(size=scores.shape))
        np.testing.assert_array_equal(best_first(even_out(moved, axis=0), 0), order)


def test_scores_without_spread_are_one_tie():
    assert best_first(even_out(np.full((3, 2), 0.25), axis=0), 0).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert even_out(np.empty((0, 3)), axis=0).shape == (0, 3)


@pytest.mark.parametrize(
    ("errors", "place"),
    [([3.0, 1.0, 2.0], 1), ([1.0 + 1e-12, 1.0], 0), ([1.0 + 1e-6, 1.0], 1), ([0.0, 0.0], 0)],
)
def test_the_first_of_equal_errors(errors, place):
    assert first_least(errors) == place


def test_points_are_hundredths_with_halves_up():
    assert points(np.array([0.004, 0.005, 0.005 - 1e-12, -0.05, 0.296])).tolist() == [0.0, 0.01, 0.01, -0.05, 0.3]
