"""Bits that flipped, files that were cut short or are gone: found, explained, and what is whole stays usable."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.errors import DataError, NotFoundError
from streamlabel.store.format import HEADER_SIZE

N_FEATURES = 24


def flip(path, position, bit=0):
    with open(path, "r+b") as file:
        file.seek(position)
        (value,) = file.read(1)
        file.seek(position)
        file.write(bytes([value ^ (1 << bit)]))


def damage_rows(stored):
    """Flip a bit in the middle of the rows of features that are kept to go on learning."""
    query = "SELECT segment, start, n_bytes FROM part_array a JOIN part p ON p.number = a.part "
    with closing(sqlite3.connect(stored / "catalogue.db")) as connection:
        (segment, start, size), *_ = connection.execute(query + "WHERE p.name = 'learning' ORDER BY n_bytes DESC")
    flip(stored / f"P-{segment:06}.bin", start + size // 2)


def row_at(row, feature=5):
    return HEADER_SIZE + 4 * (N_FEATURES * row + feature)


@pytest.fixture
def right(stored, problem):
    return ModelStore.open(stored).scores(problem.unseen)


@pytest.fixture
def segment(stored):
    (path,) = stored.glob("W-*")
    return path


@pytest.mark.parametrize("bit", [0, 7])
def test_a_flipped_bit_is_found_and_the_others_stay(stored, segment, right, problem, bit):
    flip(segment, row_at(2), bit)
    with pytest.raises(DataError, match=r"'known 2', row 2 of W-000001.f32: its checksum is wrong.*leave_out_damaged"):
        ModelStore.open(stored).scores(problem.unseen)
    assert len(ModelStore.open(stored).verify()) == 1
    part = ModelStore.open(stored, leave_out_damaged=True)
    kept = [0, 1, 3, 4, 5, 6, 7]
    assert np.array_equal(part.scores(problem.unseen), right[:, kept])
    assert part.model().label_names_ == part.label_names
    (finding,) = ModelStore.doctor(stored)
    assert (finding.kind, finding.subject, finding.repaired) == ("label", 3, False)
    (finding,) = ModelStore.doctor(stored, repair=True)
    assert finding.repaired
    assert np.array_equal(ModelStore.open(stored).scores(problem.unseen), right[:, kept])
    assert ModelStore.open(stored).history()[0].action == "doctor"
    assert [finding.kind for finding in ModelStore.doctor(stored)] == ["history"]
    with ModelStore.open(stored, "a") as store:
        store.add_labels(None, problem.Y[:, 2], ["known 2"])
        store.vacuum()
    assert ModelStore.doctor(stored) == []


def test_a_flipped_bit_after_the_first_look(stored, segment, problem):
    """What was checked and kept in memory is right; a new reader finds the damage."""
    store = ModelStore.open(stored)
    before = store.scores(problem.unseen)
    flip(segment, row_at(0))
    assert np.array_equal(store.scores(problem.unseen), before)
    with pytest.raises(DataError, match="known 0"):
        ModelStore.open(stored).model().decision_function(problem.unseen)
    with pytest.raises(DataError, match="known 0"):
        _ = ModelStore.open(stored).model().coef_


def test_a_segment_that_was_cut_short(stored, segment, right, problem):
    os.truncate(segment, row_at(6, 0) + 10)
    with pytest.raises(DataError, match="the file ends before it"):
        ModelStore.open(stored).scores(problem.unseen)
    part = ModelStore.open(stored, leave_out_damaged=True)
    assert np.array_equal(part.scores(problem.unseen), right[:, :6])
    with ModelStore.open(stored, "a") as store, pytest.raises(DataError, match=r"cut short|ends before"):
        store.add_labels(problem.X[:200], problem.Y[:200, 8], ["x"])
    assert {finding.kind for finding in ModelStore.doctor(stored)} == {"file", "label"}
    assert all(finding.repaired for finding in ModelStore.doctor(stored, repair=True))
    with ModelStore.open(stored, "a") as store:
        assert np.array_equal(store.scores(problem.unseen), right[:, :6])
        store.add_labels(None, problem.Y[:, 8], ["x"])
        assert np.array_equal(store.scores(problem.unseen)[:, :6], right[:, :6])


def test_room_that_is_missing_costs_no_label(stored, segment, right, problem):
    """The end of a segment is reserved room: nothing is lost with it."""
    os.truncate(segment, segment.stat().st_size - 1000)
    (finding,) = ModelStore.doctor(stored)
    assert finding.kind == "file"
    assert "repair mends it; 8 of its 8 labels are whole" in finding.remedy
    (finding,) = ModelStore.doctor(stored, repair=True)
    assert finding.repaired
    assert np.array_equal(ModelStore.open(stored).scores(problem.unseen), right)


def test_only_labels_without_a_row_are_said_to_be_lost(stored, segment):
    os.truncate(segment, row_at(6, 0) + 10)
    found = ModelStore.doctor(stored)
    assert [finding.subject for finding in found if finding.kind == "label"] == [7, 8]
    assert "6 of its 8 labels are whole" in found[0].remedy
    segment.unlink()
    assert [finding.kind for finding in ModelStore.doctor(stored)] == ["missing"] + 8 * ["label"]


@pytest.mark.parametrize("pattern", ["W-*", "P-*"])
@pytest.mark.parametrize("harm", ["header", "longer"])
def test_a_file_that_can_be_mended_takes_nothing_with_it(stored, pattern, harm):
    for path in stored.glob(pattern):
        flip(path, 3) if harm == "header" else os.truncate(path, path.stat().st_size + 8)
    assert {finding.kind for finding in ModelStore.doctor(stored)} == {"file"}
    assert all(finding.repaired for finding in ModelStore.doctor(stored, repair=True))
    assert ModelStore.doctor(stored) == []


def test_the_doctor_does_not_send_people_to_the_doctor(stored):
    for path in stored.glob("P-*"):
        flip(path, path.stat().st_size // 2)
    edit(stored, "UPDATE part SET content = '{' WHERE name = 'trials'")
    found = ModelStore.doctor(stored)
    assert {finding.subject for finding in found} == {"learning", "trials"}
    assert not any("run doctor" in f"{finding.problem}{finding.remedy}" for finding in found)
    assert "fit again" in next(finding.remedy for finding in found if finding.subject == "learning")
    edit(stored, "UPDATE meta SET value = 'x' WHERE key = 'n_features'")
    (finding,) = ModelStore.doctor(stored)
    assert "run doctor" not in finding.problem


def test_a_file_is_no_model(segment):
    with pytest.raises(DataError, match="is a file, not a model directory"):
        ModelStore.doctor(segment)


def test_a_header_that_was_overwritten(stored, segment, right, problem):
    flip(segment, 3)
    with pytest.raises(DataError, match="header"):
        ModelStore.open(stored)
    ModelStore.doctor(stored, repair=True)
    assert ModelStore.doctor(stored) == []
    assert np.array_equal(ModelStore.open(stored).scores(problem.unseen), right)


def test_a_segment_that_is_gone(problem, path):
    """The labels of the other segments can be saved."""
    rng = np.random.default_rng(0)
    coef = rng.standard_normal((100, 24))
    ModelStore.create(path, StreamingLabelClassifier.from_coef(coef)).close()
    right = ModelStore.open(path).scores(problem.unseen)
    (path / "W-000002.f32").unlink()
    with pytest.raises(NotFoundError, match="doctor"):
        ModelStore.open(path)
    findings = ModelStore.doctor(path, repair=True)
    assert sum(finding.kind == "label" for finding in findings) == 36
    assert np.array_equal(ModelStore.open(path).scores(problem.unseen), right[:, :64])


def test_damaged_rows_of_features_do_not_stop_the_scores(stored, right, problem):
    damage_rows(stored)
    store = ModelStore.open(stored)
    assert np.array_equal(store.scores(problem.unseen), right)
    with pytest.raises(DataError, match="run doctor"):
        store.model()
    assert np.array_equal(store.model(learning=False).decision_function(problem.unseen), right)
    assert [finding.subject for finding in ModelStore.doctor(stored, repair=True)] == ["learning"]
    with ModelStore.open(stored, "a") as store:
        store.add_labels(problem.X, problem.Y[:, 8], ["x"])


def test_damaged_answers_are_found(stored):
    edit(stored, "UPDATE answer SET positives = x'00000000'")
    with pytest.raises(DataError, match="learning is damaged"):
        ModelStore.open(stored).model()
    assert [finding.kind for finding in ModelStore.doctor(stored, repair=True)] == ["answers"]
    assert ModelStore.open(stored).model().label_names_[6] == "first"


@pytest.mark.parametrize("change", ["name = 'firsd'", "threshold = 0.25"])
def test_a_name_that_was_written_to_is_found(stored, change):
    edit(stored, f"UPDATE version SET {change} WHERE name = 'first'")
    (finding,) = ModelStore.doctor(stored)
    assert (finding.kind, finding.subject) == ("label", 7)


def test_files_of_no_revision_are_removed(stored):
    shutil.copy(stored / "W-000001.f32", stored / "W-000009.f32")
    (finding,) = ModelStore.doctor(stored, repair=True)
    assert finding.kind == "orphan"
    assert not (stored / "W-000009.f32").exists()
    assert ModelStore.doctor(stored) == []


@pytest.mark.parametrize("seed", range(12))
def test_a_catalogue_with_random_damage_is_refused_or_read(stored, seed, problem):
    """Whatever the bytes: an answer, or one of our errors; never another one."""
    rng = np.random.default_rng(seed)
    catalogue = stored / "catalogue.db"
    size = catalogue.stat().st_size
    for position in rng.integers(100 if seed % 2 else 0, size, 1 + 40 * (seed % 3)):
        flip(catalogue, int(position), int(rng.integers(8)))
    if seed % 4 == 3:
        os.truncate(catalogue, size // 2)
    try:
        store = ModelStore.open(stored)
        assert store.scores(problem.unseen).shape == (60, len(store.label_names))
        store.model()
        store.history()
        store.labels()
    except (DataError, NotFoundError):
        pass
    ModelStore.doctor(stored)


def test_a_catalogue_beyond_repair_is_said_to_be(stored):
    os.truncate(stored / "catalogue.db", 5000)
    (finding,) = ModelStore.doctor(stored, repair=True)
    assert finding.kind == "catalogue"
    assert "backup" in finding.remedy
    assert not finding.repaired


@pytest.mark.parametrize("label", [None, "second"])
def test_labels_that_lost_their_rows_do_not_come_back(stored, segment, right, problem, label):
    os.truncate(segment, row_at(6, 0) + 10)
    ModelStore.doctor(stored, repair=True)
    with ModelStore.open(stored, "a") as store:
        store.rename("known 0", "x")
        before = store.revision
        with pytest.raises(DataError, match=r"revision 3 has damaged labels.*nothing was changed") as refused:
            store.rollback(3, label=label)
        assert "'second'" in str(refused.value)
        assert ("'first'" in str(refused.value)) is (label is None)
        assert "known" not in str(refused.value)
        assert store.revision == before
        assert store.rollback(3, label="x") == before + 1  # this one is whole
        assert store.rollback(1) == before + 2  # a revision before the lost ones
    assert np.array_equal(ModelStore.open(stored).scores(problem.unseen), right[:, :6])
    assert {finding.kind for finding in ModelStore.doctor(stored)} == {"history"}


def test_a_name_that_was_written_to_does_not_come_back(stored):
    edit(stored, "UPDATE version SET threshold = 0.25 WHERE name = 'first'")
    ModelStore.doctor(stored, repair=True)
    with ModelStore.open(stored, "a") as store, pytest.raises(DataError, match=r"written to.*nothing was changed"):
        store.rollback(label="first")


def test_rows_of_features_that_are_lost_do_not_come_back(stored):
    damage_rows(stored)
    ModelStore.doctor(stored, repair=True)
    with ModelStore.open(stored, "a") as store:
        with pytest.raises(DataError, match="part 'learning' is damaged in revision 3; nothing was changed"):
            store.rollback(3)
        assert store.parts() == ["trials"]
        store.model()


def edit(path, *statements):
    """Change a catalogue behind the back of the store."""
    with closing(sqlite3.connect(path / "catalogue.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
