"""What a model keeps of the rows it was fitted on, so that labels can arrive later."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from streamlabel.models.calibration import Judged, Trial, budget_class, run_trial
from streamlabel.results import CSR, FloatArray, IntArray
from streamlabel.stats.labels import centred_cross

__all__ = ["FitMemory", "LabelAnswers"]

_MOST_JUDGED = 1000


class _GrowingGram:
    """A square matrix in a buffer with room to grow; the models that share it each know how much of it is theirs."""

    def __init__(self, gram: FloatArray) -> None:
        self.used = len(gram)
        self.buffer = gram

    def appended(self, mine: int, side: FloatArray, corner: FloatArray) -> _GrowingGram:
        """My part, then new rows and columns: in place where nobody has written behind my part, else in a copy."""
        size = mine + len(corner)
        grown = self
        if self.used != mine or size > len(self.buffer):
            room = np.empty((max(size, mine + mine // 4 + 16),) * 2)
            room[:mine, :mine] = self.buffer[:mine, :mine]
            grown = _GrowingGram(room)
        grown.buffer[:mine, mine:size], grown.buffer[mine:size, :mine] = side, side.T
        grown.buffer[mine:size, mine:size] = corner
        grown.used = size
        return grown


class LabelAnswers:
    """The answers, on the n rows of `fit`, of the labels that may enter a code. Immutable but for what it keeps ready.

    labels : (p,), their numbers among all labels of the model
    by_rows : csr_array (n, p) of ones
    """

    def __init__(self, labels: IntArray, by_rows: CSR, gram: _GrowingGram | None = None) -> None:
        self.labels = labels
        self.by_rows = by_rows
        self._counts = np.bincount(by_rows.indices, minlength=len(labels)).astype(np.float64)
        self._gram = gram

    @property
    def gram(self) -> FloatArray:
        """Centred Gram (p, p); made when first asked for, then grown."""
        if self._gram is None:
            self._gram = _GrowingGram(centred_cross(self.by_rows, self.by_rows))
        return self._gram.buffer[: len(self.labels), : len(self.labels)]

    def cross(self, labels: CSR) -> FloatArray:
        """Centred products (p, k) with new labels (n, k): what their positive examples cost."""
        n_rows, n_new = labels.shape
        result = np.empty((len(self.labels), n_new))
        columns = labels.tocsc()
        for j in range(n_new):
            rows = columns.indices[columns.indptr[j] : columns.indptr[j + 1]]
            spans = [self.by_rows.indices[self.by_rows.indptr[i] : self.by_rows.indptr[i + 1]] for i in rows]
            found = np.bincount(np.concatenate(spans), minlength=len(self.labels)) if spans else 0
            result[:, j] = found - self._counts * (len(rows) / n_rows)
        return result

    def appended(self, first: int, labels: CSR, side: FloatArray | None = None) -> LabelAnswers:
        """These labels, then new ones numbered from ``first``, answered on every row; ``side`` is `cross` of them."""
        gram = self._gram
        if gram is not None:
            corner = centred_cross(labels, labels)
            gram = gram.appended(len(self.labels), self.cross(labels) if side is None else side, corner)
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
        self.judged_X = X[judged_rows]
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
            judged = Judged(self.judged_X, self._labels[self.judged_rows], self.leave_one_out)
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
