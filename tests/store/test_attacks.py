"""Ways in that an attack found: a full disk under the lock, a vacuum under a reader, cut files, pipes, copies."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from streamlabel import ModelStore, StreamingLabelClassifier, Tagger
from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.store import guard
from streamlabel.store.sqlite import reading
from streamlabel.store.writer import StoreWriter
from tagged_texts import tagged_texts


@pytest.mark.parametrize("call", ["ftruncate", "write", "lseek"])
def test_a_note_that_cannot_be_written_holds_no_lock(stored, monkeypatch, call):
    """Neither for ever, nor as another error; the change goes on, and so does the next writer."""
    real = getattr(os, call)

    def fails(descriptor, *arguments):
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and os.fstat(descriptor).st_ino == lock:
            raise OSError(28, "No space left on device")
        return real(descriptor, *arguments)

    ModelStore.open(stored, "a").close()
    lock = (stored / "writer.lock").stat().st_ino
    with monkeypatch.context() as patched:
        patched.setattr(guard.os, call, fails)
        with ModelStore.open(stored, "a") as store:
            store.rename("first", "renamed")
            with pytest.raises(ConflictError, match="is writing to it"):
                ModelStore.open(stored, "a")
    with ModelStore.open(stored, "a") as store:
        assert store.rename("renamed", "first") == 5


def test_a_commit_that_was_not_confirmed_says_so(stored, monkeypatch):
    """As where the last flush of a commit fails: the revision is there, and repeating it would be wrong."""
    with ModelStore.open(stored, "a") as store:
        writer = store._writer
        real = writer.connection

        class Failing:
            def __getattr__(self, name):
                return getattr(real, name)

            def execute(self, statement, *arguments):
                found = real.execute(statement, *arguments)
                if statement == "COMMIT":
                    raise sqlite3.OperationalError("disk I/O error")
                return found

        monkeypatch.setattr(writer, "connection", Failing())
        with pytest.raises(DataError, match="revision 4 is written, but the disk did not confirm it"):
            store.rename("first", "renamed")
        monkeypatch.undo()
    assert "renamed" in ModelStore.open(stored).label_names


def test_a_reader_keeps_its_revision_through_a_vacuum(stored, problem):
    reader = ModelStore.open(stored)
    before = reader.labels(), reader.scores(problem.unseen), reader.history()
    with ModelStore.open(stored, "a") as store:
        store.retire("second")
        store.add_labels(problem.X, problem.Y[:, 9], ["new"], annotated=np.arange(25))  # new trials, a new part
        store.vacuum()
    assert (reader.labels(), reader.history()) == (before[0], before[2])
    assert np.array_equal(reader.scores(problem.unseen), before[1])
    model = reader.model()
    assert np.array_equal(model.decision_function(problem.unseen), before[1])
    assert model.add_labels(problem.X, problem.Y[:, 10], ["more"], annotated=np.arange(60)).label_names_[-1] == "more"
    assert reader.get_part("learning").arrays["rows"].shape == (240, 24)
    reader.refresh()
    assert "second" not in reader.label_names


def test_opening_beside_vacuums_never_sees_damage(stored, problem):
    stop, problems = threading.Event(), []

    def read():
        while not stop.is_set():
            try:
                store = ModelStore.open(stored)
                store.labels()
                store.model(learning=False)
            except (DataError, NotFoundError) as error:
                problems.append(str(error))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(8):
            with ModelStore.open(stored, "a") as store:
                store.add_labels(None, problem.Y[:, 8], [f"n{number}"])
                store.retire(f"n{number}")
                store.vacuum()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert problems == []


def test_a_segment_that_is_cut_in_use_is_an_error(stored, problem):
    store = ModelStore.open(stored, cache_bytes=0)
    expected = store.scores(problem.unseen)
    read = ModelStore.open(stored, mapped=False)
    (segment,) = stored.glob("W-*")
    content = segment.read_bytes()
    os.truncate(segment, 64)
    with pytest.raises(DataError, match="was cut short while it was in use"):
        store.scores(problem.unseen)
    assert np.array_equal(read.scores(problem.unseen), expected)
    segment.write_bytes(content)
    assert np.array_equal(ModelStore.open(stored).scores(problem.unseen), expected)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("name", ["W-000001.f32", "catalogue.db", "writer.lock"])
def test_a_pipe_is_not_waited_for(stored, name):
    (stored / name).unlink(missing_ok=True)
    os.mkfifo(stored / name)
    script = (
        "import sys; from streamlabel import ModelStore; from streamlabel.errors import StreamlabelError\n"
        "for use in (lambda p: ModelStore.open(p).scores([[0.0] * 24]), lambda p: ModelStore.open(p, 'a').close(),\n"
        "            ModelStore.doctor, lambda p: ModelStore.doctor(p, repair=True)):\n"
        "    try: use(sys.argv[1])\n"
        "    except StreamlabelError as error: print('refused')\n"
        "print('end')\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", script, str(stored)], capture_output=True, text=True, timeout=300, check=False
    )
    assert said.stdout.endswith("end\n"), said.stderr


def test_repair_takes_nothing_out_that_it_could_not_open(stored, monkeypatch, problem):
    expected = ModelStore.open(stored).scores(problem.unseen)
    real = os.open

    def denied(path, *arguments, **options):
        if str(path).endswith((".f32", ".bin")):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(guard.os, "open", denied)
        findings = ModelStore.doctor(stored, repair=True)
    assert {finding.kind for finding in findings} == {"unreadable"}
    assert "Permission denied" in findings[0].problem
    assert not any(finding.repaired for finding in findings)
    assert ModelStore.doctor(stored) == []
    assert np.array_equal(ModelStore.open(stored).scores(problem.unseen), expected)


def test_leftovers_of_killed_runs_are_offered_for_removal(stored):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = stored.with_name(f".{stored.name}.{int(dead.stdout)}.new")
    mine = stored.with_name(f".{stored.name}.{os.getpid()}.new")
    for folder in (left, mine):
        folder.mkdir()
        (folder / "rows").write_text("x")
    (finding,) = ModelStore.doctor(stored)
    assert (finding.kind, finding.subject) == ("leftover", left.name)
    (finding,) = ModelStore.doctor(stored, repair=True)
    assert finding.repaired
    assert not left.exists()
    assert mine.exists()


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of POSIX")
def test_a_model_is_its_owners(problem, tmp_path):
    before = os.umask(0o022)
    try:
        ModelStore.create(tmp_path / "own", problem.fitted()).close()
        ModelStore.create(tmp_path / "shared", problem.fitted(), private=False).close()
    finally:
        os.umask(before)
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["trials", "learning", "vectorizer", "texts"])
def test_parts_of_the_model_itself_cannot_be_put(stored, name):
    with ModelStore.open(stored, "a") as store, pytest.raises(ConflictError, match="kept for what a model itself"):
        store.put_part(name, {})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_models_of_a_store_can_be_copied(stored, problem, tmp_path, copied):
    model = ModelStore.open(stored).model()
    twin = copied(model)
    np.testing.assert_allclose(
        twin.decision_function(problem.unseen), model.decision_function(problem.unseen), atol=1e-12
    )
    twin.add_labels(problem.X, problem.Y[:, 9], ["copied"], annotated=np.arange(60))
    assert "copied" not in model.label_names_
    data = tagged_texts()
    Tagger().fit(data.texts[:100], data.tags[:100]).save(tmp_path / "tags")
    with Tagger.open(tmp_path / "tags", "a") as tagger:
        twin = copied(tagger)
        assert twin.label_names_ == tagger.label_names_
        assert [name for name, _ in twin.suggest(data.texts[3], 3)] == [
            name for name, _ in tagger.suggest(data.texts[3], 3)
        ]
        if copied is not copy.copy:
            with pytest.raises(ConflictError, match="lives in memory"):
                _ = twin.store


def test_a_store_says_why_it_cannot_be_copied(stored):
    with pytest.raises(TypeError, match="stands for files and cannot be copied; open"):
        copy.deepcopy(ModelStore.open(stored))


def test_predictions_while_labels_are_added_come_from_one_model(problem):
    model = StreamingLabelClassifier(beta=1.0, lam=None, metric=None).fit(problem.X, problem.Y[:, :1])
    stop, problems = threading.Event(), []
    expected = model.predict(problem.unseen)[:, 0]

    def ask():
        while not stop.is_set():
            try:
                found, chances = model.predict(problem.unseen), model.predict_proba(problem.unseen)
                if not np.array_equal(found[:, 0], expected) or chances.ndim != 2:
                    problems.append("wrong")
            except Exception as error:
                problems.append(repr(error))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(60):
            model.add_labels(problem.X, problem.Y[:, 1 + number % 11], [f"n{number}"])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert problems == []


def test_a_version_ends_once(stored):
    writer = StoreWriter(stored)
    try:
        with writer.change("test", {}) as change:
            assert change.end("version", "label = ?", (1,)) == 1
            assert change.end("version", "label = ?", (1,)) == 0
    finally:
        writer.close()


def locks_on(path: Path) -> int:
    """How many POSIX locks there are on a file."""
    number = path.stat().st_ino
    lines = Path("/proc/locks").read_text().splitlines()
    return sum("POSIX" in line and f":{number} " in line for line in lines)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not list its locks")
def test_reading_takes_no_lock_away_from_who_writes_or_reads_in_this_process(stored):
    """Closing any descriptor of a file ends all locks of the process on it, those of SQLite too."""
    catalogue = stored / "catalogue.db"
    writer = StoreWriter(stored)
    try:
        with writer.change("test", {}):
            writer.connection.execute("UPDATE meta SET value = value")
            held = locks_on(catalogue)
            assert held
            with suppress(ConflictError):
                ModelStore.open(stored)
            ModelStore.doctor(stored)
            assert locks_on(catalogue) >= held
    finally:
        writer.close()
    with reading(stored):
        assert locks_on(catalogue)
        ModelStore.open(stored)
        assert locks_on(catalogue)


def test_a_minus_before_a_zero_is_no_damage(stored, problem):
    model = StreamingLabelClassifier.from_coef(np.eye(3), [-0.0, 0.0, -0.0])
    model.thresholds_ = [-0.0, 1.0, -0.0]
    ModelStore.create(stored.with_name("zeros"), model).close()
    assert ModelStore.doctor(stored.with_name("zeros")) == []
    with ModelStore.open(stored, "a") as store:
        store.set_threshold("first", -0.0)
        store.put_metric("first", "f1", -0.0, 3)
        with pytest.raises(DataError, match="not a number"):
            store.put_metric("first", "f1", np.nan, 3)
        with pytest.raises(DataError, match="key is 5; it must be a string"):
            store.rename("first", "x", key=5)
    assert ModelStore.open(stored).verify() == []


def test_rows_that_differ_little_do_not_cancel_out(tmp_path):
    """CRC-32 is linear: the exclusive or of four such checksums would be zero."""
    names = [f"tag{j}" for j in range(1, 41)]
    ModelStore.create(tmp_path / "tags", StreamingLabelClassifier.from_coef(np.eye(40), None, names)).close()
    for first in range(1, 30):
        path = tmp_path / f"without {first}"
        shutil.copytree(tmp_path / "tags", path)
        connection = sqlite3.connect(path / "catalogue.db", isolation_level=None)
        connection.execute("DELETE FROM version WHERE number BETWEEN ? AND ?", (first, first + 3))
        connection.close()
        with pytest.raises(DataError, match="missing, or are too many"):
            ModelStore.open(path)
        assert ModelStore.doctor(path)


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM classifier WHERE id = 2", "DELETE FROM label WHERE id = 2", "DELETE FROM revision WHERE number = 1"],
)
def test_rows_that_are_gone_are_seen_by_doctor(stored, statement):
    connection = sqlite3.connect(stored / "catalogue.db", isolation_level=None)
    connection.execute(statement)
    connection.close()
    assert ModelStore.doctor(stored)


def test_a_reader_may_be_refreshed_while_others_use_it(stored):
    reader, stop, problems = ModelStore.open(stored), threading.Event(), []

    def use():
        while not stop.is_set():
            try:
                reader.labels()
                reader.history()
            except Exception as error:
                problems.append(repr(error))

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        reader.refresh()
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []


def test_the_upgrade_is_seen_where_it_is_still_in_the_log(tmp_path, monkeypatch):
    path = tmp_path / "model"
    shutil.copytree(Path(__file__).with_name("formats") / "1", path)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 53, 0))
    with ModelStore.open(path, "a") as store:
        store.rename("late", "later")
        assert "later" in ModelStore.open(path).label_names
        shutil.copytree(path, tmp_path / "killed")
    assert "later" in ModelStore.open(tmp_path / "killed").label_names
    assert ModelStore.doctor(tmp_path / "killed") == []


def test_repair_waits_for_who_writes(stored):
    with ModelStore.open(stored, "a"), pytest.raises(ConflictError, match="is writing to it"):
        ModelStore.doctor(stored, repair=True)
