"""Disks that are full or read-only, a second writer, other versions of SQLite, readers beside a writer."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.store.sqlite import journal_mode

SCRIPT = Path(__file__).with_name("full_disk.py")
NEW, OLD = (3, 53, 0), (3, 40, 1)


def run_mounted(folder: Path, options: str, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a file system of its own on the folder; skip where that is not allowed."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not there")
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    whole = ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs -o {options} tmpfs {folder} && {command}"]
    return subprocess.run(whole, capture_output=True, text=True, timeout=600, check=False)


def test_a_full_disk_loses_nothing(tmp_path):
    said = run_mounted(tmp_path, "size=4m", f"{sys.executable} {SCRIPT} {tmp_path} disk")
    assert said.returncode == 0, said.stderr
    assert int(said.stdout) > 3


def test_a_file_that_may_not_grow_loses_nothing(tmp_path):
    pytest.importorskip("resource")
    said = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), "limit"], capture_output=True, text=True, timeout=600, check=False
    )
    assert said.returncode == 0, said.stderr


def test_a_read_only_directory_can_be_read(stored, monkeypatch, tmp_path):
    """With either journal."""
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for name, library in (("truncate", OLD), ("wal", NEW)):
        shutil.copytree(stored, tmp_path / name)
        monkeypatch.setattr(sqlite3, "sqlite_version_info", library)
        with ModelStore.open(tmp_path / name, "a") as store:
            store.rename("first", name)
    script = tmp_path / "look.py"
    script.write_text(
        "import sys, numpy as np\n"
        "from streamlabel import ModelStore\n"
        "from streamlabel.errors import DataError\n"
        "for name in ('truncate', 'wal'):\n"
        "    path = sys.argv[1] + '/' + name\n"
        "    store = ModelStore.open(path)\n"
        "    assert store.scores(np.eye(24)).shape == (24, 8)\n"
        "    assert store.model().label_names_[6] == name\n"
        "    assert ModelStore.doctor(path) == []\n"
        "    try:\n"
        "        ModelStore.open(path, 'a')\n"
        "    except DataError as error:\n"
        "        assert \"mode='r'\" in str(error), error\n"
        "        print('refused')\n"
    )
    copies = f"cp -r {tmp_path}/truncate {tmp_path}/wal {mounted}"
    said = run_mounted(
        mounted, "size=8m", f"{copies} && mount -o remount,ro {mounted} && {sys.executable} {script} {mounted}"
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout == "refused\nrefused\n"


def test_a_second_writer_is_told_who_writes(stored):
    with ModelStore.open(stored, "a", actor="the nightly job"):
        with pytest.raises(ConflictError, match=rf"process {os.getpid()} on .*the nightly job.*since"):
            ModelStore.open(stored, "a")
        assert len(ModelStore.open(stored).label_names) == 8
    ModelStore.open(stored, "a").close()


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of POSIX")
def test_no_file_of_a_model_can_be_executed(stored):
    before = os.umask(0o022)
    try:
        (stored / "writer.lock").unlink(missing_ok=True)
        ModelStore.open(stored, "a").close()
    finally:
        os.umask(before)
    assert (stored / "writer.lock").stat().st_mode & 0o777 == 0o644
    assert not any(path.stat().st_mode & 0o111 for path in stored.iterdir())


def test_the_journal_follows_the_library():
    assert journal_mode((3, 40, 1)) == "truncate"
    assert journal_mode((3, 51, 2)) == "truncate"
    assert journal_mode((3, 51, 3)) == "wal"
    assert journal_mode((3, 52, 0)) == "truncate"
    assert journal_mode((3, 53, 0)) == "wal"


def journal_of(path: Path) -> str:
    connection = sqlite3.connect(path / "catalogue.db")
    try:
        return connection.execute("PRAGMA journal_mode").fetchone()[0]
    finally:
        connection.close()


def test_an_old_library_goes_back_to_the_safe_journal(stored, monkeypatch, problem):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", NEW)
    with ModelStore.open(stored, "a") as store:
        store.add_labels(None, problem.Y[:, 8], ["with a log"])
        assert journal_of(stored) == "wal"
        assert ModelStore.open(stored).label_names[-1] == "with a log"
    monkeypatch.setattr(sqlite3, "sqlite_version_info", OLD)
    with ModelStore.open(stored, "a") as store:
        store.add_labels(None, problem.Y[:, 9], ["with a journal"])
    assert journal_of(stored) == "delete"  # what a connection that asks for nothing gets: no log is left
    assert ModelStore.open(stored).label_names[-2:] == ("with a log", "with a journal")


@pytest.mark.parametrize("library", [OLD, NEW], ids=["truncate", "wal"])
def test_readers_see_whole_revisions_while_a_writer_appends(path, library, monkeypatch):
    """Revision r has r batches of five; every reader finds exactly those, with their scores."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", library)
    rng = np.random.default_rng(4)
    coef, X = rng.standard_normal((200, 20)), rng.standard_normal((3, 20))
    right = X @ coef.astype(np.float32).T.astype(np.float64)
    ModelStore.create(path, StreamingLabelClassifier.from_coef(coef[:5])).close()
    done, seen, failures = threading.Event(), set(), []

    def read() -> None:
        while not done.is_set():
            store = ModelStore.open(path)
            n_labels = len(store.label_names)
            seen.add(store.revision)
            if n_labels != 5 * store.revision or not np.allclose(store.scores(X), right[:, :n_labels], atol=1e-12):
                failures.append((store.revision, n_labels))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        with ModelStore.open(path, "a") as store:
            for stop in range(10, 205, 5):
                store.append(StreamingLabelClassifier.from_coef(coef[:stop]))
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert not failures
    assert len(seen) > 2
    assert ModelStore.open(path).revision == 40


def test_a_reader_stays_where_it_is(stored, problem):
    reader = ModelStore.open(stored)
    before = reader.scores(problem.unseen)
    with ModelStore.open(stored, "a") as store:
        store.retire("first")
        store.vacuum()
        assert np.array_equal(reader.scores(problem.unseen), before)
        assert reader.refresh() == store.revision
    assert reader.label_names == store.label_names
    with pytest.raises(NotFoundError, match="there are 5 to 5"):
        ModelStore.open(stored, revision=3)


def broken_disk(descriptor: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_a_failed_commit_changes_nothing(stored, problem, monkeypatch):
    """The process runs on after an error in the middle of a change."""
    with ModelStore.open(stored, "a") as store:
        before = store.scores(problem.unseen)
        monkeypatch.setattr("streamlabel.store.writer.sync", broken_disk)
        with pytest.raises(DataError, match="nothing was changed"):
            store.add_labels(None, problem.Y[:, 8], ["x"])
        monkeypatch.undo()
        assert ModelStore.open(stored).revision == 3
        store.add_labels(None, problem.Y[:, 8], ["x"])
        assert np.array_equal(store.scores(problem.unseen)[:, :8], before)
    assert ModelStore.doctor(stored) == []
