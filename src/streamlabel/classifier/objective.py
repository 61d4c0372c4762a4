"""The anchored batch objective of step 2 for any loss, and the annotated rows as the squared-loss solvers see them.

::

    J(V, b)       = sum_ij loss(y_ij, x_i.v_j + b_j) + beta/2 ||V M - P||_F^2       M = I - S2,  P = W S1
    grad_V J      = X'G + beta (V M - P) M'        G_ij = loss'(y_ij, f_ij)         grad_b J = G'1
    Hess J (Z, c) = X'H + beta Z M M'              H_ij = loss''(y_ij, f_ij) (x_i.z_j + c_j),   and H'1 for b

The intercepts ``b`` are not penalised; without one they stay 0. Columns touch only through ``M``.

For the squared loss the rows are centred if there is an intercept, and never densified. With ``Xc = X - 1 mu'`` the
optimal intercept is ``mean(y) - mu'v`` and the classifier solves ``(Xc'Xc) V + beta V N = Xc'Y + beta P M'``. Without
an intercept ``mu`` is 0.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.classifier.losses import Loss
from streamlabel.classifier.penalty import Penalty
from streamlabel.stats.spectral import dense
from streamlabel.types import CSR, FloatArray, IntArray

# Scores of a block of labels, 24 MB: wide enough that its last labels still share products, and small beside the rows.
_BLOCK_CELLS = 3_000_000


class Design:
    """The annotated rows ``X`` (n, d), CSR or dense float64, and their mean.

    Attributes
    ----------
    mean : (d,), zero without an intercept
    elsewhere : X is no matrix, only its products are known (and ``X.mean``, ``X.square_sums``)
    """

    def __init__(self, X: Any, fit_intercept: bool = True) -> None:
        self.X: CSR | FloatArray = X
        self._square_sums = getattr(X, "square_sums", None)
        self.elsewhere = self._square_sums is not None
        self.fit_intercept = fit_intercept
        self.n_rows, self.n_features = X.shape
        self.mean: FloatArray = (
            np.asarray(X.mean(axis=0), dtype=np.float64).ravel() if fit_intercept else np.zeros(self.n_features)
        )

    def normal_product(self, Z: FloatArray) -> FloatArray:
        """The product of the centred Gram with Z, ``Xc'Xc Z``, (d, k)."""
        scores = self.X @ Z
        if not self.fit_intercept:
            return np.asarray(self.X.T @ scores)
        # Centre the scores, not the product: X'X Z - n mu mu'Z would cancel where the mean is long.
        scores -= self.mean @ Z
        return self.X.T @ scores - np.outer(self.mean, scores.sum(axis=0))

    def cross(self, targets: FloatArray | CSR) -> FloatArray:
        """The products of the centred rows with targets, ``Xc'T``, (d, k)."""
        product = dense(self.X.T @ targets)
        if self.fit_intercept:
            product = product - np.outer(self.mean, column_sums(targets))
        return product

    def gram_diagonal(self) -> FloatArray:
        """The diagonal of ``Xc'Xc``, (d,), not below 0."""
        X = self.X
        if self._square_sums is not None:
            squares = self._square_sums()
        else:
            squares = X.multiply(X).sum(axis=0) if sparse.issparse(X) else np.einsum("ij,ij->j", X, X)
        return np.maximum(np.asarray(squares) - self.n_rows * np.square(self.mean), 0.0)

    def intercept(self, targets: FloatArray | CSR, weights: FloatArray) -> FloatArray:
        """The optimal intercept of each label, (k,)."""
        if not self.fit_intercept:
            return np.zeros(weights.shape[1])
        return column_sums(targets) / self.n_rows - self.mean @ weights


def suits_single(design: Design, squares: FloatArray) -> bool:
    """Whether products of rows, with these `gram_diagonal`, keep their digits in single precision."""
    unit, most = float(squares.sum()) / design.n_rows, float(squares.max(initial=0.0)) / design.n_rows
    return 1e-15 < unit < 1e15 and most < 0.1 * unit and float(design.mean @ design.mean) < 100.0 * unit


class SingleRows:
    """Rows whose products are in single precision: half the time. Sparse ones are by columns: faster for a few."""

    def __init__(self, X: Any) -> None:
        self.single, self.shape = X.astype(np.float32, copy=False), X.shape
        self._left = self.single.tocsc() if sparse.issparse(X) else self.single
        self._right = self.single.T

    @property
    def T(self) -> SingleRows:
        turned = copy.copy(self)
        turned._left, turned._right, turned.shape = self._right, self._left, self.shape[::-1]
        return turned

    def __matmul__(self, V: FloatArray) -> FloatArray:
        return np.asarray(self._left @ V.astype(np.float32, copy=False), dtype=V.dtype)

    def mean(self, axis: int) -> FloatArray:
        return np.asarray(self.single.mean(axis=axis, dtype=np.float64))


def column_sums(targets: FloatArray | CSR) -> FloatArray:
    """The sum of each column, (k,) float64."""
    return np.asarray(targets.sum(axis=0), dtype=np.float64).ravel()


def dense_columns(targets: FloatArray | CSR, columns: IntArray) -> FloatArray:
    """Some columns of the answers, as a dense float64 array."""
    return dense(targets[:, columns])


def column_blocks(n_columns: int, n_rows: int) -> list[slice]:
    """Cut columns into blocks whose (n_rows, width) arrays stay small."""
    width = int(np.clip(_BLOCK_CELLS // max(n_rows, 1), 16, 512))
    return [slice(start, start + width) for start in range(0, n_columns, width)]


def relative_residual(design: Design, targets: FloatArray | CSR, penalty: Penalty, V: FloatArray) -> float:
    """How well the equation is solved: ``||R - Xc'Xc V - beta V N||_F / ||R||_F`` with ``R = Xc'Y + beta P M'``."""
    right = design.cross(targets) + penalty.beta * penalty.pull
    scale = float(np.linalg.norm(right))
    right -= penalty.product(V)
    for block in column_blocks(V.shape[1], design.n_rows):
        right[:, block] -= design.normal_product(V[:, block])
    return float(np.linalg.norm(right)) / scale if scale > 0.0 else float(np.linalg.norm(right))


_SOME = 2_000  # rows that stand for very many, twice: at the same accuracy a third of the time (EURLEX57K)

# Rows whose scores of a block of labels stay in the cache through all the steps of a loss.
_ROWS_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class AnchoredObjective:
    """The anchored objective J of one batch of labels.

    Attributes
    ----------
    X : (n, d), CSR or dense float64, or `SingleRows`: then Newton's inner solves are in single precision, too
    answers : (n, k) dense, as ``loss.encode`` writes them
    known : (n, k), 0 for answers that are left out, else 1; None: all count
    """

    X: Any
    answers: FloatArray
    loss: Loss
    penalty: Penalty
    fit_intercept: bool = True
    known: FloatArray | None = None

    def take(self, labels: IntArray) -> AnchoredObjective:
        """The objective of some labels of an uncoupled batch."""
        answers = np.take(self.answers, labels, axis=1)
        known = None if self.known is None else np.take(self.known, labels, axis=1)
        return AnchoredObjective(self.X, answers, self.loss, self.penalty.take(labels), self.fit_intercept, known)

    def scores(self, V: FloatArray, b: FloatArray) -> FloatArray:
        """The scores of the classifiers, ``X V + 1 b'``, (n, k)."""
        return np.asarray(self.X @ V + b)

    def value(self, V: FloatArray, b: FloatArray) -> float:
        """The value of J at (V, b)."""
        return float(self.values(V, b).sum())

    def values(self, V: FloatArray, b: FloatArray) -> FloatArray:
        """What each label adds to J at (V, b), (k,)."""
        return self.terms(self.scores(V, b))[0] + self.penalty.values(V)

    def gradient(self, V: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The gradient of J with respect to V (d, k) and b (k,)."""
        return self.gradient_from(V, self.loss.first(self.scores(V, b), self.answers))

    def value_and_gradient(self, V: FloatArray, b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The value of J at (V, b), and its gradient with respect to both."""
        costs, first, _ = self.terms(self.scores(V, b))
        slope, slope_b = self.gradient_from(V, first)
        return float(costs.sum() + self.penalty.values(V).sum()), slope, slope_b

    def terms(
        self, scores: FloatArray, labels: slice | IntArray = slice(None)
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The losses of some labels summed over the rows (k,), and both derivatives G and loss'' (n, k)."""
        answers = self.answers[:, labels]
        costs, first, second = np.zeros(scores.shape[1]), np.empty_like(scores), np.empty_like(scores)
        for start in range(0, len(scores), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            cost, first[rows], second[rows] = self.loss.terms(scores[rows], answers[rows])
            costs += cost
            if self.known is not None:
                known = self.known[rows][:, labels]
                costs -= (self.loss.value(scores[rows], answers[rows]) * (1.0 - known)).sum(axis=0)
                first[rows] *= known
                second[rows] *= known
        return costs, first, second

    def gradient_from(self, V: FloatArray, first: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The gradient of J from the first derivatives G (n, k)."""
        slope_b = first.sum(axis=0) if self.fit_intercept else np.zeros(V.shape[1])
        return self.X.T @ first + self.penalty.gradient(V), slope_b

    def gradient_scale(self) -> FloatArray:
        """The length of each label's gradient at zero weights and the best constant score, (k,), above 0.

        It is what "relative" means in the stopping rules; for the squared loss it is the length of the right-hand side
        of the normal equations.
        """
        n_features, n_labels = self.penalty.anchor.shape
        b = self.loss.best_constant(self.answers) if self.fit_intercept else np.zeros(n_labels)
        first = self.loss.first(np.broadcast_to(b, self.answers.shape), self.answers)
        slope, slope_b = self.gradient_from(np.zeros((n_features, n_labels)), first)
        lengths = np.sqrt(np.square(slope).sum(axis=0) + np.square(slope_b))
        return np.where(lengths > 0.0, lengths, 1.0)


def very_many(X: CSR | FloatArray) -> bool:
    """Whether there are so many (sparse) rows that some may stand for all."""
    return bool(sparse.issparse(X) and X.shape[0] >= 8 * _SOME)


def standing(X: CSR | FloatArray, values: FloatArray) -> tuple[IntArray, FloatArray] | None:
    """The rows that may stand for all in a problem of one label, and their weights (., 1); None: there is no need.

    They are those with the largest values (n, 1), and an even sample of the others with as much more weight.
    """
    if values.shape[1] > 1 or not very_many(X):
        return None
    n_rows = len(values)
    first = np.zeros(n_rows, dtype=bool)
    first[np.argpartition(-values[:, 0], _SOME)[:_SOME]] = True
    others = np.flatnonzero(~first)
    some = others[:: len(others) // _SOME]
    rows = np.concatenate((np.flatnonzero(first), some))
    return rows, np.repeat((1.0, len(others) / len(some)), (_SOME, len(some)))[:, None]
