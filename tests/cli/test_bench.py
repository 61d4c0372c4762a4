"""The benchmark command: it times what it says, on small sets."""

from __future__ import annotations

import json

from click.testing import CliRunner

from streamlabel.cli import main
from streamlabel.data.synthetic import make_twin
from streamlabel.experiments.speed import time_batch, time_few_rows, time_flatness, time_single, time_steps


def test_timings_of_a_small_set():
    data = make_twin(300, 60, 30, 10, 3, random_state=0)
    single, few = time_single("twin", data, n_labels=4), time_few_rows("twin", data, n_rows=40, n_labels=4)
    assert 0 < single.cpu_ms < 5000
    assert single.n_labels == 4
    assert few.ratio is None
    batch = time_batch("twin", data, n_labels=5)
    assert [timing.reference for timing in batch] == ["LinearSVC", "LogisticRegression(liblinear)"]
    for timing in batch:
        assert timing.ratio == timing.reference_cpu_ms / timing.cpu_ms


def test_steps_are_parts_of_the_whole():
    steps = {step.what: step for step in time_steps(make_twin(300, 60, 30, 10, 3, random_state=0), n_labels=5)}
    for name in ("recognises", "cross", "represent", "_products", "_solve_plain", "_gather", "grown"):
        assert 0 < steps[name].ms <= steps["add_labels"].ms, name
    assert steps["_solve_plain"].floor_bytes > 8 * 60 * 60 / 2


def test_flatness_is_against_the_first_size():
    timings = time_flatness(sizes=(30, 60), n_atoms=10, n_rows=300)
    assert timings[0].ratio == 1.0
    assert timings[1].reference_cpu_ms == timings[0].cpu_ms


def test_the_command_times_a_real_set(data_root):
    result = CliRunner().invoke(
        main, ["bench", "add-label", "--dataset", "mediamill_reduced", "--no-flatness", "--json"]
    )
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert {timing["what"].partition(":")[0] for timing in data["timings"]} == {"mediamill_reduced"}
    assert data["not_here"] == []


def test_without_any_set_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("STREAMLABEL_DATA", str(tmp_path))
    monkeypatch.setenv("STREAMLABEL_CACHE", str(tmp_path))
    result = CliRunner().invoke(main, ["bench", "add-label", "--no-flatness"])
    assert result.exit_code == 0
    assert "not on this machine" in result.stdout
