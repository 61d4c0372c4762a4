"""Comparisons in data frames: against scipy's paired test, against hand-made records, and who is counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from streamlabel.experiments import compare
from streamlabel.experiments.spec import Measure, PageSpec, Versus
from streamlabel.experiments.table2 import PAGE as TABLE2
from streamlabel.experiments.table2 import Table2Record

pd = pytest.importorskip("pandas")
MEASURES = (Measure("score", "score"), Measure("loss", "loss", -100.0))
VERSUS = Versus(MEASURES, place="batch", where="{} labels")


def frame(**scores: list[float]):
    """A method a keyword, a seed a value; the loss is the score in hundredths, turned."""
    lines = [
        {"dataset": "a", "method": method, "batch": 5, "seed": seed, "score": score, "loss": -score / 100}
        for method, values in scores.items()
        for seed, score in enumerate(values)
    ]
    return pd.DataFrame(lines)


@pytest.mark.parametrize("n_pairs", [4, 5, 9])
@pytest.mark.parametrize("shift", [-1.0, 0.0, 0.05, 2.0])
def test_a_verdict_is_that_of_scipys_paired_test_and_of_the_least_gain(n_pairs, shift):
    draw = np.random.default_rng(n_pairs)
    ours, theirs = draw.normal(50.0, 5.0, n_pairs) + shift, draw.normal(50.0, 5.0, n_pairs)
    theirs = ours - shift + draw.normal(0.0, 0.3, n_pairs)
    found = compare.comparisons(frame(SLL=list(ours), other=list(theirs)), VERSUS)
    expected = stats.ttest_rel(ours, theirs)
    one = found[found["measure"] == "score"].iloc[0]
    assert one["gain"] == pytest.approx(np.mean(ours - theirs))
    assert one["error"] == pytest.approx(stats.sem(ours - theirs))
    assert one["freedom"] == expected.df
    sure = expected.pvalue < 0.05 and abs(one["gain"]) > 0.1
    assert one["verdict"] == (("wins" if one["gain"] > 0 else "loses") if sure else "ties")
    turned = found[found["measure"] == "loss"].iloc[0]  # less is better
    assert turned[["gain", "error"]].tolist() == pytest.approx(one[["gain", "error"]].tolist())


def test_pairs_are_runs_of_the_same_seed_and_a_single_one_decides_nothing():
    ours = frame(SLL=[1.0, 2.0, 3.0, 4.0])
    late = frame(other=[0.0, 0.0, 0.0, 0.0, 0.0])
    shifted = pd.concat([ours, late[late["seed"] >= 3]])
    one = compare.comparisons(shifted, VERSUS).iloc[0]
    assert (one["gain"], one["freedom"], one["verdict"]) == (4.0, 0.0, "undecided")
    assert np.isnan(one["error"])
    assert not len(compare.comparisons(pd.concat([ours, late[late["seed"] >= 4]]), VERSUS))


@pytest.mark.parametrize(
    ("figures", "verdict"),
    [
        ((0.1, 0.0, 4.0), "ties"),  # however sure
        ((0.11, 0.0, 4.0), "wins"),
        ((-0.11, 0.0, 4.0), "loses"),
        ((2.7, 1.0, 4.0), "ties"),  # 2.776 standard errors with 5 pairs
        ((2.8, 1.0, 4.0), "wins"),
        ((9.0, 0.1, 2.0), "undecided"),
        ((9.0, float("nan"), 9.0), "undecided"),
    ],
)
def test_the_rule(figures, verdict):
    assert compare.verdict_of(*figures) == verdict


def test_runs_that_do_not_belong_together_are_compared_as_welch_does():
    draw = np.random.default_rng(0)
    ours, theirs = draw.normal(3.0, 1.0, 6), draw.normal(1.0, 4.0, 9)
    gain, error, freedom = compare.unpaired(ours, theirs)
    expected = stats.ttest_ind(ours, theirs, equal_var=False)
    assert gain / error == pytest.approx(expected.statistic)
    assert freedom == pytest.approx(expected.df)
    assert compare.unpaired(ours, [1.0])[1:] == pytest.approx((stats.sem(ours), 5.0))
    assert np.isnan(compare.unpaired([1.0], [2.0])[1])


def test_one_run_of_a_method_that_draws_nothing_stands_against_all_of_ours():
    both = frame(SLL=[4.0, 5.0, 6.0, 5.0], fixed=[1.0], drawing=[1.0])
    versus = replace(VERSUS, runs_once=frozenset({"fixed"}))
    found = compare.comparisons(both, versus).set_index(["competitor", "measure"])
    assert found.loc[("fixed", "score"), "gain"] == pytest.approx(4.0)
    assert found.loc[("fixed", "score"), "error"] == pytest.approx(stats.sem([4.0, 5.0, 6.0, 5.0]))
    assert found.loc[("fixed", "score"), "verdict"] == "wins"
    assert found.loc[("fixed", "loss"), "gain"] == pytest.approx(4.0)  # points, turned
    assert found.loc[("drawing", "score"), "verdict"] == "undecided"


RECORD = Table2Record("bibtex", "SLL", 0, 15, True, 79, 15, 50.0, 50.0, 50.0, 0.9, 0.1, "{}", 1.0, 1.0)


def table2(dataset: str = "bibtex", tuned: bool = True) -> list[Table2Record]:
    """Five orders; BR loses five points of P@1, LEML wins one, SLEEC ties in the measures that count."""
    p1 = {"SLL": 50.0, "BR ridge": 45.0, "LEML": 51.0, "SLEEC": 50.0, "SLL paper": 40.0}
    return [
        replace(RECORD, dataset=dataset, tuned=tuned, method=name, seed=seed, p1=value + seed, ranking_loss=loss)
        for name, value in p1.items()
        for seed in range(5)
        for loss in [0.5 if name == "SLEEC" else 0.1]
    ]


def results(records):
    spec = TABLE2
    return compare.comparisons(compare.frame_of(records, spec), spec.versus)


def test_standings_count_verdicts_over_places_and_measures():
    found = compare.standings(results(table2()), ["dataset", "competitor"]).set_index("competitor")
    assert found.loc["BR ridge", ["wins", "ties", "loses", "undecided", "lead"]].tolist() == [1, 4, 0, 0, "ahead"]
    assert found.loc["LEML", ["wins", "ties", "loses", "undecided", "lead"]].tolist() == [0, 4, 1, 0, "behind"]
    assert found.loc["BR ridge", "gain"] == pytest.approx(1.0)  # five points over five measures


def test_own_forms_quick_runs_made_up_sets_and_unfair_measures_are_shown_and_not_counted():
    found = results(table2())
    counted = found[found["counted"]]
    assert set(counted["competitor"]) == {"BR ridge", "LEML", "SLEEC"}
    assert set(found[found["own_form"]]["competitor"]) == {"SLL paper"}
    assert "ranking loss" not in set(counted[counted["competitor"] == "SLEEC"]["measure"])
    assert len(found) == 4 * 5
    assert not results(table2(tuned=False))["counted"].any()
    for made_up in ("news corpus", "wiki10-31k (stand-in twin)"):
        assert not results(table2(made_up))["counted"].any()


def test_numbers_of_rows_and_families_are_taken_together():
    few = results(table2()).assign(n_rows=[20.0, 100.0, 101.0, 5000.0, np.nan] * 4)
    found = compare.by_rows({"a": few, "b": results(table2("delicious"))})
    assert list(dict.fromkeys(found["rows"])) == ["up to 100", "101 to 1,000", "more than 1,000", "all"]
    ridge = found[(found["rows"] == "all") & (found["against"] == "ridge")].iloc[0]
    assert ridge[["wins", "ties", "loses"]].sum() == 1 + 5
    assert "delicious" in ridge["ahead on"]


def test_pages_call_methods_by_one_name():
    spec = PageSpec(names={"with the past": "SLL"}, order=("BR ridge", "SLL"))
    records = [replace(RECORD, method=name) for name in ("with the past", "BR ridge")]
    assert compare.frame_of(records, spec)["method"].tolist() == ["BR ridge", "SLL"]
