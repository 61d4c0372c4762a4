"""SLEEC inside a cluster: neighbours by labels, embeddings that keep their inner products, and the map from features.

The embeddings Z minimise ``f(M) = 1/2 ||P_Omega(G - M)||_F^2`` over ``M = Z Z'`` of rank at most L. One step is::

    A = M + P_Omega(G - M)          M <- the nearest matrix to A of rank L without negative eigenvalues

The gradient of f has Lipschitz constant 1, so a step of length 1 never raises f. A is sparse plus low rank and is only
ever multiplied with. The projection is Rayleigh-Ritz on a subspace that holds the old Z: that it is not exact costs
progress, not descent.

The map from features to embeddings is ridge, or ridge with an l1 penalty on the embeddings it gives (ADMM)::

    min_V  1/2 ||Z - X V||_F^2 + beta/2 ||V||_F^2 + l1 ||X V||_1

With ``A = X V`` and scaled multipliers U, one round is a ridge of ``(Z + rho (A - U)) / (1 + rho)`` with strength
``beta / (1 + rho)``, then ``A = soft(X V + U, l1 / rho)`` and ``U = U + X V - A``. The ridge's factor is made once: of
``X'X`` or of ``X X'``, whichever is smaller.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from streamlabel.errors import ConvergenceWarning, DataError
from streamlabel.stats.spectral import dense
from streamlabel.types import CSR, FloatArray, IntArray, SolveReport

_BLOCK_CELLS = 4_000_000
_DIGITS = 1e-11  # squared distances that differ by less, beside the lengths of the vectors, are ties
_TINY = np.finfo(np.float64).tiny


def neighbour_gram(labels: CSR, n_neighbours: int, *, cosine: bool = True) -> CSR:
    """Products of each row of B (n, m; 0/1) with its nearest rows, itself first: ``P_Omega(B B')`` (n, n), symmetric.

    ``(i, j)`` is observed if j is among the nearest of i, or i among those of j. Nearest are the largest products
    beside the row's own; ties go to the lower row. Observed products of 0 are stored: they are known, not missing.
    Common labels are counted exactly and scaled afterwards, so the order of the labels does not matter.
    """
    n_rows = int(labels.shape[0])
    k = min(n_neighbours, n_rows)
    counted = labels.astype(np.float64)
    sizes = np.diff(labels.indptr)
    scale = 1.0 / np.sqrt(np.maximum(sizes, 1)) if cosine else np.ones(n_rows)
    columns, values = np.empty((n_rows, k), dtype=np.int64), np.empty((n_rows, k))
    for block in _blocks(n_rows, n_rows):
        products = np.ascontiguousarray((counted @ counted[block].toarray().T).T)
        products *= scale
        products *= scale[block, None]
        own = np.arange(block.start, block.stop)
        lengths = products[own - block.start, own]
        products[own - block.start, own] = np.inf
        columns[block] = _largest(products, k)
        products[own - block.start, own] = lengths
        values[block] = np.take_along_axis(products, columns[block], axis=1)
    # half the memory to read in every product, where it suffices
    dtype: np.dtype[np.signedinteger] = np.dtype(np.int32 if 2 * n_rows * k < 2**31 else np.int64)
    ends = np.arange(0, n_rows * k + 1, k, dtype=dtype)
    # raised by 1, so that an observed 0 is larger than what is not stored
    one_way = sparse.csr_array((values.ravel() + 1.0, columns.ravel().astype(dtype), ends), shape=(n_rows, n_rows))
    both = sparse.csr_array(one_way.maximum(one_way.T))
    return sparse.csr_array((both.data - 1.0, both.indices, both.indptr), shape=both.shape)


def nearest_embeddings(queries: FloatArray, points: FloatArray, k: int) -> IntArray:
    """The k points (p, r) nearest to every query (q, r) by Euclidean distance, (q, k), in no order.

    Ties, up to rounding, go to the lower point.
    """
    k = min(k, len(points))
    squares = np.einsum("ij,ij->i", points, points)
    longest = float(np.sqrt(squares.max()))
    found = np.empty((len(queries), k), dtype=np.int64)
    for block in _blocks(len(queries), len(points)):
        closeness = 2.0 * (queries[block] @ points.T) - squares
        rounding = _DIGITS * longest * (longest + np.linalg.norm(queries[block], axis=1, keepdims=True))
        found[block] = _largest(np.rint(closeness / np.maximum(rounding, _TINY)), k)
    return found


def mean_labels(labels: CSR, neighbours: IntArray) -> CSR:
    """The mean label vector of the neighbours (q, k) of each query: (q, m)."""
    n_queries, k = neighbours.shape
    ends = np.arange(0, n_queries * k + 1, k)
    weights = sparse.csr_array(
        (np.full(n_queries * k, 1.0 / k), neighbours.ravel(), ends), (n_queries, labels.shape[0])
    )
    return sparse.csr_array(weights @ labels)


def _largest(values: FloatArray, k: int) -> IntArray:
    """The columns of the k largest values of each row, ascending; ties go to the lower column."""
    n_columns = values.shape[1]
    if k == n_columns:
        return np.broadcast_to(np.arange(n_columns), values.shape)
    bound = np.partition(values, n_columns - k, axis=1)[:, [n_columns - k]]
    above = values > bound
    tied = values == bound
    room = k - above.sum(axis=1, keepdims=True)
    chosen = above | (tied & (np.cumsum(tied, axis=1) <= room))
    return np.nonzero(chosen)[1].reshape(len(values), k)


def _blocks(n_rows: int, width: int) -> list[slice]:
    size = max(_BLOCK_CELLS // max(width, 1), 1)
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


_DENSE_ROWS = 400  # up to here all eigenvalues are cheaper than some
_START_ROUNDS = 2  # of subspace iteration, from a random subspace
_GRAM_CELLS = 2_000_000
_GATHER = 30  # gathering a product costs as much as computing so many in a matrix product


@dataclass(frozen=True, eq=False)
class Embedding:
    """The embeddings ``Z`` (n, rank), and f before every step and after the last."""

    Z: FloatArray
    objective: tuple[float, ...]


def embed(gram: CSR, rank: int, n_iterations: int, *, tolerance: float = 1e-4, random_state: int = 0) -> Embedding:
    """Embed rows as ``Z`` (n, rank) so that ``z_i'z_j`` is near the stored entries of ``gram`` (n, n, symmetric).

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
    """Inner products ``z_i'z_j`` for every stored entry of a pattern (n, n), in the order of its data."""
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


_RHO = 1.0
_MOST_ROUNDS = 500


def regress(
    X: CSR | FloatArray, Z: FloatArray, beta: float, l1: float = 0.0, *, tolerance: float = 1e-3
) -> tuple[FloatArray, SolveReport]:
    """Learn the map V (d, r) from features X (n, d) to embeddings Z (n, r), without intercept.

    ``tolerance`` is on ADMM's primal and dual residuals, as a share of ||Z||.
    """
    if l1 == 0.0:
        return _Ridge(X, beta).solve(Z), SolveReport("ridge", 1, 0.0, tolerance, True)
    ridge = _Ridge(X, beta / (1.0 + _RHO))
    copy, multipliers = Z.copy(), np.zeros_like(Z)
    size = max(float(np.linalg.norm(Z)), np.finfo(np.float64).tiny)
    violation, n_rounds = np.inf, 0
    while violation > tolerance and n_rounds < _MOST_ROUNDS:
        n_rounds += 1
        weights = ridge.solve((Z + _RHO * (copy - multipliers)) / (1.0 + _RHO))
        scores = np.asarray(X @ weights)
        before, copy = copy, soft_threshold(scores + multipliers, l1 / _RHO)
        multipliers += scores - copy
        violation = max(float(np.linalg.norm(scores - copy)), float(np.linalg.norm(copy - before))) / size
    report = SolveReport("admm", n_rounds, violation, tolerance, violation <= tolerance)
    if not report.converged:
        warnings.warn(
            f"admm stopped after {n_rounds} rounds at {violation:.1e}, short of {tolerance:.1e}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return weights, report


def soft_threshold(values: FloatArray, level: float) -> FloatArray:
    """Shrink values toward zero by ``level``."""
    return np.sign(values) * np.maximum(np.abs(values) - level, 0.0)


class _Ridge:
    """Ridge ``(X'X + beta I)^-1 X'T = X'(X X' + beta I)^-1 T``, by the smaller of the two."""

    def __init__(self, X: CSR | FloatArray, beta: float) -> None:
        self._X = X
        self._dual = X.shape[0] < X.shape[1]
        system = dense(X @ X.T if self._dual else X.T @ X)
        system[np.diag_indices(len(system))] += beta
        try:
            self._factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            raise DataError(f"beta = {beta:g} is too small beside these features; raise it") from None

    def solve(self, targets: FloatArray) -> FloatArray:
        right = targets if self._dual else np.asarray(self._X.T @ targets)
        found = linalg.cho_solve(self._factor, right, check_finite=False)
        return np.asarray(self._X.T @ found if self._dual else found)
