"""The methods of the budget experiment: the learner, the learner without the past, and others.

Records name them as they did when the first were written; pages call them by the names of `NAMES`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import RidgeCV

from streamlabel.baselines.base import FixedLabelClassifier
from streamlabel.baselines.leml import MaskedRows
from streamlabel.baselines.sleec import SLEEC
from streamlabel.errors import did_you_mean
from streamlabel.experiments.budget_past import Answer, Method, Parameters, Past, Trial, choose, log_odds, margin, share
from streamlabel.experiments.peers import OneVsRest
from streamlabel.streaming.other_losses import row_unit
from streamlabel.types import CSR, FloatArray, IntArray

DEFAULT, OWN_RIDGE, PAPER = "with the past", "own ridge", "paper (anchor only)"
_ALPHAS = np.logspace(-4.0, 2.0, 13)


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
        X = sparse.csr_matrix(past.X[rows])
        model = RidgeCV(alphas=_ALPHAS).fit(X, past.Y_new[rows][:, able].toarray())
        scores = model.predict(sparse.csr_matrix(past.X_test)).reshape(-1, len(able))
        return Answer(scores, parameters={"alpha": float(model.alpha_)})


@dataclass(frozen=True)
class _OneVsRest:
    """One scikit-learn classifier a label (`peers.OneVsRest`), its C chosen on past labels (`budget_past.choose`).

    strengths : C, for rows of mean squared distance 1 from their mean
    """

    kind: str
    strengths: tuple[float, ...]
    constant: Callable[[IntArray, int], FloatArray]

    def grid(self, n_rows: int) -> tuple[Parameters, ...]:
        return tuple({"C": strength} for strength in self.strengths)

    def steps(self, n_rows: int) -> list[list[Parameters]]:
        return [[one] for one in self.grid(n_rows)]

    def start(self, past: Past) -> None:
        pass

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        chosen = choose(past, self, len(rows), self.steps, self.tried)
        scores = self._scores(chosen, past.X[rows], past.Y_new[rows][:, able], past.X_test)
        return Answer(scores, parameters=chosen)

    def tried(self, trial: Trial, step: Sequence[Parameters]) -> list[FloatArray]:
        return [self._scores(one, trial.X, trial.Y[:, trial.judged], trial.X_held) for one in step]

    def _scores(self, parameters: Parameters, X: CSR, Y: CSR, X_test: CSR) -> FloatArray:
        return OneVsRest(self.kind, parameters["C"], seed=0).fit(X, Y).decision_function(X_test)


_SIZES = (25, 100, 500, 2000)  # rows at which LEML and SLEEC choose: their trials are dear
# The few answers of new labels weigh little in the objective, so the last fit goes further than its trials.
_TRIAL_TOLERANCE, _TOLERANCE = 1e-3, 1e-5


@dataclass(frozen=True)
class Masked:
    """LEML with missing labels: the past ones are known on all rows, the new ones on the annotated rows.

    Its beta is chosen on past labels that play new ones, known on as many rows; all other past labels are known on all
    rows but those that are judged.

    betas : for rows whose root mean squared distance from their mean is 1: classifiers grow as rows shrink, and beta
        weighs their size
    """

    rank: int
    betas: tuple[float, ...]
    constant: Callable[[IntArray, int], FloatArray] = share

    def grid(self, n_rows: int) -> tuple[Parameters, ...]:
        return tuple({"rank": self.rank, "beta": beta} for beta in self.betas)

    def steps(self, n_rows: int) -> list[list[Parameters]]:
        return [[one] for one in self.grid(n_rows)]

    def start(self, past: Past) -> None:
        _ = past.basis

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        chosen = choose(past, self, len(rows), self.steps, partial(self.tried, past), _SIZES)
        annotated = None if len(rows) == past.X.shape[0] else rows
        seen = MaskedRows(past.basis, [(None, past.Y_past), (annotated, past.Y_new[rows][:, able])])
        scores = _scores(seen, chosen, past, past.X_test, _TOLERANCE)
        return Answer(scores[:, -len(able) :], parameters=chosen)

    def tried(self, past: Past, trial: Trial, step: Sequence[Parameters]) -> list[FloatArray]:
        known, others = past.Y_past[past.left], np.setdiff1d(np.arange(past.Y_past.shape[1]), trial.judged)
        hidden = np.searchsorted(past.left, trial.learned), trial.Y[:, trial.judged]
        seen = MaskedRows(past.left_basis, [(None, known[:, others]), hidden])
        return [_scores(seen, one, past, trial.X_held, _TRIAL_TOLERANCE)[:, -len(trial.judged) :] for one in step]


def _scores(seen: MaskedRows, parameters: Parameters, past: Past, X: CSR, tolerance: float) -> FloatArray:
    beta = parameters["beta"] * np.sqrt(row_unit(past.X, fit_intercept=True))
    found, intercept = seen.learn(parameters["rank"], beta, past.seed, tolerance=tolerance, max_rounds=500)
    return np.asarray(X @ found.features) @ found.labels.T + intercept


@dataclass(frozen=True)
class Together:
    """A model of all labels, from the annotated rows alone, its hyper-parameters chosen on past labels.

    steps : from a number of rows to the candidates; those of one step differ in what matters at scoring only
    constant : a label that was always no, or always yes, scores this
    """

    make: Callable[..., FixedLabelClassifier]
    steps: Callable[[int], list[list[Parameters]]]
    constant: Callable[[IntArray, int], FloatArray] = share

    def grid(self, n_rows: int) -> tuple[Parameters, ...]:
        return tuple(one for step in self.steps(n_rows) for one in step)

    def start(self, past: Past) -> None:
        pass

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        chosen = choose(past, self, len(rows), self.steps, partial(self.tried, past.seed), _SIZES)
        labels = sparse.csr_array(sparse.hstack((past.Y_past[rows], past.Y_new[rows][:, able]), format="csr"))
        model = self.make(random_state=past.seed, **chosen).fit(past.X[rows], labels)
        return Answer(model.decision_function(past.X_test)[:, -len(able) :], parameters=chosen)

    def tried(self, seed: int, trial: Trial, step: Sequence[Parameters]) -> list[FloatArray]:
        model = self.make(random_state=seed, **step[0]).fit(trial.X, trial.Y)
        return [model.set_params(**one).decision_function(trial.X_held)[:, trial.judged] for one in step]


_VOTERS = ((25, 8), (50, 4), (100, 2))  # neighbours that make a score, at most one of so many rows


def half_decades(lowest: float, highest: float) -> tuple[float, ...]:
    """
    >>> half_decades(0.1, 3.0)
    (0.1, 0.3, 1.0, 3.0)
    """
    steps = (float(f"{digit}e{power}") for power in range(-6, 7) for digit in (1, 3))
    return tuple(step for step in steps if lowest <= step <= highest)


def _sleec_steps(n_rows: int) -> list[list[Parameters]]:
    """Voters by the number of rows: with as many as there are, every score would be the label's share."""
    voters = [max(1, min(most, n_rows // of)) for most, of in _VOTERS]
    return [[{"beta": beta, "n_predict_neighbours": k} for k in voters] for beta in half_decades(0.001, 1000.0)]


# The largest rank of `table2`: the strength shrinks the factors, and so lowers the rank itself.
LEML_TOGETHER = Masked(250, half_decades(0.001, 1000.0))
SLEEC_TOGETHER = Together(SLEEC, _sleec_steps)


_ALONE = {"lam": None, "metric": None}
METHODS: dict[str, Method] = {
    DEFAULT: _Streaming(),
    OWN_RIDGE: _Streaming(_ALONE),
    PAPER: _Streaming({"metric": None}),
    "RidgeCV": _CrossValidatedRidge(),
    "logistic with the past": _Streaming(loss="logistic", constant=log_odds),
    "own logistic": _Streaming(_ALONE, "logistic", log_odds),
    "LogisticRegression": _OneVsRest("logistic", half_decades(0.01, 100_000.0), log_odds),
    "LinearSVC": _OneVsRest("svm", half_decades(0.001, 1000.0), margin),
    "LEML": LEML_TOGETHER,
    "SLEEC": SLEEC_TOGETHER,
}
NAMES = {  # what pages call them: one vocabulary for all experiments
    DEFAULT: "SLL",
    OWN_RIDGE: "BR ridge",
    PAPER: "SLL anchor only",
    "logistic with the past": "SLL logistic",
    "own logistic": "BR logistic",
    "LogisticRegression": "scikit-learn logistic",
    "LinearSVC": "scikit-learn SVM",
}
SHOWN = {NAMES.get(name, name): name for name in METHODS}


def parse_methods(text: str) -> tuple[str, ...]:
    """Names separated by commas, those of pages or of records, or "all"; BR ridge is always among them.

    >>> parse_methods("scikit-learn SVM, with the past")
    ('own ridge', 'LinearSVC', 'with the past')
    """
    if text.strip() == "all":
        return tuple(METHODS)
    names = [word.strip() for word in text.split(",")]
    for name in names:
        if name not in METHODS and name not in SHOWN:
            hint = did_you_mean(name, [*SHOWN, *METHODS])
            there = f"{hint} There are" if hint else "there are"
            raise ValueError(f"no method is called {name!r}; {there} {', '.join(SHOWN)}, and 'all'")
    return tuple(dict.fromkeys((OWN_RIDGE, *(SHOWN.get(name, name) for name in names))))
