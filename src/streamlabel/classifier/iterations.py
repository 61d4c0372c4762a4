"""Labels by iterations through many sparse rows, any loss, with a metric or without; no factor, nothing of cubic cost.

With the prior ``w ~ N(p, C)`` of `classifier.ridge`, ``C = (1 - a) I + a c R R'``, a classifier is ``w = T u`` with
``T = [(1 - a)^1/2 I, (a c)^1/2 R]``, and the prior of ``u`` is round. So the rows are ``X T``: the sparse ones, and
beside them a dense block, the scores of the basis R.

Scores of rows that were not learned from are those of one Newton step from the answer, with these rows left out. For
the squared loss that is the answer without them; for others it is close, since the step is short.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from streamlabel.classifier.coordinates import MOST_STEPS, minimise
from streamlabel.classifier.losses import get_loss
from streamlabel.classifier.newton import ShiftedInverse, Start, diagonal_inverse, first_point, minimise_newton
from streamlabel.classifier.objective import AnchoredObjective, Design, column_blocks, standing, very_many
from streamlabel.classifier.penalty import make_penalty
from streamlabel.stats.threads import one_thread
from streamlabel.types import CSR, FloatArray

_LEAST_ORDER = 300  # rows and features from which on iterations are faster than coordinates or a factor
_ROUGH = 1e-2  # tolerance of a start
_FOLD_STEPS = 3  # of Newton's method


def iterates(X: CSR | FloatArray) -> bool:
    """Whether labels on these rows are learned by iterations: many sparse rows."""
    return isinstance(X, sparse.csr_array) and min(X.shape) > _LEAST_ORDER


class IteratedRows:
    """Rows X (q, d) for iterations; ``basis`` (d, r) and ``share`` are the metric.

    unit : the mean squared length of a centred row
    """

    def __init__(self, X: CSR | FloatArray, basis: FloatArray | None = None, share: float = 0.0) -> None:
        self.rows: Any = X
        self._own, self._basis = 1.0, None
        self.squares: FloatArray = Design(X).gram_diagonal()
        self.unit = float(self.squares.sum()) / X.shape[0]
        if basis is not None and share:
            past = np.asarray(X @ basis)
            squares = np.square(past - past.mean(axis=0)).sum(axis=0)
            scale = share * self.squares.sum() / max(float(squares.sum()), np.finfo(np.float64).tiny)
            self._own, self._basis = np.sqrt(1.0 - share), np.sqrt(scale) * basis
            self.rows = _Beside(self._own * X, np.sqrt(scale) * past)
            self.squares = np.concatenate(((1.0 - share) * self.squares, scale * squares))

    def point(self, weights: FloatArray) -> FloatArray:
        """Where these classifiers (d, k) are, without a part in the basis."""
        if self._basis is None:
            return weights
        return np.vstack((weights / self._own, np.zeros((self._basis.shape[1], weights.shape[1]))))

    def weights(self, U: FloatArray) -> FloatArray:
        """The classifiers (d, k) at these points."""
        if self._basis is None:
            return U
        n_features = len(self._basis)
        return self._own * U[:n_features] + self._basis @ U[n_features:]

    def learn(
        self,
        answers: FloatArray,
        anchor: FloatArray,
        beta: float,
        loss: str,
        known: FloatArray,
        tolerance: tuple[float, float],
        start: Start | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Learn answers (q, k) toward points: points (., k), intercepts (k,), scores (q, k) of rows left out.

        known : (q, folds, k), 0 for rows that a fold leaves out;   tolerance : of the answers, and of the folds
        """
        kind, inverse = get_loss(loss), diagonal_inverse(self.squares)
        U, b, scores = np.empty_like(anchor), np.empty(answers.shape[1]), np.empty(answers.shape)
        blocks = column_blocks(answers.shape[1], known.shape[0] * known.shape[1])
        if very_many(self.rows):  # each has its own rows that stand for all
            blocks = [slice(label, label + 1) for label in range(answers.shape[1])]
        with one_thread():
            for part in blocks:
                given, held, masks = answers[:, part], anchor[:, part], known[:, :, part]
                objective = AnchoredObjective(self.rows, kind.encode(given), kind, make_penalty(held, None, beta))
                begin = None if start is None else (start[0][:, part], start[1][part])
                begin = _begin(objective, inverse, begin)
                V, c = minimise(self.rows, self.squares, given, beta, loss, held, begin, None, tolerance[0])
                U[:, part], b[part] = V, c
                given, held, V, c = (np.tile(one, (1, masks.shape[1])) for one in (given, held, V, c[None]))
                V, c = minimise(
                    self.rows, self.squares, given, beta, loss, held, (V, c[0]), masks.reshape(len(masks), -1),
                    tolerance[1], _FOLD_STEPS, True,
                )  # fmt: skip
                changed = np.asarray(self.rows @ V + c).reshape(masks.shape)
                scores[:, part] = np.take_along_axis(changed, masks.argmin(axis=1)[:, None], axis=1)[:, 0]
        return U, b, scores


def _begin(objective: AnchoredObjective, inverse: ShiftedInverse, start: Start | None) -> Start | None:
    """Where rows are very many, a start from those that are most wrong and a sample of the others, found twice."""
    for _ in range(2 if start is None else 1):
        scores = objective.scores(*first_point(objective, start))
        if (some := standing(objective.X, np.abs(objective.terms(scores)[1]))) is None:
            return start
        X, answers = objective.X[some[0]], objective.answers[some[0]]
        part = AnchoredObjective(X, answers, objective.loss, objective.penalty, known=some[1])
        found = minimise_newton(part, inverse, start, tolerance=_ROUGH, max_iter=MOST_STEPS)
        start = found.weights, found.intercept
    return start


class _Beside(LinearOperator):
    """Sparse and dense columns side by side, as far as Newton's method reads a matrix."""

    def __init__(self, left: CSR | FloatArray, right: FloatArray) -> None:
        self._left, self._right = left, right
        shape: Any = left.shape[0], left.shape[1] + right.shape[1]
        super().__init__(np.dtype(np.float64), shape)  # type: ignore[call-arg]

    def _matmat(self, V: FloatArray) -> FloatArray:
        n_left = self._left.shape[1]
        return np.asarray(self._left @ V[:n_left] + self._right @ V[n_left:])

    def _rmatmat(self, G: FloatArray) -> FloatArray:
        return np.vstack((self._left.T @ G, self._right.T @ G))

    def mean(self, axis: int) -> FloatArray:
        return np.concatenate([np.asarray(part.mean(axis=axis)) for part in (self._left, self._right)])
