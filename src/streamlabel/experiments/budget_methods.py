"""The methods of the budget experiment: the learner, the learner without the past, and others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV

from streamlabel.errors import did_you_mean
from streamlabel.experiments.budget_choice import Trial, choose
from streamlabel.experiments.budget_joint import LEML_TOGETHER, SLEEC_TOGETHER
from streamlabel.experiments.budget_past import Answer, Method, Parameters, Past, log_odds, margin, share
from streamlabel.experiments.peers import OneVsRest
from streamlabel.types import CSR, FloatArray, IntArray

__all__ = ["DEFAULT", "METHODS", "OWN_RIDGE", "PAPER", "USUAL", "VARIANTS", "parse_methods"]

DEFAULT, OWN_RIDGE, PAPER = "with the past", "own ridge", "paper (anchor only)"
_ALPHAS = np.logspace(-2.0, 2.0, 9)


@dataclass(frozen=True)
class _Streaming:
    """The learner with these settings, from the past labels that were learned with this loss."""

    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    loss: str = "squared"
    constant: Callable[[IntArray, int], FloatArray] = share

    def grid(self, n_rows: int) -> tuple[Parameters, ...]:
        return ()

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

    def grid(self, n_rows: int) -> tuple[Parameters, ...]:
        return tuple({"alpha": float(alpha)} for alpha in _ALPHAS)

    def start(self, past: Past) -> None:
        pass

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        model = RidgeCV(alphas=_ALPHAS).fit(past.X[rows].toarray(), past.Y_new[rows][:, able].toarray())
        scores = model.predict(past.X_test.toarray()).reshape(-1, len(able))
        return Answer(scores, parameters={"alpha": float(model.alpha_)})


@dataclass(frozen=True)
class _OneVsRest:
    """One scikit-learn classifier a label (`peers.OneVsRest`), its C chosen on past labels (`budget_choice`).

    strengths : C, for rows of mean squared distance 1 from their mean
    """

    kind: str
    strengths: tuple[float, ...]
    constant: Callable[[IntArray, int], FloatArray]

    def grid(self, n_rows: int) -> tuple[Parameters, ...]:
        return tuple({"C": strength} for strength in self.strengths)

    def start(self, past: Past) -> None:
        pass

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        strength = choose(past, len(rows), self.strengths, self._trials)
        scores = self._scores(strength, past.X[rows], past.Y_new[rows][:, able], past.X_test)
        return Answer(scores, parameters={"C": strength})

    def _trials(self, trial: Trial) -> Iterator[FloatArray]:
        for strength in self.strengths:
            yield self._scores(strength, trial.X, trial.Y[:, trial.judged], trial.X_held)

    def _scores(self, strength: float, X: CSR, Y: CSR, X_test: CSR) -> FloatArray:
        return OneVsRest(self.kind, strength, seed=0).fit(X, Y).decision_function(X_test)


_ALONE = {"lam": None, "metric": None}
METHODS: dict[str, Method] = {
    DEFAULT: _Streaming(),
    OWN_RIDGE: _Streaming(_ALONE),
    PAPER: _Streaming({"metric": None}),
    "RidgeCV": _CrossValidatedRidge(),
    "logistic with the past": _Streaming(loss="logistic", constant=log_odds),
    "own logistic": _Streaming(_ALONE, "logistic", log_odds),
    "LogisticRegression": _OneVsRest("logistic", (0.3, 1.0, 3.0, 10.0, 30.0, 100.0), log_odds),
    "LinearSVC": _OneVsRest("svm", (0.03, 0.1, 0.3, 1.0, 3.0, 10.0), margin),
    "LEML": LEML_TOGETHER,
    "SLEEC": SLEEC_TOGETHER,
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
