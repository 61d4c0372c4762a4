"""The linear model that every export format is made of: scores, thresholds, names; and its arrays in files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamlabel._version import __version__
from streamlabel.data.files import replacing
from streamlabel.data.npz import write_members
from streamlabel.errors import DataError, MissingExtraError
from streamlabel.store.assemble import facts_of_model
from streamlabel.store.stored_model import StoredModel
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.trials import LabelReport
from streamlabel.tagging.tagger import Tagger
from streamlabel.types import FloatArray


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model: ``scores = X coef' + intercept``; yes above the threshold.

    coef : (m, d);   intercept, thresholds, slope, offset : (m,);   P(yes) = sigmoid(slope * score + offset)
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
    facts, labels = facts_of_model(classifier), classifier.state_.labels(answers=False)
    neighbours = tuple(
        tuple(sorted(((classifier.label_names_[int(j)], float(s)) for j, s in zip(*code, strict=True)), key=_size))
        for code in map(labels.code, range(len(labels.names)))
    )
    return LinearModel(
        labels.names,
        (labels.weights if isinstance(labels.weights, np.ndarray) else labels.weights.toarray()).T,
        labels.intercept,
        labels.decisions.thresholds,
        labels.decisions.slope,
        labels.decisions.offset,
        labels.reports,
        neighbours,
        None if facts.feature_names is None else tuple(facts.feature_names),
    )


def classifier_of(model: Any) -> StreamingLabelClassifier:
    """The classifier inside a tagger, a stored model, or itself."""
    if isinstance(model, StoredModel):
        return model.model(learning=False)
    if isinstance(model, Tagger):
        if not hasattr(model, "classifier_"):
            raise DataError("the tagger knows no label yet; fit it before it is exported")
        return model.classifier_
    if isinstance(model, StreamingLabelClassifier):
        return model
    raise DataError(f"{type(model).__name__} cannot be exported; give a StreamingLabelClassifier or a Tagger")


def _size(neighbour: tuple[str, float]) -> float:
    return -abs(neighbour[1])


def export_npz(model: Any, path: str | os.PathLike[str], *, dtype: str = "float64") -> None:
    """Write the model as numpy arrays (``.npz``).

    ``label_names`` (unicode), ``coef`` (m, d), ``intercept``, ``thresholds``, ``slope``, ``offset`` (m,).
    ``scores = X @ coef.T + intercept``; the last two give probabilities, ``1 / (1 + exp(-(slope * scores + offset)))``.
    """
    parts = linear_model(model)
    with replacing(path) as handle:
        write_members(handle, {"label_names": np.array(parts.label_names), **arrays_of(parts, dtype)})


def arrays_of(parts: LinearModel, dtype: str) -> dict[str, Any]:
    """The numbers of a model as contiguous arrays, float64 or float32."""
    if dtype not in ("float64", "float32"):
        raise DataError(f"dtype is {dtype!r}; use 'float64' or 'float32'")
    names = ("coef", "intercept", "thresholds", "slope", "offset")
    return {name: np.ascontiguousarray(getattr(parts, name), dtype=dtype) for name in names}


def export_safetensors(model: Any, path: str | os.PathLike[str], *, dtype: str = "float64") -> None:
    """Write the arrays of `export_npz` as safetensors; ``label_names`` are a JSON list in the metadata."""
    parts = linear_model(model)
    try:
        from safetensors.numpy import save
    except ImportError:
        raise MissingExtraError("safetensors", "safetensors", "a safetensors file") from None
    metadata = {
        "format": "np",
        "producer": f"streamlabel {__version__}",
        "label_names": json.dumps(parts.label_names, ensure_ascii=False),
    }
    content = save(arrays_of(parts, dtype), metadata=metadata)
    with replacing(path) as handle:
        handle.write(content)
