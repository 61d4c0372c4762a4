"""Labels by iterations through many sparse rows, any loss, with a metric or without; no factor, nothing of cubic cost.

With the prior ``w ~ N(p, C)`` of `classifier.ridge`, ``C = (1 - a) I + a c R R'``, a classifier is ``w = T u`` with
``T = [(1 - a)^1/2 I, (a c)^1/2 R]``, and the prior of ``u`` is round. So the rows are ``X T``: the sparse ones, and
beside them a dense block, the scores of the basis R.

Scores of rows that were not learned from are those of a few Newton steps from the answer, with these rows left out, in
five folds. For the squared loss that is the answer without them; for others it is close, since the steps are short.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from streamlabel.classifier.coordinates import MOST_STEPS, minimise
from streamlabel.classifier.losses import get_loss
from streamlabel.classifier.newton import ShiftedInverse, Start, diagonal_inverse, first_point, minimise_newton
from streamlabel.classifier.objective import (
    AnchoredObjective,
    Design,
    SingleRows,
    column_blocks,
    standing,
    suits_single,
    very_many,
)
from streamlabel.classifier.penalty import make_penalty
from streamlabel.stats.threads import one_thread
from streamlabel.types import CSR, BoolArray, FloatArray, IntArray

_LEAST_ORDER = 300  # rows and features from which on iterations are faster than coordinates or a factor
_ROUGH = 1e-2  # tolerance of a start
_FOLDS, _FOLD_STEPS, _FOLD_TOLERANCE = 5, 2, 0.3  # rough: thresholds and probabilities are found by these alone


def iterates(X: CSR | FloatArray) -> bool:
    """Whether labels on these rows are learned by iterations: many sparse rows."""
    return isinstance(X, sparse.csr_array) and min(X.shape) > _LEAST_ORDER


class IteratedRows:
    """Rows X (q, d) for iterations; ``basis`` (d, r) and ``share`` are the metric.

    unit : the mean squared length of a centred row;   past : the scores of the basis (q, r), if there is one
    """

    def __init__(self, X: CSR | FloatArray, basis: FloatArray | None = None, share: float = 0.0) -> None:
        self.rows: Any = X
        self._own, self._basis = 1.0, None
        design = Design(X)
        self.squares: FloatArray = design.gram_diagonal()
        self.unit = float(self.squares.sum()) / X.shape[0]
        self.past, self.single = None, sparse.issparse(X) and not share and suits_single(design, self.squares)
        if basis is not None and share:
            self.past = past = np.asarray(X @ basis)
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
        return U if self._basis is None else self.own_part(U) + self._basis @ U[len(self._basis) :]

    def own_part(self, U: FloatArray) -> FloatArray:
        """What these classifiers (d, k) are without the basis."""
        return U if self._basis is None else self._own * U[: len(self._basis)]

    def learn(
        self,
        answers: FloatArray,
        anchor: FloatArray,
        beta: float,
        loss: str,
        tolerance: float,
        start: Start | None = None,
        rows: IntArray | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Learn answers (q, k) toward points: points (., k), intercepts (k,), scores (q, k) of rows left out.

        rows : those whose scores are needed, by one refit without them (others' may be wrong); default all, in folds
        """
        kind, inverse = get_loss(loss), diagonal_inverse(self.squares)
        U, b, scores = np.empty_like(anchor), np.empty(answers.shape[1]), np.empty(answers.shape)
        folds = _folds(answers, rows)
        blocks = column_blocks(answers.shape[1], folds.shape[0] * folds.shape[1])
        if very_many(self.rows):  # each has its own rows that stand for all
            blocks = [slice(label, label + 1) for label in range(answers.shape[1])]
        rough = SingleRows(self.rows) if rows is None and self.single else self.rows
        with one_thread():
            for part in blocks:
                given, held, masks = answers[:, part], anchor[:, part], folds[:, :, part]
                objective = AnchoredObjective(self.rows, kind.encode(given), kind, make_penalty(held, None, beta))
                begin = None if start is None else (start[0][:, part], start[1][part])
                begin = _begin(objective, inverse, begin)
                V, c = minimise(self.rows, self.squares, given, beta, loss, held, begin, None, tolerance)
                U[:, part], b[part] = V, c
                given, held, V, c = (np.tile(one, (1, masks.shape[1])) for one in (given, held, V, c[None]))
                V, c = minimise(
                    rough, self.squares, given, beta, loss, held, (V, c[0]),
                    masks.reshape(len(masks), -1).astype(np.float64), _FOLD_TOLERANCE, _FOLD_STEPS, True,
                )  # fmt: skip
                changed = np.asarray(rough @ V + c).reshape(masks.shape)
                scores[:, part] = np.take_along_axis(changed, masks.argmin(axis=1)[:, None], axis=1)[:, 0]
        return U, b, scores


def _folds(answers: FloatArray, rows: IntArray | None) -> BoolArray:
    """Which rows count in which fold of which label, (q, folds, k): all but these rows, or all but a fifth by turns.

    Each label has folds of its own, its positives spread evenly: they do not depend on its company.
    """
    (n_rows, n_labels), n_folds = answers.shape, _FOLDS if rows is None else 1
    known = np.ones((n_rows, n_folds, n_labels), dtype=bool)
    if rows is not None:
        known[rows] = False
        return known
    order = np.random.default_rng(0).permutation(n_rows)
    for label in range(n_labels):
        yes_first = order[np.argsort(answers[order, label] <= 0, kind="stable")]
        known[yes_first, np.arange(n_rows) % n_folds, label] = False
    return known


def _begin(objective: AnchoredObjective, inverse: ShiftedInverse, start: Start | None) -> Start | None:
    """Where rows are very many, a start from those that are most wrong and a sample of the others, found twice."""
    for _ in range(2 if start is None else 1):
        scores = first_point(objective, start)[2]
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
