from __future__ import annotations

from streamlabel.experiments.tables import markdown_table


def test_columns_are_as_wide_as_their_widest_cell():
    assert markdown_table(["a", "long"], [["12345", "1"]]) == (
        "|     a | long |\n|------:|-----:|\n| 12345 |    1 |"
    )  # fmt: skip


def test_words_stand_left_and_numbers_right():
    found = markdown_table(
        ["method", "P@1", "set"], [["SLL", "5.1", ""], ["BR ridge", "not run", ""], ["x", "+10", ""]]
    )
    assert found.splitlines() == [
        "| method   |     P@1 | set |",
        "|----------|--------:|-----|",
        "| SLL      |     5.1 |     |",
        "| BR ridge | not run |     |",
        "| x        |     +10 |     |",
    ]
