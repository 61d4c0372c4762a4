"""50,000 labels: no measure may need the dense matrix of all scores."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

from streamlabel.metrics.auc import label_auc
from streamlabel.metrics.evaluate import evaluate
from streamlabel.metrics.row_blocks import ColumnBlocks, RowBlocks

N_ROWS, N_LABELS = 2_000, 50_000
DENSE_BYTES = 4 * N_ROWS * N_LABELS  # 400 MB in float32
BOUND = 150_000_000


@pytest.fixture
def large(rng):
    left = rng.standard_normal((N_ROWS, 8)).astype(np.float32)
    right = rng.standard_normal((8, N_LABELS)).astype(np.float32)
    labels = np.minimum(rng.pareto(1.0, (N_ROWS, 5)) * 20, N_LABELS - 1).astype(int)  # few frequent, many rare
    rows = np.repeat(np.arange(N_ROWS), 5)
    truth = sparse.csr_array((np.ones(rows.size), (rows, labels.ravel())), shape=(N_ROWS, N_LABELS))
    truth.data[:] = 1
    return truth, left, right


@pytest.mark.slow
def test_all_measures_in_bounded_memory(large):
    truth, left, right = large
    tracemalloc.start()
    found = evaluate(truth, RowBlocks(lambda a, b: left[a:b] @ right), inverse_propensities=np.ones(N_LABELS))
    by_label = label_auc(truth, ColumnBlocks(lambda a, b: left @ right[:, a:b]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < BOUND < DENSE_BYTES / 2
    assert found["macro_auc"] == pytest.approx(np.nanmean(by_label), abs=1e-3)  # blocks are multiplied differently
    best = np.array([int(np.argmax(row @ right)) for row in left])
    assert found["P@1"] == pytest.approx(truth[np.arange(N_ROWS), best].mean(), abs=2 / N_ROWS)
    frequent = np.argsort(-np.bincount(truth.indices, minlength=N_LABELS), kind="stable")[:20]
    for j in frequent:
        expected = roc_auc_score(truth[:, [j]].toarray().ravel(), left @ right[:, j])
        assert by_label[j] == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_sparse_scores_need_memory_for_what_is_stored(large, rng):
    truth, _, _ = large
    columns = np.stack([rng.choice(N_LABELS, 100, replace=False) for _ in range(N_ROWS)])
    values = rng.standard_normal(columns.size).astype(np.float32)
    scores = sparse.csr_array((values, (np.repeat(np.arange(N_ROWS), 100), columns.ravel())), shape=truth.shape)
    tracemalloc.start()
    evaluate(truth, scores, threshold=0.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < BOUND
