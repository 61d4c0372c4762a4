"""Learning of labels of `fit` again, from its rows and from rows that came later with known answers.

A label is learned from the rows of `fit` and those later rows on which its answer is known, at the strength of `fit`
(in units of the rows' mean squared length): what `fit` on all these rows would give. The metric, codes and later labels
play no part. Thresholds and probabilities are made anew from scores of unseen rows, old and new ones alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.classifier.ridge import make_ridge
from streamlabel.classifier.solve import solve_prepared, too_large
from streamlabel.errors import ConflictError, DataError
from streamlabel.stats.spectral import dense
from streamlabel.streaming.annotated import AskedRows, group_by_rows
from streamlabel.streaming.blocks import SharedList
from streamlabel.streaming.calibration import Decisions, decide, usual_threshold
from streamlabel.streaming.codes import unseen_scores
from streamlabel.streaming.inputs import Parameters, coded
from streamlabel.streaming.kept_rows import FitMemory, LaterRows, stack
from streamlabel.streaming.other_losses import PAST_TOLERANCE, refit_scores, row_unit, solve_loss
from streamlabel.streaming.past import RIDGE_TOLERANCE
from streamlabel.streaming.state import LabelBatch, ModelState
from streamlabel.streaming.trials import LabelReport
from streamlabel.types import CSR, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Update:
    """Labels of `fit`, learned again: their numbers (k,), what they are now, and what the model keeps from now on."""

    numbers: IntArray
    batch: LabelBatch
    memory: FitMemory

    def applied(self, state: ModelState) -> ModelState:
        """The model with these labels in place of what they were."""
        batch, old = self.batch, state.decisions
        decisions = Decisions(old.thresholds.copy(), old.slope.copy(), old.offset.copy())
        reports = list(state.reports.items())
        for place, number in enumerate(self.numbers.tolist()):
            reports[number] = batch.reports[place]
        decisions.thresholds[self.numbers] = batch.decisions.thresholds
        decisions.slope[self.numbers] = batch.decisions.slope
        decisions.offset[self.numbers] = batch.decisions.offset
        return replace(
            state,
            classifiers=state.classifiers.replaced(self.numbers, batch.weights, batch.intercept),
            decisions=decisions,
            reports=SharedList.of(reports),
            memory=self.memory,
            basis=None,
        )


def check_update(state: ModelState, numbers: IntArray) -> FitMemory:
    """The rows of `fit`; an error where labels cannot be learned again as `fit` would learn them."""
    if state.classes is not None:
        raise DataError("the model was fitted on a vector of classes; fit it again with all rows")
    if state.memory is None:
        raise DataError("the rows of fit are not kept, so its labels cannot be learned again; fit with all rows")
    if state.least is not None:
        raise DataError("labels of a model with prune are not learned again; fit with all rows")
    if state.settings["start"] == "alternating":
        raise DataError('start is "alternating": labels were learned together; fit again with all rows')
    later = [state.names[number] for number in numbers.tolist() if number >= state.n_fitted]
    if later:
        raise ConflictError(
            f"label {later[0]!r} was added after fit, from answers of its own; give it more of them (learn_more, or "
            "add-label --more)"
        )
    return state.memory


def learn_update(
    parameters: Parameters, state: ModelState, X: CSR | FloatArray, asked: AskedRows, numbers: IntArray
) -> Update:
    """Learn these labels of `fit` again, with the answers (n, k) on new rows X (n, d)."""
    memory = check_update(state, numbers)
    newer = _later_rows(memory, X, asked, numbers)
    later = newer if memory.later is None else memory.later.joined(newer)
    n_labels = len(numbers)
    weights, intercept = np.empty((state.classifiers.n_features, n_labels)), np.empty(n_labels)
    decisions = Decisions(np.empty(n_labels), np.empty(n_labels), np.empty(n_labels))
    reports: list[Any] = [None] * n_labels
    unseen = memory.leave_one_out.copy()
    known = AskedRows(later.labels[:, numbers], None, sparse.csc_array(later.known[:, numbers]))
    for columns, rows, answers in group_by_rows(known):
        mine, new_rows = numbers[columns], later.X if rows is None else later.X[rows]
        labels = sparse.csr_array(sparse.vstack((memory.labels[:, mine], answers), format="csr"))
        X_all = stack(memory.X, new_rows)
        judged = _judged(memory, int(new_rows.shape[0]), parameters.random_state)
        beta = state.strength * row_unit(X_all, parameters.fit_intercept)
        start = state.classifiers.weights(mine), state.classifiers.intercept[mine]
        weights[:, columns], intercept[columns], scores = _solve(
            parameters, state.loss, X_all, labels, beta, judged, start
        )
        truth = labels[judged].toarray().astype(np.float64)
        usual = usual_threshold(state.loss, parameters.fit_intercept)
        made = decide(scores, truth, parameters.threshold, usual)
        decisions.thresholds[columns], decisions.slope[columns] = made.thresholds, made.slope
        decisions.offset[columns] = made.offset
        unseen[:, mine] = scores[: len(memory.judged_rows)]
        counts = np.asarray(labels.sum(axis=0)).ravel()
        for place, number, n_yes in zip(columns.tolist(), mine.tolist(), counts.tolist(), strict=True):
            name = state.names[number]
            reports[place] = LabelReport(name, labels.shape[0], n_yes, 0.0, None, False, beta, loss=state.loss)
    names = tuple(state.names[number] for number in numbers.tolist())
    codes = sparse.csc_array((len(state.names), n_labels))
    batch = LabelBatch(names, weights, intercept, decisions, tuple(reports), codes, [None] * n_labels)
    return Update(numbers, batch, memory.updated(unseen, later))


def _later_rows(memory: FitMemory, X: CSR | FloatArray, asked: AskedRows, numbers: IntArray) -> LaterRows:
    """The new rows in the form of those of `fit`, their answers in its columns; rows that nobody answered are left."""
    n_rows, n_fitted = int(X.shape[0]), int(memory.labels.shape[1])
    known = np.zeros((n_rows, n_fitted), dtype=bool)
    if asked.cells is not None:
        known[:, numbers] = asked.cells.toarray()
    else:
        known[np.ix_(np.arange(n_rows) if asked.rows is None else asked.rows, numbers)] = True
    used = np.flatnonzero(known.any(axis=1))
    rows = dense(X[used]) if isinstance(memory.X, np.ndarray) else sparse.csr_array(X[used])
    places = (np.arange(len(numbers)), numbers)
    spread = sparse.csr_array((np.ones(len(numbers), dtype=np.int8), places), shape=(len(numbers), n_fitted))
    return LaterRows(rows, sparse.csr_array(asked.labels[used] @ spread), known[used])


def _judged(memory: FitMemory, n_new: int, seed: int) -> IntArray:
    """The judged rows of `fit`, then as large a share of the new ones."""
    n_fit = int(memory.X.shape[0])
    n_judged = -(-n_new * len(memory.judged_rows) // n_fit)
    chosen = np.sort(np.random.default_rng((seed, n_new)).permutation(n_new)[:n_judged])
    return np.concatenate((memory.judged_rows, n_fit + chosen))


def _solve(
    parameters: Parameters,
    loss: str,
    X: CSR | FloatArray,
    labels: CSR,
    beta: float,
    judged: IntArray,
    start: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Classifiers (d, k), intercepts (k,), and scores (e, k) of the judged rows under classifiers without them.

    Iterations begin at the present classifiers, and end ten times nearer than in `fit`: so that a few new rows count,
    and that nothing is left of the judged rows, which the present classifiers have seen.
    """
    centre, seed = parameters.fit_intercept, parameters.random_state
    if loss == "squared" and not too_large(X):
        ridge = make_ridge(X, beta, centre=centre)
        weights, intercept = solve_prepared(ridge, labels.astype(np.float64))
        if not centre:  # targets 2B - 1: the solve is linear
            weights = 2.0 * weights - ridge.solve(np.ones((int(X.shape[0]), 1)))
        scores = np.asarray(X[judged] @ weights) + intercept
        return weights, intercept, unseen_scores(scores, coded(labels[judged], centre), ridge.leverages(judged))
    targets = coded(labels, False) if loss == "squared" and not centre else labels
    near: Any = {"tolerance": 0.1 * (RIDGE_TOLERANCE if loss == "squared" else PAST_TOLERANCE), "start": start}
    weights, intercept, _ = solve_loss(X, targets, beta, loss, centre, **near)
    return weights, intercept, refit_scores(X, targets, None, beta, loss, centre, judged, seed, **near)
