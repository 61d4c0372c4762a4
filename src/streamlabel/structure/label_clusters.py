"""Clusters of label vectors by their cosine: which labels go together on the rows.

A label vector has as many entries as there are rows, nearly all zero. Centres of such vectors are dense, so clustering
them as they are takes (clusters x rows) memory. They are projected first onto their leading singular directions, which
keeps the cosines that clusters are made of; everything after that is a few dozen numbers a label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.utils.extmath import randomized_svd

from streamlabel.results import CSR, FloatArray, IntArray

__all__ = ["LabelClusters", "cluster_labels"]

_DIRECTIONS = 64
_BLOCK = 4096  # labels compared with all centres at a time
_STARTS = 8
_CHEAP = 1_000_000  # labels times clusters
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class LabelClusters:
    """``members (m,)``: the cluster of every label. ``cosines (m,)``: how near it is to the centre of that cluster."""

    members: IntArray
    cosines: FloatArray
    n_clusters: int

    @property
    def sizes(self) -> IntArray:
        return np.bincount(self.members, minlength=self.n_clusters)


def cluster_labels(B: CSR, n_clusters: int, *, random_state: int = 0, max_iter: int = 30) -> LabelClusters:
    """Spherical k-means on the columns of B (n, m), each with a positive. ``n_clusters <= m``; some may stay empty.

    The best of eight starts where that is cheap; with very many labels, one.
    """
    vectors = _embed(B, random_state)
    n_starts = _STARTS if vectors.shape[0] * n_clusters <= _CHEAP else 1
    found = [_cluster(vectors, n_clusters, random_state + start, max_iter) for start in range(n_starts)]
    return max(found, key=lambda clusters: float(clusters.cosines.sum()))


def _cluster(vectors: FloatArray, n_clusters: int, random_state: int, max_iter: int) -> LabelClusters:
    """From one start to where no label changes its cluster (or ``max_iter`` rounds)."""
    centres = kmeans_plusplus(vectors, n_clusters, random_state=random_state)[0]
    members, cosines = _nearest(vectors, centres)
    for _ in range(max_iter):
        centres = _centres(vectors, members, centres)
        before = members
        members, cosines = _nearest(vectors, centres)
        if np.array_equal(members, before):
            break
    return LabelClusters(members, cosines, n_clusters)


def _embed(B: CSR, random_state: int) -> FloatArray:
    """Unit vectors (m, at most 64) whose inner products are nearly the cosines of the columns of B."""
    counts = np.asarray(B.sum(axis=0), dtype=np.float64)
    unit = sparse.csr_array(B.T.astype(np.float64).multiply(1.0 / np.sqrt(counts)[:, None]))
    left, strength, _ = randomized_svd(unit, min(_DIRECTIONS, *unit.shape), n_iter=2, random_state=random_state)
    vectors = left * strength
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1), _TINY)[:, None])


def _nearest(vectors: FloatArray, centres: FloatArray) -> tuple[IntArray, FloatArray]:
    """The centre of the largest cosine for every vector (ties: the first), and that cosine."""
    members = np.empty(vectors.shape[0], dtype=np.intp)
    cosines = np.empty(vectors.shape[0])
    for first in range(0, vectors.shape[0], _BLOCK):
        part = slice(first, first + _BLOCK)
        products = vectors[part] @ centres.T
        members[part] = products.argmax(axis=1)
        cosines[part] = products.max(axis=1)
    return members, cosines


def _centres(vectors: FloatArray, members: IntArray, before: FloatArray) -> FloatArray:
    """The mean direction of every cluster; one that is empty stays where it was."""
    n_labels, n_clusters = vectors.shape[0], before.shape[0]
    belongs = sparse.csr_array((np.ones(n_labels), (members, np.arange(n_labels))), shape=(n_clusters, n_labels))
    sums = belongs @ vectors
    lengths = np.linalg.norm(sums, axis=1)
    return np.where(lengths[:, None] > 0.0, sums / np.maximum(lengths, _TINY)[:, None], before)
