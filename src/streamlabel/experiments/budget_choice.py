"""Hyper-parameters of a method of the budget experiment, chosen on past labels as if these were new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from streamlabel.experiments.budget_past import Past
from streamlabel.experiments.rows import learnable
from streamlabel.metrics.auc import label_average_precision
from streamlabel.types import CSR, FloatArray, IntArray

__all__ = ["Trial", "choose"]

Candidate = TypeVar("Candidate")
_MOST_LABELS, _MOST_ROWS = 30, 1000  # that candidates are judged on


@dataclass(frozen=True, eq=False)
class Trial:
    """X (n, d) and Y (n, m) to learn from, all past labels; the labels ``judged`` are scored on X_held (h, d).

    learned, held : which training rows X and X_held are
    """

    X: CSR
    Y: CSR
    judged: IntArray
    X_held: CSR
    learned: IntArray
    held: IntArray


def choose(
    past: Past,
    n_rows: int,
    candidates: Sequence[Candidate],
    trials: Callable[[Trial], Iterable[FloatArray]],
    most_rows: int | None = None,
) -> Candidate:
    """The candidate with the best average precision, the middle one where no past label can be judged.

    Past labels are learned from as many rows (at most four fifths of all, and ``most_rows``) and judged on others, all
    of them training rows: as the learner chooses its own, and more than somebody without past labels could do.

    trials : the scores (h, len(judged)) of every candidate, in their order
    """
    draw = np.random.default_rng((past.seed, n_rows, 1))
    n_train, n_past = past.Y_past.shape
    order = draw.permutation(n_train)
    n_learned = min(n_rows, 4 * n_train // 5, n_train if most_rows is None else most_rows)
    learned, held = order[:n_learned], order[n_learned : n_learned + _MOST_ROWS]
    Y, truth = past.Y_past[learned], past.Y_past[held]
    able = np.intersect1d(learnable(Y), learnable(truth))
    shuffled = draw.permutation(n_past)
    judged = shuffled[np.isin(shuffled, able)][:_MOST_LABELS]
    if not judged.size:
        return candidates[len(candidates) // 2]
    found = [
        float(np.mean(label_average_precision(truth[:, judged], scores)))
        for scores in trials(Trial(past.X[learned], Y, judged, past.X[held], learned, held))
    ]
    return candidates[int(np.argmax(found))]
