"""Random sets: `make_planted_labels`, whose answer is known, and `make_twin`, of the shape of a published set.

Planted sets are numeric, with a sparse label structure: the code and the classifier of every new label are known.

Twins have the shape and the densities of a published set, so that it can be timed without its data. What is kept: rows,
features, labels, average features and labels a row (to within one half of a non-zero), label and feature frequencies
that fall by a power law, labels that occur together, labels that can be learned from the features. What is not:
anything about the meaning of a column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.files import RandomState, check_integer, check_number, make_rng
from streamlabel.errors import DataError
from streamlabel.types import CSC, CSR, Dataset, FloatArray, IntArray
from streamlabel.validation import canonical_labels, default_label_names

MAX_CELLS = 200_000_000  # of a dense float64 matrix; the sets are for tests, not for size
LEAF_SHARE = 0.8  # of the rows of a root label, those that have one of its leaves too
POWER_LAW_SHIFT = 3.0  # frequency of rank r is proportional to (r + shift)^-exponent: a head that is not one label
LABELS_PER_CLUSTER = 20
COHERENCE = 0.6  # share of a row's labels that is drawn from the row's own cluster of labels
SIGNAL_SHARE = 0.4  # share of a row's features that is drawn from the characteristic features of its labels
SIGNAL_LIFT = 2.0  # a characteristic feature weighs 1 + lift times as much
BLOCK_NON_ZEROS = 2_000_000  # rows are made in blocks of about this size: working memory does not grow with n_rows
MAX_NON_ZEROS, MAX_COLUMNS = 2**31 - 1, 10_000_000
DRAWN_ROUNDS, UNIFORM_ROUNDS = 6, 3

Propose = Callable[[IntArray], IntArray]


@dataclass(frozen=True, eq=False)
class PlantedLabels:
    """Examples, past and new labels, and the answer.

    Attributes
    ----------
    X : (n_rows, n_features) float64, dense
    Y_past : csr_array (n_rows, n_past) of 0/1
    Y_new : csr_array (n_rows, n_new) of 0/1
    codes : csc_array (n_past, n_new) float64, entries +1 and -1: the structure S
    W : (n_features, n_past) float64, orthonormal columns: the classifiers of the past labels
    """

    X: FloatArray
    Y_past: CSR
    Y_new: CSR
    codes: CSC
    W: FloatArray

    @property
    def W_new(self) -> FloatArray:
        """The classifiers of the new labels, W S (n_features, n_new)."""
        return np.asarray((self.codes.T @ self.W.T).T)


def make_planted_labels(
    n_rows: int = 500,
    n_features: int = 60,
    n_past: int = 30,
    n_new: int = 10,
    code_size: int = 3,
    noise: float = 0.0,
    *,
    feature_noise: float = 0.0,
    families_per_row: float = 2.0,
    random_state: RandomState = 0,
) -> PlantedLabels:
    """New labels that are exact signed sums of ``code_size`` past labels, and features that carry all labels linearly.

    Past labels come in families: one root and leaves, which exclude each other and imply the root. A row has about
    ``families_per_row`` roots and at most one leaf of each. A new label is either the union of ``code_size`` leaves
    of one family (entries +1) or a root without ``code_size - 1`` of its leaves (one +1, the others -1), as a coin
    falls. No two new labels have the same code.

    Known by construction, with ``noise = feature_noise = 0``:

    - ``Y_new = Y_past S`` exactly, and ``[1, Y_past]`` has full column rank. So S is the one least-squares code, with
      or without an intercept, and the lasso code tends to S as lam goes to 0. With 0/1 labels that needs no intercept;
      with labels coded -1/+1 it needs one, unless the entries of a code sum to 1.
    - ``X W = Y_past`` and ``X W S = Y_new``, with intercept 0, up to rounding. For -1/+1 labels that is 2 W with
      intercept -1. With ``n_rows > n_features``, W and W S are the only such classifiers (with probability 1), so
      ridge tends to them as beta goes to 0, and for every beta the ridge toward the anchor W S is W S itself.
    - Every label has a positive and a negative row.

    ``noise`` then takes this share of the positives of every label, past and new alike and independently, and makes
    as many negative rows positive instead: frequencies stay, answers do not. ``feature_noise`` is the standard
    deviation of Gaussian noise added to X. S and W are returned as planted.

    Needs ``n_features >= n_past``, ``n_rows >= n_past + 1`` and ``n_past >= code_size + 1``.
    """
    code_size = check_integer(code_size, "code_size", low=1)
    n_past = check_integer(n_past, "n_past (a root label and code_size leaves at least)", low=code_size + 1)
    n_features = check_integer(n_features, "n_features (n_past at least)", low=n_past)
    n_rows = check_integer(n_rows, "n_rows (n_past + 1 at least)", low=n_past + 1)
    n_new = check_integer(n_new, "n_new", low=1)
    check_integer(n_rows * max(n_features, n_new), "the number of cells of X or of Y_new", low=1, high=MAX_CELLS)
    noise = check_number(noise, "noise", low=0.0, high=1.0)
    feature_noise = check_number(feature_noise, "feature_noise", low=0.0)
    families_per_row = check_number(families_per_row, "families_per_row", low=0.0)
    rng = make_rng(random_state)

    families = np.array_split(rng.permutation(n_past), max(1, n_past // (2 * code_size)))
    codes = _draw_codes(families, n_past, n_new, code_size, rng)
    B_past = _draw_past_labels(families, n_rows, n_past, families_per_row, rng)
    B_new = np.asarray((codes.T @ B_past.T).T)
    W = np.linalg.qr(rng.standard_normal((n_features, n_past)))[0]
    X = _features_of(B_past, W, rng) + feature_noise * rng.standard_normal((n_rows, n_features))
    return PlantedLabels(
        X=X,
        Y_past=canonical_labels(_exchange_answers(B_past, noise, rng)),
        Y_new=canonical_labels(_exchange_answers(B_new, noise, rng)),
        codes=codes,
        W=W,
    )


def _draw_past_labels(
    families: Sequence[IntArray], n_rows: int, n_past: int, families_per_row: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Rows of roots and leaves. The first n_past + 1, before shuffling, make [1, B] a full-rank matrix:
    nothing; each root alone; each leaf with its root."""
    B = np.zeros((n_rows, n_past))
    rows = np.arange(n_past + 1, n_rows)
    for family in families:
        root, leaves = family[0], family[1:]
        active = rows[rng.random(len(rows)) < families_per_row / len(families)]
        B[active, root] = 1.0
        with_leaf = active[rng.random(len(active)) < LEAF_SHARE]
        B[with_leaf, rng.choice(leaves, len(with_leaf))] = 1.0
        B[1 + family, root] = 1.0
        B[1 + leaves, leaves] = 1.0
    return B[rng.permutation(n_rows)]


def _draw_codes(families: Sequence[IntArray], n_past: int, n_new: int, code_size: int, rng: np.random.Generator) -> CSC:
    n_unions = sum(math.comb(len(family) - 1, code_size) for family in families)
    n_differences = sum(math.comb(len(family) - 1, code_size - 1) for family in families)
    if n_new > n_unions + n_differences:
        raise DataError(
            f"n_new is {n_new:,}; {n_past:,} past labels allow {n_unions + n_differences:,} different codes of "
            f"size {code_size}: raise n_past or lower n_new"
        )
    drawn: dict[tuple[int, ...], bool] = {}  # sorted members -> whether it is a union
    while len(drawn) < n_new:
        family = families[int(rng.integers(len(families)))]
        is_union = bool(rng.random() < 0.5)
        leaves = rng.permutation(family[1:])
        members = leaves[:code_size] if is_union else np.append(leaves[: code_size - 1], family[0])
        drawn.setdefault(tuple(np.sort(members).tolist()), is_union)
    roots = {int(family[0]) for family in families}
    signs = [1.0 if is_union or j in roots else -1.0 for members, is_union in drawn.items() for j in members]
    rows = [j for members in drawn for j in members]
    return sparse.csc_array((signs, (rows, np.repeat(np.arange(n_new), code_size))), shape=(n_past, n_new))


def _features_of(B: NDArray[np.float64], W: FloatArray, rng: np.random.Generator) -> NDArray[np.float64]:
    """X = B W' + E with E W = 0, so that X W = B (W has orthonormal columns)."""
    E = rng.standard_normal((B.shape[0], W.shape[0]))
    for _ in range(2):  # the second projection removes the rounding of the first
        E -= (E @ W) @ W.T
    return np.asarray(B @ W.T + E)


def _exchange_answers(B: NDArray[np.float64], noise: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """B with a share of every column's positives moved to rows that were negative."""
    B = B.copy()
    for column in B.T:
        positives, negatives = np.flatnonzero(column), np.flatnonzero(column == 0)
        n_moved = min(round(noise * len(positives)), len(negatives))
        column[rng.permutation(positives)[:n_moved]] = 0.0
        column[rng.permutation(negatives)[:n_moved]] = 1.0
    return B


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


def _interval(ends: NDArray[np.number], numbers: NDArray[np.number]) -> IntArray:
    """The interval between neighbouring ``ends`` that each number lies in."""
    return np.clip(np.searchsorted(ends, numbers, side="right") - 1, 0, len(ends) - 2)


def _draw_clusters(n_labels: int, exponent: float, rng: np.random.Generator) -> _Clusters:
    order = rng.permutation(n_labels)
    popularity = rng.permutation(_power_law(n_labels, exponent))
    n_clusters = max(1, n_labels // LABELS_PER_CLUSTER)
    start = np.linspace(0, n_labels, n_clusters + 1).astype(np.intp)
    return _Clusters(order, start, _cumulated(popularity))


def _draw_labels(n_rows: int, labels_per_row: float, clusters: _Clusters, rng: np.random.Generator) -> CSR:
    n_labels = len(clusters.order)
    quotas = _draw_quotas(n_rows, labels_per_row, n_labels, rng)
    # The cluster of a row: that of a label drawn by popularity.
    cluster = _interval(clusters.start, _interval(clusters.cumulated, rng.random(n_rows)))
    low, high = clusters.cumulated[clusters.start[cluster]], clusters.cumulated[clusters.start[cluster + 1]]

    def propose(rows: IntArray) -> IntArray:
        inside = rng.random(len(rows)) < COHERENCE
        start, end = np.where(inside, low[rows], 0.0), np.where(inside, high[rows], 1.0)
        return clusters.order[_interval(clusters.cumulated, start + (end - start) * rng.random(len(rows)))]

    pairs = np.empty(0, dtype=np.int64)
    slots = np.repeat(np.arange(n_rows), quotas)
    if len(slots) >= n_labels:  # a first row for every label
        pairs = np.sort(rng.permutation(slots)[:n_labels] * n_labels + rng.permutation(n_labels))
    columns = _fill_rows(quotas, n_labels, propose, rng, pairs)
    indptr = np.concatenate([[0], np.cumsum(quotas)]).astype(np.int32)
    return sparse.csr_array((np.ones(len(columns), dtype=np.int8), columns, indptr), shape=(n_rows, n_labels))


def _draw_characteristics(
    n_features: int, exponent: float, features_per_label: int, clusters: _Clusters, rng: np.random.Generator
) -> _Features:
    """Characteristic features are drawn by a flatter law than the others: rarely among the most frequent ones."""
    of_rank = rng.permutation(n_features).astype(np.int32)
    flat = _cumulated(_power_law(n_features, exponent / 2))
    n_labels, n_clusters = len(clusters.order), len(clusters.start) - 1
    n_shared = features_per_label // 2

    def draw(shape: tuple[int, int]) -> NDArray[np.int32]:
        return np.asarray(of_rank[_interval(flat, rng.random(shape))])

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
    return sparse.csr_array((data, indices, indptr), shape=(n_rows, n_features))


def _feature_proposals(Y: CSR, features: _Features, rng: np.random.Generator) -> Propose:
    cumulated = _cumulated(features.probability)
    n_labels = np.diff(Y.indptr)

    def propose(rows: IntArray) -> IntArray:
        columns = features.of_rank[_interval(cumulated, rng.random(len(rows)))]
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
        pairs = np.concatenate([pairs, rows * n_columns + columns])
        pairs.sort()
        pairs = pairs[np.concatenate([[True], pairs[1:] != pairs[:-1]])]  # np.unique takes several times as long
    missing = quotas - np.bincount(pairs // n_columns, minlength=len(quotas))
    extra = [pairs]
    for row in np.flatnonzero(missing):
        span = np.searchsorted(pairs, [row * n_columns, (row + 1) * n_columns])
        free = np.setdiff1d(np.arange(n_columns), pairs[slice(*span)] - row * n_columns, assume_unique=True)
        extra.append(row * n_columns + rng.choice(free, missing[row], replace=False))
    return (np.sort(np.concatenate(extra)) % n_columns).astype(np.int32)
