"""Ridge toward an anchor, in closed form: on a kept factor, or with the past classifiers as a metric.

With an intercept, targets and features centred on the annotated rows, the new classifier minimises::

    1/2 ||y - X w||^2 + beta/2 ||w - p||^2          p = W s, the anchor

With ``v = w - p`` this is plain ridge on the residual target ``t = y - X p``: ``(X'X + beta I) v = X't``, solved in the
spectral coordinates of a kept factor. Its leave-one-out error is ``e_i = r_i / (1 - h_i)``, with the hat diagonal ``h``
that does not depend on the label.

A metric says which directions classifiers take. The new classifier then has the prior ``w ~ N(p, C)``,
``C = (1 - a) I + a c R R'``. ``R (d, r)`` spans the past classifiers (or their main directions), the share ``a`` says
how far to trust them, and ``c`` puts both parts on the scale of the rows at hand:
``c = trace(Xc Xc') / trace(Xc R R' Xc')``. With ``a = 0`` it is plain ridge. The answer::

    w = p + C Xc' (Xc C Xc' + beta I)^-1 t,         t = y - X p, centred

`RowRidge` solves it as written, for few rows; `FeatureRidge` in the coordinates ``X T``, ``T T' = C``, for many. Both
give leave-one-out residuals from the same factor.

Whether the anchor helps, `compare` tells from the squared residuals, which the plain ridge gives without another look
at the rows: with ``A = Xc'Xc + beta I``, ``b = Xc'y`` and ``A w = b + beta p``::

    ||yc - Xc w||^2 = ||yc||^2 - w'b + beta w'(p - w)
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from streamlabel.errors import DataError
from streamlabel.stats.accelerator import accelerated
from streamlabel.stats.spectral import RidgeFactor, Spectrum, centred_gram, centred_kernel, dense, row_scale
from streamlabel.stats.ties import first_least
from streamlabel.types import CSR, FloatArray, IntArray

BETA_STEPS = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0])


def beta_grid(factor: Spectrum) -> FloatArray:
    """The ridge strengths to choose from: `BETA_STEPS` in units of the mean squared length of a centred row."""
    scale = float(factor.eigenvalues.sum()) / max(factor.n_rows, 1)
    return row_scale(scale, float(factor.mean @ factor.mean)) * BETA_STEPS


def generalised_error(factor: Spectrum, projected: FloatArray, energy: FloatArray, beta: float) -> FloatArray:
    """The generalised cross-validation error of each target, ``n RSS / (n - trace H)^2``, (k,).

    projected : (r, k) = Q't;   energy : (k,) = ||t||^2 of the centred targets
    """
    shrink = factor.eigenvalues / (factor.eigenvalues + beta)
    residual = energy - np.square(projected).T @ (1.0 - np.square(1.0 - shrink))
    freedom = factor.n_rows - 1.0 - shrink.sum()
    return factor.n_rows * np.maximum(residual, 0.0) / max(freedom, 1e-3) ** 2


def choose_beta(factor: Spectrum, projected: FloatArray, energy: FloatArray) -> float:
    """The strength of `beta_grid` with the least generalised error over all targets; of two equal ones the larger."""
    grid = beta_grid(factor)[::-1]
    errors = [float(generalised_error(factor, projected, energy, beta).sum()) for beta in grid]
    return float(grid[first_least(errors)])


def solve_anchored_ridge(factor: RidgeFactor, projected: FloatArray, anchor: FloatArray, beta: float) -> FloatArray:
    """Ridge toward anchors (d, k) for projected targets (r, k): ``w = p + (X'X + beta I)^-1 X'(y - X p)``, (d, k)."""
    if not anchor.any():
        return factor.weights(projected, beta)
    return anchor + factor.weights(projected - factor.project_scores(anchor), beta)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Classifiers (d, k) learned alone and toward an anchor, with their sums of squared residuals (k,)."""

    alone: FloatArray
    toward: FloatArray
    residual_alone: FloatArray
    residual_toward: FloatArray


class PreparedRidge(Protocol):
    """Ridge on some rows, factored, so that any number of targets can be solved."""

    n_rows: int
    mean: FloatArray
    beta: float
    centre: bool  # whether there is an intercept
    known_hat: HatSpectrum | None  # `hat`, where it has been given or made

    def solve(self, targets: CSR | FloatArray) -> FloatArray:
        """Solve for weights (d, k) of targets (n_rows, k); if rows are centred, constants in a target do not matter."""
        ...

    def toward(self, targets: CSR | FloatArray, anchor: FloatArray) -> FloatArray:
        """Solve for weights (d, k) of targets (n_rows, k) toward an anchor (d, k)."""
        ...

    def leave_one_out(self, targets: FloatArray, weights: FloatArray) -> FloatArray:
        """The residuals (n_rows, k) of each row under the classifier learned without it."""
        ...

    def leverages(self, rows: IntArray | None = None) -> FloatArray:
        """The diagonal of the hat matrix for these rows (default: all), intercept included."""
        ...

    def compare(self, targets: CSR | FloatArray, anchor: FloatArray) -> Comparison:
        """Learn the targets (n_rows, k) both ways: alone, and toward the anchor (d, k)."""
        ...

    @property
    def hat(self) -> HatSpectrum:
        """The eigenvalues of the hat matrix without the intercept, or what is known of them."""
        ...

    @property
    def freedom(self) -> float:
        """The residual degrees of freedom: rows less the trace of the hat matrix, intercept included."""
        ...


@dataclass(frozen=True, eq=False)
class HatSpectrum:
    """The traces of the hat matrix H that degrees of freedom need: its own, and that of ``(I - H) H``.

    spread : ``h (1 - h)`` of its eigenvalues, largest first, or None if only their sum is known
    """

    trace: float
    spread_sum: float
    spread: FloatArray | None = None

    @classmethod
    def of(cls, eigenvalues: FloatArray, beta: float) -> HatSpectrum:
        """Compute the traces from the eigenvalues of ``Xc'Xc``."""
        values = eigenvalues / (eigenvalues + beta)
        spread = np.sort(values * (1.0 - values))[::-1]
        return cls(float(values.sum()), float(spread.sum()), spread)

    def most_between(self, sizes: IntArray) -> FloatArray:
        """The largest trace of ``(I - H) H`` on spaces of these dimensions, (k,); an upper bound if less is known."""
        if self.spread is None:
            return np.minimum(np.asarray(sizes) / 4.0, self.spread_sum)
        sums = np.concatenate(([0.0], np.cumsum(self.spread)))
        return np.asarray(sums[np.minimum(sizes, len(self.spread))])


def mean_square_length(X: CSR | FloatArray, mean: FloatArray) -> float:
    """The mean squared length of a row minus the mean: the unit of beta."""
    offset = float(mean @ mean)
    if isinstance(X, np.ndarray):
        return row_scale(float(np.square(X - mean).sum()) / max(len(X), 1), offset)
    return row_scale(float(X.data @ X.data) / max(X.shape[0], 1) - offset, offset)


def make_ridge(
    X: CSR | FloatArray,
    beta: float,
    *,
    basis: FloatArray | None = None,
    share: float = 0.0,
    centre: bool = True,
    gram: FloatArray | None = None,
    hat: HatSpectrum | None = None,
    scores: FloatArray | None = None,
) -> PreparedRidge:
    """Factor ridge on these rows, by rows or by features, whichever is smaller.

    ``basis`` (d, r) and ``share`` are the metric. ``gram``: ``Xc'Xc`` or ``Xc Xc'``, whichever is smaller, if it is
    known already (it is written to). ``hat``, ``scores`` (of the basis on the rows): if they are known already.
    """
    if not share and (found := accelerated("ridge", X, beta, centre, hat)) is not None:
        return found
    kind = RowRidge if X.shape[0] < X.shape[1] else FeatureRidge
    return kind(X, beta, basis=basis, share=share, centre=centre, gram=gram, hat=hat, scores=scores)


class _FactoredRidge(ABC):
    """What ridge by rows and by features share: a Cholesky factor of a kernel or Gram, with beta on its diagonal."""

    def __init__(
        self,
        X: CSR | FloatArray,
        beta: float,
        *,
        basis: FloatArray | None = None,
        share: float = 0.0,
        centre: bool = True,
        gram: FloatArray | None = None,
        hat: HatSpectrum | None = None,
        scores: FloatArray | None = None,
    ) -> None:
        self._X, self.beta, self.centre = X, beta, centre
        self.known_hat: HatSpectrum | None = hat
        self.n_rows = int(X.shape[0])
        self.mean: FloatArray = np.asarray(X.mean(axis=0)) if centre else np.zeros(X.shape[1])
        matrix = self._matrix(gram, basis, share if basis is not None else 0.0, scores)
        matrix.flat[:: len(matrix) + 1] += beta
        self._factor = _cholesky(matrix)

    @abstractmethod
    def _matrix(
        self, gram: FloatArray | None, basis: FloatArray | None, share: float, scores: FloatArray | None
    ) -> FloatArray:
        """What is factored, without beta."""

    @abstractmethod
    def solve(self, targets: CSR | FloatArray) -> FloatArray:
        """As in `PreparedRidge`."""

    def toward(self, targets: CSR | FloatArray, anchor: FloatArray) -> FloatArray:
        return anchor + self.solve(dense(targets) - np.asarray(self._X @ anchor))

    @property
    def hat(self) -> HatSpectrum:
        if self.known_hat is None:
            self.known_hat = _hat_spectrum(self._inverted(), self.beta)
        return self.known_hat

    @property
    def freedom(self) -> float:
        return self.n_rows - self.hat.trace - float(self.centre)

    def _inverted(self) -> FloatArray:
        """The inverse of what was factored, its lower half."""
        inverse, _ = linalg.lapack.dpotri(self._factor[0], lower=1)
        return np.asarray(inverse)


class RowRidge(_FactoredRidge):
    """Ridge prepared for few rows: the Cholesky factor of ``Xc C Xc' + beta I`` (q, q)."""

    def _matrix(
        self, gram: FloatArray | None, basis: FloatArray | None, share: float, scores: FloatArray | None
    ) -> FloatArray:
        self._share = share
        kernel = centred_kernel(self._X, self.mean) if gram is None else gram
        if share:
            assert basis is not None
            scores = np.asarray(self._X @ basis) if scores is None else scores
            if self.centre:
                scores = scores - scores.mean(axis=0)
            self._basis, self._scores = basis, scores
            self._scale = kernel.trace() / max(float(np.square(scores).sum()), np.finfo(np.float64).tiny)
            kernel *= 1.0 - share
            kernel += (share * self._scale) * (scores @ scores.T)
        return kernel

    def solve(self, targets: CSR | FloatArray) -> FloatArray:
        duals = self._duals(dense(targets))
        weights = np.asarray(self._X.T @ duals)
        if self._share:
            weights *= 1.0 - self._share
            weights += self._basis @ ((self._share * self._scale) * (self._scores.T @ duals))
            if self.centre:
                return weights - np.outer((1.0 - self._share) * self.mean, duals.sum(axis=0))
        return weights - np.outer(self.mean, duals.sum(axis=0)) if self.centre else weights

    def leave_one_out(self, targets: FloatArray, weights: FloatArray) -> FloatArray:
        # r = beta * alpha
        return self.beta * self._duals(targets) / np.maximum(1.0 - self.leverages(), 1e-12)[:, None]

    def leverages(self, rows: IntArray | None = None) -> FloatArray:
        return self._leverages if rows is None else self._leverages[rows]

    @functools.cached_property
    def _leverages(self) -> FloatArray:
        # 1 - h_i = beta * (K + beta I)^-1_ii, less the intercept's share 1/q
        kept = self.beta * self._inverted().diagonal()
        return np.asarray(1.0 - kept + (1.0 / self.n_rows if self.centre else 0.0))

    def compare(self, targets: CSR | FloatArray, anchor: FloatArray) -> Comparison:
        both = np.hstack((dense(targets), dense(targets) - np.asarray(self._X @ anchor)))
        weights = self.solve(both)
        n_targets = anchor.shape[1]
        residuals = np.square(self.beta * self._duals(both)).sum(axis=0)
        return Comparison(
            weights[:, :n_targets], anchor + weights[:, n_targets:], residuals[:n_targets], residuals[n_targets:]
        )

    def _duals(self, targets: FloatArray) -> FloatArray:
        centred = targets - targets.mean(axis=0) if self.centre else targets
        return linalg.cho_solve(self._factor, centred, check_finite=False)


class FeatureRidge(_FactoredRidge):
    """Ridge prepared for many rows: the Cholesky factor of ``T'Xc'Xc T + beta I`` (d, d), ``T T' = C``."""

    def _matrix(
        self, gram: FloatArray | None, basis: FloatArray | None, share: float, scores: FloatArray | None
    ) -> FloatArray:
        gram = centred_gram(self._X, self.mean) if gram is None else gram
        self._root: FloatArray | None = None
        if share:
            assert basis is not None
            scale = gram.trace() / max(float(np.vdot(basis, gram @ basis)), np.finfo(np.float64).tiny)
            prior = (share * scale) * (basis @ basis.T)
            prior.flat[:: len(prior) + 1] += 1.0 - share
            self._root = linalg.cholesky(prior, lower=True, overwrite_a=True, check_finite=False)
            gram = self._root.T @ gram @ self._root
        return gram

    def solve(self, targets: CSR | FloatArray) -> FloatArray:
        right = self._products(targets)
        if self._root is None:
            return self._solve_plain(right)
        return self._root @ linalg.cho_solve(self._factor, self._root.T @ right, overwrite_b=True, check_finite=False)

    def compare(self, targets: CSR | FloatArray, anchor: FloatArray) -> Comparison:
        assert self._root is None, "with a metric, both ways are solved one by one"
        right = self._products(targets)
        alone = self._solve_plain(right)
        toward = alone + self.beta * self._solve_plain(anchor)
        energy = _column_sums(targets, squared=True)
        if self.centre:
            energy -= np.square(_column_sums(targets)) / self.n_rows
        return Comparison(
            alone,
            toward,
            energy - (alone * (right + self.beta * alone)).sum(axis=0),
            energy - (toward * (right + self.beta * (toward - anchor))).sum(axis=0),
        )

    @functools.cached_property
    def _kept_inverse(self) -> FloatArray:
        return super()._inverted()

    def _inverted(self) -> FloatArray:
        return self._kept_inverse  # made when a single target is first solved

    def _products(self, targets: CSR | FloatArray) -> FloatArray:
        """``Xc'T`` (d, k)."""
        right = dense(self._X.T @ targets)
        right -= np.outer(self.mean, _column_sums(targets))
        return right

    def _solve_plain(self, right: FloatArray) -> FloatArray:
        """Solve without a metric; a single target reads half of the inverse once, not the factor twice."""
        if right.shape[1] == 1:
            return np.asarray(linalg.blas.dsymv(1.0, self._inverted(), right[:, 0], lower=1))[:, None]
        return linalg.cho_solve(self._factor, right, check_finite=False)

    def leave_one_out(self: Any, targets: FloatArray, weights: FloatArray) -> FloatArray:
        residual = targets - np.asarray(self._X @ weights)
        if self.centre:
            residual -= residual.mean(axis=0)
        return residual / np.maximum(1.0 - self.leverages(), 1e-12)[:, None]

    def leverages(self, rows: IntArray | None = None) -> FloatArray:
        return self._leverages if rows is None else self._leverages_of(rows)

    @functools.cached_property
    def _leverages(self) -> FloatArray:
        return self._leverages_of(np.arange(self.n_rows))

    def _leverages_of(self, chosen: IntArray) -> FloatArray:
        result = np.empty(len(chosen))
        for start in range(0, len(chosen), 1024):
            block = dense(self._X[chosen[start : start + 1024]]) - self.mean
            if self._root is not None:
                block = block @ self._root
            half = linalg.solve_triangular(self._factor[0], block.T, lower=True, overwrite_b=True, check_finite=False)
            result[start : start + 1024] = np.square(half).sum(axis=0)
        return result + (1.0 / self.n_rows if self.centre else 0.0)


def _hat_spectrum(inverse: FloatArray, beta: float) -> HatSpectrum:
    """The traces from the lower half of ``(G + beta I)^-1``, which is ``(I - H) / beta`` but for empty directions."""
    kept = beta * inverse.diagonal()
    squares = 2.0 * beta**2 * float(np.square(np.tril(inverse, -1)).sum()) + float(np.square(kept).sum())
    return HatSpectrum(float((1.0 - kept).sum()), max(float(kept.sum()) - squares, 0.0))


def _column_sums(matrix: CSR | FloatArray, *, squared: bool = False) -> FloatArray:
    if isinstance(matrix, np.ndarray):
        return (np.square(matrix) if squared else matrix).sum(axis=0)
    values = matrix.data.astype(np.float64)
    sums = np.bincount(matrix.indices, weights=np.square(values) if squared else values, minlength=matrix.shape[1])
    return sums.astype(np.float64)


def _cholesky(matrix: FloatArray) -> tuple[FloatArray, bool]:
    try:
        return linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError as error:
        raise DataError(
            "beta is too small beside these rows for the digits of a float (a large offset, or an explicit tiny beta): "
            "centre or scale X, or raise beta"
        ) from error
