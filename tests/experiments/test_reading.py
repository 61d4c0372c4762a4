"""The honest reading: counts by hand."""

from __future__ import annotations

from streamlabel.experiments.comparisons import Comparison
from streamlabel.experiments.reading import Standing, reading, standings


def one(gain: float, error: float | None, competitor: str = "LinearSVC", where: str = "50 rows") -> Comparison:
    return Comparison("bibtex", where, "AUC", competitor, gain, error)


def test_counts_and_mean_gain():
    found = standings({"budget": [one(3.0, 1.0), one(-3.0, 1.0), one(-4.5, 1.0), one(0.5, 1.0), one(9.0, None)]})
    assert found == {("budget", "bibtex", "LinearSVC"): Standing(wins=1, ties=1, loses=2, undecided=1, gain=1.0)}


def test_losses_are_named_deepest_first_and_not_hidden_in_a_mean():
    lost = [one(-float(n), 0.1, where=f"{n} rows") for n in range(1, 8)]
    text = reading({"budget": [*lost, *(one(50.0, 0.1) for _ in range(20))]})
    assert "wins 20, ties 0 and loses 7." in text
    assert "It loses to LinearSVC (the deepest 5 of 7): bibtex, 7 rows: AUC -7.00 ± 0.10; bibtex, 6 rows" in text
    assert "2 rows: AUC" not in text
    assert "Against LinearSVC it wins more often" in text


def test_places_are_sorted_as_numbers_and_counted_over_competitors():
    text = reading({"budget": [one(1.0, 0.1, "A", "1000 rows"), one(1.0, 0.1, "A"), one(-1.0, 0.1, "B")]})
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if " rows |" in line]
    assert cells == [
        ["budget", "50 rows", "1", "0", "1", "0", "+0.00"],
        ["budget", "1000 rows", "1", "0", "0", "0", "+1.00"],
    ]


def test_advice_follows_the_counts_of_each_competitor():
    text = reading({"a": [one(1.0, 0.1, "A"), one(-1.0, 0.1, "B"), one(0.0, 0.1, "C")], "b": [one(2.0, 0.1, "A")]})
    assert "- Against A it wins" in text
    assert "- Against C neither is ahead" in text
    assert "- Against B it loses more often" in text
    assert "No comparison is lost." in reading({"a": [one(1.0, 0.1)]})


def test_one_seed_decides_nothing():
    text = reading({"a": [one(9.0, None)]})
    assert "wins 0, ties 0 and loses 0, and 1 with one seed decide nothing" in text
    assert "- Against LinearSVC nothing is decided by one seed: run more." in text


def test_nothing_to_read():
    assert "nothing to read" in reading({"bounds": []})
