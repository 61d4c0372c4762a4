"""Gram matrices of label columns, from the sparse 0/1 matrix: a label costs what its positive examples cost.

With ``B (n, m)`` of 0/1 and ``c = B'1``, the centred Gram is ``B'B - c c'/n``: the 0/1 coding with an intercept. The
+-1 coding only multiplies it by four (``Y = 2B - 1``), and without an intercept it is
``4 B'B - 2 (c 1' + 1 c') + n 1 1'``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamlabel.stats.spectral import dense
from streamlabel.types import CSR, FloatArray


def centred_cross(A: Any, B: Any) -> FloatArray:
    """Products of the centred columns of A and B, ``A'B - (A'1)(B'1)'/n``, (m, k), C-contiguous float64.

    A and B are sparse 0/1 labels (CSR or CSC) or dense responses on the same n rows.
    """
    left = A.astype(np.float64)
    right = left if B is A else B.astype(np.float64)
    cross = left.T @ right
    means = np.asarray(right.sum(axis=0)).ravel() / max(A.shape[0], 1)
    return np.ascontiguousarray(dense(cross) - np.outer(np.asarray(left.sum(axis=0)).ravel(), means))


def signed_label_gram(B: CSR) -> FloatArray:
    """The label Gram in the coding of the paper: ``Y'Y`` with ``Y = 2B - 1``, without an intercept."""
    counts = np.asarray(B.sum(axis=0), dtype=np.float64)
    columns = B.astype(np.float64)
    joint = (columns.T @ columns).toarray()
    return 4.0 * joint - 2.0 * (counts[:, None] + counts[None, :]) + B.shape[0]
