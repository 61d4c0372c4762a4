"""A model as every format sees it: linear scores, thresholds, names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamlabel.exceptions import DataError
from streamlabel.models.reports import LabelReport
from streamlabel.models.snapshot import export_facts, export_labels
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.models.suggester import TextSuggester
from streamlabel.results import FloatArray
from streamlabel.store.stored_model import StoredModel

__all__ = ["LinearModel", "classifier_of", "linear_model"]


@dataclass(frozen=True, eq=False)
class LinearModel:
    """``scores = X coef' + intercept``; yes above the threshold; P(yes) = sigmoid(slope * score + offset).

    coef : (m, d);   intercept, thresholds, slope, offset : (m,)
    neighbours : for each label the labels in its code and their weights, the largest first
    """

    label_names: tuple[str, ...]
    coef: FloatArray
    intercept: FloatArray
    thresholds: FloatArray
    slope: FloatArray
    offset: FloatArray
    reports: tuple[LabelReport, ...]
    neighbours: tuple[tuple[tuple[str, float], ...], ...]
    feature_names: tuple[str, ...] | None = None


def linear_model(model: Any) -> LinearModel:
    """The parts of a fitted classifier, of the one inside a tagger, or of a stored one."""
    classifier = classifier_of(model)
    facts, labels = export_facts(classifier), export_labels(classifier, 0, answers=False)
    neighbours = tuple(
        tuple(sorted(((classifier.label_names_[int(j)], float(s)) for j, s in zip(*code, strict=True)), key=_size))
        for code in labels.codes
    )
    return LinearModel(
        labels.names,
        labels.weights.T,
        labels.intercept,
        labels.decisions.thresholds,
        labels.decisions.slope,
        labels.decisions.offset,
        labels.reports,
        neighbours,
        None if facts.feature_names is None else tuple(facts.feature_names),
    )


def classifier_of(model: Any) -> StreamingLabelClassifier:
    """The classifier inside what a user holds."""
    if isinstance(model, StoredModel):
        return model.model(learning=False)
    if isinstance(model, TextSuggester):
        if not hasattr(model, "classifier_"):
            raise DataError("the tagger knows no label yet; fit it before it is exported")
        return model.classifier_
    if isinstance(model, StreamingLabelClassifier):
        return model
    raise DataError(f"{type(model).__name__} cannot be exported; give a StreamingLabelClassifier or a Tagger")


def _size(neighbour: tuple[str, float]) -> float:
    return -abs(neighbour[1])
