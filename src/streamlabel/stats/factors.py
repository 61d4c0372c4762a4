"""The spectral factor of centred features, kept so that a new label costs a few products and no factorisation.

Let ``Xc = X - 1 mu'`` on the annotated rows, ``Xc = Q diag(sqrt a) U'``. Ridge of any centred target ``t`` is then::

    v(beta) = (Xc'Xc + beta I)^-1 Xc't = Xc' (Xc Xc' + beta I)^-1 t = U diag(sqrt a / (a + beta)) Q't

`FeatureFactor` keeps ``U`` (d, d): many rows. `RowFactor` keeps ``Q`` (n, n): few rows, or more features than rows.
Both speak the same words: ``project`` a target (or ``project_scores`` of a classifier) into spectral coordinates
``z = Q't``, solve there, and go back with ``weights``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import linalg, sparse

from streamlabel.results import CSR, FloatArray

__all__ = ["FeatureFactor", "RidgeFactor", "RowFactor", "make_factor"]

# Directions whose eigenvalue is below this share of the largest are rounding noise of the centring.
_NULL_SHARE = 1e-12


class RidgeFactor(Protocol):
    """What the classifier solves need of the features of some rows."""

    n_rows: int
    mean: FloatArray
    eigenvalues: FloatArray

    def project(self, targets: FloatArray | CSR) -> FloatArray:
        """``Q'T``: (n_rows, k) targets to (r, k). A constant added to a target does not matter."""
        ...

    def project_scores(self, weights: FloatArray) -> FloatArray:
        """``Q'(X V)`` for classifiers (d, k)."""
        ...

    def weights(self, projected: FloatArray, beta: float) -> FloatArray:
        """The ridge solution (d, k) for projected targets (r, k)."""
        ...

    def leverages(self, beta: float) -> FloatArray:
        """The diagonal of the hat matrix, intercept included, (n_rows,)."""
        ...


class FeatureFactor:
    """Eigenfactor of ``Xc'Xc`` (d, d)."""

    def __init__(self, X: CSR) -> None:
        self._X = X
        self.n_rows = int(X.shape[0])
        self.mean: FloatArray = np.asarray(X.mean(axis=0), dtype=np.float64)
        gram = np.asarray((X.T @ X).todense(), dtype=np.float64)
        gram -= self.n_rows * np.outer(self.mean, self.mean)
        values, vectors = linalg.eigh(gram, overwrite_a=True, check_finite=False, driver="evd")
        kept = values > _NULL_SHARE * max(float(values[-1]), 0.0)
        self.eigenvalues: FloatArray = values[kept]
        self._vectors = np.ascontiguousarray(vectors[:, kept])
        self._roots = np.sqrt(self.eigenvalues)

    def project(self, targets: FloatArray | CSR) -> FloatArray:
        centred = self._X.T @ targets
        if sparse.issparse(centred):
            centred = centred.toarray()
        centred = centred - np.outer(self.mean, np.asarray(targets.sum(axis=0)).ravel())
        return (self._vectors.T @ centred) / self._roots[:, None]

    def project_scores(self, weights: FloatArray) -> FloatArray:
        return self._roots[:, None] * (self._vectors.T @ weights)

    def weights(self, projected: FloatArray, beta: float) -> FloatArray:
        return self._vectors @ (projected * (self._roots / (self.eigenvalues + beta))[:, None])

    def leverages(self, beta: float) -> FloatArray:
        scaled = self._vectors / np.sqrt(self.eigenvalues + beta)
        shift = self.mean @ scaled
        rows = np.empty(self.n_rows)
        for start in range(0, self.n_rows, 4096):
            block = self._X[start : start + 4096] @ scaled - shift
            rows[start : start + 4096] = np.einsum("ij,ij->i", block, block)
        return rows + 1.0 / self.n_rows


class RowFactor:
    """Eigenfactor of ``Xc Xc'`` (n, n)."""

    def __init__(self, X: CSR) -> None:
        self._X = X
        self.n_rows = int(X.shape[0])
        self.mean: FloatArray = np.asarray(X.mean(axis=0), dtype=np.float64)
        kernel = np.asarray((X @ X.T).todense(), dtype=np.float64)
        values, vectors = linalg.eigh(_double_centred(kernel), overwrite_a=True, check_finite=False, driver="evd")
        kept = values > _NULL_SHARE * max(float(values[-1]), 0.0)
        self.eigenvalues: FloatArray = values[kept]
        self._vectors = np.ascontiguousarray(vectors[:, kept])

    def project(self, targets: FloatArray | CSR) -> FloatArray:
        return np.asarray((targets.T @ self._vectors).T)

    def project_scores(self, weights: FloatArray) -> FloatArray:
        return self.project(self._X @ weights)

    def weights(self, projected: FloatArray, beta: float) -> FloatArray:
        duals = self._vectors @ (projected / (self.eigenvalues + beta)[:, None])
        return np.asarray(self._X.T @ duals - np.outer(self.mean, duals.sum(axis=0)))

    def leverages(self, beta: float) -> FloatArray:
        shrink = self.eigenvalues / (self.eigenvalues + beta)
        return np.square(self._vectors) @ shrink + 1.0 / self.n_rows


def make_factor(X: CSR) -> RidgeFactor:
    """The smaller of the two factors for these rows."""
    return FeatureFactor(X) if X.shape[1] <= X.shape[0] else RowFactor(X)


def _double_centred(kernel: FloatArray) -> FloatArray:
    means = kernel.mean(axis=0)
    kernel -= means[:, None]
    kernel -= means[None, :]
    kernel += means.mean()
    return kernel
