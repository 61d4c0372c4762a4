"""What every method of the budget experiment is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from streamlabel.baselines.leml import Basis
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.types import CSR, FloatArray, IntArray

__all__ = ["Answer", "Method", "Parameters", "Past", "log_odds", "margin", "share"]

Parameters = Mapping[str, Any]
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
