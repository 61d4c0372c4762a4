"""Measures over the labels of a row: P@k, nDCG@k, PSP@k, ranking loss, coverage, label ranking average precision.

Every function takes ``Y_true`` (n_rows, n_labels), 0/1, dense or sparse, and ``scores``: dense, sparse or `RowBlocks`
(`metrics.row_blocks` says what a missing score means). Rows are averaged with equal weight over *all* rows, and the
per-row values are added without rounding error, so the order of the rows and the cut into blocks do not matter.

Conventions of the three "at k": ties go to the lower column; the divisor stays k when a row has fewer than k labels
to offer (k > n_labels, or fewer than k scores in a sparse row); a row with no true label counts 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.metrics.order import Order, cell_keys, contains
from streamlabel.metrics.row_blocks import Block, as_block, check_truth, iter_parts
from streamlabel.metrics.topk import check_k, top_k_of_block
from streamlabel.types import CSR, FloatArray

AT_K = ("P@k", "nDCG@k", "PSP@k")
BY_ORDER = ("ranking_loss", "coverage", "label_ranking_average_precision")
RANKING_METRICS = AT_K + BY_ORDER


def precision_at_k(Y_true: Any, scores: Any, k: int = 5) -> float:
    """P@k: true labels among the k best of a row, divided by k; mean over all rows.

    Ties: the lower column first. A row with no true label counts 0. The divisor is k, also when k > n_labels.

    >>> precision_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.1], [0.2, 0.3, 0.3]], k=2)
    0.5
    """
    return _single(Y_true, scores, "P@k", k=k)


def ndcg_at_k(Y_true: Any, scores: Any, k: int = 5) -> float:
    """nDCG@k: discounted hits among the k best labels of a row, relative to the best possible; mean over all rows.

    A hit counts 1/log2(1 + place); the sum is divided by the largest one the row allows (min(k, number of true labels)
    hits in the first places). Ties: the lower column first (scikit-learn's ``ndcg_score`` averages over tied orders
    unless told otherwise). A row with no true label counts 0.
    """
    return _single(Y_true, scores, "nDCG@k", k=k)


def propensity_scored_precision_at_k(Y_true: Any, scores: Any, inverse_propensities: Any, k: int = 5) -> float:
    """PSP@k, normalised: precision at k in which rare labels count more, by their inverse propensities.

    The weights of the true labels among the k best, added over all rows, divided by the largest such sum that any
    ranking could reach (the k true labels with the largest weights of each row). It is a ratio of sums, not a mean of
    ratios, as the extreme classification repository reports it. Ties: the lower column first. A row with no true label
    adds 0 to both sums; 0 when no row has a true label.

    Parameters
    ----------
    inverse_propensities : (n_labels,) weights, as `inverse_propensity` of the *training* labels gives them
    """
    return _single(Y_true, scores, "PSP@k", k=k, inverse_propensities=inverse_propensities)


def ranking_loss(Y_true: Any, scores: Any) -> float:
    """Ranking loss: the share of pairs (true, false label) of a row that are in the wrong order; mean over all rows.

    Ties count as wrong in full (as in scikit-learn). A row whose labels are all false or all true counts 0.
    """
    return _single(Y_true, scores, "ranking_loss")


def coverage(Y_true: Any, scores: Any) -> float:
    """Coverage: the labels of a row that do not score lower than its lowest true one, itself included; mean over rows.

    It says how far down the ranking that label is; the best value is the average number of true labels, not 0.
    Ties count in full, the pessimistic way (as in scikit-learn). A row with no true label counts 0.
    """
    return _single(Y_true, scores, "coverage")


def label_ranking_average_precision(Y_true: Any, scores: Any) -> float:
    """Label ranking average precision: the mean precision at the places of a row's true labels; mean over all rows.

    For each true label, the share of true ones among the labels that do not score lower; mean over the true labels.
    Ties take the lowest place of their group (as in scikit-learn). A row with no true label, or with all, counts 1.
    """
    return _single(Y_true, scores, "label_ranking_average_precision")


def inverse_propensity(Y_train: Any, *, A: float = 0.55, B: float = 1.5) -> FloatArray:
    """Weights of the labels from their frequency in training: 1 + C (n_l + B)^-A with C = (log n - 1)(B + 1)^A.

    n_l: rows with label l; n: rows. Published choices of (A, B): (0.5, 0.4) for WikiLSHTC and Wikipedia-500K,
    (0.6, 2.6) for Amazon-670K and Amazon-3M, (0.55, 1.5) for all others. Fewer than 3 rows are refused: C would be
    negative.

    Returns
    -------
    (n_labels,) float64, each above 1
    """
    truth = check_truth(Y_train, name="Y_train")
    n_rows, n_labels = truth.shape
    if n_rows < 3:
        raise DataError(f"propensities need at least 3 training rows, Y_train has {n_rows}")
    frequency = np.bincount(truth.indices, minlength=n_labels)
    return 1.0 + (math.log(n_rows) - 1.0) * (B + 1.0) ** A * (frequency + B) ** -A


class RankingAccumulator:
    """Ranking measures over rows that arrive in parts; every part is read once.

    Parameters
    ----------
    k : the k of the measures "at k", one or several
    metrics : names out of `RANKING_METRICS`
    inverse_propensities : (n_labels,), needed by "PSP@k" only

    It keeps one number per row and measure, so that `result` does not depend on the parts or their order.
    """

    def __init__(
        self, k: int | Iterable[int] = (1, 3, 5), *, metrics: Sequence[str] = ("P@k",), inverse_propensities: Any = None
    ) -> None:
        each_k = k if isinstance(k, Iterable) else (k,)
        self.k = tuple(sorted({check_k(each) for each in each_k}))
        self.metrics = tuple(metrics)
        unknown = sorted(set(self.metrics) - set(RANKING_METRICS))
        if unknown:
            raise DataError(f"no ranking measure is called {unknown[0]!r}; there are {', '.join(RANKING_METRICS)}")
        if not self.k and set(self.metrics) & set(AT_K):
            raise DataError("k is empty; give at least one, such as k=(1, 3, 5)")
        self._weights = _check_weights(inverse_propensities) if "PSP@k" in self.metrics else None
        self._parts: dict[str, list[FloatArray]] = {}
        self.n_rows = 0

    def update(self, Y_true: Any, scores: Any) -> None:
        """Add rows: Y_true and scores (n, n_labels), each dense or sparse."""
        truth = check_truth(Y_true)
        self.update_checked(truth, as_block(scores, truth.shape))

    def update_checked(self, truth: CSR, block: Block) -> None:
        """Add rows that have been checked already, as `update` does."""
        values = {} if not set(self.metrics) & set(AT_K) else self._at_k(truth, block)
        if set(self.metrics) & set(BY_ORDER):
            order = Order.of_rows(truth, block)
            measures = order.ranking_loss(), order.coverage(), order.average_precision(empty=1.0)
            values |= dict(zip(BY_ORDER, measures, strict=True))
        for name, each in values.items():
            self._parts.setdefault(name, []).append(each)
        self.n_rows += truth.shape[0]

    def merge(self, other: RankingAccumulator) -> None:
        """Add the rows that another accumulator of the same measures has seen."""
        if (self.k, self.metrics) != (other.k, other.metrics):
            raise DataError("only accumulators of the same measures and the same k can be merged")
        for name, parts in other._parts.items():
            self._parts.setdefault(name, []).extend(parts)
        self.n_rows += other.n_rows

    def result(self) -> dict[str, float]:
        """The measures by name, "P@1" and so on for those "at k"."""
        if not self.n_rows:
            raise DataError("no row has been added yet; a measure needs at least one")
        total = {name: math.fsum(np.concatenate(parts)) for name, parts in self._parts.items()}
        result = {}
        for name in self.metrics:
            for k in self.k if name in AT_K else (None,):
                key = name if k is None else name.replace("@k", f"@{k}")
                if name == "PSP@k":
                    result[key] = total[key] / total[f"best {key}"] if total[f"best {key}"] else 0.0
                else:
                    result[key] = total[key] / self.n_rows
        return result

    def _at_k(self, truth: CSR, block: Block) -> dict[str, FloatArray]:
        """One value per row for each measure "at k" and each k; the labels are ranked once, for the largest k."""
        largest = self.k[-1]
        best = top_k_of_block(block, largest)
        keys = np.arange(len(best))[:, None] * truth.shape[1] + best
        hit = contains(cell_keys(truth), keys)[0] & (best >= 0)
        discount = 1.0 / np.log2(np.arange(largest) + 2.0)
        ideal = np.concatenate(([0.0], np.cumsum(discount)))
        n_true = np.diff(truth.indptr)
        values: dict[str, FloatArray] = {}
        if self._weights is not None:
            if len(self._weights) != truth.shape[1]:
                given = len(self._weights)
                raise DataError(f"{given} inverse propensities for {truth.shape[1]} labels; give one a label")
            gain = np.where(hit, self._weights[best], 0.0)
            best_gain = _largest_weights(truth, self._weights, largest)
        for k in self.k:
            if "P@k" in self.metrics:
                values[f"P@{k}"] = np.count_nonzero(hit[:, :k], axis=1) / k
            if "nDCG@k" in self.metrics:
                values[f"nDCG@{k}"] = hit[:, :k] @ discount[:k] / ideal[np.clip(n_true, 1, k)]
            if self._weights is not None:
                values[f"PSP@{k}"] = gain[:, :k].sum(axis=1)
                values[f"best PSP@{k}"] = best_gain[:, :k].sum(axis=1)
        return values


def _check_weights(inverse_propensities: Any) -> FloatArray:
    if inverse_propensities is None:
        raise DataError("PSP@k needs inverse_propensities; make them with inverse_propensity(Y_train)")
    try:
        weights = np.asarray(inverse_propensities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"inverse_propensities cannot be read as numbers: {error}") from error
    if weights.ndim != 1 or not np.isfinite(weights).all() or not (weights > 0).all():
        raise DataError("inverse_propensities must be one positive finite number a label")
    return weights


def _largest_weights(truth: CSR, weights: FloatArray, k: int) -> FloatArray:
    """(n_rows, k) the largest weights of each row's true labels, descending, filled up with 0."""
    weighted = sparse.csr_array((weights[truth.indices], truth.indices, truth.indptr), shape=truth.shape)
    best = top_k_of_block(weighted, k)
    return np.where(best >= 0, weights[best], 0.0)


def _single(Y_true: Any, scores: Any, metric: str, *, k: int = 1, inverse_propensities: Any = None) -> float:
    truth = check_truth(Y_true)
    accumulator = RankingAccumulator((k,), metrics=(metric,), inverse_propensities=inverse_propensities)
    for part, block in iter_parts(truth, scores):
        accumulator.update_checked(part, block)
    return next(iter(accumulator.result().values()))
