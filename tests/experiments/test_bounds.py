"""The bounds experiment: its inequalities hold, its parts add up, runs are equal and resumable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.experiments.bounds import (
    DISTANCE,
    EXPERIMENT,
    KEY,
    KINDS,
    RANDOM,
    RISK,
    BoundsTask,
    keys,
    random_problem,
    random_rows,
    run,
    run_on,
    tasks,
)
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.report import Results, write_results
from streamlabel.experiments.runner import planned, record_file, run_experiment
from streamlabel.types import Dataset

SMALL = BoundsTask(RISK, "a", 0, sizes=(60, 10**9), n_batches=2)


def small_set(seed: int, n_rows: int = 200) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    mix = np.random.default_rng(0).normal(size=(6, 12))
    labels = (X @ mix + 0.3 * rng.normal(size=(n_rows, 12)) > 0.8).astype(np.int8)
    return Dataset(sparse.csr_array(X), sparse.csr_array(labels), tuple(f"l{j}" for j in range(12)))


@pytest.fixture(scope="module")
def sets() -> tuple[Dataset, Dataset]:
    return small_set(1), small_set(2)


def test_the_risk_is_bounded_after_every_batch(sets):
    records = list(run_on(SMALL, *sets))
    assert [(r.n_rows, r.batch) for r in records] == [(60, 1), (60, 2), (100, 1), (100, 2)]
    assert [r.n_new for r in records] == [3, 6, 3, 6]
    for record in records:
        assert record.held == record.checked == record.n_new
        assert record.bound == pytest.approx(record.own + record.past + record.confidence)
        assert record.weights_norm <= record.epsilon + record.code_norm * record.past_norm
        assert record.actual <= record.bound
        assert record.code_norm > 0.0
    assert records[3].confidence < records[1].confidence  # more rows
    assert records[1].confidence > records[0].confidence  # more labels


def test_what_is_finished_is_not_run_again(sets):
    whole = list(run_on(SMALL, *sets))
    done = [keys(SMALL, 200)[i] for i in (0, 2)]
    assert list(run_on(SMALL, *sets, done)) == [whole[1], whole[3]]
    assert list(run_on(SMALL, *sets, keys(SMALL, 200))) == []


def test_a_first_batch_that_nobody_can_learn_is_an_error(sets):
    train, test = sets
    empty = Dataset(train.X, sparse.csr_array(train.Y.shape, dtype=np.int8), train.label_names)
    with pytest.raises(DataError):
        list(run_on(SMALL, empty, test))


def test_the_distance_of_a_real_stream(sets):
    task = BoundsTask(DISTANCE, "a", 0, betas=(0.5, 20.0), n_batches=2)
    records = list(run_on(task, *sets))
    for record in records:
        assert (record.held, record.checked) == (2, 2)
        assert 0.0 < record.actual <= record.bound < record.printed
        assert record.cancelled == pytest.approx(record.gradient_norm, rel=1e-6)
        assert record.bound == pytest.approx(record.gradient_norm / record.curvature)


def test_labels_that_nobody_has_are_left_out_of_the_distance(sets):
    train, test = sets
    labels = train.Y.toarray()
    labels[:, [0, 5, 11]] = 0
    task = BoundsTask(DISTANCE, "a", 0, betas=(0.5,), n_batches=2)
    (record,) = run_on(task, replace(train, Y=sparse.csr_array(labels)), test)
    assert (record.held, record.checked) == (2, 2)
    assert record.n_past + record.n_new == 9


def test_random_problems_of_all_kinds_hold():
    task = BoundsTask(DISTANCE, RANDOM, 3, n_problems=2 * len(KINDS))
    records = list(run(task))
    assert [tuple(getattr(record, name) for name in KEY) for record in records] == keys(task)
    assert all(record.held == 2 for record in records)
    assert list(run(task, keys(task)[1:])) == records[:1]


@pytest.mark.parametrize("number", range(2 * len(KINDS)))
def test_random_problems_are_what_they_are_called(number):
    X, labels, n_past, start = random_problem(number, 5)
    kind = KINDS[number % len(KINDS)]
    assert X.shape[0] == labels.shape[0] == random_rows(number)
    assert ((labels.sum(axis=0) > 0) & (labels.sum(axis=0) < len(labels))).all()
    assert 0 < n_past < labels.shape[1]
    assert start == ("alternating" if number >= len(KINDS) else "independent")
    assert (X.shape[1] > X.shape[0]) == (kind == "more features than rows")
    assert (np.linalg.matrix_rank(X) < min(X.shape)) == (kind == "repeated features")
    if kind == "copies of labels":
        assert np.array_equal(labels[:, n_past], labels[:, 0])
    again = random_problem(number, 5)
    assert np.array_equal(again[0], X)
    assert np.array_equal(again[1], labels)


def test_the_grid():
    quick, full = (tasks(Setting(("bibtex",), (0, 1), quick)) for quick in (True, False))
    assert {(t.theorem, t.dataset) for t in full} == {(RISK, "bibtex"), (DISTANCE, "bibtex"), (DISTANCE, RANDOM)}
    assert sum(len(keys(t)) for t in quick) < sum(len(keys(t)) for t in full) / 4
    found = [key for task in full for key in keys(task)]
    assert len(set(found)) == len(found)


def test_a_full_run_after_a_quick_one_is_what_it_is_alone(sets, tmp_path):
    """The first of two batches is not the first of three, and the page shows the longer stream alone."""
    quick = [SMALL, BoundsTask(DISTANCE, "a", 0, betas=(1.0,), n_batches=2)]
    full = [replace(task, n_batches=3) for task in quick]
    assert not {key for task in quick for key in keys(task, 200)} & {key for task in full for key in keys(task, 200)}
    both, alone = record_file(EXPERIMENT, tmp_path / "both"), record_file(EXPERIMENT, tmp_path / "alone")
    for task in (*quick, *full):
        for record in run_on(task, *sets, [both.key(record) for record in both.records]):
            both.append(record)
    for task in full:
        for record in run_on(task, *sets):
            alone.append(record)
    assert len(both.records) == 4 + 1 + 6 + 1
    pytest.importorskip("pandas")
    shown, expected = (Results(EXPERIMENT, file.sorted_records).data for file in (both, alone))
    assert shown | {"n_records": 0} == expected | {"n_records": 0}
    assert [line["beta"] for line in shown["tables"]["distances"][""]] == ["1"]  # once


def test_a_quick_and_a_full_run_of_random_problems_share_them():
    quick, full = (tasks(Setting((), (0,), quick))[-1] for quick in (True, False))
    assert set(keys(quick)) < set(keys(full))


def test_the_page_says_in_how_many_checks_it_held_and_would_show_a_violation(sets, tmp_path):
    pytest.importorskip("pandas")
    file = record_file(EXPERIMENT, tmp_path)
    for task in (SMALL, BoundsTask(DISTANCE, "a", 0, betas=(1.0,), n_batches=2)):
        for record in run_on(task, *sets):
            file.append(record)
    run_experiment(EXPERIMENT, planned(EXPERIMENT, Setting((), (0,), True)), file)
    outcome = write_results(EXPERIMENT, file, tmp_path, "test")
    assert outcome.data["facts"]["held_1"] == "18 of 18"
    assert outcome.data["facts"]["held_2"] == "32 of 32"
    assert "18 of 18 checks" in " ".join(outcome.text.split())
    broken = [replace(record, held=record.held - 1) for record in run_on(SMALL, *sets)]
    assert Results(EXPERIMENT, broken).data["facts"]["held_1"] == "14 of 18"
