"""The budget experiment on a small set: against scikit-learn, and what must not matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.preprocessing import normalize

from streamlabel.data.streams import random_stream
from streamlabel.data.synthetic import make_planted_labels
from streamlabel.errors import DataError
from streamlabel.experiments.budget import (
    KEY,
    PAGE,
    PROTOCOL,
    BudgetRecord,
    BudgetTask,
    drawn_rows,
    keys,
    measured,
    run_on,
)
from streamlabel.experiments.budget_methods import DEFAULT, METHODS, OWN_RIDGE
from streamlabel.experiments.compare import comparisons, frame_of
from streamlabel.experiments.record_file import RecordFile, timeless
from streamlabel.experiments.tables import sections
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.types import Dataset


@pytest.fixture(scope="module")
def sets() -> tuple[Dataset, Dataset]:
    planted = make_planted_labels(500, 40, 24, 10, noise=0.1, feature_noise=0.3, random_state=0)
    Y = sparse.csr_array(sparse.hstack((planted.Y_past, planted.Y_new), format="csr"))
    whole = Dataset(X=sparse.csr_array(planted.X), Y=Y, label_names=tuple(map(str, range(Y.shape[1]))))
    return whole.take_rows(np.arange(300)), whole.take_rows(np.arange(300, 500))


@pytest.fixture(scope="module")
def records(sets) -> list[BudgetRecord]:
    return list(run_all(sets, (30, 100, None), range(2)))


def run_all(sets, budgets, seeds, methods=(DEFAULT, OWN_RIDGE), done=(), name="planted") -> Iterator[BudgetRecord]:
    for seed in seeds:
        yield from run_on(BudgetTask(name, seed, tuple(budgets), tuple(methods)), *sets, done)


def without_times(records) -> list[dict]:
    return [timeless(record) for record in records]


def key(record: BudgetRecord) -> tuple:
    return record.dataset, record.method, record.n_rows, record.seed, record.protocol


def test_own_ridge_on_all_rows_is_scikit_learns_ridge(sets, records):
    train, test = sets
    for seed in range(2):
        stream = random_stream(train.n_labels, train.n_labels // 2, random_state=seed)
        X, X_test = normalize(train.X), normalize(test.X)
        beta = StreamingLabelClassifier(random_state=seed).fit(X, train.Y[:, stream.past]).beta_
        able = [j for j in stream.arriving if 0 < train.Y[:, [j]].sum() < train.n_rows]
        assert len(able) == len(stream.arriving)  # what the comparison below takes for granted
        ridge = Ridge(alpha=beta).fit(X.toarray(), train.Y[:, able].toarray())
        scores, truth = ridge.predict(X_test.toarray()), test.Y[:, able].toarray()
        (record,) = (r for r in records if (r.method, r.n_rows, r.seed) == (OWN_RIDGE, 300, seed))
        assert record.n_learned == record.n_labels == len(able)
        assert record.p1 == pytest.approx(100 * truth[np.arange(len(truth)), scores.argmax(axis=1)].mean())
        assert record.auc == pytest.approx(100 * roc_auc_score(truth, scores), rel=1e-9)
        assert record.average_precision == pytest.approx(100 * average_precision_score(truth, scores), rel=1e-9)
        assert not record.past_used


def test_the_past_helps_where_it_was_planted(records):
    by_key = {(r.method, r.n_rows, r.seed): r for r in records}
    for seed in range(2):
        assert by_key[DEFAULT, 30, seed].past_used
        assert by_key[DEFAULT, 30, seed].auc > by_key[OWN_RIDGE, 30, seed].auc


def test_two_runs_differ_in_times_only(sets, records):
    assert without_times(run_all(sets, (30, 100, None), range(2))) == without_times(records)


def test_methods_budgets_and_seeds_do_not_disturb_each_other(sets, records):
    alone = run_all(sets, (100,), [1], (OWN_RIDGE,))
    same = [record for record in records if key(record) == ("planted", OWN_RIDGE, 100, 1, PROTOCOL)]
    assert without_times(alone) == without_times(same)


def test_every_method_gets_the_same_labels_and_rows(sets, monkeypatch):
    """Two names for one method give one result, whatever was drawn."""
    monkeypatch.setitem(METHODS, "twin", METHODS[OWN_RIDGE])
    found = list(run_all(sets, (30, 100), range(2), (OWN_RIDGE, "twin")))
    renamed = [replace(record, method=OWN_RIDGE) for record in found[1::2]]
    assert without_times(found[::2]) == without_times(renamed)


@pytest.mark.parametrize("n_done", [1, 5, 6, 11])
def test_what_is_done_is_left_out(sets, records, n_done):
    rest = run_all(sets, (30, 100, None), range(2), done={key(record) for record in records[:n_done]})
    assert without_times(rest) == without_times(records[n_done:])


def test_the_past_is_fitted_once_a_seed(sets, records, monkeypatch):
    fitted = []
    fit = StreamingLabelClassifier.fit
    monkeypatch.setattr(StreamingLabelClassifier, "fit", lambda self, *a: fitted.append(1) or fit(self, *a))
    assert len(list(run_all(sets, (30, 100), range(3)))) == 12
    assert len(fitted) == 3
    done = {key(record) for record in records}
    assert list(run_all(sets, (30, 100, None), range(2), done=done)) == []
    assert len(fitted) == 3


def test_the_keys_are_those_of_the_records(sets, records):
    task = BudgetTask("planted", 1, (None, 100, 30, 5000), (DEFAULT, OWN_RIDGE))
    assert keys(task, 300) == [key(record) for record in records if record.seed == 1]


def test_budgets_beyond_the_set_are_all_rows_once():
    task = BudgetTask("mediamill_reduced", 7, (None, 20, 1500, 2000), ("m",))
    assert [key[:4] for key in keys(task)] == [("mediamill_reduced", "m", 20, 7), ("mediamill_reduced", "m", 1500, 7)]


def rare_sets(sets, n_rare: int) -> tuple[Dataset, Dataset]:
    """The first labels have one positive row each, the last rows of all."""
    train, test = sets
    Y = train.Y.toarray()
    Y[:, :n_rare] = 0
    Y[np.arange(300 - n_rare, 300), np.arange(n_rare)] = 1
    return replace(train, Y=sparse.csr_array(Y)), test


def test_labels_that_nobody_can_learn_are_counted_and_left_out_of_means(sets):
    train, test = rare_sets(sets, 12)
    (found,) = run_all((train, test), (30,), [0], (OWN_RIDGE,), name="rare")
    stream = random_stream(train.n_labels, train.n_labels // 2, random_state=0)
    rows = drawn_rows(300, 30, 0)
    counts = train.Y[rows][:, stream.arriving].sum(axis=0)
    able = stream.arriving[(counts > 0) & (counts < 30)]
    assert found.n_learned == len(able) < found.n_labels == len(stream.arriving)
    model = StreamingLabelClassifier(random_state=0, lam=None, metric=None, loss="squared")
    X, X_test = (sparse.csr_array(normalize(part.X)) for part in (train, test))
    model.fit(X, train.Y[:, stream.past]).add_labels(X, train.Y[:, able], annotated=rows)
    scores, truth = model.decision_function(X_test)[:, -len(able) :], test.Y[:, able].toarray()
    assert found.p1 == pytest.approx(100 * truth[np.arange(200), scores.argmax(axis=1)].mean())
    assert found.auc == pytest.approx(100 * roc_auc_score(truth, scores))
    share = len(able) / len(stream.arriving)  # every label has both answers on the test rows; the others are a coin
    assert found.all_auc == pytest.approx(share * found.auc + (1 - share) * 50)


def test_where_no_label_can_be_learned_there_is_no_measure(sets):
    train, test = sets
    positives = sparse.csr_array((np.ones(12, np.int8), (np.arange(288, 300), np.arange(12))), shape=(300, 12))
    rare = replace(train, Y=positives, label_names=train.label_names[:12])
    found = list(run_all((rare, test.take_labels(np.arange(12))), (2,), [0], name="rare"))
    assert [(r.n_learned, r.auc, r.p1, r.all_auc, r.past_used) for r in found] == [(0, None, None, 50.0, False)] * 2
    pytest.importorskip("pandas")
    frame = frame_of(found, PAGE)
    compared = comparisons(frame, PAGE.versus)
    for table in PAGE.tables.values():
        sections(table, frame, compared)


def test_measures_of_a_prediction_by_the_names_of_fields():
    assert measured(sparse.csr_array([[1], [0]]), np.array([[0.9], [0.1]])) == {
        "p1": 50.0, "p3": pytest.approx(50 / 3), "p5": 10.0, "auc": 100.0, "average_precision": 100.0
    }  # fmt: skip
    assert set(measured(sparse.csr_array([[0], [0]]), np.zeros((2, 1))).values()) == {None}


OLD_LINE = """{"dataset": "bibtex", "method": "own ridge", "n_rows": 20, "n_train": 4880, "seed": 1, "n_labels": 80, \
"n_learned": 16, "p1": 15.1, "p3": 7.9, "p5": 5.7, "auc": 55.8, "average_precision": 4.7, "share": 0.0, \
"anchored": false, "cpu_seconds": 0.4}
"""


def test_old_records_are_read_and_never_mixed_with_new_ones(tmp_path):
    """They were over all new labels, and a run that goes on in their folder computes all of its own."""
    pytest.importorskip("pandas")
    path = tmp_path / "budget.jsonl"
    path.write_text(OLD_LINE, encoding="utf-8")
    file = RecordFile(path, BudgetRecord, KEY)
    (old,) = file.records
    assert old.protocol == 1
    assert not file.among(keys(BudgetTask("bibtex", 1, (20,), (OWN_RIDGE,))))
    alone = frame_of([old], PAGE)
    assert alone["all_auc"].tolist() == alone["auc"].tolist() == [55.8]
    assert "Older records: bibtex." in PAGE.facts["protocol"](alone, None)
    file.append(replace(old, auc=70.0, all_auc=54.0, protocol=PROTOCOL))
    both = frame_of([*file.sorted_records, replace(old, dataset="other")], PAGE)
    assert dict(zip(both["dataset"], both["auc"], strict=True)) == {"bibtex": 70.0, "other": 55.8}
    words = PAGE.facts["protocol"](both, None)
    assert "Older records: other." in words
    assert "1 older records of sets that were run again are left out" in words


def test_a_set_that_cannot_be_judged_is_refused(sets):
    train, test = sets
    empty = replace(test, Y=sparse.csr_array(test.Y.shape, dtype=np.int8))
    with pytest.raises(DataError, match="no new label of small has both answers on the 200 test rows"):
        list(run_all((train, empty), (30,), [0], name="small"))
    one = np.array([0])
    with pytest.raises(DataError, match="too few labels"):
        list(run_all((train.take_labels(one), test.take_labels(one)), (30,), [0], name="small"))
