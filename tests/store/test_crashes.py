"""kill -9 while labels are appended: what was acknowledged is there and right, and nothing is half there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from processes import PATIENCE
from store.crash_writer import weights_of
from streamlabel import ModelStore, StreamingLabelClassifier

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the writer forks")


class Nursery:
    """The process whose forks are killed."""

    def __init__(self, folder: Path) -> None:
        script = Path(__file__).with_name("crash_writer.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            text=True,
            bufsize=1,
        )
        assert self._line() == "ready"

    def kill_one(self, delay: float, after_acks: int) -> int:
        """Kill a writer so long after so many acknowledgements; the labels it acknowledged last (0: none)."""
        self.process.stdin.write("go\n")
        pid, last = int(self._line().split()[1]), 0
        for _ in range(after_acks):
            last = int(self._line().split()[1])
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
        while (line := self._line()) != "dead":
            assert line.startswith("ack"), line
            last = int(line.split()[1])
        return last

    def close(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0
        self.process.stdout.close()

    def _line(self) -> str:
        return self.process.stdout.readline().strip()


def survive(folder: Path, n_kills: int, seed: int) -> tuple[int, int]:
    """Kill writers of a store; (labels that are there in the end, kills that came before the first append)."""
    rng = np.random.default_rng(seed)
    first = StreamingLabelClassifier.from_coef(weights_of(0)[None], [0.0])
    ModelStore.create(folder, first).close()
    nursery, acknowledged, idle = Nursery(folder), 1, 0
    for _ in range(n_kills):
        last = nursery.kill_one(rng.uniform(0, 0.03), int(rng.integers(0, 3)))
        idle += last == 0
        acknowledged = max(acknowledged, last)
        found = check(folder)
        assert found >= acknowledged, "a label that was acknowledged is gone"
        acknowledged = found
    nursery.close()
    return acknowledged, idle


def check(folder: Path) -> int:
    """Every label that is there is right, to the bit; how many there are."""
    store = ModelStore.open(folder)
    n_labels = len(store.label_names)
    assert store.label_names == tuple(f"label_{j}" for j in range(n_labels))
    assert store.verify() == []
    expected = np.array([weights_of(j) for j in range(n_labels)], dtype=np.float32)
    model = store.model()
    np.testing.assert_array_equal(model.coef_, expected)
    np.testing.assert_array_equal(model.intercept_, np.arange(n_labels))
    sizes = [1, *(revision.detail["n"] for revision in reversed(store.history()[:-1]))]
    assert sum(sizes) == n_labels, "a revision that is there in part"
    assert store.revision == len(sizes)
    return n_labels


def test_thirty_kills(path):
    n_labels, idle = survive(path, 30, seed=0)
    assert n_labels > 20
    assert idle < 25
    assert all(finding.kind == "orphan" for finding in ModelStore.doctor(path, repair=True))
    assert ModelStore.doctor(path) == []


@pytest.mark.slow
def test_three_hundred_kills(path):
    n_labels, _ = survive(path, 300, seed=1)
    assert n_labels > 100


@pytest.mark.slow
def test_three_hundred_kills_with_a_write_ahead_log(path, monkeypatch):
    """What a newer SQLite would use: the crash writer is told that this library is one."""
    monkeypatch.setenv("STREAMLABEL_TEST_WAL", "1")
    n_labels, _ = survive(path, 300, seed=2)
    assert n_labels > 100
