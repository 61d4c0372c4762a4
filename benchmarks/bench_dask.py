"""Dask with two workers of one thread on this machine against one process: seconds, CPU, differences, a killed worker.

``python benchmarks/bench_dask.py [sums|codes|labels|logistic ...]``; needs the extra dask. Blocks are made where they
are summed, from seeds. Both cores must be free, or the ratios say nothing.
"""

from __future__ import annotations

import operator
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster
from scipy import sparse

from streamlabel.classifier.solve import solve
from streamlabel.scale.dask_engine import DaskExecutor, in_pairs, stats_of
from streamlabel.scale.partitions import PartitionedRows
from streamlabel.stats.sums import Stats
from streamlabel.stats.threads import one_thread
from streamlabel.streaming.from_stats import add_labels_from_stats, classifier_from_stats, code_labels

N_PARTS = 12


def block(seed: int) -> tuple[Any, Any]:
    X = np.random.default_rng(seed).standard_normal((20_000, 500))
    return X, (X[:, :50] > 1).astype(np.int8)


def sparse_block(seed: int) -> Any:
    made = sparse.random_array((25_000, 5000), density=0.012, rng=np.random.default_rng(seed), format="csr")
    return sparse.csr_array(made)


def cpu() -> float:
    times = os.times()
    return times.user + times.system


def timed(executor: DaskExecutor, name: str, work: Callable[[], Any]) -> tuple[Any, float]:
    client = executor.client
    before, here, begin = client.run(cpu), cpu(), time.perf_counter()
    result = work()
    wall, here, after = time.perf_counter() - begin, cpu() - here, client.run(cpu)
    there = sum(after[worker] - before.get(worker, 0.0) for worker in after)
    print(f"{name:34} {wall:6.1f} s   CPU here {here:6.1f}, workers {there:6.1f}", flush=True)
    return result, wall


def off(one: Any, other: Any) -> str:
    if np.array_equal(one, other):
        return "the same bits"
    return f"relative difference {np.abs(one - other).max() / np.abs(one).max():.1e}"


def sums(executor: DaskExecutor) -> None:
    parts, serial = timed(executor, "sums here", lambda: [Stats.from_batch(*block(i)) for i in range(N_PARTS)])
    delayed = [dask.delayed(block)(i) for i in range(N_PARTS)]
    found, wall = timed(executor, "sums on the workers", lambda: stats_of(delayed, executor=executor))
    print(f"ratio {serial / wall:.2f}; beside the same tree here: "
          f"{off(in_pairs(operator.add, parts).feature_gram, found.feature_gram)}; beside a sum from the left: "
          f"{off(sum(parts[1:], parts[0]).feature_gram, found.feature_gram)}")  # fmt: skip
    pid = next(iter(executor.client.run(os.getpid).values()))
    threading.Timer(wall / 2, lambda: os.kill(pid, signal.SIGKILL)).start()
    again, _ = timed(executor, "a worker killed half way", lambda: stats_of(delayed, executor=executor))
    print(off(again.feature_gram, found.feature_gram))


def codes(executor: DaskExecutor) -> None:
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((4000, 60))
    past, new = ((Z @ rng.standard_normal((60, m)) > 8).astype(np.int8) for m in (500, 2000))
    one, serial = timed(executor, "2,000 codes here", lambda: code_labels(past, new))
    other, wall = timed(executor, "2,000 codes on the workers", lambda: code_labels(past, new, executor=executor))
    print(f"ratio {serial / wall:.2f}; {off(one.toarray(), other.toarray())}")


def labels(executor: DaskExecutor) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 1500))
    past, new = (X[:, :200] > 1).astype(np.int8), (X @ rng.standard_normal((1500, 5000)) > 40).astype(np.int8)
    model = classifier_from_stats(Stats.from_batch(X, past), 10.0)
    stats, made = Stats.from_batch(X, new, [f"new {j}" for j in range(5000)]), code_labels(past, new)
    one, serial = timed(
        executor, "5,000 labels from sums here", lambda: add_labels_from_stats(model, stats, made, 10.0)
    )
    other, wall = timed(
        executor, "on the workers", lambda: add_labels_from_stats(model, stats, made, 10.0, executor=executor)
    )
    print(f"ratio {serial / wall:.2f}; {off(one.coef_, other.coef_)}")


def logistic(executor: DaskExecutor) -> None:
    rng = np.random.default_rng(0)
    blocks = [sparse_block(i) for i in range(4)]
    X = sparse.vstack(blocks, format="csr")
    noise = 0.3 * rng.standard_normal((X.shape[0], 20))
    Y = (X @ rng.standard_normal((5000, 20)) + noise > 6).astype(np.int8)
    options: dict[str, Any] = {"beta": 1.0, "loss": "logistic", "tolerance": 1e-6}
    whole, serial = timed(executor, "20 logistic labels in memory", lambda: solve(X, Y, **options)[0])
    here = solve(PartitionedRows(blocks), Y, **options)[0]
    rows = PartitionedRows([dask.delayed(sparse_block)(i) for i in range(4)], executor)
    there, wall = timed(executor, "on the workers", lambda: solve(rows, Y, **options)[0])
    print(f"ratio {serial / wall:.2f}; beside blocks here: {off(here, there)}; beside all rows: {off(whole, there)}")


def main() -> None:
    chosen = sys.argv[1:] or ["sums", "codes", "labels", "logistic"]
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    )
    with cluster, Client(cluster) as client, one_thread():
        for name in chosen:
            {"sums": sums, "codes": codes, "labels": labels, "logistic": logistic}[name](DaskExecutor(client))


if __name__ == "__main__":
    main()
