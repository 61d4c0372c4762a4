"""Low rank where labels are in parts, each known on rows of its own and unknown on all others.

    J(W, H) = 1/2 sum_p ||Y_p - 1 b_p' - X_p W H_p'||_F^2 + beta/2 (||W||_F^2 + ||H||_F^2)

Every part has its ``A_p = X_p'X_p`` and ``C_p = X_p'Y_p``, centred by the mean of its own rows where there is an
intercept. The H-step is one small system a part; the W-step is one system in which all columns touch::

    sum_p A_p W (H_p'H_p) + beta W = sum_p C_p H_p

It is solved by conjugate gradients, in the coordinates U of all rows, ``A = U diag(a) U'``. What they are scaled by is
the exact solution for ``A_p = (n_p / n) A``: as if the rows of a part were typical of all. No Kronecker product is
formed, and no mask.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamlabel.classifier.conjugate_gradient import Operator, conjugate_gradient
from streamlabel.classifier.design import Design, column_sums
from streamlabel.models.low_rank import MOST_STEPS, LowRankFit, Products, alternate, spectrum
from streamlabel.results import CSR, FloatArray, IntArray
from streamlabel.stats.factors import centred_gram, make_factor
from streamlabel.stats.threads import one_thread

__all__ = ["Basis", "MaskedRows"]

_SHRINK = 1e-2  # of the residual that a W-step begins with; more would be lost in the next round


class Basis:
    """All rows X (n, d), and coordinates U (d, r) in which ``Xc'Xc`` is ``diag(values)``; no label is needed."""

    def __init__(self, X: CSR | FloatArray, fit_intercept: bool = True) -> None:
        factor = make_factor(X, centre=fit_intercept)
        self.X, self.fit_intercept = X, fit_intercept
        self.values: FloatArray = factor.eigenvalues
        self.vectors: FloatArray = factor.weights(np.diag(np.sqrt(factor.eigenvalues)), 0.0)


class _Part:
    """Labels (len(rows), m) of 0/1 that are known on these rows (None: on all)."""

    def __init__(self, basis: Basis, rows: IntArray | None, labels: CSR) -> None:
        design = Design(basis.X if rows is None else basis.X[rows], basis.fit_intercept)
        counts = column_sums(labels)
        self.share = design.n_rows / basis.X.shape[0]
        self.mean = design.mean
        self.rates: FloatArray = counts / design.n_rows if basis.fit_intercept else np.zeros(len(counts))
        self.energy = float(counts.sum() - design.n_rows * self.rates @ self.rates)
        self.cross: FloatArray = basis.vectors.T @ design.cross(labels.astype(np.float64))
        self.product = _product(basis, design, everywhere=rows is None)


def _product(basis: Basis, design: Design, everywhere: bool) -> Operator:
    """From V to ``A V`` by whatever is smallest: a diagonal, the rows, or their Gram matrix."""
    values, vectors = basis.values[:, None], basis.vectors
    if everywhere:
        return lambda V: values * V
    if 2 * design.n_rows < len(values):
        rows = np.asarray(design.X @ vectors) - design.mean @ vectors
        return lambda V: rows.T @ (rows @ V)
    gram = vectors.T @ centred_gram(design.X, design.mean) @ vectors
    return lambda V: gram @ V


class MaskedRows:
    """X and the parts of the labels as the steps see them (`low_rank.Rows`); V is ``U'W``.

    parts : rows (None: all) and labels (len(rows), m) of each
    """

    name = "masked"

    def __init__(self, basis: Basis, parts: Sequence[tuple[IntArray | None, CSR]]) -> None:
        self._basis = basis
        with one_thread():
            self._parts = [_Part(basis, rows, labels) for rows, labels in parts]
        self._ends = np.cumsum([len(part.rates) for part in self._parts])
        self.n_coordinates = len(basis.values)

    def products(self, V: FloatArray) -> tuple[Products, ...]:
        return tuple((part.cross.T @ V, V.T @ part.product(V)) for part in self._parts)

    def solve(self, H: FloatArray, beta: float, start: FloatArray) -> FloatArray:
        factors = self._by_part(H)
        grams = [own.T @ own for own in factors]
        strengths, turn = spectrum(sum(part.share * gram for part, gram in zip(self._parts, grams, strict=True)))
        turned = [turn.T @ gram @ turn for gram in grams]

        def apply(Z: FloatArray) -> FloatArray:
            found = beta * Z
            for part, gram in zip(self._parts, turned, strict=True):
                found += part.product(Z) @ gram
            return found

        scaling = 1.0 / (self._basis.values[:, None] * strengths + beta)
        begin = start @ turn
        residual = -apply(begin)
        for part, own in zip(self._parts, factors, strict=True):
            residual += part.cross @ (own @ turn)
        target = np.array([_SHRINK * np.linalg.norm(residual)])
        step, _ = conjugate_gradient(apply, residual, lambda R: R * scaling, target, MOST_STEPS, together=True)
        return (begin + step) @ turn.T

    def weights(self, V: FloatArray) -> FloatArray:
        return self._basis.vectors @ V

    def learn(
        self, rank: int, beta: float, seed: int, *, tolerance: float = 1e-4, max_rounds: int = 100
    ) -> tuple[LowRankFit, FloatArray]:
        """W and H from a drawn H, and the intercepts (m,)."""
        n_labels = int(self._ends[-1])
        rank = min(rank, n_labels, *self._basis.X.shape)
        H = np.random.default_rng(seed).standard_normal((n_labels, rank))
        energy = sum(part.energy for part in self._parts)
        with one_thread():
            found = alternate(self, energy, H, beta, tolerance=tolerance, max_rounds=max_rounds)
        factors = self._by_part(found.labels)
        shifts = [part.mean @ found.features @ own.T for part, own in zip(self._parts, factors, strict=True)]
        return found, np.concatenate([part.rates for part in self._parts]) - np.concatenate(shifts)

    def _by_part(self, H: FloatArray) -> list[FloatArray]:
        return np.split(H, self._ends[:-1])
