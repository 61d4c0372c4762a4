"""Logistic regression, one label at a time: what a practitioner would do for a label that has just appeared."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from streamlabel.experiments.timeline_births import LEAST_YES, DatedRows
from streamlabel.metrics.auc import label_average_precision
from streamlabel.types import CSR, FloatArray, IntArray

__all__ = ["LogisticAlone"]

_STRENGTHS = (1.0, 10.0, 100.0, 1000.0)  # scikit-learn's C
_MOST_LABELS = 30


@dataclass(frozen=True)
class LogisticAlone:
    """scikit-learn's logistic regression (liblinear) with one strength for all labels."""

    C: float

    @classmethod
    def chosen(cls, data: DatedRows, start: int, years: int, seed: int) -> LogisticAlone:
        """With the strength of the best average precision before the start: labels learned on the last years but some,
        judged on the last. Ties, and sets without such labels, go to the weakest fit."""
        begin, middle, end = (data.before(start - back * years) for back in (2, 1, 0))
        able = [label for label in range(len(data.label_names)) if _able(data.positives(label), begin, middle, end)]
        drawn = np.random.default_rng((seed, start)).permutation(able)[:_MOST_LABELS]
        means = []
        for C in _STRENGTHS:
            found = []
            for label in drawn:
                answers = data.columns[:, [label]].toarray()
                line, _ = cls(C).learn(data.X[begin:middle], answers[begin:middle].ravel())
                scores = np.asarray(data.X[middle:end] @ line)[:, None]
                found.append(float(label_average_precision(answers[middle:end], scores)[0]))
            means.append(float(np.mean(found)) if found else 0.0)
        return cls(_STRENGTHS[int(np.argmax(means))])

    def learn(self, X: CSR, answers: IntArray) -> tuple[FloatArray, float]:
        """Weights (d,) and intercept for 0/1 answers (n,)."""
        model = LogisticRegression(C=self.C, solver="liblinear", max_iter=1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, answers)
        return model.coef_[0], float(model.intercept_[0])


def _able(positives: IntArray, begin: int, middle: int, end: int) -> bool:
    n_yes = int(np.sum((positives >= begin) & (positives < middle)))
    n_judged = int(np.sum((positives >= middle) & (positives < end)))
    return LEAST_YES <= n_yes < middle - begin and 0 < n_judged < end - middle
