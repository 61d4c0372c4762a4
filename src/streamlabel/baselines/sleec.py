"""SLEEC: nearest neighbours in embeddings that keep label neighbours (Bhatia, Jain, Kar, Varma, Jain, NIPS 2015)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.preprocessing import normalize

from streamlabel.baselines.base import FixedLabelClassifier, check_at_least_one, check_positive
from streamlabel.baselines.sleec_embedding import embed, mean_labels, nearest_embeddings, neighbour_gram, regress
from streamlabel.errors import DataError
from streamlabel.stats.spectral import dense
from streamlabel.stats.threads import one_thread
from streamlabel.streaming.inputs import check_seed
from streamlabel.types import CSR, FloatArray, IntArray


@dataclass(frozen=True)
class Settings:
    """The parameters of `SLEEC` that a learner needs."""

    cluster_size: int
    rank: int
    n_neighbours: int
    beta: float
    l1: float
    n_iterations: int
    normalise_labels: bool


@dataclass(frozen=True, eq=False)
class LocalEmbedding:
    """A cluster of examples: ``weights`` (d, r), the mapped examples ``points`` (p, r) and their labels (p, m) of 0/1.

    rows, targets : which training rows these are, and the embeddings (p, r) that the map was learned for
    """

    weights: FloatArray
    points: FloatArray
    labels: CSR
    rows: IntArray
    targets: FloatArray

    def mapped_again(self, X: CSR | FloatArray, beta: float, l1: float) -> LocalEmbedding:
        """The same embeddings with another map; X are all training rows."""
        mine = X[self.rows]
        weights, _ = regress(mine, self.targets, beta, l1)
        return replace(self, weights=weights, points=np.asarray(mine @ weights))

    def scores(self, X: CSR | FloatArray, k: int) -> CSR:
        """The mean labels of the k embedded examples nearest to each row."""
        neighbours = nearest_embeddings(np.asarray(X @ self.weights), self.points, k)
        return mean_labels(self.labels, neighbours)


@dataclass(frozen=True, eq=False)
class Learner:
    """One clustering: its ``centres`` (c, d), and the embedding learned around each."""

    centres: FloatArray
    parts: tuple[LocalEmbedding, ...]

    @property
    def n_labels(self) -> int:
        return int(self.parts[0].labels.shape[1])

    def add_scores(self, X: CSR | FloatArray, k: int, total: FloatArray) -> None:
        """Add the mean labels of the k nearest examples to ``total`` (n, m)."""
        members = nearest_centre(X, self.centres)
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(members == number)
            if rows.size:
                total[rows] += part.scores(X[rows], k).toarray()


def learn(X: CSR | FloatArray, labels: CSR, settings: Settings, seed: int) -> Learner:
    """Learn one clustering: cluster the rows, then embed and regress in each cluster."""
    draw = np.random.default_rng(seed)
    centres, parts = [], []
    for rows in cluster_rows(X, settings.cluster_size, draw):
        centres.append(np.asarray(X[rows].mean(axis=0)).ravel())
        parts.append(_embed_cluster(X, rows, labels[rows], settings, int(draw.integers(2**31))))
    return Learner(np.array(centres), tuple(parts))


def _embed_cluster(X: CSR | FloatArray, rows: IntArray, labels: CSR, settings: Settings, seed: int) -> LocalEmbedding:
    gram = neighbour_gram(labels, settings.n_neighbours, cosine=settings.normalise_labels)
    embedding = embed(gram, settings.rank, settings.n_iterations, random_state=seed)
    nothing = np.empty((0, 0))
    part = LocalEmbedding(nothing, nothing, labels, rows, embedding.Z)
    return part.mapped_again(X, settings.beta, settings.l1)


_MOST_ROUNDS = 30


def cluster_rows(X: CSR | FloatArray, most_rows: int, draw: np.random.Generator) -> list[IntArray]:
    """Split the rows of X into clusters of at most ``most_rows``, each in increasing order.

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


class SLEEC(FixedLabelClassifier):
    """Sparse local embeddings: a baseline that learns all labels together, and again for every new one.

    The examples are clustered by their features. In each cluster every example gets an embedding whose inner products
    with its nearest neighbours are those of their label vectors, and a linear map is learned from features to
    embeddings (both `baselines.sleec_embedding`). A new row is mapped in the nearest cluster; its scores are the mean
    labels of the training rows that are mapped nearest to it, averaged over several clusterings.

    Parameters
    ----------
    n_learners : int
        Clusterings. If all rows fit into one cluster, learners would not differ, and one is learned.
    cluster_size : int
        At most so many rows in a cluster.
    rank : int
        Dimensions of an embedding.
    n_neighbours : int
        Each row's embedding keeps its inner products with so many rows, itself included.
    n_predict_neighbours : int
        The training rows whose labels make a score.
    beta : float
        The ridge strength of the map from features to embeddings.
    l1 : float
        The penalty on the absolute values of mapped training rows; 0 is plain ridge.
    n_iterations : int
        At most so many steps of singular value projection.
    normalise : bool
        Scale the rows of X to length 1.
    normalise_labels : bool
        Scale label vectors to length 1, so that inner products are cosines.
    threshold : float
        The score, a share of the neighbours, above which `predict` says yes.
    random_state : int
        For the clusters and the start of the embeddings.

    Attributes
    ----------
    label_names_ : tuple of str, the order of every column
    learners_ : tuple of `Learner`

    Examples
    --------
    >>> import numpy as np
    >>> from streamlabel import SLEEC
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.2]])
    >>> SLEEC(n_predict_neighbours=2).fit(X, (X > 0.5).astype(int)).decision_function([[0.9, 0.1]])
    array([[1., 0.]])
    """

    def __init__(
        self,
        *,
        n_learners: int = 5,
        cluster_size: int = 15_000,
        rank: int = 100,
        n_neighbours: int = 250,
        n_predict_neighbours: int = 10,
        beta: float = 3.0,
        l1: float = 0.0,
        n_iterations: int = 5,
        normalise: bool = True,
        normalise_labels: bool = True,
        threshold: float = 0.5,
        random_state: int = 0,
    ) -> None:
        self.n_learners = n_learners
        self.cluster_size = cluster_size
        self.rank = rank
        self.n_neighbours = n_neighbours
        self.n_predict_neighbours = n_predict_neighbours
        self.beta = beta
        self.l1 = l1
        self.n_iterations = n_iterations
        self.normalise = normalise
        self.normalise_labels = normalise_labels
        self.threshold = threshold
        self.random_state = random_state

    def _check_parameters(self) -> None:
        for name in ("n_learners", "cluster_size", "rank", "n_neighbours", "n_predict_neighbours", "n_iterations"):
            check_at_least_one(name, getattr(self, name))
        check_positive("beta", self.beta)
        _check_not_negative("l1", self.l1)
        check_seed(self.random_state)

    def _learn(self, X: CSR | FloatArray, labels: CSR) -> None:
        rows = self._rows(X)
        settings = Settings(
            int(self.cluster_size), int(self.rank), int(self.n_neighbours), float(self.beta), float(self.l1),
            int(self.n_iterations), bool(self.normalise_labels),
        )  # fmt: skip
        n_learners = 1 if rows.shape[0] <= self.cluster_size else self.n_learners
        seeds = np.random.SeedSequence(int(self.random_state)).generate_state(n_learners)
        with one_thread():
            self.learners_: tuple[Learner, ...] = tuple(learn(rows, labels, settings, int(seed)) for seed in seeds)

    def learn_map(self, X: ArrayLike | CSR) -> Self:
        """Learn the map from features to embeddings again, with the ``beta`` and ``l1`` of now.

        X are the rows of `fit`. The embeddings, which take nearly all of its time, do not depend on these two and
        are kept.
        """
        self._check_parameters()
        rows, beta, l1 = self._rows(self._features(X, reset=False)), float(self.beta), float(self.l1)
        with one_thread():
            self.learners_ = tuple(
                replace(one, parts=tuple(part.mapped_again(rows, beta, l1) for part in one.parts))
                for one in self.learners_
            )
        return self

    def _scores(self, X: CSR | FloatArray) -> FloatArray:
        rows = self._rows(X)
        total = np.zeros((rows.shape[0], self.learners_[0].n_labels))
        for learner in self.learners_:
            learner.add_scores(rows, self.n_predict_neighbours, total)
        return total / len(self.learners_)

    def _rows(self, X: CSR | FloatArray) -> Any:
        if not self.normalise:
            return X
        return normalize(X) if isinstance(X, np.ndarray) else sparse.csr_array(normalize(X))


def _check_not_negative(name: str, value: Any) -> None:
    if isinstance(value, str) or value is None or not np.isfinite(value) or value < 0:
        raise DataError(f"{name} is {value!r}; it must be 0 or a positive number")
