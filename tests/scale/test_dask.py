"""On a cluster of two processes: the same results as here, also when a worker is killed; a lost scheduler is said."""

from __future__ import annotations

import operator
import os
import signal
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from local_cluster import dask_engine, local_cluster, mortal_scheduler
from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.classifier.solve import solve
from streamlabel.errors import ClusterError, DataError
from streamlabel.executors import JoblibExecutor
from streamlabel.scale.partitions import PartitionedRows, _times, predict_blocks
from streamlabel.stats.sums import Stats
from streamlabel.stats.threads import one_thread
from streamlabel.streaming.from_stats import add_labels_from_stats, classifier_from_stats, code_labels

NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def executor():
    return dask_engine().DaskExecutor(local_cluster().client)


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((330, 9))
    return X, (X[:, :4] + rng.standard_normal((330, 4)) > 0.4).astype(int)


def same_bits(one: Stats, other: Stats) -> bool:
    return (one.n_rows, one.label_names) == (other.n_rows, other.label_names) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("feature_sums", "feature_gram", "cross")
    )


def in_a_tree(X, Y, edges) -> Stats:
    with one_thread():  # as on the workers
        parts = [Stats.from_batch(X[i:j], Y[i:j], NAMES) for i, j in pairwise(edges)]
    return dask_engine().in_pairs(operator.add, parts)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_sums_of_arrays_are_those_of_the_same_tree_here(rows, executor, form):
    X, Y = rows
    array = pytest.importorskip("dask.array", reason="the extra dask is not installed")
    chunks = ((100, 100, 100, 30), (5, 4))
    parted = array.from_array(X, chunks=chunks).rechunk({1: -1}).map_blocks(form)
    found = dask_engine().stats_of(
        parted, array.from_array(Y, chunks=(chunks[0], 4)), label_names=NAMES, executor=executor
    )
    assert same_bits(found, in_a_tree(form(X), Y, (0, 100, 200, 300, 330)))
    np.testing.assert_allclose(found.feature_gram, X.T @ X, rtol=1e-10, atol=1e-10)


def test_sums_of_data_frames(rows, executor):
    X, Y = rows
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frames = pytest.importorskip("dask.dataframe", reason="the extra dask is not installed")
    columns = [f"x{j}" for j in range(9)]
    table = pd.concat([pd.DataFrame(X, columns=columns), pd.DataFrame(Y, columns=NAMES)], axis=1)
    found = dask_engine().stats_of(frames.from_pandas(table, npartitions=3), labels=NAMES, executor=executor)
    assert same_bits(found, in_a_tree(X, Y, (0, 110, 220, 330)))
    assert found.feature_names == tuple(columns)
    with pytest.raises(DataError, match="name the columns"):
        dask_engine().stats_of(frames.from_pandas(table, npartitions=3), labels=["e"], executor=executor)


def test_arrays_that_travelled_are_multiplied_by_blas(rng, executor):
    """They arrive anywhere in memory; NumPy multiplies arrays that begin at an odd place with other bits, slowly."""
    blocks, V = [rng.standard_normal((size, 8)) for size in (50, 500, 2000)], rng.standard_normal((8, 70))
    with one_thread():
        here = [block @ V for block in blocks]
    assert all(map(np.array_equal, executor.map(partial(_times, V), blocks), here))
    assert all(result.flags.aligned for result in executor.map(partial(_times, V), blocks))


def test_delayed_blocks_may_have_labels_of_their_own(rows, executor):
    X, Y = rows
    dask = pytest.importorskip("dask", reason="the extra dask is not installed")
    blocks = [dask.delayed((X[:200], Y[:200, :3], NAMES[:3])), dask.delayed((X[200:], Y[200:, 2:], NAMES[2:]))]
    found = dask_engine().stats_of(blocks, joined=True, executor=executor)
    assert found.label_names == tuple(NAMES)
    assert found.asked_rows.tolist() == [200, 200, 330, 130]
    with pytest.raises(DataError, match="on one side only"):
        dask_engine().stats_of(blocks, executor=executor)


@pytest.mark.parametrize("answers", ["other blocks", "an array", None])
def test_answers_in_other_blocks_are_refused(rows, executor, answers):
    X, Y = rows
    da = pytest.importorskip("dask.array", reason="the extra dask is not installed")
    given = {"other blocks": da.from_array(Y, chunks=(200, 4)), "an array": Y, None: None}[answers]
    with pytest.raises(DataError, match="as many blocks of rows; rechunk Y as X is"):
        dask_engine().stats_of(da.from_array(X, chunks=(100, X.shape[1])), given, executor=executor)


def test_many_labels_are_learned_alike(rng, executor):
    X = rng.standard_normal((300, 20))
    past = (X @ rng.standard_normal((20, 6)) > 0).astype(int)
    new = (X @ rng.standard_normal((20, 600)) > 1).astype(int)
    model = classifier_from_stats(Stats.from_batch(X, past), 1.0)
    stats = Stats.from_batch(X, new, [f"new {j}" for j in range(600)])
    grown = []
    for where in (None, executor):
        codes = code_labels(past, new, executor=where)
        grown.append(add_labels_from_stats(model, stats, codes, executor=where))
    for name in ("coef_", "intercept_", "thresholds_"):
        np.testing.assert_allclose(getattr(grown[1], name), getattr(grown[0], name), rtol=1e-10, atol=1e-12)


def test_joblib_reaches_the_cluster(rng, executor):
    joblib = pytest.importorskip("joblib")
    X = rng.standard_normal((120, 8))
    Y = (X @ rng.standard_normal((8, 80)) > 0.5).astype(int)
    here = StreamingLabelClassifier(beta=1.0, lam=0.05).fit(X, Y[:, :5]).add_labels(X, Y[:, 5:])
    with joblib.parallel_config(backend="dask", client=executor.client):
        pids = set(JoblibExecutor().map(_process, range(8)))
        there = StreamingLabelClassifier(beta=1.0, lam=0.05, n_jobs=-1).fit(X, Y[:, :5]).add_labels(X, Y[:, 5:])
    assert os.getpid() not in pids
    assert np.array_equal(here.coef_, there.coef_)


def _process(_: int) -> int:
    return os.getpid()


def test_logistic_labels_from_products_on_the_workers(rows, executor):
    X, Y = rows
    array = pytest.importorskip("dask.array", reason="the extra dask is not installed")
    blocks = dask_engine().row_blocks(array.from_array(X, chunks=(100, 9)))
    edges = range(0, 331, 100)
    here = PartitionedRows([X[i : i + 100] for i in edges])
    with one_thread():
        ours = solve(here, Y, beta=1.0, loss="logistic", tolerance=1e-8)
        theirs = solve(PartitionedRows(blocks, executor), Y, beta=1.0, loss="logistic", tolerance=1e-8)
    assert np.array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(theirs[0], solve(X, Y, beta=1.0, loss="logistic", tolerance=1e-8)[0], atol=1e-7)


def test_labels_of_partitions(rows, executor, tmp_path):
    X, Y = rows
    array = pytest.importorskip("dask.array", reason="the extra dask is not installed")
    ModelStore.create(tmp_path / "model", StreamingLabelClassifier(beta=1.0).fit(X, Y)).close()
    blocks = dask_engine().row_blocks(array.from_array(X, chunks=(100, 9)))
    found = list(predict_blocks(tmp_path / "model", blocks, 3, executor))
    here = list(predict_blocks(tmp_path / "model", [X[i : i + 100] for i in range(0, 330, 100)], 3))
    for (labels, scores), (ours, our_scores) in zip(found, here, strict=True):
        assert np.array_equal(labels, ours)
        np.testing.assert_allclose(scores, our_scores, rtol=1e-10)


def _slow_gram(folder: Path, rows: np.ndarray) -> np.ndarray:
    (folder / str(os.getpid())).touch()
    time.sleep(0.05)
    return rows.T @ rows


def test_a_killed_worker_changes_nothing(rng, executor, tmp_path):
    """Killed while it works, with a function and items on it that nobody can compute again: they are sent again."""
    blocks = [rng.standard_normal((40_000, 4)) for _ in range(20)]  # above 1 MB, so that workers hold them
    results = []
    for result in executor.stream(partial(_slow_gram, tmp_path), blocks):
        if len(results) == 3:
            os.kill(int(next(tmp_path.iterdir()).name), signal.SIGKILL)
        results.append(result)
    assert len(list(tmp_path.iterdir())) >= 2
    with one_thread():
        assert all(np.array_equal(result, block.T @ block) for result, block in zip(results, blocks, strict=True))


def test_a_lost_scheduler_is_said():
    with mortal_scheduler() as (process, address):
        executor = dask_engine().DaskExecutor(address)
        results = executor.stream(time.sleep, [0.01] * 1000)
        next(results)
        process.kill()
        with pytest.raises(ClusterError, match="connection to the scheduler was lost; start it again"):
            list(results)
        executor.close()


def test_no_scheduler_is_said(monkeypatch):
    monkeypatch.setattr(dask_engine(), "_TIMEOUT", 0.5)
    with pytest.raises(ClusterError, match="no Dask scheduler answers there"):
        dask_engine().DaskExecutor("tcp://127.0.0.1:9")
