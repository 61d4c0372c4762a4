"""The benchmark command: it times what it says, on small sets."""

from __future__ import annotations

import json

from click.testing import CliRunner

from streamlabel.cli import main
from streamlabel.data.synthetic import make_twin
from streamlabel.experiments.speed import time_arrivals, time_batch, time_flatness, time_steps


def test_timings_of_a_small_set():
    data = make_twin(300, 60, 30, 10, 3, random_state=0)
    timings = time_arrivals("twin", data, "logistic", (40, None), n_labels=4)
    assert [(timing.what, timing.n_labels) for timing in timings] == [
        ("twin, logistic: first label, 40 rows", 1), ("twin, logistic: later label, 40 rows", 4),
        ("twin, logistic: first label, all rows", 1), ("twin, logistic: later label, all rows", 4),
    ]  # fmt: skip
    assert all(0 < timing.cpu_ms < 60_000 and timing.ratio is None for timing in timings)
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
    sets = {f"mediamill_reduced{loss}" for loss in ("", ", auto", ", squared", ", logistic")}
    assert {timing["what"].partition(":")[0] for timing in data["timings"]} == sets
    assert data["not_here"] == []


def test_without_any_set_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("STREAMLABEL_DATA", str(tmp_path))
    monkeypatch.setenv("STREAMLABEL_CACHE", str(tmp_path))
    result = CliRunner().invoke(main, ["bench", "add-label", "--no-flatness"])
    assert result.exit_code == 0
    assert "not on this machine" in result.stdout
