"""Many measures of one prediction at once: the rows are ranked once, the labels once, all cells once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.metrics.auc import LabelAccumulator, MicroAccumulator
from streamlabel.metrics.decisions import DecisionAccumulator
from streamlabel.metrics.order import true_scores
from streamlabel.metrics.ranking import RANKING_METRICS, RankingAccumulator
from streamlabel.metrics.row_blocks import Block, check_truth, iter_parts, require_replay
from streamlabel.types import CSR, FloatArray

LABEL_METRICS = ("macro_auc", "macro_average_precision")
MICRO_METRICS = ("micro_auc", "micro_average_precision")
DECISION_METRICS = ("hamming_loss", "micro_f1", "macro_f1")
METRICS = RANKING_METRICS + LABEL_METRICS + MICRO_METRICS + DECISION_METRICS


def evaluate(
    Y_true: Any,
    scores: Any,
    k: int | Iterable[int] = (1, 3, 5),
    metrics: Iterable[str] | None = None,
    *,
    inverse_propensities: Any = None,
    threshold: float | None = None,
) -> dict[str, float]:
    """Compute several measures of the same scores; returns them by name.

    Parameters
    ----------
    Y_true : (n_rows, n_labels) 0/1, dense or sparse
    scores : (n_rows, n_labels) dense, sparse or `RowBlocks` (read twice when a measure over labels or cells is asked
        for, else once)
    k : for the measures "at k", one or several
    metrics : names out of `METRICS`; by default all that need nothing further, "PSP@k" when ``inverse_propensities``
        is given, and Hamming loss and F1 when ``threshold`` is given
    inverse_propensities : (n_labels,), from `ranking.inverse_propensity` of the training labels
    threshold : a label is predicted if its score is above this

    Returns
    -------
    dict, in the order of ``metrics``: "P@1", "P@3", ..., "macro_auc", ... With a macro measure of AUC or average
    precision comes "n_labels_left_out", the labels with one class only. Conventions are those of the single functions.

    >>> evaluate([[1, 0], [0, 1]], [[0.8, 0.3], [0.6, 0.4]], k=(1,), metrics=["P@k", "macro_auc"])
    {'P@1': 0.5, 'macro_auc': 1.0, 'n_labels_left_out': 0.0}
    """
    truth = check_truth(Y_true)
    names = _choose(metrics, inverse_propensities is not None, threshold is not None)
    if set(names) & set(LABEL_METRICS + MICRO_METRICS):
        require_replay(scores)
    ranking = RankingAccumulator(
        k, metrics=[name for name in names if name in RANKING_METRICS], inverse_propensities=inverse_propensities
    )
    decisions = DecisionAccumulator(truth.shape[1]) if set(names) & set(DECISION_METRICS) else None
    of_true: list[FloatArray] = []
    for part, block in iter_parts(truth, scores):
        ranking.update_checked(part, block)
        if decisions is not None and threshold is not None:
            decisions.update_checked(part, _above(block, threshold))
        of_true.append(true_scores(part, block))
    found = ranking.result()
    if decisions is not None:
        found |= decisions.result()
    found |= _second_reading(truth, scores, np.concatenate(of_true), names)
    return _in_order(found, names)


def _choose(metrics: Iterable[str] | None, has_propensities: bool, has_threshold: bool) -> tuple[str, ...]:
    if metrics is None:
        unasked = (() if has_propensities else ("PSP@k",)) + (() if has_threshold else DECISION_METRICS)
        return tuple(name for name in METRICS if name not in unasked)
    names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise DataError(f"no measure is called {unknown[0]!r}; there are {', '.join(METRICS)}")
    if set(names) & set(DECISION_METRICS) and not has_threshold:
        raise DataError(f"{', '.join(DECISION_METRICS)} need a threshold (0.0 for scores of decision_function)")
    return names


def _above(block: Block, threshold: float) -> CSR:
    """The 0/1 predictions of a block; a missing score is not above anything."""
    if isinstance(block, np.ndarray):
        return sparse.csr_array((block > threshold).astype(np.int8))
    above = (block.data > threshold).astype(np.int8)
    predicted = sparse.csr_array((above, block.indices, block.indptr), shape=block.shape, copy=True)
    predicted.eliminate_zeros()
    return predicted


def _second_reading(truth: CSR, scores: Any, of_true: FloatArray, names: tuple[str, ...]) -> dict[str, float]:
    """The measures over labels and over cells, whose counts need the scores of all true cells first."""
    parts: list[LabelAccumulator | MicroAccumulator] = []
    if set(names) & set(LABEL_METRICS):
        parts.append(LabelAccumulator(truth, of_true))
    if set(names) & set(MICRO_METRICS):
        parts.append(MicroAccumulator(of_true))
    if parts:
        for _, block in iter_parts(truth, scores):
            for part in parts:
                part.update_checked(block)
    return {name: value for part in parts for name, value in part.result().items()}


def _in_order(found: dict[str, float], names: tuple[str, ...]) -> dict[str, float]:
    of_name = ((key, name) for name in names for key in found)
    wanted = [key for key, name in of_name if key == name or (name.endswith("@k") and key.startswith(name[:-1]))]
    if "n_labels_left_out" in found:
        wanted.append("n_labels_left_out")
    return {key: found[key] for key in wanted}
