"""SLEEC: neighbours in embeddings that keep the labels of neighbours (Bhatia, Jain, Kar, Varma, Jain, NIPS 2015)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from streamlabel.exceptions import DataError
from streamlabel.models.fixed_labels import FixedLabelClassifier, check_at_least_one, check_positive
from streamlabel.models.inputs import check_seed
from streamlabel.models.sleec_learner import Learner, Settings, learn
from streamlabel.results import CSR, FloatArray
from streamlabel.stats.threads import one_thread

__all__ = ["SLEEC"]


class SLEEC(FixedLabelClassifier):
    """Sparse local embeddings: a baseline that learns all labels together, and again for every new one.

    The examples are clustered by their features. In each cluster every example gets an embedding whose inner products
    with its nearest neighbours are those of their label vectors (`models.sleec_embedding`), and a linear map is learned
    from features to embeddings (`models.sleec_regression`). A new row is mapped in the nearest cluster; its scores are
    the mean labels of the training rows that are mapped nearest to it, averaged over several clusterings.

    Parameters
    ----------
    n_learners : int
        Clusterings. Where all rows fit into one cluster, learners would not differ, and one is learned.
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
