"""Running experiments: here and in workers alike, resumed, stopped, with errors that keep what is finished."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import toy_experiment
from processes import PATIENCE, started, wait_for
from streamlabel.errors import ConflictError, DataError, StreamlabelError
from streamlabel.experiments import runner
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.provenance import read_origin
from streamlabel.experiments.record_file import RecordFile, timeless
from streamlabel.experiments.report import QUICK, write_results
from streamlabel.experiments.runner import planned, record_file, run_experiment, writing
from toy_experiment import CHOOSING, TOY, ChoosingRecord, ToyRecord

WHOLE = [("a", seed, step) for seed in range(4) for step in range(3)]


def setting(**options) -> Setting:
    return Setting(("a",), (0, 1, 2, 3), options=options)


def run(folder: Path, n_jobs: int = 1, **options) -> RecordFile[ToyRecord]:
    file = record_file(TOY, folder)
    run_experiment(TOY, planned(TOY, setting(**options)), file, n_jobs)
    return file


def without_times(file: RecordFile[ToyRecord]) -> list[dict]:
    return [timeless(record) for record in file.sorted_records]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> RecordFile[ToyRecord]:
    return run(tmp_path_factory.mktemp("whole"))


def test_one_job_runs_in_order(whole):
    assert [whole.key(record) for record in whole.records] == WHOLE


def test_workers_give_the_same_records(whole, tmp_path):
    file = run(tmp_path, n_jobs=2)
    assert without_times(file) == without_times(whole)
    assert without_times(record_file(TOY, tmp_path)) == without_times(whole)


def choosing(folder: Path, names: tuple[str, ...], n_jobs: int) -> RecordFile[ChoosingRecord]:
    file = record_file(CHOOSING, folder)
    run_experiment(CHOOSING, planned(CHOOSING, Setting(names, (0, 1, 2, 3))), file, n_jobs)
    return file


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_a_task_is_divided_among_workers_once_it_has_chosen(tmp_path, names, monkeypatch):
    monkeypatch.setenv(toy_experiment.MEET, str(tmp_path))
    records = choosing(tmp_path, names, 2).sorted_records
    assert [(record.dataset, record.seed) for record in records] == [
        (name, seed) for name in names for seed in range(4)
    ]
    for name in names:
        mine = [record for record in records if record.dataset == name]
        assert len({record.chosen for record in mine}) == 1
        assert mine[0].chosen == f"{name}, by {mine[0].worker} for (0,)"
    assert len({record.worker for record in records}) == 2


def test_a_worker_that_cannot_be_started_later_costs_no_record(tmp_path, monkeypatch):
    """The first record, in which the choice is, is kept before the workers for the other parts are started."""
    real = runner._Pool._start

    def once(pool, n_workers):
        if pool._workers:
            raise BlockingIOError("no more processes")
        real(pool, n_workers)

    monkeypatch.setattr(runner._Pool, "_start", once)
    with pytest.raises(StreamlabelError, match="no more processes"):
        choosing(tmp_path, ("a",), 2)
    assert [record.seed for record in record_file(CHOOSING, tmp_path).records] == [0]


def test_a_part_that_gives_no_record_is_a_bug(tmp_path):
    silent = replace(CHOOSING, run=toy_experiment.nothing)
    with pytest.raises(AssertionError, match="none of its records"):
        run_experiment(silent, planned(silent, Setting(("a",), (0, 1))), record_file(silent, tmp_path), 2)


def test_one_job_divides_nothing(tmp_path):
    records = choosing(tmp_path, ("a",), 1).sorted_records
    assert {record.chosen for record in records} == {f"a, by {os.getpid()} for (0, 1, 2, 3)"}


def test_what_was_chosen_before_an_interruption_is_kept_by_every_part(tmp_path):
    file = record_file(CHOOSING, tmp_path)
    file.append(ChoosingRecord("a", 2, "earlier", 1, 0.0))
    records = choosing(tmp_path, ("a",), 2).sorted_records
    assert [(record.seed, record.chosen) for record in records] == [(seed, "earlier") for seed in range(4)]


@pytest.mark.parametrize("n_kept", [1, 3, 7, 12])
def test_only_what_is_missing_is_run(whole, tmp_path, n_kept):
    file = record_file(TOY, tmp_path)
    for record in whole.records[:n_kept]:
        file.append(record)
    before = file.path.read_bytes()
    told: list[tuple[int, int]] = []
    run_experiment(TOY, planned(TOY, setting()), file, 1, lambda done, total: told.append((done, total)))
    assert told == [(done, 12 - n_kept) for done in range(13 - n_kept)]
    assert file.path.read_bytes().startswith(before)
    assert without_times(file) == without_times(whole)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_task_reaches_the_user_and_keeps_what_was_finished(tmp_path, n_jobs, whole):
    with pytest.raises(DataError, match=r"^file\.txt, line 7: a wrong row$") as caught:
        run(tmp_path, n_jobs, fails="user")
    assert caught.value.line == 7
    kept = {tuple(timeless(record).values()) for record in record_file(TOY, tmp_path).records}
    assert kept >= {("a", 1, 0, 0.1)}
    assert without_times(run(tmp_path)) == without_times(whole)


def test_a_bug_in_a_worker_shows_where_it_was(tmp_path):
    with pytest.raises(ZeroDivisionError, match="never") as caught:
        run(tmp_path, 2, fails="bug")
    assert "toy_experiment.py" in caught.value.__notes__[0]


def test_a_worker_that_dies_is_one_error(tmp_path):
    with pytest.raises(StreamlabelError, match=r"a worker process ended .*exit code 9.*--jobs 1.*are kept"):
        run(tmp_path, 2, fails="dies")
    assert ("a", 1, 0) in record_file(TOY, tmp_path)


def slow_run(out: Path, n_jobs: int, kind: str):
    """A run that does not end by itself."""
    environ = {**os.environ, "PYTHONPATH": str(Path(toy_experiment.__file__).parent)}
    command = [sys.executable, "-c", "import toy_experiment; toy_experiment.run_slowly()", str(out), str(n_jobs)]
    return started([*command, kind], env=environ, text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_keeps_what_is_finished_leaves_no_worker_and_resumes(tmp_path, n_jobs):
    out = tmp_path / "out"
    path = out / "toy.jsonl"
    with slow_run(out, n_jobs, "stuck") as child:
        wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 3)
        os.killpg(child.pid, signal.SIGINT)  # as Ctrl-C in a terminal: to the workers as well
        said = child.communicate(timeout=PATIENCE)[1]
        wait_for(lambda: not _is_alive(child.pid))
    assert said.count("KeyboardInterrupt") == 1  # the parent's; workers say nothing
    kept = record_file(TOY, out)
    assert 3 <= len(kept.records) <= 12
    before = path.read_bytes()
    resumed, straight = run(out, steps=40), run(tmp_path / "straight", steps=40)
    assert path.read_bytes().startswith(before)
    assert without_times(resumed) == without_times(straight)
    pytest.importorskip("pandas")
    first, second = (write_results(TOY, file, file.path.parent, "x") for file in (resumed, straight))
    assert first.text == second.text
    assert first.data == second.data


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_one_process_writes_at_a_time_and_its_lock_dies_with_it(tmp_path, n_jobs):
    path = tmp_path / "toy.jsonl"
    with slow_run(tmp_path, n_jobs, "slow") as child:
        wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 3)
        said = rf"toy\.jsonl: process {child.pid} on .*\(reproduce toy\).* is writing to it; .* another folder"
        with pytest.raises(ConflictError, match=said), writing(TOY, tmp_path):
            raise AssertionError("two runs write")
        child.kill()
        child.wait(PATIENCE)
        with writing(TOY, tmp_path) as file:  # the workers of the dead one do not have it
            assert len(file.records) >= 3
        wait_for(lambda: not _is_alive(child.pid))  # and end by themselves


def test_a_lock_is_of_one_experiment_in_one_folder(tmp_path):
    with writing(TOY, tmp_path), writing(TOY, tmp_path / "other"), writing(replace(TOY, name="other"), tmp_path):
        pass
    with pytest.raises(ZeroDivisionError), writing(TOY, tmp_path):
        raise ZeroDivisionError
    with writing(TOY, tmp_path):
        pass


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_results_are_page_data_pictures_and_where_they_come_from(whole, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    outcome = write_results(TOY, whole, tmp_path, "streamlabel reproduce toy")
    assert outcome.missing == ""
    assert {path.name for path in outcome.files} == {
        "toy.md", "toy.json", "toy.run.json", "toy-values.png", "toy-values.svg",
    }  # fmt: skip
    assert outcome.text == (tmp_path / "toy.md").read_text(encoding="utf-8")
    beginning = ["# A toy", "There are 12 records.", "![Values](toy-values.png)", "## Values"]
    assert outcome.text.split("\n\n")[:4] == beginning
    assert json.loads((tmp_path / "toy.json").read_text(encoding="utf-8")) == outcome.data
    origin = json.loads((tmp_path / "toy.run.json").read_text(encoding="utf-8"))
    (run,) = origin["commands"]
    assert run["command"] == "streamlabel reproduce toy"
    assert origin["n_records"] == 12
    assert {"streamlabel", "python", "numpy", "scipy", "scikit-learn"} <= set(run["versions"])


def test_a_page_of_quick_runs_says_so(whole, tmp_path):
    pytest.importorskip("pandas")
    for folder, command, quick in [("a", "toy --quick", True), ("b", "toy", False)]:
        (tmp_path / folder).mkdir()
        assert (QUICK in write_results(TOY, whole, tmp_path / folder, command).text) == quick
    again = write_results(TOY, record_file(TOY, whole.path.parent), tmp_path / "b", "toy --quick")
    assert QUICK not in again.text  # those records are not of the quick command


def test_a_command_is_kept_with_its_first_record_and_one_that_wrote_none_is_not(tmp_path):
    seen = []
    path = tmp_path / "toy.run.json"
    file = record_file(TOY, tmp_path)

    def look(done, total):
        seen.append(path.exists())
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(TOY, planned(TOY, setting()), file, 1, look, "first")
    assert seen == [False, True, True]
    file = record_file(TOY, tmp_path)
    run_experiment(TOY, planned(TOY, setting()), file, 1, command="second")
    write_results(TOY, file, tmp_path, "second")
    file = record_file(TOY, tmp_path)
    run_experiment(TOY, planned(TOY, setting()), file, 1, command="third")
    write_results(TOY, file, tmp_path, "third")
    assert read_origin(path).commands == ("first", "second")
    assert read_origin(path).n_records == 12


def test_without_matplotlib_the_tables_are_written_and_one_note_says_how_to_get_it(whole, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = write_results(TOY, whole, tmp_path, "x")
    assert outcome.missing == (
        "no pictures: drawing pictures needs the package matplotlib: "
        "pip install 'streamlabel[experiments]' (in a clone: pip install -e '.[experiments]')"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"toy.md", "toy.json", "toy.run.json"}
    assert "![" not in outcome.text


def test_without_pandas_the_records_are_there_and_one_note_says_how_to_get_the_page(whole, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    outcome = write_results(TOY, whole, tmp_path, "x")
    assert outcome.missing == (
        "no page: the page of an experiment needs the package pandas: "
        "pip install 'streamlabel[experiments]' (in a clone: pip install -e '.[experiments]')"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"toy.run.json"}
    assert (outcome.text, outcome.data) == ("", {"experiment": "toy", "n_records": 12})
