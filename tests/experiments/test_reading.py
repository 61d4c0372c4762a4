"""The honest reading: counts by hand."""

from __future__ import annotations

from dataclasses import replace

from streamlabel.experiments.budget_methods import DEFAULT, VARIANTS
from streamlabel.experiments.comparisons import Comparison
from streamlabel.experiments.methods import OWN, SLL
from streamlabel.experiments.own_forms import OWN_FORMS
from streamlabel.experiments.reading import reading
from streamlabel.experiments.standings import Standing, standings


def one(
    gain: float, error: float | None, competitor: str = "LinearSVC", where: str = "50 rows", n_rows: int | None = 50,
    dataset: str = "bibtex",
) -> Comparison:  # fmt: skip
    return Comparison(dataset, where, "AUC", competitor, gain, error, 1000.0, n_rows)


def advice(*comparisons: Comparison) -> list[str]:
    """The points on what to do, each with what was found as one text."""
    lines = reading({"a": comparisons}).partition("The counts behind this")[0].splitlines()
    points = [line for line in lines if line.lstrip().startswith("- ")]
    return "\n".join(points).replace("\n  -", "").splitlines()


def test_counts_and_mean_gain():
    found = standings({"budget": [one(3.0, 1.0), one(-3.0, 1.0), one(-4.5, 1.0), one(0.5, 1.0), one(9.0, None)]})
    assert found == {("budget", "bibtex", "LinearSVC"): Standing(wins=1, ties=1, loses=2, undecided=1, gain=1.0)}


def test_a_measure_that_speaks_against_the_learner_is_named_where_the_others_drown_it():
    won = [replace(one(1.0, 0.1, "A"), measure=f"P@{k}") for k in (1, 3, 5)]
    lost = one(-2.0, 0.1, "A", dataset="reuters-21578")
    held = [replace(two, dataset="reuters-21578") for two in won]
    (line,) = advice(*won, one(1.0, 0.1, "A"), *held, lost)
    assert "use the learner as it is. Where AUC is what you need, judge both on held-out rows. Ahead of A." in line
    assert line.endswith("though not in all together (mean gains in points): in AUC A (reuters-21578 -2.0).")
    (line,) = advice(*won, one(1.0, 0.1, "A"), *held)
    assert line.endswith("use the learner as it is. Ahead of A.")
    (line,) = advice(*won, one(1.0, 0.1, "A"), *held, lost, *[one(-1.0, 0.1, "A", dataset="eurlex57k")] * 2)
    assert "it is behind on judge both on held-out rows. So too where AUC is what you need. Ahead of A" in line
    (line,) = advice(*won, lost)  # behind on the set anyway: said once
    assert line.endswith("Ahead of A (behind on reuters-21578).")


def test_losses_are_named_deepest_first_and_not_hidden_in_a_mean():
    lost = [one(-float(n), 0.1, where=f"{n} rows") for n in range(1, 8)]
    text = reading({"budget": [*lost, *(one(50.0, 0.1) for _ in range(20))]})
    assert "| linear support vector machines | 20 | 0 | 7 |" in " ".join(text.split())
    assert "It loses to LinearSVC (the deepest 5 of 7): bibtex, 7 rows: AUC -7.00 ± 0.10; bibtex, 6 rows" in text
    assert "2 rows: AUC" not in text
    assert "50 rows: AUC -1.00." in reading({"figure1": [one(-1.0, 0.001)]})  # nothing is exact to 0.00
    assert "annotated: use the learner as it is.\n  - Ahead of linear support vector machines.\n" in text


def test_places_are_sorted_as_numbers_and_counted_over_competitors():
    text = reading({"budget": [one(1.0, 0.1, "A", "1000 rows"), one(1.0, 0.1, "A"), one(-1.0, 0.1, "B")]})
    lines = [line for line in text.splitlines() if line.startswith("|") and " rows |" in line and "budget" in line]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines] == [
        ["budget", "50 rows", "1", "0", "1", "0", "+0.00"],
        ["budget", "1000 rows", "1", "0", "0", "0", "+1.00"],
    ]


def test_advice_follows_the_counts_of_each_competitor():
    (line,) = advice(one(1.0, 0.1, "A"), one(-1.0, 0.1, "B"), one(0.0, 0.1, "C"), one(2.0, 0.1, "A"))
    assert line.endswith("Ahead of A. Level with C. Behind B (on bibtex).")
    assert "expect to take the other" in line
    (line,) = advice(one(0.0, 0.1, "C"))
    assert line.endswith("ahead of none: take what is simpler to run where you are. Level with C.")
    assert "No decided comparison is lost." in reading({"a": [one(1.0, 0.1)]})


def test_sets_that_were_made_up_are_shown_and_not_counted():
    text = reading({"a": [one(1.0, 0.1), one(-1.0, 0.1, "LEML", dataset="wiki10-31k (stand-in twin)")]})
    assert "LEML" not in text.partition("were made up")[0]
    assert "| a | wiki10-31k (stand-in twin) | LEML | 0 | 0 | 1 |" in " ".join(
        text.partition("were made up")[2].split()
    )
    assert "made up" not in reading({"a": [one(1.0, 0.1, dataset="eurlex-4k (stand-in eurlex57k)")]})


def test_few_annotated_rows_and_all_of_them_are_different_questions():
    few = [one(1.0, 0.1, name, n_rows=20) for name in ("LogisticRegression", "own logistic")]
    many = [one(-1.0, 0.1, name, n_rows=None) for name in ("scikit-learn logistic", "BR logistic", "napkinXC BR")]
    first, last = advice(*many, *few)
    assert first == "- With up to 100 rows annotated: use the learner as it is. Ahead of logistic regression."
    assert last.startswith("- With all rows annotated: on sets like those the learner is behind on, judge both")
    assert last.endswith("Behind logistic regression (on bibtex).")
    assert "| all rows | logistic regression | 0 | 0 | 3 |" in " ".join(reading({"a": many}).split())


def test_a_set_on_which_the_learner_is_behind_is_named_though_it_is_ahead_on_the_whole():
    (line,) = advice(*[one(1.0, 0.1, "A")] * 5, one(-1.0, 0.1, "A", dataset="delicious"))
    assert "annotated: use the learner, but on sets like those it is behind on judge both" in line
    assert line.endswith("Ahead of A (behind on delicious).")


def test_a_set_on_which_the_learner_is_only_level_is_named_though_it_is_ahead_on_the_whole():
    won, tied = [one(1.0, 0.1, "A")] * 5, one(0.0, 0.1, "A", dataset="delicious")
    (line,) = advice(*won, tied)
    assert line.endswith("use the learner as it is. Ahead of A (level on delicious).")
    (line,) = advice(*won, tied, *[one(-1.0, 0.1, "A", dataset="eurlex57k")] * 9)
    assert line.endswith("Behind A (on eurlex57k; level on delicious; ahead on bibtex).")


def test_one_loss_among_many_ties_is_no_lead():
    (line,) = advice(*[one(0.0, 0.1, "A")] * 9, one(-1.0, 0.1, "A"))
    assert "Level with A." in line
    (line,) = advice(*[one(0.0, 0.1, "A")] * 8, one(-1.0, 0.1, "A"))
    assert "Behind A" in line


def test_other_forms_of_the_learner_are_no_competitors_but_stand_in_a_table():
    text = reading({"table2": [one(1.0, 0.1, "A"), *[one(1.0, 0.1, "SLL logistic")] * 5]})
    assert "use the learner as it is.\n  - Ahead of A.\n" in text
    assert "No decided comparison is lost." in text
    before, after = text.split("Against its own other forms, which are no competitors:")
    assert "SLL logistic" not in before
    assert "| SLL logistic | 5 | 0 | 0 |" in " ".join(after.split())


def test_a_form_of_the_learner_that_is_better_is_named_with_the_sets_whatever_an_experiment_calls_it():
    found = [one(1.0, 0.1, "A"), one(-1.0, 0.1, "SLL logistic"), one(1.0, 0.1, "SLL paper")]
    found += [one(sign, 0.1, "logistic with the past", dataset=name) for sign, name in ((-1.0, "b"), (1.0, "c"))]
    (line,) = advice(*found, one(-1.0, 0.1, "SLL logistic", n_rows=None))
    assert (
        "annotated: use the learner. Where another form of it is better, take that. Ahead of A. Its form with" in line
    )
    assert line.endswith('(`loss="logistic"`) is better on bibtex, b; worse on c.')
    table = " ".join(reading({"table2": found}).split())
    assert '| its form with the logistic loss (`loss="logistic"`) | 1 | 0 | 2 |' in table


def test_every_form_of_the_learner_is_known_as_such():
    forms = {name for name in OWN if name.startswith(SLL)} | set(VARIANTS)
    assert forms - {SLL, DEFAULT} == OWN_FORMS.keys()


def test_a_set_has_one_name_in_the_advice_also_where_it_stands_in_for_another():
    stand_in = one(-1.0, 0.1, "A", dataset="mediamill (stand-in mediamill_reduced)")
    found = {"budget": [one(1.0, 0.1, "A", dataset="mediamill_reduced")] * 5, "table2": [stand_in]}
    before, after = reading(found).split("By experiment, set and competitor:")
    assert "stand-in" not in before
    assert "| A | 5 | 0 | 1 | 0 | +0.67 | mediamill_reduced | | |" in " ".join(before.split())
    assert "| table2 | mediamill (stand-in mediamill_reduced) | A | 0 | 0 | 1 |" in " ".join(after.split())


def test_figure1_is_in_the_table_by_experiment_and_not_behind_the_advice():
    lost = one(-1.0, 0.1, "B", n_rows=None)
    text = reading({"table2": [one(1.0, 0.1, "A")], "figure1": [lost]})
    before, after = text.split("How this is counted:")
    assert "Behind" not in before
    assert "| B |" not in " ".join(before.split())
    assert "not in the advice and its counts; table2 asks the same with pairs" in after
    assert "| figure1 | bibtex | B | 0 | 0 | 1 |" in " ".join(after.split())
    alone = reading({"figure1": [lost]})
    assert "No advice follows: figure1 alone does not decide it." in alone
    assert "- With " not in alone


def test_what_was_looked_at_stands_before_any_count_and_names_only_what_is_compared():
    first, _, rest = reading({"a": [one(1.0, 0.1), one(1.0, 0.1, dataset="reuters-21578")]}).partition("\n\n")
    assert "settled while looking at test rows of bibtex. No run reads a test row" in first
    assert first.endswith("**Not looked at, so the ones to trust: reuters-21578.**")
    assert "eurlex57k" not in first
    assert "looking at test rows" not in rest
    later = reading({"a": [one(1.0, 0.1, dataset="eurlex-4k (stand-in eurlex57k)")]})
    assert "test rows of eurlex57k, and the least gain was raised after a loss on the later laws of eurlex57k" in later
    assert "No other set is compared here." in later
    fair = reading({"a": [one(1.0, 0.1, dataset="reuters-21578")]})
    assert fair.startswith("No test row of reuters-21578 was looked at while the learner was designed.\n")


def test_a_set_that_shares_rows_with_one_that_was_looked_at_is_none_to_trust():
    text = reading({"a": [one(1.0, 0.1, dataset="citeulike-t-min5"), one(1.0, 0.1, dataset="mediamill")]})
    assert "test rows of citeulike-t, mediamill_reduced. No run" in text
    assert "to trust" not in text


def test_a_measure_that_is_not_fair_to_a_competitor_is_named_and_not_counted():
    text = reading({"a": [one(1.0, 0.1), replace(one(9.0, 0.1, "SLEEC"), counted=False)]})
    assert "not fair to the competitor: AUC of SLEEC." in text
    assert "| SLEEC |" not in " ".join(text.split())
    assert "not fair" not in reading({"a": [one(1.0, 0.1)]})


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
    assert "| linear support vector machines | 0 | 0 | 0 | 1 |" in " ".join(text.split())
    assert "- With up to 100 rows annotated: nothing is decided: too few runs, run more." in text
    assert "Nothing is decided: no comparison has enough pairs." in text
    assert "lost." not in text


def test_two_pairs_are_no_tie():
    few = Comparison("bibtex", "50 rows", "P@1", "omikuji", 10.55, 3.0, 1.0, 50)
    (line,) = advice(few, one(1.0, 0.1, "A"))
    assert line.endswith("use the learner as it is. Ahead of A. Too few runs to judge it against omikuji.")
    assert "12.7 standard errors with 2 pairs" in reading({"a": [few]})


def test_quick_runs_and_the_embedded_texts_give_no_advice():
    quick = replace(one(5.0, 0.1), quick=True)
    texts = one(5.0, 0.1, dataset="news corpus")
    text = reading({"a": [quick, texts]})
    assert "\n\nNothing here can be counted, and no advice follows" in text
    assert "use the learner" not in text
    assert "wins" not in text.partition("|")[0]
    assert "| a | bibtex | LinearSVC | 1 |" in " ".join(text.partition("Of quick runs")[2].split())
    before, _, _ = reading({"a": [quick, texts, one(1.0, 0.1, "A")]}).partition("How this is counted")
    assert before.count("| up to 100 rows |") == " ".join(before.split()).count("| A | 1 | 0 | 0 |") == 1


def test_level_with_all_is_no_reason_to_use_it_also_where_it_is_behind_on_a_set():
    ties = [one(0.0, 0.1, "A")] * 30
    (line,) = advice(*ties, one(-1.0, 0.1, "A", dataset="delicious"))
    assert line.endswith(
        "ahead of none: take what is simpler to run where you are. Level with A (behind on delicious)."
    )
    assert "use the learner" not in line


def test_nothing_to_read():
    assert "nothing to read" in reading({"bounds": []})
