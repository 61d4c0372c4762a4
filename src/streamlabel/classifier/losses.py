"""The three losses of step 2: what a score costs, and how that changes with the score.

With a score ``f`` and an answer ``y``::

    squared         1/2 (y - f)^2                     y: any number (0/1, or -1/+1 as in the paper)
    logistic        log(1 + exp(-y f))                y: -1/+1, or 0/1
    squared hinge   1/2 max(0, 1 - y f)^2             y: -1/+1, or 0/1

Every method works elementwise on (n, k) arrays, with answers as `Loss.encode` writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from streamlabel.errors import NotFoundError
from streamlabel.types import FloatArray

_LOG_ROWS = 512


class Loss(Protocol):
    """A loss, as the solvers use it. All losses are convex with a second derivative of at most 1."""

    name: ClassVar[str]

    def encode(self, answers: FloatArray) -> FloatArray:
        """Encode answers (0/1 or -1/+1) as the other methods read them."""
        ...

    def value(self, scores: FloatArray, answers: FloatArray) -> FloatArray:
        """The loss of each score, (n, k)."""
        ...

    def first(self, scores: FloatArray, answers: FloatArray) -> FloatArray:
        """The derivative of the loss with respect to the score."""
        ...

    def terms(self, scores: FloatArray, answers: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The losses summed over the rows, (k,), and both derivatives, (n, k), sharing what they have in common."""
        ...

    def best_constant(self, answers: FloatArray) -> FloatArray:
        """The score that costs least if all rows get the same one, (k,); finite also if all answers agree."""
        ...


@dataclass(frozen=True)
class SquaredLoss:
    """The squared loss ``1/2 (y - f)^2``."""

    name: ClassVar[str] = "squared"

    def encode(self, answers: FloatArray) -> FloatArray:
        return np.asarray(answers, dtype=np.float64)

    def value(self, scores: FloatArray, answers: FloatArray) -> FloatArray:
        return 0.5 * np.square(scores - answers)

    def first(self, scores: FloatArray, answers: FloatArray) -> FloatArray:
        return scores - answers

    def terms(self, scores: FloatArray, answers: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        residual = scores - answers
        return 0.5 * np.einsum("ij,ij->j", residual, residual), residual, np.ones_like(residual)

    def best_constant(self, answers: FloatArray) -> FloatArray:
        return np.asarray(answers.mean(axis=0))


@dataclass(frozen=True)
class LogisticLoss:
    """The logistic loss ``log(1 + exp(-y f))``, for 0/1 answers ``log(1 + exp f) - y f``; no score overflows."""

    name: ClassVar[str] = "logistic"

    def encode(self, answers: FloatArray) -> FloatArray:
        return (np.asarray(answers) > 0).astype(np.float64)

    def value(self, scores: FloatArray, answers: FloatArray) -> FloatArray:
        # log(1 + exp f) = max(f, 0) + log1p(exp(-|f|)); the rest is |f| on the wrong side, else 0.
        return np.log1p(np.exp(-np.abs(scores))) + (np.maximum(scores, 0.0) - answers * scores)

    def first(self, scores: FloatArray, answers: FloatArray) -> FloatArray:
        # sigmoid(f) - y, as -y sigmoid(-y f) with y = -1/+1: no digits are lost on the right side.
        signs = 2.0 * answers - 1.0
        margins = signs * scores
        decay = np.exp(-np.abs(margins))
        return -signs * np.where(margins > 0.0, decay, 1.0) / (1.0 + decay)

    def terms(self, scores: FloatArray, answers: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        decay = np.abs(scores)
        np.exp(np.negative(decay, out=decay), out=decay)
        share = decay + 1.0
        # Sums of log1p as logarithms of products: factors of at most 2, few enough of them not to overflow.
        starts = np.arange(0, len(share), _LOG_ROWS)
        cost = np.log(np.multiply.reduceat(share, starts, axis=0)).sum(axis=0)
        cost += np.maximum(scores, 0.0).sum(axis=0) - np.einsum("ij,ij->j", answers, scores)
        np.reciprocal(share, out=share)
        decay *= share
        first = np.where(scores > 0.0, share, decay)
        first -= answers
        decay *= share
        return cost, first, decay

    def best_constant(self, answers: FloatArray) -> FloatArray:
        positives = answers.sum(axis=0)
        return np.asarray(np.log((positives + 0.5) / (answers.shape[0] - positives + 0.5)))


@dataclass(frozen=True)
class SquaredHingeLoss:
    """The squared hinge loss ``1/2 max(0, 1 - y f)^2``; second derivative 1 inside the margin, else 0."""

    name: ClassVar[str] = "squared_hinge"

    def encode(self, answers: FloatArray) -> FloatArray:
        return np.where(np.asarray(answers) > 0, 1.0, -1.0)

    def value(self, scores: FloatArray, answers: FloatArray) -> FloatArray:
        return 0.5 * np.square(self._shortfall(scores, answers))

    def first(self, scores: FloatArray, answers: FloatArray) -> FloatArray:
        return -answers * self._shortfall(scores, answers)

    def terms(self, scores: FloatArray, answers: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        shortfall = self._shortfall(scores, answers)
        cost = 0.5 * np.einsum("ij,ij->j", shortfall, shortfall)
        return cost, -answers * shortfall, (shortfall > 0.0).astype(np.float64)

    def best_constant(self, answers: FloatArray) -> FloatArray:
        return np.asarray(answers.mean(axis=0))

    @staticmethod
    def _shortfall(scores: FloatArray, answers: FloatArray) -> FloatArray:
        return np.maximum(1.0 - answers * scores, 0.0)


def log_odds_span(answers: FloatArray) -> FloatArray:
    """What a whole yes is worth in log-odds, label by label: the span from the rate of yes to nine in ten, (k,)."""
    return np.log(9.0) - LogisticLoss().best_constant(answers)


_LOSSES: dict[str, Loss] = {loss.name: loss for loss in (SquaredLoss(), LogisticLoss(), SquaredHingeLoss())}


def get_loss(name: str) -> Loss:
    """The loss of this name: ``"squared"``, ``"logistic"`` or ``"squared_hinge"``.

    >>> get_loss("logistic").name
    'logistic'
    """
    try:
        return _LOSSES[name]
    except KeyError:
        raise NotFoundError(f"no loss is called {name!r}; there are {', '.join(_LOSSES)}") from None
