"""Questions and names: how a set is parted, what the records say, and that they are what other libraries compute."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from streamlabel.errors import DataError
from streamlabel.experiments import asking, found_labels, named_labels
from streamlabel.experiments.asking import STARTS, STRATEGIES, Open
from streamlabel.experiments.births import load_by_date
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.found_labels import (
    STRENGTHS,
    DrawTask,
    NamedFeatures,
    chosen_strengths,
    draw_labels,
    f1_of,
    part_set,
    yes_rows,
)
from streamlabel.experiments.named_labels import LOGISTIC, WITHOUT
from streamlabel.experiments.sets import NEWS_CORPUS, load_set
from streamlabel.experiments.spec import LEARNER

TASK = NAMES = DrawTask(NEWS_CORPUS, 0, True)


@pytest.fixture(scope="module")
def draw():
    return draw_labels(NEWS_CORPUS, 0, asking.N_LABELS // 5, True, named=True)


@pytest.fixture(scope="module")
def answered():
    return list(asking.run(TASK))


def test_parts_share_no_row_and_new_labels_have_yes_in_all_of_them(draw):
    data = draw.data
    assert not np.intersect1d(data.fit, np.concatenate((data.pool, data.test))).size
    assert not np.intersect1d(data.pool, data.test).size
    assert not np.intersect1d(draw.known, draw.new).size
    for label in draw.new:
        assert len(data.yes(label, data.fit)) >= 20
        assert min(len(data.yes(label, data.pool)), len(data.yes(label, data.test))) >= 5
        column = data.Y[:, [label]].toarray().ravel()
        assert np.array_equal(data.answers(label, data.pool), column[data.pool] > 0)
    assert draw.model.label_names_ == tuple(data.label_names[label] for label in draw.known)


def test_a_set_with_dates_is_parted_by_years(monkeypatch):
    monkeypatch.setitem(found_labels.BY_DATE, NEWS_CORPUS, (2018, 2022))
    data = part_set(NEWS_CORPUS, 0, 200)
    dates = load_by_date(NEWS_CORPUS).dates.astype("datetime64[Y]").astype(int) + 1970
    assert set(dates[data.fit]) <= {2018, 2019, 2020, 2021}
    assert dates[np.concatenate((data.pool, data.test))].min() >= 2022


def test_names_are_read_as_words_of_the_features():
    words = NamedFeatures(["flu", "bird", "gene-expression", "x"], np.array([1.0, 9.0, 0.0, 3.0]), 9)
    rows = words.transform(["Bird flu", "nothing", "gene-expression"]).toarray()
    idf = np.log(10 / np.array([2.0, 10.0])) + 1.0
    assert rows[0] == pytest.approx([*(idf / np.linalg.norm(idf)), 0.0, 0.0])
    assert not rows[1].any()
    assert rows[2].tolist() == [0.0, 0.0, 1.0, 0.0]


def test_f1_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth, said = rng.random(50) < 0.3, rng.random(50) < 0.4
    assert f1_of(truth, said) == pytest.approx(100 * f1_score(truth, said))
    assert f1_of(truth & False, said & False) == 0.0


def test_the_records_have_the_keys_that_were_promised(answered):
    assert [tuple(getattr(one, name) for name in asking.KEY) for one in answered] == asking.keys(TASK)
    done = asking.keys(TASK)[:-2]
    assert list(asking.run(TASK, done)) == answered[-2:]


def test_all_strategies_begin_alike_and_count_their_yes(answered):
    for start in STARTS:
        first = [one for one in answered if one.start == start and one.n_answers == 0]
        assert len({replace(one, method="next") for one in first}) == 1
        assert first[0].n_yes == 0
    for one in answered:
        assert 0 <= one.n_yes <= one.n_answers
        assert 0 <= one.f1 <= 100 >= one.average_precision
    with pytest.raises(ValueError, match="no strategy is called 'x'"):
        replace(answered[0], method="x")


def test_after_answers_a_label_is_what_the_estimator_learns_from_them(draw):
    """The last line of one label, judged by scikit-learn."""
    label = int(draw.new[0])
    lines = dict(asking._asked(draw, label, 2, "highest scores", 5))
    data = draw.data
    found = np.sort(np.random.default_rng((draw.seed, label, 4)).permutation(data.yes(label, data.fit))[:2])
    truth = data.answers(label, data.test)
    assert lines[0][0] == 0
    named = copy.copy(draw.model)
    named.add_found(data.label_names[label], data.X[found], pool=data.X[data.pool], names=data.directions)
    scores = named.decision_function(data.X[data.test])[:, -1]
    said = named.predict(data.X[data.test])
    said = (said.toarray() if sparse.issparse(said) else said)[:, -1]
    assert lines[0][1] == pytest.approx(100 * f1_score(truth, said))
    assert lines[0][2] == pytest.approx(100 * average_precision_score(truth, scores))
    assert lines[0][3] == pytest.approx(100 * roc_auc_score(truth, scores))
    asked = data.pool[np.argsort(-named.decision_function(data.X[data.pool])[:, -1], kind="stable")[:5]]
    assert lines[5][0] == data.answers(label, asked).sum()


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_gives_other_rows_as_many_as_it_is_asked_for(name):
    rng = np.random.default_rng(0)
    pool = Open(np.eye(30), rng.normal(size=30), 0.5, 1, rng)
    rows = STRATEGIES[name](pool, 7)
    assert len(set(rows.tolist())) == 7
    if name == "highest scores":
        assert sorted(pool.scores)[-7:] == sorted(pool.scores[rows])
    if name == "nearest to the threshold":
        assert np.sort(np.abs(pool.scores - 0.5))[:7] == pytest.approx(np.sort(np.abs(pool.scores[rows] - 0.5)))


def test_what_names_and_yes_give_is_what_the_estimator_learns():
    found = {(one.method, one.n_yes): one for one in named_labels.run(NAMES)}
    assert [tuple(getattr(one, name) for name in named_labels.KEY) for one in found.values()] == named_labels.keys(
        NAMES
    )
    assert (WITHOUT, 0) not in found
    assert (LOGISTIC, 0) not in found
    draw = draw_labels(NEWS_CORPUS, 0, named_labels.N_LABELS // 3, True)
    data, values = draw.data, []
    for label in draw.new.tolist():
        order = np.random.default_rng((draw.seed, label, 5)).permutation(data.yes(label, data.fit))
        model = copy.copy(draw.model).add_found("new", data.X[np.sort(order[:5])], pool=data.X[data.pool])
        values.append(roc_auc_score(data.answers(label, data.test), model.decision_function(data.X[data.test])[:, -1]))
    assert found[WITHOUT, 5].auc == pytest.approx(100 * np.mean(values))
    assert found[LEARNER, 5].n_labels == len(draw.new)
    with pytest.raises(ValueError, match="no method for found labels is called 'x'"):
        replace(found[LEARNER, 5], method="x")


def test_a_rival_chooses_among_its_strengths_without_rows_that_judge(draw):
    blind = copy.copy(draw.data)
    Y = blind.Y.tolil()
    Y[np.concatenate((blind.pool, blind.test))] = 0
    blind = replace(blind, Y=sparse.csc_array(Y))
    chosen = chosen_strengths(draw, 2)
    assert chosen.ranking in STRENGTHS
    assert chosen.f1 in STRENGTHS
    assert chosen_strengths(replace(draw, data=blind), 2) == chosen
    rows = yes_rows(draw.data, int(draw.new[0]), draw.data.fit[:2], name=True)
    assert rows.shape[0] == 3


def test_a_set_without_names_of_features_is_refused(monkeypatch):
    train, test = load_set(NEWS_CORPUS)
    monkeypatch.setattr(found_labels, "load_set", lambda name: (replace(train, feature_names=None), test))
    with pytest.raises(DataError, match="features of this set have no names"):
        part_set(NEWS_CORPUS)


def test_a_setting_makes_a_task_a_set_and_seed():
    setting = Setting(("a", "b"), (0, 1), quick=True)
    assert asking.tasks(setting)[1] == DrawTask("a", 1, True)
    assert named_labels.tasks(setting)[2] == DrawTask("b", 0, True)
    assert len(named_labels.keys(DrawTask("a", 0, False))) == 22
