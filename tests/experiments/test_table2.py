"""New labels in batches: against scikit-learn, resumed, and what the page says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import label_ranking_loss, roc_auc_score

from planted_set import planted_sets
from streamlabel import StreamingLabelClassifier
from streamlabel.data.streams import random_stream
from streamlabel.errors import DataError
from streamlabel.experiments import table2
from streamlabel.experiments.experiment import Key, Setting
from streamlabel.experiments.methods import BR, METHODS, PEERS, SLL
from streamlabel.experiments.record_file import timeless
from streamlabel.experiments.report import Results, write_results
from streamlabel.experiments.runner import planned, record_file, run_experiment
from streamlabel.experiments.table2 import EXPERIMENT, Table2Record, batches_of
from streamlabel.experiments.tuning import as_text, narrowed

TRAIN, TEST = planted_sets(n_empty=2)
SOME = (SLL, BR, "LEML", "scikit-learn logistic")


@pytest.fixture(autouse=True)
def small_set(monkeypatch):
    monkeypatch.setattr(table2, "load_set", lambda name: (TRAIN, TEST))


def setting(*, quick: bool = True, seeds: int = 2, methods: tuple[str, ...] = SOME) -> Setting:
    return Setting(("planted",), tuple(range(seeds)), quick, {"methods": methods})


def records_of(asked: Setting) -> list[Table2Record]:
    return [record for task in table2.tasks(asked) for record in table2.run(task, {})]


def by_key(finished: Iterable[Table2Record]) -> dict[Key, Table2Record]:
    return {tuple(getattr(record, name) for name in table2.KEY): record for record in finished}


@pytest.fixture(scope="module")
def records() -> list[Table2Record]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table2, "load_set", lambda name: (TRAIN, TEST))
        return records_of(setting())


def test_batches_are_those_of_the_paper():
    assert batches_of("bibtex", 159) == (79, (15, 30, 45, 60, 75))
    assert batches_of("delicious", 983) == (483, (100, 200, 300, 400, 500))
    assert batches_of("mediamill (stand-in mediamill_reduced)", 101) == (50, (10, 20, 30, 40, 50))
    assert batches_of("eurlex-4k (stand-in eurlex57k)", 4271) == (2135, (200, 400, 600, 800, 1000))
    assert batches_of("another", 36) == (18, (3, 7, 10, 14, 18))
    assert batches_of("tiny", 3) == (1, (1, 2))


def test_br_is_judged_as_scikit_learn_would(records):
    X, X_test = narrowed(TRAIN, TEST)
    for seed in range(2):
        (record,) = (r for r in records if (r.method, r.seed, r.batch) == (BR, seed, 18))
        stream = random_stream(36, 18, random_state=seed)
        new = stream.arriving
        beta = METHODS[BR].make({"beta": "auto"}, seed)
        beta.start(X, TRAIN.Y[:, stream.past])
        ridge = Ridge(alpha=beta._known.beta_).fit(X.toarray(), TRAIN.Y[:, new].toarray())
        scores, truth = ridge.predict(X_test.toarray()), TEST.Y[:, new].toarray()
        never = TRAIN.Y[:, new].toarray().sum(axis=0) == 0
        scores[:, never] = scores.min() - 1.0
        assert record.n_learned == (~never).sum()
        assert record.p1 == pytest.approx(100 * truth[np.arange(200), scores.argmax(axis=1)].mean())
        assert record.micro_auc == pytest.approx(roc_auc_score(truth.ravel(), scores.ravel()))
        assert 0 < record.ranking_loss == pytest.approx(label_ranking_loss(truth, scores), abs=0.05)


def test_batches_of_one_order_are_nested_and_peers_take_the_largest(records):
    found = {(r.method, r.batch) for r in records}
    assert {batch for method, batch in found if method in PEERS} == {18}
    assert {batch for method, batch in found if method == "LEML"} == {3, 18}
    (first,) = (r for r in records if (r.method, r.seed, r.batch) == (BR, 1, 3))
    new = random_stream(36, 18, random_state=1).arriving[:3]
    assert first.n_learned == (TRAIN.Y[:, new].sum(axis=0) > 0).sum()


def test_a_second_run_gives_the_same_records(records):
    assert [timeless(r) for r in records_of(setting())] == [timeless(r) for r in records]


@pytest.mark.parametrize("n_done", [1, 3, 5])
def test_what_is_done_is_not_run_again(records, n_done):
    rest = []
    for task in table2.tasks(setting()):
        rest += table2.run(task, by_key(r for r in records[:n_done] if r.method == task.method))
    assert [timeless(r) for r in rest] == [timeless(r) for r in records[n_done:]]


def test_hyper_parameters_are_chosen_once_a_set_and_recorded():
    found = records_of(setting(quick=False, methods=(BR,)))
    assert {r.tuned for r in found} == {True}
    assert len({r.parameters for r in found}) == 1
    assert json.loads(found[0].parameters) in METHODS[BR].grid
    assert {r.batch for r in found} == {3, 7, 10, 14, 18}


def test_methods_that_would_take_too_long_are_left_out_unless_asked_for(monkeypatch):
    cells = METHODS["LEML"].cells(300, TRAIN.X.nnz, 18, 18)
    monkeypatch.setitem(METHODS, "LEML", replace(METHODS["LEML"], most_cells=cells - 1))
    assert "LEML" not in {task.method for task in table2.tasks(Setting(("planted",), (0,), True))}
    assert "LEML" in {task.method for task in table2.tasks(setting())}


def test_what_learns_everything_again_meets_the_largest_batch_only_where_that_takes_long(monkeypatch):
    cells = METHODS["LEML"].cells(300, TRAIN.X.nnz, 18, 18)
    by_default = Setting(("planted",), (0,), True)
    for limit, asked, expected in (
        (cells, by_default, (3, 18)),
        (cells - 1, by_default, (18,)),
        (cells - 1, setting(), (3, 18)),  # it is named
    ):
        monkeypatch.setitem(METHODS, "LEML", replace(METHODS["LEML"], all_batches=limit))
        assert {task.batches for task in table2.tasks(asked) if task.method == "LEML"} == {expected}


def test_a_run_that_goes_on_takes_the_hyper_parameters_of_its_finished_records(monkeypatch):
    (task,) = table2.tasks(setting(quick=False, methods=(BR,)))
    whole = list(table2.run(task, {}))
    assert whole[0].parameters != as_text(METHODS[BR].grid[-1])
    finished = by_key(whole[:3])
    chosen: list[str] = []
    choose = "streamlabel.experiments.tuning.choose"
    monkeypatch.setattr(choose, lambda method, *rows: chosen.append(method.name) or method.grid[-1])
    rest = list(table2.run(task, finished))
    assert [timeless(record) for record in rest] == [timeless(record) for record in whole[3:]]
    assert not chosen
    other = {key: replace(record, parameters='{"beta": 77.0}') for key, record in finished.items()}
    list(table2.run(task, other))  # of another grid than today's
    assert chosen == [BR]


def test_a_set_that_cannot_be_judged_is_refused(monkeypatch):
    empty = replace(TEST, Y=TEST.Y * 0)
    empty.Y.eliminate_zeros()
    monkeypatch.setattr(table2, "load_set", lambda name: (TRAIN, empty))
    with pytest.raises(DataError, match="no test row has any of the"):
        records_of(setting(methods=(BR,)))


def test_the_parts_of_a_task_have_its_records():
    task = table2.Table2Task("bibtex", "SLEEC", (0, 1, 2), 79, (15, 30), 30, True)
    parts = table2.parts(task)
    assert [part.seeds for part in parts] == [(0,), (1,), (2,)]
    assert [key for part in parts for key in table2.keys(part)] == table2.keys(task)


def test_everything_is_written(tmp_path):
    pytest.importorskip("pandas")
    file = record_file(EXPERIMENT, tmp_path)
    run_experiment(EXPERIMENT, planned(EXPERIMENT, setting(methods=(SLL, BR))), file)
    outcome = write_results(EXPERIMENT, file, tmp_path, "streamlabel reproduce table2")
    assert (tmp_path / "table2.md").read_text().startswith("# New labels in batches")
    assert outcome.data["tables"]["absent"][""][-1]["why"].startswith("not asked for")


def test_quick_records_do_not_mix_with_chosen_ones(records):
    pytest.importorskip("pandas")
    chosen = [replace(r, tuned=True, p1=50.0) for r in records if r.method in (SLL, BR)]
    both, alone = (Results(EXPERIMENT, found).data["tables"] for found in ([*records, *chosen], chosen))
    assert both == alone


def test_the_papers_figures_stand_beside_ours(records):
    pytest.importorskip("pandas")
    renamed = [replace(r, dataset="bibtex", batch=15 if r.batch == 3 else 75) for r in records]
    found = Results(EXPERIMENT, renamed)
    assert [line["in the paper"] for line in found.sections("claim")[""]] == ["+0.66", "+0.54"]
    assert found.sections("printed")["bibtex"][3]["15 labels"] == "10.89"
    stand_in = [replace(r, dataset="mediamill (stand-in mediamill_reduced)") for r in records]
    assert list(Results(EXPERIMENT, stand_in).sections("printed")) == [
        "mediamill (not the rows and labels of mediamill_reduced)"
    ]
    assert Results(EXPERIMENT, stand_in).sections("claim") == {}
    delicious = [replace(r, dataset="delicious", batch=100 if r.batch == 3 else 500) for r in records]
    assert Results(EXPERIMENT, delicious).sections("printed")["delicious"][-1]["500 labels"] == "0.107"


def test_hamming_loss_is_the_share_of_wrong_cells_at_the_methods_own_decisions(records):
    """Against predictions of the models themselves, for a streaming learner, a peer and a part of a batch."""
    found = {(r.method, r.seed, r.batch): r.hamming for r in records}
    X, X_test = narrowed(TRAIN, TEST)
    n_past, largest = records[0].n_past, max(r.batch for r in records)
    order = random_stream(TRAIN.n_labels, n_past, random_state=0)
    past, new = order.past, order.arriving[:largest]
    able = [j for j in new if 0 < TRAIN.Y[:, [j]].sum() < TRAIN.n_rows]
    model = StreamingLabelClassifier(random_state=0, **METHODS[SLL].grid[0]).fit(X, TRAIN.Y[:, past])
    decided = np.zeros((TEST.n_rows, TRAIN.n_labels), dtype=int)
    decided[:, able] = model.add_labels(X, TRAIN.Y[:, able]).predict(X_test)[:, len(past) :]
    truth = TEST.Y.toarray()
    for batch in sorted({r.batch for r in records}):
        labels = new[:batch]
        assert found[SLL, 0, batch] == pytest.approx(np.mean(decided[:, labels] != truth[:, labels]))
    assert all(0.0 < value < 1.0 for value in found.values())


def test_records_without_hamming_loss_still_open_and_it_is_not_counted(tmp_path, records):
    file = record_file(EXPERIMENT, tmp_path)
    for record in records:
        file.append(record)
    lines = [json.loads(line) for line in file.path.read_text().splitlines()]
    assert all("hamming" in line for line in lines)
    old = [{name: value for name, value in line.items() if name != "hamming"} for line in lines]
    file.path.write_text("".join(json.dumps(line) + "\n" for line in old))
    found = record_file(EXPERIMENT, tmp_path).sorted_records
    assert {record.hamming for record in found} == {None}
    pytest.importorskip("pandas")
    without, with_it = Results(EXPERIMENT, found), Results(EXPERIMENT, file.sorted_records)
    assert without.data["comparisons"] == with_it.data["comparisons"]
    assert not any("Hamming" in heading for heading in without.sections("shares"))
    assert any("Hamming" in heading for heading in with_it.sections("shares"))
