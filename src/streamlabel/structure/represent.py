"""Sparse codes of new labels, each with a certificate: what the other packages call for step 1.

Every new label is a lasso of its own on the same Gram (see ``objective``), so columns are solved apart, in chunks that
an executor may spread over threads or processes. The answer does not depend on who solves it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from streamlabel.errors import ConvergenceWarning, DataError
from streamlabel.stats.accelerator import accelerated
from streamlabel.stats.threads import one_thread
from streamlabel.structure.lasso import duality_gap, kkt_violation, lam_max, solve_active_set, solve_coordinate_descent
from streamlabel.types import CSC, FloatArray, IntArray, SolveReport


class LassoSolver(Protocol):
    """A solver of ``1/2 s'Ls - c's + lam ||s||_1``: returns code, gradient, steps, and whether it is solved."""

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


SOLVERS: dict[str, LassoSolver] = {"active_set": solve_active_set, "coordinate_descent": solve_coordinate_descent}


@dataclass(frozen=True, eq=False)
class ColumnTask:
    """Some columns of one `represent`: what a worker needs beside the Gram.

    ``correlations (k, m)`` has one row per column; ``energies``, ``lams`` and ``own`` (-1: no own entry) are (k,);
    ``start`` is (m, k) or None.
    """

    correlations: FloatArray
    energies: FloatArray
    lams: FloatArray
    own: IntArray
    start: CSC | None

    def split(self, size: int) -> list[ColumnTask]:
        """Split the columns into tasks of ``size`` columns each, in order."""
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
    """The code of one label (its non-zero entries), and how well it was solved."""

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
    """Solve one code and certify it: the relative duality gap, computed from the code and gradient that came back.

    If the energy is unknown, an upper bound on it: if no condition is missed by more than v, and the code is no
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
    """Put solved columns into codes (n_labels, k); ``labels`` says which label each row stands for (increasing)."""
    rows: IntArray = np.concatenate([np.empty(0, dtype=np.intp), *(column.rows for column in columns)])
    values: FloatArray = np.concatenate([np.empty(0), *(column.values for column in columns)])
    indptr = np.zeros(len(columns) + 1, dtype=np.intp)
    np.cumsum([column.rows.shape[0] for column in columns], out=indptr[1:])
    return sparse.csc_array((values, rows if labels is None else labels[rows], indptr), shape=(n_labels, len(columns)))


_CHUNK = 32  # columns an executor is handed at a time: about 10 ms of work, well above the cost of handing over


class Mapper(Protocol):
    """The part of an executor that is used here: its ``map``."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]: ...


@dataclass(frozen=True, eq=False)
class LabelCodes:
    """Codes (m, k) of new labels, one per column, and how well each was solved."""

    codes: CSC
    reports: Sequence[SolveReport]


def represent(
    label_gram: FloatArray,
    correlations: FloatArray,
    energies: FloatArray,
    lam: float | FloatArray,
    *,
    solver: str = "active_set",
    own: IntArray | None = None,
    allowed: IntArray | None = None,
    start: CSC | FloatArray | None = None,
    tol: float = 1e-6,
    executor: Mapper | None = None,
) -> LabelCodes:
    """Write every new label as a sparse combination of other labels.

    Parameters
    ----------
    label_gram : (m, m) Gram of the label columns that may be used: the past ones, or (with ``own``) past and new ones.
        With ``allowed`` also the dictionary's own Gram (a, a): a caller that keeps it does not pay for gathering it.
    correlations : (m, k), those columns times the new ones
    energies : (k,), squared lengths of the new columns
    lam : the l1 penalty, above 0; one for all, or (k,), one per column
    solver : "active_set" (fastest, exact also with dependent labels), or "coordinate_descent"
    own : (k,), the entry of each column that must stay zero: in a batch, a new label may use all labels but itself
    allowed : (a,), increasing: the dictionary, the only labels that may enter. Solves then cost what a dictionary of
        that size costs, whatever m is.
    start : (m, k), codes to start from, e.g. those at a neighbouring lam.
    tol : the relative duality gap from which on a column counts as solved; a wider one warns
    executor : has ``map(function, items) -> list``; None solves here, one after the other

    Returns
    -------
    LabelCodes : codes (m, k) CSC; ``violation`` of a report is the column's relative duality gap
    """
    if solver not in SOLVERS:
        raise DataError(f"solver is {solver!r}; there are {', '.join(SOLVERS)}")
    task = _checked_task(correlations, energies, lam, own, start)
    n_labels = task.correlations.shape[1]
    if allowed is not None:
        allowed = _checked_dictionary(allowed, n_labels)
        label_gram, task = _restrict(label_gram, task, allowed)
    if label_gram.shape != (task.correlations.shape[1],) * 2:
        raise DataError(f"the label Gram is {label_gram.shape}; {n_labels} labels have correlations")
    # After the restriction: nothing from here on, copies and checks included, grows with the labels left outside.
    label_gram = np.asarray(label_gram, dtype=np.float64)
    task = replace(task, correlations=np.ascontiguousarray(task.correlations, dtype=np.float64))
    if not np.isfinite(task.correlations).all():
        raise DataError("the correlations of the labels contain NaN or infinity")
    with one_thread():
        if (found := accelerated("lasso", label_gram, task, tol)) is not None:
            columns = _finished(label_gram, task, tol, *found)
        elif executor is None:
            columns = solve_columns(label_gram, task, solver, tol)
        else:
            solve = partial(_solve_chunk, label_gram, solver, tol)
            columns = [column for chunk in executor.map(solve, task.split(_CHUNK)) for column in chunk]
    return _certified(columns, n_labels, allowed, tol)


def _finished(
    label_gram: FloatArray, task: ColumnTask, tol: float, codes: FloatArray, gaps: FloatArray, rounds: IntArray
) -> list[SolvedColumn]:
    """The columns of codes (m, k) that a device found; those that are not solved yet are finished here."""
    columns = []
    for j, gap in enumerate(gaps.tolist()):
        if gap <= tol:
            rows = np.flatnonzero(codes[:, j])
            report = SolveReport("active_set", int(rounds[j]), gap, tol, True, "on the device")
            columns.append(SolvedColumn(rows, codes[rows, j], report))
            continue
        start = np.ascontiguousarray(codes[:, j])
        lam, own = float(task.lams[j]), None if task.own[j] < 0 else int(task.own[j])
        energy, correlation = float(task.energies[j]), task.correlations[j]
        columns.append(
            solve_column(label_gram, correlation, energy, lam, "active_set", excluded=own, start=start, tol=tol)
        )
    return columns


def lasso_path(
    label_gram: FloatArray,
    correlation: FloatArray,
    lams: float | FloatArray | Sequence[float],
    *,
    energy: float | None = None,
    excluded: int | None = None,
    tol: float = 1e-6,
) -> LabelCodes:
    """The codes of one label at several penalties, (m, len(lams)), each started from the one at the next larger lam.

    Parameters
    ----------
    label_gram : (m, m)
    correlation : (m,), the label columns times the new one
    lams : penalties above 0, in any order
    energy : the squared length of the new column; without it a report's ``violation`` is an upper bound on the gap
    excluded : an entry that must stay zero
    tol : as in `represent`
    """
    penalties = _checked_lams(lams, np.size(lams))
    label_gram = np.ascontiguousarray(label_gram, dtype=np.float64)
    correlation = np.ascontiguousarray(correlation, dtype=np.float64)
    if label_gram.shape != correlation.shape * 2:
        raise DataError(f"the label Gram is {label_gram.shape}; the correlation is {correlation.shape}, expected (m,)")
    columns: list[SolvedColumn | None] = [None] * len(penalties)
    start = np.zeros_like(correlation)
    with one_thread():
        for place in np.argsort(-penalties, kind="stable"):
            column = solve_column(
                label_gram,
                correlation,
                energy,
                float(penalties[place]),
                "active_set",
                excluded=excluded,
                start=start,
                tol=tol,
            )
            columns[place] = column
            start = np.zeros_like(correlation)
            start[column.rows] = column.values
    return _certified([column for column in columns if column is not None], correlation.shape[0], None, tol)


def _solve_chunk(label_gram: FloatArray, solver: str, tol: float, task: ColumnTask) -> list[SolvedColumn]:
    """Solve a chunk in a worker, which may be another process with BLAS threads of its own."""
    with one_thread():
        return solve_columns(label_gram, task, solver, tol)


def _certified(columns: list[SolvedColumn], n_labels: int, labels: IntArray | None, tol: float) -> LabelCodes:
    """The codes and their reports; warns when some stopped short."""
    reports = tuple(column.report for column in columns)
    short = [report.violation for report in reports if not report.converged]
    if short:
        warnings.warn(
            f"{len(short)} of {len(reports)} label codes stopped short "
            f"(worst relative gap {max(short):.1e}, not {tol:.0e}; solver {reports[0].solver})",
            ConvergenceWarning,
            stacklevel=3,
        )
    return LabelCodes(assemble_codes(columns, n_labels, labels), reports)


def _checked_task(
    correlations: FloatArray,
    energies: FloatArray,
    lam: float | FloatArray,
    own: IntArray | None,
    start: CSC | FloatArray | None,
) -> ColumnTask:
    if correlations.ndim != 2:
        raise DataError(f"correlations have {correlations.ndim} dimension(s); expected (n_labels, n_new)")
    n_labels, n_new = correlations.shape
    if energies.shape != (n_new,):
        raise DataError(f"energies have shape {energies.shape}; expected one a column, ({n_new},)")
    if own is None:
        own = np.full(n_new, -1)
    elif own.shape != (n_new,) or (n_new and (own.min() < 0 or own.max() >= n_labels)):
        raise DataError(f"own names one entry of 0 to {n_labels - 1} for each of the {n_new} columns")
    if start is not None and start.shape != (n_labels, n_new):
        raise DataError(f"start has shape {start.shape}; expected that of the codes, {(n_labels, n_new)}")
    starts = None if start is None else sparse.csc_array(start)
    return ColumnTask(correlations.T, energies, _checked_lams(lam, n_new), own, starts)


def _checked_lams(lam: float | FloatArray | Sequence[float], n_columns: int) -> FloatArray:
    lams = np.asarray(lam, dtype=np.float64)
    if lams.shape not in ((), (n_columns,)):
        raise DataError(f"lam has shape {lams.shape}; expected one number, or one a column ({n_columns},)")
    if not (np.isfinite(lams) & (lams > 0.0)).all():
        raise DataError("lam must be above 0 and finite; below that no gap can be certified")
    return np.broadcast_to(lams, (n_columns,))


def _checked_dictionary(allowed: IntArray, n_labels: int) -> IntArray:
    allowed = np.asarray(allowed)
    if allowed.size == 0:
        return np.empty(0, dtype=np.intp)
    if allowed.ndim != 1 or allowed.dtype.kind not in "iu" or (np.diff(allowed) <= 0).any():
        raise DataError(
            "the dictionary is a list of label numbers in increasing order, none twice (np.unique sorts it)"
        )
    if allowed[0] < 0 or allowed[-1] >= n_labels:
        raise DataError(f"the dictionary names labels {allowed[0]} to {allowed[-1]}; there are 0 to {n_labels - 1}")
    return allowed


def _restrict(label_gram: FloatArray, task: ColumnTask, allowed: IntArray) -> tuple[FloatArray, ColumnTask]:
    """Gram and task on the dictionary alone. An own entry that is not in it needs no exclusion."""
    if label_gram.shape != (allowed.shape[0],) * 2:
        label_gram = label_gram[np.ix_(allowed, allowed)]
    place = np.searchsorted(allowed, task.own)
    found = place < allowed.shape[0]
    found[found] = allowed[place[found]] == task.own[found]
    start = None if task.start is None else sparse.csc_array(task.start.tocsr()[allowed])
    own = np.where(found, place, -1)
    return label_gram, ColumnTask(task.correlations[:, allowed], task.energies, task.lams, own, start)
