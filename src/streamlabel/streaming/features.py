"""Maps of the rows before anything is learned, so that linear classifiers are not linear in the features any more."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_array

from streamlabel.errors import DataError
from streamlabel.stats.spectral import NULL_SHARE, centre_kernel
from streamlabel.stats.threads import one_thread
from streamlabel.streaming.inputs import canonical_rows
from streamlabel.types import CSR, FloatArray

N_COMPONENTS = 2_000
_SAMPLED, _MOST_TARGETS = 1_000, 64  # rows and labels, or mixtures of these, by which the kernel is chosen
_GAMMAS = {1.0: 2.0 ** np.arange(-3, 5), 0.5: 4.0 ** np.arange(-2, 5)}  # by power
_STRENGTHS = np.geomspace(0.01, 30.0, 15)


class KernelFeatures(TransformerMixin, BaseEstimator):
    """Features in which ridge is kernel ridge, with the kernel ``exp(-(gamma |x - z|^2)^power)`` of scaled rows.

    Power 1 is the Gaussian kernel, 1/2 the exponential one, which is less smooth. Power and gamma are those of the
    least leave-one-out error of kernel ridge, all labels together, on at most 1,000 of the rows. The
    kernel is exact between rows and ``n_components`` of those of `fit`; with no more rows than that everywhere.
    """

    def __init__(self, n_components: int = N_COMPONENTS, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: CSR | FloatArray, y: FloatArray) -> KernelFeatures:
        """Choose the kernel for rows (n, d) and their labels (n, m), and the rows that it is taken to."""
        squares = np.asarray((X.multiply(X) if sparse.issparse(X) else np.square(X)).mean(axis=0)).ravel()
        self.mean_ = np.zeros(X.shape[1]) if sparse.issparse(X) else X.mean(axis=0)
        spread = np.sqrt(np.maximum(squares - np.square(self.mean_), 0.0))
        self.scale_ = 1.0 / np.where(spread > 1e-12 * np.sqrt(squares), spread, 1.0)
        order = np.random.default_rng(self.random_state).permutation(X.shape[0])
        with one_thread():  # so that it is the same everywhere
            sample = self._scaled(X[np.sort(order[:_SAMPLED])])
            self._choose(_distances(sample, sample), np.asarray(y, dtype=np.float64)[np.sort(order[:_SAMPLED])])
            self.landmarks_ = self._scaled(X[np.sort(order[: self.n_components])])
            kernel = self._kernel(_distances(self.landmarks_, self.landmarks_))
            values, vectors = linalg.eigh(kernel, check_finite=False, driver="evd", overwrite_a=True)
        kept = values > 1e3 * NULL_SHARE * values[-1]
        self.back_ = vectors[:, kept] / np.sqrt(values[kept])
        return self

    def transform(self, X: CSR | FloatArray) -> FloatArray:
        """The features (n, at most n_components) of rows (n, d)."""
        return np.asarray(self._kernel(_distances(self._scaled(X), self.landmarks_)) @ self.back_)

    def _choose(self, distances: FloatArray, labels: FloatArray) -> None:
        n_rows, best = len(labels), np.inf
        unit = float(np.median(distances)) or 1.0
        targets = labels - labels.mean(axis=0)
        if targets.shape[1] > _MOST_TARGETS:  # sums of squares over labels are all that counts
            mixing = np.random.default_rng(0).standard_normal((targets.shape[1], _MOST_TARGETS))
            targets = targets @ mixing / np.sqrt(_MOST_TARGETS)
        for power, gammas in _GAMMAS.items():
            for gamma in gammas / unit:
                kernel = np.exp(-((gamma * distances) ** power))
                centre_kernel(kernel)
                values, vectors = linalg.eigh(kernel, check_finite=False, driver="evd", overwrite_a=True)
                projected, squares = vectors.T @ targets, np.square(vectors)
                for beta in _STRENGTHS * max(float(values.mean()), np.finfo(np.float64).tiny):
                    left = beta / (np.maximum(values, 0.0) + beta)
                    kept = np.maximum(squares @ left - 1.0 / n_rows, 1e-9)  # one less the leverages
                    error = float(np.square(vectors @ (left[:, None] * projected) / kept[:, None]).sum())
                    if error < best:
                        best, self.power_, self.gamma_ = error, power, float(gamma)

    def _scaled(self, X: Any) -> Any:
        return (X - self.mean_) * self.scale_ if isinstance(X, np.ndarray) else X.multiply(self.scale_).tocsr()

    def _kernel(self, distances: FloatArray) -> FloatArray:
        return np.exp(-((self.gamma_ * distances) ** self.power_))


def fitted_map(features: Any, X: CSR | FloatArray, labels: CSR, seed: int) -> Any:
    """Fit the map that the parameter ``features`` asks for on rows X (n, d) and their labels (n, m)."""
    asked = KernelFeatures(random_state=seed) if isinstance(features, str) else clone(features)
    return asked.fit(X, labels.toarray())


def mapped(features: Any, X: CSR | FloatArray) -> Any:
    """Rows X as a fitted map makes them."""
    found = canonical_rows(check_array(features.transform(X), accept_sparse="csr", dtype=np.float64))
    if found.shape[0] != X.shape[0]:
        raise DataError(f"features makes {found.shape[0]} rows of {X.shape[0]}; it must make one of each")
    return found


def _distances(A: Any, B: Any) -> FloatArray:
    return np.asarray(euclidean_distances(A, B, squared=True))
