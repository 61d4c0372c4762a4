"""One Dask cluster of two processes on this machine, for all tests that need one."""

from __future__ import annotations

import atexit
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import pytest


class Cluster(NamedTuple):
    address: str
    client: Any


def dask_engine() -> ModuleType:
    """The module that works with Dask, or the test is skipped."""
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    from streamlabel.scale import dask_engine

    return dask_engine


@cache
def local_cluster() -> Cluster:
    """Two workers of one thread each, in processes of their own; reached through the loopback only."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    loopback = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}  # any port: none can be taken
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, silence_logs=50, **loopback)
    client = distributed.Client(cluster, set_as_default=False)
    atexit.register(cluster.close)
    atexit.register(client.close)
    return Cluster(cluster.scheduler_address, client)


SCHEDULER = """
import time
from distributed import LocalCluster
cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1",
                       dashboard_address="127.0.0.1:0")
print(cluster.scheduler_address, flush=True)
time.sleep(600)
"""


@contextmanager
def mortal_scheduler() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A scheduler with a worker in a process of its own that a test may kill, and its address."""
    dask_engine()
    process = subprocess.Popen([sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()
