from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlabel.experiments.runner import results_of
from streamlabel.stats import threads


def letters(task: str) -> list[str]:
    return [f"{task}{number}" for number in range(3)]


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_a_result_may_let_more_tasks_be_run(n_jobs):
    """One task at first: workers are started when the others are there."""
    follows = {"a0": ["b", "c"], "c2": ["d"]}
    found = list(results_of(letters, ["a"], n_jobs, lambda result: follows.get(result, [])))
    assert sorted(found) == [f"{task}{number}" for task in "abcd" for number in range(3)]
    assert found[0] == "a0"
    assert found.index("c2") < found.index("d0")


def test_one_job_takes_the_tasks_as_they_are():
    assert list(results_of(letters, ["a", "b"], 1, lambda result: ["c"])) == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_one_who_stops_early_keeps_no_limit_on_threads(monkeypatch):
    """An error in a loop over results keeps the iteration alive, in its traceback."""
    inside = []

    def watched(task: str) -> Iterator[str]:
        for result in letters(task):
            inside.append(len(threads._LIMIT._holders))
            yield result

    monkeypatch.setattr(threads, "_LIMIT", threads._Limit())  # nobody else holds it
    results = results_of(watched, ["a", "b"], 1)
    assert next(results) == "a0"
    assert not threads._LIMIT._holders
    assert list(results) == ["a1", "a2", "b0", "b1", "b2"]
    assert inside == [1] * 6


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the signals of a process are read from /proc")
def test_an_interrupt_does_not_reach_a_worker_that_is_still_starting():
    """In a fresh interpreter, where the first worker also starts what multiprocessing keeps beside them."""
    code = """if True:
        import signal
        from pathlib import Path
        from streamlabel.experiments.runner import _Pool

        pool = _Pool(iter, 2)
        pool._start(2)
        for worker in pool._workers.values():
            status = Path(f"/proc/{worker.pid}/status").read_text()
            fields = dict(line.split(":", 1) for line in status.splitlines())
            print(int(fields["SigBlk"], 16) >> (signal.SIGINT - 1) & 1)
        print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        pool._end()
    """
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert found.stdout.split() == ["1", "1", "False"]
