"""Times of arrivals: who is timed on what, who is left out and why, and what the page says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from planted_set import planted_sets
from streamlabel.errors import DataError
from streamlabel.experiments import figure2, methods
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.figure2 import Figure2Record
from streamlabel.experiments.methods import BR, METHODS, SLL
from streamlabel.experiments.record_file import timeless
from streamlabel.experiments.report import Results
from streamlabel.experiments.tuning import Learned
from tiny_commands import has

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
    if has("pandas"):
        lines = Results(figure2.EXPERIMENT, found).sections("times")["planted"]
        assert [line["18 past"] for line in lines if line["method"] == "LEML"] == ["not run"]
    done = {tuple(getattr(r, name) for name in figure2.KEY) for r in found}
    (task,) = figure2.tasks(Setting(("planted",), (0,), options={"methods": ("LEML",)}))
    assert [r.n_past for r in figure2.run(task, done)] == [18]


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


def test_times_are_the_least_of_runs_on_the_same_features():
    pytest.importorskip("pandas")
    old = replace(made(SLL, 100, 9.0), n_features=1000)
    runs = [made(SLL, 100, 0.2), replace(made(SLL, 100, 0.3), seed=1), made("LEML", 100, 5.0), made(BR, 100, 0.05)]
    found = Results(figure2.EXPERIMENT, [old, *runs])
    (ours, _, leml) = found.sections("times")["delicious"]
    assert (ours["100 past"], leml["times SLL at 100"]) == ("0.2 (0.4)", "25.0")
    assert found.sections("ratios")[""][0]["LEML / SLL"] == "25.0"
    assert found.sections("shapes")[""][0]["longest run by the least, median"] == "1.5 (at most 1.5)"
