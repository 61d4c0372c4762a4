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
from streamlabel.data.streams import random_stream
from streamlabel.errors import DataError
from streamlabel.experiments import table2
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.methods import BR, METHODS, PEERS, SLL
from streamlabel.experiments.records import Key, timeless
from streamlabel.experiments.runner import planned, record_file, run_experiment, write_results
from streamlabel.experiments.table2 import Table2Record, batches_of
from streamlabel.experiments.table2_gains import compare, pictures
from streamlabel.experiments.table2_page import EXPERIMENT, page
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
    monkeypatch.setattr(table2, "choose", lambda method, *rows: chosen.append(method.name) or method.grid[-1])
    rest = list(table2.run(task, finished))
    assert [timeless(record) for record in rest] == [timeless(record) for record in whole[3:]]
    assert not chosen
    other = {key: replace(record, parameters='{"beta": 77.0}') for key, record in finished.items()}
    list(table2.run(task, other))  # of another grid than today's
    assert chosen == [BR]


def test_the_page_has_means_the_paper_and_differences(records):
    renamed = [replace(r, dataset="bibtex", batch=15 if r.batch == 3 else 75) for r in records]
    found = page(renamed)
    mine = [r.p1 for r in renamed if (r.method, r.batch) == (SLL, 75)]
    assert f"{np.mean(mine):.1f} ± {np.std(mine, ddof=1):.1f} (41.45)" in found.body
    assert "(10.89)" not in found.body  # SLEEC was not run
    assert "label orders are not published" in found.body
    (row,) = (row for row in found.data["rows"] if (row["method"], row["batch"]) == ("LEML", 15))
    assert row["paper"] == {"p1": 10.56, "p3": 4.12, "p5": 2.66}
    json.dumps(found.data, allow_nan=False)


def test_delicious_stands_beside_its_deep_successor(records):
    renamed = [replace(r, dataset="delicious", batch=100 if r.batch == 3 else 500) for r in records]
    lines = [line for line in page(renamed).body.splitlines() if "as published" in line]
    assert [[float(cell) for cell in line.split("|")[2:4]] for line in lines] == [[0.882, 0.901], [0.083, 0.107]]


def test_a_gain_is_the_mean_difference_on_the_same_labels(records):
    (found,) = (c for c in compare(records) if (c.competitor, c.measure, c.where) == ("LEML", "P@3", "18 new labels"))
    by_key = {(r.method, r.seed): r for r in records if r.batch == 18}
    gains = [by_key[SLL, seed].p3 - by_key["LEML", seed].p3 for seed in range(2)]
    assert found.gain == pytest.approx(np.mean(gains))
    assert found.error == pytest.approx(np.std(gains, ddof=1) / np.sqrt(2))
    worse = [replace(r, ranking_loss=r.ranking_loss + 0.01) if r.method == "LEML" else r for r in records]
    changed = {(c.competitor, c.where, c.measure): c.gain for c in compare(worse)}
    before = {(c.competitor, c.where, c.measure): c.gain for c in compare(records)}
    place = ("LEML", "18 new labels", "ranking loss")
    assert changed[place] == pytest.approx(before[place] + 1.0)


PRECISIONS = {SLL: 60.0, BR: 55.0, "LEML": 62.0, "scikit-learn logistic": 60.08}


def decided(records: Iterable[Table2Record], **changes: object) -> list[Table2Record]:
    """Four orders of two batches (a peer meets one), of known precisions; the other measures are equal."""
    found = []
    for r in records:
        precision = PRECISIONS[r.method]
        same = replace(r, p1=precision, p3=precision, p5=precision, micro_auc=0.9, ranking_loss=0.1, tuned=True)
        found += [replace(same, seed=r.seed + more, **changes) for more in (0, 2)]
    return found


COUNTS = (
    "With all rows annotated, SLL against BR ridge: 6 wins, 4 ties, 0 losses; against LEML: 0 wins, 4 ties, 6 losses; "
    "against other loss functions and libraries: 0 wins, 5 ties, 0 losses, the lowest difference -0.1 points of P@1 "
    "against scikit-learn logistic (planted, 18 new labels)."
)


def test_the_sentence_counts_what_was_measured(records):
    found = decided(records)
    assert page(found).sentence == COUNTS
    assert page([r for r in found if r.method == BR]).sentence.startswith("Nothing to compare yet")


@pytest.mark.parametrize("name", ["wiki10-31k (stand-in twin)", "news corpus"])
def test_the_sentence_does_not_count_what_was_made_up(records, name):
    made_up = [replace(r, p1=99.0) if r.method == SLL else r for r in decided(records, dataset=name)]
    note = f" Not counted, because rows and labels were made up: {name}."
    assert page([*decided(records), *made_up]).sentence == COUNTS + note
    assert page(made_up).sentence == "Nothing is counted here." + note
    assert len(page(made_up).comparisons) == 25  # they are shown


def test_the_sentence_does_not_count_quick_runs(records):
    quick = decided(records, tuned=False)
    assert page(quick).sentence.endswith("whose figures decide nothing. Nothing is counted here.")
    assert page([*quick, *decided(records)]).sentence == COUNTS


def test_quick_records_do_not_mix_with_chosen_ones(records):
    chosen = [replace(r, tuned=True, p1=50.0) for r in records if r.method in (SLL, BR)]
    assert page([*records, *chosen]).data == page(chosen).data


def test_pictures_show_differences_to_sll(records):
    (picture,) = pictures(records)
    assert [panel.title.partition(" (")[0] for panel in picture.panels] == [
        "P@1", "P@3", "P@5", "micro AUC", "ranking loss",
    ]  # fmt: skip
    labels = {series.label for panel in picture.panels for series in panel.series}
    assert labels == {BR, "LEML"}


def test_pictures_of_a_set_and_of_its_stand_in_do_not_overwrite_each_other(records):
    stand_in = [replace(r, dataset="mediamill (stand-in mediamill_reduced)") for r in records]
    names = [picture.name for picture in pictures([*stand_in, *(replace(r, dataset="mediamill") for r in records)])]
    assert names == ["mediamill-stand-in-mediamill_reduced", "mediamill"]


def test_a_set_that_cannot_be_judged_is_refused(monkeypatch):
    empty = replace(TEST, Y=TEST.Y * 0)
    empty.Y.eliminate_zeros()
    monkeypatch.setattr(table2, "load_set", lambda name: (TRAIN, empty))
    with pytest.raises(DataError, match="no test row has any of the"):
        records_of(setting(methods=(BR,)))


def test_everything_is_written(tmp_path, records):
    file = record_file(EXPERIMENT, tmp_path)
    run_experiment(EXPERIMENT, planned(EXPERIMENT, setting(methods=(SLL, BR))), file)
    outcome = write_results(EXPERIMENT, file, tmp_path, "streamlabel reproduce table2")
    assert (tmp_path / "table2.md").read_text().startswith("# New labels in batches")
    assert "Not run here" in outcome.text


def test_the_parts_of_a_task_have_its_records():
    task = table2.Table2Task("bibtex", "SLEEC", (0, 1, 2), 79, (15, 30), 30, True)
    parts = table2.parts(task)
    assert [part.seeds for part in parts] == [(0,), (1,), (2,)]
    assert [key for part in parts for key in table2.keys(part)] == table2.keys(task)
