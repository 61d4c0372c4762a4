"""What every method of the budget experiment is given, what it gives, and how hyper-parameters are chosen there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np

from streamlabel.baselines.leml import Basis
from streamlabel.experiments.sets import learnable
from streamlabel.metrics.auc import label_average_precision
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.types import CSR, FloatArray, IntArray

Parameters = Mapping[str, Any]
Candidate = TypeVar("Candidate")
_MOST_LABELS, _MOST_ROWS = 30, 1000  # that candidates are judged on
_NONE: Parameters = MappingProxyType({})


class Past:
    """What one order of labels gives every method: rows of length one, past labels known on all rows, new ones not.

    X (n, d), Y_past (n, m), Y_new (n, k);  X_test (n_test, d)
    """

    def __init__(self, X: CSR, Y_past: CSR, Y_new: CSR, X_test: CSR, seed: int) -> None:
        self.X, self.Y_past, self.Y_new, self.X_test, self.seed = X, Y_past, Y_new, X_test, seed
        self._models: dict[str, StreamingLabelClassifier] = {}

    def model(self, loss: str) -> StreamingLabelClassifier:
        """The learner of the past labels, fitted when it is first asked for."""
        if loss not in self._models:
            self._models[loss] = StreamingLabelClassifier(loss=loss, random_state=self.seed).fit(self.X, self.Y_past)
        return self._models[loss]

    @cached_property
    def basis(self) -> Basis:
        """All training rows, for labels that are known on some of them."""
        return Basis(self.X)


@dataclass(frozen=True, eq=False)
class Answer:
    """Scores (n_test, k) of labels that were learned, and how the past was used (`streaming.trials.Recipe`).

    parameters : the hyper-parameters that were chosen from the method's grid
    """

    scores: FloatArray
    share: float = 0.0
    anchored: bool = False
    parameters: Parameters = field(default_factory=lambda: _NONE)


class Method(Protocol):
    """One line of the tables."""

    @property
    def constant(self) -> Callable[[IntArray, int], FloatArray]:
        """Scores (k,) of labels that cannot be learned, from their counts of yes: on the scale of the others'."""
        ...

    def grid(self, n_rows: int) -> tuple[Parameters, ...]:
        """The hyper-parameters to choose from with so many annotated rows; none where it needs no choice."""
        ...

    def start(self, past: Past) -> None:
        """What is done before labels arrive; not timed."""
        ...

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        """The new labels ``able``, annotated on ``rows``."""
        ...


def share(n_yes: IntArray, n_rows: int) -> FloatArray:
    """The best constant of a regression on 0 and 1."""
    return np.asarray(n_yes / n_rows)


def log_odds(n_yes: IntArray, n_rows: int) -> FloatArray:
    """Of the share, with half a yes and half a no added, so that it is a number."""
    return np.asarray(np.log(n_yes + 0.5) - np.log(n_rows - n_yes + 0.5))


def margin(n_yes: IntArray, n_rows: int) -> FloatArray:
    """The best constant of a regression on -1 and 1."""
    return np.asarray(2.0 * n_yes / n_rows - 1.0)


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
