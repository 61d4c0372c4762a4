"""The door to step 2: classifiers for a batch of new labels, by the solver that suits the size and the loss."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from streamlabel._validation import checked_matrix
from streamlabel.classifier.choice import choose_squared_solver
from streamlabel.classifier.cholesky import CholeskyFactor
from streamlabel.classifier.conjugate_gradient import solve_conjugate_gradient
from streamlabel.classifier.coupled import solve_coupled
from streamlabel.classifier.design import Design, relative_residual
from streamlabel.classifier.dual import solve_dual
from streamlabel.classifier.losses import Loss, get_loss
from streamlabel.classifier.minimise import minimise_batch
from streamlabel.classifier.penalty import Penalty, make_penalty
from streamlabel.exceptions import ConvergenceWarning, DataError, NotFoundError
from streamlabel.results import CSR, FloatArray, SolveReport
from streamlabel.stats.factors import RidgeFactor, dense, make_factor

__all__ = ["SOLVERS", "solve"]

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
    map_blocks: Callable[..., Iterable[Any]] = map,
) -> Solution:
    """Minimise ``sum loss(y, x.v + b) + beta/2 ||V (I - S2) - P||_F^2``.

    Parameters
    ----------
    X : (n, d), sparse or dense
    Y : (n, k), sparse or dense; 0/1 or -1/+1, any numbers for the squared loss
    anchor : (d, k), ``P = W S1``; None is 0
    coupling : (k, k), ``S2``, sparse or dense; None is 0
    beta : the strength of the pull, above 0
    loss : ``"squared"``, ``"logistic"``, ``"squared_hinge"``
    solver : one of `SOLVERS`. ``"auto"`` chooses by size; the report's note says what and why
    factor : the kept spectral factor of these rows (centred where there is an intercept), if there is one
    tolerance : on the relative residual (squared loss, 1e-8) or the relative gradient (other losses, 1e-4)
    max_iter : of the iterative solvers
    map_blocks : like ``map``, over blocks of separate labels; the ``map`` of a thread pool runs them side by side

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
    chosen, reason = _choose(solver, kind, design, penalty, factor is not None)
    if tolerance is None:
        tolerance = 1e-8 if kind.name == "squared" else 1e-4
    limit = _ITERATIONS.get(chosen, 1) if max_iter is None else max_iter
    if chosen in ("newton", "lbfgs"):
        weights, intercept, n_iter, violation, note = minimise_batch(
            chosen, design, targets, kind, penalty, factor, tolerance=tolerance, max_iter=limit, map_blocks=map_blocks
        )
    else:
        note = ""
        weights, intercept, n_iter = _solve_squared(chosen, design, targets, penalty, factor, tolerance, limit)
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
    rows, targets = checked_matrix(X, name="X"), checked_matrix(Y, name="Y")
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
) -> tuple[FloatArray, FloatArray, int]:
    if solver == "cholesky":
        return *CholeskyFactor(design, penalty.beta).solve(targets, penalty.anchor), 1
    if solver == "dual":
        return *solve_dual(design.X, targets, penalty.anchor, penalty.beta, fit_intercept=design.fit_intercept), 1
    if solver == "spectral":
        factor = make_factor(design.X, centre=design.fit_intercept) if factor is None else factor
        weights, n_iter = solve_coupled(factor, factor.project(targets), penalty), 1
    else:
        weights, n_iter = solve_conjugate_gradient(design, targets, penalty, tolerance=tolerance, max_iter=max_iter)
    return weights, design.intercept(targets, weights), n_iter
