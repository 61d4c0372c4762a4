"""The methods of the budget experiment: the learner, the learner without the past, and scikit-learn's own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.svm import LinearSVC

from streamlabel._names import did_you_mean
from streamlabel.metrics.auc import label_average_precision
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.results import CSR, FloatArray, IntArray

__all__ = ["DEFAULT", "METHODS", "OWN_RIDGE", "PAPER", "USUAL", "VARIANTS", "Answer", "Method", "Past", "parse_methods"]

DEFAULT, OWN_RIDGE, PAPER = "with the past", "own ridge", "paper (anchor only)"
_ALPHAS = np.logspace(-2.0, 2.0, 9)
_MOST_LABELS, _MOST_ROWS = 30, 1000  # that the strength of a classifier is judged on


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


@dataclass(frozen=True, eq=False)
class Answer:
    """Scores (n_test, k) of labels that were learned, and how the past was used (`models.calibration.Recipe`)."""

    scores: FloatArray
    share: float = 0.0
    anchored: bool = False


class Method(Protocol):
    """One line of the tables."""

    @property
    def constant(self) -> Callable[[IntArray, int], FloatArray]:
        """Scores (k,) of labels that cannot be learned, from their counts of yes: on the scale of the others'."""
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


@dataclass(frozen=True)
class _Streaming:
    """The learner with these settings, from the past labels that were learned with this loss."""

    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    loss: str = "squared"
    constant: Callable[[IntArray, int], FloatArray] = share

    def start(self, past: Past) -> None:
        past.model(self.loss)

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        model = copy.copy(past.model(self.loss)).set_params(**self.settings)  # an arrival replaces, never writes
        model.add_labels(past.X, past.Y_new[:, able], annotated=rows)
        reports = model.reports_[-len(able) :]
        anchored = any(report.anchored for report in reports)
        return Answer(model.decision_function(past.X_test)[:, -len(able) :], reports[0].share, anchored)


@dataclass(frozen=True)
class _CrossValidatedRidge:
    """scikit-learn's RidgeCV: its strength by leave-one-out on the annotated rows, one for all labels."""

    constant: Callable[[IntArray, int], FloatArray] = share

    def start(self, past: Past) -> None:
        pass

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        model = RidgeCV(alphas=_ALPHAS).fit(past.X[rows].toarray(), past.Y_new[rows][:, able].toarray())
        return Answer(model.predict(past.X_test.toarray()).reshape(-1, len(able)))


@dataclass(frozen=True)
class _OneVsRest:
    """One scikit-learn classifier a label.

    C is chosen on past labels, learned from as many rows and judged on others, all of them training rows, by average
    precision: as the learner chooses its own, and more than somebody without past labels could do.
    """

    make: Callable[..., Any]
    strengths: tuple[float, ...]
    constant: Callable[[IntArray, int], FloatArray]

    def start(self, past: Past) -> None:
        pass

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        strength = self._choose(past, len(rows))
        return Answer(self._scores(strength, past.X[rows], past.Y_new[rows][:, able], past.X_test))

    def _scores(self, strength: float, X: CSR, Y: CSR, X_test: CSR) -> FloatArray:
        rows, test = sparse.csr_matrix(X), sparse.csr_matrix(X_test)
        columns = [self.make(C=strength).fit(rows, y).decision_function(test) for y in Y.toarray().T]
        return np.column_stack(columns)

    def _choose(self, past: Past, n_rows: int) -> float:
        draw = np.random.default_rng((past.seed, n_rows, 1))
        n_train, n_past = past.Y_past.shape
        order = draw.permutation(n_train)
        n_learned = min(n_rows, 4 * n_train // 5)
        learned, judged = order[:n_learned], order[n_learned : n_learned + _MOST_ROWS]
        Y, truth = past.Y_past[learned], past.Y_past[judged]
        able = [j for j in draw.permutation(n_past) if _both(Y, j) and _both(truth, j)][:_MOST_LABELS]
        if not able:
            return self.strengths[len(self.strengths) // 2]
        found = []
        for strength in self.strengths:
            scores = self._scores(strength, past.X[learned], Y[:, able], past.X[judged])
            found.append(float(np.mean(label_average_precision(truth[:, able], scores))))
        return self.strengths[int(np.argmax(found))]


def _both(Y: CSR, label: int) -> bool:
    return bool(0 < Y[:, [label]].sum() < Y.shape[0])


_ALONE = {"lam": None, "metric": None}
METHODS: dict[str, Method] = {
    DEFAULT: _Streaming(),
    OWN_RIDGE: _Streaming(_ALONE),
    PAPER: _Streaming({"metric": None}),
    "RidgeCV": _CrossValidatedRidge(),
    "logistic with the past": _Streaming(loss="logistic", constant=log_odds),
    "own logistic": _Streaming(_ALONE, "logistic", log_odds),
    "LogisticRegression": _OneVsRest(
        partial(LogisticRegression, solver="liblinear"), (1.0, 3.0, 10.0, 30.0, 100.0), log_odds
    ),
    "LinearSVC": _OneVsRest(partial(LinearSVC, random_state=0), (0.03, 0.1, 0.3, 1.0, 3.0), margin),
}
VARIANTS = (DEFAULT, PAPER, "logistic with the past")  # the learner itself; all others are its competitors
USUAL = tuple(name for name in METHODS if name != PAPER)


def parse_methods(text: str) -> tuple[str, ...]:
    """Names separated by commas, or "all"; own ridge is always among them, for it is what the others are judged by.

    >>> parse_methods("LinearSVC, with the past")
    ('own ridge', 'LinearSVC', 'with the past')
    """
    if text.strip() == "all":
        return tuple(METHODS)
    names = [word.strip() for word in text.split(",")]
    for name in names:
        if name not in METHODS:
            hint = did_you_mean(name, METHODS)
            there = f"{hint} There are" if hint else "there are"
            raise ValueError(f"no method is called {name!r}; {there} {', '.join(METHODS)}, and 'all'")
    return tuple(dict.fromkeys((OWN_RIDGE, *names)))
