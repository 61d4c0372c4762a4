"""``streamlabel reproduce``: what it writes, that it goes on where it stopped, what it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from processes import PATIENCE, started, wait_for
from streamlabel.cli import main, reproduce
from streamlabel.cli import output as _run_progress
from streamlabel.errors import StreamlabelError
from streamlabel.experiments import provenance, report, runner, sets
from streamlabel.experiments.budget import BudgetRecord
from streamlabel.experiments.experiment import EXPERIMENTS
from streamlabel.experiments.record_file import RecordFile
from tiny_commands import has, no_picture
from toy_experiment import TOY

FILES = ("budget.md", "budget.json") if has("pandas") else ()
needs_pandas = pytest.mark.skipif(not has("pandas"), reason="pages need pandas")


@pytest.fixture(autouse=True)
def no_pictures(request, monkeypatch):
    """Drawing takes half a second a picture; tests that are about it say so."""
    if "draws" not in request.fixturenames:
        monkeypatch.setattr(report, "draw", no_picture)


@pytest.fixture
def draws():
    """Pictures are drawn in this test."""


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """No data set on this machine, and a small corpus."""
    monkeypatch.delenv("STREAMLABEL_DATA", raising=False)
    monkeypatch.setenv("STREAMLABEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sets, "_TEXTS", 300)
    sets.load_set.cache_clear()
    yield
    sets.load_set.cache_clear()


def run(out: Path, *arguments: str, jobs: int = 1):
    return CliRunner().invoke(main, ["reproduce", "budget", "--out", str(out), "--jobs", str(jobs), *arguments])


def records(out: Path) -> list[dict]:
    """Sorted, without times."""
    lines = sorted((out / "budget.jsonl").read_text(encoding="utf-8").splitlines())
    return [{key: value for key, value in json.loads(line).items() if key != "cpu_seconds"} for line in lines]


def commands(path: Path) -> list[str]:
    return [run["command"] for run in json.loads(path.read_text(encoding="utf-8"))["commands"]]


def same(left: Path, right: Path) -> bool:
    return records(left) == records(right) and all(
        (left / name).read_bytes() == (right / name).read_bytes() for name in FILES
    )


@needs_pandas
def test_quick_without_data_runs_on_the_embedded_texts(no_data, draws, tmp_path):
    result = run(tmp_path / "a", "--quick")
    assert result.exit_code == 0, result.output
    assert result.stdout == (tmp_path / "a" / "budget.md").read_text(encoding="utf-8")
    assert result.stdout.splitlines()[-1].startswith("The bar is ")
    found = records(tmp_path / "a")
    assert {(r["dataset"], r["n_rows"], r["seed"]) for r in found} == {
        ("news corpus", n_rows, seed) for n_rows in (20, 100) for seed in (0, 1)
    }
    assert len(found) == 8
    again = run(tmp_path / "b", "--quick", "--json")
    assert json.loads(again.stdout) == json.loads((tmp_path / "b" / "budget.json").read_text(encoding="utf-8"))
    assert same(tmp_path / "a", tmp_path / "b")
    pytest.importorskip("matplotlib")
    assert (tmp_path / "a" / "budget-auc.svg").read_bytes() == (tmp_path / "b" / "budget-auc.svg").read_bytes()


@pytest.mark.parametrize("n_finished", [0, 1, 2, 3])
def test_an_interrupted_run_goes_on_to_the_same_tables(no_data, tmp_path, monkeypatch, n_finished):
    arguments = ("--quick", "--budgets", "20", "--seeds", "2")
    assert run(tmp_path / "whole", *arguments).exit_code == 0
    append, finished = RecordFile.append, []

    def stopped(self, record):
        if len(finished) == n_finished:
            self.path.write_bytes(self.path.read_bytes() + b'{"dataset": "news')
            raise KeyboardInterrupt
        append(self, record)
        finished.append(record)

    with monkeypatch.context() as patch:
        patch.setattr(RecordFile, "append", stopped)
        result = run(tmp_path / "cut", *arguments)
    assert result.exit_code == 130
    kept_words = f"budget.jsonl keeps {n_finished} finished record" if n_finished else "no record was finished"
    assert kept_words in result.stderr
    assert "; the same command goes on\n" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("interrupted: ")
    assert not (tmp_path / "cut" / "budget.md").exists()
    assert (tmp_path / "cut" / "budget.run.json").exists()  # before the first record, so none is of unknown origin
    kept = (tmp_path / "cut" / "budget.jsonl").read_bytes().rpartition(b"\n")[0]
    again = run(tmp_path / "cut", *arguments)
    assert again.exit_code == 0
    assert again.stderr.count("budget.jsonl: the last line was incomplete and is dropped\n") == 1
    assert f"budget: 4 runs, {n_finished} done already\n" in again.stderr
    assert (tmp_path / "cut" / "budget.jsonl").read_bytes().startswith(kept)  # finished records were not run again
    assert same(tmp_path / "whole", tmp_path / "cut")


@needs_pandas
def test_a_wider_grid_runs_what_is_missing(no_data, tmp_path):
    assert run(tmp_path, "--quick", "--budgets", "20", "--seeds", "1").exit_code == 0
    before = (tmp_path / "budget.jsonl").read_bytes()
    assert (
        run(tmp_path, "--quick", "--budgets", "20,40", "--seeds", "1", "--methods", "SLL, SLL anchor only").exit_code
        == 0
    )
    after = (tmp_path / "budget.jsonl").read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == 6
    assert "SLL anchor only" in (tmp_path / "budget.md").read_text(encoding="utf-8")


def test_a_full_disk_is_one_error_and_keeps_the_finished_records(no_data, tmp_path):
    resource = pytest.importorskip("resource")
    arguments = ("--quick", "--budgets", "20", "--seeds", "2")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # bytes in one file: some records and a half
    try:
        result = run(tmp_path / "full", *arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 1
    assert result.stderr.count("error: ") == 1
    assert result.stderr.count("\n") == 2  # the line of the start
    assert "budget.jsonl" in result.stderr
    assert run(tmp_path / "full", *arguments).exit_code == 0
    assert run(tmp_path / "whole", *arguments).exit_code == 0
    assert same(tmp_path / "whole", tmp_path / "full")


@needs_pandas
def test_on_a_real_set(data_root, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMLABEL_DATA", str(data_root))
    result = run(tmp_path, "--quick", "--budgets", "20,5000,all", "--seeds", "1", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    lines = data["tables"]["gains"]["mediamill_reduced"]
    assert [line["annotated rows"] for line in lines] == ["20", "1500 (all)"]
    assert lines[0]["labels learned"].endswith(" of 51")


@needs_pandas
def test_a_set_that_is_not_here_has_a_stand_in_and_every_table_says_so(data_root, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMLABEL_DATA", str(data_root))
    if (data_root / "mediamill").exists():
        pytest.skip("mediamill is here")
    result = run(tmp_path, "--dataset", "mediamill", "--budgets", "20", "--seeds", "1", "--methods", "with the past")
    assert result.exit_code == 0, result.output
    assert "### mediamill (stand-in mediamill_reduced)" in result.stdout
    assert {r["dataset"] for r in records(tmp_path)} == {"mediamill (stand-in mediamill_reduced)"}


def test_workers_give_the_same_files(data_root, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMLABEL_DATA", str(data_root))
    arguments = ("--quick", "--budgets", "20")
    assert run(tmp_path / "one", *arguments).exit_code == 0
    assert run(tmp_path / "two", *arguments, jobs=2).exit_code == 0
    assert same(tmp_path / "one", tmp_path / "two")


@needs_pandas
def test_without_matplotlib_one_note_and_all_tables(no_data, draws, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(tmp_path, "--quick", "--budgets", "20", "--seeds", "1")
    assert result.exit_code == 0
    assert result.stderr == (
        "budget: 2 runs, 0 done already\n"
        "no pictures: drawing pictures needs the package matplotlib: "
        "pip install 'streamlabel[experiments]' (in a clone: pip install -e '.[experiments]')\n"
    )
    assert {path.name for path in tmp_path.iterdir() if "budget" in path.name} == {
        ".budget.lock", "budget.jsonl", "budget.md", "budget.json", "budget.run.json",
    }  # fmt: skip


def test_the_command_is_kept_less_what_does_not_matter(no_data, tmp_path):
    assert run(tmp_path, "--quick", "--json", "--budgets", "20, 40", "--seeds=1", jobs=1).exit_code == 0
    assert commands(tmp_path / "budget.run.json") == [
        "streamlabel reproduce budget --quick --budgets '20, 40' --seeds=1"
    ]


def test_a_folder_after_an_equals_sign_is_left_out_of_the_command(no_data, tmp_path):
    arguments = [f"--out={tmp_path}", "--jobs=1", "--quick", "--budgets=20", "--seeds", "1"]
    result = CliRunner().invoke(main, ["reproduce", "budget", *arguments])
    assert result.exit_code == 0, result.output
    assert commands(tmp_path / "budget.run.json") == ["streamlabel reproduce budget --quick --budgets=20 --seeds 1"]


@pytest.mark.parametrize("empty", [["--out="], ["--out", ""]])
def test_a_folder_without_a_name_is_refused_at_once(no_data, tmp_path, monkeypatch, empty):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["reproduce", "budget", "--quick", *empty])
    assert result.exit_code == 2
    assert "the name of the folder is empty" in result.stderr
    assert not list(tmp_path.glob("*budget*"))


def test_a_second_run_in_the_same_folder_is_a_conflict(no_data, tmp_path):
    with runner.writing(EXPERIMENTS["budget"].load(), tmp_path):
        result = run(tmp_path, "--quick")
    assert result.exit_code == 4
    assert result.stderr.startswith(f"error: {tmp_path / 'budget.jsonl'}: process {os.getpid()} ")
    assert result.stderr.count("\n") == 1
    assert (tmp_path / "budget.jsonl").read_bytes() == b""


@pytest.mark.parametrize(("times", "n_jobs", "command"), [(True, 1, " --jobs 2"), (False, 7, "")])
def test_where_times_are_results_nothing_runs_beside_them(tmp_path, monkeypatch, times, n_jobs, command):
    monkeypatch.setattr(reproduce, "cpu_count", lambda: 7)
    used = []
    monkeypatch.setattr(reproduce, "run_experiment", lambda *arguments: used.append(arguments[3]))
    toy = reproduce._command(replace(TOY, measures_times=times))
    for jobs in ([], ["--jobs", "2"]):
        assert CliRunner().invoke(toy, ["--quick", "--out", str(tmp_path / str(len(jobs))), *jobs]).exit_code == 0
    assert used == [n_jobs, 2]
    assert commands(tmp_path / "2" / "toy.run.json") == [f"streamlabel reproduce toy --quick{command}"]
    assert ("[default: 1," in CliRunner().invoke(toy, ["--help"]).output) == times


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        ("aaaaaaaaaa", "bbbbbbbbbb", True),
        ("aaaaaaaaaa", "aaaaaaaaaa with changes", True),
        ("aaaaaaaaaa", "aaaaaaaaaa", False),
        ("", "bbbbbbbbbb", False),
        ("aaaaaaaaaa", "", False),
    ],
)
def test_records_of_another_commit_in_the_folder_are_told(tmp_path, monkeypatch, before, now, says):
    def call(commit, *arguments):
        for module in (provenance, reproduce):
            monkeypatch.setattr(module, "source_commit", lambda: commit)
        options = ["--out", str(tmp_path), "--jobs", "1", *arguments]
        result = CliRunner().invoke(reproduce._command(TOY), ["--quick", *options])
        assert result.exit_code == 0, result.output
        return [line for line in result.stderr.splitlines() if "commit" in line]

    assert call(before, "--seeds", "1") == []
    there = f"{tmp_path / 'toy.jsonl'}: records there were made at commit {before} of streamlabel"
    apart = f"at {now}; --out with another folder keeps them apart"
    assert call(now, "--seeds", "1") == [f"{there}, the page of this run is made {apart}"] * says  # nothing is added
    assert call(now, "--seeds", "2") == [f"{there}, those of this run {apart}"] * says
    (tmp_path / "toy.jsonl").unlink()
    assert call("cccccccccc", "--seeds", "1") == []  # none are left


def test_times_are_results_of_figure_2_alone():
    assert [name for name, found in EXPERIMENTS.items() if found.load().measures_times] == ["figure2"]


@pytest.mark.slow
def test_quick_takes_less_than_a_minute(monkeypatch, tmp_path):
    monkeypatch.delenv("STREAMLABEL_DATA", raising=False)
    monkeypatch.setenv("STREAMLABEL_CACHE", str(tmp_path / "cache"))
    start = time.process_time()
    assert run(tmp_path, "--quick").exit_code == 0
    assert time.process_time() - start < 60.0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--dataset", "bibtx"], 3, "did you mean bibtex? There are bibtex, delicious, mediamill"),
        (["--dataset", "bibtex", "--dataset", "zzz"], 3, "streamlabel datasets get bibtex"),
        (["--dataset", "mediamill"], 3, "streamlabel datasets get mediamill"),
        (["--jobs", "0"], 2, "--jobs"),
        (["--dataset", "bibtex"], 3, "streamlabel datasets get bibtex"),
        ([], 3, "streamlabel datasets get bibtex"),
        (["--quick", "--dataset", "delicious"], 3, "streamlabel datasets get delicious"),
        (["--seeds", "0"], 2, "--seeds"),
        (["--budgets", "20,many"], 2, "'many'"),
        (["--budgets", "1"], 2, "'1'"),
        (["--budgets", "-5"], 2, "'-5'"),
        (["--budgets", ""], 2, "''"),
        (["--budgets", "9" * 5000], 2, "9999"),
    ],
)
def test_mistakes_end_with_one_message_and_write_nothing(no_data, tmp_path, arguments, code, says):
    result = run(tmp_path / "out", *arguments)
    assert result.exit_code == code
    assert says in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["timeline", "--quick", "--start", "3000"], 1, "the rows are of 20"),
        (["timeline", "--quick", "--start", "1900"], 1, "choose a later --start"),
        (["table3", "--quick", "--label", "nosuch"], 3, "no label of news corpus is called 'nosuch'"),
        (["table2", "--quick", "--methods", "SSL"], 2, "did you mean 'SLL'? There are SLL,"),
        (["budget", "--quick", "--methods", "own rigde"], 2, "did you mean 'own ridge'? There are SLL,"),
    ],
)
def test_a_grid_that_cannot_be_run_is_refused_before_anything_is_made(no_data, tmp_path, arguments, code, says):
    result = CliRunner().invoke(main, ["reproduce", *arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == code, result.output
    assert says in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


def test_the_methods_of_budget_are_in_its_help():
    text = " ".join(CliRunner().invoke(main, ["reproduce", "budget", "--help"]).output.split())
    assert "BR ridge, SLL anchor only, RidgeCV, SLL logistic, BR logistic," in text


@pytest.mark.parametrize(("name", "says"), [("timeline", "on the embedded"), ("table3", "on bibtex (or the embedded")])
def test_the_quick_set_is_named_once(name, says):
    text = " ".join(CliRunner().invoke(main, ["reproduce", name, "--help"], terminal_width=200).output.split())
    assert f"A small grid {says} texts" in text
    assert "news corpus" not in text


def test_a_folder_that_cannot_be_made_is_one_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    toy = reproduce._command(TOY)
    with pytest.raises(StreamlabelError, match=r"^cannot write to .*file/out: Not a directory; choose .* --out$"):
        toy.main(["--out", str(tmp_path / "file" / "out")], standalone_mode=False)


@pytest.mark.skipif(not Path("/proc/sys").is_dir(), reason="a folder in which nobody may write")
def test_a_folder_in_which_nothing_can_be_made_is_one_error():
    with pytest.raises(StreamlabelError, match=r"^cannot write to /proc/sys: .*; choose another folder with --out$"):
        reproduce._command(TOY).main(["--out", "/proc/sys"], standalone_mode=False)


def test_without_a_terminal_there_is_a_line_at_the_start_and_one_a_minute(monkeypatch, capsys):
    clock = iter([0.0, 0.0, 30.0, 61.0, 90.0, 180.0, 600.0])
    monkeypatch.setattr(_run_progress.time, "monotonic", lambda: next(clock))
    with _run_progress.run_progress("toy", 1205, 1200) as progress:
        for done in range(6):
            progress(done, 5)
    assert capsys.readouterr().err.splitlines() == [
        "toy: 1,205 runs, 1,200 done already",
        "toy: 2 of 5 runs done, about 2 minutes left",
        "toy: 4 of 5 runs done, about 1 minute left",
    ]


def test_the_time_left_is_not_guessed_from_the_first_of_many_runs(monkeypatch, capsys):
    clock = iter([0.0, 70.0, 140.0, 210.0])
    monkeypatch.setattr(_run_progress.time, "monotonic", lambda: next(clock))
    with _run_progress.run_progress("toy", 1000, 0) as progress:
        for done in (1, 19, 20):
            progress(done, 1000)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "toy: 1 of 1,000 runs done, too few to say how long the others take",
        "toy: 19 of 1,000 runs done, too few to say how long the others take",
        "toy: 20 of 1,000 runs done, about 3 hours left",
    ]


def test_records_of_something_else_are_not_overwritten(no_data, tmp_path):
    (tmp_path / "budget.jsonl").write_text('{"mine": 1}\n')
    result = run(tmp_path, "--quick")
    assert result.exit_code == 1
    assert "budget.jsonl, line 1: not a BudgetRecord" in result.stderr
    assert (tmp_path / "budget.jsonl").read_text() == '{"mine": 1}\n'


@needs_pandas
def test_the_report_is_made_of_what_was_run(no_data, tmp_path):
    assert run(tmp_path / "results", "--quick", "--budgets", "20").exit_code == 0
    places = ["--from", str(tmp_path / "results"), "--pictures", str(tmp_path / "pictures")]
    result = CliRunner().invoke(main, ["reproduce", "report", *places, "--out", str(tmp_path / "results.md")])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "`streamlabel reproduce budget --quick --budgets 20`" in page
    assert "#### news corpus" in page
    assert "*Not run: `streamlabel reproduce table2`.*" in page
    assert "table2: not run" in result.stdout
    data = CliRunner().invoke(main, ["reproduce", "report", *places, "--out", str(tmp_path / "b.md"), "--json"])
    (standing,) = json.loads(data.stdout)["standings"]
    assert standing["competitor"] == "BR ridge"
    assert sum(standing[verdict] for verdict in ("wins", "ties", "loses", "undecided")) == 5
    (tmp_path / "results" / "budget.run.json").write_text('{"command": "a", "versions": 3}')
    result = CliRunner().invoke(main, ["reproduce", "report", *places, "--out", str(tmp_path / "c.md")])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "budget.run.json: versions must be strings by name" in result.stderr
    assert not (tmp_path / "c.md").exists()


@pytest.fixture
def one_report(tmp_path, monkeypatch):
    """A folder of toy records beside a checkout with a page of its own, in which the command is given."""
    monkeypatch.setattr(report, "draw", _touch)
    (tmp_path / "docs" / "_static" / "results").mkdir(parents=True)
    (tmp_path / "docs" / "results.md").write_text("shipped")
    monkeypatch.chdir(tmp_path)
    runner.record_file(EXPERIMENTS["budget"].load(), tmp_path / "mine").append(
        BudgetRecord("a", "own ridge", 20, 40, 0, 3, 3, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, False, 0.1)
    )
    return tmp_path


def _touch(plot, frame, out, stem, forms):
    path = out / f"{stem}-{plot.name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return [path]


@needs_pandas
def test_a_report_stays_in_the_folder_of_its_records(one_report):
    result = CliRunner().invoke(main, ["reproduce", "report", "--from", "mine"])
    assert result.exit_code == 0, result.output
    assert (one_report / "docs" / "results.md").read_text() == "shipped"
    assert not list((one_report / "docs" / "_static" / "results").iterdir())
    page = (one_report / "mine" / "results.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((budget-[^)]*\.png)\)", page)
    assert links
    assert all((one_report / "mine" / link).is_file() for link in links)


@needs_pandas
def test_a_page_elsewhere_has_its_pictures_beside_it(one_report):
    result = CliRunner().invoke(main, ["reproduce", "report", "--from", "mine", "--out", "docs/results.md"])
    assert result.exit_code == 0, result.output
    page = (one_report / "docs" / "results.md").read_text(encoding="utf-8")
    assert "](_static/results/budget-auc.png)" in page
    assert (one_report / "docs" / "_static" / "results" / "budget-auc.png").is_file()
    assert {path.name for path in (one_report / "mine").iterdir()} == {"budget.jsonl"}


def test_a_report_of_nothing_is_one_error(tmp_path):
    result = CliRunner().invoke(main, ["reproduce", "report", "--from", str(tmp_path), "--out", str(tmp_path / "r.md")])
    assert result.exit_code == 3
    assert "has no records of any experiment" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_with_130_and_the_same_command_goes_on(data_root, tmp_path):
    """The program itself with two workers, interrupted after its first records."""
    command = [sys.executable, "-m", "streamlabel", "reproduce", "budget", "--quick", "--jobs", "2", "--out"]
    environ = {**os.environ, "STREAMLABEL_DATA": str(data_root)}
    path = tmp_path / "cut" / "budget.jsonl"
    with started([*command, str(tmp_path / "cut")], env=environ, text=True) as child:
        wait_for(lambda: child.poll() is not None or (path.exists() and path.read_bytes()))
        os.killpg(child.pid, signal.SIGINT)
        said = child.communicate(timeout=PATIENCE)[1]
    kept = path.read_bytes()
    assert child.returncode == 130
    assert said.splitlines()[-1].startswith("interrupted: ")
    n_kept = kept.count(b"\n")
    assert f"keeps {n_kept} finished record" in said
    assert 0 < n_kept < 8
    for folder in ("cut", "whole"):
        subprocess.run([*command, str(tmp_path / folder)], env=environ, check=True, stdout=subprocess.DEVNULL)
    assert path.read_bytes().startswith(kept)
    assert same(tmp_path / "cut", tmp_path / "whole")
