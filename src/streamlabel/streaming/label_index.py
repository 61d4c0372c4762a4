"""An approximate index of the labels of a model, which grows with them: the best labels without scoring all.

A classifier is a point: its coordinates along the `DIMS` directions in which the classifiers known at the start differ
most, and its intercept. All points, or above `FLAT` labels a graph of near ones (HNSW), give a row some candidates (the
package faiss, extra ``ann``); these are scored exactly. So every score is right, and a best label can be missed:
``docs/scale.md`` says how often. Once the labels have doubled, directions and graph are made anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse

from streamlabel.errors import MissingExtraError
from streamlabel.metrics.topk import check_k
from streamlabel.streaming.blocks import ClassifierBlocks, top_labels
from streamlabel.streaming.pruned import WIDTH, sparse_scores
from streamlabel.types import CSR, FloatArray, IntArray

DIMS, CANDIDATES = 128, 100
FLAT = 20_000  # labels up to which a row is compared with all points
_LINKS, _BREADTH = 32, 200  # of the graph: links a point, and points that are looked at for them
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
        width, self.n_labels, self._most = self._basis.shape[1] + 1, 0, 2 * classifiers.n_labels
        self._points: Any = faiss.IndexFlatIP(width)
        if classifiers.n_labels > FLAT:
            self._points = faiss.IndexHNSWFlat(width, _LINKS, faiss.METRIC_INNER_PRODUCT)
            self._points.hnsw.efConstruction = self._points.hnsw.efSearch = _BREADTH
        self._grow(classifiers, _probe(classifiers))

    @classmethod
    def of(cls, classifiers: ClassifierBlocks, known: LabelIndex | None = None) -> LabelIndex:
        """The known index with the labels that came since, if the older ones are the same; else a new one."""
        if known is not None and known._classifiers is classifiers:
            return known
        scores = _probe(classifiers)
        if known is None or len(scores) >= known._most or not np.array_equal(known._scores, scores[: known.n_labels]):
            return cls(classifiers)
        known._grow(classifiers, scores)
        return known

    def _grow(self, classifiers: ClassifierBlocks, scores: FloatArray) -> None:
        for start in range(self.n_labels, classifiers.n_labels, WIDTH):
            numbers = np.arange(start, min(start + WIDTH, classifiers.n_labels))
            points = _csc(classifiers, numbers).T @ self._basis
            self._points.add(np.column_stack((points, classifiers.intercept[numbers])).astype(np.float32))
        self.n_labels, self._classifiers, self._scores = classifiers.n_labels, classifiers, scores

    def top_labels(
        self, classifiers: ClassifierBlocks, X: CSR | FloatArray, k: int, n_candidates: int = CANDIDATES
    ) -> tuple[IntArray, FloatArray]:
        """The best labels that were found for each row, and their scores, (n, min(k, m)) each, best first."""
        wanted = min(check_k(k), self.n_labels)
        found = min(max(n_candidates, wanted), self.n_labels)
        rows = sparse.csr_array(X)
        queries = np.column_stack((rows @ self._basis, np.ones(rows.shape[0]))).astype(np.float32)
        near = np.sort(self._points.search(queries, found)[1], axis=1)  # of two equal scores the older label's is first
        parts = [
            scores_at(classifiers, rows[start : start + _ROWS], np.maximum(near[start : start + _ROWS], 0))
            for start in range(0, rows.shape[0], _ROWS)
        ]
        scores = np.concatenate(parts) if parts else np.empty(near.shape)
        scores[near < 0] = -np.inf  # the graph did not lead to so many
        order = np.argsort(-scores, axis=1, kind="stable")[:, :wanted]
        best, values = np.take_along_axis(near, order, axis=1), np.take_along_axis(scores, order, axis=1)
        if (short := np.flatnonzero((best < 0).any(axis=1))).size:
            best[short], values[short] = top_labels(classifiers, rows[short], wanted)
        return best, values


def scores_at(classifiers: ClassifierBlocks, X: CSR, labels: IntArray) -> FloatArray:
    """Scores (n, k) of k chosen labels for each row, (n, k): the same sums in the same order as all scores."""
    numbers, inverse = np.unique(labels, return_inverse=True)
    scores = sparse_scores(X, _csc(classifiers, numbers))
    return np.take_along_axis(scores, inverse.reshape(labels.shape), axis=1) + classifiers.intercept[labels]


def _probe(classifiers: ClassifierBlocks) -> FloatArray:
    """The scores (m,) of one row of random numbers: those of old labels are the same bits as long as they are."""
    row = np.random.default_rng(_SEED).standard_normal((1, classifiers.n_features))
    return classifiers.scores(sparse.csr_array(row))[0]


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
