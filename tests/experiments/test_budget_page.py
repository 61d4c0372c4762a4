"""Tables of budget records, against values worked out by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from streamlabel.errors import DataError
from streamlabel.experiments.budget import BudgetRecord
from streamlabel.experiments.budget_experiment import EXPERIMENT
from streamlabel.experiments.budget_methods import DEFAULT, OWN_RIDGE
from streamlabel.experiments.budget_page import page
from streamlabel.experiments.budget_pictures import pictures
from streamlabel.experiments.budget_prototype import PROTOTYPE
from streamlabel.experiments.budget_rows import bar_sentence, budget_rows, falls
from streamlabel.experiments.budget_savings import as_words, rows_needed, savings
from streamlabel.experiments.runner import record_file

PAPER = "paper (anchor only)"


def record(method: str, seed: int, p1: float, *, dataset: str = "set", n_rows: int = 50, **other) -> BudgetRecord:
    values = {"p3": 30.0, "p5": 20.0, "auc": 70.0, "average_precision": 10.0, "share": 0.0, "anchored": False} | other
    return BudgetRecord(
        dataset=dataset, method=method, n_rows=n_rows, n_train=400, seed=seed, n_labels=8, n_learned=5 + seed,
        p1=p1, cpu_seconds=0.1 * seed, **values,
    )  # fmt: skip


def pair(gain: float, n_seeds: int = 1, **other) -> list[BudgetRecord]:
    gains = {OWN_RIDGE: 0.0, DEFAULT: gain}
    return [record(name, seed, 50.0 + more, **other) for seed in range(n_seeds) for name, more in gains.items()]


def test_means_gain_and_its_standard_error():
    rows = budget_rows(
        [
            record(OWN_RIDGE, 0, 10.0),
            record(DEFAULT, 0, 12.0, share=0.3),
            record(OWN_RIDGE, 1, 20.0),
            record(DEFAULT, 1, 26.0, anchored=True),
            record(OWN_RIDGE, 2, 30.0),
            record(DEFAULT, 2, 34.0),
        ]
    )
    (row,) = rows
    found = row.measures["p1"]
    # gains 2, 6, 4: mean 4, deviation 2 (n - 1), over the root of 3
    assert (found.own_ridge, found.method, found.gain) == (20.0, 24.0, 4.0)
    assert found.error == pytest.approx(2.0 / 3.0**0.5)
    assert row.measures["auc"].gain == row.measures["auc"].error == 0.0
    assert (row.n_seeds, row.n_past_used, row.n_learned) == (3, 2, 6.0)


def test_only_seeds_that_both_were_run_on_count():
    (row,) = budget_rows([*pair(1.0), record(OWN_RIDGE, 1, 99.0), record(DEFAULT, 2, 1.0)])
    assert row.n_seeds == 1
    assert row.measures["p1"].gain == 1.0
    assert row.measures["p1"].error is None
    assert budget_rows([record(DEFAULT, 0, 1.0)]) == []


def test_the_order_of_rows_does_not_depend_on_the_order_of_budgets():
    records = [r for n_rows in (400, 20, 100) for r in pair(0.0, n_rows=n_rows)]
    assert [row.n_rows for row in budget_rows(records)] == [20, 100, 400]


def test_the_bar_finds_what_fell_and_where():
    records = [*pair(-0.29, 4), *pair(-0.5, 4, n_rows=100), *pair(-2.0, 4, dataset="other"), record(PAPER, 0, 40.0)]
    rows = budget_rows(records)
    assert [(row.dataset, row.n_rows, name) for row, name in falls(rows)] == [("other", 50, "p1"), ("set", 100, "p1")]
    said = bar_sentence(rows)
    assert said.startswith("The bar is missed: 2 of 15 measures")
    assert said.endswith("other, 50 rows, P@1 -2.00 ± 0.00; set, 100 rows, P@1 -0.50 ± 0.00.")
    met = bar_sentence(budget_rows([*pair(-0.29, 4), *pair(5.0, 4, n_rows=100), *pair(-9.0, 3, n_rows=200)]))
    assert met.startswith("The bar is met: none of 10 measures")
    assert "set, 50 rows, P@1 -0.29" in met
    assert "nothing to judge" in bar_sentence([])


def test_too_few_seeds_do_not_pronounce_on_the_bar():
    for gain in (3.0, -3.0):
        found = page(pair(gain, 3))
        assert found.body.endswith("The bar is not judged: that takes 4 seeds or more.")
        assert found.data["bar"]["met"] is None
        assert found.data["bar"]["falls"] == []
    assert "no measure may fall more than 0.3 points under own ridge" in found.body


def test_the_sentence_gives_every_set_its_gain_and_its_strongest_other_method():
    def run(dataset: str, n_rows: int, **auc: float) -> list[BudgetRecord]:
        names = {"past": DEFAULT, "own": OWN_RIDGE, "svc": "LinearSVC", "logistic": "LogisticRegression"}
        return [record(names[key], 0, 0.0, dataset=dataset, n_rows=n_rows, auc=value) for key, value in auc.items()]

    records = [
        *run("a", 50, past=70.0, own=60.0, svc=62.0, logistic=61.0), *run("a", 400, past=80.0, own=78.0, svc=79.0),
        *run("b", 50, past=70.0, own=71.0),
    ]  # fmt: skip
    said = page(records).sentence
    assert "a +6.0 over learning alone (+2.0 to +10.0), +4.5 over LinearSVC, the strongest other" in said
    assert "b -1.0 over learning alone" in said
    assert said.startswith("With fewer than 4 seeds this decides nothing. ")
    assert page(pair(1.0, 4)).sentence.startswith("Gain in points of AUC")
    assert "-1.0 to" not in said  # one number of rows has no range


@pytest.mark.parametrize(("last", "falls_too"), [(69.0, True), (69.9, False)])
def test_where_more_rows_do_harm_the_sentence_says_so(last, falls_too):
    records = [
        record(name, seed, 50.0, n_rows=n_rows, auc=auc + 0.02 * seed * (n_rows == 400))
        for name in (OWN_RIDGE, DEFAULT) for seed in range(4) for n_rows, auc in ((50, 60.0), (100, 70.0), (400, last))
    ]  # fmt: skip
    said = "set: AUC of the learner falls from 70.0 with 100 rows to 69.0 with 400 (-0.97 ± 0.01)."
    found = page(records)
    assert (f"More rows are not always better: {said}" in found.sentence) == falls_too
    assert (said in found.body.splitlines()) == falls_too
    few = page([one for one in records if one.seed < 3])
    assert "falls from" not in few.sentence + few.body


def test_a_gain_that_rounds_to_zero_has_no_minus():
    aucs = {OWN_RIDGE: 70.0, DEFAULT: 69.996}
    found = page([record(name, 0, 50.0, n_rows=n, auc=auc) for n in (50, 100) for name, auc in aucs.items()])
    assert "+0.0 over learning alone (+0.0 to +0.0)" in found.sentence
    assert "70.0 -> 70.0 (+0.00)" in found.body
    assert "-0.0" not in found.sentence + found.body


def test_the_page_has_the_gain_all_methods_and_ends_with_the_bar():
    records = [*pair(1.0), *pair(2.5, n_rows=400), record(PAPER, 0, 40.0), record(PAPER, 1, 44.0)]
    found = page(records)
    assert found.body.splitlines()[-1] == bar_sentence(budget_rows(records))
    assert "## set: own ridge -> with the past (gain)" in found.body
    assert "50.0 -> 52.5 (+2.50)" in found.body
    assert "400 (all)" in found.body
    assert "prototype" not in found.body
    lines = found.body.splitlines()
    table = lines[lines.index("## set: P@1 of all methods") + 2 :][:4]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert cells[0] == ["annotated rows", DEFAULT, OWN_RIDGE, PAPER]
    assert cells[2:] == [["50", "51.0", "50.0", "42.0 ± 2.0"], ["400", "52.5", "50.0", ""]]


def test_with_two_methods_the_gain_says_it_all():
    assert "of all methods" not in page(pair(1.0)).body


def test_the_learner_is_compared_with_its_competitors_and_its_variants_but_not_with_itself():
    records = [record(DEFAULT, seed, 50.0 + seed) for seed in range(5)]
    records += [record("LinearSVC", seed, 40.0) for seed in range(4)] + [record(PAPER, 0, 1.0)]
    found = page(records).comparisons
    assert {one.competitor for one in found} == {"LinearSVC", PAPER}
    (p1,) = (one for one in found if one.measure == "P@1" and one.competitor == "LinearSVC")
    assert (p1.dataset, p1.where, p1.gain, p1.error) == ("set", "50 rows", 11.5, pytest.approx((5 / 3) ** 0.5 / 2))
    assert p1.verdict == "wins"


def test_rows_needed_is_linear_in_log_rows_and_takes_the_first_crossing():
    curve = {10: 0.0, 100: 10.0, 1000: 5.0, 10000: 20.0}
    assert rows_needed(curve, 5.0) == pytest.approx(10**1.5)
    assert rows_needed(curve, 10.0) == pytest.approx(100.0)
    assert rows_needed(curve, 12.5) == pytest.approx(10**3.5)
    assert rows_needed(curve, -1.0) == 10.0
    assert rows_needed(curve, 20.1) is None


def test_savings_in_rows_and_in_words():
    own, past = {20: 50.0, 80: 60.0, 400: 70.0}, {20: 45.0, 80: 65.0, 400: 90.0}
    records = [record(OWN_RIDGE, 0, 0.0, n_rows=n, auc=value) for n, value in own.items()]
    records += [record(DEFAULT, 0, 0.0, n_rows=n, auc=value) for n, value in past.items()]
    found = [one for one in savings(records) if one.measure == "auc"]
    assert [(one.n_rows, one.at_most) for one in found] == [(20, True), (80, False)]  # 400 are all
    assert [as_words(one) for one in found] == ["at most 20 (1.0x)", "179 (2.2x)"]  # the root of 80 * 400
    fewer = [one for one in savings(r for r in records if r.n_rows < 400) if one.measure == "auc"]
    assert as_words(fewer[-1]) == "more than 80"
    most = [replace(one, auc=80.0) if one.method == DEFAULT else one for one in records]
    assert [as_words(one) for one in savings(most) if one.measure == "auc"] == ["more than all"] * 2
    assert savings(pair(0.0)[:1]) == []


def test_the_prototype_stands_beside_the_sets_it_was_measured_on():
    found = page([r for n_rows in (20, 50) for r in pair(1.0, dataset="bibtex", n_rows=n_rows)])
    (line,) = [line for line in found.body.splitlines() if "16.6 / 6.4 / 61.6" in line]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:3] == ["50", "15.0 / 6.0 / 60.5", "50.0 / 20.0 / 70.0"]
    assert cells[3:5] == ["16.6 / 6.4 / 61.6", "51.0 / 20.0 / 70.0"]
    assert cells[5:] == ["+1.6 / +0.4 / +1.1", "+1.0 / +0.0 / +0.0"]
    assert "draws differ" in found.body
    assert found.data["prototype"] == {"bibtex": PROTOTYPE["bibtex"]}


def test_the_data_is_strict_json_without_times():
    text = json.dumps(page([*pair(-1.0, 4), *pair(1.0, 4, n_rows=100)]).data, allow_nan=False)
    data = json.loads(text)
    assert "seconds" not in text
    assert [one["n_rows"] for one in data["savings"] if one["measure"] == "auc"] == [50, 100]
    assert data["bar"]["met"] is False
    assert data["bar"]["falls"][0] | {"own_ridge": 0} == {
        "dataset": "set", "n_rows": 50, "measure": "p1", "own_ridge": 0, "method": 49.0, "gain": -1.0, "error": 0.0,
    }  # fmt: skip
    assert [row["n_rows"] for row in data["rows"]] == [50, 100]


def test_pictures_show_means_and_standard_errors():
    records = [*pair(0.0), record(OWN_RIDGE, 1, 0.0, auc=74.0), *pair(0.0, n_rows=100)]
    auc, _ = pictures(records)
    (panel,) = auc.panels
    past, own = panel.series
    assert (past.label, past.x, past.y) == (DEFAULT, (50, 100), (70.0, 70.0))
    assert (own.label, own.y) == (OWN_RIDGE, (72.0, 70.0))
    assert own.spread == pytest.approx((2.0, math.nan), nan_ok=True)  # deviation of 70 and 74 over the root of 2
    assert pictures([]) == []


def test_a_record_of_an_unknown_method_is_named(tmp_path):
    file = record_file(EXPERIMENT, tmp_path)
    for one in pair(1.0):
        file.append(one)
    file.path.write_text(file.path.read_text(encoding="utf-8").replace(DEFAULT, "guessing"), encoding="utf-8")
    said = r"budget\.jsonl, line 2: no method of the budget is called 'guessing'; remove the line"
    with pytest.raises(DataError, match=said):
        record_file(EXPERIMENT, tmp_path)
