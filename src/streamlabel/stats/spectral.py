"""The spectral factor of centred features, kept so that a new label costs a few products and no factorisation.

Let ``Xc = X - 1 mu'`` on the annotated rows, ``Xc = Q diag(sqrt a) U'``. Ridge of any centred target ``t`` is then::

    v(beta) = (Xc'Xc + beta I)^-1 Xc't = Xc' (Xc Xc' + beta I)^-1 t = U diag(sqrt a / (a + beta)) Q't

`FeatureFactor` keeps ``U`` (d, d): many rows. `RowFactor` keeps ``Q`` (n, n): few rows, or more features than rows.
Both have the same methods: ``project`` a target (or ``project_scores`` of a classifier) into spectral coordinates
``z = Q't``, solve there, and go back with ``weights``.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy import linalg

from streamlabel.stats.accelerator import accelerated
from streamlabel.stats.threads import one_thread_if_small
from streamlabel.types import CSR, FloatArray, IntArray

# Directions whose eigenvalue is below this share of the largest are rounding noise of the centring.
NULL_SHARE = 1e-12
# A feature that more than this share of the rows has is cheaper to multiply as a dense column.
_OFTEN = 0.1


class Spectrum(Protocol):
    """The size, mean and eigenvalues of some rows: all that choosing a ridge strength needs."""

    n_rows: int
    mean: FloatArray
    eigenvalues: FloatArray


class RidgeFactor(Spectrum, Protocol):
    """A factor of some rows, with which ridge is solved for any target and strength."""

    gram: FloatArray  # what was factored: Xc'Xc or Xc Xc'

    def project(self, targets: FloatArray | CSR) -> FloatArray:
        """Targets (n_rows, k) in spectral coordinates, ``Q'T`` (r, k). A constant added to a target does not matter."""
        ...

    def project_scores(self, weights: FloatArray) -> FloatArray:
        """The scores of classifiers V (d, k) in spectral coordinates, ``Q'(X V)``."""
        ...

    def weights(self, projected: FloatArray, beta: float) -> FloatArray:
        """The ridge solution (d, k) for projected targets (r, k)."""
        ...

    def coordinates(self, rows: IntArray) -> FloatArray:
        """These centred rows in the directions of the eigenvectors, ``Xc U`` (e, r)."""
        ...

    def leverages(self, beta: float, rows: IntArray | None = None) -> FloatArray:
        """The diagonal of the hat matrix for these rows (default: all), intercept included."""
        ...


class _Factor:
    """What both factors keep: the eigenvectors of a matrix of the centred rows that are not of its null space."""

    def __init__(self, X: CSR | FloatArray, *, centre: bool = True) -> None:
        self._X, self._centre = X, centre
        self.n_rows = int(X.shape[0])
        self.mean: FloatArray = np.asarray(X.mean(axis=0)) if centre else np.zeros(X.shape[1])
        self.gram = self._matrix()
        values, vectors = symmetric_spectrum(self.gram)
        kept = values > NULL_SHARE * max(float(values[-1]), 0.0)
        self.eigenvalues: FloatArray = values[kept]
        self._vectors: FloatArray = vectors if kept.all() else np.ascontiguousarray(vectors[:, kept])
        self._roots = np.sqrt(self.eigenvalues)

    def _matrix(self) -> FloatArray:
        return centred_kernel(self._X, self.mean)


class FeatureFactor(_Factor):
    """The ridge factor for many rows: the eigenvectors ``U`` of ``Xc'Xc`` (d, d)."""

    def _matrix(self) -> FloatArray:
        return centred_gram(self._X, self.mean)

    def project(self, targets: FloatArray | CSR) -> FloatArray:
        centred = dense(self._X.T @ targets)
        centred = centred - np.outer(self.mean, np.asarray(targets.sum(axis=0)).ravel())
        return (self._vectors.T @ centred) / self._roots[:, None]

    def project_scores(self, weights: FloatArray) -> FloatArray:
        return self._roots[:, None] * (self._vectors.T @ weights)

    def weights(self, projected: FloatArray, beta: float) -> FloatArray:
        return self._vectors @ (projected * (self._roots / (self.eigenvalues + beta))[:, None])

    def coordinates(self, rows: IntArray) -> FloatArray:
        return np.asarray(self._X[rows] @ self._vectors) - self.mean @ self._vectors

    def leverages(self, beta: float, rows: IntArray | None = None) -> FloatArray:
        shrink = 1.0 / (self.eigenvalues + beta)
        chosen = np.arange(self.n_rows) if rows is None else rows
        result = np.empty(len(chosen))
        for start in range(0, len(chosen), 1024):
            result[start : start + 1024] = np.square(self.coordinates(chosen[start : start + 1024])) @ shrink
        return result + (1.0 / self.n_rows if self._centre else 0.0)


class RowFactor(_Factor):
    """The ridge factor for few rows: the eigenvectors ``Q`` of ``Xc Xc'`` (n, n)."""

    def project(self, targets: FloatArray | CSR) -> FloatArray:
        return np.asarray((targets.T @ self._vectors).T)

    def project_scores(self, weights: FloatArray) -> FloatArray:
        return self.project(np.asarray(self._X @ weights))

    def weights(self, projected: FloatArray, beta: float) -> FloatArray:
        duals = self._vectors @ (projected / (self.eigenvalues + beta)[:, None])
        return np.asarray(self._X.T @ duals - np.outer(self.mean, duals.sum(axis=0)))

    def coordinates(self, rows: IntArray) -> FloatArray:
        return self._vectors[rows] * self._roots

    def leverages(self, beta: float, rows: IntArray | None = None) -> FloatArray:
        shrink = self.eigenvalues / (self.eigenvalues + beta)
        vectors = self._vectors if rows is None else self._vectors[rows]
        return np.square(vectors) @ shrink + (1.0 / self.n_rows if self._centre else 0.0)


def make_factor(X: CSR | FloatArray, *, centre: bool = True) -> RidgeFactor:
    """Factor these rows, by features or by rows, whichever is smaller; on one thread unless large (`stats.threads`)."""
    kind = FeatureFactor if X.shape[1] <= X.shape[0] else RowFactor
    with one_thread_if_small(X.shape):
        return kind(X, centre=centre)


def symmetric_spectrum(matrix: FloatArray, *, overwrite: bool = False) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, increasing, and eigenvectors of a symmetric matrix."""
    if (found := accelerated("eigh", matrix)) is not None:
        return found
    return linalg.eigh(matrix, check_finite=False, driver="evd", overwrite_a=overwrite)


def dense(product: Any) -> FloatArray:
    """A product of (sparse or dense) matrices as a float64 array that may be written to."""
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product, dtype=np.float64)


def centred_gram(X: CSR | FloatArray, mean: FloatArray) -> FloatArray:
    """The centred Gram ``Xc'Xc`` (d, d). Dense rows are centred first: a large offset would eat digits."""
    if isinstance(X, np.ndarray):
        centred = X - mean
        return np.asarray(centred.T @ centred)
    gram = dense(X.T @ X)
    gram -= X.shape[0] * np.outer(mean, mean)
    return gram


def centred_kernel(X: CSR | FloatArray, mean: FloatArray) -> FloatArray:
    """The centred kernel ``Xc Xc'`` (n, n), computed like `centred_gram`."""
    if isinstance(X, np.ndarray):
        centred = X - mean
        return np.asarray(centred @ centred.T)
    kernel = row_products(X, X)
    if mean.any():
        centre_kernel(kernel)
    return kernel


def row_products(A: CSR, B: CSR | FloatArray) -> FloatArray:
    """The products ``A B'`` (n, m) of rows, A sparse; what many rows of A have is multiplied as a dense block."""
    counts = np.bincount(A.indices, minlength=A.shape[1])
    often = counts > _OFTEN * A.shape[0]
    if isinstance(B, np.ndarray) or counts[often].sum() < 0.25 * A.nnz:  # taking columns apart costs more
        return dense(A @ B.T)
    same = A is B
    block, rest = A[:, often].toarray(), A[:, ~often]
    products = dense(block @ (block if same else B[:, often].toarray()).T)
    products += rest @ (rest if same else B[:, ~often]).T
    return products


def row_scale(centred: float, offset: float) -> float:
    """The unit of ridge strengths: the mean squared length of a centred row, ``centred``.

    If rows hardly differ beside their squared offset it is rounding noise, so it counts as at least 1e-10 of that;
    if there is nothing at all it is 1.
    """
    return max(centred, 1e-10 * offset) or 1.0


def centre_kernel(kernel: FloatArray) -> None:
    """Centre a kernel matrix in place: ``X X'`` becomes ``Xc Xc'``."""
    means = kernel.mean(axis=0)
    kernel -= means[:, None]
    kernel -= means[None, :]
    kernel += means.mean()
