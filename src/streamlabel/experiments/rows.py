"""Rows and labels as every experiment takes them."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from streamlabel.types import CSR, IntArray

__all__ = ["learnable", "unit_rows"]


def unit_rows(X: CSR) -> CSR:
    """Rows of length one, in double precision; a row without features stays as it is."""
    return sparse.csr_array(normalize(X.astype(np.float64)))


def learnable(Y: CSR) -> IntArray:
    """The labels that have a yes and a no."""
    counts = np.asarray(Y.sum(axis=0)).ravel()
    return np.flatnonzero((counts > 0) & (counts < Y.shape[0]))
