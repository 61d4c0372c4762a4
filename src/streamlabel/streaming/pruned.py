"""Labels so many that all their weights would not fit into memory: the largest weights are kept only.

`fit` with ``prune`` learns a block of labels at a time and prunes it at once. With the factor of the rows a classifier
is a sum over its positive rows, of what each row has in it: ``W = P'Y``, ``P = M Xc``. So rows times features are held
once, and a rare label costs next to nothing.

One bound holds for the weights of all labels: a frequent label keeps many, a rare one few. It is that of so many
a label on average, or chosen: all labels are learned from the other rows first, and held-out ones tell the fewest
weights with which P@1, 3 and 5 are at most `LOSS` points, or one held-out row, below all.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.classifier.ridge import HatSpectrum
from streamlabel.classifier.single_precision import SingleRidge
from streamlabel.errors import ConvergenceWarning
from streamlabel.metrics.topk import BestLabels
from streamlabel.streaming.blocks import ClassifierBlocks, extended
from streamlabel.types import CSC, CSR, FloatArray, IntArray

CANDIDATES = (8, 16, 32, 64, 128, 256, 512)  # weights a label, on average
MOST_HELD = 2500  # rows; a fifth at most
LOSS = 0.1  # points of P@k: half of what may be lost
WIDTH = 4096  # labels that are scored at once
_FEWEST = 8  # weights of a label, however small
_SAMPLED = 1024  # labels, by which bounds are found
_BLOCK_CELLS = 1 << 24  # of float32, 64 MB
_ROUGH = 0.1  # of the relative residual: at 0.02 weights were off by a thousandth
_KS = (1, 3, 5)


class SparseBlocks(ClassifierBlocks):
    """Classifiers of which few weights are not zero, as float32 like those of a store; products are in float64.

    A column of a sparse product is a sum of its own, so the score of an old label stays the same bits at any width.
    """

    def __init__(
        self, n_features: int, intercept: FloatArray | None = None, parts: tuple[Any, ...] | None = None
    ) -> None:
        super().__init__(n_features, intercept=intercept)
        none: tuple[Any, ...] = (np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), {})
        # of a csc matrix, growing: ends, features, values; and blocks of it by rows, those that were asked for
        self._ends, self._features, self._values, self._by_rows = none if parts is None else parts

    def empty(self) -> ClassifierBlocks:
        return SparseBlocks(self.n_features)

    def appended(self, weights: Any, intercept: FloatArray) -> ClassifierBlocks:
        """These classifiers, then ``weights`` (d, k), of which the zeros are not kept."""
        more = sparse.csc_array(weights)
        parts = (
            extended(self._ends, self._ends[-1] + more.indptr[1:]),
            extended(self._features, more.indices),
            extended(self._values, more.data),
            dict(self._by_rows),
        )
        return SparseBlocks(self.n_features, extended(self.intercept, intercept), parts)

    def replaced(self, labels: IntArray, weights: FloatArray, intercept: FloatArray) -> ClassifierBlocks:
        found, offsets = self.columns(np.arange(self.n_labels)).tolil(), self.intercept.copy()
        found[:, labels], offsets[labels] = weights, intercept
        return SparseBlocks(self.n_features).appended(sparse.csc_array(found), offsets)

    def scores(self, X: CSR | FloatArray, labels: IntArray | None = None) -> FloatArray:
        if labels is None:
            return super().scores(X)
        return sparse_scores(X, self.columns(labels)) + self.intercept[np.asarray(labels)]

    def column_blocks(self, X: CSR | FloatArray) -> Iterator[tuple[int, FloatArray]]:
        for start in range(0, self.n_labels, WIDTH):
            stop = min(start + WIDTH, self.n_labels)
            block = self._by_rows.get(start)
            if block is None or block.shape[1] < stop - start:  # labels came since
                block = self._by_rows[start] = self.columns(np.arange(start, stop)).tocsr()
            yield start, sparse_scores(X, block) + self.intercept[start:stop]

    def columns(self, labels: IntArray) -> CSC:
        labels = np.asarray(labels)
        starts = self._ends[labels]
        sizes = self._ends[labels + 1] - starts
        place, indptr = spans(starts, sizes)
        parts = (self._values[place].astype(np.float64), self._features[place], indptr)
        return sparse.csc_array(parts, shape=(self.n_features, len(labels)))

    def weights(self, labels: IntArray | None = None) -> FloatArray:
        return self.columns(np.arange(self.n_labels) if labels is None else labels).toarray()


def spans(starts: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers from each start on, so many, one after the other; and where each span begins and the last ends."""
    ends = np.concatenate(([0], np.cumsum(sizes)))
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], sizes), ends


def sparse_scores(X: CSR | FloatArray, weights: Any) -> FloatArray:
    """``X W`` (n, k) of sparse weights, as an array."""
    product: Any = X @ weights
    return np.asarray(product if isinstance(product, np.ndarray) else product.toarray())


def largest(rows: FloatArray, least: float) -> tuple[IntArray, IntArray, NDArray[np.float32]]:
    """Rows, columns and values of the weights of classifiers (k, d) that reach ``least``; of each `_FEWEST` anyway."""
    size = np.abs(rows)
    kept, few = size >= least, min(_FEWEST, rows.shape[1])
    poor = np.flatnonzero(kept.sum(axis=1) < few)
    if poor.size:
        first = rows.shape[1] - few
        kept[poor[:, None], np.argpartition(size[poor], first, axis=1)[:, first:] if first else np.arange(few)] = True
        kept[poor] &= size[poor] > 0.0
    label, feature = np.nonzero(kept)
    return label, feature, rows[label, feature].astype(np.float32)


def pruned(weights: FloatArray, least: float) -> CSC:
    """Classifiers (d, k) without the weights that are smaller than ``least``, as float32."""
    label, feature, values = largest(np.ascontiguousarray(weights.T), least)
    return sparse.csc_array((values, (feature, label)), shape=weights.shape)


@dataclass(frozen=True, eq=False)
class PrunedFit:
    """Pruned classifiers of m labels, and what is known of them.

    weights : csc_array (d, m), float32;   least : the bound that their weights reach
    leverages, hat : the hat diagonal of the judged rows, and what it says of the whole
    unseen : (e, m), float32, scores of the judged rows under classifiers, pruned too, that did not learn from them
    precision : P@1, 3, 5 in percent on held-out rows, by weights a label (0: all); {} if no number was tried
    """

    weights: CSC
    intercept: FloatArray
    least: float
    unseen: NDArray[np.float32]
    precision: dict[int, list[float]]
    leverages: FloatArray
    hat: HatSpectrum


def fit_pruned(
    X: CSR | FloatArray, labels: CSR, beta: float, prune: int | str, held: IntArray, judged: IntArray
) -> PrunedFit:
    """Learn all labels, a block at a time; first without the held-out rows, for scores of rows that were not seen.

    prune : weights a label on average, or "auto";   held : the rows that "auto" judges by;   judged : some of these
    """
    n_features, n_labels = int(X.shape[1]), int(labels.shape[1])
    choose = isinstance(prune, str)
    tried = sorted({min(size, n_features) for size in CANDIDATES}) if isinstance(prune, str) else [prune]
    held = held if choose else judged
    others = np.setdiff1d(np.arange(X.shape[0]), held)
    few, truth, X_held = np.searchsorted(held, judged), labels[held], X[held]
    unseen = np.empty((len(tried), len(judged), n_labels), np.float32)
    best = {size: BestLabels(len(held), min(_KS[-1], n_labels)) for size in (0, *tried)} if choose else {}
    single, rates = X_held.astype(np.float32), Rates(X[others], labels[others])
    learned = Influences(SingleRidge(X[others], beta), labels[others])
    bounds = learned.bounds(tried)
    for part, rows in learned.blocks():
        numbers = np.arange(part.start, part.stop)
        if choose:
            best[0].add(numbers, np.asarray(single @ rows.T, np.float64) + rates.intercept(part, rows.T))
        label, feature, values = largest(rows, bounds[-1])
        for place, size in enumerate(tried):
            kept = np.abs(values) >= bounds[place] if place < len(tried) - 1 else slice(None)
            weights = sparse.csc_array((values[kept], (feature[kept], label[kept])), shape=rows.T.shape)
            scores = sparse_scores(X_held, weights) + rates.intercept(part, weights)
            unseen[place][:, part] = scores[few]
            if choose:
                best[size].add(numbers, scores)
    del learned
    precision = {size: _precision(truth, found.result()[0]) for size, found in best.items()}
    place = _choice(precision, 100.0 / len(held)) if choose else 0
    ridge = SingleRidge(X, beta)
    leverages, hat = ridge.leverages(judged)
    learned = Influences(ridge, labels)
    (least,) = learned.bounds([tried[place]])
    weights = sparse.csc_array(sparse.hstack([pruned(rows.T, least) for _, rows in learned.blocks()], format="csc"))
    intercept = Rates(X, labels).intercept(slice(None), weights)
    return PrunedFit(weights, intercept, least, unseen[place], precision, leverages, hat)


class Rates:
    """The means of features and labels, by which pruned classifiers get the intercepts that are best for them."""

    def __init__(self, X: CSR | FloatArray, labels: CSR) -> None:
        self._mean = np.asarray(X.mean(axis=0)).ravel()
        self._rates = np.asarray(labels.sum(axis=0)).ravel() / labels.shape[0]

    def intercept(self, labels: slice, weights: Any) -> FloatArray:
        """The intercepts of some labels, of which these are the classifiers (d, k)."""
        return np.asarray(self._rates[labels] - self._mean @ weights)


class Influences:
    """What each row has in the classifiers of labels (n, m); the factor that it is made of is used up."""

    def __init__(self, ridge: SingleRidge, labels: CSR) -> None:
        self._of_rows = ridge.influences()
        self._labels = labels.T.tocsr().astype(np.float32)
        few = slice(0, 16)
        worst = ridge.violation(labels[:, few], self.weights(few).T.astype(np.float64))
        if worst > _ROUGH:
            warnings.warn(
                f"a factor in single precision got to {worst:.1e} only; raise beta, or scale X",
                ConvergenceWarning,
                stacklevel=2,
            )

    def weights(self, labels: slice | IntArray) -> FloatArray:
        """The classifiers (k, d) of some labels, with all weights, float32."""
        return np.asarray(self._labels[labels] @ self._of_rows)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Iterate over all labels in blocks: which, and their classifiers (k, d)."""
        n_labels, width = self._labels.shape[0], int(np.clip(_BLOCK_CELLS // self._of_rows.shape[1], 16, WIDTH))
        for start in range(0, n_labels, width):
            part = slice(start, min(start + width, n_labels))
            yield part, self.weights(part)

    def bounds(self, sizes: Sequence[int]) -> list[float]:
        """The bounds that so many weights a label reach on average, by a sample of the labels."""
        n_labels, n_features = self._labels.shape[0], self._of_rows.shape[1]
        n_sampled = min(n_labels, _SAMPLED, max(4 * _BLOCK_CELLS // n_features, 16))
        sample = np.sort(np.random.default_rng(0).permutation(n_labels)[:n_sampled])
        values = np.abs(self.weights(sample)).ravel()
        places = [max(len(values) - size * n_sampled, 0) for size in sizes]
        values.partition(places)
        return [float(values[place]) for place in places]


def _precision(truth: CSR, found: IntArray) -> list[float]:
    rows = np.repeat(np.arange(len(found)), found.shape[1])
    hits = np.asarray(truth[rows, found.ravel()]).reshape(found.shape)
    return [100.0 * float(hits[:, :k].mean()) for k in _KS]


def _choice(precision: dict[int, list[float]], least: float = 0.0) -> int:
    """The place of the fewest weights that lose little enough; ``least`` is what one row makes."""
    losses = [max(a - b for a, b in zip(precision[0], one, strict=True)) for one in list(precision.values())[1:]]
    for place, loss in enumerate(losses):
        if loss <= max(LOSS, least):
            return place
    warnings.warn(
        f"even {list(precision)[-1]} weights a label lose {losses[-1]:.2f} points of P@k on held-out rows; give prune "
        "a larger number",
        ConvergenceWarning,
        stacklevel=2,
    )
    return len(losses) - 1
