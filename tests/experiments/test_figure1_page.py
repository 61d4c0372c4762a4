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


def rows(text: str, heading: str) -> dict[str, list[str]]:
    """The cells of the table under this heading, by the first of each line."""
    lines = text[text.index(heading) :].split("\n\n")[1].splitlines()[2:]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in found}


def test_a_cell_of_fewer_orders_says_so_where_more_were_to_come():
    ours = [record(SLL, 50, seed, p1) for seed, p1 in enumerate((60.0, 61.0, 62.0))]
    more = [record(SLL, 90, 0, 60.0), record(SLL, 100, 0, 60.0), record(BR, 100, 0, 59.0), record("LEML", 100, 1, 58.0)]
    found = page([*ours, *more]).body
    curve = rows(found, "### set: SLL by the share")
    assert {share: cells[0] for share, cells in curve.items()} == {
        "50%": "61.00 ± 1.00", "90%": "60.00 (1 order)", "100%": "60.00",
    }  # fmt: skip
    everybody = rows(found, "### set: all labels at the start")
    assert everybody[BR][0] == "59.00"
    assert everybody["LEML"][0] == "58.00 (1 order)"
    assert "Not all orders are there yet of SLL, LEML: their cells say how many." in found
    assert "nothing arrives. SLL is BR ridge, of the same strength (`beta` ?): they differ by 1.00 at most." in found


def test_all_hyper_parameters_of_a_method_are_shown():
    mixed = [record("LEML", 100, seed, 60.0, f'{{"rank": {seed}}}') for seed in range(2)]
    assert rows(page(mixed).body, "### set: all labels at the start")["LEML"][-1] == '`{"rank": 0}`; `{"rank": 1}`'


def test_one_record_is_nothing_to_compare_yet():
    found = page([record(SLL, 50, 0, 60.0)])
    assert found.comparisons == ()
    assert found.sentence == "set: nothing to compare yet."
    assert "Nothing to compare yet" in found.body
    assert "nan" not in found.body.lower()


def test_one_model_of_two_strengths_shows_what_the_strength_does():
    ours, theirs = (
        record(SLL, 100, 0, 60.0, '{"beta": "auto", "lam": 0.01}'),
        record(BR, 100, 0, 61.26, '{"beta": 30.0}'),
    )
    found = page([ours, theirs]).body
    assert (
        "SLL is BR ridge, of another strength (`beta` auto, not 30.0): the difference, P@1 -1.26, P@3 -1.26," in found
    )
    assert "is the choice of strength alone" in found
    assert "SLL logistic is" not in found
    everybody = rows(found, "### set: all labels at the start")
    assert everybody[BR][-1] == '`{"beta": 30.0}` (beta at the edge)'
    assert everybody[SLL][-1] == '`{"beta": "auto", "lam": 0.01}` (lam at the edge)'
