"""Rows in coordinates where the prior of a classifier is round and their own products are diagonal; any loss there.

With the prior ``w ~ N(p, C)`` of `classifier.ridge`, ``C = T T'``, the centred rows are ``Xc T = Q diag(v)^1/2 U'``. In
``Z = Q diag(v)^1/2`` a ridge is a division for any strength. The Hessian of another loss is nearly diagonal there, so
that Newton's inner solves are short, with a metric as without one.
"""

from __future__ import annotations

import functools

import numpy as np

from streamlabel.classifier.losses import get_loss
from streamlabel.classifier.newton import ShiftedInverse, Start, diagonal_inverse, minimise_newton
from streamlabel.classifier.objective import AnchoredObjective, SingleRows
from streamlabel.classifier.penalty import make_penalty
from streamlabel.stats.accelerator import accelerated
from streamlabel.stats.spectral import NULL_SHARE, centred_kernel, dense, row_products, symmetric_spectrum
from streamlabel.types import CSR, FloatArray

LARGEST_ORDER = 2_048  # of what is decomposed, a few seconds
_MOST_CELLS = 30_000_000
MOST_STEPS = 100  # of Newton's method


def affords_coordinates(shape: tuple[int, ...], n_past: int = 0) -> bool:
    """Whether rows of this shape can be brought to coordinates in seconds."""
    n_rows, n_features = shape
    order = min(n_rows, n_features + n_past)
    return order <= LARGEST_ORDER and n_rows * order <= _MOST_CELLS


def minimise(
    X: CSR | FloatArray | SingleRows,
    squares: FloatArray,
    answers: FloatArray,
    beta: float,
    loss: str,
    anchor: FloatArray | None = None,
    start: Start | None = None,
    known: FloatArray | None = None,
    tolerance: float = 1e-3,
    max_iter: int = MOST_STEPS,
    from_start: bool = False,
    inverse: ShiftedInverse | None = None,
) -> Start:
    """Learn answers (q, k) with any loss, toward an anchor (d, k): classifiers (d, k) and intercepts (k,).

    X : (q, d), rows, best in coordinates;   squares : (d,), the diagonal of Xc'Xc
    known : (q, k), 0 for answers that are left out;   from_start, inverse : as in `minimise_newton`
    """
    kind = get_loss(loss)
    anchor = np.zeros((X.shape[1], answers.shape[1])) if anchor is None else anchor
    penalty = make_penalty(anchor, None, float(beta))
    given = (squares, start, tolerance, max_iter, from_start)
    rows = X.single if isinstance(X, SingleRows) else X
    found = accelerated("newton", rows, answers, loss, penalty, True, known, *given)
    if found is None:
        objective = AnchoredObjective(X, kind.encode(answers), kind, penalty, True, known)
        inverse = diagonal_inverse(squares) if inverse is None else inverse
        found = minimise_newton(
            objective, inverse, start, tolerance=tolerance, max_iter=max_iter, from_start=from_start
        )
    return found.weights, found.intercept


class Coordinates:
    """The coordinates of q rows X (q, d).

    past : (q, r), the centred scores of a basis of the metric on these rows;  share : of the metric
    first : others of the same rows, whose products of rows are used again
    single : in single precision: a third of the time, and good enough to compare
    kernel, far : these products, with themselves and with other rows
    Z : (q, s);   squares : (s,), the diagonal of Z'Z;   unit : the mean squared length of a centred row
    """

    def __init__(
        self,
        X: CSR | FloatArray,
        past: FloatArray | None = None,
        share: float = 0.0,
        first: Coordinates | None = None,
        single: bool = False,
    ) -> None:
        self._X, self.mean = X, np.asarray(X.mean(axis=0)).ravel()
        real, least = (np.float32, 1e-6) if single else (np.float64, 1e3 * NULL_SHARE)
        self._as = functools.partial(np.asarray, dtype=real)
        self._past: FloatArray | None = self._as(past) if past is not None and share else None
        self._share = 0.0 if self._past is None else share
        n_rows, n_features = X.shape
        self._features: FloatArray | None = None
        self.kernel: FloatArray | None = None if first is None else first.kernel
        self.far: list[tuple[CSR | FloatArray, FloatArray]] = [] if first is None else first.far
        if n_rows <= n_features + (0 if self._past is None else self._past.shape[1]):
            self.kernel = self._as(centred_kernel(X, self.mean) if self.kernel is None else self.kernel)
            kernel = self.kernel.copy()
            own = float(kernel.trace())
            self._scale(own)
            if self._past is not None:
                kernel *= 1.0 - self._share
                kernel += self._metric * (self._past @ self._past.T)
            values, vectors = symmetric_spectrum(kernel, overwrite=True)
            kept = values > least * max(float(values[-1]), np.finfo(np.float64).tiny)
            roots = np.sqrt(values[kept])
            self.Z: FloatArray = vectors[:, kept] * roots
            self._back = vectors[:, kept] / roots
        else:
            centred = self._as(dense(X) - self.mean)
            own = float(np.square(centred).sum())
            self._scale(own)
            rows = self._joined(centred, self._past)
            values, vectors = symmetric_spectrum(rows.T @ rows, overwrite=True)
            kept = values > least * max(float(values[-1]), np.finfo(np.float64).tiny)
            self._features = vectors[:, kept]
            self.Z = rows @ self._features
        self.squares: FloatArray = np.square(self.Z).sum(axis=0)
        self.unit = own / n_rows

    def across(self, X: CSR | FloatArray, past: FloatArray | None = None) -> FloatArray:
        """Other rows (e, d) in these coordinates, (e, s); ``past`` are their scores less the means on the first."""
        if self._features is not None:
            return self._joined(self._as(dense(X) - self.mean), past) @ self._features
        known = [kernel for rows, kernel in self.far if rows is X]
        kernel = known[0] if known else self._as(self._products(X))
        if not known:
            self.far.append((X, kernel))
        if self._past is not None:
            assert past is not None
            kernel = (1.0 - self._share) * kernel + self._metric * (self._as(past) @ self._past.T)
        return kernel @ self._back

    def _products(self, X: CSR | FloatArray) -> FloatArray:
        if isinstance(X, np.ndarray):
            return (X - self.mean) @ (self._X - self.mean).T
        kernel = row_products(X, self._X)
        kernel -= np.asarray(X @ self.mean)[:, None]
        kernel -= np.asarray(self._X @ self.mean) - float(self.mean @ self.mean)
        return kernel

    def weights(self, V: FloatArray, basis: FloatArray | None = None) -> FloatArray:
        """Classifiers (d, k) from those in coordinates (s, k); ``basis`` (d, r) is that of the metric."""
        own, of_basis = self.parts(V)
        if of_basis is None:
            return own
        assert basis is not None
        return own + basis @ of_basis

    def parts(self, V: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """What classifiers in coordinates (s, k) are of features (d, k), and of the basis of the metric (r, k)."""
        if self._features is not None:
            found = self._features @ V
            if self._past is None:
                return found, None
            n_features = len(self.mean)
            return np.sqrt(1.0 - self._share) * found[:n_features], np.sqrt(self._metric) * found[n_features:]
        duals = self._back @ V
        found = np.asarray(self._X.T @ duals) - np.outer(self.mean, duals.sum(axis=0))
        if self._past is None:
            return found, None
        return (1.0 - self._share) * found, self._metric * (self._past.T @ duals)

    def of_scores(self, scores: FloatArray) -> FloatArray:
        """The classifiers (s, k) that have these centred scores (q, k) on the rows."""
        return (self.Z.T @ self._as(scores)) / self.squares[:, None]

    def ridge(self, targets: FloatArray, beta: float) -> FloatArray:
        """Ridge (s, k) of centred targets (q, k)."""
        return (self.Z.T @ self._as(targets)) / (self.squares + float(beta))[:, None]

    def _scale(self, own: float) -> None:
        total = 0.0 if self._past is None else float(np.square(self._past).sum())
        self._metric = float(self._share * own / max(total, np.finfo(np.float64).tiny))

    def _joined(self, rows: FloatArray, past: FloatArray | None) -> FloatArray:
        if self._past is None:
            return rows
        assert past is not None
        return self._as(np.hstack((np.sqrt(1.0 - self._share) * rows, np.sqrt(self._metric) * past)))
