"""One member of SLEEC's ensemble: a clustering of the examples, and in each cluster an embedding of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamlabel.models.sleec_clusters import cluster_rows, nearest_centre
from streamlabel.models.sleec_embedding import embed
from streamlabel.models.sleec_neighbours import mean_labels, nearest_embeddings, neighbour_gram
from streamlabel.models.sleec_regression import regress
from streamlabel.results import CSR, FloatArray

__all__ = ["Learner", "Settings", "learn"]


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
    """A cluster: ``weights`` (d, r), the embedded examples ``points`` (p, r) and their labels (p, m) of 0/1."""

    weights: FloatArray
    points: FloatArray
    labels: CSR

    def scores(self, X: CSR | FloatArray, k: int) -> CSR:
        neighbours = nearest_embeddings(np.asarray(X @ self.weights), self.points, k)
        return mean_labels(self.labels, neighbours)


@dataclass(frozen=True, eq=False)
class Learner:
    """``centres`` (c, d) and what was learned around each."""

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
    """Cluster the rows, then embed and regress in each cluster."""
    draw = np.random.default_rng(seed)
    centres, parts = [], []
    for rows in cluster_rows(X, settings.cluster_size, draw):
        centres.append(np.asarray(X[rows].mean(axis=0)).ravel())
        parts.append(_embed_cluster(X[rows], labels[rows], settings, int(draw.integers(2**31))))
    return Learner(np.array(centres), tuple(parts))


def _embed_cluster(X: CSR | FloatArray, labels: CSR, settings: Settings, seed: int) -> LocalEmbedding:
    gram = neighbour_gram(labels, settings.n_neighbours, cosine=settings.normalise_labels)
    embedding = embed(gram, settings.rank, settings.n_iterations, random_state=seed)
    weights, _ = regress(X, embedding.Z, settings.beta, settings.l1)
    return LocalEmbedding(weights, np.asarray(X @ weights), labels)
