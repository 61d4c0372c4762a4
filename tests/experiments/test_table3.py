"""Neighbours: those of the estimator, found by name, and how often they are kept counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.cli import main
from streamlabel.errors import NotFoundError
from streamlabel.experiments.paper import NEIGHBOURS
from streamlabel.experiments.report import Results, write_results
from streamlabel.experiments.runner import record_file
from streamlabel.experiments.table3 import (
    ALL,
    CENTRED,
    EXPERIMENT,
    HALF_LABELS,
    HALF_ROWS,
    KEY,
    LAMS,
    OF_PAPER,
    SIGNED,
    NeighbourTask,
    find_label,
    keys,
    run_on,
    shown_names,
)
from streamlabel.streaming.trials import LAM
from streamlabel.types import Dataset

TASK = NeighbourTask("toy", ("made", "lonely"), (0, 1, 2, 3))


@pytest.fixture(scope="module")
def data() -> Dataset:
    """*made* is mostly *first* or *second* and never *third*; *lonely* is noise."""
    rng = np.random.default_rng(0)
    Y = (rng.random((600, 8)) < 0.3).astype(np.int8)
    made = (Y[:, 0] | Y[:, 1]) & (1 - Y[:, 2])
    lonely = (rng.random(600) < 0.05).astype(np.int8)
    names = ("first", "second", "third", *(f"other{j}" for j in range(5)), "made", "lonely")
    X = sparse.csr_array(rng.normal(size=(600, 4)))
    labels = sparse.csr_array(np.column_stack((Y, made, lonely)).astype(np.int8))
    return Dataset(X, labels, tuple(f"TAG_{name}" for name in names))


@pytest.fixture(scope="module")
def records(data):
    return list(run_on(TASK, data))


def test_the_keys_are_known_before(records):
    assert [tuple(getattr(record, name) for name in KEY) for record in records] == keys(TASK)


@pytest.mark.parametrize(("coding", "intercept"), [(CENTRED, True), (SIGNED, False)])
@pytest.mark.parametrize("lam", LAMS)
def test_they_are_the_neighbours_that_the_estimator_shows(data, records, coding, intercept, lam):
    others = np.arange(data.n_labels) != 8
    model = StreamingLabelClassifier(lam=lam if intercept else 4 * lam, metric=None, beta=1.0, fit_intercept=intercept)
    names = [name.removeprefix("TAG_") for name in data.label_names]
    model.fit(data.X, data.Y[:, others], [name for name in names if name != "made"])
    model.add_labels(data.X, data.Y[:, [8]], ["made"])
    found = [
        (r.neighbour, r.weight)
        for r in records
        if (r.label, r.view, r.coding, r.lam) == ("made", ALL, coding, lam) and r.neighbour
    ]
    expected = model.neighbours("made", k=5)
    assert [name for name, _ in found] == [name for name, _ in expected]
    np.testing.assert_allclose([weight for _, weight in found], [weight for _, weight in expected], rtol=1e-4)


def test_the_makers_are_found_with_their_signs(records):
    code = [r for r in records if (r.label, r.view, r.coding, r.lam) == ("made", ALL, CENTRED, LAM)]
    assert {r.neighbour: np.sign(r.weight) for r in code[:3]} == {"first": 1.0, "second": 1.0, "third": -1.0}
    assert all(r.available and r.kept for r in code[:3])
    lonely = [r for r in records if (r.label, r.view, r.lam) == ("lonely", ALL, LAMS[-1])]
    assert {(r.neighbour, r.weight, r.code_size) for r in lonely if r.coding == CENTRED} == {("", 0.0, 0)}


def test_rows_with_both_labels_are_counted(data, records):
    Y = data.Y.toarray()
    names = [name.removeprefix("TAG_") for name in data.label_names]
    for record in records:
        column = Y[:, names.index(record.label)]
        both = (column * Y[:, names.index(record.neighbour)]).sum() if record.neighbour else 0
        assert (record.n_yes, record.n_both) == (column.sum(), both)


def test_the_papers_neighbours_are_shown_whatever_their_weight(data):
    names = ("formal", "requirements", "empirical", "data", "objectoriented", "a", "b", "c", "concept", "d")
    other = Dataset(data.X, data.Y, names)
    task = NeighbourTask("bibtex", ("concept",), (0,))
    found = [r for r in run_on(task, other) if r.view == OF_PAPER and r.lam == LAM]
    code = {r.neighbour: r.weight for r in run_on(task, other) if (r.view, r.coding, r.lam) == (ALL, CENTRED, LAM)}
    assert [r.neighbour for r in found] == list(NEIGHBOURS["bibtex"]["concept"])
    assert [r.weight for r in found] == [code.get(r.neighbour, 0.0) for r in found]
    assert found[0].weight > 0.0 > found[2].weight


def test_the_papers_neighbours_are_counted(data):
    pytest.importorskip("pandas")
    names = ("formal", "requirements", "empirical", "data", "objectoriented", "a", "b", "c", "concept", "d")
    task = NeighbourTask("bibtex", ("concept",), (0,))
    shared = {(CENTRED, LAM): 1, (CENTRED, LAMS[1]): 3, (SIGNED, LAM): 2}
    records = []
    for record in run_on(task, Dataset(data.X, data.Y, names)):
        if record.view == ALL:
            n_shared = shared.get((record.coding, record.lam), 0)
            name = NEIGHBOURS["bibtex"]["concept"][record.rank - 1] if record.rank <= n_shared else f"x{record.rank}"
            records.append(replace(record, neighbour=name, code_size=9))
    found = Results(EXPERIMENT, records)
    assert found.value("shared") == "1 of 5"
    lines = {
        (line["coding"], line["penalty"]): line["shared with the paper"] for line in found.sections("codes")["bibtex"]
    }
    assert lines[CENTRED, f"{LAM:.3g} (usual)"] == "1 of 5"
    assert lines[CENTRED, f"{LAMS[1]:.3g}"] == "3 of 5"
    assert lines[SIGNED, f"{LAM:.3g} (usual)"] == "2 of 5"


def test_with_half_of_the_labels_a_neighbour_can_only_be_kept_where_it_is_past(records):
    drawn = [r for r in records if (r.label, r.view, r.lam) == ("made", HALF_LABELS, LAM) and r.rank <= 3]
    assert any(not r.available for r in drawn)
    assert all(r.kept == r.available for r in drawn)
    rows = [r for r in records if (r.label, r.view, r.lam) == ("made", HALF_ROWS, LAM) and r.rank <= 3]
    assert all(r.kept and r.available for r in rows)


def test_what_is_finished_is_not_run_again(data, records):
    done = keys(TASK)[:-3]
    assert list(run_on(TASK, data, done)) == records[-3:]


def test_the_page_counts_draws(data, records, tmp_path):
    file = record_file(EXPERIMENT, tmp_path)
    for record in records:
        file.append(record)
    pytest.importorskip("pandas")
    outcome = write_results(EXPERIMENT, file, tmp_path, "test")
    made = [line for line in outcome.data["tables"]["firm"]["toy"] if line["label"] == "made"]
    assert [line["neighbour"] for line in made][:3] == [r.neighbour for r in file.sorted_records if _top(r)][:3]
    assert made[0]["kept with half of the rows"] == "4 of 4"
    assert "4 of 4" in outcome.text


def _top(record) -> bool:
    return (record.label, record.view, record.coding, record.lam) == ("made", ALL, CENTRED, LAM)


def test_names_are_found_or_the_closest_are_named():
    names = ("epitope", "Concept", "concept", "fornepomuk")
    assert find_label(names, "concept", "x") == 2
    assert find_label(names, "EPITOPE", "x") == 0
    with pytest.raises(NotFoundError, match="no label of x is called 'epitop'; did you mean epitope"):
        find_label(names, "epitop", "x")
    with pytest.raises(NotFoundError, match="it has 4 labels, such as epitope"):
        find_label(names, "zzz", "x")


def test_a_beginning_that_all_names_share_is_left_out():
    assert shown_names(("TAG_a", "TAG_b")) == ("a", "b")
    assert shown_names(("TAG_a", "b")) == ("TAG_a", "b")
    assert shown_names(("TAG_", "TAG_b")) == ("TAG_", "TAG_b")
    assert shown_names(("tag", "tar")) == ("tag", "tar")


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    monkeypatch.delenv("STREAMLABEL_DATA", raising=False)
    monkeypatch.setenv("STREAMLABEL_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("label", "code", "says"),
    [("telemedicin", 3, "did you mean telemedicine"), ("a;;b", 2, "empty name"), ("health", 0, "health")],
)
def test_the_command_without_data(no_data, tmp_path, label, code, says):
    if code == 0:
        pytest.importorskip("pandas")  # for the page
    arguments = [
        "reproduce",
        "table3",
        "--quick",
        "--seeds",
        "1",
        "--jobs",
        "1",
        "--out",
        str(tmp_path),
        "--label",
        label,
    ]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code
    assert says in result.output


def test_the_three_labels_of_the_paper(data_root, monkeypatch, tmp_path):
    monkeypatch.setenv("STREAMLABEL_DATA", str(data_root))
    arguments = ["reproduce", "table3", "--dataset", "bibtex", "--seeds", "2", "--jobs", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    for label, neighbours in NEIGHBOURS["bibtex"].items():
        assert label in result.output
        assert all(name in result.output for name in neighbours)
    assert "nepomuk" in result.output
