"""Columns of codes: solve some, certify each, put them together. Kernels; ``represent`` is the door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse

from streamlabel.results import CSC, FloatArray, IntArray, SolveReport
from streamlabel.structure.active_set import solve_active_set
from streamlabel.structure.coordinate_descent import solve_coordinate_descent
from streamlabel.structure.lars import solve_lars
from streamlabel.structure.objective import duality_gap, kkt_violation, lam_max

__all__ = ["SOLVERS", "ColumnTask", "LassoSolver", "SolvedColumn", "assemble_codes", "solve_column", "solve_columns"]


class LassoSolver(Protocol):
    """What every solver of ``1/2 s'Ls - c's + lam ||s||_1`` looks like: code, gradient, steps, whether it is solved."""

    def __call__(
        self,
        label_gram: FloatArray,
        correlation: FloatArray,
        lam: float,
        *,
        excluded: int | None = None,
        start: FloatArray | None = None,
        tol: float = ...,
    ) -> tuple[FloatArray, FloatArray, int, bool]: ...


SOLVERS: dict[str, LassoSolver] = {
    "active_set": solve_active_set,
    "coordinate_descent": solve_coordinate_descent,
    "lars": solve_lars,
}


@dataclass(frozen=True, eq=False)
class ColumnTask:
    """Some columns of one `represent`: what a worker needs beside the Gram.

    ``correlations (k, m)``, one row a column; ``energies``, ``lams`` and ``own`` (-1: no own entry) are (k,);
    ``start`` is (m, k) or None.
    """

    correlations: FloatArray
    energies: FloatArray
    lams: FloatArray
    own: IntArray
    start: CSC | None

    def split(self, size: int) -> list[ColumnTask]:
        """The same columns in order, ``size`` at a time."""
        parts = [slice(first, first + size) for first in range(0, self.lams.shape[0], size)]
        return [
            ColumnTask(
                self.correlations[part],
                self.energies[part],
                self.lams[part],
                self.own[part],
                None if self.start is None else self.start[:, part],
            )
            for part in parts
        ]


class SolvedColumn(NamedTuple):
    """The non-zeros of a code, and how well it was solved."""

    rows: IntArray
    values: FloatArray
    report: SolveReport


def solve_columns(label_gram: FloatArray, task: ColumnTask, solver: str, tol: float) -> list[SolvedColumn]:
    """Solve the columns of a task one after the other."""
    starts = None if task.start is None else task.start.toarray().T
    return [
        solve_column(
            label_gram,
            task.correlations[j],
            float(task.energies[j]),
            float(task.lams[j]),
            solver,
            excluded=None if task.own[j] < 0 else int(task.own[j]),
            start=None if starts is None else np.ascontiguousarray(starts[j]),
            tol=tol,
        )
        for j in range(task.lams.shape[0])
    ]


def solve_column(
    label_gram: FloatArray,
    correlation: FloatArray,
    energy: float | None,
    lam: float,
    solver: str,
    *,
    excluded: int | None,
    start: FloatArray | None,
    tol: float,
) -> SolvedColumn:
    """One code and its certificate: the relative duality gap, computed from the code and gradient that came back.

    Where the energy is not known, an upper bound on it: if no condition is missed by more than v, and the code is no
    worse than none (so that lam ||s||_1 <= y'y/2), the gap is at most ``v ||s||_1 + v/lam y'y/2``, relative 2 v / lam.
    """
    peak = lam_max(correlation)
    accuracy = 0.5 * tol * lam / peak if peak > 0.0 else tol
    code, gradient, n_iter, solved = SOLVERS[solver](
        label_gram, correlation, lam, excluded=excluded, start=start, tol=accuracy
    )
    note = ""
    if not solved and solver == "active_set":
        # Nearly dependent labels can leave its direct solves without a digit; sweeps do not divide by pivots.
        code, gradient, sweeps, _ = solve_coordinate_descent(
            label_gram, correlation, lam, excluded=excluded, start=code, tol=accuracy
        )
        n_iter, note = n_iter + sweeps, f"finished by {sweeps} sweeps of coordinate descent"
    if excluded is not None:
        gradient[excluded] = 0.0  # what may not enter is no condition
    if energy is None:
        gap = 2.0 * kkt_violation(code, gradient, lam)
    else:
        gap = duality_gap(code, gradient, correlation, energy, lam)
    rows = np.flatnonzero(code)
    return SolvedColumn(rows, code[rows], SolveReport(solver, n_iter, gap, tol, bool(gap <= tol), note))


def assemble_codes(columns: Sequence[SolvedColumn], n_labels: int, labels: IntArray | None = None) -> CSC:
    """Columns -> codes (n_labels, k). ``labels`` says which label each row of a column stands for (increasing)."""
    rows: IntArray = np.concatenate([np.empty(0, dtype=np.intp), *(column.rows for column in columns)])
    values: FloatArray = np.concatenate([np.empty(0), *(column.values for column in columns)])
    indptr = np.zeros(len(columns) + 1, dtype=np.intp)
    np.cumsum([column.rows.shape[0] for column in columns], out=indptr[1:])
    return sparse.csc_array((values, rows if labels is None else labels[rows], indptr), shape=(n_labels, len(columns)))
