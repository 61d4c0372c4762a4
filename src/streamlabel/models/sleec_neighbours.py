"""Nearest neighbours by brute force, in blocks: of label vectors by inner product, of embeddings by distance."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import get_index_dtype

from streamlabel.results import CSR, FloatArray, IntArray

__all__ = ["mean_labels", "nearest_embeddings", "neighbour_gram"]

_BLOCK_CELLS = 4_000_000
_DIGITS = 1e-11  # squared distances that differ by less, beside the lengths of the vectors, are ties
_TINY = np.finfo(np.float64).tiny


def neighbour_gram(labels: CSR, n_neighbours: int, *, cosine: bool = True) -> CSR:
    """``P_Omega(B B')`` (n, n), symmetric: products of each row of B (n, m; 0/1) with its nearest rows, itself first.

    ``(i, j)`` is observed where j is among the nearest of i, or i among those of j. Nearest are the largest products
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
    dtype = get_index_dtype(maxval=2 * n_rows * k)  # half the memory to read in every product, where it suffices
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
