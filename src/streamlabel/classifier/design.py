"""The annotated rows as the squared-loss solvers see them: centred where there is an intercept, never densified.

With ``Xc = X - 1 mu'`` the optimal intercept is ``mean(y) - mu'v`` and the classifier solves
``(Xc'Xc) V + beta V N = Xc'Y + beta P M'``. Without an intercept ``mu`` is 0.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from streamlabel.classifier.penalty import Penalty
from streamlabel.results import CSR, FloatArray, IntArray
from streamlabel.stats.factors import dense

__all__ = ["Design", "column_blocks", "column_sums", "dense_columns", "relative_residual"]

# Scores of a block of labels, 24 MB: wide enough that its last labels still share products, and small beside the rows.
_BLOCK_CELLS = 3_000_000


class Design:
    """Rows ``X`` (n, d), CSR or dense float64, and their mean.

    Attributes
    ----------
    mean : (d,), zero without an intercept
    """

    def __init__(self, X: CSR | FloatArray, fit_intercept: bool = True) -> None:
        self.X = X
        self.fit_intercept = fit_intercept
        self.n_rows, self.n_features = X.shape
        self.mean: FloatArray = (
            np.asarray(X.mean(axis=0), dtype=np.float64).ravel() if fit_intercept else np.zeros(self.n_features)
        )

    def normal_product(self, Z: FloatArray) -> FloatArray:
        """``Xc'Xc Z``, (d, k)."""
        scores = self.X @ Z
        if not self.fit_intercept:
            return np.asarray(self.X.T @ scores)
        # Centre the scores, not the product: X'X Z - n mu mu'Z would cancel where the mean is long.
        scores -= self.mean @ Z
        return self.X.T @ scores - np.outer(self.mean, scores.sum(axis=0))

    def cross(self, targets: FloatArray | CSR) -> FloatArray:
        """``Xc'T``, (d, k)."""
        product = dense(self.X.T @ targets)
        if self.fit_intercept:
            product = product - np.outer(self.mean, column_sums(targets))
        return product

    def gram(self) -> FloatArray:
        """``Xc'Xc``, (d, d) dense."""
        gram = dense(self.X.T @ self.X)
        if self.fit_intercept:
            gram -= self.n_rows * np.outer(self.mean, self.mean)
        return gram

    def gram_diagonal(self) -> FloatArray:
        """The diagonal of ``Xc'Xc``, (d,), not below 0."""
        X = self.X
        squares = X.multiply(X).sum(axis=0) if sparse.issparse(X) else np.einsum("ij,ij->j", X, X)
        return np.maximum(np.asarray(squares) - self.n_rows * np.square(self.mean), 0.0)

    def intercept(self, targets: FloatArray | CSR, weights: FloatArray) -> FloatArray:
        """The optimal intercept of each label, (k,)."""
        if not self.fit_intercept:
            return np.zeros(weights.shape[1])
        return column_sums(targets) / self.n_rows - self.mean @ weights


def column_sums(targets: FloatArray | CSR) -> FloatArray:
    return np.asarray(targets.sum(axis=0), dtype=np.float64).ravel()


def dense_columns(targets: FloatArray | CSR, columns: IntArray) -> FloatArray:
    """Some columns of the answers, dense float64."""
    return dense(targets[:, columns])


def column_blocks(n_columns: int, n_rows: int) -> list[slice]:
    """Columns cut into blocks whose (n_rows, width) arrays stay small."""
    width = int(np.clip(_BLOCK_CELLS // max(n_rows, 1), 16, 512))
    return [slice(start, start + width) for start in range(0, n_columns, width)]


def relative_residual(design: Design, targets: FloatArray | CSR, penalty: Penalty, V: FloatArray) -> float:
    """``||R - Xc'Xc V - beta V N||_F / ||R||_F`` with ``R = Xc'Y + beta P M'``: how well the equation is solved."""
    right = design.cross(targets) + penalty.beta * penalty.pull
    scale = float(np.linalg.norm(right))
    right -= penalty.product(V)
    for block in column_blocks(V.shape[1], design.n_rows):
        right[:, block] -= design.normal_product(V[:, block])
    return float(np.linalg.norm(right)) / scale if scale > 0.0 else float(np.linalg.norm(right))
