"""Theorem 1: a bound on the risk of new labels on unseen rows, given their risk on the rows they were learned from.

k new classifiers W (d, k) were learned on n rows, near the combination ``W_old S`` of past ones. The paper bounds the
excess risk of the class ``||W - W_old S||_F <= epsilon, ||S||_{1,1} <= lambda`` by terms without constants::

    O((epsilon + lambda c) sqrt(k / n)) + O(k sqrt(log(1 / delta) / n)),    c = ||W_old||_F,  E ||x||^2 <= 1

`printed_terms` computes them. Three things keep them from being a bound for a fitted model; `risk_bound` mends each:

* one random sign per row is carried through a sum of k losses as if it were one loss (the contraction step of the
  proof, which fails: ``tests/theory``). Budgets for every label, epsilon_j and lambda_j, make the class a product, and
  the step is right label by label;
* epsilon and lambda are known only after learning. The bound holds for a grid of budgets at once, at the price of a
  logarithm;
* the class is replaced by the ball of radius ``epsilon + lambda c``, which contains W. No fitted model can gain from
  the past that way, for ``||W||_F`` itself is smaller. Bounded as what it is, a small ball around mixtures of m known
  score functions f_i, the class costs less: with q = ``max_i sqrt(sum_l f_i(x_l)^2)`` and C the Lipschitz constant, for
  all k labels at once with probability 1 - delta::

    risk_j <= seen_j + 2 C/n (epsilon_j sqrt(sum_l ||x_l||^2) + lambda_j q sqrt(2 log 2m))
                     + 3 sqrt((log(2 k / delta) + prices_j) / (2 n))

The past must have been learned from other rows: the theorem takes W_old as given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from streamlabel.stats.spectral import dense
from streamlabel.types import FloatArray, IntArray

LIPSCHITZ = 2.0  # of `clipped_loss` in the score
_UNIT = 1 / 16  # the least budget of the grid; each further one is sqrt(2) times as large


@dataclass(frozen=True)
class PrintedTerms:
    """The terms of Theorem 1 as printed in the paper, for k labels together.

    Attributes
    ----------
    epsilon, code_norm, past_norm : ||W - W_old S||_F, ||S||_{1,1} (the paper's lambda), ||W_old||_F (its c)
    weights_norm : ||W||_F, never above ``epsilon + code_norm * past_norm``
    representation : ``(epsilon + lambda c) sqrt(k / n)``, times the root mean square length of a row
    confidence : ``k sqrt(log(1 / delta) / n)``
    """

    n_rows: int
    n_labels: int
    epsilon: float
    code_norm: float
    past_norm: float
    weights_norm: float
    representation: float
    confidence: float


@dataclass(frozen=True, eq=False)
class RiskBound:
    """The risk bound with its constants, one entry per label (k,): ``risk <= seen + own + past + confidence``.

    Attributes
    ----------
    seen : mean clipped loss on the rows of learning
    own : what the deviation from the anchor costs: falls with epsilon_j and with 1/sqrt(n)
    past : what the freedom to choose a mixture costs: falls with lambda_j and with 1/sqrt(n)
    confidence : the price of the sample, of k labels and of budgets known afterwards: falls with 1/sqrt(n)
    """

    seen: FloatArray
    own: FloatArray
    past: FloatArray
    confidence: FloatArray

    @property
    def gap(self) -> FloatArray:
        """The most by which the risk on unseen rows exceeds ``seen``."""
        return self.own + self.past + self.confidence

    @property
    def risk(self) -> FloatArray:
        """The bound on the risk on unseen rows."""
        return self.seen + self.gap


def clipped_loss(targets: FloatArray, scores: FloatArray) -> FloatArray:
    """The squared loss for 0/1 answers, bounded by 1: ``(y - min(max(score, 0), 1))^2``."""
    return np.square(targets - np.clip(scores, 0.0, 1.0))


def printed_terms(
    X: Any, weights: FloatArray, past_weights: FloatArray, codes: Any, *, delta: float = 0.05
) -> PrintedTerms:
    """Compute the terms of Theorem 1 for rows X (n, d), weights (d, k), past_weights (d, m) and codes (m, k)."""
    n_rows, n_labels = X.shape[0], weights.shape[1]
    deviations, sizes = _parts(weights, past_weights, codes)
    epsilon, code_norm, past_norm = float(linalg.norm(deviations)), float(sizes.sum()), float(linalg.norm(past_weights))
    energy = _energy(X) / n_rows
    return PrintedTerms(
        n_rows=n_rows,
        n_labels=n_labels,
        epsilon=epsilon,
        code_norm=code_norm,
        past_norm=past_norm,
        weights_norm=float(linalg.norm(weights)),
        representation=float((epsilon + code_norm * past_norm) * np.sqrt(energy * n_labels / n_rows)),
        confidence=float(n_labels * np.sqrt(np.log(1.0 / delta) / n_rows)),
    )


def risk_bound(
    X: Any, targets: FloatArray, weights: FloatArray, past_weights: FloatArray, codes: Any, *, delta: float = 0.05
) -> RiskBound:
    """Bound the clipped squared risk of k new labels with probability 1 - delta.

    Parameters
    ----------
    X : (n, d), the rows that the new labels were learned from; a model with an intercept has a column of ones here
    targets : (n, k), 0/1
    weights : (d, k), intercepts included;   past_weights : (d, m);   codes : (m, k), sparse or dense
    """
    n_rows, n_labels = targets.shape
    deviations, sizes = _parts(weights, past_weights, codes)
    own_budget, own_price = _on_grid(np.sqrt(np.square(deviations).sum(axis=0)))
    past_budget, past_price = _on_grid(sizes)
    scale = 2.0 * LIPSCHITZ / n_rows
    prices = np.log(2.0 * n_labels / delta) + own_price + past_price
    return RiskBound(
        seen=clipped_loss(targets, np.asarray(X @ weights)).mean(axis=0),
        own=scale * own_budget * np.sqrt(_energy(X)),
        past=scale * past_budget * _mixture_reach(X, past_weights),
        confidence=3.0 * np.sqrt(prices / (2.0 * n_rows)),
    )


def _parts(weights: FloatArray, past_weights: FloatArray, codes: Any) -> tuple[FloatArray, FloatArray]:
    """``W - W_old S`` (d, k), and the l1 norm of each code (k,)."""
    codes = dense(codes)
    return weights - past_weights @ codes, np.abs(codes).sum(axis=0)


def _mixture_reach(X: Any, past_weights: FloatArray) -> float:
    """A bound on ``E max_i |sum_l sign_l f_i(x_l)|``: of finitely many functions, or of the ball that holds them."""
    if not past_weights.shape[1]:
        return 0.0
    lengths = np.sqrt(np.square(np.asarray(X @ past_weights)).sum(axis=0))
    finite = float(lengths.max()) * np.sqrt(2.0 * np.log(2.0 * lengths.size))
    ball = float(np.sqrt(np.square(past_weights).sum(axis=0)).max()) * np.sqrt(_energy(X))
    return float(min(finite, ball))


def _on_grid(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Budgets rounded up to 0, 1/16, sqrt(2)/16, 2/16, ..., and ``log 1/p`` of their weights p = 1/((i+1)(i+2))."""
    positive = np.maximum(values, _UNIT)
    steps: IntArray = np.where(values > 0.0, 1 + np.ceil(2.0 * np.log2(positive / _UNIT)).astype(np.int64), 0)
    budgets = np.where(steps > 0, np.maximum(_UNIT * np.exp2((steps - 1) / 2.0), values), 0.0)
    return budgets, np.log((steps + 1.0) * (steps + 2.0))


def _energy(X: Any) -> float:
    """``sum_l ||x_l||^2``."""
    return float(np.square(X if isinstance(X, np.ndarray) else X.data).sum())
