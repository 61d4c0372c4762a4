"""Export as a plain scikit-learn estimator with the model's weights: it predicts the same, without streamlabel.

scikit-learn says yes if a decision exceeds zero and has one number per label for it, where we have scores, thresholds
and probabilities. So there are three forms, and each keeps one of them exactly.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import LabelBinarizer

from streamlabel.data.files import replacing
from streamlabel.errors import DataError, MissingExtraError
from streamlabel.exchange.linear import LinearModel, linear_model

KEPT = ("decisions", "scores", "probabilities")


def to_sklearn(model: Any, *, keep: str = "decisions") -> Any:
    """Make a fitted scikit-learn estimator of the same labels, in the order of `label_names_`.

    Parameters
    ----------
    keep : which numbers must be ours.
        "decisions": a RidgeClassifier whose `predict` is ours; `decision_function` is score - threshold.
        "scores": a RidgeClassifier whose `decision_function` is ours, for rankings; `predict` says yes above 0.
        "probabilities": a OneVsRestClassifier of LogisticRegressions, whose `predict_proba` is ours.

    Save it as you save other estimators: ``skops.io.dump`` (which `export` uses), or joblib if you trust the reader.
    The names are in ``label_names_``.
    """
    if keep not in KEPT:
        raise DataError(f"keep is {keep!r}; use one of {', '.join(map(repr, KEPT))}")
    parts = linear_model(model)
    estimator = _one_vs_rest(parts) if keep == "probabilities" else _ridge(parts, shifted=keep == "decisions")
    estimator.label_names_ = list(parts.label_names)
    estimator.n_features_in_ = int(parts.coef.shape[1])
    return estimator


def export_sklearn(model: Any, path: str | os.PathLike[str], *, keep: str = "decisions") -> None:
    """Write the estimator of `to_sklearn` with skops: ``skops.io.load(path)`` need not trust any type of ours."""
    estimator = to_sklearn(model, keep=keep)
    try:
        from skops.io import dumps
    except ImportError:
        raise MissingExtraError("skops", "skops", "a scikit-learn estimator in a file without pickle") from None
    content = dumps(estimator)
    with replacing(path) as handle:
        handle.write(content)


def _ridge(parts: LinearModel, *, shifted: bool) -> Any:
    estimator = RidgeClassifier()
    estimator.coef_ = np.array(parts.coef)
    estimator.intercept_ = parts.intercept - parts.thresholds if shifted else np.array(parts.intercept)
    estimator._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(_indicator(len(parts.label_names)))
    if not hasattr(estimator, "classes_"):  # an attribute since scikit-learn 1.9, before that a property
        estimator.classes_ = estimator._label_binarizer.classes_
    return estimator


def _one_vs_rest(parts: LinearModel) -> Any:
    estimator = OneVsRestClassifier(LogisticRegression())
    estimator.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(_indicator(len(parts.label_names)))
    estimator.estimators_ = []
    for weights, offset, slope, shift in zip(parts.coef, parts.intercept, parts.slope, parts.offset, strict=True):
        label = LogisticRegression()
        label.classes_ = np.array([0, 1])
        label.coef_, label.intercept_ = slope * weights[None, :], np.array([slope * offset + shift])
        label.n_features_in_ = len(weights)
        label.n_iter_ = np.array([0])
        estimator.estimators_.append(label)
    return estimator


def _indicator(n_labels: int) -> Any:
    """The smallest y of so many labels; one label is a vector, as everywhere in scikit-learn."""
    return np.array([0, 1]) if n_labels == 1 else np.repeat([[0], [1]], n_labels, axis=1)
