"""Twins: random sets with the shape and the densities of a published one, so that it can be timed without its data.

What is kept: rows, features, labels, average features and labels a row (to within one half of a non-zero), label and
feature frequencies that fall by a power law, labels that occur together, labels that can be learned from the features.
What is not: anything about the meaning of a column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.files import RandomState, check_integer, check_number, make_rng
from streamlabel.errors import DataError
from streamlabel.types import CSR, Dataset, IntArray
from streamlabel.validation import default_label_names

POWER_LAW_SHIFT = 3.0  # frequency of rank r is proportional to (r + shift)^-exponent: a head that is not one label
LABELS_PER_CLUSTER = 20
COHERENCE = 0.6  # share of a row's labels that is drawn from the row's own cluster of labels
SIGNAL_SHARE = 0.4  # share of a row's features that is drawn from the characteristic features of its labels
SIGNAL_LIFT = 2.0  # a characteristic feature weighs 1 + lift times as much
BLOCK_NON_ZEROS = 2_000_000  # rows are made in blocks of about this size: working memory does not grow with n_rows
MAX_NON_ZEROS, MAX_COLUMNS = 2**31 - 1, 10_000_000
DRAWN_ROUNDS, UNIFORM_ROUNDS = 6, 3

Propose = Callable[[IntArray], IntArray]


def make_twin(
    n_rows: int,
    n_features: int,
    n_labels: int,
    features_per_row: float,
    labels_per_row: float,
    *,
    label_exponent: float = 1.0,
    feature_exponent: float = 1.0,
    features_per_label: int | None = None,
    random_state: RandomState = 0,
) -> Dataset:
    """A random set of the given shape; the arguments are the numbers that a catalogue entry publishes.

    Parameters
    ----------
    n_rows, n_features, n_labels : the shape
    features_per_row, labels_per_row : averages; the totals are met exactly (rounded), single rows vary. With an
        average of 1 or more no row is empty, and where there are labels enough to go round every label occurs.
    label_exponent, feature_exponent : frequencies fall like rank^-exponent before repeated draws within a row are
        replaced, which flattens the head; 0 gives equal frequencies
    features_per_label : characteristic features of a label, 3 to 10 by the densities unless given. Half of them are
        shared with its cluster of about 20 labels, which occur together more often than chance.

    Returns
    -------
    Dataset with X float32, rows of norm 1, values like tf-idf; columns in no particular order.

    >>> twin = make_twin(200, 500, 40, features_per_row=30, labels_per_row=2.4)
    >>> twin.X.shape, twin.X.nnz, twin.Y.shape, twin.Y.nnz
    ((200, 500), 6000, (200, 40), 480)
    """
    n_rows = check_integer(n_rows, "n_rows", low=1, high=MAX_NON_ZEROS)
    n_features = check_integer(n_features, "n_features", low=1, high=MAX_COLUMNS)
    n_labels = check_integer(n_labels, "n_labels", low=1, high=MAX_COLUMNS)
    features_per_row = check_number(features_per_row, "features_per_row", low=0.0, high=n_features)
    labels_per_row = check_number(labels_per_row, "labels_per_row", low=0.0, high=n_labels)
    label_exponent = check_number(label_exponent, "label_exponent", low=0.0, high=5.0)
    feature_exponent = check_number(feature_exponent, "feature_exponent", low=0.0, high=5.0)
    if features_per_label is None:
        features_per_label = int(np.clip(features_per_row / max(labels_per_row, 1.0), 3, 10))
    features_per_label = check_integer(features_per_label, "features_per_label", low=1, high=1000)
    n_non_zeros = n_rows * max(features_per_row, labels_per_row)
    if n_non_zeros > MAX_NON_ZEROS:
        raise DataError(f"{n_non_zeros:.3g} non-zeros, {MAX_NON_ZEROS:.3g} at most; ask for a smaller twin")
    rng = make_rng(random_state)
    try:
        clusters = _draw_clusters(n_labels, label_exponent, rng)
        Y = _draw_labels(n_rows, labels_per_row, clusters, rng)
        features = _draw_characteristics(n_features, feature_exponent, features_per_label, clusters, rng)
        X = _draw_features(features_per_row, Y, features, rng)
    except MemoryError:
        raise DataError(f"{n_non_zeros:.3g} non-zeros do not fit into memory; ask for a smaller twin") from None
    shape = f"{n_rows:,} x {n_features:,} x {n_labels:,}"
    return Dataset(X, Y, default_label_names(n_labels), source=f"twin of shape {shape}")


@dataclass(frozen=True, eq=False)
class _Clusters:
    """Labels side by side by cluster: place p holds label ``order[p]``; cluster c owns places start[c] .. start[c+1].

    ``cumulated`` (n_labels + 1,) sums the label probabilities in that order, so a uniform draw from a cluster's
    interval is a draw from the cluster by popularity, and one from [0, 1) a draw from all labels.
    """

    order: IntArray
    start: IntArray
    cumulated: NDArray[np.float64]

    def draw(self, low: NDArray[np.float64], high: NDArray[np.float64], rng: np.random.Generator) -> IntArray:
        """One label for each interval."""
        places = np.searchsorted(self.cumulated, low + (high - low) * rng.random(len(low)), side="right") - 1
        return self.order[np.clip(places, 0, len(self.order) - 1)]


@dataclass(frozen=True, eq=False)
class _Features:
    """The probability of every rank, the feature of every rank, and the features of every label (n_labels, k)."""

    probability: NDArray[np.float64]
    of_rank: NDArray[np.int32]
    of_label: NDArray[np.int32]


def _power_law(n: int, exponent: float) -> NDArray[np.float64]:
    weights = (np.arange(n) + 1 + POWER_LAW_SHIFT) ** -exponent
    return np.asarray(weights / weights.sum())


def _cumulated(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(probabilities)])


def _draw_clusters(n_labels: int, exponent: float, rng: np.random.Generator) -> _Clusters:
    order = rng.permutation(n_labels)
    popularity = rng.permutation(_power_law(n_labels, exponent))
    n_clusters = max(1, n_labels // LABELS_PER_CLUSTER)
    start = np.linspace(0, n_labels, n_clusters + 1).astype(np.intp)
    return _Clusters(order, start, _cumulated(popularity))


def _draw_labels(n_rows: int, labels_per_row: float, clusters: _Clusters, rng: np.random.Generator) -> CSR:
    n_labels = len(clusters.order)
    quotas = _draw_quotas(n_rows, labels_per_row, n_labels, rng)
    n_clusters = len(clusters.start) - 1
    # The cluster of a row: that of a label drawn by popularity.
    place = np.searchsorted(clusters.cumulated, rng.random(n_rows), side="right") - 1
    cluster = np.clip(np.searchsorted(clusters.start, place, side="right") - 1, 0, n_clusters - 1)
    low, high = clusters.cumulated[clusters.start[cluster]], clusters.cumulated[clusters.start[cluster + 1]]

    def propose(rows: IntArray) -> IntArray:
        inside = rng.random(len(rows)) < COHERENCE
        return clusters.draw(np.where(inside, low[rows], 0.0), np.where(inside, high[rows], 1.0), rng)

    pairs = np.empty(0, dtype=np.int64)
    slots = np.repeat(np.arange(n_rows), quotas)
    if len(slots) >= n_labels:  # a first row for every label
        pairs = np.sort(rng.permutation(slots)[:n_labels] * n_labels + rng.permutation(n_labels))
    columns = _fill_rows(quotas, n_labels, propose, rng, pairs)
    indptr = np.concatenate([[0], np.cumsum(quotas)]).astype(np.int32)
    Y: CSR = sparse.csr_array((np.ones(len(columns), dtype=np.int8), columns, indptr), shape=(n_rows, n_labels))
    return Y


def _draw_characteristics(
    n_features: int, exponent: float, features_per_label: int, clusters: _Clusters, rng: np.random.Generator
) -> _Features:
    """Characteristic features are drawn by a flatter law than the others: rarely among the most frequent ones."""
    of_rank = rng.permutation(n_features).astype(np.int32)
    flat = _cumulated(_power_law(n_features, exponent / 2))
    n_labels, n_clusters = len(clusters.order), len(clusters.start) - 1
    n_shared = features_per_label // 2

    def draw(shape: tuple[int, int]) -> NDArray[np.int32]:
        ranks = np.searchsorted(flat, rng.random(shape), side="right") - 1
        return np.asarray(of_rank[np.clip(ranks, 0, n_features - 1)])

    pools = draw((n_clusters, features_per_label))
    cluster = np.empty(n_labels, dtype=np.intp)
    cluster[clusters.order] = np.repeat(np.arange(n_clusters), np.diff(clusters.start))
    shared = pools[cluster[:, None], rng.integers(features_per_label, size=(n_labels, n_shared))]
    of_label = np.hstack([shared, draw((n_labels, features_per_label - n_shared))])
    return _Features(_power_law(n_features, exponent), of_rank, of_label)


def _draw_features(features_per_row: float, Y: CSR, features: _Features, rng: np.random.Generator) -> CSR:
    n_rows, n_features = Y.shape[0], len(features.of_rank)
    quotas = _draw_quotas(n_rows, features_per_row, n_features, rng)
    indptr = np.concatenate([[0], np.cumsum(quotas)]).astype(np.int32)
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.float32)
    idf = np.empty(n_features)
    idf[features.of_rank] = 1.0 - np.log(np.minimum(1.0, max(1.0, features_per_row) * features.probability))
    step = max(1, int(BLOCK_NON_ZEROS / max(1.0, features_per_row)))
    for first in range(0, n_rows, step):
        rows = slice(first, min(first + step, n_rows))
        cells = slice(indptr[rows.start], indptr[rows.stop])
        propose = _feature_proposals(Y[rows], features, rng)
        indices[cells] = _fill_rows(quotas[rows], n_features, propose, rng, np.empty(0, dtype=np.int64))
        noise = np.exp(0.5 * rng.standard_normal(cells.stop - cells.start))
        block = sparse.csr_array(
            (noise * idf[indices[cells]], indices[cells], indptr[rows.start : rows.stop + 1] - indptr[rows.start]),
            shape=(rows.stop - rows.start, n_features),
        )
        data[cells] = _lifted(block, Y[rows], features.of_label).data
    X: CSR = sparse.csr_array((data, indices, indptr), shape=(n_rows, n_features))
    return X


def _feature_proposals(Y: CSR, features: _Features, rng: np.random.Generator) -> Propose:
    cumulated = _cumulated(features.probability)
    n_labels = np.diff(Y.indptr)

    def propose(rows: IntArray) -> IntArray:
        ranks = np.searchsorted(cumulated, rng.random(len(rows)), side="right") - 1
        columns = features.of_rank[np.clip(ranks, 0, len(features.of_rank) - 1)]
        signal = np.flatnonzero((rng.random(len(rows)) < SIGNAL_SHARE) & (n_labels[rows] > 0))
        chosen = rows[signal]
        labels = Y.indices[Y.indptr[chosen] + (rng.random(len(chosen)) * n_labels[chosen]).astype(np.intp)]
        columns[signal] = features.of_label[labels, rng.integers(features.of_label.shape[1], size=len(labels))]
        return columns

    return propose


def _lifted(block: CSR, Y: CSR, of_label: NDArray[np.int32]) -> CSR:
    """``block`` with the characteristic features of a row's labels lifted, and rows of norm 1."""
    n_labels, k = of_label.shape
    marks = sparse.csr_array(
        (np.ones(of_label.size), of_label.ravel(), np.arange(0, n_labels * k + 1, k)), shape=(n_labels, block.shape[1])
    )
    signal = Y.astype(np.float64) @ marks
    signal.data[:] = SIGNAL_LIFT
    lifted = (block + block.multiply(signal)).tocsr()
    norms = np.sqrt(lifted.multiply(lifted).sum(axis=1))
    lifted.data /= np.repeat(norms, np.diff(lifted.indptr))
    return lifted


def _draw_quotas(n_rows: int, per_row: float, n_columns: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Entries for every row: unequal, at least 1 where the average is, at most n_columns; the total is exact."""
    total = round(n_rows * per_row)
    quotas = np.full(n_rows, 1 if per_row >= 1 else 0, dtype=np.int64)
    activity = rng.gamma(4.0, size=n_rows)
    while (missing := total - int(quotas.sum())) > 0:
        weights = np.where(quotas < n_columns, activity, 0.0)
        quotas = np.minimum(quotas + rng.multinomial(missing, weights / weights.sum()), n_columns)
    return quotas


def _fill_rows(
    quotas: IntArray, n_columns: int, propose: Propose, rng: np.random.Generator, pairs: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Different columns for every row, as many as its quota, sorted within the row.

    Pairs are numbers row * n_columns + column, sorted; ``pairs`` are there from the start. A column that a row has
    already is drawn again, after some rounds uniformly; what is then still missing comes from the row's free columns.
    """
    for attempt in range(DRAWN_ROUNDS + UNIFORM_ROUNDS):
        missing = quotas - np.bincount(pairs // n_columns, minlength=len(quotas))
        rows = np.repeat(np.arange(len(quotas)), missing)
        if not rows.size:
            break
        columns = propose(rows) if attempt < DRAWN_ROUNDS else rng.integers(n_columns, size=len(rows))
        pairs = _sorted_unique(np.concatenate([pairs, rows * n_columns + columns]))
    missing = quotas - np.bincount(pairs // n_columns, minlength=len(quotas))
    extra = [pairs]
    for row in np.flatnonzero(missing):
        span = np.searchsorted(pairs, [row * n_columns, (row + 1) * n_columns])
        free = np.setdiff1d(np.arange(n_columns), pairs[slice(*span)] - row * n_columns, assume_unique=True)
        extra.append(row * n_columns + rng.choice(free, missing[row], replace=False))
    return (np.sort(np.concatenate(extra)) % n_columns).astype(np.int32)


def _sorted_unique(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """``np.unique``, which hashes whole numbers first and takes several times as long on millions of them."""
    numbers.sort()
    return numbers[np.concatenate([[True], numbers[1:] != numbers[:-1]])]
