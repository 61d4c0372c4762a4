"""The benchmarks that make figures of the pages: the comparison with other libraries, and the cost model."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from streamlabel.data.synthetic import make_twin
from streamlabel.metrics.ranking import precision_at_k
from streamlabel.stats.sums import Stats

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def load_benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_a_peer_is_measured_in_a_process_of_its_own(load_benchmark, tmp_path, capsys):
    peers, kept = load_benchmark("bench_peers"), tmp_path / "records.jsonl"
    options = ["--quick", "--peers", "scikit-learn Ridge,ours (squared)", "--jobs", "half,all", "--keep", str(kept)]
    assert peers.main(options) == 0
    records = {(record["peer"], record["job"]): record for record in map(json.loads, kept.read_text().splitlines())}
    assert len(records) == 4
    assert all(record["cpu"] > 0 and record["peak"] > 20 for record in records.values())
    assert records["ours (squared)", "half"]["once"] > 0
    X, Y, test, truth = peers.load("twin")
    scores = Ridge().fit(X.toarray(), Y.toarray()).predict(test.toarray())
    expected = [100 * precision_at_k(truth, scores, k) for k in (1, 3, 5)]
    assert records["scikit-learn Ridge", "all"]["precision"] == pytest.approx(expected, abs=0.3)  # float32 there
    assert "| scikit-learn Ridge | - | - |" in capsys.readouterr().out
    before = kept.read_text()
    assert peers.main(options) == 0
    assert kept.read_text() == before  # nothing is measured twice


def test_the_cost_model_counts_the_bytes_of_the_arrays(load_benchmark):
    cost = load_benchmark("cost_model")
    twin = make_twin(50, 20, 6, 5.0, 2.0)
    size, stats = cost.Size(50, 20, 6, 5.0, 2.0), Stats.from_batch(twin.X, twin.Y)
    assert size.sum_bytes == stats.feature_gram.nbytes + stats.cross.nbytes
    assert size.row_bytes == twin.X.data.nbytes + twin.X.indices.nbytes + twin.Y.indices.nbytes
    assert size.reduction_bytes(4) == 3 * size.sum_bytes == 3 * 8 * 20 * 26


def test_the_cost_model_of_one_row_is_its_number_of_products(load_benchmark):
    cost = load_benchmark("cost_model")
    speed = cost.Speed(*np.ones(7), arrival=0.0)
    size = cost.Size(10, 3, 2, 4, 1)
    assert size.pairs == 10 * (1.25 * 16 + 4 + 1)
    assert speed.sums(size, 5) == size.pairs + 2 * 3 * 5
    assert (speed.factor(size), speed.solve(size), speed.predict(size)) == (27, 36, 80)
    assert speed.arrive(size) == 8 * 3 * 4 + 5 * 4


def test_workers_that_are_equal_take_what_the_formula_says(load_benchmark):
    cost = load_benchmark("cost_model")
    plan = cost.Plan(cost.Size(1e9, 5_000, 1e6, 120, 5), 96)
    speed = cost.Speed(1e7, 2e8, 1e8, 5e9, 2.5e10, 2e9, 2e10, 0.003)
    assert (plan.groups, plan.parts, plan.levels) == (6, 16, 4)
    assert 2 * plan.size.sum_bytes / 6 <= cost.ROOM < 2 * plan.size.sum_bytes / 5
    total = sum(plan.steps(speed).values())
    assert cost.simulate(plan, speed, spread=0.0, failing=0.0) == pytest.approx(total, rel=1e-9)
    assert cost.simulate(plan, speed) > total
