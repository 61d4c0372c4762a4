"""Embeddings whose inner products are those of the labels, for neighbours only: singular value projection.

Minimise ``f(M) = 1/2 ||P_Omega(G - M)||_F^2`` over ``M = Z Z'`` of rank at most L. One step is::

    A = M + P_Omega(G - M)          M <- the nearest matrix to A of rank L without negative eigenvalues

The gradient of f has Lipschitz constant 1, so a step of length 1 never raises f. A is sparse plus low rank and is only
ever multiplied with. The projection is Rayleigh-Ritz on a subspace that holds the old Z: that it is not exact costs
progress, not descent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamlabel.results import CSR, FloatArray

__all__ = ["Embedding", "embed", "observed_products"]

_DENSE_ROWS = 400  # up to here all eigenvalues are cheaper than some
_START_ROUNDS = 2  # of subspace iteration, from a random subspace
_GRAM_CELLS = 2_000_000
_GATHER = 30  # gathering a product costs as much as computing so many in a matrix product


@dataclass(frozen=True, eq=False)
class Embedding:
    """``Z`` (n, rank), and f before every step and after the last."""

    Z: FloatArray
    objective: tuple[float, ...]


def embed(gram: CSR, rank: int, n_iterations: int, *, tolerance: float = 1e-4, random_state: int = 0) -> Embedding:
    """``Z`` (n, rank) with ``z_i'z_j`` near the stored entries of ``gram`` (n, n, symmetric).

    Stops after ``n_iterations`` steps, or when a step lowers f by less than ``tolerance`` of it.
    """
    n_rows = int(gram.shape[0])
    rank = min(rank, n_rows)
    draw = np.random.default_rng(random_state)
    basis = np.linalg.qr(draw.standard_normal((n_rows, rank)))[0]
    values: FloatArray = np.zeros(rank)
    residual = gram.copy()
    objective = [0.5 * float(np.square(residual.data).sum())]
    for step in range(n_iterations):
        values, basis = _project(residual, values, basis, _START_ROUNDS if step == 0 else 1)
        residual.data = gram.data - observed_products(gram, basis * np.sqrt(values))
        objective.append(0.5 * float(np.square(residual.data).sum()))
        if objective[-2] - objective[-1] <= tolerance * objective[-2]:
            break
    return Embedding(basis * np.sqrt(values), tuple(objective))


def observed_products(pattern: CSR, Z: FloatArray) -> FloatArray:
    """``z_i'z_j`` for every stored entry of a pattern (n, n), in the order of its data."""
    n_rows = int(pattern.shape[0])
    indptr, columns = pattern.indptr, pattern.indices
    rows = np.repeat(np.arange(n_rows), np.diff(indptr))
    found = np.empty(len(columns))
    if len(columns) * _GATHER < n_rows * n_rows:
        size = max(_GRAM_CELLS // max(Z.shape[1], 1), 1)
        for start in range(0, len(columns), size):
            part = slice(start, start + size)
            found[part] = np.einsum("ij,ij->i", Z[rows[part]], Z[columns[part]])
        return found
    size = max(_GRAM_CELLS // n_rows, 1)
    for start in range(0, n_rows, size):
        part = slice(indptr[start], indptr[min(start + size, n_rows)])
        products = Z[start : start + size] @ Z.T
        found[part] = products[rows[part] - start, columns[part]]
    return found


def _project(residual: CSR, values: FloatArray, basis: FloatArray, n_rounds: int) -> tuple[FloatArray, FloatArray]:
    """The leading eigenvalues (not below 0) and eigenvectors of ``R + Q diag(v) Q'``, as many as Q has columns."""
    rank = basis.shape[1]
    if len(basis) <= max(_DENSE_ROWS, 3 * rank):
        matrix = residual.toarray() + (basis * values) @ basis.T
        found, vectors = np.linalg.eigh(matrix)
        return np.maximum(found[: -rank - 1 : -1], 0.0), np.ascontiguousarray(vectors[:, : -rank - 1 : -1])
    low_rank, anchor = values, basis

    def product(block: FloatArray) -> FloatArray:
        return np.asarray(residual @ block) + anchor @ (low_rank[:, None] * (anchor.T @ block))

    image = product(basis)
    for _ in range(n_rounds):
        # an orthonormal basis of [Q, A Q]; A of the first half is known
        other = np.linalg.qr(np.hstack((basis, image)))[0][:, rank:]
        subspace = np.hstack((basis, other))
        images = np.hstack((image, product(other)))
        small = subspace.T @ images
        found, vectors = np.linalg.eigh(0.5 * (small + small.T))
        best = vectors[:, : -rank - 1 : -1]
        basis, image, values = subspace @ best, images @ best, found[: -rank - 1 : -1]
    return np.maximum(values, 0.0), basis
