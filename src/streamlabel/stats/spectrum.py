"""The spectral factor of the features from sums alone: what `FeatureFactor` is, without the rows."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from streamlabel.results import FloatArray
from streamlabel.stats.factors import NULL_SHARE
from streamlabel.stats.sums import Stats
from streamlabel.stats.threads import one_thread_if_small

__all__ = ["SumsFactor"]

# Below this share of its mean square the variance of a feature is rounding noise of the sums.
CONSTANT_SHARE = 1e-10


class SumsFactor:
    """Eigenfactor of ``Xc'Xc = X'X - n mu mu'`` (d, d), and the targets ``Xc'T`` in its coordinates.

    Sums hold 16 digits, so a feature whose mean is more than 1e5 times its spread cannot be told from a constant one
    and gets no weight.

    Attributes
    ----------
    projected : (r, m) = Q'T;   energy : (m,) = ||t||^2, both of the centred 0/1 labels (without centring: of -1/+1)
    """

    def __init__(self, stats: Stats, *, centre: bool = True) -> None:
        n_rows, counts = stats.n_rows, stats.label_counts.astype(np.float64)
        self.n_rows = n_rows
        self.mean: FloatArray = stats.feature_sums / n_rows if centre else np.zeros(stats.n_features)
        with one_thread_if_small((stats.n_features,)):
            self.eigenvalues, self._vectors = _spectrum(_centred(stats, self.mean))
            self._roots = np.sqrt(self.eigenvalues)
            if centre:
                cross = stats.cross - np.outer(self.mean, counts)
                self.energy: FloatArray = counts - np.square(counts) / n_rows
            else:  # X'(2B - 1)
                cross = 2.0 * stats.cross - stats.feature_sums[:, None]
                self.energy = np.full(stats.n_labels, float(n_rows))
            self.projected: FloatArray = (self._vectors.T @ cross) / self._roots[:, None]

    def weights(self, beta: float) -> FloatArray:
        """The ridge solution of every label, (d, m)."""
        return np.asarray(self._vectors @ (self.projected * (self._roots / (self.eigenvalues + beta))[:, None]))

    def score_energy(self, beta: float) -> FloatArray:
        """``||Xc w||^2`` of every label, (m,)."""
        shrink = self.eigenvalues / (self.eigenvalues + beta)
        return np.asarray(np.square(shrink) @ np.square(self.projected))


def _centred(stats: Stats, mean: FloatArray) -> FloatArray:
    gram = stats.feature_gram - stats.n_rows * np.outer(mean, mean)
    constant = np.diag(gram) <= CONSTANT_SHARE * np.diag(stats.feature_gram)
    gram[constant] = 0.0
    gram[:, constant] = 0.0
    return gram


def _spectrum(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, vectors = linalg.eigh(gram, check_finite=False, overwrite_a=True, driver="evd")
    kept = values > NULL_SHARE * max(float(values[-1]), 0.0)
    return values[kept], vectors[:, kept]
