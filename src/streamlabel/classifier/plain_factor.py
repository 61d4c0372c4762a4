"""The spectral factor of a matrix as it is: for rows without an intercept (the paper's form), and for dense rows.

`stats.factors` centres sparse rows implicitly. Here nothing is centred: ``X = Q diag(sqrt a) U'``, with ``U`` kept for
tall and ``Q`` for wide matrices. Dense rows with an intercept are centred first, which costs no zeros.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg, sparse

from streamlabel.classifier.design import Design
from streamlabel.results import CSR, FloatArray
from streamlabel.stats.factors import RidgeFactor, make_factor

__all__ = ["PlainFactor", "factor_rows"]

_NULL_SHARE = 1e-12


class PlainFactor:
    """Eigenfactor of ``X'X`` or ``XX'``, whichever is smaller. Speaks the words of `RidgeFactor`.

    ``mean`` is what was taken off the rows before they came here.
    """

    def __init__(self, X: CSR | FloatArray, mean: FloatArray | None = None) -> None:
        self._X = X
        self.n_rows = int(X.shape[0])
        self._centred = mean is not None
        self.mean: FloatArray = np.zeros(X.shape[1]) if mean is None else mean
        self._tall = X.shape[1] <= X.shape[0]
        square = X.T @ X if self._tall else X @ X.T
        square = square.toarray() if sparse.issparse(square) else np.asarray(square)
        values, vectors = linalg.eigh(square, overwrite_a=True, check_finite=False, driver="evd")
        kept = values > _NULL_SHARE * max(float(values[-1]), 0.0)
        self.eigenvalues: FloatArray = values[kept]
        self._vectors = np.ascontiguousarray(vectors[:, kept])
        self._roots = np.sqrt(self.eigenvalues)[:, None]

    def project(self, targets: FloatArray | CSR) -> FloatArray:
        if not self._tall:
            return np.asarray((targets.T @ self._vectors).T)
        cross = self._X.T @ targets
        return self._vectors.T @ (cross.toarray() if sparse.issparse(cross) else cross) / self._roots

    def project_scores(self, weights: FloatArray) -> FloatArray:
        if self._tall:
            return self._roots * (self._vectors.T @ weights)
        return self._vectors.T @ (self._X @ weights)

    def weights(self, projected: FloatArray, beta: float) -> FloatArray:
        scaled = projected / (self.eigenvalues + beta)[:, None]
        if self._tall:
            return self._vectors @ (self._roots * scaled)
        return np.asarray(self._X.T @ (self._vectors @ scaled))

    def leverages(self, beta: float) -> FloatArray:
        shift = 1.0 / self.n_rows if self._centred else 0.0
        if self._tall:
            scaled = self._X @ (self._vectors / np.sqrt(self.eigenvalues + beta))
            return np.square(scaled).sum(axis=1) + shift
        return np.square(self._vectors) @ (self.eigenvalues / (self.eigenvalues + beta)) + shift


def factor_rows(design: Design) -> RidgeFactor:
    """The factor that fits these rows: sparse or dense, with or without an intercept."""
    if not design.fit_intercept:
        return PlainFactor(design.X)
    if isinstance(design.X, np.ndarray):
        return PlainFactor(design.X - design.mean, design.mean)
    return make_factor(design.X)
