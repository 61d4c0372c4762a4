"""What every method of the budget experiment is given, what it gives, and how hyper-parameters are chosen there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from streamlabel.baselines.leml import Basis
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.kept_rows import FitMemory, n_trials
from streamlabel.streaming.trials import BUDGETS, hide_labels, measure, overall_of
from streamlabel.types import CSR, FloatArray, IntArray

Parameters = Mapping[str, Any]
MOST_ROWS = max(BUDGETS)  # that a trial learns from, the learner's own and a competitor's
_NONE: Parameters = MappingProxyType({})


class Past:
    """What one order of labels gives every method: rows of length one, past labels known on all rows, new ones not.

    X (n, d), Y_past (n, m), Y_new (n, k);  X_test (n_test, d)
    held, left : the training rows that trials judge by, and those they learn from
    choices : what `choose` has found, by method and rows of a trial
    """

    def __init__(self, X: CSR, Y_past: CSR, Y_new: CSR, X_test: CSR, seed: int) -> None:
        self.X, self.Y_past, self.Y_new, self.X_test, self.seed = X, Y_past, Y_new, X_test, seed
        self.held = FitMemory.sample(X.shape[0], seed, Y_past.shape[1])
        self.left = np.setdiff1d(np.arange(X.shape[0]), self.held)
        self._models: dict[str, StreamingLabelClassifier] = {}
        self.choices: dict[tuple[Hashable, int], tuple[int, int]] = {}

    def model(self, loss: str) -> StreamingLabelClassifier:
        """The learner of the past labels, fitted when it is first asked for."""
        if loss not in self._models:
            self._models[loss] = StreamingLabelClassifier(loss=loss, random_state=self.seed).fit(self.X, self.Y_past)
        return self._models[loss]

    @cached_property
    def basis(self) -> Basis:
        """All training rows, for labels that are known on some of them."""
        return Basis(self.X)

    @cached_property
    def left_basis(self) -> Basis:
        """Those that trials do not judge by."""
        return Basis(self.X[self.left])


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

    learned : which training rows X are
    truth : (h, len(judged)) of 0/1
    """

    X: CSR
    Y: CSR
    judged: IntArray
    X_held: CSR
    learned: IntArray
    truth: FloatArray


def trials_of(past: Past, budget: int) -> tuple[Trial, ...]:
    """The trials that a competitor chooses by: as many, of as many labels, on the same draws as the learner's own.

    Past labels that are hidden (`trials.hide_labels`) are learned from ``budget`` rows, and judged on the rows that the
    learner judges by (`FitMemory.sample`); all of them are training rows. None with fewer than ten rows, as for the
    learner.
    """
    found = []
    for number in range(n_trials(budget)):
        rng = np.random.default_rng((past.seed, budget, number))
        learned = np.sort(rng.choice(past.left, budget, replace=False))
        Y, answers = past.Y_past[learned], past.Y_past[past.held]
        judged, others = hide_labels(Y, answers, rng)
        if len(judged) >= 2 and others.size:
            truth = answers[:, judged].toarray().astype(np.float64)
            found.append(Trial(past.X[learned], Y, judged, past.X[past.held], learned, truth))
    return tuple(found)


Steps = Callable[[int], Sequence[Sequence[Parameters]]]


def choose(
    past: Past,
    method: Hashable,
    n_rows: int,
    steps: Steps,
    scores: Callable[[Trial, Any], Iterable[FloatArray]],
    sizes: Sequence[int] = (),
) -> Parameters:
    """The candidate that is best over all trials in the mean of P@k, AUC and average precision, as recipes are chosen.

    The search begins in the middle of the steps and goes on to the better side until both neighbours are worse, so that
    a grid may be wide. Without trials it is the middle candidate. What was chosen at a number of rows is kept.

    steps : from a number of rows to the strengths in their order; the candidates of one step are tried together
    scores : from a trial and a step to the scores (h, len(judged)) of its candidates
    sizes : numbers of rows at which a method with dear trials chooses; the nearest one by ratio is taken
    """
    tried = min(sizes, key=lambda size: abs(np.log(size / n_rows))) if sizes else n_rows
    tried = min(tried, MOST_ROWS, len(past.left))
    if (method, tried) not in past.choices:
        past.choices[method, tried] = _climb(trials_of(past, tried), steps(tried), scores)
    step, place = past.choices[method, tried]
    return steps(n_rows)[step][place]


def _climb(
    trials: Sequence[Trial],
    steps: Sequence[Sequence[Parameters]],
    scores: Callable[[Trial, Any], Iterable[FloatArray]],
) -> tuple[int, int]:
    """The place of the best candidate: its step, and its number there."""
    at, found = len(steps) // 2, dict[int, FloatArray]()
    while trials:
        for near in sorted({at - 1, at, at + 1} & set(range(len(steps))) - set(found)):
            measures = [[measure(one.truth, score) for score in scores(one, steps[near])] for one in trials]
            found[near] = overall_of(np.array(measures)).mean(axis=0)
        best = max(found, key=lambda step: (float(found[step].max()), step == at))
        if best == at:
            return at, int(found[at].argmax())
        at = best
    return at, len(steps[at]) // 2
