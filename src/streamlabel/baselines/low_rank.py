"""Classifiers that share a low rank, ``Z = W H'``, learned by turns.

They minimise::

    J(W, H) = 1/2 ||Y - X W H'||_F^2 + beta/2 (||W||_F^2 + ||H||_F^2),   W (d, k),  H (m, k)

With ``A = X'X`` and ``C = X'Y`` (X and Y centred if there is an intercept)::

    H-step:  H (W'A W + beta I) = C'W     one k x k system for all labels
    W-step:  A W (H'H) + beta W = C H     with H'H = Q diag(h) Q', k systems (h_j A + beta I) v = r, V = W Q, R = C H Q

If the smaller side of X can be factored, ``A = U diag(a) U'``, both steps are exact and happen in spectral
coordinates (`SpectralRows`). Else the W-step is conjugate gradients through X itself (`SparseRows`): neither A, C nor
the Kronecker product is formed. If labels are known on some rows only, each part of them has an A and a C of its own
(`baselines.leml`). No step raises J.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import linalg

from streamlabel.classifier.conjugate_gradient import column_lengths, conjugate_gradient
from streamlabel.classifier.objective import Design
from streamlabel.errors import ConvergenceWarning
from streamlabel.stats.spectral import RidgeFactor
from streamlabel.types import CSR, FloatArray, SolveReport

# A W-step by conjugate gradients ends when the residual it began with has shrunk to this share.
_SHRINK, MOST_STEPS = 1e-3, 200
Products = tuple[FloatArray, FloatArray]


class Rows(Protocol):
    """Features X and labels Y, as the alternating steps use them. V is W in whatever coordinates suit, (r, k)."""

    name: str
    n_coordinates: int

    def products(self, V: FloatArray) -> tuple[Products, ...]:
        """The products ``C'W`` (m, k) and ``W'A W`` (k, k), for every part of the labels that has rows of its own."""
        ...

    def solve(self, H: FloatArray, beta: float, start: FloatArray) -> FloatArray:
        """Solve the W-step for this H: V (r, k)."""
        ...

    def weights(self, V: FloatArray) -> FloatArray:
        """The classifiers' factor W (d, k) of V."""
        ...


class SpectralRows:
    """Rows with a factor: ``X = Q diag(sqrt a) U'``, ``V = U'W``, A is ``diag(a)`` and C is ``diag(sqrt a) Q'Y``."""

    name = "spectral"

    def __init__(self, factor: RidgeFactor, labels: CSR) -> None:
        self._factor, self._values = factor, factor.eigenvalues
        self._roots = np.sqrt(factor.eigenvalues)[:, None]
        self._cross = self._roots * factor.project(labels.astype(np.float64))
        self.n_coordinates = len(self._values)

    def products(self, V: FloatArray) -> tuple[Products, ...]:
        return ((self._cross.T @ V, (V.T * self._values) @ V),)

    def solve(self, H: FloatArray, beta: float, start: FloatArray) -> FloatArray:
        strengths, turn = spectrum(H.T @ H)
        rotated = self._cross @ (H @ turn)
        rotated /= self._values[:, None] * strengths + beta
        return np.asarray(rotated @ turn.T)

    def weights(self, V: FloatArray) -> FloatArray:
        return self._factor.weights(self._roots * V, 0.0)


class SparseRows:
    """Rows without a factor: X and Y as they are, V is W."""

    name = "conjugate gradient"

    def __init__(self, design: Design, labels: CSR) -> None:
        self._design, self._labels = design, labels.astype(np.float64)
        self._diagonal = design.gram_diagonal()[:, None]
        self.n_coordinates = int(design.n_features)

    def products(self, V: FloatArray) -> tuple[Products, ...]:
        scores = np.asarray(self._design.X @ V) - self._design.mean @ V
        return ((np.asarray(self._labels.T @ scores), scores.T @ scores),)

    def solve(self, H: FloatArray, beta: float, start: FloatArray) -> FloatArray:
        strengths, turn = spectrum(H.T @ H)

        def apply(Z: FloatArray) -> FloatArray:
            return self._design.normal_product(Z) * strengths + beta * Z

        scaling = 1.0 / (self._diagonal * strengths + beta)
        begin = start @ turn
        residual = self._design.cross(np.asarray(self._labels @ (H @ turn))) - apply(begin)
        target = _SHRINK * column_lengths(residual)
        step, _ = conjugate_gradient(apply, residual, lambda R: R * scaling, target, MOST_STEPS)
        return (begin + step) @ turn.T

    def weights(self, V: FloatArray) -> FloatArray:
        return V


@dataclass(frozen=True, eq=False)
class LowRankFit:
    """The result of learning by turns: both factors and the course of J.

    features : W (d, k);   labels : H (m, k)
    objectives : J after every half turn (W, H, W, H, ...)
    """

    features: FloatArray
    labels: FloatArray
    objectives: tuple[float, ...]
    report: SolveReport


def alternate(
    rows: Rows, energy: float, H: FloatArray, beta: float, *, tolerance: float = 1e-4, max_rounds: int = 100
) -> LowRankFit:
    """Learn W and H by turns from this H (m, k) until a turn lowers J by less than `tolerance`, relatively.

    ``energy`` is ``||Y||_F^2`` (centred).

    Warns
    -----
    ConvergenceWarning : `max_rounds` turns were not enough
    """
    V: FloatArray = np.zeros((rows.n_coordinates, H.shape[1]))
    objectives: list[float] = []
    change, last, rounds = np.inf, np.inf, 0
    while change > tolerance and rounds < max_rounds:
        rounds += 1
        V = rows.solve(H, beta, V)
        products = rows.products(V)
        lengths = beta * float(np.vdot(V, V))
        objectives.append(_objective(products, H, energy, lengths, beta))
        H = np.vstack([_label_step(cross, gram, beta) for cross, gram in products])
        objectives.append(_objective(products, H, energy, lengths, beta))
        change = (last - objectives[-1]) / max(objectives[-1], np.finfo(np.float64).tiny)
        last = objectives[-1]
    report = SolveReport(rows.name, rounds, float(change), tolerance, bool(change <= tolerance))
    if not report.converged:
        warnings.warn(
            f"the low-rank classifiers still improved by {change:.1e} after {rounds} rounds, not {tolerance:.0e}; "
            "allow more n_iterations or a larger tol",
            ConvergenceWarning,
            stacklevel=2,
        )
    return LowRankFit(rows.weights(V), H, tuple(objectives), report)


def _label_step(cross: FloatArray, gram: FloatArray, beta: float) -> FloatArray:
    values, turn = spectrum(gram)
    return np.asarray((cross @ turn / (values + beta)) @ turn.T)


def spectrum(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The eigenvalues h (k,), not below 0, and eigenvectors Q (k, k) of a Gram matrix, also if it is singular."""
    values, vectors = linalg.eigh(gram, driver="evd", check_finite=False)
    return np.maximum(values, 0.0), vectors


def _objective(products: Sequence[Products], H: FloatArray, energy: float, lengths: float, beta: float) -> float:
    """J from ``C'W``, ``W'A W`` and ``lengths = beta ||W||^2``: no residual (n, m) is needed."""
    parts = np.split(H, np.cumsum([len(cross) for cross, _ in products])[:-1])
    fitted = sum(
        float(np.vdot(gram, part.T @ part)) - 2.0 * float(np.vdot(cross, part))
        for (cross, gram), part in zip(products, parts, strict=True)
    )
    return 0.5 * (energy + fitted + lengths + beta * float(np.vdot(H, H)))
