"""Ridge of one strength on many rows and features: a Cholesky factor in single precision, mended in double.

The smaller of ``Xc'Xc + beta I`` (d, d) and ``Xc Xc' + beta I`` (n, n) is made in blocks and factored as float32: half
the memory and half the time of float64, and a hundredth of the time of its eigenvectors. The solution is then corrected
by its residual, which is computed in float64 through X, until that is small; on tf-idf rows it is at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from scipy import linalg, sparse

from streamlabel.classifier.conjugate_gradient import column_lengths
from streamlabel.classifier.objective import Design
from streamlabel.classifier.ridge import HatSpectrum
from streamlabel.errors import ConvergenceWarning
from streamlabel.stats.spectral import dense
from streamlabel.types import CSR, FloatArray, IntArray

TOLERANCE = 1e-4  # on the relative residual of every label; P@k does not change below a hundred times that
_CORRECTIONS = 20
_BLOCK_CELLS = 2_000_000  # of float64, 16 MB
_MOST_COLUMNS = 256  # solved at once
_MOST_TRACED = 128  # rows by which the trace of (I - H) H is estimated
_FULL = 0.04  # the share of a column from which on a dense product costs less than a sparse one


class SingleRidge:
    """Ridge on the rows X (n, d), sparse or dense, factored by features or by rows, whichever are fewer.

    Raises LinAlgError if beta is too small beside these rows for single precision.
    """

    def __init__(self, X: CSR | FloatArray, beta: float, *, centre: bool = True) -> None:
        self._design, self.beta = Design(X, centre), beta
        self._by_rows = X.shape[0] < X.shape[1]
        self._unit = float(self._design.gram_diagonal().sum()) / min(X.shape) or 1.0  # float32 has a small range
        make = _sparse_gram if sparse.issparse(X) else _dense_gram
        gram = make(self._design, self._by_rows, self._unit)
        gram.flat[:: len(gram) + 1] += np.float32(beta / self._unit)
        self._factor, failed = linalg.lapack.spotrf(gram, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise linalg.LinAlgError("not positive definite in single precision")

    def solve(self, targets: CSR) -> tuple[FloatArray, FloatArray]:
        """Classifiers (d, k) and intercepts (k,) of targets (n, k); a block of labels at a time is made dense."""
        weights, intercept = np.empty((self._design.n_features, targets.shape[1])), np.empty(targets.shape[1])
        for start, block, offsets in self.blocks(targets):
            part = slice(start, start + len(offsets))
            weights[:, part], intercept[part] = block, offsets
        return weights, intercept

    def blocks(self, targets: CSR) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Iterate over the labels of targets (n, k) in blocks: (first label, classifiers (d, b), intercepts (b,))."""
        design, n_targets = self._design, int(targets.shape[1])
        width = int(np.clip(8 * _BLOCK_CELLS // max(design.X.shape), 16, _MOST_COLUMNS))
        columns = targets.tocsc()
        worst = 0.0
        for start in range(0, n_targets, width):
            block = columns[:, start : start + width].tocsr()
            right = self._centred(block) if self._by_rows else design.cross(block)
            found, violation = self._corrected(right)
            weights = self._weights(found) if self._by_rows else found
            worst = max(worst, violation)
            yield start, weights, design.intercept(block, weights)
        if worst > TOLERANCE:
            warnings.warn(
                f"a factor in single precision got to {worst:.1e}, short of {TOLERANCE:.0e}; raise beta, or scale X",
                ConvergenceWarning,
                stacklevel=2,
            )

    def influences(self) -> FloatArray:
        """What each row has in the classifiers of labels, (n, d) float32: these are ``P'Y`` for any targets Y (n, k).

        It takes the inverse of the factor, which is used up; a label then costs what its positive rows cost.
        """
        inverse, _ = linalg.lapack.spotri(self._factor, lower=1, overwrite_c=1)
        del self._factor
        for start in range(0, len(inverse), _MOST_COLUMNS):  # the upper half is that of the lower
            part = slice(start, start + _MOST_COLUMNS)
            corner = np.tril(inverse[part, part])
            inverse[part, part] = corner + np.tril(corner, -1).T
            inverse[part, part.stop :] = inverse[part.stop :, part].T
        inverse /= np.float32(self._unit)
        X = self._design.X.astype(np.float32)
        found = np.ascontiguousarray(np.asarray(X.T @ inverse).T) if self._by_rows else np.asarray(X @ inverse)
        if self._design.fit_intercept:  # all rows together have no part
            found -= found.mean(axis=0, dtype=np.float64).astype(np.float32)
        return found

    @property
    def mean(self) -> FloatArray:
        """The mean of the rows, (d,)."""
        return self._design.mean

    def violation(self, targets: CSR, weights: FloatArray) -> float:
        """The largest residual of classifiers (d, k) of these targets (n, k), beside the largest right-hand side."""
        right = self._design.cross(targets)
        residual = right - self._design.normal_product(weights) - self.beta * weights
        return float(column_lengths(residual).max() / max(column_lengths(right).max(), np.sqrt(self._unit)))

    def leverages(self, rows: IntArray) -> tuple[FloatArray, HatSpectrum]:
        """The hat diagonal of these rows, intercept included, and the traces of the hat matrix as they suggest it."""
        n_rows, beta = self._design.n_rows, self.beta
        own = np.empty(len(rows))
        for start in range(0, len(rows), _MOST_COLUMNS):  # h_i = x_i'M x_i, or by rows H = I - beta M
            part = slice(start, start + _MOST_COLUMNS)
            half = self._solve(self._sides(rows[part]), half=True)
            own[part] = np.square(half).sum(axis=0)
        few = np.linspace(0, len(rows) - 1, min(len(rows), _MOST_TRACED)).astype(np.intp)
        squares = beta * np.square(self._solve(self._sides(rows[few]))).sum(axis=0)
        # (H - H^2)_ii = beta ||M x_i||^2, or by rows beta M_ii - beta^2 ||M e_i||^2
        spread = beta * (own[few] - squares) if self._by_rows else squares
        own = 1.0 - beta * own if self._by_rows else own
        hat = HatSpectrum(n_rows * float(own.mean()), n_rows * max(float(spread.mean()), 0.0))
        return own + (1.0 / n_rows if self._design.fit_intercept else 0.0), hat

    def _sides(self, rows: IntArray) -> FloatArray:
        """The centred rows as right-hand sides (d, k), or by rows their unit vectors (n, k)."""
        if not self._by_rows:
            return (dense(self._design.X[rows]) - self._design.mean).T
        unit = np.zeros((self._design.n_rows, len(rows)))
        unit[rows, np.arange(len(rows))] = 1.0
        return unit

    def _corrected(self, right: FloatArray) -> tuple[FloatArray, float]:
        """The solution for right-hand sides (order, k), and the largest relative residual of a column."""
        lengths = np.maximum(column_lengths(right), np.finfo(np.float64).tiny)
        solution, residual = np.zeros_like(right), right
        for _ in range(_CORRECTIONS):
            solution += self._solve(residual)
            residual = right - self._product(solution) - self.beta * solution
            violation = float((column_lengths(residual) / lengths).max())
            if violation <= TOLERANCE:
                break
        return solution, violation

    def _solve(self, right: FloatArray, *, half: bool = False) -> FloatArray:
        """``M R`` by the factor ``L L'`` alone, M the inverse; ``half``: ``L^-1 R``, whose squares sum to ``R'M R``."""
        scale = np.maximum(np.abs(right).max(axis=0), np.finfo(np.float64).tiny)
        single = np.asfortranarray(right / scale, dtype=np.float32)
        if half:
            found, _ = linalg.lapack.strtrs(self._factor, single, lower=1, overwrite_b=1)
            return np.asarray(found, dtype=np.float64) * (scale / np.sqrt(self._unit))
        found, _ = linalg.lapack.spotrs(self._factor, single, lower=1, overwrite_b=1)
        return np.asarray(found, dtype=np.float64) * (scale / self._unit)

    def _product(self, Z: FloatArray) -> FloatArray:
        """``Xc'Xc Z``, or ``Xc Xc'Z`` by rows."""
        if not self._by_rows:
            return self._design.normal_product(Z)
        weights = self._weights(Z)
        return np.asarray(self._design.X @ weights) - self._design.mean @ weights

    def _weights(self, duals: FloatArray) -> FloatArray:
        """``Xc'a`` (d, k) for duals a (n, k)."""
        weights = np.asarray(self._design.X.T @ duals)
        return weights - np.outer(self._design.mean, duals.sum(axis=0)) if self._design.fit_intercept else weights

    def _centred(self, targets: CSR) -> FloatArray:
        values = dense(targets)
        return values - values.mean(axis=0) if self._design.fit_intercept else values


def _dense_gram(design: Design, by_rows: bool, unit: float) -> FloatArray:
    """``Xc'Xc / unit``, or ``Xc Xc' / unit`` by rows, float32 in Fortran order; of dense rows, the lower half only."""
    order, other = min(design.X.shape), max(design.X.shape)
    gram = np.zeros((order, order), dtype=np.float32, order="F")
    width = max(_BLOCK_CELLS // order, 1)
    for start in range(0, other, width):
        part = slice(start, start + width)
        rows = design.X[:, part] - design.mean[part] if by_rows else (design.X[part] - design.mean).T
        gram = _added(gram, rows, unit)
    return gram


def _sparse_gram(design: Design, by_rows: bool, unit: float) -> FloatArray:
    """The same of sparse rows; made and centred in float64, a block at a time.

    With A the rows, or their transpose, it is ``A A'``, a sum over the columns of A. Full columns are dense products,
    the others a product of sparse matrices.
    """
    A = sparse.csc_array(design.X if by_rows else design.X.T)
    order, other = A.shape
    gram = np.zeros((order, order), dtype=np.float32, order="F")
    width = max(_BLOCK_CELLS // order, 1)
    full = np.flatnonzero(np.diff(A.indptr) > _FULL * order)
    for start in range(0, len(full), width):
        gram = _added(gram, dense(A[:, full[start : start + width]]), unit)
    rest = A[:, np.delete(np.arange(other), full)]
    left, right = rest.tocsr(), rest.T.tocsr()
    shift = np.asarray(design.X @ design.mean) if by_rows else design.mean
    for start in range(0, order, width):
        part = slice(start, start + width)
        block = dense(left[part] @ right)
        if by_rows:
            block -= shift[part, None] + shift - float(design.mean @ design.mean)
        else:
            block -= design.n_rows * np.outer(shift[part], shift)
        gram[:, part] += block.T / unit
    return gram


def _added(gram: FloatArray, columns: FloatArray, unit: float) -> FloatArray:
    """The lower half of ``G + C C' / unit``, in place."""
    single = np.asfortranarray(columns / np.sqrt(unit), dtype=np.float32)
    return np.asarray(linalg.blas.ssyrk(1.0, single, beta=1.0, c=gram, lower=1, overwrite_c=1))
