"""What is particular to joblib: which workers there are, and what is refused."""

from __future__ import annotations

import os
import threading

import pytest

from streamlabel.errors import DataError
from streamlabel.executors import JoblibExecutor


def test_processes_are_other_processes():
    assert os.getpid() not in JoblibExecutor(2, prefer="processes").map(lambda _: os.getpid(), range(4))


def test_threads_run_at_the_same_time():
    barrier = threading.Barrier(2, timeout=30)
    JoblibExecutor(2, prefer="threads").map(lambda _: barrier.wait(), range(2))


@pytest.mark.parametrize("options", [{"n_jobs": 0}, {"n_jobs": 1.5}, {"n_jobs": 2, "prefer": "gpus"}])
def test_bad_options_are_refused(options):
    with pytest.raises(DataError, match=r"n_jobs is|prefer is"):
        JoblibExecutor(**options)


def test_says_what_it_is():
    assert repr(JoblibExecutor(3, prefer="processes")) == "JoblibExecutor(n_jobs=3, prefer='processes')"
