"""Learning of the labels of `fit`, the past labels: by ridge, by turns with their structure, or by another loss.

By turns is the paper's start. With targets Y (n, m), centred if there is an intercept, it looks for W (d, m) and
S (m, m) with ``diag S = 0``::

    J(W, S) = 1/2 ||Y - X W||_F^2 + l1 ||S||_{1,1} + l2/2 ||W - W S||_F^2 + l3/2 ||Y - Y S||_F^2

For fixed W the columns of S are lassos on one Gram, ``l3 Y'Y + l2 W'W``, each with its own entry excluded. For fixed S
the classifiers solve ``X'X W + l2 W M M' = X'Y``, ``M = I - S``: the coupled batch without an anchor. Both steps are
exact, so J never rises. It starts at ``S = 0``, which is ridge of strength l2.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from streamlabel.classifier.penalty import Penalty, make_penalty
from streamlabel.classifier.ridge import HatSpectrum, PreparedRidge, beta_grid, choose_beta, make_ridge
from streamlabel.classifier.single_precision import SingleRidge
from streamlabel.classifier.solve import FACTOR_LIMIT, solve_coupled, solve_prepared, too_large
from streamlabel.data.files import available_memory
from streamlabel.errors import ConvergenceWarning, DataError
from streamlabel.stats.accelerator import accelerated
from streamlabel.stats.label_gram import centred_cross, signed_label_gram
from streamlabel.stats.spectral import RidgeFactor, make_factor
from streamlabel.stats.threads import one_thread
from streamlabel.stats.ties import first_least, points
from streamlabel.streaming.blocks import ClassifierBlocks
from streamlabel.streaming.calibration import decide, decide_blocks, usual_threshold
from streamlabel.streaming.codes import judges_all, unseen_coupled_scores, unseen_scores
from streamlabel.streaming.fit_plan import SAMPLED_ROWS, FitSize, check_fit_memory, plan_fit
from streamlabel.streaming.inputs import Parameters, coded, settings_of_fit
from streamlabel.streaming.kept_rows import FitMemory, positive_rows
from streamlabel.streaming.other_losses import (
    PAST_TOLERANCE,
    choose_strength,
    most_frequent,
    refit_scores,
    row_unit,
    solve_loss,
)
from streamlabel.streaming.pruned import MOST_HELD, WIDTH, SparseBlocks, fit_pruned
from streamlabel.streaming.state import ModelState
from streamlabel.streaming.trials import LAM, LabelReport, measure, scored
from streamlabel.structure.dictionary import choose_dictionary
from streamlabel.structure.represent import represent
from streamlabel.types import CSC, CSR, FloatArray, IntArray, SolveReport

MOST_TUNED = 512  # labels by which the ridge strength of all is chosen
MOST_TRIED = 2048  # labels that trials use of a model that is pruned
_MOST_POSITIVE = 50
# Rows from which on a measure chooses the strength, and by how many it is told. The first was settled with test rows of
# Bibtex and mediamill_reduced in sight: with fewer, leave-one-out rankings take far too weak a strength.
_LEAST_SCORED, _MOST_EXACT = 2_000, 1_000
RIDGE_TOLERANCE = 1e-4  # of ridge by iterations, on the relative residual


@dataclass(frozen=True, eq=False)
class PastFit:
    """The classifiers, codes and unseen scores that `fit` learned for m labels.

    ridge : the factor of the rows, for labels that arrive with answers on all of them; None where it was not needed
    hat : what is known of its hat matrix
    judged_rows : (e,), a sample of the rows;  unseen : (e, m), their scores under classifiers learned without them
    leverages : (e,), their hat diagonal in the ridge; zero without one
    codes : (m, m), empty if the labels were learned apart
    everywhere : (n, m), as unseen, of all rows, where that takes no time
    """

    weights: FloatArray
    intercept: FloatArray
    beta: float
    loss: str
    ridge: PreparedRidge | None
    judged_rows: IntArray
    unseen: FloatArray
    leverages: FloatArray
    codes: CSC
    hat: HatSpectrum | None = None
    everywhere: FloatArray | None = None


def fit_labels(
    parameters: Parameters,
    X: CSR | FloatArray,
    labels: CSR,
    names: tuple[str, ...],
    *,
    source: Any = None,
    classes: NDArray[Any] | None = None,
) -> ModelState:
    """Learn a model of these labels (n, m); ``source`` is what the user passed as X, to recognise it later."""
    pruned = parameters.prune is not None
    check_fit_memory(FitSize.of(X, labels), parameters.loss, available_memory(), pruned=pruned)
    if pruned:
        return _fit_pruned(parameters, X, labels, names, source)
    learned = _learn(parameters, X, labels)
    rows, centre = learned.judged_rows, parameters.fit_intercept
    unseen, truth = learned.unseen, labels[rows]
    if learned.everywhere is not None:
        unseen, truth = learned.everywhere, labels
    levels = _levels(X, labels, learned.weights, learned.intercept)
    answers, usual = truth.toarray().astype(np.float64), usual_threshold(learned.loss, centre)
    decisions = decide(unseen, answers, parameters.threshold, usual, levels)
    counts, sizes = np.asarray(labels.sum(axis=0)).ravel(), np.diff(learned.codes.indptr)
    lam = fixed_lam(parameters.lam) if parameters.start == "alternating" else None
    reports = [
        LabelReport(
            name, X.shape[0], int(counts[j]), 0.0, lam, False, learned.beta, int(sizes[j]), loss=learned.loss,
            coupled=lam is not None,
        )
        for j, name in enumerate(names)
    ]  # fmt: skip
    memory = FitMemory(
        X, labels, learned.unseen, rows, learned.leverages, parameters.random_state,
        beta=learned.beta, centre=centre, ridge=learned.ridge, hat=learned.hat, source=source,
    )  # fmt: skip
    state = ModelState.begin(
        names, ClassifierBlocks(int(X.shape[1])).appended(learned.weights, learned.intercept), decisions, reports,
        learned.codes, loss=learned.loss, settings=settings_of_fit(parameters), beta=learned.beta,
        strength=learned.beta / row_unit(X, centre), classes=classes,
    )  # fmt: skip
    return state.with_rows(memory, _atoms(parameters, labels), parameters.dictionary)


def _fit_pruned(
    parameters: Parameters, X: CSR | FloatArray, labels: CSR, names: tuple[str, ...], source: Any
) -> ModelState:
    """Learn a model whose labels keep few of their weights each (`streaming.pruned`)."""
    seed, prune, (n_rows, n_labels) = parameters.random_state, parameters.prune, labels.shape
    assert prune is not None
    beta = (
        float(parameters.beta) if parameters.beta != "auto" else sampled_beta(X, labels, True, seed, parameters.scoring)
    )
    order = np.random.default_rng(seed).permutation(n_rows)
    n_judged = max(min(len(FitMemory.sample(n_rows, seed, n_labels)), n_rows // 3), 1)
    rows, held = np.sort(order[:n_judged]), np.sort(order[: max(n_judged, min(n_rows // 5, MOST_HELD))])
    with one_thread():
        learned = fit_pruned(X, labels, beta, prune, held, rows)
    counts = np.asarray(labels.sum(axis=0), dtype=np.float64).ravel()
    levels = learned.intercept.copy()
    columns = labels.tocsc()
    for start in range(0, n_labels, WIDTH):  # the mean score of the positive rows is that of their mean
        part = slice(start, start + WIDTH)
        sums = sparse.csc_array(X.T @ columns[:, part]).multiply(learned.weights[:, part]).sum(axis=0)
        levels[part] += np.asarray(sums).ravel() / np.maximum(counts[part], 1.0)
    decisions = decide_blocks(learned.unseen, labels[rows], parameters.threshold, levels)
    reports = [
        LabelReport(name, n_rows, n_yes, 0.0, None, False, beta)
        for name, n_yes in zip(names, counts.astype(int).tolist(), strict=True)
    ]
    atoms = _atoms(parameters, labels)
    few = atoms[:: -(-len(atoms) // MOST_TRIED)]
    memory = FitMemory(
        X, labels, learned.unseen[:, few].astype(np.float64), rows, learned.leverages, seed,
        beta=beta, centre=True, hat=learned.hat, source=source, few=few,
    )  # fmt: skip
    state = ModelState.begin(
        names, SparseBlocks(int(X.shape[1])).appended(learned.weights, learned.intercept), decisions, reports,
        loss="squared", settings=settings_of_fit(parameters), beta=beta, strength=beta / row_unit(X, True),
        least=learned.least,
    )  # fmt: skip
    return state.with_rows(memory, atoms, parameters.dictionary)


def _levels(X: CSR | FloatArray, labels: CSR, weights: FloatArray, intercept: FloatArray) -> FloatArray:
    """The mean score (m,) of each label on its positive rows, of at most 50 of them."""
    found = np.array(intercept, dtype=np.float64)
    for label, rows in enumerate(positive_rows(labels)):
        if len(rows):
            found[label] += float(np.mean(X[rows[:: -(-len(rows) // _MOST_POSITIVE)]] @ weights[:, label]))
    return found


def _learn(parameters: Parameters, X: CSR | FloatArray, labels: CSR) -> PastFit:
    loss, beta, centre, seed = parameters.loss, parameters.beta, parameters.fit_intercept, parameters.random_state
    if loss not in ("squared", "auto"):
        return fit_with_loss(X, labels, loss, beta, centre, seed)
    lam = fixed_lam(parameters.lam)
    if parameters.start == "alternating" and lam is not None:
        return fit_alternating(X, labels, lam, beta, centre, seed, float(parameters.start_weight))
    return fit_ridge(X, labels, beta, centre, seed, parameters.scoring)


def _atoms(parameters: Parameters, labels: CSR) -> IntArray:
    """The labels that may enter a code."""
    if isinstance(parameters.dictionary, str) or parameters.dictionary >= labels.shape[1]:
        return np.arange(labels.shape[1])
    with one_thread():
        return np.sort(choose_dictionary(labels, int(parameters.dictionary), random_state=parameters.random_state))


def fixed_lam(lam: float | str | None) -> float | None:
    """The lasso penalty of the code if nothing is tried."""
    return LAM if lam == "auto" else None if lam is None else float(lam)


def fit_ridge(
    X: CSR | FloatArray, labels: CSR, beta: float | str, fit_intercept: bool, seed: int, scoring: str = "balanced"
) -> PastFit:
    """Learn one ridge per label, with one strength for all: given, or chosen by `best_beta`.

    The size decides on the road (`fit_plan`).
    """
    road = plan_fit(FitSize.of(X, labels), available=available_memory()).road
    if road == "spectral":
        return fit_by_factor(X, labels, _ridge(X, labels, beta, fit_intercept, seed, scoring)[1], seed)
    if beta == "auto":
        beta = sampled_beta(X, labels, fit_intercept, seed, scoring)
    if (ridge := accelerated("ridge", X, float(beta), fit_intercept, None)) is not None:
        return fit_by_factor(X, labels, ridge, seed)
    if road == "single":
        try:
            with one_thread():  # a second one made it three times slower on shared cores
                return fit_by_single_factor(X, labels, float(beta), fit_intercept, seed)
        except linalg.LinAlgError:  # a tiny beta, beyond single precision
            pass
    return fit_with_loss(X, labels, "squared", beta, fit_intercept, seed)


def fit_by_factor(X: CSR | FloatArray, labels: CSR, ridge: PreparedRidge, seed: int) -> PastFit:
    """Learn ridge by a factor of all rows, which is kept."""
    beta, fit_intercept = ridge.beta, ridge.centre
    n_rows, n_labels = labels.shape
    weights, intercept = solve_prepared(ridge, labels.astype(np.float64))
    if not fit_intercept:  # targets 2B - 1: the solve is linear
        weights = 2.0 * weights - ridge.solve(np.ones((n_rows, 1)))
    rows = FitMemory.sample(n_rows, seed, int(labels.shape[1]))
    leverages, everywhere = ridge.leverages(rows), None
    scores = np.asarray(X[rows] @ weights) + intercept
    unseen = unseen_scores(scores, coded(labels[rows], fit_intercept), leverages)
    if judges_all(X, n_labels):
        scores = np.asarray(X @ weights) + intercept
        everywhere = unseen_scores(scores, coded(labels, fit_intercept), ridge.leverages())
    none = _no_codes(n_labels)
    return PastFit(weights, intercept, beta, "squared", ridge, rows, unseen, leverages, none, everywhere=everywhere)


def fit_by_single_factor(X: CSR | FloatArray, labels: CSR, beta: float, fit_intercept: bool, seed: int) -> PastFit:
    """Learn ridge by one factor in single precision, which is not kept."""
    n_rows, n_labels = labels.shape
    ridge = SingleRidge(X, beta, centre=fit_intercept)
    weights, intercept = ridge.solve(labels.astype(np.float64))
    if not fit_intercept:
        weights *= 2.0
        weights -= ridge.solve(sparse.csr_array(np.ones((n_rows, 1))))[0]
    rows = FitMemory.sample(n_rows, seed, n_labels)
    leverages, hat = ridge.leverages(rows)
    scores = np.asarray(X[rows] @ weights) + intercept
    unseen = unseen_scores(scores, coded(labels[rows], fit_intercept), leverages)
    return PastFit(weights, intercept, beta, "squared", None, rows, unseen, leverages, _no_codes(n_labels), hat)


def sampled_beta(X: CSR | FloatArray, labels: CSR, fit_intercept: bool, seed: int, scoring: str = "balanced") -> float:
    """The ridge strength that is best on a sample of the rows, for the labels most frequent there (`best_beta`).

    By default it is that of the least generalised error. Exact ones choose a stronger one here; on all of EURLEX57K it
    has .3 less P@1 and .6 more AUC on test rows, so what was there before has stayed.
    """
    sample = np.sort(np.random.default_rng(seed).permutation(labels.shape[0])[:SAMPLED_ROWS])
    rows, answers = X[sample], labels[sample]
    answers = answers[:, most_frequent(answers, MOST_TUNED)]
    targets, factor = coded(answers, fit_intercept), make_factor(rows, centre=fit_intercept)
    if scoring == "balanced":
        energy = np.square(targets - targets.mean(axis=0) if fit_intercept else targets).sum(axis=0)
        found = choose_beta(factor, factor.project(targets), energy)
    else:
        found = best_beta(factor, targets, fit_intercept, scoring, seed)
    return found / row_unit(rows, fit_intercept) * row_unit(X, fit_intercept)


def fit_alternating(
    X: CSR | FloatArray, labels: CSR, lam: float, beta: float | str, fit_intercept: bool, seed: int, weight: float = 1.0
) -> PastFit:
    """Learn by turns, the paper's start, with ``l1 = lam n``, ``l2 = beta`` and ``l3 = weight``."""
    if too_large(X):
        raise DataError(
            f'start="alternating" needs a factor of the rows, and {X.shape[0]} rows and {X.shape[1]} features are both '
            f'more than {FACTOR_LIMIT}; use start="independent", or fewer features'
        )
    beta, ridge, factor = _ridge(X, labels, beta, fit_intercept, seed)
    factor = make_factor(X, centre=fit_intercept) if factor is None else factor
    n_rows = int(labels.shape[0])
    targets = coded(labels, fit_intercept)
    gram = centred_cross(labels, labels) if fit_intercept else signed_label_gram(labels)
    found = alternate(factor, factor.project(targets), gram, lam * n_rows, beta, weight)
    rates = targets.mean(axis=0) if fit_intercept else np.zeros(labels.shape[1])
    intercept = rates - factor.mean @ found.weights
    rows = FitMemory.sample(n_rows, seed, int(labels.shape[1]))
    judged = np.arange(n_rows) if judges_all(X, int(labels.shape[1])) else rows
    scores = np.asarray(X[judged] @ found.weights) + intercept
    unseen = unseen_coupled_scores(factor, found.penalty, scores, targets[judged], judged, fit_intercept)
    everywhere, unseen = (None, unseen) if judged is rows else (unseen, unseen[rows])
    return PastFit(
        found.weights, intercept, beta, "squared", ridge, rows, unseen, ridge.leverages(rows), found.codes,
        everywhere=everywhere,
    )  # fmt: skip


def fit_with_loss(
    X: CSR | FloatArray, labels: CSR, loss: str, beta: float | str, fit_intercept: bool, seed: int
) -> PastFit:
    """Learn one classifier per label with any loss, by iterations; for the unseen scores it is learned twice."""
    if beta == "auto":
        beta = choose_strength(X, labels, loss, fit_intercept, seed)
    beta = float(beta)
    targets = coded(labels, False) if loss == "squared" and not fit_intercept else labels
    tolerance = RIDGE_TOLERANCE if loss == "squared" else PAST_TOLERANCE
    weights, intercept, _ = solve_loss(X, targets, beta, loss, fit_intercept, tolerance=tolerance)
    rows = FitMemory.sample(int(labels.shape[0]), seed, int(labels.shape[1]))
    unseen = refit_scores(X, targets, None, beta, loss, fit_intercept, rows, seed, tolerance=tolerance)
    no_leverages = np.zeros(len(rows))
    codes = _no_codes(int(labels.shape[1]))
    return PastFit(weights, intercept, beta, loss, None, rows, unseen, no_leverages, codes)


def best_beta(
    factor: RidgeFactor, targets: FloatArray, fit_intercept: bool, scoring: str = "balanced", seed: int = 0
) -> float:
    """The ridge strength of the least leave-one-out error for these targets (n, k); of two equal ones the larger.

    With at least twice as many rows as directions it is the generalised error of all rows. With fewer that is far too
    small: some rows nearly have a score of their own. It is multiplied by the ratio of exact to generalised errors of
    at most 1,000 rows, each at most that of the wrong answer, so that a few very long rows do not choose for all.

    With another ``scoring`` than "balanced", and 2,000 rows or more, the strength is that of the best leave-one-out
    scores of 1,000 rows by this measure, over the labels that have both answers there.
    """
    n_rows = len(targets)
    level, share, most = (targets.mean(axis=0), 1.0 / n_rows, 1.0) if fit_intercept else (0.0, 0.0, 2.0)
    energy, projected = np.square(targets - level).sum(axis=0), factor.project(targets)
    scored_rows = scoring != "balanced" and n_rows >= _LEAST_SCORED
    if not scored_rows and n_rows >= 2 * len(factor.eigenvalues):
        return choose_beta(factor, projected, energy)
    rows = np.sort(np.random.default_rng(seed).permutation(n_rows)[:_MOST_EXACT])
    judged, Z, roots = targets[rows], factor.coordinates(rows), np.sqrt(factor.eigenvalues)
    truth = (judged > 0).astype(np.float64)
    able = np.ptp(truth, axis=0) > 0.0
    grid, errors = beta_grid(factor)[::-1], []
    for beta in grid:
        shrink = 1.0 / (factor.eigenvalues + beta)
        scores = Z @ (projected * (roots * shrink)[:, None]) + level
        unseen = unseen_scores(scores, judged, np.square(Z) @ shrink + share)
        if scored_rows and able.sum() > 1:
            errors.append(100.0 - float(points(scored(np.array(measure(truth[:, able], unseen[:, able])), scoring))))
            continue
        mean = min(float(factor.eigenvalues @ shrink) / n_rows + share, 1.0 - 1e-9)
        alike = unseen_scores(scores, judged, np.full(len(rows), mean))
        exact, general = (float(np.square(np.clip(one - judged, -most, most)).sum()) for one in (unseen, alike))
        left = energy.sum() - np.square(projected).sum(axis=1) @ (1.0 - np.square(beta * shrink))
        errors.append(max(float(left), 0.0) / (1.0 - mean) ** 2 * exact / max(general, np.finfo(np.float64).tiny))
    return float(grid[first_least(errors)])


def _ridge(
    X: CSR | FloatArray, labels: CSR, beta: float | str, fit_intercept: bool, seed: int, scoring: str = "balanced"
) -> tuple[float, PreparedRidge, RidgeFactor | None]:
    """The ridge of all rows at the given strength, or at the best for (a sample of) the labels, with its factor."""
    if beta != "auto":
        return float(beta), make_ridge(X, float(beta), centre=fit_intercept), None
    if labels.shape[1] > MOST_TUNED:
        labels = labels[:, tuned_labels(int(labels.shape[1]), seed)]
    factor = make_factor(X, centre=fit_intercept)
    chosen_beta = best_beta(factor, coded(labels, fit_intercept), fit_intercept, scoring, seed)
    hat = HatSpectrum.of(factor.eigenvalues, chosen_beta)
    return chosen_beta, make_ridge(X, chosen_beta, centre=fit_intercept, gram=factor.gram, hat=hat), factor


def tuned_labels(n_labels: int, seed: int) -> IntArray:
    """The labels by which the ridge strength of all is chosen: all of them, or a sample."""
    return np.sort(np.random.default_rng(seed).permutation(n_labels)[:MOST_TUNED])


def _no_codes(n_labels: int) -> CSC:
    return sparse.csc_array((n_labels, n_labels))


@dataclass(frozen=True, eq=False)
class AlternatingStart:
    """The result of learning by turns: classifiers, codes and the course of J.

    weights : (d, m);   codes : (m, m), diagonal 0;   penalty : of the last turn's classifiers
    objectives : J at the start and after every half turn (S, W, S, W, ...)
    """

    weights: FloatArray
    codes: CSC
    penalty: Penalty
    objectives: tuple[float, ...]
    report: SolveReport


def alternate(
    factor: RidgeFactor,
    projected: FloatArray,
    label_gram: FloatArray,
    l1: float,
    l2: float,
    l3: float = 1.0,
    *,
    tolerance: float = 1e-4,
    max_rounds: int = 20,
) -> AlternatingStart:
    """Learn W and S by turns until a turn lowers J by less than `tolerance`, relatively.

    Parameters
    ----------
    factor : of the rows X, centred if there is an intercept
    projected : (r, m), the targets in its coordinates
    label_gram : (m, m), ``Y'Y`` of the (centred) targets
    l1, l2, l3 : as above; l1 above 0, the others not below

    Warns
    -----
    ConvergenceWarning : `max_rounds` turns were not enough
    """
    energy = float(label_gram.trace())
    n_labels = len(label_gram)
    nothing = np.zeros((len(factor.mean), n_labels))
    codes: CSC = sparse.csc_array((n_labels, n_labels))
    penalty = make_penalty(nothing, None, l2)
    weights = solve_coupled(factor, projected, penalty)
    gram = l3 * label_gram + l2 * (weights.T @ weights)
    objectives = [_misfit(factor, projected, weights, energy) + _structure_value(gram, codes, l1)]
    change, rounds = np.inf, 0
    while change > tolerance and rounds < max_rounds:
        rounds += 1
        before = objectives[-1]
        codes = represent(gram, gram, gram.diagonal(), l1, own=np.arange(n_labels), start=codes).codes
        objectives.append(_misfit(factor, projected, weights, energy) + _structure_value(gram, codes, l1))
        penalty = make_penalty(nothing, codes, l2)
        weights = solve_coupled(factor, projected, penalty)
        gram = l3 * label_gram + l2 * (weights.T @ weights)
        objectives.append(_misfit(factor, projected, weights, energy) + _structure_value(gram, codes, l1))
        change = (before - objectives[-1]) / max(before, np.finfo(np.float64).tiny)
    report = SolveReport("alternating", rounds, float(change), tolerance, bool(change <= tolerance), penalty.note)
    if not report.converged:
        warnings.warn(
            f"the alternating start still changed by {change:.1e} after {rounds} rounds, not {tolerance:.0e}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return AlternatingStart(weights, codes, penalty, tuple(objectives), report)


def _misfit(factor: RidgeFactor, projected: FloatArray, weights: FloatArray, energy: float) -> float:
    """The misfit ``1/2 ||Y - X W||_F^2``: what the rows can explain, in spectral coordinates, and the rest."""
    inside = float(np.square(projected - factor.project_scores(weights)).sum())
    return 0.5 * (inside + energy - float(np.square(projected).sum()))


def _structure_value(gram: FloatArray, codes: CSC, l1: float) -> float:
    """``1/2 tr (I - S)' G (I - S) + l1 ||S||_{1,1}`` with ``G = l3 Y'Y + l2 W'W``."""
    image = codes.T @ gram  # S'G
    bent = np.asarray(codes.T @ image.T)  # S'G S, transposed
    return float(0.5 * (gram.trace() - 2.0 * image.trace() + bent.trace()) + l1 * np.abs(codes.data).sum())
