"""Neighbours against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from streamlabel.baselines import sleec_embedding as sleec_neighbours
from streamlabel.baselines.sleec_embedding import mean_labels, nearest_embeddings, neighbour_gram


@pytest.fixture(params=[150, 10**6], ids=["in blocks", "at once"])
def blocks(request, monkeypatch):
    monkeypatch.setattr(sleec_neighbours, "_BLOCK_CELLS", request.param)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("cosine", [True, False])
@pytest.mark.parametrize("k", [1, 6, 40, 99])
def test_the_gram_holds_the_products_of_neighbours(rng, cosine, k):
    labels = (rng.random((40, 12)) < 0.2).astype(np.int8)
    labels[3] = 0
    products = np.zeros((40, 40))
    for i in range(40):
        for j in range(40):
            lengths = np.sqrt(float(labels[i].sum() * labels[j].sum())) if cosine else 1.0
            products[i, j] = (labels[i] & labels[j]).sum() / max(lengths, 1.0)
    seen = np.zeros((40, 40), dtype=bool)
    for i in range(40):
        others = sorted((j for j in range(40) if j != i), key=lambda j: (-round(products[i, j], 9), j))
        seen[i, [i, *others[: k - 1]]] = True
    gram = neighbour_gram(sparse.csr_array(labels), k, cosine=cosine)
    pattern = sparse.csr_array((np.ones(gram.nnz), gram.indices, gram.indptr), shape=gram.shape).toarray() > 0.0
    np.testing.assert_array_equal(pattern, seen | seen.T)
    np.testing.assert_allclose(gram.toarray(), np.where(pattern, products, 0.0), atol=1e-12)
    np.testing.assert_array_equal(gram.toarray(), gram.T.toarray())


def test_the_order_of_the_labels_does_not_change_one_bit(rng):
    labels = sparse.csr_array((rng.random((60, 30)) < 0.15).astype(np.int8))
    one, other = (neighbour_gram(part, 7) for part in (labels, labels[:, rng.permutation(30)]))
    assert np.array_equal(one.indices, other.indices)
    assert np.array_equal(one.data, other.data)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("k", [1, 5, 30, 50])
def test_the_nearest_embeddings_are_scikit_learns(rng, k):
    points, queries = rng.standard_normal((30, 4)), rng.standard_normal((20, 4))
    theirs = NearestNeighbors(n_neighbors=min(k, 30), algorithm="brute").fit(points).kneighbors(queries)[1]
    np.testing.assert_array_equal(nearest_embeddings(queries, points, k), np.sort(theirs, axis=1))


def test_ties_go_to_the_lower_row_also_when_they_are_rounded(rng):
    points = np.repeat(rng.standard_normal((5, 3)), 4, axis=0)
    shaken = points * (1.0 + 1e-15 * rng.standard_normal(points.shape))
    for queries in (rng.standard_normal((50, 3)), 1e6 * rng.standard_normal((50, 3))):
        assert (nearest_embeddings(queries, shaken, 2) % 4 == [0, 1]).all()


def test_mean_labels(rng):
    labels = (rng.random((10, 6)) < 0.4).astype(np.int8)
    neighbours = np.array([[0, 3, 4], [9, 1, 2]])
    means = mean_labels(sparse.csr_array(labels), neighbours).toarray()
    np.testing.assert_allclose(means, [labels[row].mean(axis=0) for row in neighbours], atol=1e-15)
