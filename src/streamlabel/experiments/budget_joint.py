"""Methods of the budget experiment that learn past and new labels together, on the annotated rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

from scipy import sparse

from streamlabel.experiments.budget_choice import Trial, choose
from streamlabel.experiments.budget_past import Answer, Parameters, Past, share
from streamlabel.models.fixed_labels import FixedLabelClassifier
from streamlabel.models.leml import LEML
from streamlabel.models.sleec import SLEEC
from streamlabel.results import FloatArray, IntArray

__all__ = ["LEML_TOGETHER", "SLEEC_TOGETHER", "Together"]


@dataclass(frozen=True)
class Together:
    """A model of all labels, its hyper-parameters chosen on past labels (`budget_choice`).

    grid : from a number of rows to the candidates; those that differ in ``at_scoring`` only are neighbours
    at_scoring : the hyper-parameters that do not matter before rows are scored
    most_rows : that the choice learns from
    constant : a label that was always no, or always yes, scores this with both models
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
        if isinstance(model, LEML):
            model.prepare(trial.X)
        fitted: Parameters | None = None
        for candidate in grid:
            model.set_params(**candidate)
            wanted = {name: value for name, value in candidate.items() if name not in self.at_scoring}
            if wanted != fitted:
                model.fit(trial.X, trial.Y)
                fitted = wanted
            yield model.decision_function(trial.X_held)[:, trial.judged]


_LEML_BETAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_SLEEC_BETAS = (0.3, 3.0)
_VOTERS = ((25, 8), (50, 4), (100, 2))  # neighbours that make a score, at most one of so many rows


def _leml_grid(_n_rows: int) -> tuple[Parameters, ...]:
    """The largest rank of `table2`: the strength shrinks the factors, and so lowers the rank itself."""
    return tuple({"rank": 250, "beta": beta} for beta in _LEML_BETAS)


def _sleec_grid(n_rows: int) -> tuple[Parameters, ...]:
    """Voters by the number of rows: with as many as there are, every score would be the label's share."""
    voters = [max(1, min(most, n_rows // of)) for most, of in _VOTERS]
    return tuple({"beta": beta, "n_predict_neighbours": k} for beta, k in product(_SLEEC_BETAS, voters))


LEML_TOGETHER = Together(LEML, _leml_grid)
SLEEC_TOGETHER = Together(SLEEC, _sleec_grid, frozenset({"n_predict_neighbours"}), most_rows=2000)
