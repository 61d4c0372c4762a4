"""Direct solves of the squared loss: Cholesky of the features, or the dual where annotated rows are few.

With ``t = y - X p`` centred on the annotated rows and ``K = Xc Xc'`` (q, q)::

    v = p + Xc' (K + beta I)^-1 t          b = mean(y) - mu'v

Labels that were asked about on the same rows share one factor; otherwise each has its own.

One beta, many labels, ``S2 = 0``: the Cholesky factor of ``Xc'Xc + beta I``, made once.

Cheaper than the spectral factor by an order of magnitude, and bound to its beta.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from streamlabel.classifier.objective import Design
from streamlabel.errors import DataError
from streamlabel.stats.spectral import centre_kernel, dense
from streamlabel.types import CSR, FloatArray, IntArray


class CholeskyFactor:
    """``L L' = Xc'Xc + beta I`` (d, d), kept: a new label then costs two triangular solves."""

    def __init__(self, design: Design, beta: float) -> None:
        self.design = design
        self.beta = beta
        system = design.gram()
        system[np.diag_indices(design.n_features)] += beta
        try:
            self._factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            raise DataError(
                f"beta = {beta:g} is too small beside these features for Cholesky; raise it or solve spectrally"
            ) from None

    def solve(self, targets: FloatArray | CSR, anchor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Classifiers (d, k) and intercepts (k,) for targets (n, k) and anchors (d, k)."""
        # (A + beta I) V = Xc'Y + beta P
        right = self.design.cross(targets) + self.beta * anchor
        weights = np.asarray(linalg.cho_solve(self._factor, right, overwrite_b=True, check_finite=False))
        return weights, self.design.intercept(targets, weights)


def solve_dual(
    X: CSR | FloatArray,
    targets: FloatArray | CSR,
    anchor: FloatArray,
    beta: float,
    *,
    rows: Sequence[IntArray] | None = None,
    fit_intercept: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """Classifiers (d, k) and intercepts (k,).

    Parameters
    ----------
    X, targets : (n, d) and (n, k)
    anchor : (d, k)
    rows : the annotated rows of each label, k arrays of indices; None means all rows for all labels. What `targets`
        holds elsewhere is not read.
    """
    if rows is None:
        return _solve_shared(Design(X, fit_intercept), targets, anchor, beta)
    weights = np.empty(anchor.shape)
    intercept = np.empty(anchor.shape[1])
    for shared, labels in _group(rows):
        if shared.size == 0:
            raise DataError(f"label {labels[0]} has no annotated row; leave it out or annotate some")
        part = targets[shared][:, labels]
        weights[:, labels], intercept[labels] = _solve_shared(
            Design(X[shared], fit_intercept), part, anchor[:, labels], beta
        )
    return weights, intercept


def _group(rows: Sequence[IntArray]) -> list[tuple[IntArray, list[int]]]:
    """Labels with the same annotated rows, together; in the order of their first label."""
    groups: dict[bytes, tuple[IntArray, list[int]]] = {}
    for label, chosen in enumerate(rows):
        chosen = np.asarray(chosen, dtype=np.int64)
        groups.setdefault(chosen.tobytes(), (chosen, []))[1].append(label)
    return list(groups.values())


def _solve_shared(
    design: Design, targets: FloatArray | CSR, anchor: FloatArray, beta: float
) -> tuple[FloatArray, FloatArray]:
    kernel = _kernel(design)
    kernel[np.diag_indices(design.n_rows)] += beta
    residual = dense(targets) - design.X @ anchor
    if design.fit_intercept:
        residual -= residual.mean(axis=0)
    try:
        factor = linalg.cho_factor(kernel, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        raise DataError(
            f"beta = {beta:g} is too small beside these features for Cholesky; raise it or solve spectrally"
        ) from None
    duals = linalg.cho_solve(factor, residual, overwrite_b=True, check_finite=False)
    weights = anchor + design.cross(duals)
    return weights, design.intercept(targets, weights)


def _kernel(design: Design) -> FloatArray:
    """``Xc Xc'`` (q, q)."""
    kernel = dense(design.X @ design.X.T)
    if design.fit_intercept:
        centre_kernel(kernel)
    return kernel
