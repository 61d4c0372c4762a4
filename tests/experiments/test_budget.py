"""The budget experiment on a small set: against scikit-learn, and what must not matter."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.preprocessing import normalize

from streamlabel.data.label_stream import random_stream
from streamlabel.data.synthetic import make_planted_labels
from streamlabel.exceptions import DataError
from streamlabel.experiments.budget import DEFAULT, METHODS, OWN_RIDGE, BudgetRecord, pending, run_budget
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.results import Dataset


@pytest.fixture(scope="module")
def sets() -> tuple[Dataset, Dataset]:
    planted = make_planted_labels(500, 40, 24, 10, noise=0.1, feature_noise=0.3, random_state=0)
    Y = sparse.csr_array(sparse.hstack((planted.Y_past, planted.Y_new), format="csr"))
    whole = Dataset(X=sparse.csr_array(planted.X), Y=Y, label_names=tuple(map(str, range(Y.shape[1]))))
    return whole.take_rows(np.arange(300)), whole.take_rows(np.arange(300, 500))


@pytest.fixture(scope="module")
def records(sets) -> list[BudgetRecord]:
    return run_budget("planted", *sets, (30, 100, None), range(2))


def timeless(records: list[BudgetRecord]) -> list[BudgetRecord]:
    return [replace(record, seconds=0.0) for record in records]


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
    assert timeless(run_budget("planted", *sets, (30, 100, None), range(2))) == timeless(records)


def test_methods_budgets_and_seeds_do_not_disturb_each_other(sets, records):
    alone = run_budget("planted", *sets, (100,), [1], (OWN_RIDGE,))
    assert timeless(alone) == [r for r in timeless(records) if (r.method, r.n_rows, r.seed) == (OWN_RIDGE, 100, 1)]


def test_every_method_gets_the_same_labels_and_rows(sets, monkeypatch):
    """Two names for one method give one result, whatever was drawn."""
    monkeypatch.setitem(METHODS, "twin", METHODS[OWN_RIDGE])
    found = timeless(run_budget("planted", *sets, (30, 100), range(2), (OWN_RIDGE, "twin")))
    assert found[::2] == [replace(record, method=OWN_RIDGE) for record in found[1::2]]


@pytest.mark.parametrize("n_done", [1, 5, 6, 11])
def test_what_is_done_is_left_out(sets, records, n_done):
    done = {(r.dataset, r.method, r.n_rows, r.seed) for r in records[:n_done]}
    rest = run_budget("planted", *sets, (30, 100, None), range(2), done=done)
    assert timeless(rest) == timeless(records)[n_done:]


def test_the_past_is_fitted_once_a_seed(sets, records, monkeypatch):
    fitted = []
    fit = StreamingLabelClassifier.fit
    monkeypatch.setattr(StreamingLabelClassifier, "fit", lambda self, *a: fitted.append(1) or fit(self, *a))
    run_budget("planted", *sets, (30, 100), range(3))
    assert len(fitted) == 3
    done = {(r.dataset, r.method, r.n_rows, r.seed) for r in records}
    assert run_budget("planted", *sets, (30, 100, None), range(2), done=done) == []
    assert len(fitted) == 3


def test_a_record_is_told_when_it_is_finished(sets):
    told: list[BudgetRecord] = []
    with pytest.raises(KeyboardInterrupt):
        run_budget("planted", *sets, (30,), range(2), on_record=lambda r: told.append(r) or _stop(len(told) == 3))
    assert [(r.method, r.seed) for r in told] == [(DEFAULT, 0), (OWN_RIDGE, 0), (DEFAULT, 1)]


def _stop(now: bool) -> None:
    if now:
        raise KeyboardInterrupt


def test_budgets_beyond_the_set_are_all_rows_once():
    keys = pending("a", 300, (None, 20, 300, 2000), [7], ("m",))
    assert keys == [("a", "m", 20, 7), ("a", "m", 300, 7)]


def test_labels_that_nobody_can_learn_are_counted_and_score_the_same_everywhere(sets):
    """One positive row a label, and no row drawn has one: AUC is a coin, whatever the method."""
    train, test = sets
    positives = sparse.csr_array((np.ones(12, np.int8), (np.arange(288, 300), np.arange(12))), shape=(300, 12))
    rare = replace(train, Y=positives, label_names=train.label_names[:12])
    found = run_budget("rare", rare, test.take_labels(np.arange(12)), (2,), [0])
    assert [(r.n_learned, r.auc, r.past_used) for r in found] == [(0, 50.0, False)] * 2
    assert asdict(found[0]) | {"method": "", "seconds": 0} == asdict(found[1]) | {"method": "", "seconds": 0}


def test_a_set_that_cannot_be_judged_is_refused(sets):
    train, test = sets
    empty = replace(test, Y=sparse.csr_array(test.Y.shape, dtype=np.int8))
    with pytest.raises(DataError, match="no new label of small has both answers on the 200 test rows"):
        run_budget("small", train, empty, (30,), [0])
    one = np.array([0])
    with pytest.raises(DataError, match="too few labels"):
        run_budget("small", train.take_labels(one), test.take_labels(one), (30,), [0])
