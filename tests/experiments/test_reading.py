"""The honest reading: counts by hand."""

from __future__ import annotations

from dataclasses import replace

from streamlabel.experiments.comparisons import Comparison
from streamlabel.experiments.reading import reading
from streamlabel.experiments.standings import Standing, standings


def one(
    gain: float, error: float | None, competitor: str = "LinearSVC", where: str = "50 rows", n_rows: int | None = 50,
    dataset: str = "bibtex",
) -> Comparison:  # fmt: skip
    return Comparison(dataset, where, "AUC", competitor, gain, error, 1000.0, n_rows)


def advice(*comparisons: Comparison) -> list[str]:
    return [line for line in reading({"a": comparisons}).splitlines() if line.startswith("- With ")]


def test_counts_and_mean_gain():
    found = standings({"budget": [one(3.0, 1.0), one(-3.0, 1.0), one(-4.5, 1.0), one(0.5, 1.0), one(9.0, None)]})
    assert found == {("budget", "bibtex", "LinearSVC"): Standing(wins=1, ties=1, loses=2, undecided=1, gain=1.0)}


def test_losses_are_named_deepest_first_and_not_hidden_in_a_mean():
    lost = [one(-float(n), 0.1, where=f"{n} rows") for n in range(1, 8)]
    text = reading({"budget": [*lost, *(one(50.0, 0.1) for _ in range(20))]})
    assert "wins 20, ties 0 and loses 7." in text
    assert "It loses to LinearSVC (the deepest 5 of 7): bibtex, 7 rows: AUC -7.00 ± 0.10; bibtex, 6 rows" in text
    assert "2 rows: AUC" not in text
    assert "50 rows: AUC -1.00." in reading({"figure1": [one(-1.0, 0.001)]})  # nothing is exact to 0.00
    assert "ahead of linear support vector machines. Use it as it is." in text


def test_places_are_sorted_as_numbers_and_counted_over_competitors():
    text = reading({"budget": [one(1.0, 0.1, "A", "1000 rows"), one(1.0, 0.1, "A"), one(-1.0, 0.1, "B")]})
    lines = [line for line in text.splitlines() if line.startswith("|") and " rows |" in line and "budget" in line]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines] == [
        ["budget", "50 rows", "1", "0", "1", "0", "+0.00"],
        ["budget", "1000 rows", "1", "0", "0", "0", "+1.00"],
    ]


def test_advice_follows_the_counts_of_each_competitor():
    (line,) = advice(one(1.0, 0.1, "A"), one(-1.0, 0.1, "B"), one(0.0, 0.1, "C"), one(2.0, 0.1, "A"))
    assert "ahead of A; level with C; behind B (on bibtex)." in line
    assert "expect to take the other" in line
    (line,) = advice(one(0.0, 0.1, "C"))
    assert line.endswith("level with C. It is ahead of none: take what is simpler to run where you are.")
    assert "No decided comparison is lost." in reading({"a": [one(1.0, 0.1)]})


def test_sets_that_were_made_up_are_shown_and_not_counted():
    text = reading({"a": [one(1.0, 0.1), one(-1.0, 0.1, "LEML", dataset="wiki10-31k (stand-in twin)")]})
    assert "Of 1 comparisons" in text
    assert "LEML" not in text.partition("were made up")[0]
    assert "| a | wiki10-31k (stand-in twin) | LEML | 0 | 0 | 1 |" in " ".join(
        text.partition("were made up")[2].split()
    )
    assert "made up" not in reading({"a": [one(1.0, 0.1, dataset="eurlex-4k (stand-in eurlex57k)")]})


def test_few_annotated_rows_and_all_of_them_are_different_questions():
    few = [one(1.0, 0.1, name, n_rows=20) for name in ("LogisticRegression", "own logistic")]
    many = [one(-1.0, 0.1, name, n_rows=None) for name in ("scikit-learn logistic", "BR logistic", "napkinXC BR")]
    first, last = advice(*many, *few)
    assert first == "- With up to 100 rows annotated: the learner is ahead of logistic regression. Use it as it is."
    assert last.startswith("- With all rows annotated: the learner is behind logistic regression (on bibtex).")
    assert 'try `loss="logistic"`' in last
    assert "| all rows | logistic regression | 0 | 0 | 3 |" in " ".join(reading({"a": many}).split())


def test_a_set_on_which_the_learner_is_behind_is_named_though_it_is_ahead_on_the_whole():
    (line,) = advice(*[one(1.0, 0.1, "A")] * 5, one(-1.0, 0.1, "A", dataset="delicious"))
    assert "ahead of A (behind on delicious). Use it as it is, but on sets like those" in line


def test_one_loss_among_many_ties_is_no_lead():
    (line,) = advice(*[one(0.0, 0.1, "A")] * 9, one(-1.0, 0.1, "A"))
    assert "level with A." in line
    (line,) = advice(*[one(0.0, 0.1, "A")] * 8, one(-1.0, 0.1, "A"))
    assert "behind A" in line


def test_other_forms_of_the_learner_are_no_competitors_but_stand_in_a_table():
    text = reading({"table2": [one(1.0, 0.1, "A"), *[one(-1.0, 0.1, "SLL logistic")] * 5]})
    assert "Of 1 comparisons" in text
    assert "wins 1, ties 0 and loses 0." in text
    assert "No decided comparison is lost." in text
    before, after = text.split("Against its own other forms, which are not counted above:")
    assert "SLL logistic" not in before
    assert "| SLL logistic | 0 | 0 | 5 |" in " ".join(after.split())


def test_the_rule_that_is_stated_is_the_rule_that_is_used():
    assert "2.8 standard errors with 5 pairs" in reading({"a": [one(1.0, 0.1)]})
    assert Comparison("a", "b", "c", "d", 2.83, 1.0, 4).verdict == "wins"
    assert Comparison("a", "b", "c", "d", 2.75, 1.0, 4).verdict == "ties"


def test_pairs_that_are_no_runs_with_the_same_seed_are_named_where_there_are_such():
    one_run, labels = "In figure1 a competitor that draws nothing at random is run once", "In timeline they are labels"
    assert one_run in reading({"figure1": [one(1.0, 0.1)], "budget": [one(1.0, 0.1)]})
    assert labels in reading({"timeline": [one(1.0, 0.1)]})
    text = reading({"budget": [one(1.0, 0.1)], "figure1": [], "timeline": [one(1.0, 0.1, dataset="news corpus")]})
    assert one_run not in text
    assert labels not in text


def test_one_seed_decides_nothing():
    text = reading({"a": [one(9.0, None)]})
    assert "wins 0, ties 0 and loses 0; 1 with fewer than 4 pairs are undecided" in text
    assert "- With up to 100 rows annotated: nothing is decided: too few runs, run more." in text
    assert "Nothing is decided: no comparison has enough pairs." in text
    assert "lost." not in text


def test_two_pairs_are_no_tie():
    few = Comparison("bibtex", "50 rows", "P@1", "omikuji", 10.55, 3.0, 1.0, 50)
    (line,) = advice(few, one(1.0, 0.1, "A"))
    assert line.endswith("ahead of A; too few runs to judge it against omikuji. Use it as it is.")
    assert "12.7 standard errors with 2 pairs" in reading({"a": [few]})


def test_quick_runs_and_the_embedded_texts_give_no_advice():
    quick = replace(one(5.0, 0.1), quick=True)
    texts = one(5.0, 0.1, dataset="news corpus")
    text = reading({"a": [quick, texts]})
    assert text.startswith("Nothing here can be counted, and no advice follows")
    assert "Use it" not in text
    assert "wins" not in text.partition("|")[0]
    assert "| a | bibtex | LinearSVC | 1 |" in " ".join(text.partition("Of quick runs")[2].split())
    assert "Of 1 comparisons" in reading({"a": [quick, texts, one(1.0, 0.1, "A")]})


def test_level_with_all_is_no_reason_to_use_it_also_where_it_is_behind_on_a_set():
    ties = [one(0.0, 0.1, "A")] * 30
    (line,) = advice(*ties, one(-1.0, 0.1, "A", dataset="delicious"))
    assert "level with A (behind on delicious). It is ahead of none" in line
    assert "Use it" not in line


def test_nothing_to_read():
    assert "nothing to read" in reading({"bounds": []})
