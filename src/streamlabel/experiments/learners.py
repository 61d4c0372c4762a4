"""Ways to meet a batch of new labels: add it, learn it apart, learn everything again."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from streamlabel.baselines.leml import LEML
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.types import CSR, FloatArray


class Learner(Protocol):
    """A method at given hyper-parameters, from before a batch of labels arrives to its scores."""

    def start(self, X: CSR, Y_past: CSR) -> None:
        """What is done before the batch arrives."""
        ...

    def arrive(self, Y_new: CSR) -> None:
        """What has to be done when it arrives, answered on all rows of X: this is what is timed."""
        ...

    def change(self, **parameters: Any) -> None:
        """Other hyper-parameters for what comes next (`Method.at_arrival`, `Method.at_scoring`)."""
        ...

    def scores(self, X: CSR) -> FloatArray:
        """(n, k), of the labels of the last batch."""
        ...

    def cut(self) -> FloatArray | float | None:
        """What a score must exceed to be a yes, a label or for all; None where the method decides nothing."""
        ...


class Adding:
    """Past labels are fitted, new ones added; without past labels the batch is fitted.

    Every batch is added to the model of the past labels, not to the batch before it.
    """

    def __init__(self, model: StreamingLabelClassifier, *, coupled: bool = False) -> None:
        self._empty, self._coupled = model, coupled
        self._known: StreamingLabelClassifier | None = None

    def start(self, X: CSR, Y_past: CSR) -> None:
        self._X = X
        self._known = self._empty.fit(X, Y_past) if Y_past.shape[1] else None

    def arrive(self, Y_new: CSR) -> None:
        if self._known is None:
            self._model = self._empty.fit(self._X, Y_new)
        else:  # an arrival replaces what the model holds, never writes into it
            self._model = copy.copy(self._known).add_labels(self._X, Y_new, coupled=self._coupled)
        self._n_new = Y_new.shape[1]

    def change(self, **parameters: Any) -> None:
        self._empty.set_params(**parameters)  # the model of the past labels, once they are fitted

    def scores(self, X: CSR) -> FloatArray:
        found: FloatArray = self._model.decision_function(X)
        return found[:, -self._n_new :]

    def cut(self) -> FloatArray | float | None:
        return self._model.thresholds_[-self._n_new :]


class _Fitting:
    """A model is made and fitted when labels arrive."""

    _model: Any
    _n_new: int

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def change(self, **parameters: Any) -> None:
        self._model.set_params(**parameters)

    def cut(self) -> FloatArray | float | None:
        """The thresholds that the model has chosen, or the one it has for all labels."""
        chosen: FloatArray | None = getattr(self._model, "thresholds_", None)
        usual: float | None = getattr(self._model, "threshold", None)
        return usual if chosen is None else chosen[-self._n_new :]


class Apart(_Fitting):
    """The new labels are learned by themselves; nothing of the past is needed or used."""

    def start(self, X: CSR, Y_past: CSR) -> None:
        self._X = X

    def arrive(self, Y_new: CSR) -> None:
        self._model = self._make().fit(self._X, Y_new)
        self._n_new = Y_new.shape[1]

    def scores(self, X: CSR) -> FloatArray:
        return np.asarray(self._model.decision_function(X))


class Retraining(_Fitting):
    """All labels, past and new, are learned again, by a model of their own."""

    def start(self, X: CSR, Y_past: CSR) -> None:
        self._X, self._Y_past = X, Y_past

    def arrive(self, Y_new: CSR) -> None:
        self._model = self._make().fit(self._X, _all_labels(self._Y_past, Y_new))
        self._n_new = Y_new.shape[1]

    def scores(self, X: CSR) -> FloatArray:
        return np.asarray(self._model.decision_function(X))[:, -self._n_new :]


class Refitting(Retraining):
    """The same by one model, which keeps what depends on the rows alone from before (`LEML.prepare`)."""

    def __init__(self, model: LEML) -> None:
        super().__init__(lambda: model)
        self._model = model

    def start(self, X: CSR, Y_past: CSR) -> None:
        super().start(X, Y_past)
        self._model.prepare(X)


def _all_labels(Y_past: CSR, Y_new: CSR) -> CSR:
    labels = sparse.csr_array(sparse.hstack((Y_past, Y_new), format="csr"))
    labels.sort_indices()
    return labels
