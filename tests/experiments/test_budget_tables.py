"""Tables of budget records, against values worked out by hand."""

from __future__ import annotations

import json

import pytest

from streamlabel.experiments.budget import DEFAULT, OWN_RIDGE, BudgetRecord
from streamlabel.experiments.budget_tables import PROTOTYPE, bar_sentence, budget_rows, falls, page, pictures

PAPER = "paper (anchor only)"


def record(method: str, seed: int, p1: float, *, dataset: str = "set", n_rows: int = 50, **other) -> BudgetRecord:
    values = {"p3": 30.0, "p5": 20.0, "auc": 70.0, "average_precision": 10.0, "share": 0.0, "anchored": False} | other
    return BudgetRecord(
        dataset=dataset, method=method, n_rows=n_rows, n_train=400, seed=seed, n_labels=8, n_learned=5 + seed,
        p1=p1, seconds=0.1 * seed, **values,
    )  # fmt: skip


def pair(gain: float, **other) -> list[BudgetRecord]:
    return [record(OWN_RIDGE, 0, 50.0, **other), record(DEFAULT, 0, 50.0 + gain, **other)]


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
    records = [*pair(-0.29), *pair(-0.5, n_rows=100), *pair(-2.0, dataset="other"), record(PAPER, 0, 40.0)]
    rows = budget_rows(records)
    assert [(row.dataset, row.n_rows, name) for row, name in falls(rows)] == [("other", 50, "p1"), ("set", 100, "p1")]
    said = bar_sentence(rows)
    assert said.startswith("The bar is missed: 2 of 15 measures")
    assert said.endswith("other, 50 rows, P@1 -2.00; set, 100 rows, P@1 -0.50.")
    met = bar_sentence(budget_rows([*pair(-0.29), *pair(5.0, n_rows=100), record(PAPER, 0, 40.0)]))
    assert met.startswith("The bar is met: none of 10 measures")
    assert "set, 50 rows, P@1 -0.29" in met
    assert "nothing to judge" in bar_sentence([])


def test_the_page_has_a_table_a_method_and_ends_with_the_bar():
    records = [*pair(1.0), *pair(2.5, n_rows=400), record(PAPER, 0, 40.0)]
    found = page(records)
    assert found.body.splitlines()[-1] == bar_sentence(budget_rows(records))
    assert "## set: own ridge -> with the past" in found.body
    assert f"## set: own ridge -> {PAPER}" in found.body
    assert "50.0 -> 52.5 (+2.50)" in found.body
    assert "400 (all)" in found.body
    assert "prototype" not in found.body
    tables = [line for line in found.body.splitlines() if line.startswith("|")]
    assert len(tables) == 2 * 2 + 3
    assert len({line.count("|") for line in tables}) == 1


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
    text = json.dumps(page([*pair(-1.0), *pair(1.0, n_rows=100)]).data, allow_nan=False)
    data = json.loads(text)
    assert "seconds" not in text
    assert data["bar"]["met"] is False
    assert data["bar"]["falls"][0] | {"own_ridge": 0} == {
        "dataset": "set", "n_rows": 50, "measure": "p1", "own_ridge": 0, "method": 49.0, "gain": -1.0, "error": None,
    }  # fmt: skip
    assert [row["n_rows"] for row in data["rows"]] == [50, 100]


def test_pictures_show_means_and_standard_errors():
    records = [*pair(0.0), record(OWN_RIDGE, 1, 0.0, auc=74.0), *pair(0.0, n_rows=100)]
    auc, _ = pictures(records)
    (panel,) = auc.panels
    past, own = panel.series
    assert (past.label, past.x, past.y) == (DEFAULT, (50, 100), (70.0, 70.0))
    assert (own.label, own.y) == (OWN_RIDGE, (72.0, 70.0))
    assert own.spread == pytest.approx((2.0, 0.0))  # deviation of 70 and 74 over the root of 2
    assert pictures([]) == []
