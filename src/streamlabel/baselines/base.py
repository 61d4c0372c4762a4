"""The common base of classifiers whose labels are those of `fit`: arguments checked, scores made into decisions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from streamlabel.errors import DataError
from streamlabel.metrics.topk import top_k
from streamlabel.streaming.inputs import canonical_rows, read_past_labels
from streamlabel.types import CSR, FloatArray, IntArray
from streamlabel.validation import check_label_names, default_label_names


class FixedLabelClassifier(ClassifierMixin, BaseEstimator):
    """A multi-label classifier to which no label can be added: a new one means `fit` again.

    A model says how it learns (`_learn`), how it scores (`_scores`), which parameters it refuses (`_check_parameters`),
    and has a parameter ``threshold``: the score above which `predict` says yes.
    """

    threshold: float

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise DataError for a parameter that cannot be used."""

    @abstractmethod
    def _learn(self, X: CSR | FloatArray, labels: CSR) -> None:
        """Learn labels (n, m) of 0/1 int8."""

    @abstractmethod
    def _scores(self, X: CSR | FloatArray) -> FloatArray:
        """The scores of all labels, (n, m)."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: ArrayLike | CSR, y: ArrayLike | CSR, label_names: Iterable[str] | None = None) -> Self:
        """Learn all labels together. Forgets everything learned before.

        y is a label matrix (n, m) of 0/1, dense or sparse. A vector of classes is also taken, as one label per class
        (then `predict` gives classes).
        """
        self._check_parameters()
        check_number("threshold", self.threshold)
        matrix = self._features(X, reset=True)
        labels, classes = read_past_labels(y, matrix.shape[0], type(self).__name__)
        if label_names is None:
            label_names = default_label_names(labels.shape[1]) if classes is None else map(str, classes)
        names = check_label_names(label_names, labels.shape[1])
        self._learn(matrix, labels)
        self._classes_1d = classes
        self.label_names_ = names
        return self

    def decision_function(self, X: ArrayLike | CSR) -> FloatArray:
        """Scores (n, n_labels), columns in the order of `label_names_`."""
        scores = self._checked_scores(X)
        if self._classes_1d is not None and len(self._classes_1d) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict(self, X: ArrayLike | CSR) -> Any:
        """Predict 0/1 (n, n_labels): 1 if the score exceeds ``threshold``. For a vector of classes: the best class."""
        scores = self._checked_scores(X)
        if self._classes_1d is not None:
            return self._classes_1d[scores.argmax(axis=1)]
        return (scores > self.threshold).astype(np.int64)

    def predict_top_k(self, X: ArrayLike | CSR, k: int = 5) -> tuple[IntArray, FloatArray]:
        """The k best labels of each row and their scores, (n, k) each, best first; ties go to the lower column."""
        scores = self._checked_scores(X)
        columns = top_k(scores, min(k, scores.shape[1]))
        return columns, np.take_along_axis(scores, columns, axis=1)

    @property
    def classes_(self) -> Any:
        """The label names, or the classes if `fit` was given a vector of them."""
        check_is_fitted(self)
        return np.array(self.label_names_, dtype=object) if self._classes_1d is None else self._classes_1d

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "label_names_")

    def _checked_scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return self._scores(self._features(X, reset=False))

    def _features(self, X: Any, *, reset: bool) -> Any:
        return canonical_rows(validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset))


def check_number(name: str, value: Any) -> None:
    """Raise DataError unless the value is a finite number."""
    if isinstance(value, str) or value is None or not np.isfinite(value):
        raise DataError(f"{name} is {value!r}; it must be a number")


def check_positive(name: str, value: Any) -> None:
    """Raise DataError unless the value is a positive number."""
    if isinstance(value, str) or value is None or not np.isfinite(value) or value <= 0:
        raise DataError(f"{name} is {value!r}; it must be a positive number")


def check_at_least_one(name: str, value: Any) -> None:
    """Raise DataError unless the value is a whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise DataError(f"{name} is {value!r}; it must be a whole number from 1 on")
