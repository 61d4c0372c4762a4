"""The timeline on the news corpus, whose topics have dates."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from streamlabel import StreamingLabelClassifier
from streamlabel.cli import main
from streamlabel.errors import DataError
from streamlabel.experiments import births as births_module
from streamlabel.experiments import timeline
from streamlabel.experiments.births import (
    ALWAYS_USED,
    COMPARED,
    EVER,
    KEY,
    LOGISTIC,
    METHODS,
    OWN_RIDGE,
    WITH_PAST,
    LogisticAlone,
    age_edges,
    births,
    by_date,
)
from streamlabel.experiments.report import Results, write_results
from streamlabel.experiments.runner import record_file
from streamlabel.experiments.sets import corpus_sets
from streamlabel.experiments.timeline import EXPERIMENT, TimelineTask, keys, run_on

YEAR = np.timedelta64(365, "D")
TASK = TimelineTask("news corpus", 2020, 1, 0)


@pytest.fixture(scope="module")
def data():
    return by_date(corpus_sets(0, n_texts=900)[0])


@pytest.fixture(scope="module")
def records(data):
    return list(run_on(TASK, data))


def column(data, name: str) -> np.ndarray:
    return data.Y[:, [data.label_names.index(name)]].toarray().ravel()


def test_labels_are_learned_from_their_first_year_and_judged_later(data, records):
    assert records
    assert (np.diff(data.dates) >= np.timedelta64(0, "D")).all()
    edges = age_edges(1)
    for record in records:
        answers = column(data, record.label)
        born = data.dates[answers == 1].min()
        assert str(born) == record.born >= "2020-01-01"
        asked = (data.dates >= born) & (data.dates < born + YEAR)
        assert (record.n_rows, record.n_yes) == (asked.sum(), answers[asked].sum())
        begin = 1 if record.age == EVER else record.age
        judged = data.dates >= born + begin * YEAR
        if record.age not in (EVER, edges[-1]):
            judged &= data.dates < born + edges[edges.index(record.age) + 1] * YEAR
        assert (record.n_judged, record.n_judged_yes) == (judged.sum(), answers[judged].sum())


def test_the_keys_are_known_before_and_labels_come_by_birth(data, records):
    assert [tuple(getattr(record, name) for name in KEY) for record in records] == keys(TASK, data)
    born = [record.born for record in records]
    assert born == sorted(born)
    known = [record.n_known for record in records if record.method == WITH_PAST and record.age == EVER]
    assert known == list(range(len(data.past(2020)), len(data.past(2020)) + len(known)))


@pytest.fixture(scope="module")
def leaning_on_the_start(data):
    return list(run_on(TASK, data, dictionary="fit"))


@pytest.mark.parametrize("method", [WITH_PAST, OWN_RIDGE, ALWAYS_USED])
def test_each_label_by_itself_gives_the_same_where_it_may_lean_on_the_start_only(data, leaning_on_the_start, method):
    """What the growing model says of a label is what a copy of the model of the start learns for that label alone."""
    n_rows, past = data.before(2020), data.past(2020)
    model = StreamingLabelClassifier().fit(data.X[:n_rows], data.Y[:n_rows][:, past])
    if method == OWN_RIDGE:
        model.set_params(lam=None, metric=None, loss="squared")
    if method == ALWAYS_USED:
        model.set_params(lam=0.003, metric=0.3, loss="squared")
    found = [r for r in leaning_on_the_start if r.method == method and r.age == EVER]
    assert found
    for record in found:
        answers = column(data, record.label)
        born = data.dates[answers == 1].min()
        asked = (data.dates >= born) & (data.dates < born + YEAR)
        later = data.dates >= born + YEAR
        grown = copy.copy(model).add_labels(data.X[asked], answers[asked], ["new"])
        scores = grown.decision_function(data.X[later])[:, -1]
        assert record.auc == pytest.approx(100 * roc_auc_score(answers[later], scores), abs=1e-6)
        expected = 100 * average_precision_score(answers[later], scores)
        assert record.average_precision == pytest.approx(expected, abs=1e-6)


def test_the_logistic_regression_is_scikit_learns(data, records):
    C = LogisticAlone.chosen(data, 2020, 1, 0).C
    record = next(r for r in records if r.method == LOGISTIC and r.age == EVER)
    answers = column(data, record.label)
    born = data.dates[answers == 1].min()
    asked, later = (data.dates >= born) & (data.dates < born + YEAR), data.dates >= born + YEAR
    model = LogisticRegression(C=C, solver="liblinear", max_iter=1000).fit(data.X[asked], answers[asked])
    expected = roc_auc_score(answers[later], model.decision_function(data.X[later]))
    assert record.auc == pytest.approx(100 * expected, abs=1e-6)


def test_its_strength_is_chosen_before_the_start(data):
    """Whatever happens from the start on, the choice is the same."""
    n_rows = data.before(2020)
    scrambled = np.random.default_rng(0).permutation(np.arange(n_rows, len(data.dates)))
    order = np.concatenate((np.arange(n_rows), scrambled))
    other = replace(data, Y=data.Y[order], columns=data.Y[order].tocsc())
    assert LogisticAlone.chosen(data, 2020, 1, 0) == LogisticAlone.chosen(other, 2020, 1, 0)
    assert LogisticAlone.chosen(data, 1950, 1, 0).C == 1.0  # nothing to choose by


def test_old_scores_are_compared_bit_by_bit(data, records, monkeypatch):
    assert all(record.unchanged for record in records)
    assert len({record.old_scores for record in records}) == 1
    honest = StreamingLabelClassifier.decision_function
    calls = []

    def touched(self, X):
        calls.append(1)
        scores = honest(self, X)
        if len(calls) == 4:  # after the third arrival
            scores[0, 0] = np.nextafter(scores[0, 0], 1.0)
        return scores

    monkeypatch.setattr(StreamingLabelClassifier, "decision_function", touched)
    found = [r for r in run_on(TASK, data) if r.method == WITH_PAST and r.age == EVER]
    assert [record.unchanged for record in found[:5]] == [True, True, False, False, True]


def test_a_run_goes_on_to_the_same_records(data, records, monkeypatch):
    done = keys(TASK, data)[:-4]
    assert list(run_on(TASK, data, done)) == records[-4:]
    monkeypatch.setattr(timeline, "_CHUNK", 3)
    assert list(run_on(TASK, data)) == records
    assert list(run_on(TASK, data, keys(TASK, data))) == []


def test_what_older_records_lack_is_added_without_the_rest(data, records, monkeypatch):
    def not_again(*arguments):
        raise AssertionError("learned again")

    monkeypatch.setattr(LogisticAlone, "chosen", not_again)
    done = [key for key in keys(TASK, data) if key[4] in COMPARED]
    assert list(run_on(TASK, data, done)) == [record for record in records if record.method == ALWAYS_USED]


def test_the_variant_uses_the_past_for_every_label(records):
    assert all(record.past_used for record in records if record.method == ALWAYS_USED)
    assert not any(record.past_used for record in records if record.method in (OWN_RIDGE, LOGISTIC))


def test_longer_annotation_and_later_starts(data):
    assert {b.label for b in births(data, 2021, 1)} < {b.label for b in births(data, 2020, 1)}
    one, two = ({b.label: b.stop - b.start for b in births(data, 2020, years)} for years in (1, 2))
    assert all(two[label] > one[label] for label in one.keys() & two.keys())
    first, last = min(str(day) for day in data.dates)[:4], max(str(day) for day in data.dates)[:4]
    with pytest.raises(DataError, match=f"before 1900; the rows are of {first} to {last}: choose a later --start"):
        list(run_on(replace(TASK, start=1900), data))
    with pytest.raises(DataError, match="choose a later --start"):
        keys(replace(TASK, start=1900), data)
    with pytest.raises(DataError, match=f"born in 3000 .*; the rows are of {first} to {last}: choose an earlier"):
        keys(replace(TASK, start=3000), data)


def test_rows_need_dates():
    train, _ = corpus_sets(0, n_texts=200)
    with pytest.raises(DataError, match="no dates"):
        by_date(type(train)(train.X, train.Y, train.label_names))


def test_a_record_of_an_unknown_method_is_named(records, tmp_path):
    file = record_file(EXPERIMENT, tmp_path)
    file.append(records[0])
    file.path.write_text(file.path.read_text(encoding="utf-8").replace(WITH_PAST, "guessing"))
    with pytest.raises(DataError, match=r"timeline\.jsonl, line 1: no method of the timeline is called 'guessing'"):
        record_file(EXPERIMENT, tmp_path)


def test_a_stand_in_is_read_under_the_name_of_the_set_that_was_asked_for(monkeypatch):
    read = []

    def load(name, split):
        read.append((name, split))
        return corpus_sets(0, n_texts=100)[0]

    monkeypatch.setattr(births_module, "load_catalogue_set", load)
    births_module.load_by_date.cache_clear()
    found = births_module.load_by_date("eurlex-4k (stand-in eurlex57k)")
    births_module.load_by_date.cache_clear()
    assert read == [("eurlex57k", split) for split in ("train", "dev", "test")]
    assert len(found.dates) == 3 * len(corpus_sets(0, n_texts=100)[0].row_dates)
    with pytest.raises(DataError, match=r"wiki10-31k .*: the rows of a set that was made up have no dates"):
        births_module.load_by_date("wiki10-31k (stand-in twin)")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--years", "0"], 2, "number of years"),
        (["--start", "85"], 2, "not a year"),
        (["--dataset", "nonsense"], 3, "nonsense"),
        (["--dataset", "eurlex57k"], 3, "eurlex57k"),
    ],
)
def test_mistakes_are_one_message(monkeypatch, tmp_path, arguments, code, says):
    monkeypatch.delenv("STREAMLABEL_DATA", raising=False)
    monkeypatch.setenv("STREAMLABEL_CACHE", str(tmp_path / "cache"))
    result = CliRunner().invoke(main, ["reproduce", "timeline", "--out", str(tmp_path / "out"), *arguments])
    assert result.exit_code == code
    assert says in result.output


def results(records) -> Results:
    pytest.importorskip("pandas")
    return Results(EXPERIMENT, sorted(records, key=lambda r: tuple(getattr(r, name) for name in KEY)))


def test_the_page(records, tmp_path):
    pytest.importorskip("pandas")
    file = record_file(EXPERIMENT, tmp_path)
    for record in records:
        file.append(record)
    outcome = write_results(EXPERIMENT, file, tmp_path, "test")
    (facts,) = outcome.data["tables"]["facts"][""]
    ever = [r for r in records if r.age == EVER]
    n_labels = len(ever) // len(METHODS)
    assert (facts["arrived"], facts["arrivals that left all old scores the same bits"]) == (
        str(n_labels),
        f"{n_labels} of {n_labels}",
    )
    (lines,) = outcome.data["tables"]["ages"].values()
    assert lines[0]["labels"] == str(n_labels)
    for stored, shown in timeline.NAMES.items():
        if stored in COMPARED:
            assert lines[0][f"AUC, {shown}"] == f"{np.mean([r.auc for r in ever if r.method == stored]):.1f}"
    assert len(outcome.data["comparisons"]) == 4
    json.dumps(outcome.data, allow_nan=False)


def test_seeds_are_averaged_label_by_label_before_anything_is_judged(records):
    """Ten equal seeds say no more than one; and a label's value is the mean over its seeds."""
    once, ten = results(records), results([replace(record, seed=seed) for record in records for seed in range(10)])
    for name in ("gain", "error", "freedom"):
        np.testing.assert_allclose(ten.compared[name], once.compared[name], atol=1e-12)
    apart = [replace(r, seed=1, auc=r.auc - 4.0 * (r.method == WITH_PAST)) for r in records]
    ever = [r for r in records if r.age == EVER]
    gains = np.subtract(*([r.auc for r in ever if r.method == method] for method in (WITH_PAST, OWN_RIDGE))) - 2.0
    found = results([*records, *apart]).compared
    one = found[(found["measure"] == "AUC") & (found["competitor"] == "BR ridge")].iloc[0]
    assert one["gain"] == pytest.approx(gains.mean())
    assert one["error"] == pytest.approx(gains.std(ddof=1) / np.sqrt(len(gains)))


def test_the_variant_is_no_competitor_and_changes_nothing_of_the_others(records):
    without = [r for r in records if r.method != ALWAYS_USED]
    assert results(records).data["comparisons"] == results(without).data["comparisons"]
    assert results(without).sections("always") == {}
    assert results(records).sections("always")


def test_points_of_few_labels_are_in_the_tables_and_not_in_the_pictures(records):
    labels = sorted({r.label for r in records if r.age == 1})
    for n_labels, shown in ((4, False), (5, True)):
        found = results([r for r in records if r.age != 1 or r.label in labels[:n_labels]])
        drawn = EXPERIMENT.page.plots[0].of(found.frame, found.compared)
        assert (1 in set(drawn["age"])) == shown
        (lines,) = found.sections("ages").values()
        assert "1 to 2" in [line["years since birth"] for line in lines]


@pytest.mark.parametrize("n_records", [1, 4, 7])
def test_a_label_without_all_methods_is_not_judged(records, n_records):
    label = [record for record in records if record.label == records[0].label]
    found = results([*label[:n_records], replace(records[-1], start=2021)])
    assert found.data["comparisons"] == []
    assert found.sections("ages") == {}
    json.dumps(found.data, allow_nan=False)


def test_runs_of_the_same_start_with_longer_annotation_are_apart(records):
    longer = [replace(r, years=2, auc=r.auc - 1.0) for r in records]
    once, both = results(records).compared, results([*records, *longer]).compared
    for where in ("born from 2020 on", "born from 2020 on, annotated 2 years"):
        mine = both[both["where"] == where]
        assert mine["competitor"].tolist() == once["competitor"].tolist()
        np.testing.assert_allclose(mine["gain"], once["gain"])
    assert len(both) == 2 * len(once)
