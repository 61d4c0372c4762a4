"""What a model is, as plain data: exported for the store, imported again, or without one of its labels.

A fitted model as plain data, and back: what a store writes down, without knowing how the estimator works.

`export_model` gives what belongs to the whole model, `export_labels` its labels from some number on (so that one more
label costs one label), `import_model` puts a model together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from scipy import sparse

from streamlabel.classifier.ridge import HatSpectrum, PreparedRidge, make_ridge
from streamlabel.errors import DataError
from streamlabel.streaming.arrival import Decisions
from streamlabel.streaming.blocks import ClassifierBlocks, LabelNumbers, SharedList
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.kept_rows import FitMemory, LabelAnswers
from streamlabel.streaming.trials import LabelReport, Trial
from streamlabel.types import CSC, CSR, FloatArray, IntArray


@dataclass(frozen=True)
class ModelFacts:
    """What is said once about a model; values that JSON knows. beta and strength are None for adopted models."""

    parameters: dict[str, Any]
    n_features: int
    loss: str
    beta: float | None
    strength: float | None
    feature_names: list[str] | None = None


@dataclass(frozen=True, eq=False)
class LabelStates:
    """Labels of a model, k of them, the first being number ``first``.

    weights : (d, k);  codes : (label numbers, values) of each;  positives : for labels answered on every row of `fit`
    and allowed into codes by these answers, the positive rows; None for the others
    """

    first: int
    names: tuple[str, ...]
    weights: FloatArray
    intercept: FloatArray
    decisions: Decisions
    reports: tuple[LabelReport, ...]
    codes: tuple[tuple[IntArray, FloatArray], ...]
    positives: tuple[IntArray | None, ...]


@dataclass(frozen=True, eq=False)
class KeptRows:
    """What a model keeps to go on learning: the rows of `fit`, their answers, and how far the past can be trusted.

    labels : csr_array (n, f), the answers of the labels of `fit`;   atoms : (p,), those that may enter a code
    leave_one_out : (e, f), leverages : (e,), judged_rows : (e,): see `FitMemory`
    hat : what is known of the eigenvalues of the ridge of all rows
    """

    X: CSR | FloatArray
    labels: CSR
    atoms: IntArray
    judged_rows: IntArray
    leverages: FloatArray
    leave_one_out: FloatArray
    hat: HatSpectrum | None = None
    trials: dict[int, list[Trial]] = field(default_factory=dict)


class RidgeOnDemand:
    """The ridge of the rows of `fit` (`PreparedRidge`), factored when it is first asked for anything."""

    def __init__(self, X: CSR | FloatArray, beta: float, centre: bool, hat: HatSpectrum | None) -> None:
        self._rows, self.beta, self._centred, self._hat = X, beta, centre, hat
        self.n_rows = int(X.shape[0])
        self._made: PreparedRidge | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._made is None:
            self._made = make_ridge(self._rows, self.beta, centre=self._centred, hat=self._hat)
        return getattr(self._made, name)


def export_facts(model: StreamingLabelClassifier) -> ModelFacts:
    """What belongs to the whole model."""
    if not hasattr(model, "_classifiers"):
        raise DataError("the model is not fitted; fit it before it is stored")
    if model._classes_1d is not None:
        raise DataError("the model was fitted on a vector of classes; fit it on a 0/1 label matrix to store it")
    names = getattr(model, "feature_names_in_", None)
    return ModelFacts(
        {key: _plain(value) for key, value in model.get_params().items()},
        int(model.n_features_in_),
        model.loss_,
        float(model.beta_) if hasattr(model, "beta_") else None,
        float(model._strength) if np.isfinite(model._strength) else None,
        None if names is None else [str(name) for name in names],
    )


def export_labels(
    model: StreamingLabelClassifier, first: int, stop: int | None = None, *, answers: bool = True
) -> LabelStates:
    """The labels from number ``first`` on; ``answers`` False leaves their positive rows out."""
    stop = len(model._names) if stop is None else stop
    chosen = slice(first, stop)
    numbers = np.arange(first, stop)
    decisions = model._decisions
    return LabelStates(
        first,
        tuple(model._names[int(number)] for number in numbers),
        model._classifiers.weights(numbers),
        model._classifiers.intercept[chosen],
        Decisions(decisions.thresholds[chosen], decisions.slope[chosen], decisions.offset[chosen]),
        tuple(model._reports[int(number)] for number in numbers),
        tuple(_codes(model._codes, first, stop)),
        tuple(_positives(model._answers if answers else None, numbers)),
    )


def export_rows(model: StreamingLabelClassifier) -> KeptRows | None:
    """What is kept to go on learning; None for a model that was adopted."""
    memory, answers = model._memory, model._answers
    if memory is None or answers is None:
        return None
    atoms = answers.labels[answers.labels < model._n_fitted]
    return KeptRows(
        memory.X,
        memory._labels,
        atoms,
        memory.judged_rows,
        memory.leverages,
        memory.leave_one_out,
        getattr(model._ridge, "_hat", None),
        dict(memory._trials),
    )


def import_model(
    facts: ModelFacts,
    names: Sequence[str],
    classifiers: ClassifierBlocks,
    decisions: Decisions,
    reports: Sequence[LabelReport],
    codes: CSC,
    rows: KeptRows | None = None,
    later: Sequence[tuple[int, IntArray]] = (),
) -> StreamingLabelClassifier:
    """A model of these labels. ``later``: (label number, positive rows) of labels that arrived with all answers.

    Without ``rows`` it is like one that was adopted: labels can be added with rows of their own.
    """
    model = StreamingLabelClassifier.from_coef(np.zeros((1, 1)), **facts.parameters)  # then its labels are replaced
    model.n_features_in_ = facts.n_features
    if facts.feature_names is not None:
        model.feature_names_in_ = np.array(facts.feature_names, dtype=object)
    model._classifiers, model._decisions = classifiers, decisions
    model.loss_ = facts.loss
    if facts.beta is not None:
        model.beta_ = facts.beta
    model._strength = np.nan if facts.strength is None else facts.strength
    model._codes = (codes,)
    model._numbers, model._names = LabelNumbers.of(tuple(names)), SharedList.of(names)
    model._reports = SharedList.of(reports)
    model._n_fitted = len(names)
    if rows is not None:
        _remember_rows(model, rows, later)
    return model


def replace_classifiers(model: StreamingLabelClassifier, classifiers: ClassifierBlocks) -> None:
    """The same labels with these classifiers: those of a store, rounded as it keeps them."""
    model._classifiers = classifiers


def _remember_rows(model: StreamingLabelClassifier, rows: KeptRows, later: Sequence[tuple[int, IntArray]]) -> None:
    n_fitted = int(rows.labels.shape[1])
    model._n_fitted = n_fitted
    memory = FitMemory(rows.X, rows.labels, rows.leave_one_out, rows.judged_rows, rows.leverages, model.random_state)
    memory._trials.update(rows.trials)
    answers = LabelAnswers(rows.atoms, rows.labels if len(rows.atoms) == n_fitted else rows.labels[:, rows.atoms])
    for number, positives in later:
        answers = answers.appended(number, [positives])
    model._memory, model._answers = memory, answers
    if model.loss_ == "squared":
        model._ridge = cast(PreparedRidge, RidgeOnDemand(rows.X, model.beta_, model.fit_intercept, rows.hat))
    if model.dictionary == "all":
        model._scored = np.setdiff1d(np.arange(n_fitted, len(model._names)), answers.labels).astype(np.intp)


def _codes(blocks: Sequence[CSC], first: int, stop: int) -> list[tuple[IntArray, FloatArray]]:
    found: list[tuple[IntArray, FloatArray]] = []
    start = 0
    for block in blocks:
        end = start + block.shape[1]
        for number in range(max(first, start), min(stop, end)):
            span = slice(block.indptr[number - start], block.indptr[number - start + 1])
            found.append((block.indices[span], block.data[span]))
        start = end
    return found


def _positives(answers: LabelAnswers | None, numbers: IntArray) -> list[IntArray | None]:
    if answers is None:
        return [None] * len(numbers)
    places = {int(label): place for place, label in enumerate(answers.labels.tolist())}
    columns, whole = None, answers._whole
    found: list[IntArray | None] = []
    for number in numbers.tolist():
        place = places.get(number)
        if place is not None and place >= whole.shape[1]:
            found.append(answers._loose[place - whole.shape[1]])
        elif place is not None:
            columns = sparse.csc_array(whole) if columns is None else columns
            found.append(columns.indices[columns.indptr[place] : columns.indptr[place + 1]])
        else:
            found.append(None)
    return found


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def without_label(model: StreamingLabelClassifier, number: int) -> StreamingLabelClassifier:
    """The same model without label ``number``, which must not be one of `fit`. The others keep their classifiers.

    Codes of other labels lose their entry for it, as the relation has no other end any more.
    """
    kept = np.delete(np.arange(len(model._names)), number)
    states, rows = export_labels(model, 0), export_rows(model)
    later = [
        (int(place), states.positives[old])
        for place, old in enumerate(kept.tolist())
        if old >= model._n_fitted and states.positives[old] is not None
    ]
    taken = ClassifierBlocks(model._classifiers.n_features).appended(
        states.weights[:, kept], np.asarray(states.intercept)[kept]
    )
    decisions = states.decisions
    smaller = import_model(
        export_facts(model),
        [states.names[old] for old in kept.tolist()],
        taken,
        Decisions(decisions.thresholds[kept], decisions.slope[kept], decisions.offset[kept]),
        [states.reports[old] for old in kept.tolist()],
        sparse.csc_array(model.structure_[kept][:, kept]),
        None if rows is None else replace(rows, trials=dict(rows.trials)),
        later,  # type: ignore[arg-type]
    )
    smaller._ridge, smaller._memory = model._ridge, model._memory
    if rows is None:
        smaller._n_fitted = model._n_fitted - (number < model._n_fitted)
    return smaller
