"""Times of arrivals: who is timed on what, who is left out and why, and what the page says."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from planted_set import planted_sets
from streamlabel.errors import DataError
from streamlabel.experiments import figure2, figure2_words, methods
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.figure2 import Figure2Record
from streamlabel.experiments.figure2_page import page, pictures
from streamlabel.experiments.methods import BR, METHODS, SLL
from streamlabel.experiments.records import timeless
from streamlabel.experiments.tuning import Learned

TRAIN, TEST = planted_sets(n_empty=2)
SOME = (SLL, BR, "LEML")


@pytest.fixture(autouse=True)
def small_set(monkeypatch):
    monkeypatch.setattr(figure2, "load_set", lambda name: (TRAIN, TEST))
    monkeypatch.setattr(figure2, "to_run", lambda asked, names, quick: [n for n in asked or names if n in SOME])


def records_of(options: dict | None = None) -> list[Figure2Record]:
    setting = Setting(("planted",), (0, 1), options=options or {})
    return [record for task in figure2.tasks(setting) for record in figure2.run(task, ())]


def test_everybody_learns_the_same_new_labels_after_more_and_more_past_ones(monkeypatch):
    asked = []

    def learn_batch(method, parameters, rows, seed):
        asked.append((seed, rows.Y_past.shape[1], rows.Y_new.toarray(), rows.Y_past.toarray()))
        return Learned(np.zeros((10, 8)), 8, 1.0, 1.0, 0.5)

    monkeypatch.setattr(figure2, "learn_batch", learn_batch)
    records_of()
    assert {n_past for _, n_past, _, _ in asked} == {9, 18}
    for seed in (0, 1):
        new = [Y for s, _, Y, _ in asked if s == seed]
        assert all(np.array_equal(Y, new[0]) for Y in new)
        assert new[0].any(axis=0).all()
        small, large = (next(P for s, n, _, P in asked if (s, n) == (seed, size)) for size in (9, 18))
        assert np.array_equal(small, large[:, :9])


def test_times_are_measured_and_nothing_else_differs():
    first, second = records_of(), records_of()
    assert [timeless(r) for r in first] == [timeless(r) for r in second]
    assert all(r.cpu_seconds > 0 and r.n_new == 8 for r in first)
    assert all(r.past_seconds > 0 for r in first)


def test_the_rule_leaves_out_what_is_too_large_and_the_page_says_so(monkeypatch):
    cells = METHODS["LEML"].cells(300, TRAIN.X.nnz, 9, figure2.NEW)
    monkeypatch.setitem(METHODS, "LEML", replace(METHODS["LEML"], most_cells=cells))
    found = records_of()
    assert [r.n_past for r in found if r.method == "LEML" and r.seed == 0] == [9]
    body = page(found).body
    (line,) = (line for line in body.splitlines() if line.strip("| ").startswith("LEML"))
    assert "not run" in line
    done = {tuple(getattr(r, name) for name in figure2.KEY) for r in found}
    (task,) = figure2.tasks(Setting(("planted",), (0,), options={"methods": ("LEML",)}))
    assert [r.n_past for r in figure2.run(task, done)] == [18]


def test_times_on_other_features_are_not_in_the_same_table():
    old = [replace(made(SLL, 100, 9.0), n_features=1000), replace(made("river", 100, 9.0), n_features=1000)]
    body = page([*old, made(SLL, 100, 0.2)]).body
    assert "500 features" in body
    assert "| 9 (18)" not in body
    (picture,) = pictures([*old, made(SLL, 100, 0.2)])
    assert [series.label for series in picture.panels[0].series] == [SLL]


def test_cells_count_the_past_only_for_those_who_learn_it():
    assert METHODS["LEML"].cells(1000, 0, 50, 10) == 60_000
    assert METHODS["scikit-learn SVM"].cells(1000, 0, 50, 10) == 10_000
    assert METHODS["scikit-learn SVM"].cells(1000, 68_000, 50, 10) == 30_000  # 68 features a row
    many = sparse.csr_array(np.ones((18_182, 34)))
    assert figure2.left_out("SLL logistic", many, 10_000, 100)
    assert not figure2.left_out("SLL logistic", many[:12_920], 800, 100)
    assert not figure2.left_out(SLL, many, 20_000, 100)


def test_many_past_labels_mean_a_dictionary(monkeypatch):
    monkeypatch.setattr(methods, "LARGE", 10)
    monkeypatch.setattr(methods, "DICTIONARY", 5)
    found = {(r.method, r.n_past): r.parameters for r in records_of()}
    assert '"dictionary": 5' in found[SLL, 18]
    assert "dictionary" not in found[SLL, 9]
    assert "dictionary" not in found[BR, 18]


def test_a_set_with_too_few_labels_is_refused(monkeypatch):
    few = TRAIN.take_labels(np.arange(5))
    monkeypatch.setattr(figure2, "load_set", lambda name: (few, TEST.take_labels(np.arange(5))))
    with pytest.raises(DataError, match="8 or more are needed"):
        records_of()
    with pytest.raises(DataError, match="800 past and"):
        list(figure2.run(figure2.Figure2Task("delicious", SLL, (100, 800), (0,), 500), ()))


def made(method: str, n_past: int, cpu: float) -> Figure2Record:
    return Figure2Record("delicious", method, n_past, 0, 100, 12_920, 500, "{}", 2 * cpu, cpu, 0.0)


def test_sentence_table_and_picture_come_from_the_records():
    records = [made(SLL, 100, 0.2), made(SLL, 200, 0.25), made("LEML", 200, 5.0), made(BR, 200, 0.05)]
    found = page(records)
    assert "100 new labels take SLL 0.25 s of CPU after 200 past labels (0.2 s after 100)" in found.sentence
    assert "BR ridge 0.2, LEML 20.0" in found.sentence
    assert "0.25 (0.5)" in found.body
    (picture,) = pictures(records)
    assert picture.log_y
    assert {series.label: series.y for series in picture.panels[0].series}[SLL] == (0.2, 0.25)


def test_runs_and_their_spread_are_told_on_the_page_and_in_the_picture():
    one = [made(SLL, 100, 0.2), made(BR, 100, 0.1)]
    assert "12,920 rows, 500 features, 1 run, no spread." in page(one).body
    assert "(1 run, no spread)" in page(one).sentence
    assert pictures(one)[0].spread == "none, a point is 1 run"
    more = [*one, replace(made(SLL, 100, 0.3), seed=1)]
    assert "500 features, 1 to 2 runs, the longest 1.5 times the least at the median, 1.5 at most." in page(more).body
    assert pictures(more)[0].spread == "not drawn, a point is the least of its runs"


def test_methods_that_were_not_timed_are_named_with_what_is_known_of_the_reason(monkeypatch):
    monkeypatch.setattr(figure2_words, "installed", lambda names: [name for name in names if name != "omikuji"])
    large = [replace(made(SLL, 100, 0.2), n_rows=2_000_000)]
    (said,) = (line for line in page(large).body.splitlines() if line.startswith("Not timed here"))
    groups = {reason: names for names, reason in re.findall(r"([^;:()]+) \(([^)]+)\)", said)}
    assert "river" in groups["not named by --methods"]
    assert "SLL paper" in groups["too large by the rule of the page"]
    assert "omikuji" in groups["not installed"]
    assert "SLL paper" in pictures(large)[0].reading
    small = page([made(SLL, 100, 0.2)]).body
    assert "BR logistic, BR squared hinge" in small
    assert "(not named by --methods, or too large by the rule of the page)" in small
