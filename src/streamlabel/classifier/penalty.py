"""The pull toward the anchor: ``beta/2 ||V M - P||_F^2`` with ``M = I - S2`` and ``P = W S1``.

Its gradient is ``beta (V N - P M')`` with the metric ``N = M M'``, which is all that the solvers read of ``M``. From
``M = Q diag(s) T'`` follows ``N = Q diag(q) Q'`` with ``q = s^2``: in the columns of ``V Q`` the labels of a batch no
longer touch, and each has its own strength ``beta q_j``. The penalty alone is least at ``V = P M^-1``.

If ``M`` is close to singular some combination of the new labels is hardly penalised at all, and on features that
no row spans nothing else determines it. So that the solve stays well defined ``N`` then becomes ``N + rho I``, with
``rho`` just large enough that no ``q_j`` is below `SMALLEST_SHARE` of the largest: every solver minimises
``beta/2 (||V M - P||_F^2 + rho ||V||_F^2)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from streamlabel.stats.spectral import dense
from streamlabel.types import FloatArray, IntArray

SMALLEST_SHARE = 1e-8
_SAID_SHARE = 1e-5
_MOST_TRIMMED = 0.9  # of the largest weight of a label


@dataclass(frozen=True, eq=False)
class Penalty:
    """The pull of k classifiers of d features toward their anchor.

    Attributes
    ----------
    beta : its strength
    anchor : (d, k), P
    mixing : (k, k), M; None if ``S2 = 0``
    metric : (k, k), ``M M' + rho I``; None if ``S2 = 0``
    strengths, rotation : (k,) and (k, k), the eigenvalues and eigenvectors of the metric; the rotation None is I
    ridge : rho
    note : what a report has to say about M
    """

    beta: float
    anchor: FloatArray
    pull: FloatArray
    mixing: FloatArray | None
    metric: FloatArray | None
    strengths: FloatArray
    rotation: FloatArray | None
    ridge: float = 0.0
    note: str = ""

    @property
    def coupled(self) -> bool:
        """Whether the labels of the batch depend on each other (``S2 != 0``)."""
        return self.mixing is not None

    def values(self, V: FloatArray) -> FloatArray:
        """The penalty of each label, (k,)."""
        if self.mixing is None:
            return 0.5 * self.beta * np.square(V - self.anchor).sum(axis=0)
        misfit = np.square(V @ self.mixing - self.anchor).sum(axis=0)
        return 0.5 * self.beta * (misfit + self.ridge * np.square(V).sum(axis=0))

    def product(self, Z: FloatArray) -> FloatArray:
        """The product of Z with the metric, ``beta Z N``, (d, k)."""
        return self.beta * (Z if self.metric is None else Z @ self.metric)

    def gradient(self, V: FloatArray) -> FloatArray:
        """The gradient of the penalty, ``beta (V N - P M')``, (d, k)."""
        return self.product(V) - self.beta * self.pull

    def rotate(self, Z: FloatArray) -> FloatArray:
        """Rotate columns so that the labels no longer touch: ``Z Q``."""
        return Z if self.rotation is None else Z @ self.rotation

    def unrotate(self, Z: FloatArray) -> FloatArray:
        """Undo `rotate`: ``Z Q'``."""
        return Z if self.rotation is None else Z @ self.rotation.T

    def rotated_anchor(self) -> FloatArray:
        """The point where the penalty alone is least, ``P M' N^-1``, in rotated columns."""
        return self.anchor if self.rotation is None else (self.pull @ self.rotation) / self.strengths

    def take(self, labels: IntArray) -> Penalty:
        """The penalty of some labels of an uncoupled batch."""
        assert not self.coupled, "the labels of a coupled batch cannot be taken apart"
        anchor = self.anchor[:, labels]
        return Penalty(self.beta, anchor, anchor, None, None, self.strengths[labels], None)


def make_penalty(anchor: FloatArray, coupling: Any, beta: float) -> Penalty:
    """Make the penalty for anchors ``P`` (d, k) and a coupling ``S2`` (k, k), dense, sparse or None."""
    n_labels = anchor.shape[1]
    if coupling is None or not (coupling := dense(coupling)).any():
        return Penalty(beta, anchor, anchor, None, None, np.ones(n_labels), None)
    mixing = np.eye(n_labels) - coupling
    # The singular values of M, not the eigenvalues of M M': those would lose half of the digits of a small one.
    rotation, singular, _ = linalg.svd(mixing)
    strengths = np.square(singular)
    ridge = max(0.0, SMALLEST_SHARE * float(strengths[0]) - float(strengths[-1]))
    metric = mixing @ mixing.T
    metric[np.diag_indices(n_labels)] += ridge
    note = _say(float(singular[-1]), float(singular[0]), ridge)
    return Penalty(beta, anchor, anchor @ mixing.T, mixing, metric, strengths + ridge, rotation, ridge, note)


def _say(smallest: float, largest: float, ridge: float) -> str:
    if smallest**2 >= _SAID_SHARE * largest**2:
        return ""
    said = f"I - S2 is nearly singular (singular values {smallest:.1e} to {largest:.1e})"
    return said + (f"; a ridge of {ridge:.1e} keeps the solve well defined" if ridge else "")


def trim(weights: FloatArray, level: float) -> FloatArray:
    """Weights (d, k) drawn toward zero by ``level`` times the root mean square of those of a label that are not zero.

    What is smaller becomes zero: the step of an l1 penalty. In many sparse features the small weights of ridge are
    mostly noise, which the sum over a long row does not cancel. A label of which next to nothing would be left keeps
    its weights.
    """
    sizes = np.abs(weights)
    least = level * np.sqrt(np.square(weights).sum(axis=0) / np.maximum(np.count_nonzero(weights, axis=0), 1))
    least = np.where(least < _MOST_TRIMMED * sizes.max(axis=0, initial=0.0), least, 0.0)
    return np.sign(weights) * np.maximum(sizes - least, 0.0)
