"""The share of labels at the start: against scikit-learn, and what must not matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from planted_set import planted_sets
from streamlabel.experiments import figure1
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.figure1 import Figure1Record
from streamlabel.experiments.methods import BR, METHODS, SLL
from streamlabel.experiments.record_file import timeless
from streamlabel.experiments.tuning import as_text, narrowed

TRAIN, TEST = planted_sets()
SOME = (SLL, "SLL paper", BR, "LEML")


@pytest.fixture(autouse=True)
def small_set(monkeypatch):
    monkeypatch.setattr(figure1, "load_set", lambda name: (TRAIN, TEST))


def records_of(methods: tuple[str, ...], quick: bool = True) -> list[Figure1Record]:
    setting = Setting(("planted",), (0, 1), quick, {"methods": methods})
    return [record for task in figure1.tasks(setting) for record in figure1.run(task, {})]


@pytest.fixture(scope="module")
def records() -> list[Figure1Record]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure1, "load_set", lambda name: (TRAIN, TEST))
        return records_of(SOME)


def test_with_all_labels_at_the_start_sll_and_br_are_scikit_learns_ridge(records):
    X, X_test = narrowed(TRAIN, TEST)
    learner = METHODS[BR].make({"beta": "auto"}, 0)
    learner.start(X, TRAIN.Y)
    scores = Ridge(alpha=learner._known.beta_).fit(X.toarray(), TRAIN.Y.toarray()).predict(X_test.toarray())
    truth = TEST.Y.toarray()
    for method in (SLL, BR):
        (record,) = (r for r in records if (r.method, r.share) == (method, 100))
        assert record.auc == pytest.approx(100 * roc_auc_score(truth, scores), rel=1e-9)
        assert record.p1 == pytest.approx(100 * truth[np.arange(200), scores.argmax(axis=1)].mean())


def test_without_the_past_the_start_does_not_matter(monkeypatch):
    monkeypatch.setattr(figure1, "CURVES", {SLL: {"metric": None}})
    monkeypatch.setitem(METHODS, SLL, replace(METHODS[SLL], grid=({"lam": None, "beta": 1.0},)))
    found = records_of((SLL,))
    assert len(found) == 5  # 2 orders of 20% and 60%, and 100% once
    assert len({round(r.auc, 6) for r in found}) == 1


def test_a_second_run_gives_the_same_records(records):
    assert [timeless(r) for r in records_of(SOME)] == [timeless(r) for r in records]


def test_a_run_that_goes_on_takes_the_hyper_parameters_of_its_finished_records(monkeypatch):
    (task,) = figure1.tasks(Setting(("planted",), (0, 1), False, {"methods": (SLL,)}))
    candidate = METHODS[SLL].grid[3]
    first = replace(records_of((SLL,))[0], tuned=True, share=10, seed=0, parameters=as_text(candidate))
    monkeypatch.delattr("streamlabel.experiments.tuning.choose")
    second = next(figure1.run(task, {tuple(getattr(first, name) for name in figure1.KEY): first}))
    assert (second.share, second.seed, second.parameters) == (10, 1, as_text(candidate))


def test_random_methods_are_run_with_every_seed_at_the_end(records):
    assert [r.seed for r in records if (r.method, r.share) == ("LEML", 100)] == [0, 1]
    assert [r.seed for r in records if (r.method, r.share) == (BR, 100)] == [0]


def test_the_whole_grid_goes_from_a_tenth_to_all(monkeypatch):
    tasks = figure1.tasks(Setting(("planted",), (0,), options={"methods": (SLL, BR)}))
    assert [task.shares for task in tasks] == [(10, 20, 30, 40, 50, 60, 70, 80, 90, 100), (100,)]
    assert all(task.tuned for task in tasks)


@pytest.mark.parametrize("method", ["SLL", "SLEEC"])  # SLEEC draws at random also where all labels are there
def test_the_parts_of_a_task_have_its_records(method):
    task = figure1.Figure1Task("bibtex", method, (10, 50, 100), (0, 1, 2), True)
    found = [figure1.keys(part) for part in figure1.parts(task)]
    assert {len(keys) for keys in found} == {1}
    assert found[0][0][2] == 100
    assert sorted(key for keys in found for key in keys) == sorted(figure1.keys(task))
