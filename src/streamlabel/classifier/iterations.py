"""Labels by iterations through many sparse rows, any loss, with a metric or without; no factor, nothing of cubic cost.

With the prior ``w ~ N(p, C)`` of `classifier.ridge`, ``C = (1 - a) I + a c R R'``, a classifier is ``w = T u`` with
``T = [(1 - a)^1/2 I, (a c)^1/2 R]``, and the prior of ``u`` is round. So the rows are ``X T``: the sparse ones, and
beside them a dense block, the scores of the basis R.

Scores of rows that were not learned from are those of a few Newton steps from the answer, with these rows left out, in
five folds. For the squared loss one step leaves out a single row, if the hat diagonal is known. A random label z tells
it: ``z * H z`` is the diagonal on average, and the line nearest to that is taken, in two lengths of a row: its squared
length, and that with every feature divided by what H divides it by if features are not correlated.
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
from streamlabel.types import CSR, BoolArray, FloatArray, IntArray

_LEAST_ORDER = 300  # rows and features from which on iterations are faster than coordinates or a factor
_ROUGH = 1e-2  # tolerance of a start
_PROBED = 0.1  # tolerance of the random label: the error of z'H z is its square
_FOLDS, _FOLD_STEPS, _FOLD_TOLERANCE = 5, 2, 0.1


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
        self._lengths, self._hats = _centred_lengths(X), dict[float, FloatArray]()
        self._own_squares: Any = np.square(X) if isinstance(X, np.ndarray) else X.multiply(X).tocsr()
        self._past_squares: FloatArray | None = None
        if basis is not None and share:
            past = np.asarray(X @ basis)
            squares = np.square(past - past.mean(axis=0)).sum(axis=0)
            scale = share * self.squares.sum() / max(float(squares.sum()), np.finfo(np.float64).tiny)
            self._own, self._basis = np.sqrt(1.0 - share), np.sqrt(scale) * basis
            self.rows = _Beside(self._own * X, np.sqrt(scale) * past)
            self.squares = np.concatenate(((1.0 - share) * self.squares, scale * squares))
            self._own_squares, self._past_squares = (
                (1.0 - share) * self._own_squares,
                scale * np.square(past - past.mean(0)),
            )
            self._lengths = (1.0 - share) * self._lengths + self._past_squares.sum(axis=1)

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
        tolerance: float,
        start: Start | None = None,
        rows: IntArray | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Learn answers (q, k) toward points: points (., k), intercepts (k,), scores (q, k) of rows left out.

        rows : those whose scores are needed, with another loss than the squared one; the others' may be wrong
        """
        kind, inverse = get_loss(loss), diagonal_inverse(self.squares)
        U, b, scores = np.empty_like(anchor), np.empty(answers.shape[1]), np.empty(answers.shape)
        folds = np.ones((len(answers), 1, answers.shape[1]), dtype=bool) if loss == "squared" else _folds(answers, rows)
        blocks = column_blocks(answers.shape[1], folds.shape[0] * folds.shape[1])
        if very_many(self.rows):  # each has its own rows that stand for all
            blocks = [slice(label, label + 1) for label in range(answers.shape[1])]
        with one_thread():
            for part in blocks:
                given, held, masks = answers[:, part], anchor[:, part], folds[:, :, part]
                objective = AnchoredObjective(self.rows, kind.encode(given), kind, make_penalty(held, None, beta))
                begin = None if start is None else (start[0][:, part], start[1][part])
                begin = _begin(objective, inverse, begin)
                V, c = minimise(self.rows, self.squares, given, beta, loss, held, begin, None, tolerance)
                U[:, part], b[part] = V, c
                if loss == "squared":
                    seen, leverages = objective.scores(V, c), self._hat(beta)[:, None]
                    scores[:, part] = seen - leverages / (1.0 - leverages) * (given - seen)
                    continue
                given, held, V, c = (np.tile(one, (1, masks.shape[1])) for one in (given, held, V, c[None]))
                V, c = minimise(
                    self.rows, self.squares, given, beta, loss, held, (V, c[0]),
                    masks.reshape(len(masks), -1).astype(np.float64), _FOLD_TOLERANCE, _FOLD_STEPS, True,
                )  # fmt: skip
                changed = np.asarray(self.rows @ V + c).reshape(masks.shape)
                scores[:, part] = np.take_along_axis(changed, masks.argmin(axis=1)[:, None], axis=1)[:, 0]
        return U, b, scores

    def _hat(self, beta: float) -> FloatArray:
        if beta not in self._hats:
            n_rows = len(self._lengths)
            sign = np.where(np.random.default_rng(0).random((n_rows, 1)) < 0.5, -1.0, 1.0)
            V, b = minimise(self.rows, self.squares, sign, beta, "squared", tolerance=_PROBED)
            found = (sign * (np.asarray(self.rows @ V) + b))[:, 0]
            features = np.column_stack((np.ones(n_rows), self._lengths, self._own_lengths(beta)))
            line = np.linalg.lstsq(features / np.abs(features).max(axis=0), found, rcond=None)[0]
            least = 1.0 / n_rows
            self._hats[beta] = np.clip(features / np.abs(features).max(axis=0) @ line, least, 0.95)
        return self._hats[beta]

    def _own_lengths(self, beta: float) -> FloatArray:
        """The squared lengths of rows, every feature divided by its own square in all rows and beta."""
        scale = 1.0 / (self.squares + beta)
        n_own = self._own_squares.shape[1]
        found = np.asarray(self._own_squares @ scale[:n_own])
        return found if self._past_squares is None else found + self._past_squares @ scale[n_own:]


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


def _centred_lengths(X: CSR | FloatArray) -> FloatArray:
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = np.square(X).sum(axis=1) if isinstance(X, np.ndarray) else np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.maximum(squares - 2.0 * np.asarray(X @ mean) + float(mean @ mean), 0.0)


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
