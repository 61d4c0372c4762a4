"""Small random multi-label problems of every awkward kind, numbered."""

from __future__ import annotations

import numpy as np

from streamlabel.types import FloatArray, IntArray

__all__ = ["KINDS", "RANDOM", "random_beta", "random_problem", "random_rows"]

RANDOM = "random problems"
KINDS = ("plain", "copies of labels", "repeated features", "more features than rows", "rare labels", "unrelated labels")
_ROWS = (20, 40, 80)
_BETAS = (1e-3, 1e-1, 1.0, 10.0, 1e3)


def random_rows(number: int) -> int:
    """How many rows problem ``number`` has."""
    return _ROWS[number % len(_ROWS)]


def random_beta(number: int) -> float:
    """The strength that problem ``number`` is solved with."""
    return _BETAS[number % len(_BETAS)]


def random_problem(number: int, seed: int) -> tuple[FloatArray, IntArray, int, str]:
    """Rows X (n, d), labels (n, m) of 0/1 with both answers in each, how many of them are past, how these are learned.

    Kinds, sizes and the start ("independent", "alternating") take turns with the number.
    """
    rng = np.random.default_rng((seed, number))
    kind, n_rows = KINDS[number % len(KINDS)], random_rows(number)
    n_features = n_rows + 5 if kind == "more features than rows" else int(rng.integers(2, 13))
    n_past, n_new = int(rng.integers(2, 9)), int(rng.integers(1, 6))
    X = rng.normal(size=(n_rows, n_features))
    if kind == "repeated features":
        X[:, -1] = X[:, 0]
    n_topics = 3
    topics = X @ rng.normal(size=(n_features, n_topics))
    wishes = topics @ rng.normal(size=(n_topics, n_past + n_new)) + 0.5 * rng.normal(size=(n_rows, n_past + n_new))
    if kind == "unrelated labels":
        wishes = rng.normal(size=wishes.shape)
    share = 0.1 if kind == "rare labels" else 0.4
    labels = (wishes > np.quantile(wishes, 1.0 - share, axis=0)).astype(np.int64)
    if kind == "copies of labels":
        labels[:, n_past] = labels[:, 0]
        labels[:, 1] = 1 - labels[:, 0]
    return X, labels, n_past, ("independent", "alternating")[number // len(KINDS) % 2]
