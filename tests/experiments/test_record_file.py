"""Records on disk: nothing finished is lost, nothing half-written is read, every refusal says where."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest

from streamlabel.errors import DataError, StreamlabelError
from streamlabel.experiments.record_file import RecordFile, read_records, write_whole


@dataclass(frozen=True)
class Run:
    name: str
    seed: int
    value: float
    good: bool
    seconds: float = 0.5

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"there is no seed {self.seed}")


RUNS = [Run("naïve\n", 0, 0.1, True), Run("b", 0, 1e-300, False), Run("b", 1, 3.0, True)]


def open_file(folder: Path) -> RecordFile[Run]:
    return RecordFile(folder / "deeper" / "runs.jsonl", Run, ("name", "seed"))


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file can grow beyond this many bytes in the block, as on a disk that is full."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_every_record_is_one_line_on_disk_at_once(tmp_path):
    file = open_file(tmp_path)
    for n_before, run in enumerate(RUNS):
        file.append(run)
        lines = file.path.read_text(encoding="utf-8").splitlines()
        assert len(lines) == n_before + 1
        assert json.loads(lines[-1]) == asdict(run)


def test_what_was_written_is_read_back(tmp_path):
    file = open_file(tmp_path)
    for run in RUNS:
        file.append(run)
    again = open_file(tmp_path)
    assert again.records == file.records == RUNS
    assert ("b", 1) in again
    assert ("b", 2) not in again


def test_a_file_cut_anywhere_gives_its_whole_lines_and_can_be_continued(tmp_path):
    file = open_file(tmp_path)
    for run in RUNS:
        file.append(run)
    whole = file.path.read_bytes()
    for length in range(len(whole)):
        file.path.write_bytes(whole[:length])
        cut = open_file(tmp_path)
        n_kept = whole[:length].count(b"\n")
        assert cut.records == RUNS[:n_kept]
        assert cut.was_cut == (length > 0 and whole[length - 1 : length] != b"\n")
        for run in RUNS[n_kept:]:
            cut.append(run)
        assert file.path.read_bytes() == whole


def test_lines_that_differ_in_times_alone_are_one_record(tmp_path):
    file = open_file(tmp_path)
    for run in (*RUNS, replace(RUNS[1], seconds=9.0), RUNS[2]):
        file.append(run)
    assert file.path.read_bytes().count(b"\n") == 5
    assert open_file(tmp_path).records == RUNS
    assert read_records(file.path, Run, ("name", "seed")) == open_file(tmp_path).sorted_records


def test_two_lines_that_contradict_each_other_are_one_error_with_both(tmp_path):
    file = open_file(tmp_path)
    for run in (*RUNS, replace(RUNS[2], value=2.0)):
        file.append(run)
    with open(file.path, "ab") as end:
        end.write(b'{"name": "c"')
    before = file.path.read_bytes()
    said = r"runs\.jsonl, line 4: value is 2\.0, and 3\.0 in line 3, for the same run; remove the wrong line"
    with pytest.raises(DataError, match=said) as caught:
        open_file(tmp_path)
    assert caught.value.line == 4
    with pytest.raises(DataError, match=said):
        read_records(file.path, Run, ("name", "seed"))
    assert file.path.read_bytes() == before


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"name": "a", "seed": 0, "value": 1.0}', "good is missing"),
        ('{"name": "a", "seed": 0, "value": "1.0", "good": true}', r'value is "1\.0", and must be a finite number'),
        ('{"name": "a", "seed": 0, "value": NaN, "good": true}', "value is NaN, and must be a finite number"),
        ('{"name": "a", "seed": 0, "value": 1e999, "good": true}', "value is Infinity, and must be a finite number"),
        ('{"name": "a", "seed": 0, "value": -1e999, "good": true}', "value is -Infinity, and must be a finite number"),
        (
            f'{{"name": "a", "seed": 0, "value": 1{"0" * 400}, "good": true}}',
            "value is 10+, and must be a finite number",
        ),
        ('{"name": "a", "seed": 1e999, "value": 1.0, "good": true}', "seed is Infinity, and must be a whole number"),
        ('{"name": 1, "seed": 0, "value": 1.0, "good": true}', "name is 1, and must be text"),
        ('{"name": "a", "seed": 0.5, "value": 1.0, "good": true}', "seed is 0.5, and must be a whole number"),
        ('{"name": "a", "seed": 0, "value": 1.0, "good": 1}', "good is 1, and must be true or false"),
        ("[1, 2]", "no JSON object"),
    ],
)
def test_a_wrong_field_is_named(tmp_path, line, says):
    file = open_file(tmp_path)
    file.path.write_text(line + "\n")
    with pytest.raises(DataError, match=rf"line 1: not a Run: {says}; remove the line"):
        open_file(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[1, 2]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"name": "a", "seed": 0, "value": 1.0}',
        b'{"name": "a", "seed": true, "value": 1.0, "good": true}',
        b'{"name": "a", "seed": 0, "value": NaN, "good": true}',
        b'{"name": "a", "seed": 0, "value": "1.0", "good": true}',
        b'{"name": 1, "seed": 0, "value": 1.0, "good": true}',
    ],
    ids=["empty", "half", "list", "not text", "deep", "no field", "bool", "nan", "text", "number"],
)
def test_a_wrong_line_is_named(tmp_path, line):
    file = open_file(tmp_path)
    file.append(RUNS[0])
    with open(file.path, "ab") as end:
        end.write(line + b"\n")
    file.append(RUNS[1])
    before = file.path.read_bytes()
    with pytest.raises(DataError, match="line 2: not a Run") as caught:
        open_file(tmp_path)
    assert caught.value.line == 2
    assert caught.value.source == str(file.path)
    assert file.path.read_bytes() == before


def test_a_record_that_refuses_its_values_is_named(tmp_path):
    file = open_file(tmp_path)
    file.path.write_text('{"name": "a", "seed": -1, "value": 1, "good": true, "seconds": 0.5}\n')
    with pytest.raises(DataError, match=r"runs\.jsonl, line 1: there is no seed -1; remove the line"):
        open_file(tmp_path)


def test_a_whole_number_is_read_as_a_float(tmp_path):
    file = open_file(tmp_path)
    file.path.write_text('{"name": "a", "seed": 0, "value": 1, "good": true, "seconds": 0.5}\n')
    assert open_file(tmp_path).records == [Run("a", 0, 1.0, True)]


def test_a_full_disk_keeps_what_was_finished(tmp_path):
    file = open_file(tmp_path)
    file.append(RUNS[0])
    file.append(RUNS[1])
    size = file.path.stat().st_size
    with largest_file(size + 10), pytest.raises(StreamlabelError, match=r"runs\.jsonl: .*; records that were finished"):
        file.append(RUNS[2])
    assert file.path.stat().st_size > size  # half a line
    again = open_file(tmp_path)
    assert again.records == RUNS[:2]
    again.append(RUNS[2])
    assert open_file(tmp_path).records == RUNS


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_run(tmp_path):
    (tmp_path / "deeper").write_text("a file")
    said = r"cannot write to .*runs\.jsonl: .*; choose another folder with --out$"
    with pytest.raises(StreamlabelError, match=said):
        open_file(tmp_path)


def test_a_text_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "table.md"
    write_whole(path, "old")
    with largest_file(100), pytest.raises(StreamlabelError, match=r"table\.md: "):
        write_whole(path, "x" * 1000)
    assert path.read_text(encoding="utf-8") == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["table.md"]
    write_whole(path, "Größe")
    assert path.read_text(encoding="utf-8") == "Größe"


def test_writers_of_one_text_do_not_take_each_others_file(tmp_path):
    """Each of two processes writes its own text over and over; a shared file aside would vanish under one of them."""
    program = (
        "import sys; from pathlib import Path; from streamlabel.experiments.record_file import write_whole\n"
        "for _ in range(300): write_whole(Path(sys.argv[1]), sys.argv[2] * 50_000)"
    )
    path = tmp_path / "table.md"
    writers = [
        subprocess.Popen([sys.executable, "-c", program, path, text], stderr=subprocess.PIPE, text=True)
        for text in "ab"
    ]
    said = [writer.communicate(timeout=600)[1] for writer in writers]
    assert said == ["", ""]
    assert path.read_text(encoding="utf-8") in ("a" * 50_000, "b" * 50_000)
    assert [file.name for file in tmp_path.iterdir()] == ["table.md"]


def test_reading_alone_changes_nothing_and_passes_over_a_line_that_is_being_written(tmp_path):
    file = open_file(tmp_path)
    for run in reversed(RUNS):
        file.append(run)
    with open(file.path, "ab") as growing:
        growing.write(b'{"name": "c", "se')
    before = file.path.read_bytes()
    file.path.chmod(0o400)
    file.path.parent.chmod(0o500)
    try:
        assert read_records(file.path, Run, ("name", "seed")) == file.sorted_records
        assert file.path.read_bytes() == before
    finally:
        file.path.parent.chmod(0o700)


def test_what_cannot_be_read_is_one_error(tmp_path):
    (tmp_path / "runs.jsonl").mkdir()
    with pytest.raises(DataError, match=r"runs\.jsonl: cannot be read"):
        read_records(tmp_path / "runs.jsonl", Run, ("name", "seed"))
    (tmp_path / "other.jsonl").write_text('{"mine": 1}\n')
    with pytest.raises(DataError, match=r"other\.jsonl, line 1: not a Run"):
        read_records(tmp_path / "other.jsonl", Run, ("name", "seed"))


def test_a_field_with_a_default_may_be_missing_on_an_old_line(tmp_path):
    file = open_file(tmp_path)
    file.path.write_text('{"name": "a", "seed": 0, "value": 1.0, "good": true}\n')
    again = open_file(tmp_path)
    assert again.records == [Run("a", 0, 1.0, True, seconds=0.5)]
    file.path.write_text('{"name": "a", "seed": 0, "value": 1.0, "good": true, "seconds": "long"}\n')
    with pytest.raises(DataError, match='seconds is "long", and must be a finite number'):
        open_file(tmp_path)
