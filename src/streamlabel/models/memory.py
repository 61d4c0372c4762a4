"""What a model keeps of the rows it was fitted on, so that labels can arrive later."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from streamlabel.models.calibration import Judged, Trial, budget_class, run_trial
from streamlabel.results import CSR, FloatArray, IntArray
from streamlabel.stats.labels import centred_cross

__all__ = ["FitMemory", "LabelAnswers"]

_MOST_JUDGED = 1000


class LabelAnswers:
    """The answers, on the n rows of `fit`, of the labels that may enter a code. Immutable but for what it keeps ready.

    labels : (p,), their numbers among all labels of the model
    by_rows : csr_array (n, p) of 0/1
    """

    def __init__(self, labels: IntArray, by_rows: CSR, gram: FloatArray | None = None) -> None:
        self.labels = labels
        self.by_rows = by_rows
        self._gram = gram

    @property
    def gram(self) -> FloatArray:
        """Centred Gram (p, p); made when first asked for, then grown."""
        if self._gram is None:
            self._gram = centred_cross(self.by_rows, self.by_rows)
        return self._gram

    def appended(self, first: int, labels: CSR) -> LabelAnswers:
        """These labels, then new ones numbered from ``first``, answered on every row."""
        gram = self._gram
        if gram is not None:
            corner, side = centred_cross(labels, labels), centred_cross(self.by_rows, labels)
            gram = np.block([[gram, side], [side.T, corner]])
        by_rows = sparse.csr_array(sparse.hstack((self.by_rows, labels), format="csr"))
        numbers = np.concatenate((self.labels, np.arange(first, first + labels.shape[1])))
        return LabelAnswers(numbers, by_rows, gram)


class FitMemory:
    """The rows of `fit`, and what was learned there about how far the past can be trusted.

    judged_rows : (e,), a fixed sample of the rows;  leverages : (e,), their hat diagonal
    leave_one_out : (e, m), their scores under the classifiers of `fit` learned without them
    """

    def __init__(
        self,
        X: CSR | FloatArray,
        labels: CSR,
        leave_one_out: FloatArray,
        judged_rows: IntArray,
        leverages: FloatArray,
        seed: int,
    ) -> None:
        self.X = X
        self.judged_rows = judged_rows
        self.leverages = leverages
        self.leave_one_out = leave_one_out
        self._labels, self._seed = labels, seed
        self._trials: dict[int, list[Trial]] = {}

    @staticmethod
    def sample(n_rows: int, seed: int) -> IntArray:
        """At most a third of the rows and at most a thousand; all where there are very few."""
        size = n_rows if n_rows < 60 else min(_MOST_JUDGED, n_rows // 3)
        return np.sort(np.random.default_rng(seed).permutation(n_rows)[:size])

    def trials(self, n_rows: int, weights: FloatArray, intercept: FloatArray) -> list[Trial]:
        """Trials at the budget nearest to this number of rows; run when first asked for, then kept.

        ``weights`` (d, m) and ``intercept`` (m,) are those of the labels of `fit`.
        """
        left = np.setdiff1d(np.arange(self.X.shape[0]), self.judged_rows)
        budget = min(budget_class(n_rows), len(left))
        if budget not in self._trials:
            judged = Judged(self.X[self.judged_rows], self._labels[self.judged_rows], self.leave_one_out)
            found = []
            for number in range(_n_trials(budget)):
                rng = np.random.default_rng((self._seed, budget, number))
                rows = np.sort(rng.choice(left, budget, replace=False))
                X = self.X[rows]
                found.append(run_trial(X, self._labels[rows], np.asarray(X @ weights) + intercept, judged, rng))
            self._trials[budget] = [trial for trial in found if trial is not None]
        return self._trials[budget]


def _n_trials(budget: int) -> int:
    """Fewer where a trial is dear; its labels have more answers there, so that it also says more."""
    return 0 if budget < 10 else 6 if budget <= 500 else 3 if budget <= 1000 else 2
