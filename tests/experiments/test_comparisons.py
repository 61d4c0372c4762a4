from __future__ import annotations

import pytest
from scipy.stats import sem

from streamlabel.experiments.comparisons import Comparison, mean_and_error


def test_the_error_is_scipys():
    values = [1.0, 2.5, -3.0, 4.0]
    assert mean_and_error(values) == pytest.approx((1.125, sem(values)))
    assert mean_and_error([3.0]) == (3.0, None)


@pytest.mark.parametrize(
    ("gain", "error", "verdict"),
    [
        (1.0, 0.4, "wins"),
        (1.0, 0.6, "ties"),
        (-1.0, 0.4, "loses"),
        (-1.0, 0.6, "ties"),
        (0.09, 0.001, "ties"),
        (9.0, None, "undecided"),
    ],
)
def test_who_wins_is_a_matter_of_standard_errors(gain, error, verdict):
    assert Comparison("set", "50 rows", "AUC", "own ridge", gain, error).verdict == verdict
