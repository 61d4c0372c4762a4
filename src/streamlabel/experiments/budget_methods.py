"""The methods of the budget experiment, what each is given, and how competitors choose their hyper-parameters.

Records name methods as they did when the first were written; pages call them by the names of `NAMES`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn.linear_model import RidgeCV

from streamlabel.baselines.leml import Basis, MaskedRows
from streamlabel.baselines.sleec import SLEEC
from streamlabel.errors import did_you_mean
from streamlabel.experiments import methods
from streamlabel.experiments.methods import Parameters
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.kept_rows import FitMemory, n_trials
from streamlabel.streaming.other_losses import row_unit
from streamlabel.streaming.trials import BUDGETS, PAIRS, hide_labels, measure, overall_of
from streamlabel.types import CSR, FloatArray, IntArray

DEFAULT, OWN_RIDGE, PAPER = "with the past", "own ridge", "paper (anchor only)"
MOST_ROWS = max(BUDGETS)  # that a trial learns from, the learner's own and a competitor's
_NONE: Parameters = MappingProxyType({})


class Past:
    """What one order of labels gives every method: rows of length one, past labels known on all rows, new ones not.

    X (n, d), Y_past (n, m), Y_new (n, k);  X_test (n_test, d)
    held, left : the training rows that trials judge by, and those they learn from
    choices : what competitors have chosen, by method and rows of a trial
    """

    def __init__(self, X: CSR, Y_past: CSR, Y_new: CSR, X_test: CSR, seed: int) -> None:
        self.X, self.Y_past, self.Y_new, self.X_test, self.seed = X, Y_past, Y_new, X_test, seed
        self.held = FitMemory.sample(X.shape[0], seed, Y_past.shape[1])
        self.left = np.setdiff1d(np.arange(X.shape[0]), self.held)
        self.choices: dict[tuple[Method, int], tuple[int, int]] = {}
        self._models: dict[str, StreamingLabelClassifier] = {}

    def model(self, loss: str) -> StreamingLabelClassifier:
        """The learner of the past labels, fitted when it is first asked for."""
        if loss not in self._models and loss == "squared":  # the labels of fit are the same
            self._models[loss] = copy.copy(self.model("auto")).set_params(loss=loss)
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


@dataclass(frozen=True, eq=False)
class Trial:
    """X (n, d) and Y (n, m) to learn from, all past labels; the labels ``judged`` are scored on X_held (h, d).

    learned : which training rows X are
    truth : (h, len(judged)) of 0/1
    kept : what a method has made of it for all its candidates
    """

    X: CSR
    Y: CSR
    judged: IntArray
    X_held: CSR
    learned: IntArray
    truth: FloatArray
    kept: dict[str, Any] = field(default_factory=dict)


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


@dataclass(frozen=True)
class _Streaming:
    """The learner with these settings, from the past labels that were learned with this loss."""

    settings: Mapping[str, Any] = field(default_factory=lambda: _NONE)
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
class Competitor:
    """A method that learns from the annotated rows alone (`methods.METHODS`) and chooses its strength by trials.

    name : in `methods.METHODS`
    strengths : values of ``tuned`` in their order; the candidates of one strength differ at scoring only
    sizes : numbers of rows at which a method with dear trials chooses; the nearest one by ratio is taken
    """

    name: str
    tuned: str
    strengths: tuple[float, ...]
    constant: Callable[[IntArray, int], FloatArray] = share
    sizes: tuple[int, ...] = ()

    def steps(self, n_rows: int) -> list[list[dict[str, Any]]]:
        return [[{self.tuned: one}] for one in self.strengths]

    def grid(self, n_rows: int) -> tuple[Parameters, ...]:
        return tuple(one for step in self.steps(n_rows) for one in step)

    def start(self, past: Past) -> None:
        pass

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        chosen = self.choose(past, len(rows))
        learner = methods.METHODS[self.name].make(chosen, past.seed)
        learner.start(past.X[rows], past.Y_past[rows])
        learner.arrive(past.Y_new[rows][:, able])
        return Answer(learner.scores(past.X_test), parameters=chosen)

    def choose(self, past: Past, n_rows: int) -> Parameters:
        """The candidate that is best over all trials in the mean of P@k, AUC and average precision, as recipes are.

        The search begins at the middle strength and goes on to the better side until both neighbours are worse, so that
        a grid may be wide. Without trials it is the middle candidate. What was chosen at a number of rows is kept.
        """
        tried = min(self.sizes, key=lambda size: abs(np.log(size / n_rows))) if self.sizes else n_rows
        tried = min(tried, MOST_ROWS, len(past.left))
        if (self, tried) not in past.choices:
            past.choices[self, tried] = self._climb(past, trials_of(past, tried), self.steps(tried))
        step, place = past.choices[self, tried]
        return self.steps(n_rows)[step][place]

    def _climb(self, past: Past, trials: Sequence[Trial], steps: Sequence[Sequence[Parameters]]) -> tuple[int, int]:
        """The place of the best candidate: its step, and its number there."""
        at, found = len(steps) // 2, dict[int, FloatArray]()
        while trials and len(steps) > 1:
            for near in sorted({at - 1, at, at + 1} & set(range(len(steps))) - set(found)):
                measures = [
                    [measure(one.truth, score, PAIRS) for score in self.tried(past, one, steps[near])] for one in trials
                ]
                found[near] = overall_of(np.array(measures)).mean(axis=0)
            best = max(found, key=lambda step: (float(found[step].max()), step == at))
            if best == at:
                return at, int(found[at].argmax())
            at = best
        return at, len(steps[at]) // 2

    def tried(self, past: Past, trial: Trial, step: Sequence[Parameters]) -> list[FloatArray]:
        """The scores (h, len(judged)) of the candidates of one step."""
        found = []
        for one in step:
            learner = methods.METHODS[self.name].make(one, past.seed)
            learner.start(trial.X, trial.Y[:, :0])
            learner.arrive(trial.Y[:, trial.judged])
            found.append(learner.scores(trial.X_held))
        return found


def trials_of(past: Past, budget: int) -> tuple[Trial, ...]:
    """The trials that a competitor chooses by: as many as the learner's own, of as many labels.

    Past labels that are hidden (`trials.hide_labels`) are learned from ``budget`` rows, and judged on the rows that the
    learner judges by (`FitMemory.sample`); all of them are training rows. Where the learner tries as many rows
    (`trials.BUDGETS`), the draws are the same. None with fewer than ten rows, as for the learner.
    """
    found = []
    for number in range(n_trials(budget, int(past.X.shape[1]))):
        rng = np.random.default_rng((past.seed, budget, number))
        learned = np.sort(rng.choice(past.left, budget, replace=False))
        Y, answers = past.Y_past[learned], past.Y_past[past.held]
        judged, others = hide_labels(Y, answers, rng)
        if len(judged) >= 2 and others.size:
            truth = answers[:, judged].toarray().astype(np.float64)
            found.append(Trial(past.X[learned], Y, judged, past.X[past.held], learned, truth))
    return tuple(found)


_SIZES = (25, 100, 500, 2000)  # rows at which LEML and SLEEC choose: their trials are dear
_VOTERS = ((10, 16), (25, 8), (50, 4), (100, 2), (250, 2))  # neighbours that make a score, at most one of so many rows


class _Sleec(Competitor):
    """A model of past and new labels from the annotated rows alone: it needs every label on every row."""

    def steps(self, n_rows: int) -> list[list[dict[str, Any]]]:
        """Voters by the number of rows: with as many as there are, every score would be the label's share."""
        voters = [max(1, min(most, n_rows // of)) for most, of in _VOTERS]
        return [[{**one, "n_predict_neighbours": k} for k in voters] for [one] in super().steps(n_rows)]

    def tried(self, past: Past, trial: Trial, step: Sequence[Parameters]) -> list[FloatArray]:
        """The embeddings are learned once for all strengths.

        Rows without a past label are left out. With the new labels nearly every row has one; here such rows would
        gather where every embedding is zero, and only votes of very many neighbours would reach beyond them.
        """
        some = np.flatnonzero(np.diff(trial.Y.indptr))
        if "model" in trial.kept:
            model = trial.kept["model"].set_params(**step[0]).learn_map(trial.X[some])
        else:
            model = trial.kept["model"] = SLEEC(random_state=past.seed, **step[0]).fit(trial.X[some], trial.Y[some])
        return [model.set_params(**one).decision_function(trial.X_held)[:, trial.judged] for one in step]


# The few answers of new labels weigh little in the objective, so the last fit goes further than its trials.
_TRIAL_TOLERANCE, _TOLERANCE = 1e-3, 1e-5
_RANK = 250  # the largest of `table2`: the strength shrinks the factors, and so lowers the rank itself


class _Leml(Competitor):
    """LEML with missing labels: the past ones are known on all rows, the new ones on the annotated rows.

    In a trial the labels that play new ones are known on as many rows, all other past labels on all rows but those that
    are judged. Strengths are for rows whose root mean squared distance from their mean is 1: classifiers grow as rows
    shrink, and beta weighs their size.
    """

    def steps(self, n_rows: int) -> list[list[dict[str, Any]]]:
        return [[{"rank": _RANK, **one}] for [one] in super().steps(n_rows)]

    def start(self, past: Past) -> None:
        _ = past.basis

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        chosen = self.choose(past, len(rows))
        annotated = None if len(rows) == past.X.shape[0] else rows
        seen = MaskedRows(past.basis, [(None, past.Y_past), (annotated, past.Y_new[rows][:, able])])
        scores = _masked_scores(seen, chosen, past, past.X_test, _TOLERANCE)
        return Answer(scores[:, -len(able) :], parameters=chosen)

    def tried(self, past: Past, trial: Trial, step: Sequence[Parameters]) -> list[FloatArray]:
        if "seen" not in trial.kept:
            known, others = past.Y_past[past.left], np.setdiff1d(np.arange(past.Y_past.shape[1]), trial.judged)
            hidden = np.searchsorted(past.left, trial.learned), trial.Y[:, trial.judged]
            trial.kept["seen"] = MaskedRows(past.left_basis, [(None, known[:, others]), hidden])
        scores = [_masked_scores(trial.kept["seen"], one, past, trial.X_held, _TRIAL_TOLERANCE) for one in step]
        return [one[:, -len(trial.judged) :] for one in scores]


def _masked_scores(seen: MaskedRows, parameters: Parameters, past: Past, X: CSR, tolerance: float) -> FloatArray:
    beta = parameters["beta"] * np.sqrt(row_unit(past.X, fit_intercept=True))
    found, intercept = seen.learn(parameters["rank"], beta, past.seed, tolerance=tolerance, max_rounds=500)
    return np.asarray(X @ found.features) @ found.labels.T + intercept


def half_decades(lowest: float, highest: float) -> tuple[float, ...]:
    """
    >>> half_decades(0.1, 3.0)
    (0.1, 0.3, 1.0, 3.0)
    """
    steps = (float(f"{digit}e{power}") for power in range(-6, 7) for digit in (1, 3))
    return tuple(step for step in steps if lowest <= step <= highest)


_ALPHAS = np.logspace(-4.0, 2.0, 13)


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


_ALONE = {"lam": None, "metric": None}
METHODS: dict[str, Method] = {
    DEFAULT: _Streaming(loss="auto"),
    OWN_RIDGE: _Streaming(_ALONE),
    PAPER: _Streaming({"metric": None}),
    "RidgeCV": _CrossValidatedRidge(),
    "logistic with the past": _Streaming(loss="logistic", constant=log_odds),
    "own logistic": _Streaming(_ALONE, "logistic", log_odds),
    "LogisticRegression": Competitor("scikit-learn logistic", "C", half_decades(0.01, 1e5), log_odds),
    "LinearSVC": Competitor("scikit-learn SVM", "C", half_decades(0.001, 1e3), margin),
    "LEML": _Leml("LEML", "beta", half_decades(0.001, 1e3), sizes=_SIZES),
    "SLEEC": _Sleec("SLEEC", "beta", half_decades(0.001, 1e3), sizes=_SIZES),
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
