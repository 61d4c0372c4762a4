"""Theorem 2: a bound on the distance of classifiers learned label after label from those learned all at once.

For rows X (n, d), answers Y (n, m), a structure S (m, m) with zero diagonal and ``M = I - S``, the whole problem is::

    J(Z) = 1/2 ||Y - X Z||_F^2 + beta/2 ||Z M||_F^2        (the paper writes lambda for this beta)

Let Zh be its minimiser, Z any other classifiers (d, m) and ``D = Zh - Z``. J is quadratic, so its gradient is 0 at Zh::

    X'X D + beta D M M' = G(Z),    G(Z) = X'(Y - X Z) - beta Z M M'

The smallest eigenvalue of the left side is ``a = sigma_min(X)^2 + beta sigma_min(M)^2``, so ``||D|| <= ||G(Z)|| / a``.
The theorem as printed is this with ``J(Z) >= J(Zh)`` in place of the gradient, which costs a factor of 2, and with
``||G||`` bounded by norms::

    ||D||_F <= 2 / a * (sqrt(2 n Omega C) + beta ||M||_F^2 ||Z||_F),    C = 1/2 ||Y - X Z||_F^2,  Omega >= ||x_i||^2

Neither reads how Z was found. If Z is a stream (past labels solved together, each new label anchored at its code
over the labels before it, which never use it), nearly everything in G cancels: ``G(Z) = beta E S1'`` with the codes S1
(m, k) of the k new labels and the deviations E (d, k) of their classifiers from their anchors. A stream ends where the
whole problem does if the codes are empty or the anchors are met.

``sigma_min(X)`` is the least of **d** singular values: 0 if there are fewer rows than features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from streamlabel.stats.spectral import dense
from streamlabel.types import FloatArray


class RowSpectrum(NamedTuple):
    """The singular value decomposition of rows, ``X = left diag(values) right``; rounding noise is set to 0."""

    left: FloatArray
    values: FloatArray
    right: FloatArray


@dataclass(frozen=True)
class DistanceBound:
    """The bound of Theorem 2 for one problem and one set of classifiers Z.

    Attributes
    ----------
    curvature : a, the smallest eigenvalue of the Hessian; if it is 0 the whole problem has many solutions and no
        bound holds, so both are infinite
    loss, row_energy, structure_energy, weights_norm : C, Omega, ||M||_F^2, ||Z||_F
    gradient_norm : ||G(Z)||_F
    printed : the bound of the paper
    tight : ||G(Z)||_F / a
    """

    curvature: float
    loss: float
    row_energy: float
    structure_energy: float
    weights_norm: float
    gradient_norm: float
    printed: float
    tight: float


def distance_bound(
    X: Any, Y: FloatArray, structure: Any, beta: float, weights: FloatArray, spectrum: RowSpectrum | None = None
) -> DistanceBound:
    """The bound on ``||Zh - Z||_F`` for classifiers Z = ``weights`` (d, m); nothing is solved.

    X (n, d) may be sparse; for a model with an intercept pass centred X and Y. ``spectrum`` is that of X, if known.
    """
    mixing = _mixing(structure)
    errors = Y - np.asarray(X @ weights)
    gradient = np.asarray(X.T @ errors) - beta * (weights @ mixing) @ mixing.T
    values = row_spectrum(X).values if spectrum is None else spectrum.values
    spread = _cleaned(linalg.svdvals(mixing), mixing.shape)
    least = float(values[-1]) if X.shape[0] >= X.shape[1] else 0.0
    curvature = least**2 + beta * float(spread[-1]) ** 2
    loss = 0.5 * float(np.square(errors).sum())
    squares = X.multiply(X) if hasattr(X, "multiply") else np.square(X)
    row_energy = float(np.max(squares.sum(axis=1)))  # the largest ||x_l||^2
    structure_energy = float(np.square(mixing).sum())
    weights_norm, gradient_norm = float(linalg.norm(weights)), float(linalg.norm(gradient))
    by_norms = np.sqrt(2.0 * X.shape[0] * row_energy * loss) + beta * structure_energy * weights_norm
    return DistanceBound(
        curvature=curvature,
        loss=loss,
        row_energy=row_energy,
        structure_energy=structure_energy,
        weights_norm=weights_norm,
        gradient_norm=gradient_norm,
        printed=2.0 * float(by_norms) / curvature if curvature else np.inf,
        tight=gradient_norm / curvature if curvature else np.inf,
    )


def row_spectrum(X: Any) -> RowSpectrum:
    """The singular value decomposition of X (n, d), to be used more than once."""
    left, values, right = linalg.svd(dense(X), full_matrices=False)
    return RowSpectrum(left, _cleaned(values, X.shape), right)


def solve_together(
    X: Any, Y: FloatArray, structure: Any, beta: float, spectrum: RowSpectrum | None = None
) -> FloatArray:
    """Minimise J for all labels at once, (d, m): the shortest of many, by singular values: for small problems."""
    left, values, right = row_spectrum(X) if spectrum is None else spectrum
    rotation, bent, _ = linalg.svd(_mixing(structure))
    strengths = _cleaned(bent, rotation.shape)
    share = np.square(values)[:, None] + beta * np.square(strengths)
    scale = np.divide(values[:, None], share, out=np.zeros_like(share), where=share > 0.0)
    return np.asarray(right.T @ (scale * (left.T @ Y @ rotation)) @ rotation.T)


def solve_streamed(X: Any, Y: FloatArray, structure: Any, n_past: int, beta: float) -> FloatArray:
    """The classifiers (d, m) of a stream: the first ``n_past`` solved together, then one label after another.

    Label j minimises ``1/2 ||y_j - X w||^2 + beta/2 ||w - W s_j||^2`` with the classifiers W of labels before it; what
    column j of the structure says of itself and of later labels is not read.
    """
    codes = dense(structure)
    spectrum = row_spectrum(X)
    left, values, right = spectrum
    shrink = np.divide(values, np.square(values) + beta, out=np.zeros_like(values), where=values > 0.0)
    weights = np.zeros((X.shape[1], Y.shape[1]))
    if n_past:
        weights[:, :n_past] = solve_together(X, Y[:, :n_past], codes[:n_past, :n_past], beta, spectrum)
    for label in range(n_past, Y.shape[1]):
        anchor = weights[:, :label] @ codes[:label, label]
        target = Y[:, label] - np.asarray(X @ anchor)
        weights[:, label] = anchor + right.T @ (shrink * (left.T @ target))
    return weights


def streaming_gradient(weights: FloatArray, structure: Any, n_past: int, beta: float) -> FloatArray:
    """The gradient G of a stream, ``beta E S1'`` (d, m), without a look at the rows."""
    codes = np.triu(dense(structure), 1)
    codes[:, :n_past] = 0.0
    deviations = weights - weights @ codes
    return np.asarray(beta * deviations[:, n_past:] @ codes[:, n_past:].T)


def _mixing(structure: Any) -> FloatArray:
    codes = dense(structure)
    return np.eye(len(codes)) - codes


def _cleaned(singular: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Singular values with those that are rounding noise set to 0."""
    return np.where(singular > max(shape) * np.finfo(np.float64).eps * singular.max(initial=0.0), singular, 0.0)
