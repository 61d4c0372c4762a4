"""One beta, many labels, ``S2 = 0``: the Cholesky factor of ``Xc'Xc + beta I``, made once.

Cheaper than the spectral factor by an order of magnitude, and bound to its beta.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from streamlabel.classifier.design import Design
from streamlabel.exceptions import DataError
from streamlabel.results import CSR, FloatArray

__all__ = ["CholeskyFactor"]


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
