"""Numeric sets with a planted sparse label structure: the code and the classifier of every new label are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.files import RandomState, check_integer, check_number, make_rng
from streamlabel.errors import DataError
from streamlabel.types import CSC, CSR, FloatArray, IntArray
from streamlabel.validation import canonical_labels

MAX_CELLS = 200_000_000  # of a dense float64 matrix; the sets are for tests, not for size
LEAF_SHARE = 0.8  # of the rows of a root label, those that have one of its leaves too


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
    codes: CSC = sparse.csc_array((signs, (rows, np.repeat(np.arange(n_new), code_size))), shape=(n_past, n_new))
    return codes


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
