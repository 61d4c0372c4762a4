"""A batch under any loss, in blocks of separate labels.

Labels without a coupling are problems of their own, so they are solved in blocks that share products with the rows,
labels of like frequency together since they take about as many steps. Coupled labels are one block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.classifier.choice import affords_factor
from streamlabel.classifier.design import Design, column_blocks, column_sums, dense_columns
from streamlabel.classifier.losses import Loss
from streamlabel.classifier.objective import AnchoredObjective
from streamlabel.classifier.penalty import Penalty
from streamlabel.classifier.preconditioner import ShiftedInverse, diagonal_inverse, spectral_inverse
from streamlabel.classifier.quasi_newton import minimise_lbfgs
from streamlabel.classifier.truncated_newton import NewtonResult, minimise_newton
from streamlabel.results import CSR, FloatArray, IntArray
from streamlabel.stats.factors import RidgeFactor, make_factor
from streamlabel.stats.threads import one_thread

__all__ = ["minimise_batch"]


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
    map_blocks: Callable[..., Iterable[Any]] = map,
) -> tuple[FloatArray, FloatArray, int, float, str]:
    """Weights (d, k), intercepts (k,), iterations, the largest relative gradient, and a note.

    solver : ``"newton"`` or ``"lbfgs"``;   factor : of the rows, for Newton's preconditioner, or None
    """
    blocks = _label_blocks(design, targets, penalty)
    run = _runner(solver, design, targets, loss, penalty, factor, tolerance, max_iter)
    # Products with sparse rows do not go through BLAS; what does is small, and several threads would only spin.
    alone = sparse.issparse(design.X) or map_blocks is not map
    with one_thread() if alone else nullcontext():
        results: list[NewtonResult] = list(map_blocks(run, blocks))
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


def _runner(
    solver: str,
    design: Design,
    targets: FloatArray | CSR,
    loss: Loss,
    penalty: Penalty,
    factor: RidgeFactor | None,
    tolerance: float,
    max_iter: int,
) -> Callable[[IntArray], NewtonResult]:
    inverse = _inverse(design, penalty, factor) if solver == "newton" else None

    def run(labels: IntArray) -> NewtonResult:
        objective = AnchoredObjective(
            design.X,
            loss.encode(dense_columns(targets, labels)),
            loss,
            penalty if penalty.coupled else penalty.take(labels),
            design.fit_intercept,
        )
        if inverse is None:
            return minimise_lbfgs(objective, tolerance=tolerance, max_iter=max_iter)
        return minimise_newton(objective, inverse, tolerance=tolerance, max_iter=max_iter)

    return run


def _inverse(design: Design, penalty: Penalty, factor: RidgeFactor | None) -> ShiftedInverse:
    if factor is None and affords_factor(design, penalty.anchor.shape[1]):
        factor = make_factor(design.X, centre=design.fit_intercept)
    return diagonal_inverse(design.gram_diagonal()) if factor is None else spectral_inverse(factor)
