"""What the page of the batches says, from records made by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from streamlabel.experiments.methods import BR, SLL
from streamlabel.experiments.reading import is_counted
from streamlabel.experiments.table2 import Table2Record
from streamlabel.experiments.table2_gains import pictures
from streamlabel.experiments.table2_page import page


def records(method: str, p1: Iterable[float], parameters: str = "{}", batch: int = 10) -> list[Table2Record]:
    return [
        Table2Record("set", method, seed, batch, True, 50, 9, value, value, value, 0.9, 0.1, parameters, 1.0, 1.0)
        for seed, value in enumerate(p1)
    ]


def cells(text: str, heading: str) -> dict[str, list[str]]:
    """The cells of the table under this heading, by the first of each line."""
    parts = text[text.index(heading) :].split("\n\n")
    lines = next(part for part in parts if part.startswith("|")).splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def test_a_cell_of_fewer_orders_than_the_others_says_so():
    found = page([*records(SLL, (40.0, 42.0, 44.0)), *records(BR, (39.0, 41.0)), *records("LEML", (38.0,))]).body
    assert "3 orders of the labels" in found
    assert "Not all orders are there yet of BR ridge, LEML: their cells say how many." in found
    table = cells(found, "### set: P@1")
    assert table == {SLL: ["42.0 ± 2.0"], BR: ["40.0 ± 1.4 (2 orders)"], "LEML": ["38.0 (1 order)"]}
    assert cells(found, "### set: 10 new labels, all methods")[BR][0] == "40.0 ± 1.4 (2 orders)"
    differences = cells(found, "### set: SLL minus the other")
    assert differences[BR][1] == "+1.00 ± 0.00 (2 orders)"
    assert differences["LEML"][1] == "+2.00 (1 order)"


def test_all_hyper_parameters_of_a_method_are_shown():
    mixed = [*records(BR, (40.0,), '{"beta": 1}'), *records(BR, (40.0, 41.0), '{"beta": 3}')[1:]]
    found = page([*records(SLL, (40.0, 42.0)), *mixed])
    everybody = cells(found.body, "### set: 10 new labels, all methods")
    assert everybody[BR][-1] == '`{"beta": 1}`; `{"beta": 3}`'
    assert everybody[SLL][-1] == "`{}`"
    (row,) = (row for row in found.data["rows"] if row["method"] == BR)
    assert row["parameters"] == ['{"beta": 1}', '{"beta": 3}']


def test_one_record_is_nothing_to_compare_yet():
    for method in (SLL, BR):
        found = page(records(method, (40.0,)))
        assert found.sentence.startswith("Nothing to compare yet")
        assert found.body.count("Nothing to compare yet") == 1
        assert "nan" not in found.body.lower()
        assert found.comparisons == ()


def test_one_order_decides_nothing_and_the_sentence_says_so():
    found = page([*records(SLL, (40.0,)), *records(BR, (30.0,))])
    assert "SLL against BR ridge: 0 wins, 0 ties, 0 losses, 5 undecided." in found.sentence
    assert "order)" not in found.body
    assert "Not all orders" not in found.body


def test_its_own_forms_are_counted_apart_from_competitors():
    ours, theirs = records(SLL, (40.0, 42.0) * 2), records("SLL logistic", (30.0, 32.0) * 2)
    sentence = page([*ours, *theirs, *records("river", (41.0, 43.0) * 2)]).sentence
    assert "its own other forms: 3 wins, 2 ties, 0 losses." in sentence
    assert "other loss functions and libraries: 0 wins, 2 ties, 3 losses, the lowest difference -1.0 points" in sentence


def test_a_quick_form_says_so_and_is_not_to_be_counted():
    quick = [replace(one, tuned=False) for one in (*records(SLL, (40.0,) * 5), *records(BR, (30.0,) * 5))]
    found = page(quick)
    assert found.sentence.startswith("A quick form (--quick: hyper-parameters were not chosen), whose figures decide")
    assert all(one.quick for one in found.comparisons)
    assert "Left out" not in found.body


def test_quick_records_beside_full_ones_are_left_out_and_counted():
    full = [*records(SLL, (40.0, 42.0)), *records(BR, (39.0, 41.0))]
    found = page([*full, *(replace(one, tuned=False) for one in full[:3])])
    assert found.body.startswith("Left out here: 3 quick records")
    assert not any(one.quick for one in found.comparisons)
    assert found.sentence == page(full).sentence


def test_table_and_picture_speak_the_same_way_and_less_ranking_loss_is_a_gain():
    theirs = [replace(one, ranking_loss=0.2) for one in records(BR, (39.0, 41.0))]
    both = [*records(SLL, (40.0, 42.0)), *theirs]
    found = page(both)
    assert cells(found.body, "### set: SLL minus the other")[BR] == ["10 new labels"] + ["+1.00 ± 0.00"] * 3 + [
        "+0.00 ± 0.00", "+10.00 ± 0.00",
    ]  # fmt: skip
    assert "the sign of the ranking loss, of which less is better, is turned" in found.body
    (picture,) = pictures(both)
    shown = [series.y[0] for panel in picture.panels for series in panel.series]
    assert shown == pytest.approx([1.0, 1.0, 1.0, 0.0, 10.0])
    assert "sign turned" in picture.panels[-1].title
    assert "Above zero SLL is better" in picture.reading


def test_a_picture_counts_its_own_forms_apart_and_nothing_that_is_not_counted():
    ours, other = records(SLL, (40.0, 42.0) * 2), records("SLL logistic", (30.0, 32.0) * 2)
    everything = [*ours, *other, *records("LEML", (41.0, 43.0) * 2), *records("river", (41.0, 43.0) * 2)]
    (picture,) = pictures(everything)
    assert (
        "0 wins, 2 ties, 3 losses for SLL over all points of its competitors; 3 wins, 2 ties, 0 losses over those "
        in (picture.reading)
    )
    (only_own,) = pictures([*ours, *other])
    assert only_own.reading.endswith("in every panel: 3 wins, 2 ties, 0 losses over those of its own other forms.")
    for changes in ({"dataset": "wiki10-31k (stand-in twin)"}, {"tuned": False}):
        (uncounted,) = pictures([replace(one, **changes) for one in everything])
        assert "wins" not in uncounted.reading
    assert pictures(other) == []


def test_the_ranking_loss_of_sleec_is_shown_and_not_counted():
    tied = [replace(one, ranking_loss=0.5) for one in records("SLEEC", (40.0, 42.0) * 2)]
    both = [*records(SLL, (40.0, 42.0) * 2), *tied]
    found = page(both)
    assert cells(found.body, "### set: SLL minus the other")["SLEEC"][-1] == "+40.00 ± 0.00"
    assert [one.measure for one in found.comparisons if not is_counted(one)] == ["ranking loss"]
    assert "SLEEC: 0 wins, 4 ties, 0 losses" in found.sentence
    assert "own other forms" not in found.sentence
    (picture,) = pictures(both)
    assert "0 wins, 4 ties, 0 losses for SLL" in picture.reading
    assert "ranking loss of SLEEC" in picture.reading


def test_a_method_that_met_the_largest_batch_only_is_one_point_with_its_spread():
    ours = [*records(SLL, (40.0, 42.0)), *records(SLL, (41.0, 41.0), batch=20)]
    both = [*ours, *records(BR, (39.0, 41.0)), *records(BR, (40.0, 41.0), batch=20)]
    (picture,) = pictures([*both, *records("LEML", (38.0, 42.0), batch=20)])
    alone, several = picture.panels[0].series[::-1]
    assert (alone.label, alone.x, alone.y, alone.spread) == ("LEML", (20.0,), (1.0,), (2.0,))
    assert several.x == (10.0, 20.0)


def gains_on(dataset: str, gains: dict[int, float], ours: str = "{}", theirs: str = "{}") -> list[Table2Record]:
    """SLL above BR ridge by so much in P@1, at every batch, nearly the same on four orders."""
    found = []
    for batch, gain in gains.items():
        found += records(SLL, (40.0 + gain, 42.0 + gain, 44.0 + gain, 46.01 + gain), ours, batch)
        found += records(BR, (40.0, 42.0, 44.0, 46.0), theirs, batch)
    return [replace(one, dataset=dataset) for one in found]


def test_the_claim_of_the_paper_is_not_reproduced_where_nothing_is_gained():
    found = page(gains_on("bibtex", {15: 0.02, 75: -0.1}))
    told = "-0.10 to +0.02 here, +0.54 to +0.66 in the paper"
    assert f"points of P@1: bibtex {told}: not reproduced." in found.sentence
    assert f"SLL minus BR ridge in P@1: {told}; the gain is not reproduced. SLL and BR ridge lie within 0.3 points" in (
        found.body
    )
    assert "nothing measurable over ridge with an intercept" in found.sentence


def test_a_sure_gain_of_half_the_paper_s_is_its_gain_again():
    whole = page(gains_on("bibtex", {15: 0.4, 75: 0.3}))
    assert "+0.30 to +0.40 here, +0.54 to +0.66 in the paper: reproduced." in whole.sentence
    part = page(gains_on("bibtex", {15: 0.4, 75: 0.2}))
    assert "reproduced at 15 new labels only" in part.sentence
    lost = page(gains_on("bibtex", {15: -3.0, 75: -2.0}))
    assert ": not reproduced." in lost.sentence
    few = page([one for one in gains_on("bibtex", {15: 3.0}) if one.seed < 2])
    assert "too few orders to tell" in few.sentence
    for text in (whole, part, lost, few):
        assert "nothing measurable" not in text.sentence


def test_a_misprint_of_the_paper_is_no_gain_of_it_and_is_named():
    found = page(gains_on("mediamill", {30: 0.0, 50: 0.0}))
    assert "here, +0.18 in the paper" in found.sentence
    assert "P@1 of BR at 30 labels, 54.16; P@1 of LEML at 30 labels, 54.12" in found.body


def test_on_a_stand_in_the_paper_s_figures_are_in_a_table_of_their_own():
    gains = {200: 0.1, 1000: 0.1}
    real, stand_in = (page(gains_on(name, gains)) for name in ("eurlex-4k", "eurlex-4k (stand-in eurlex57k)"))
    assert cells(real.body, "P@1 of the new labels")[SLL][0] == "43.1 ± 2.6 (5.12)"
    assert "what the paper prints" not in real.body
    assert cells(stand_in.body, "P@1 of the new labels")[SLL][0] == "43.1 ± 2.6"
    assert cells(stand_in.body, "what the paper prints for eurlex-4k itself")["SLL, P@1"][0] == "5.12"
    assert "main claim" not in stand_in.sentence
    assert {bool(row["paper"]) for row in stand_in.data["rows"]} == {False}


def test_wins_that_may_come_from_the_strength_are_told():
    found = page(gains_on("bibtex", {15: 1.0}, '{"beta": "auto", "lam": 0.01}', '{"beta": 3.0}'))
    assert "BR ridge: 3 wins, 2 ties, 0 losses (3 of these wins where the two chose different strengths: bibtex)" in (
        found.sentence
    )
    assert "different strengths by P@1 (`beta` auto and 3.0)" in found.body
    same = page(gains_on("bibtex", {15: 1.0}, '{"beta": 3.0, "lam": 0.01}', '{"beta": 3.0}'))
    assert "chose different" not in same.sentence
    assert "chose the same strength (`beta` 3.0)" in same.body


def test_a_choice_at_the_end_of_its_grid_is_marked():
    found = page([*records(SLL, (40.0,), '{"beta": 30.0, "lam": "auto"}'), *records(BR, (40.0,), '{"beta": 3.0}')]).body
    everybody = cells(found, "### set: 10 new labels, all methods")
    assert everybody[SLL][-1] == '`{"beta": 30.0, "lam": "auto"}` (beta at the edge)'
    assert everybody[BR][-1] == '`{"beta": 3.0}`'
    assert "a wider grid might do better" in found
    quick = [replace(one, tuned=False) for one in records(SLL, (40.0,), '{"beta": 30.0}')]
    assert "edge" not in page(quick).body


def test_dsll_is_read_batch_by_batch():
    def made(method: str, shares: dict[int, tuple[float, float]]) -> list[Table2Record]:
        return [
            replace(one, dataset="delicious", micro_auc=auc, ranking_loss=loss)
            for batch, (auc, loss) in shares.items()
            for one in records(method, (40.0,), batch=batch)
        ]

    ours = made(SLL, {100: (0.89, 0.07), 500: (0.9012, 0.2)})
    signed = made("SLL paper signed", {100: (0.70, 0.15), 500: (0.74, 0.17)})
    better, late = made(BR, {100: (0.95, 0.01), 500: (0.95, 0.01)}), made("LEML", {500: (0.99, 0.01)})
    found = page([*ours, *signed, *better, *late]).body
    assert "micro AUC better at 100, equal at 500; ranking loss better at 100, worse at 500." in found
    assert "both measures at all batches: BR ridge (of the 3 methods" in found
    assert "micro AUC 0.70 to 0.74 (its row about 0.80), ranking loss 0.15 to 0.17 (its row about 0.18)" in found
    assert "nearer to this than to SLL in micro AUC and ranking loss" in found
    row = cells(found, "### delicious: micro AUC")["DSLL (deep successor of SLL, ICML 2020), as published"]
    assert row == ["0.882", "0.901"]
