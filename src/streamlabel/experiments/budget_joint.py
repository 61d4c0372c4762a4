"""Methods of the budget experiment that learn past and new labels together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from scipy import sparse

from streamlabel.baselines.base import FixedLabelClassifier
from streamlabel.baselines.leml import Basis, MaskedRows
from streamlabel.baselines.sleec import SLEEC
from streamlabel.experiments.budget_choice import Trial, choose
from streamlabel.experiments.budget_past import Answer, Parameters, Past, share
from streamlabel.streaming.other_losses import row_unit
from streamlabel.types import CSR, FloatArray, IntArray

__all__ = ["LEML_TOGETHER", "SLEEC_TOGETHER", "Masked", "Together"]

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

    def start(self, past: Past) -> None:
        _ = past.basis

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        chosen = choose(past, len(rows), self.grid(len(rows)), partial(self._trials, past))
        annotated = None if len(rows) == past.X.shape[0] else rows
        seen = MaskedRows(past.basis, [(None, past.Y_past), (annotated, past.Y_new[rows][:, able])])
        scores = _scores(seen, chosen, past, past.X_test, _TOLERANCE)
        return Answer(scores[:, -len(able) :], parameters=chosen)

    def _trials(self, past: Past, trial: Trial) -> Iterator[FloatArray]:
        n_train, n_past = past.Y_past.shape
        known = np.setdiff1d(np.arange(n_train), trial.held)
        others = np.setdiff1d(np.arange(n_past), trial.judged)
        parts: list[tuple[IntArray | None, CSR]] = [(None, past.Y_past[known][:, others])] if others.size else []
        parts.append((np.searchsorted(known, trial.learned), trial.Y[:, trial.judged]))
        seen = MaskedRows(Basis(past.X[known]), parts)
        for candidate in self.grid(len(trial.learned)):
            scores = _scores(seen, candidate, past, trial.X_held, _TRIAL_TOLERANCE)
            yield scores[:, -len(trial.judged) :]


def _scores(seen: MaskedRows, parameters: Parameters, past: Past, X: CSR, tolerance: float) -> FloatArray:
    beta = parameters["beta"] * np.sqrt(row_unit(past.X, fit_intercept=True))
    found, intercept = seen.learn(parameters["rank"], beta, past.seed, tolerance=tolerance, max_rounds=500)
    return np.asarray(X @ found.features) @ found.labels.T + intercept


@dataclass(frozen=True)
class Together:
    """A model of all labels, from the annotated rows alone, its hyper-parameters chosen on past labels.

    grid : from a number of rows to the candidates; those that differ in ``at_scoring`` only are neighbours
    at_scoring : the hyper-parameters that do not matter before rows are scored
    most_rows : that the choice learns from
    constant : a label that was always no, or always yes, scores this
    """

    make: Callable[..., FixedLabelClassifier]
    grid: Callable[[int], tuple[Parameters, ...]]
    at_scoring: frozenset[str] = frozenset()
    most_rows: int | None = None
    constant: Callable[[IntArray, int], FloatArray] = share

    def start(self, past: Past) -> None:
        pass

    def learn(self, past: Past, able: IntArray, rows: IntArray) -> Answer:
        grid = self.grid(len(rows))
        chosen = choose(past, len(rows), grid, partial(self._trials, grid, past.seed), self.most_rows)
        labels = sparse.csr_array(sparse.hstack((past.Y_past[rows], past.Y_new[rows][:, able]), format="csr"))
        model = self.make(random_state=past.seed, **chosen).fit(past.X[rows], labels)
        return Answer(model.decision_function(past.X_test)[:, -len(able) :], parameters=chosen)

    def _trials(self, grid: tuple[Parameters, ...], seed: int, trial: Trial) -> Iterator[FloatArray]:
        model = self.make(random_state=seed)
        fitted: Parameters | None = None
        for candidate in grid:
            model.set_params(**candidate)
            wanted = {name: value for name, value in candidate.items() if name not in self.at_scoring}
            if wanted != fitted:
                model.fit(trial.X, trial.Y)
                fitted = wanted
            yield model.decision_function(trial.X_held)[:, trial.judged]


_LEML_BETAS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_SLEEC_BETAS = (0.3, 3.0)
_VOTERS = ((25, 8), (50, 4), (100, 2))  # neighbours that make a score, at most one of so many rows


def _sleec_grid(n_rows: int) -> tuple[Parameters, ...]:
    """Voters by the number of rows: with as many as there are, every score would be the label's share."""
    voters = [max(1, min(most, n_rows // of)) for most, of in _VOTERS]
    return tuple({"beta": beta, "n_predict_neighbours": k} for beta, k in product(_SLEEC_BETAS, voters))


# The largest rank of `table2`: the strength shrinks the factors, and so lowers the rank itself.
LEML_TOGETHER = Masked(250, _LEML_BETAS)
SLEEC_TOGETHER = Together(SLEEC, _sleec_grid, frozenset({"n_predict_neighbours"}), most_rows=2000)
