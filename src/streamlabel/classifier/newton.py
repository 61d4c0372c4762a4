"""Truncated Newton for any loss: few outer steps, each a short conjugate-gradient solve with the batched Hessian.

The intercepts are eliminated from Newton's system exactly. With the second derivatives ``D`` (n, k), their column sums
``e`` and ``B = X'D`` the step ``(Z, c)`` solves::

    (X'(D * X Z) - B diag(1/e) B'Z) + beta Z N = -(g_V - B diag(1/e) g_b)        c = -(g_b + B'Z) / e

in which the bracket is the Hessian about the ``D``-weighted mean of the rows; for the squared loss that is centring.
Steps are shortened by halves until the objective has fallen enough. Separate labels have separate steps and ends, so a
label's answer does not depend on its company; coupled labels are one system.

The inner solves are kept short by an approximate inverse of the Hessian. For label j that is ``X'D_j X + beta N`` with
the second derivatives ``D_j`` on a diagonal. With ``D_j`` replaced by its mean ``w_j`` and the intercept eliminated it
is ``w_j A + beta N``, ``A = Xc'Xc``; in ``Z = V diag(w)^1/2``::

    A Z + beta Z (diag(w)^-1/2 N diag(w)^-1/2)

is the Sylvester operator of the squared loss. The kept factor of the rows inverts it exactly; without a factor ``A``
is replaced by its diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from streamlabel.classifier.conjugate_gradient import Operator, column_lengths, conjugate_gradient, still_worked
from streamlabel.classifier.objective import AnchoredObjective, SingleRows, standing
from streamlabel.classifier.penalty import Penalty
from streamlabel.stats.spectral import RidgeFactor
from streamlabel.types import CSR, FloatArray, IntArray

# R, s -> about (A + s_j I)^-1 R_j for every column
ShiftedInverse = Callable[[FloatArray, FloatArray], FloatArray]
Start = tuple[FloatArray, FloatArray]  # classifiers (d, k) and intercepts (k,) to begin with

_SMALLEST_WEIGHT = 1e-8


def diagonal_inverse(diagonal: FloatArray) -> ShiftedInverse:
    """The inverse of ``A + s I`` with A replaced by its diagonal (d,): an approximation without a factor."""
    return lambda R, shifts: R / (diagonal[:, None] + shifts).astype(R.dtype, copy=False)


def sketched_inverse(X: CSR | FloatArray | SingleRows, mean: FloatArray, size: int = 128) -> ShiftedInverse:
    """About the inverse of ``A + s I``: exact in the largest directions of ``A = Xc'Xc``, one number in all others.

    The directions are Nystroem's, of a fixed random sketch. Second derivatives of one take a third of the steps then.
    """
    random = np.random.default_rng(0).standard_normal((X.shape[1], min(size, *X.shape)))
    sketch = linalg.qr(random, mode="economic")[0]
    scores = X @ sketch - mean @ sketch
    image = X.T @ scores - np.outer(mean, scores.sum(axis=0))
    shift = 1e-6 * float(np.linalg.norm(image)) + np.finfo(np.float64).tiny
    root = linalg.cholesky(sketch.T @ image + shift * np.eye(sketch.shape[1]), lower=True)
    half = linalg.solve_triangular(root, (image + shift * sketch).T, lower=True).T
    vectors, roots, _ = linalg.svd(half, full_matrices=False)
    values = np.maximum(np.square(roots) - shift, 0.0)[:, None]

    def solve(R: FloatArray, shifts: FloatArray) -> FloatArray:
        last, U = values[-1] + shifts, vectors.astype(R.dtype, copy=False)
        return R / last.astype(R.dtype) + U @ ((1.0 / (values + shifts) - 1.0 / last).astype(R.dtype) * (U.T @ R))

    return solve


def spectral_inverse(factor: RidgeFactor) -> ShiftedInverse:
    """The exact inverse of ``A + s I``, from the factor of the rows: ``U diag(1/(a + s) - 1/s) U'R + R/s``."""
    values = factor.eigenvalues[:, None]

    def solve(R: FloatArray, shifts: FloatArray) -> FloatArray:
        # project_scores(R) = diag(a^1/2) U'R and weights(z, 0) = U diag(a^-1/2) z; 1/(a + s) - 1/s = -a / (s (a + s)).
        # So the roots of a cancel and no small eigenvalue is divided by.
        return R / shifts - factor.weights(factor.project_scores(R) * (values / ((values + shifts) * shifts)), 0.0)

    return solve


def hessian_inverse(inverse: ShiftedInverse, penalty: Penalty, weights: FloatArray) -> Operator:
    """The approximate inverse of the Hessian whose second derivatives have the means `weights`, (k,)."""
    weights = np.maximum(weights, _SMALLEST_WEIGHT)
    if penalty.metric is None:
        return lambda R: inverse(R, penalty.beta / weights) / weights
    roots = np.sqrt(weights)
    strengths, rotation = linalg.eigh(penalty.metric / np.outer(roots, roots))
    shifts = penalty.beta * np.maximum(strengths, np.finfo(np.float64).eps * strengths[-1])
    into = rotation / roots[:, None]
    return lambda R: inverse(R @ into, shifts) @ into.T


_MAX_INNER = 200
_MAX_HALVINGS = 40
_SUFFICIENT = 1e-4
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class NewtonResult:
    """The result of a minimisation: weights (d, k), intercepts (k,), relative gradient lengths (k,).

    n_outer : the iterations of the slowest label;  n_inner : the conjugate-gradient steps of all labels together
    """

    weights: FloatArray
    intercept: FloatArray
    violations: FloatArray
    n_outer: int
    n_inner: int

    def keep(self, labels: IntArray, weights: FloatArray, intercept: FloatArray, violations: FloatArray) -> None:
        """Store the weights, intercepts and gradient lengths of some labels."""
        self.weights[:, labels], self.intercept[labels], self.violations[labels] = weights, intercept, violations


def minimise_newton(
    objective: AnchoredObjective,
    inverse: ShiftedInverse,
    start: Start | None = None,
    *,
    tolerance: float,
    max_iter: int,
    from_start: bool = False,
) -> NewtonResult:
    """Minimise J by Newton until each gradient is below `tolerance` times its `gradient_scale` (`first_point`).

    from_start : times its length at the start instead, which is then where it begins
    """
    n_labels = objective.answers.shape[1]
    found = NewtonResult(np.empty_like(objective.penalty.anchor), np.empty(n_labels), np.empty(n_labels), 0, 0)
    at_work = np.arange(n_labels)
    if start is not None and from_start:
        V, b = start
        scores = objective.scores(V, b)
    else:
        V, b, scores = first_point(objective, start)
    costs, first, second = objective.terms(scores)
    scale = None if from_start else objective.gradient_scale()
    costs = costs + objective.penalty.values(V)
    stuck = np.zeros(n_labels, dtype=bool)  # the cost does not fall any more: rounding
    n_inner = 0
    outer = 0
    while True:
        slope, slope_b = objective.gradient_from(V, first)
        lengths = _lengths(slope, slope_b)
        scale = np.where(lengths > 0.0, lengths, 1.0) if scale is None else scale
        violations = lengths / scale
        going = (violations > tolerance) & ~stuck
        if objective.penalty.coupled:
            going[:] = going.any()
        if outer == max_iter or not going.any():
            found.keep(at_work, V, b, violations)
            return replace(found, n_outer=outer, n_inner=n_inner)
        kept = None if objective.penalty.coupled else still_worked(going)
        if kept is not None:
            found.keep(at_work, V, b, violations)
            at_work, objective = at_work[kept], objective.take(kept)
            V, scores, second, slope = (np.take(array, kept, axis=1) for array in (V, scores, second, slope))
            b, costs, slope_b, scale = (array[kept] for array in (b, costs, slope_b, scale))
            violations, going, stuck = violations[kept], going[kept], stuck[kept]
        # Accuracy grows as the gradient falls, but not beyond what the last step needs.
        forcing = np.maximum(np.minimum(0.3, np.sqrt(violations)), 0.3 * tolerance / np.maximum(violations, tolerance))
        if objective.loss.name == "squared":  # one step is enough
            forcing = 0.9 * tolerance / np.maximum(violations, tolerance)
        forcing[~going] = 1.0
        Z, c, inner = _direction(objective, inverse, second, slope, slope_b, forcing)
        Z, c = Z * going, c * going
        step, scores, costs, first, second = _line_search(objective, V, Z, c, scores, costs, slope, slope_b)
        V, b = V + step * Z, b + step * c
        stuck |= going & (step == 0.0)
        outer += bool((going & ~stuck).any())
        n_inner += inner


def first_point(objective: AnchoredObjective, start: Start | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where to begin, and the scores (n, k) there: the anchor, with the best constant as the mean of its scores.

    Or a start, where J is less there. Separate labels begin separately; without an intercept that of the start is not
    used.
    """
    V = objective.penalty.anchor.copy()
    b: FloatArray = np.zeros(V.shape[1])
    if objective.fit_intercept:
        mean = np.asarray(objective.X.mean(axis=0)).ravel() @ V if V.any() else 0.0
        b = objective.loss.best_constant(objective.answers) - mean
    scores = objective.scores(V, b) if V.any() else np.broadcast_to(b, objective.answers.shape)
    if start is None:
        return V, b, scores
    given = start[0], start[1] if objective.fit_intercept else b
    there = objective.scores(*given)
    costs = [objective.terms(at)[0] + objective.penalty.values(W) for at, W in ((there, given[0]), (scores, V))]
    less = _total(objective, costs[0]) < _total(objective, costs[1])
    return np.where(less, given[0], V), np.where(less, given[1], b), np.where(less, there, scores)


def _lengths(slope: FloatArray, slope_b: FloatArray) -> FloatArray:
    return np.hypot(column_lengths(slope), slope_b)


def _total(objective: AnchoredObjective, per_label: FloatArray) -> FloatArray:
    """The amount that a step is judged by, (k,): each label's own, or the sum if labels are coupled."""
    return np.full_like(per_label, per_label.sum()) if objective.penalty.coupled else per_label


def _direction(
    objective: AnchoredObjective,
    inverse: ShiftedInverse,
    second: FloatArray,
    slope: FloatArray,
    slope_b: FloatArray,
    forcing: FloatArray,
) -> tuple[FloatArray, FloatArray, int]:
    """Newton's step, its residual at most the share `forcing` (k,) of the gradient."""
    X, penalty = objective.X, objective.penalty
    if isinstance(X, SingleRows):
        second, slope = second.astype(np.float32), slope.astype(np.float32)
    if (part := standing(X, second)) is not None:  # slopes and costs are those of all rows, so the answer is, too
        X, second = X[part[0]], second[part[0]] * part[1]
    sums = second.sum(axis=0)
    share = np.where(sums > 0.0, 1.0 / np.where(sums > 0.0, sums, 1.0), 0.0)
    means, right = sums / second.shape[0], -slope
    weighted = None
    if objective.fit_intercept:
        weighted = X.T @ second
        right += weighted * (share * slope_b).astype(right.dtype)

    def operators(labels: IntArray | None = None) -> tuple[Operator, Operator]:
        if labels is None:
            return _hessian(X, second, weighted, share, penalty), hessian_inverse(inverse, penalty, means)
        part = penalty.take(labels)
        picked = None if weighted is None else np.take(weighted, labels, axis=1)
        return (
            _hessian(X, np.take(second, labels, axis=1), picked, share[labels], part),
            hessian_inverse(inverse, part, means[labels]),
        )

    lengths = column_lengths(right)
    if penalty.coupled:
        target = np.array([forcing.min() * np.linalg.norm(lengths)])
    else:
        target = forcing * lengths
    apply, precondition = operators()
    Z, steps = conjugate_gradient(
        apply, right, precondition, target, _MAX_INNER, together=penalty.coupled, take=operators
    )
    inner = int(steps.sum())
    if weighted is None:
        return Z, np.zeros_like(slope_b), inner
    return Z, -share * (slope_b + np.einsum("ij,ij->j", weighted, Z)), inner


def _hessian(
    X: CSR | FloatArray, second: FloatArray, weighted: FloatArray | None, share: FloatArray, penalty: Penalty
) -> Operator:
    """Newton's matrix without the intercepts; ``weighted`` is None if there are none."""
    turned = X.T  # once: scipy checks a matrix anew whenever it turns it

    def apply(Z: FloatArray) -> FloatArray:
        change = X @ Z
        change *= second
        image = turned @ change
        if weighted is not None:
            image -= weighted * (share * change.sum(axis=0))
        image += penalty.product(Z)
        return image

    return apply


def _line_search(
    objective: AnchoredObjective,
    V: FloatArray,
    Z: FloatArray,
    c: FloatArray,
    scores: FloatArray,
    costs: FloatArray,
    slope: FloatArray,
    slope_b: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Halve each label's step until its cost has fallen by a share of what the slope promises.

    Returns the steps (k,), and scores, costs and derivatives after them.
    """
    change = objective.scores(Z, c)
    fall = _total(objective, np.einsum("ij,ij->j", slope, Z) + slope_b * c)
    before = _total(objective, costs)
    limit = before + _ROUNDING * np.abs(before)
    step = np.ones_like(costs)
    moved = scores + change
    costs, first, second = objective.terms(moved)
    for halving in range(_MAX_HALVINGS):
        reached = _total(objective, costs + objective.penalty.values(V + step * Z))
        short = np.flatnonzero(reached > limit + _SUFFICIENT * step * fall)
        if short.size == 0:
            break
        step[short] = 0.5 * step[short] if halving < _MAX_HALVINGS - 1 else 0.0
        moved[:, short] = scores[:, short] + step[short] * change[:, short]
        costs[short], first[:, short], second[:, short] = objective.terms(moved[:, short], short)
    return step, moved, costs + objective.penalty.values(V + step * Z), first, second
