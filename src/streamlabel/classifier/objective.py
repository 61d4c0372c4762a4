"""The anchored batch objective of step 2, for any loss::

    J(V, b)       = sum_ij loss(y_ij, x_i.v_j + b_j) + beta/2 ||V M - P||_F^2       M = I - S2,  P = W S1
    grad_V J      = X'G + beta (V M - P) M'        G_ij = loss'(y_ij, f_ij)         grad_b J = G'1
    Hess J (Z, c) = X'H + beta Z M M'              H_ij = loss''(y_ij, f_ij) (x_i.z_j + c_j),   and H'1 for b

The intercepts ``b`` are not penalised; without one they stay 0. Columns touch only through ``M``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamlabel.classifier.losses import Loss
from streamlabel.classifier.penalty import Penalty
from streamlabel.results import CSR, FloatArray, IntArray

__all__ = ["AnchoredObjective"]

# Rows whose scores of a block of labels stay in the cache through all the steps of a loss.
_ROWS_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class AnchoredObjective:
    """J for one batch.

    Attributes
    ----------
    X : (n, d), CSR or dense float64
    answers : (n, k) dense, as ``loss.encode`` writes them
    """

    X: CSR | FloatArray
    answers: FloatArray
    loss: Loss
    penalty: Penalty
    fit_intercept: bool = True

    def take(self, labels: IntArray) -> AnchoredObjective:
        """The objective of some labels of an uncoupled batch."""
        answers = np.take(self.answers, labels, axis=1)
        return AnchoredObjective(self.X, answers, self.loss, self.penalty.take(labels), self.fit_intercept)

    def scores(self, V: FloatArray, b: FloatArray) -> FloatArray:
        """``X V + 1 b'``, (n, k)."""
        return np.asarray(self.X @ V + b)

    def value(self, V: FloatArray, b: FloatArray) -> float:
        losses = self.loss.value(self.scores(V, b), self.answers)
        return float(losses.sum() + self.penalty.values(V).sum())

    def gradient(self, V: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """With respect to V (d, k) and b (k,)."""
        return self.gradient_from(V, self.loss.first(self.scores(V, b), self.answers))

    def value_and_gradient(self, V: FloatArray, b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        costs, first, _ = self.terms(self.scores(V, b))
        slope, slope_b = self.gradient_from(V, first)
        return float(costs.sum() + self.penalty.values(V).sum()), slope, slope_b

    def terms(
        self, scores: FloatArray, labels: slice | IntArray = slice(None)
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Losses summed over the rows (k,), G and loss'' (n, k), for the scores of some labels."""
        answers = self.answers[:, labels]
        costs, first, second = np.zeros(scores.shape[1]), np.empty_like(scores), np.empty_like(scores)
        for start in range(0, len(scores), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            cost, first[rows], second[rows] = self.loss.terms(scores[rows], answers[rows])
            costs += cost
        return costs, first, second

    def gradient_from(self, V: FloatArray, first: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The gradient, where the first derivatives G (n, k) are known."""
        slope_b = first.sum(axis=0) if self.fit_intercept else np.zeros(V.shape[1])
        return self.X.T @ first + self.penalty.gradient(V), slope_b

    def hessian_product(
        self, V: FloatArray, b: FloatArray, Z: FloatArray, c: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The Hessian at (V, b) times (Z, c)."""
        change = self.loss.second(self.scores(V, b), self.answers) * self.scores(Z, c)
        slope_b = change.sum(axis=0) if self.fit_intercept else np.zeros(V.shape[1])
        return self.X.T @ change + self.penalty.product(Z), slope_b

    def gradient_scale(self) -> FloatArray:
        """Length of the gradient of each label at zero weights and the best constant score, (k,), above 0.

        What "relative" means in the stopping rules; for the squared loss it is the length of the right-hand side of
        the normal equations.
        """
        n_features, n_labels = self.penalty.anchor.shape
        b = self.loss.best_constant(self.answers) if self.fit_intercept else np.zeros(n_labels)
        slope, slope_b = self.gradient(np.zeros((n_features, n_labels)), b)
        lengths = np.sqrt(np.square(slope).sum(axis=0) + np.square(slope_b))
        return np.where(lengths > 0.0, lengths, 1.0)
