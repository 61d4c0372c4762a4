"""An approximate index of the labels of a model, which grows with them: the best labels without scoring all.

A classifier is a point: its coordinates along the `DIMS` directions in which the classifiers known at the start differ
most, and its intercept. A graph of near points (HNSW, the package faiss, extra ``ann``) gives a row some candidates;
these are scored exactly. So every score is right, and a best label can be missed: ``docs/scale.md`` says how often.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse

from streamlabel.errors import MissingExtraError
from streamlabel.metrics.topk import check_k
from streamlabel.streaming.blocks import ClassifierBlocks
from streamlabel.streaming.pruned import WIDTH, sparse_scores
from streamlabel.types import CSR, FloatArray, IntArray

DIMS, CANDIDATES = 128, 100
_LINKS, _BREADTH = 12, 60  # of the graph: links a point, and points that are looked at for them
_SEED = 0
_ROWS = 256  # that are scored at once


class LabelIndex:
    """An index of the labels of ``classifiers``; `of` adds those that came since. One thread at a time may use it."""

    def __init__(self, classifiers: ClassifierBlocks, dims: int = DIMS) -> None:
        try:
            import faiss
        except ImportError:
            raise MissingExtraError("faiss", "ann", "approximate=True") from None
        self._basis = _directions(classifiers, min(dims, classifiers.n_features))
        self._graph = faiss.IndexHNSWFlat(self._basis.shape[1] + 1, _LINKS, faiss.METRIC_INNER_PRODUCT)
        self._graph.hnsw.efConstruction = _BREADTH
        self._intercept: FloatArray = np.empty(0)
        self._grow(classifiers)

    @classmethod
    def of(cls, classifiers: ClassifierBlocks, known: LabelIndex | None = None) -> LabelIndex:
        """The known index with the labels that came since, if the older ones are the same; else a new one."""
        if known is None or not np.array_equal(known._intercept, classifiers.intercept[: known.n_labels]):
            return cls(classifiers)
        known._grow(classifiers)
        return known

    @property
    def n_labels(self) -> int:
        return len(self._intercept)

    def _grow(self, classifiers: ClassifierBlocks) -> None:
        for start in range(self.n_labels, classifiers.n_labels, WIDTH):
            numbers = np.arange(start, min(start + WIDTH, classifiers.n_labels))
            points = _csc(classifiers, numbers).T @ self._basis
            self._graph.add(np.column_stack((points, classifiers.intercept[numbers])).astype(np.float32))
        self._intercept = classifiers.intercept

    def top_labels(
        self, classifiers: ClassifierBlocks, X: CSR | FloatArray, k: int, n_candidates: int = CANDIDATES
    ) -> tuple[IntArray, FloatArray]:
        """The best labels that were found for each row, and their scores, (n, min(k, m)) each, best first."""
        wanted = min(check_k(k), self.n_labels)
        found = min(max(n_candidates, wanted), self.n_labels)
        self._graph.hnsw.efSearch = max(found, _BREADTH)
        rows = sparse.csr_array(X)
        queries = np.column_stack((rows @ self._basis, np.ones(rows.shape[0]))).astype(np.float32)
        _, near = self._graph.search(queries, found)
        near = np.sort(np.maximum(near, 0), axis=1)  # of two equal scores the older label's comes first
        parts = [
            scores_at(classifiers, rows[start : start + _ROWS], near[start : start + _ROWS])
            for start in range(0, rows.shape[0], _ROWS)
        ]
        scores = np.concatenate(parts) if parts else np.empty(near.shape)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :wanted]
        return np.take_along_axis(near, order, axis=1), np.take_along_axis(scores, order, axis=1)


def scores_at(classifiers: ClassifierBlocks, X: CSR, labels: IntArray) -> FloatArray:
    """Scores (n, k) of k chosen labels for each row, (n, k): the same sums in the same order as all scores."""
    numbers, inverse = np.unique(labels, return_inverse=True)
    scores = sparse_scores(X, _csc(classifiers, numbers))
    return np.take_along_axis(scores, inverse.reshape(labels.shape), axis=1) + classifiers.intercept[labels]


def _csc(classifiers: ClassifierBlocks, numbers: IntArray) -> Any:
    """The classifiers of these labels as a csc_array, features ascending."""
    found = sparse.csc_array(classifiers.columns(numbers))
    found.sort_indices()
    return found


def _directions(classifiers: ClassifierBlocks, dims: int) -> FloatArray:
    """Orthonormal directions (d, dims) in which classifiers differ most: two rounds of random projection."""
    rng, spare = np.random.default_rng(_SEED), min(dims + 8, classifiers.n_features)
    basis: FloatArray | None = None
    for _ in range(3):
        image = np.zeros((classifiers.n_features, spare))
        for start in range(0, classifiers.n_labels, WIDTH):
            block = _csc(classifiers, np.arange(start, min(start + WIDTH, classifiers.n_labels)))
            mixed = rng.standard_normal((block.shape[1], spare)) if basis is None else block.T @ basis
            image += block @ mixed
        basis = linalg.qr(image, mode="economic")[0]
    assert basis is not None
    spread = linalg.svd(basis.T @ image)[0]
    return np.asarray((basis @ spread)[:, :dims])
