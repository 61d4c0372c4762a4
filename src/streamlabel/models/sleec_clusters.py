"""Clusters of examples of limited size: k-means on the features, and again inside what is too large."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

from streamlabel.results import CSR, FloatArray, IntArray
from streamlabel.stats.factors import dense

__all__ = ["cluster_rows", "nearest_centre"]

_MOST_ROUNDS = 30


def cluster_rows(X: CSR | FloatArray, most_rows: int, draw: np.random.Generator) -> list[IntArray]:
    """The rows of X in clusters of at most ``most_rows``, each in increasing order.

    Rows that k-means cannot part, because they are the same, are cut in their order.
    """
    waiting, found = [np.arange(X.shape[0])], []
    while waiting:
        rows = waiting.pop()
        if len(rows) <= most_rows:
            found.append(rows)
            continue
        n_clusters = -(-len(rows) // most_rows)
        members = _k_means(X[rows], n_clusters, int(draw.integers(2**31)))
        parts = [rows[members == number] for number in np.unique(members)]
        waiting += parts if len(parts) > 1 else np.array_split(rows, n_clusters)
    return sorted(found, key=lambda rows: int(rows[0]))


def nearest_centre(X: CSR | FloatArray, centres: FloatArray) -> IntArray:
    """The nearest centre (c, d) of every row by Euclidean distance; ties go to the first."""
    return np.asarray((np.asarray(X @ centres.T) - 0.5 * np.square(centres).sum(axis=1)).argmax(axis=1))


def _k_means(X: CSR | FloatArray, n_clusters: int, seed: int) -> IntArray:
    """Lloyd's rounds from one k-means++ start, on one thread in one order: the same seed gives the same clusters."""
    start: Any = kmeans_plusplus(X, n_clusters, random_state=seed)[0]
    centres = dense(start)
    members = nearest_centre(X, centres)
    for _ in range(_MOST_ROUNDS):
        belongs = sparse.csr_array(
            (np.ones(len(members)), (members, np.arange(len(members)))), (n_clusters, len(members))
        )
        counts = np.bincount(members, minlength=n_clusters)[:, None]
        centres = np.where(counts > 0, dense(belongs @ X) / np.maximum(counts, 1), centres)
        before, members = members, nearest_centre(X, centres)
        if np.array_equal(members, before):
            break
    return members
