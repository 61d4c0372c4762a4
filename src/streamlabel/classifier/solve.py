"""Classifiers for a batch of new labels, by the solver that suits the size and the loss: the door to step 2.

`choose_squared_solver` says which solver for which size, and why, in words for the report. Times are guessed from
counts of multiplications and rough rates of one core; only their ratios matter.

With the squared loss a whole coupled batch is a Sylvester equation, solved in two spectral bases at once. Setting the
gradient to zero gives ``A V + beta V N = R`` with ``A = Xc'Xc``, ``N = M M'`` and ``R = Xc'Y + beta P M'``. With
``N = Q diag(q) Q'`` the columns of ``V Q`` are separate::

    (A + beta q_j I) (V Q)_j = Xc'(Y Q)_j + beta (P M' Q)_j

and column j is a plain ridge of strength ``beta q_j`` toward the anchor ``(P M' Q)_j / q_j``. The factor of the rows
solves it for every strength without a further factorisation. ``S2 = 0`` is the plain anchored ridge, bit for bit.

With any other loss, labels without a coupling are problems of their own. They are solved in blocks that share products
with the rows, labels of like frequency together since they take about as many steps. Coupled labels are one block.

L-BFGS needs only gradients and a few copies of the classifiers, and many more iterations than Newton. The intercept is
moved to the mean of the rows there, ``b' = b + mu'v``, where it is least entangled with the weights.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
from scipy import optimize, sparse
from scipy.sparse.linalg import LinearOperator

from streamlabel.classifier.conjugate_gradient import column_lengths, solve_conjugate_gradient
from streamlabel.classifier.losses import Loss, get_loss
from streamlabel.classifier.newton import (
    NewtonResult,
    ShiftedInverse,
    Start,
    diagonal_inverse,
    first_point,
    minimise_newton,
    spectral_inverse,
)
from streamlabel.classifier.objective import (
    AnchoredObjective,
    Design,
    column_blocks,
    column_sums,
    dense_columns,
    relative_residual,
)
from streamlabel.classifier.penalty import Penalty, make_penalty
from streamlabel.classifier.ridge import FeatureRidge, PreparedRidge, RowRidge, solve_anchored_ridge
from streamlabel.errors import ConvergenceWarning, DataError, NotFoundError
from streamlabel.stats.accelerator import accelerated
from streamlabel.stats.spectral import RidgeFactor, dense, make_factor
from streamlabel.stats.threads import one_thread
from streamlabel.types import CSR, FloatArray, IntArray, SolveReport
from streamlabel.validation import checked_matrix

# A square matrix of this order takes 0.5 GB, and about a minute of one core to eigendecompose.
FACTOR_LIMIT = 8_000

# Multiplications a second: dense products and factorisations, products of sparse rows with dense columns, and
# products of two sparse matrices.
_DENSE_RATE = 2e10
_SPARSE_RATE = 2e9
_GRAM_RATE = 3e8

# Conjugate gradients are less exact than a factor, so by a cautious guess they have to take half of its time.
_GUESSED_ITERATIONS = 100
_PREFERENCE = 2.0


def too_large(X: CSR | FloatArray) -> bool:
    """Whether rows and features are both too many for a factor, so that the squared loss is solved by iterations."""
    return min(X.shape) > FACTOR_LIMIT


def choose_squared_solver(design: Design, n_labels: int, *, coupled: bool, has_factor: bool) -> tuple[str, str]:
    """Choose the solver for the squared loss; returns its name and the reason."""
    n, d = design.n_rows, design.n_features
    order = min(n, d)
    size = f"{n} rows, {d} features, {n_labels} labels"
    if has_factor:
        return "spectral", "a factor of the rows was given"
    if design.elsewhere:
        return "conjugate_gradient", f"{size}: the rows are elsewhere, only products are known"
    if order > FACTOR_LIMIT:
        return "conjugate_gradient", f"{size}: too many of both for a factor (limit {FACTOR_LIMIT})"
    iterating = _GUESSED_ITERATIONS * _product_time(design, n_labels)
    factoring = _gram_time(design) + (_eigen_time(order) if coupled else order**3 / 3.0 / _DENSE_RATE)
    if sparse.issparse(design.X) and _PREFERENCE * iterating < factoring:
        return "conjugate_gradient", f"{size}: few labels on sparse rows, a factor would take longer"
    if coupled:
        return "spectral", f"{size}: coupled labels, and a factor of order {order} is affordable"
    if n < d:
        return "dual", f"{size}: fewer rows than features"
    return "cholesky", f"{size}: one beta and no coupling"


def affords_factor(design: Design, n_labels: int) -> bool:
    """Whether Newton's inner solves should be preconditioned with a spectral factor made for them.

    On sparse texts it saves a tenth to a third of the inner steps, on dense features more than half: applying it must
    take a quarter of the product with X and X' that it goes with, and making it has to be paid back by the products
    that it saves, guessed as 25 for each label.
    """
    if design.elsewhere:
        return False
    order = min(design.n_rows, design.n_features)
    product = _product_time(design, n_labels)
    applying = 2.0 * order**2 * n_labels / _DENSE_RATE
    making = _gram_time(design) + _eigen_time(order)
    return order <= FACTOR_LIMIT and 4.0 * applying <= product and making <= 25.0 * product


def _stored(design: Design) -> int:
    return int(design.X.nnz) if sparse.issparse(design.X) else design.n_rows * design.n_features


def _product_time(design: Design, n_labels: int) -> float:
    """Seconds for ``X'(X Z)``."""
    return 2.0 * _stored(design) * n_labels / (_SPARSE_RATE if sparse.issparse(design.X) else _DENSE_RATE)


def _gram_time(design: Design) -> float:
    """Seconds for the smaller of ``X'X`` and ``XX'``."""
    n, d = design.n_rows, design.n_features
    stored = _stored(design)
    if not sparse.issparse(design.X):
        return stored * min(n, d) / _DENSE_RATE
    # As if rows (or columns, for the kernel) were equally long: each costs the square of its length.
    return stored * stored / max(n, d) / _GRAM_RATE


def _eigen_time(order: int) -> float:
    return 5.0 * order**3 / _DENSE_RATE


def solve_prepared(
    ridge: PreparedRidge, targets: CSR | FloatArray, anchor: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Classifiers (d, k) and intercepts (k,) on rows that are factored already, toward an anchor or toward zero."""
    weights = ridge.solve(targets) if anchor is None else ridge.toward(targets, anchor)
    return weights, best_intercept(ridge, targets, weights)


def best_intercept(ridge: PreparedRidge, targets: CSR | FloatArray, weights: FloatArray) -> FloatArray:
    """The intercepts (k,) that go with these classifiers; zero if the rows are not centred."""
    rates = column_sums(targets) / ridge.n_rows if ridge.centre else np.zeros(weights.shape[1])
    return np.asarray(rates - ridge.mean @ weights)


def solve_coupled(factor: RidgeFactor, projected: FloatArray, penalty: Penalty) -> FloatArray:
    """Solve the squared loss for projected targets (r, k), coupled or not: the classifiers (d, k)."""
    if not penalty.coupled:
        return solve_anchored_ridge(factor, projected, penalty.anchor, penalty.beta)
    anchor = penalty.rotated_anchor()
    residual = penalty.rotate(projected) - factor.project_scores(anchor)
    return penalty.unrotate(anchor + ridge_of_many_strengths(factor, residual, penalty.beta * penalty.strengths))


def ridge_of_many_strengths(factor: RidgeFactor, projected: FloatArray, betas: FloatArray) -> FloatArray:
    """Ridge (d, k) of projected targets (r, k), column j with its own strength ``betas[j]``, in one product."""
    # weights(z, b) multiplies by 1 / (a + b); any one b will do once z carries (a + b) / (a + b_j).
    middle = float(np.median(betas))
    values = factor.eigenvalues[:, None]
    return factor.weights(projected * ((values + middle) / (values + betas)), middle)


_MEMORY = 20


def minimise_lbfgs(
    objective: AnchoredObjective, start: Start | None = None, *, tolerance: float, max_iter: int
) -> NewtonResult:
    """Minimise J by L-BFGS until each gradient is below `tolerance` times its `gradient_scale` (`first_point`)."""
    shape = objective.penalty.anchor.shape
    mean = np.asarray(objective.X.mean(axis=0)).ravel() if objective.fit_intercept else np.zeros(shape[0])
    scale = objective.gradient_scale()
    violations = np.full(shape[1], np.inf)

    def unpack(point: FloatArray) -> tuple[FloatArray, FloatArray]:
        V = point[: -shape[1]].reshape(shape)
        return V, point[-shape[1] :] - mean @ V

    def cost(point: FloatArray) -> tuple[float, FloatArray]:
        value, slope, slope_b = objective.value_and_gradient(*unpack(point))
        violations[:] = np.hypot(column_lengths(slope), slope_b) / scale
        return value, np.concatenate([(slope - np.outer(mean, slope_b)).ravel(), slope_b])

    def stop(intermediate_result: optimize.OptimizeResult) -> None:
        if (violations <= tolerance).all():
            raise StopIteration

    V, b, _ = first_point(objective, start)
    found = optimize.minimize(
        cost,
        np.concatenate([V.ravel(), b + mean @ V]),
        jac=True,
        method="L-BFGS-B",
        callback=stop,
        options={"maxiter": max_iter, "maxfun": 2 * max_iter + 20, "maxcor": _MEMORY, "ftol": 0.0, "gtol": 0.0},
    )
    cost(found.x)
    return NewtonResult(*unpack(found.x), violations.copy(), int(found.nit), int(found.nfev) * len(violations))


def minimise_batch(
    solver: str,
    design: Design,
    targets: FloatArray | CSR,
    loss: Loss,
    penalty: Penalty,
    factor: RidgeFactor | None,
    *,
    tolerance: float,
    max_iter: int,
    start: Start | None = None,
) -> tuple[FloatArray, FloatArray, int, float, str]:
    """Minimise any loss for a batch: weights (d, k), intercepts (k,), iterations, largest relative gradient, a note.

    solver : ``"newton"`` or ``"lbfgs"``;   factor : of the rows, for Newton's preconditioner, or None
    """
    if solver == "newton":
        given = (design.X, targets, loss.name, penalty, design.fit_intercept, None, design.gram_diagonal(), start)
        done: NewtonResult | None = accelerated("newton", *given, tolerance, max_iter)
        if done is not None:
            note = f"{done.n_inner / penalty.anchor.shape[1]:.0f} inner steps a label on the device"
            return done.weights, done.intercept, done.n_outer, float(done.violations.max()), note
    blocks = _label_blocks(design, targets, penalty)
    inverse = _inverse(design, penalty, factor) if solver == "newton" else None

    def run(labels: IntArray) -> NewtonResult:
        answers = loss.encode(dense_columns(targets, labels))
        part = penalty if penalty.coupled else penalty.take(labels)
        objective = AnchoredObjective(design.X, answers, loss, part, design.fit_intercept)
        begin = None if start is None else (start[0][:, labels], start[1][labels])
        if inverse is None:
            return minimise_lbfgs(objective, begin, tolerance=tolerance, max_iter=max_iter)
        return minimise_newton(objective, inverse, begin, tolerance=tolerance, max_iter=max_iter)

    # Products with sparse rows do not go through BLAS; what does is small, and several threads would only spin.
    with one_thread() if sparse.issparse(design.X) else nullcontext():
        results = [run(labels) for labels in blocks]
    n_labels = penalty.anchor.shape[1]
    weights, intercept = np.empty_like(penalty.anchor), np.empty(n_labels)
    for labels, result in zip(blocks, results, strict=True):
        weights[:, labels], intercept[labels] = result.weights, result.intercept
    n_inner = sum(result.n_inner for result in results)
    return (
        weights,
        intercept,
        max(result.n_outer for result in results),
        max(float(result.violations.max()) for result in results),
        f"{n_inner / n_labels:.0f} inner steps a label in {len(blocks)} block(s)",
    )


def _label_blocks(design: Design, targets: FloatArray | CSR, penalty: Penalty) -> list[IntArray]:
    n_labels = penalty.anchor.shape[1]
    if penalty.coupled:
        return [np.arange(n_labels)]
    order = np.argsort(-column_sums(targets), kind="stable")
    return [order[block] for block in column_blocks(n_labels, design.n_rows)]


def _inverse(design: Design, penalty: Penalty, factor: RidgeFactor | None) -> ShiftedInverse:
    if factor is None and affords_factor(design, penalty.anchor.shape[1]):
        factor = make_factor(design.X, centre=design.fit_intercept)
    return diagonal_inverse(design.gram_diagonal()) if factor is None else spectral_inverse(factor)


SOLVERS = ("auto", "spectral", "cholesky", "dual", "conjugate_gradient", "newton", "lbfgs")
_DIRECT = ("spectral", "cholesky", "dual")
_ITERATIONS = {"conjugate_gradient": 2000, "newton": 100, "lbfgs": 2000}

Solution = tuple[FloatArray, FloatArray, SolveReport]


def solve(
    X: Any,
    Y: Any,
    anchor: FloatArray | None = None,
    coupling: Any = None,
    *,
    beta: float,
    loss: str = "squared",
    solver: str = "auto",
    factor: RidgeFactor | None = None,
    fit_intercept: bool = True,
    tolerance: float | None = None,
    max_iter: int | None = None,
    start: Start | None = None,
) -> Solution:
    """Learn the classifiers of a batch: minimise ``sum loss(y, x.v + b) + beta/2 ||V (I - S2) - P||_F^2``.

    Parameters
    ----------
    X : (n, d), sparse or dense, or rows elsewhere in blocks (`scale.partitions.PartitionedRows`)
    Y : (n, k), sparse or dense; 0/1 or -1/+1, any numbers for the squared loss
    anchor : (d, k), ``P = W S1``; None is 0
    coupling : (k, k), ``S2``, sparse or dense; None is 0
    beta : the strength of the pull, above 0
    loss : ``"squared"``, ``"logistic"``, ``"squared_hinge"``
    solver : one of `SOLVERS`. ``"auto"`` chooses by size; the report's note says what and why
    factor : the kept spectral factor of these rows (centred if there is an intercept), if there is one
    tolerance : on the relative residual (squared loss, 1e-8) or the relative gradient (other losses, 1e-4)
    max_iter : of the iterative solvers
    start : weights (d, k) and intercepts (k,) near the answer, for the iterative solvers; the answer is the same to the
        tolerance. None begins at the anchor

    Returns
    -------
    weights (d, k), intercept (k,), report

    Warns
    -----
    ConvergenceWarning : the solve stopped short of its tolerance
    """
    if not (np.isfinite(beta) and beta > 0.0):
        raise DataError(f"beta is {beta}; it must be a positive number")
    kind = get_loss(loss)
    design, targets, penalty = _checked(X, Y, anchor, coupling, float(beta), fit_intercept)
    if factor is not None and (factor.n_rows, len(factor.mean)) != design.X.shape:
        raise DataError(f"the factor is of {factor.n_rows} rows and {len(factor.mean)} features, X is {design.X.shape}")
    if start is not None and (start[0].shape, start[1].shape) != (penalty.anchor.shape, penalty.anchor.shape[1:]):
        raise DataError(f"the start has shape {start[0].shape}; (features, labels) is {penalty.anchor.shape}")
    chosen, reason = _choose(solver, kind, design, penalty, factor is not None)
    if tolerance is None:
        tolerance = 1e-8 if kind.name == "squared" else 1e-4
    limit = _ITERATIONS.get(chosen, 1) if max_iter is None else max_iter
    if chosen in ("newton", "lbfgs"):
        weights, intercept, n_iter, violation, note = minimise_batch(
            chosen, design, targets, kind, penalty, factor, tolerance=tolerance, max_iter=limit, start=start
        )
    else:
        note = ""
        weights, intercept, n_iter = _solve_squared(chosen, design, targets, penalty, factor, tolerance, limit, start)
        violation = relative_residual(design, targets, penalty, weights)
    note = "; ".join(part for part in (f"{chosen}: {reason}", note, penalty.note) if part)
    report = SolveReport(chosen, n_iter, violation, tolerance, violation <= tolerance, note)
    if not report.converged:
        warnings.warn(
            f"{chosen} stopped after {n_iter} iterations at {violation:.1e}, short of {tolerance:.1e}; "
            "raise max_iter, beta or the tolerance",
            ConvergenceWarning,
            stacklevel=2,
        )
    return weights, intercept, report


def _checked(
    X: Any, Y: Any, anchor: FloatArray | None, coupling: Any, beta: float, fit_intercept: bool
) -> tuple[Design, FloatArray | CSR, Penalty]:
    rows: Any = X if isinstance(X, LinearOperator) else checked_matrix(X, name="X")
    targets = checked_matrix(Y, name="Y")
    if rows.shape[0] != targets.shape[0]:
        raise DataError(f"X has {rows.shape[0]} rows and Y has {targets.shape[0]}; they must be the same rows")
    if min(*rows.shape, targets.shape[1]) == 0:
        raise DataError(f"X {rows.shape} and Y {targets.shape}: there must be a row, a feature and a label")
    shape = (rows.shape[1], targets.shape[1])
    anchor = np.zeros(shape) if anchor is None else dense(checked_matrix(anchor, name="the anchor"))
    if anchor.shape != shape:
        raise DataError(f"the anchor has shape {anchor.shape}; (features, labels) is {shape}")
    coupling = None if coupling is None else checked_matrix(coupling, name="the coupling")
    if coupling is not None and coupling.shape != (shape[1], shape[1]):
        raise DataError(f"the coupling has shape {coupling.shape}; {shape[1]} labels need {(shape[1], shape[1])}")
    return Design(rows, fit_intercept), targets, make_penalty(anchor, coupling, beta)


def _choose(solver: str, loss: Loss, design: Design, penalty: Penalty, has_factor: bool) -> tuple[str, str]:
    if solver not in SOLVERS:
        raise NotFoundError(f"no solver is called {solver!r}; there are {', '.join(SOLVERS)}")
    if loss.name != "squared" and solver in (*_DIRECT, "conjugate_gradient"):
        raise DataError(f"{solver} solves the squared loss only; use newton or lbfgs for {loss.name}")
    if penalty.coupled and solver in ("cholesky", "dual"):
        raise DataError(f"{solver} cannot couple labels; use spectral or conjugate_gradient")
    if solver != "auto":
        return solver, "asked for"
    if loss.name != "squared":
        return "newton", f"the {loss.name} loss has no closed form"
    return choose_squared_solver(design, penalty.anchor.shape[1], coupled=penalty.coupled, has_factor=has_factor)


def _solve_squared(
    solver: str,
    design: Design,
    targets: FloatArray | CSR,
    penalty: Penalty,
    factor: RidgeFactor | None,
    tolerance: float,
    max_iter: int,
    start: Start | None,
) -> tuple[FloatArray, FloatArray, int]:
    if solver in ("cholesky", "dual"):
        kind = FeatureRidge if solver == "cholesky" else RowRidge
        ridge = kind(design.X, penalty.beta, centre=design.fit_intercept)
        return *solve_prepared(ridge, targets, penalty.anchor if penalty.anchor.any() else None), 1
    if solver == "spectral":
        factor = make_factor(design.X, centre=design.fit_intercept) if factor is None else factor
        weights, n_iter = solve_coupled(factor, factor.project(targets), penalty), 1
    else:
        weights, n_iter = solve_conjugate_gradient(
            design, targets, penalty, tolerance=tolerance, max_iter=max_iter, start=None if start is None else start[0]
        )
    return weights, design.intercept(targets, weights), n_iter
