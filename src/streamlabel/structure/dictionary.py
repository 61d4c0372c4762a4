"""The label dictionary: with very many past labels, the few that may enter a code.

The past labels are clustered by their cosine (which labels go together on the rows), and every cluster keeps some of
its labels. The lasso then runs on those alone, and the cost of a new label does not grow with the number of past ones.

A label vector has as many entries as there are rows, nearly all zero. Centres of such vectors are dense, so clustering
them as they are takes (clusters x rows) memory. They are projected first onto their leading singular directions, which
keeps the cosines that clusters are made of; everything after that is a few dozen numbers per label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.utils.extmath import randomized_svd

from streamlabel.errors import DataError
from streamlabel.stats.threads import one_thread
from streamlabel.types import CSR, FloatArray, IntArray
from streamlabel.validation import canonical_labels

_DIRECTIONS = 64
_BLOCK = 4096  # labels compared with all centres at a time
_STARTS = 8
_CHEAP = 1_000_000  # labels times clusters
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class LabelClusters:
    """Clusters of labels: the cluster of each one, ``members (m,)``, its cosine with the centre, ``cosines (m,)``."""

    members: IntArray
    cosines: FloatArray
    n_clusters: int

    @property
    def sizes(self) -> IntArray:
        return np.bincount(self.members, minlength=self.n_clusters)


def cluster_labels(B: CSR, n_clusters: int, *, random_state: int = 0, max_iter: int = 30) -> LabelClusters:
    """Cluster the columns of B (n, m), each with a positive, by spherical k-means; some clusters may stay empty.

    ``n_clusters <= m``. The best of eight starts if that is cheap; with very many labels, one.
    """
    vectors = _embed(B, random_state)
    n_starts = _STARTS if vectors.shape[0] * n_clusters <= _CHEAP else 1
    found = [_cluster(vectors, n_clusters, random_state + start, max_iter) for start in range(n_starts)]
    return max(found, key=lambda clusters: float(clusters.cosines.sum()))


def _cluster(vectors: FloatArray, n_clusters: int, random_state: int, max_iter: int) -> LabelClusters:
    """Cluster from one start until no label changes its cluster (or ``max_iter`` rounds)."""
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


PerCluster = Literal["proportional", "equal"]
Prefer = Literal["projection", "frequent", "central"]

_ONE_EACH = 64
_MOST_CLUSTERS = 512


def choose_dictionary(
    B: Any,
    n_atoms: int,
    *,
    n_clusters: int | None = None,
    per_cluster: PerCluster = "proportional",
    prefer: Prefer = "projection",
    random_state: int | np.random.Generator = 0,
) -> IntArray:
    """Choose the labels (columns of B) that may enter codes, increasing: what `represent` takes as ``allowed``.

    Parameters
    ----------
    B : (n, m) of 0/1, sparse or dense: the past labels
    n_atoms : how many to keep
    n_clusters : at most n_atoms. By default one per atom up to 64 of them, then half as many, and 512 at most: on
        Delicious, EURLEX57K and citeulike-t (tags used five times), 150 to 1,000 atoms, codes were best with two atoms
        per cluster in four of five cases (against one, four and ten); with 50 atoms, with one.
    per_cluster : "proportional" to the size of the cluster (by largest remainders, one at least), or "equal"
    prefer : which labels of a cluster stay. "frequent": those with most positives, whose classifiers are learned best.
        "central": those of the largest cosine with the centre, which stand for the others best. Either is the better
        one on some data; "projection" takes the product that they make: the length of the label's 0/1 vector along
        the centre, ``sqrt(count) * cosine``, which came first or close to it everywhere.
    random_state : a seed, or a generator (which then moves on); the same seed gives the same dictionary

    Returns
    -------
    (n_atoms,) column numbers; fewer if B has fewer different labels. Labels without positives or without negatives
    never enter, and of labels on exactly the same rows only the first can: the others would add nothing to a code.
    """
    labels = canonical_labels(B, name="the label matrix")
    n_atoms, n_clusters = _checked_sizes(n_atoms, n_clusters)
    if per_cluster not in get_args(PerCluster):
        raise DataError(f"per_cluster is {per_cluster!r}; there are {' and '.join(get_args(PerCluster))}")
    if prefer not in get_args(Prefer):
        raise DataError(f"prefer is {prefer!r}; there are {', '.join(get_args(Prefer))}")
    seed = int(random_state.integers(2**31 - 1)) if isinstance(random_state, np.random.Generator) else random_state
    different = _different_labels(labels)
    if different.shape[0] <= n_atoms:
        return different
    columns = labels[:, different]
    with one_thread():
        clusters = cluster_labels(columns, n_clusters, random_state=seed)
    quotas = (
        _proportional(clusters.sizes, n_atoms) if per_cluster == "proportional" else _equal(clusters.sizes, n_atoms)
    )
    return different[_pick(clusters, _worth(columns, clusters, prefer), quotas)]


def _checked_sizes(n_atoms: int, n_clusters: int | None) -> tuple[int, int]:
    if n_atoms < 1:
        raise DataError(f"n_atoms is {n_atoms}; a dictionary has 1 label at least")
    if n_clusters is None:
        n_clusters = min(n_atoms, max(_ONE_EACH, n_atoms // 2), _MOST_CLUSTERS)
    if not 1 <= n_clusters <= n_atoms:
        raise DataError(
            f"n_clusters is {n_clusters}; expected 1 to n_atoms ({n_atoms}), so that each cluster has an atom"
        )
    return n_atoms, n_clusters


def _different_labels(labels: CSR) -> IntArray:
    """Columns that are neither empty nor full, the first of each kind, increasing."""
    columns = sparse.csc_array(labels)
    columns.sort_indices()
    counts = np.diff(columns.indptr)
    first_of: dict[bytes, int] = {}
    for j in np.flatnonzero((counts > 0) & (counts < labels.shape[0])).tolist():
        rows = columns.indices[columns.indptr[j] : columns.indptr[j + 1]]
        first_of.setdefault(rows.tobytes(), j)
    return np.fromiter(first_of.values(), dtype=np.intp, count=len(first_of))


def _worth(columns: CSR, clusters: LabelClusters, prefer: Prefer) -> FloatArray:
    counts = np.asarray(columns.sum(axis=0), dtype=np.float64)
    if prefer == "frequent":
        return counts
    if prefer == "central":
        return clusters.cosines
    return np.sqrt(counts) * clusters.cosines


def _pick(clusters: LabelClusters, worth: FloatArray, quotas: IntArray) -> IntArray:
    """The ``quotas[c]`` labels of highest worth in each cluster c (ties: the lower number), increasing."""
    order = np.lexsort((-worth, clusters.members))
    begins = np.cumsum(clusters.sizes) - clusters.sizes
    rank = np.arange(order.shape[0]) - np.repeat(begins, clusters.sizes)
    return np.sort(order[rank < np.repeat(quotas, clusters.sizes)])


def _proportional(sizes: IntArray, n_atoms: int) -> IntArray:
    """``n_atoms * sizes / sum(sizes)`` in whole numbers of the same sum: largest remainders, 1 where there is any.

    A cluster whose share is below 1 gets 1, the others share the rest. Needs ``n_clusters <= n_atoms <= sum(sizes)``.
    """
    quotas = np.minimum(sizes, 1)
    large = sizes > 0
    while True:
        left = n_atoms - int(quotas[~large].sum())
        shares = np.where(large, left * sizes / max(int(sizes[large].sum()), 1), 0.0)
        if not (large & (shares < 1.0)).any():
            break
        large &= shares >= 1.0
    quotas = np.where(large, np.floor(shares).astype(np.intp), quotas)
    missing = n_atoms - int(quotas.sum())
    remainders = np.where(large, shares - quotas, -1.0)
    quotas[np.argsort(-remainders, kind="stable")[:missing]] += 1
    return quotas


def _equal(sizes: IntArray, n_atoms: int) -> IntArray:
    """The same for every cluster, as far as its size goes; what is missing goes to the larger ones."""
    quotas = np.zeros_like(sizes)
    while (left := n_atoms - int(quotas.sum())) > 0:
        open_ = np.flatnonzero(quotas < sizes)
        each = left // open_.shape[0]
        if each:
            quotas[open_] = np.minimum(quotas[open_] + each, sizes[open_])
        else:
            quotas[open_[np.argsort(-sizes[open_], kind="stable")[:left]]] += 1
    return quotas
