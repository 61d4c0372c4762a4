"""Tables: what a pivot says is what pandas and hand-made records say."""

from __future__ import annotations

import numpy as np
import pytest

from streamlabel.experiments import tables
from streamlabel.experiments.spec import Measure, Pivot

pd = pytest.importorskip("pandas")
DRAW = np.random.default_rng(0)
FRAME = pd.DataFrame(
    [
        {"dataset": dataset, "method": method, "batch": batch, "seed": seed, "p1": DRAW.normal(50.0, 5.0)}
        for dataset in ("one", "two")
        for method in ("SLL", "BR ridge")
        for batch in (5, 10)
        for seed in range(4)
    ]
)
P1 = (Measure("p1", "P@1", digits=2),)


def test_markdown_stands_right_for_numbers_and_left_for_words():
    table = tables.markdown_table(["method", "value"], [["SLL", "1.0 ± 0.1"], ["a long name", "12"]])
    assert table.splitlines() == [
        "| method      |     value |",
        "|-------------|----------:|",
        "| SLL         | 1.0 ± 0.1 |",
        "| a long name |        12 |",
    ]


@pytest.mark.parametrize(("spread", "name"), [("sd", "std"), ("error", "sem")])
def test_a_pivot_is_that_of_pandas(spread, name):
    parts = tables.pivot(FRAME, Pivot(P1, columns="batch", titles={"batch": "{} labels"}, spread=spread))
    assert list(parts) == ["one: P@1", "two: P@1"]
    expected = FRAME.pivot_table(index=["dataset", "method"], columns="batch", values="p1", aggfunc=["mean", name])
    for dataset, lines in zip(("one", "two"), parts.values(), strict=True):
        assert [line["method"] for line in lines] == ["SLL", "BR ridge"]
        for line in lines:
            for batch in (5, 10):
                mean, half = (expected.loc[(dataset, line["method"]), (how, batch)] for how in ("mean", name))
                assert line[f"{batch} labels"] == f"{mean:.2f} ± {half:.2f}"


def test_a_column_a_measure_and_cells_of_fewer_runs_say_so():
    some = FRAME[(FRAME["method"] == "SLL") | (FRAME["seed"] < 2)]
    lines = tables.pivot(some, Pivot(P1, rows=("method", "batch")))["one"]
    cells = {(line["method"], line["batch"]): line["P@1"] for line in lines}
    assert cells["BR ridge", "5"].endswith(" (2 of 4)")
    assert "of" not in cells["SLL", "5"]
    single = tables.pivot(FRAME[FRAME["seed"] == 0], Pivot(P1))["one"][0]["P@1"]
    assert "±" in single  # two batches


def test_lines_without_entries_and_columns_without_entries_are_left_out():
    text = tables.markdown({"one": [{"a": "1", "b": "", "c": ""}, {"a": "2", "b": "x"}], "two": [{"a": ""}]})
    assert text.splitlines()[:3] == ["### one", "", "| a | b |"]
    assert "two" not in text
    assert tables.markdown({}) == tables.NOTHING


def test_chosen_hyper_parameters_are_counted_and_marked_at_the_edges():
    grid = [{"C": value} for value in (0.1, 1.0, 10.0)]
    frame = pd.DataFrame({"dataset": "one", "method": "SVM", "parameters": ['{"C": 10.0}'] * 3 + ['{"C": 1.0}', ""]})
    (line,) = tables.chosen(frame, lambda name, record: grid)
    assert line["chosen (how often)"] == "1 (1), 10 (3)"
    assert line["at an edge of the grid"] == "3 of 4"
    (no_edge,) = tables.chosen(frame, lambda name, record: grid[:2])
    assert no_edge["at an edge of the grid"] == ""
