"""The door of step 1: label columns in, sparse codes with a certificate out.

Every new label is a lasso of its own on the same Gram (see ``objective``), so columns are solved apart, in chunks that
an executor may spread over threads or processes. The answer does not depend on who solves it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from streamlabel.exceptions import ConvergenceWarning, DataError
from streamlabel.results import CSC, FloatArray, IntArray, SolveReport
from streamlabel.stats.threads import one_thread
from streamlabel.structure.columns import (
    SOLVERS,
    ColumnTask,
    SolvedColumn,
    assemble_codes,
    solve_column,
    solve_columns,
)

__all__ = ["LabelCodes", "lasso_path", "represent"]

_CHUNK = 32  # columns an executor is handed at a time: about 10 ms of work, well above the cost of handing over


class Mapper(Protocol):
    """The part of an executor that is used here."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]: ...


@dataclass(frozen=True, eq=False)
class LabelCodes:
    """Codes (m, k), one column a new label, and how well each was solved."""

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
    lam : the l1 penalty, above 0; one for all, or (k,), one a column
    solver : "active_set" (fastest, exact also with dependent labels), "coordinate_descent", or "lars"
    own : (k,), the entry of each column that must stay zero: in a batch, a new label may use all labels but itself
    allowed : (a,), increasing: the dictionary, the only labels that may enter. Solves then cost what a dictionary of
        that size costs, whatever m is.
    start : (m, k), codes to start from, e.g. those at a neighbouring lam. A hint: the path of "lars" has its own start
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
        if executor is None:
            columns = solve_columns(label_gram, task, solver, tol)
        else:
            solve = partial(_solve_chunk, label_gram, solver, tol)
            columns = [column for chunk in executor.map(solve, task.split(_CHUNK)) for column in chunk]
    return _certified(columns, n_labels, allowed, tol)


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
    """A chunk in a worker, which may be another process with BLAS threads of its own."""
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
