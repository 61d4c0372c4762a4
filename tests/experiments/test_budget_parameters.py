"""Hyper-parameters that were chosen: kept in the records, counted on the page, edges of grids marked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from planted_past import planted_past
from planted_set import planted_sets
from streamlabel.experiments.budget import BudgetRecord, BudgetTask, run_on
from streamlabel.experiments.budget_methods import METHODS, OWN_RIDGE
from streamlabel.experiments.budget_page import page
from streamlabel.experiments.budget_parameters import chosen

CHOOSERS = ("RidgeCV", "LogisticRegression", "LinearSVC", "LEML", "SLEEC")


def record(method: str, seed: int, parameters: dict | None, n_rows: int = 100, dataset: str = "set") -> BudgetRecord:
    return BudgetRecord(
        dataset, method, n_rows, 400, seed, 8, 5, 50.0, 30.0, 20.0, 70.0, 10.0, 0.0, False, 0.1,
        json.dumps(parameters) if parameters else "",
    )  # fmt: skip


@pytest.mark.parametrize("name", list(METHODS))
def test_what_was_chosen_is_of_the_grid_and_told(name):
    rows = np.arange(0, 120, 3)
    answer = METHODS[name].learn(planted_past(), np.array([0, 2, 3]), rows)
    assert bool(answer.parameters) == (name in CHOOSERS)
    if name in CHOOSERS:
        assert answer.parameters in METHODS[name].grid(len(rows))


def test_records_keep_it():
    (one,) = run_on(BudgetTask("planted", 0, (30,), ("LinearSVC",)), *planted_sets())
    assert json.loads(one.parameters)["C"] in METHODS["LinearSVC"].strengths


def test_values_are_counted_and_choices_at_the_edge_of_a_grid_marked():
    values = [0.03, 10.0, 10.0, 1.0]  # of 0.03 to 10
    records = [record("LinearSVC", seed, {"C": C}) for seed, C in enumerate(values)]
    records += [record(OWN_RIDGE, seed, None) for seed in range(4)] + [record("LEML", 0, None)]
    (one,) = chosen(records)
    assert one.counts == {"0.03": 1, "1": 1, "10": 2}
    assert (one.n_at_edge, one.n_judged, one.mostly_at_edge) == (3, 4, True)
    body = page(records).body
    lines = body[body.index("## set: hyper-parameters that were chosen") :].splitlines()
    cells = [cell.strip() for cell in lines[6].strip("|").split("|")]
    assert cells == ["LinearSVC", "C", "0.03 (1), 1 (1), 10 (2)", "3 of 4 **(most)**"]
    assert page(records).data["parameters"][0]["counts"] == one.counts
    half = chosen([record("LinearSVC", seed, {"C": C}) for seed, C in enumerate([0.03, 1.0])])
    assert not half[0].mostly_at_edge


def test_edges_are_those_of_the_grid_for_as_many_rows():
    """25 neighbours are the most for 50 rows and the middle for 100; of two strengths either is an edge."""
    found = [record("SLEEC", n, {"beta": 3.0, "n_predict_neighbours": 25}, n_rows=n) for n in (50, 100)]
    beta, neighbours = chosen(found)
    assert (neighbours.name, neighbours.n_at_edge, neighbours.n_judged) == ("n_predict_neighbours", 1, 2)
    assert (beta.name, beta.n_judged, beta.mostly_at_edge) == ("beta", 0, False)


def test_a_value_of_another_grid_is_counted_and_not_judged():
    (one,) = chosen([record("LinearSVC", 0, {"C": 1e6}), record("LinearSVC", 1, {"C": 1.0})])
    assert one.counts == {"1": 1, "1e+06": 1}
    assert (one.n_at_edge, one.n_judged) == (0, 1)


def test_without_any_there_is_no_table():
    assert "hyper-parameters that were chosen" not in page([record(OWN_RIDGE, 0, None)]).body
