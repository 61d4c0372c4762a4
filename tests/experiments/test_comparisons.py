from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from streamlabel.experiments.comparisons import Comparison, mean_and_error, paired, unpaired

OURS, THEIRS = [61.0, 62.5, 60.0, 63.0, 61.5], [60.5, 57.0, 59.0]


def verdict(gain: float, error: float | None, freedom: float) -> str:
    return Comparison("set", "50 rows", "AUC", "own ridge", gain, error, freedom).verdict


def test_the_error_is_scipys():
    values = [1.0, 2.5, -3.0, 4.0]
    assert mean_and_error(values) == pytest.approx((1.125, stats.sem(values)))
    assert mean_and_error([3.0]) == (3.0, None)
    assert paired(values) == pytest.approx((1.125, stats.sem(values), 3))
    assert paired([3.0]) == (3.0, None, 0)


@pytest.mark.parametrize(
    ("gain", "error", "freedom", "expected"),
    [
        (1.0, 0.3, 4, "wins"),
        (1.0, 0.4, 4, "ties"),  # 2.5 errors: enough for 393 labels, not for 5 seeds
        (1.0, 0.4, 392, "wins"),
        (-1.0, 0.3, 4, "loses"),
        (-1.0, 0.4, 4, "ties"),
        (1.0, 0.3, 3, "wins"),
        (9.0, 0.001, 2, "undecided"),  # three pairs
        (0.0, 0.1, 1, "undecided"),
        (0.09, 0.001, 4, "ties"),
        (9.0, None, 0, "undecided"),
    ],
)
def test_who_wins_is_a_matter_of_standard_errors_and_of_how_many_runs_they_rest_on(gain, error, freedom, expected):
    assert verdict(gain, error, freedom) == expected


@pytest.mark.parametrize("n_pairs", [4, 5, 50])
def test_pairs_are_judged_as_by_the_t_test(n_pairs):
    rng = np.random.default_rng(n_pairs)
    for gains in rng.normal(3.0 / np.sqrt(n_pairs), 1.0, (40, n_pairs)):
        sure = stats.ttest_1samp(gains, 0.0).pvalue < 0.05 and abs(gains.mean()) > 0.1
        assert (verdict(*paired(gains)) != "ties") == sure


def test_a_true_tie_is_called_won_or_lost_once_in_twenty():
    draws = np.random.default_rng(0).normal(0.0, 10.0, (4000, 5))
    assert np.mean([verdict(*paired(gains)) != "ties" for gains in draws]) == pytest.approx(0.05, abs=0.012)


def test_unpaired_runs_are_judged_as_by_welchs_test():
    gain, error, freedom = unpaired(OURS, THEIRS)
    welch = stats.ttest_ind(OURS, THEIRS, equal_var=False)
    assert (gain / error, freedom) == pytest.approx((welch.statistic, welch.df))


def test_a_side_that_was_run_once_adds_no_spread_and_two_of_them_decide_nothing():
    assert unpaired(OURS, [60.0]) == pytest.approx((1.6, stats.sem(OURS), 4))
    assert unpaired([60.0], THEIRS)[1:] == pytest.approx((stats.sem(THEIRS), 2))
    assert unpaired([60.0], [59.0]) == (1.0, None, 0.0)
    assert unpaired([60.0, 60.0], [59.0, 59.0]) == (1.0, 0.0, 2.0)
