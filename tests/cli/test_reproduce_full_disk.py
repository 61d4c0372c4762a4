"""``streamlabel reproduce`` on a full disk: one error that says what could not be written and where the records are."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from streamlabel.experiments.methods import METHODS, installed
from tiny_commands import records_in, run_tiny

FULL = Path("/dev/full")
ARGUMENTS = ("--quick", "--seeds", "2", "--methods")
KEPT = "records that were finished are kept"
GOES_ON = "and the same command goes on after them\n"


def run(out: Path, methods: str = "SLL,BR ridge", **how):
    return run_tiny("table2", out, *ARGUMENTS, methods, **how)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    assert run(out).exit_code == 0
    return out


def the_error(result) -> str:
    """The only line beside the one of the start; no traceback."""
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    told = [line for line in result.stderr.splitlines(keepends=True) if not line.startswith("table2: ")]
    assert len(told) == 1
    assert told[0].startswith("error: ")
    assert result.stdout == ""
    return told[0]


@pytest.fixture
def finished(whole, tmp_path) -> Path:
    """A folder of finished records whose page is to be made again."""
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    return out


def fill(path: Path) -> None:
    """What is written there meets a full disk."""
    if not FULL.exists():
        pytest.skip("no /dev/full")
    path.symlink_to(FULL)


def fill_aside(path: Path, patched: pytest.MonkeyPatch) -> None:
    """The file that is written beside ``path``, to replace it, meets a full disk."""
    if not FULL.exists():
        pytest.skip("no /dev/full")
    aside, real = path.with_name(f".{path.name}.{os.getpid()}.new"), os.open

    def opened(name, flags, *arguments, **options):
        return real(FULL, os.O_WRONLY) if Path(name) == aside else real(name, flags, *arguments, **options)

    patched.setattr("streamlabel.data.files.os.open", opened)


@pytest.mark.parametrize("name", ["table2.md", "table2.json", "table2.run.json"])
def test_a_page_that_does_not_fit_leaves_the_old_one_and_the_records(name, finished, whole, monkeypatch):
    if not name.endswith(".run.json"):
        pytest.importorskip("pandas")
    with monkeypatch.context() as patched:
        fill_aside(finished / name, patched)
        told = the_error(run(finished))
    assert f"{finished / name}: cannot be written: No space left on device; {KEPT} in {finished}, {GOES_ON}" in told
    assert (finished / "table2.jsonl").read_bytes() == (whole / "table2.jsonl").read_bytes()
    assert (finished / name).read_bytes() == (whole / name).read_bytes()
    assert run(finished).exit_code == 0


def test_a_picture_that_does_not_fit_leaves_the_records(finished, whole):
    pytest.importorskip("matplotlib")
    picture = finished / "table2-differences.png"
    fill(picture)
    told = the_error(run(finished, draws=True))
    assert told == f"error: {picture}: No space left on device; {KEPT}, {GOES_ON}"
    assert (finished / "table2.jsonl").read_bytes() == (whole / "table2.jsonl").read_bytes()


def test_an_origin_that_does_not_fit_leaves_the_first_record(tmp_path, whole, monkeypatch):
    with monkeypatch.context() as patched:
        fill_aside(tmp_path / "table2.run.json", patched)
        told = the_error(run(tmp_path))
    assert f"{tmp_path / 'table2.run.json'}: cannot be written: " in told
    assert told.endswith(f"; {KEPT} in {tmp_path}, {GOES_ON}")
    assert len(records_in(tmp_path / "table2.jsonl")) == 1
    assert run(tmp_path).exit_code == 0
    assert records_in(tmp_path / "table2.jsonl") == records_in(whole / "table2.jsonl")


def test_a_note_in_the_lock_that_does_not_fit_is_no_error(tmp_path, monkeypatch, whole):
    real = os.write

    def full(descriptor, data):
        if b'"pid"' in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data)

    monkeypatch.setattr("streamlabel.store.guard.os.write", full)
    assert run(tmp_path).exit_code == 0
    assert records_in(tmp_path / "table2.jsonl") == records_in(whole / "table2.jsonl")


WRITERS = [name for name, method in METHODS.items() if method.package in ("napkinxc", "omikuji")]


def with_small_files(out: Path, methods: str, jobs: int):
    """No file may have more bytes than a few records: their own fit, those of libraries do not."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2800, hard))
    try:
        return run(out, methods, jobs=jobs)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(("method", "jobs"), [*((name, 1) for name in WRITERS), (WRITERS[0], 2)])
def test_temporary_files_that_do_not_fit_are_one_error_and_no_record(method, jobs, tmp_path, monkeypatch):
    if not installed([method]):
        pytest.skip(f"{METHODS[method].package} is not installed")
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    out = tmp_path / "out"
    told = the_error(with_small_files(out, f"BR ridge,{method}", jobs))
    assert told.startswith(f"error: {folder}{os.sep}streamlabel-")
    assert ": File too large (a temporary file; TMPDIR names the folder for them); " in told
    assert told.endswith(f"; {KEPT} in {out}, {GOES_ON}")
    found = [json.loads(line) for line in records_in(out / "table2.jsonl")]
    assert {one["method"] for one in found} <= {"BR ridge"}
    assert jobs == 2 or len(found) == 4
    assert (out / "table2.jsonl").read_bytes().count(b"\n") == len(found)
    assert not (out / "table2.md").exists()
    assert not list(folder.iterdir())


@pytest.mark.parametrize("method", WRITERS)
def test_no_folder_for_temporary_files_is_one_error(method, tmp_path, monkeypatch):
    if not installed([method]):
        pytest.skip(f"{METHODS[method].package} is not installed")

    def none(*arguments, **options):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "mkdtemp", none)
    told = the_error(run(tmp_path, f"BR ridge,{method}"))
    assert told.startswith("error: No usable temporary directory found in ['/tmp'] (a temporary file; TMPDIR names")
    assert told.endswith(f"; {KEPT} in {tmp_path}, {GOES_ON}")
    assert len(records_in(tmp_path / "table2.jsonl")) == 4
