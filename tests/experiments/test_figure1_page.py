"""What the page of the shares says, from records made by hand."""

from __future__ import annotations

import pytest
from scipy import stats

from streamlabel.experiments.comparisons import Comparison
from streamlabel.experiments.figure1 import Figure1Record
from streamlabel.experiments.figure1_page import page
from streamlabel.experiments.methods import BR, SLL

OURS = (61.0, 62.5, 60.0, 63.0, 61.5)


def record(method: str, share: int, seed: int, p1: float, parameters: str = "{}") -> Figure1Record:
    return Figure1Record("set", method, share, seed, True, 20, 18, p1, p1, p1, p1, parameters, 1.0, 1.0)


def against(method: str, values: dict[int, float]) -> Comparison:
    ours = [record(SLL, 50, seed, p1) for seed, p1 in enumerate(OURS)]
    records = [*ours, *(record(method, 100, seed, p1) for seed, p1 in values.items())]
    return next(c for c in page(records).comparisons if c.measure == "P@1")


def test_a_competitor_that_draws_at_random_is_paired_by_seed():
    theirs = (60.0, 62.0, 61.0, 59.0, 60.5)
    found = against("LEML", dict(enumerate(theirs)))
    expected = stats.ttest_rel(OURS, theirs)
    assert (found.gain / found.error, found.freedom) == pytest.approx((expected.statistic, expected.df))


def test_seeds_that_only_one_side_has_leave_no_pair():
    theirs = {5: 60.0, 6: 62.0, 7: 55.0}
    found = against("LEML", theirs)
    expected = stats.ttest_ind(OURS, list(theirs.values()), equal_var=False)
    assert (found.gain / found.error, found.freedom) == pytest.approx((expected.statistic, expected.df))


def test_a_competitor_that_draws_nothing_is_a_level():
    found = against(BR, {0: 60.0})
    assert (found.gain, found.error, found.freedom) == pytest.approx((1.6, stats.sem(OURS), 4))


def test_one_run_of_a_competitor_that_draws_at_random_decides_nothing():
    assert against("LEML", {0: 10.0}).verdict == "undecided"
