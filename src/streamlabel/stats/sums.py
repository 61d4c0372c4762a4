"""Sums over rows from which codes and ridge classifiers can be learned; parts are summed anywhere, then merged.

With ``X (n, d)`` and ``B (n, m)`` of 0/1 these are ``n``, ``X'1``, ``X'X``, ``X'B`` and ``B'B`` (whose diagonal is
``B'1``). Counts of labels are whole numbers and exact; sums of features are float64 and agree up to rounding, whatever
the order (to the last bit if features are whole numbers).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.stats.spectral import NULL_SHARE, dense, symmetric_spectrum
from streamlabel.stats.threads import one_thread_if_small
from streamlabel.types import CSR, BoolArray, FloatArray, IntArray
from streamlabel.validation import canonical_labels, check_label_names, checked_matrix

MAX_FEATURES = 16_384  # X'X takes 2 GiB then
MAX_CROSS = 1 << 28  # cells of X'B: 2 GiB
MAX_GROUPS = 1024  # sets of rows on which different labels were asked, with an X'X each
_FULL_SHARE = 0.1  # a product of sparse matrices costs about 70 times a dense one for each multiplication
_BLOCK_ROWS = 2048


@dataclass(frozen=True, eq=False)
class AskedGroups:
    """Sums over groups of rows, in each of which the same labels were asked; together they are all rows.

    rows : (g,) how many;   labels : (g, m) whether each was asked;   sums : (g, d) = X'1
    grams : (g, d, d) = X'X, or None if there are more groups than `MAX_GROUPS`, or more than `MAX_CROSS` cells in all
    """

    rows: IntArray
    labels: BoolArray
    sums: FloatArray
    grams: FloatArray | None

    def __add__(self, other: AskedGroups) -> AskedGroups:
        """The groups of both, those of the same labels as one; in an order that does not depend on who came first."""
        labels, places = np.unique(np.concatenate((self.labels, other.labels)), axis=0, return_inverse=True)

        def added(one: Any, more: Any) -> Any:
            total = np.zeros((len(labels), *one.shape[1:]), one.dtype)
            for place, part in zip(places.ravel(), (*one, *more), strict=True):
                total[place] += part
            return total

        grams = None
        if self.grams is not None and other.grams is not None and affords_grams(len(labels), self.sums.shape[1]):
            grams = added(self.grams, other.grams)
        return AskedGroups(added(self.rows, other.rows), labels, added(self.sums, other.sums), grams)


@dataclass(frozen=True, eq=False, repr=False)
class Stats:
    """Sums over rows of features and labels. `from_batch` makes them, ``+`` merges them.

    A missing answer is unknown, not no. ``+`` takes parts with the same labels; `joined` takes those in which other
    labels were asked, and remembers on which rows each was, so that it is learned from these alone.

    Attributes
    ----------
    n_rows : how many rows were summed
    feature_sums : (d,) = X'1
    feature_gram : (d, d) = X'X
    cross : (d, m) = X'B
    label_gram : csr_array (m, m) of int64 = B'B: how often two labels occur together
    label_names, feature_names : one name per column, or None
    asked : who was asked where; None: every label on every row
    """

    n_rows: int
    feature_sums: FloatArray
    feature_gram: FloatArray
    cross: FloatArray
    label_gram: CSR
    label_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    asked: AskedGroups | None = None

    @classmethod
    def from_batch(
        cls,
        X: Any,
        Y: Any,
        label_names: Iterable[str] | None = None,
        feature_names: Sequence[str] | None = None,
        asked: Any = None,
    ) -> Stats:
        """Sum some rows and their labels.

        Parameters
        ----------
        X : (n, d), dense or sparse, finite; at most `MAX_FEATURES` columns. n may be 0
        Y : (n, m) of 0/1, dense or sparse: an answer for every label and row
        label_names : m names. Parts with names are merged by name, parts without by position
        feature_names : d names, which all parts must have in the same order
        asked : (n, m) of booleans, which answers are known; Y may hold anything elsewhere. None: all
        """
        if asked is not None:
            asked = np.asarray(asked, dtype=bool)
            if asked.shape != np.shape(Y):
                raise DataError(f"asked is {asked.shape} and Y is {np.shape(Y)}; they must agree")
            answers: Any = Y
            if sparse.issparse(Y):
                Y = answers = answers.tocoo(copy=True)
                answers.data = np.where(asked[answers.row, answers.col], answers.data, 0)
            else:
                Y = np.where(asked, Y, 0)
        labels = canonical_labels(Y).astype(np.int64)
        rows = checked_matrix(X)
        n_rows, n_features = rows.shape
        if labels.shape[0] != n_rows:
            raise DataError(f"Y has {labels.shape[0]} rows and X has {n_rows}; they must agree")
        check_size(n_features, int(labels.shape[1]))
        if feature_names is not None and len(feature_names) != n_features:
            raise DataError(f"{len(feature_names)} feature names for {n_features} features; give one a column of X")
        with np.errstate(over="ignore", invalid="ignore"):
            gram = _gram(rows)
        if not np.isfinite(gram).all():
            raise DataError("X holds numbers whose squares are too large for float64; scale its columns")
        return cls(
            n_rows,
            np.asarray(rows.sum(axis=0), dtype=np.float64).ravel(),
            gram,
            dense(rows.T @ labels),
            _counts(labels.T @ labels),
            None if label_names is None else check_label_names(label_names, int(labels.shape[1])),
            None if feature_names is None else tuple(map(str, feature_names)),
            None if asked is None or asked.all() else _groups(rows, asked),
        )

    @property
    def n_features(self) -> int:
        return len(self.feature_sums)

    @property
    def n_labels(self) -> int:
        return int(self.label_gram.shape[0])

    @property
    def label_counts(self) -> IntArray:
        """The number of rows that have each label, ``B'1`` (m,)."""
        return np.asarray(self.label_gram.diagonal())

    @property
    def asked_rows(self) -> IntArray:
        """On how many rows each label was asked, (m,)."""
        return np.full(self.n_labels, self.n_rows) if self.asked is None else self.asked.rows @ self.asked.labels

    def by_asked(self) -> Iterator[tuple[IntArray, Stats]]:
        """Labels that were asked on the same rows, and the sums over these rows, for each such set of labels.

        Exact while there is a Gram for each group. Else the covariance is that of all rows, which takes the asked rows
        for a random sample of them; means, answers and counts are those of the asked rows in any case.
        """
        if self.asked is None:
            yield np.arange(self.n_labels), self
            return
        groups, mean = self.asked, self.feature_sums / max(self.n_rows, 1)
        patterns, places = np.unique(groups.labels, axis=1, return_inverse=True)
        for number, pattern in enumerate(patterns.T):
            labels, n_rows = np.flatnonzero(places.ravel() == number), int(groups.rows[pattern].sum())
            sums = groups.sums[pattern].sum(axis=0)
            if groups.grams is not None:
                gram = groups.grams[pattern].sum(axis=0)
            else:
                gram = self.feature_gram * (n_rows / self.n_rows) - n_rows * np.outer(mean, mean)
                gram += np.outer(sums, sums / max(n_rows, 1))
            names = None if self.label_names is None else tuple(self.label_names[label] for label in labels)
            joint = _counts(self.label_gram[labels][:, labels])
            yield labels, Stats(n_rows, sums, gram, self.cross[:, labels], joint, names, self.feature_names)

    def thin(self, labels: slice) -> Stats:
        """What a solve of some labels needs beside a factor: the sums without X'X, to be sent elsewhere."""
        joint = _counts(sparse.diags_array(self.label_counts[labels], dtype=np.int64))
        return replace(
            self, feature_gram=np.empty((0, 0)), cross=self.cross[:, labels], label_gram=joint, label_names=None
        )

    def joined(self, other: Stats) -> Stats:
        """The sums of the rows of both; a label that one side does not name was not asked there: unknown, not no."""
        if self.label_names is None or other.label_names is None:
            raise DataError("labels that were not asked everywhere are known by their names; give both sides names")
        known = set(self.label_names)
        names = (*self.label_names, *(name for name in other.label_names if name not in known))
        return self._widened(names) + other._widened(names)

    def _widened(self, names: tuple[str, ...]) -> Stats:
        """The same sums with further labels, which were not asked."""
        if self.label_names is None or len(names) == self.n_labels:
            return self
        places = {name: place for place, name in enumerate(names)}
        at = np.array([places[name] for name in self.label_names])
        check_size(self.n_features, len(names))
        cross, groups = np.zeros((self.n_features, len(names))), self._asked_groups()
        labels = np.zeros((len(groups.rows), len(names)), dtype=bool)
        cross[:, at], labels[:, at] = self.cross, groups.labels
        pairs = self.label_gram.tocoo()
        joint = _counts(sparse.coo_array((pairs.data, (at[pairs.row], at[pairs.col])), shape=(len(names),) * 2))
        return replace(self, cross=cross, label_gram=joint, label_names=names, asked=replace(groups, labels=labels))

    def _asked_groups(self) -> AskedGroups:
        if self.asked is not None:
            return self.asked
        everyone = np.ones((1, self.n_labels), dtype=bool)
        return AskedGroups(np.array([self.n_rows]), everyone, self.feature_sums[None], self.feature_gram[None])

    def __add__(self, other: Stats) -> Stats:
        """The sums of the rows of both, in this one's order of labels."""
        if not isinstance(other, Stats):
            return NotImplemented
        other = other._ordered_like(self)
        everywhere = self.asked is None and other.asked is None
        return replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            feature_sums=self.feature_sums + other.feature_sums,
            feature_gram=self.feature_gram + other.feature_gram,
            cross=self.cross + other.cross,
            label_gram=_counts(self.label_gram + other.label_gram),
            asked=None if everywhere else self._asked_groups() + other._asked_groups(),
        )

    def __repr__(self) -> str:
        return f"Stats({self.n_rows} rows, {self.n_features} features, {self.n_labels} labels)"

    def _ordered_like(self, model: Stats) -> Stats:
        """The same sums with the labels in the order of ``model``, or DataError if the two do not go together."""
        if self.n_features != model.n_features:
            raise DataError(f"sums over {model.n_features} and over {self.n_features} features cannot be added")
        if self.feature_names != model.feature_names:
            raise DataError(f"the features are not the same: {_difference(model.feature_names, self.feature_names)}")
        if self.label_names == model.label_names and self.n_labels == model.n_labels:
            return self
        if self.label_names is None or model.label_names is None:
            named = "one has label names and the other has not; give both or neither the names"
            both = f"sums over {model.n_labels} and over {self.n_labels} labels cannot be added"
            raise DataError(both if self.label_names is model.label_names else named)
        places = {name: place for place, name in enumerate(self.label_names)}
        if places.keys() != set(model.label_names):
            raise DataError(
                f"the labels are not the same: {_difference(model.label_names, self.label_names)}; a label that was "
                "not asked in a part is unknown there, not no; if it was asked, name it in every part, else join them"
            )
        order = np.array([places[name] for name in model.label_names])
        gram = _counts(self.label_gram[order][:, order])
        asked = None if self.asked is None else replace(self.asked, labels=self.asked.labels[:, order])
        return replace(self, cross=self.cross[:, order], label_gram=gram, label_names=model.label_names, asked=asked)


def check_size(n_features: int, n_labels: int) -> None:
    """Raise DataError unless sums of that shape may be made."""
    if not n_features or not n_labels:
        raise DataError(f"{n_features} features and {n_labels} labels; sums need at least one of each")
    if n_features > MAX_FEATURES:
        raise DataError(
            f"{n_features} features; X'X is kept for at most {MAX_FEATURES}. Use fewer (an embedding, a smaller "
            "vocabulary), or fit on the rows"
        )
    if n_features * n_labels > MAX_CROSS:
        raise DataError(f"{n_features} features times {n_labels} labels; at most {MAX_CROSS} sums are kept")


def affords_grams(n_groups: int, n_features: int) -> bool:
    """Whether X'X is kept for each of so many groups of rows."""
    return n_groups <= MAX_GROUPS and n_groups * n_features**2 <= MAX_CROSS


def _groups(rows: CSR | FloatArray, asked: BoolArray) -> AskedGroups:
    labels, places = np.unique(asked, axis=0, return_inverse=True)
    n_rows, places = len(asked), places.ravel()
    member = sparse.csr_array((np.ones(n_rows), (places, np.arange(n_rows))), shape=(len(labels), n_rows))
    grams = None
    if affords_grams(len(labels), rows.shape[1]):
        grams = np.array([_gram(rows[places == number]) for number in range(len(labels))])
    return AskedGroups(np.bincount(places), labels, dense(member @ rows), grams)


def _gram(rows: CSR | FloatArray) -> FloatArray:
    """``X'X``; sparse rows that are nearly full are made dense, block by block."""
    n_rows, n_features = rows.shape
    if not sparse.issparse(rows) or rows.nnz <= _FULL_SHARE * n_rows * n_features:
        return dense(rows.T @ rows)
    gram = np.zeros((n_features, n_features))
    for start in range(0, n_rows, _BLOCK_ROWS):
        block = rows[start : start + _BLOCK_ROWS].toarray()
        gram += block.T @ block
    return gram


def _counts(gram: Any) -> CSR:
    result = sparse.csr_array(gram)
    result.sort_indices()
    return result


def _difference(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> str:
    """The difference between two lists of names, in short."""
    if one is None or other is None:
        return "one side has names and the other has not"
    known, found = set(one), set(other)
    missing = [name for name in one if name not in found] + [name for name in other if name not in known]
    if not missing:
        return "their order differs"
    more = "" if len(missing) == 1 else f" and {len(missing) - 1} more"
    return f"{missing[0]!r}{more} on one side only"


# Below this share of its mean square the variance of a feature is rounding noise of the sums.
CONSTANT_SHARE = 1e-10


class SumsFactor:
    """A ridge factor from sums alone: the eigenvectors of ``Xc'Xc = X'X - n mu mu'`` (d, d), with the targets ``Xc'T``.

    Sums hold 16 digits, so a feature whose mean is more than 1e5 times its spread cannot be told from a constant one
    and gets no weight.

    Attributes
    ----------
    projected : (r, m) = Q'T;   energy : (m,) = ||t||^2, both of the centred 0/1 labels (without centring: of -1/+1)
    """

    def __init__(self, stats: Stats, *, centre: bool = True) -> None:
        if stats.asked is not None:
            raise DataError("labels were asked on different rows, and so have no factor in common; take by_asked()")
        n_rows, counts = stats.n_rows, stats.label_counts.astype(np.float64)
        self.n_rows = n_rows
        self._share = 1.0 / n_rows if centre else 0.0
        self.mean: FloatArray = stats.feature_sums / n_rows if centre else np.zeros(stats.n_features)
        with one_thread_if_small((stats.n_features,)):
            self.eigenvalues, self._vectors = _spectrum(_centred(stats, self.mean))
            self._roots = np.sqrt(self.eigenvalues)
            if centre:
                cross = stats.cross - np.outer(self.mean, counts)
                self.energy: FloatArray = counts - np.square(counts) / n_rows
            else:  # X'(2B - 1)
                cross = 2.0 * stats.cross - stats.feature_sums[:, None]
                self.energy = np.full(stats.n_labels, float(n_rows))
            self.projected: FloatArray = (self._vectors.T @ cross) / self._roots[:, None]

    def of_targets(self, projected: FloatArray) -> SumsFactor:
        """The same factor with other targets: none, to be sent elsewhere, or those of some labels."""
        other = copy.copy(self)
        other.projected = projected
        return other

    def weights(self, beta: float, anchor: FloatArray | None = None) -> FloatArray:
        """The ridge solution of every label, (d, m), toward zero or toward an anchor (d, m)."""
        left = self.projected if anchor is None else self.projected - self.project_scores(anchor)
        found = np.asarray(self._vectors @ (left * (self._roots / (self.eigenvalues + beta))[:, None]))
        return found if anchor is None else anchor + found

    def project_scores(self, weights: FloatArray) -> FloatArray:
        """The scores of classifiers V (d, k) in spectral coordinates, ``Q'(Xc V)``; squares sum to ``||Xc v||^2``."""
        return np.asarray(self._roots[:, None] * (self._vectors.T @ weights))

    def leverages(self, rows: CSR | FloatArray, beta: float) -> FloatArray:
        """The diagonal of the hat matrix for some of the rows that were summed (e, d), intercept included."""
        parts = np.asarray(rows @ self._vectors) - self.mean @ self._vectors
        return np.square(parts) @ (1.0 / (self.eigenvalues + beta)) + self._share


def _centred(stats: Stats, mean: FloatArray) -> FloatArray:
    gram = stats.feature_gram - stats.n_rows * np.outer(mean, mean)
    constant = np.diag(gram) <= CONSTANT_SHARE * np.diag(stats.feature_gram)
    gram[constant] = 0.0
    gram[:, constant] = 0.0
    return gram


def _spectrum(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, vectors = symmetric_spectrum(gram, overwrite=True)
    kept = values > NULL_SHARE * max(float(values[-1]), 0.0)
    return values[kept], vectors[:, kept]
