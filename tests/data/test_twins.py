"""Twins keep the published numbers, fall by a power law, can be learned, and are made in bounded time and memory."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from streamlabel.data.synthetic import make_twin
from streamlabel.errors import DataError
from streamlabel.validation import canonical_csr, canonical_labels

DIGEST = """
import hashlib
from streamlabel.data.synthetic import make_twin
t = make_twin(300, 800, 90, 40, 3.2, random_state=5)
parts = [a.tobytes() for m in (t.X, t.Y) for a in (m.data, m.indices, m.indptr)]
print(hashlib.sha256(b"".join(parts)).hexdigest())
"""


def digest(twin):
    parts = [array.tobytes() for matrix in (twin.X, twin.Y) for array in (matrix.data, matrix.indices, matrix.indptr)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_labels", "features_per_row", "labels_per_row"),
    [
        (700, 1836, 159, 68.7, 2.4),  # Bibtex, a tenth of the rows
        (800, 500, 983, 18.2, 19.0),  # Delicious
        (300, 120, 101, 120.0, 4.38),  # Mediamill: every feature in every row
        (500, 5000, 3993, 236.7, 5.31),  # EURLex-4K: fewer places than labels
        (50, 10, 3, 0.4, 0.5),
        (50, 10, 4, 3.0, 0.0),
        (50, 10, 4, 0.0, 1.0),
        (5, 7, 3, 7.0, 3.0),
        (1, 1, 1, 1.0, 1.0),
    ],
)
def test_the_numbers_are_kept(n_rows, n_features, n_labels, features_per_row, labels_per_row):
    twin = make_twin(n_rows, n_features, n_labels, features_per_row, labels_per_row)
    assert twin.X.shape == (n_rows, n_features)
    assert twin.Y.shape == (n_rows, n_labels)
    assert twin.X.nnz == round(n_rows * features_per_row)
    assert twin.Y.nnz == round(n_rows * labels_per_row)
    assert twin.X.dtype == np.float32
    assert twin.X.indices.dtype == np.int32
    assert twin.Y.dtype == np.int8
    for matrix, canonical in ((twin.X, canonical_csr(twin.X)), (twin.Y, canonical_labels(twin.Y))):
        assert (matrix != canonical).nnz == 0
        columns = np.split(matrix.indices, matrix.indptr[1:-1])
        assert all((np.diff(row) > 0).all() for row in columns)
    assert (twin.X.data > 0).all()
    norms = np.sqrt(twin.X.astype(float).power(2).sum(axis=1))
    assert np.allclose(norms[np.diff(twin.X.indptr) > 0], 1.0, atol=1e-5)
    for matrix, average in ((twin.X, features_per_row), (twin.Y, labels_per_row)):
        if average >= 1:
            assert np.diff(matrix.indptr).min() >= 1
    if twin.Y.nnz >= n_labels:
        assert twin.Y.sum(axis=0).min() >= 1
    assert len(twin.label_names) == n_labels


def rank_slope(counts, low, high):
    """Slope of log frequency against log rank, ranks low .. high."""
    ranked = np.sort(counts)[::-1][low:high]
    return np.polyfit(np.log(np.arange(low, high) + 1.0), np.log(ranked), 1)[0]


@pytest.mark.parametrize("exponent", [0.6, 1.0, 1.4])
def test_frequencies_fall_by_the_power_law(exponent):
    twin = make_twin(20_000, 3000, 400, 20, 2, label_exponent=exponent, feature_exponent=exponent)
    assert rank_slope(twin.Y.sum(axis=0), 10, 80) == pytest.approx(-exponent, abs=0.25)
    feature_counts = np.bincount(twin.X.indices, minlength=3000)
    assert -1.3 * exponent < rank_slope(feature_counts, 10, 300) < -0.5 * exponent


def test_exponent_zero_gives_equal_frequencies():
    counts = make_twin(20_000, 300, 100, 3, 2, label_exponent=0.0).Y.sum(axis=0)
    assert counts.max() < 1.5 * counts.min()


def test_frequent_columns_are_not_the_first_ones():
    counts = make_twin(3000, 2000, 500, 30, 3).Y.sum(axis=0)
    assert abs(np.corrcoef(np.arange(500), np.argsort(np.argsort(counts)))[0, 1]) < 0.2


def test_labels_occur_together():
    """Pairs of labels are spread less evenly than independent labels of the same frequencies would be."""
    twin = make_twin(5000, 500, 200, 20, 3)
    Y = twin.Y.toarray().astype(float)
    independent = np.column_stack([np.random.default_rng(j).permutation(column) for j, column in enumerate(Y.T)])
    largest = [np.sort(np.corrcoef(labels.T)[np.triu_indices(200, 1)])[-200:].mean() for labels in (Y, independent)]
    assert largest[0] > 1.5 * largest[1]


@pytest.mark.parametrize("shape", [(1500, 1836, 159, 68.7, 2.4), (1500, 120, 101, 120.0, 4.38)])
def test_labels_can_be_learned_from_the_features(shape):
    twin = make_twin(*shape)
    Y = twin.Y.toarray()
    scores = Ridge(alpha=1.0).fit(twin.X[:1000], Y[:1000]).predict(twin.X[1000:])
    hit = Y[1000:][np.arange(500), scores.argmax(axis=1)].mean()
    blind = Y[1000:, Y[:1000].sum(axis=0).argmax()].mean()
    assert blind + 0.3 < hit < 0.97


def test_seeds_and_other_processes():
    here = [digest(make_twin(300, 800, 90, 40, 3.2, random_state=seed)) for seed in (5, 5, 6)]
    assert here[0] == here[1] != here[2]
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == here[0]


def test_working_memory_is_bounded_by_the_block(monkeypatch):
    """With small blocks the peak stays near the size of the result itself."""
    monkeypatch.setattr("streamlabel.data.synthetic.BLOCK_NON_ZEROS", 20_000)
    tracemalloc.start()
    twin = make_twin(1500, 1000, 50, 200, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = twin.X.data.nbytes + twin.X.indices.nbytes + twin.X.indptr.nbytes
    assert peak < 2 * result


@pytest.mark.slow
def test_wiki10_shape_in_seconds():
    start = time.process_time()
    twin = make_twin(14_146, 101_938, 30_938, 673.45, 18.64)
    assert time.process_time() - start < 60
    assert twin.X.nnz == round(14_146 * 673.45)
    assert twin.Y.sum(axis=0).min() >= 1


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((0, 10, 10, 1, 1), "n_rows"),
        ((10, 10, 10, 11, 1), "features_per_row is 11; expected 0 to 10"),
        ((10, 10, 10, 1, 10.5), "labels_per_row"),
        ((10, 10, 10, -1, 1), "features_per_row"),
        ((10, 10, 10, float("nan"), 1), "features_per_row"),
        ((10, 2**40, 10, 1, 1), "n_features"),
        ((10**7, 10**6, 10, 1000, 1), "smaller twin"),
        ((10, 10, 10, "many", 1), "expected a number"),
    ],
)
def test_shapes_that_cannot_be(arguments, part):
    with pytest.raises(DataError, match=part):
        make_twin(*arguments)
