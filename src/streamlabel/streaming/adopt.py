"""Adoption of existing linear models: their coefficients, checked, as the estimator keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier

from streamlabel.errors import DataError
from streamlabel.stats.spectral import dense
from streamlabel.types import FloatArray
from streamlabel.validation import check_label_names, default_label_names

_MARGINS = {"LinearSVC", "SVC", "NuSVC", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier"}


def checked_classifiers(
    coef: ArrayLike, intercept: ArrayLike | None, label_names: Iterable[str] | None
) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """Check coef (m, d) or (d,), intercept (m,) or None, and names; returns weights (d, m), intercepts (m,), names."""
    weights = np.array(coef, dtype=np.float64, ndmin=2).T
    offsets = np.zeros(weights.shape[1]) if intercept is None else np.array(intercept, dtype=np.float64).ravel()
    if offsets.shape != (weights.shape[1],):
        raise DataError(f"{offsets.size} intercepts for {weights.shape[1]} classifiers; give one a row of coef")
    if not (np.isfinite(weights).all() and np.isfinite(offsets).all()):
        raise DataError("coef or intercept contains NaN or infinity; such a model cannot be adopted")
    names = default_label_names(offsets.size) if label_names is None else label_names
    return weights, offsets, check_label_names(names, offsets.size)


def linear_parts(estimator: Any) -> tuple[FloatArray, FloatArray]:
    """The coefficients (m, d) and intercepts (m,) of a fitted scikit-learn linear model, one row per label.

    One-vs-rest and multi-output models are read part by part; a part with more than two classes, and the pairs of
    classes of a kernel machine, are not labels and are refused.
    """
    name = type(estimator).__name__
    if hasattr(estimator, "named_steps"):
        raise DataError(
            f"{name} is a chain of steps; pass its last one (pipeline[-1]), and rows as the others make them"
        )
    try:
        if isinstance(estimator, OneVsRestClassifier | MultiOutputClassifier):
            parts = [_coefficients(part) for part in estimator.estimators_]
            if any(len(coef) != 1 for coef, _ in parts):
                raise DataError(f"{name} has an output of more than two classes; give its labels as 0/1 columns")
            return np.vstack([coef for coef, _ in parts]), np.hstack([intercept for _, intercept in parts])
        coef, intercept = _coefficients(estimator)
    except AttributeError as error:
        todo = "fit it first" if not hasattr(estimator, "classes_") else "only linear models can be adopted"
        raise DataError(f"{name} has no linear coefficients ({error}); {todo} (see also from_coef)") from error
    if len(coef) > 1 and hasattr(estimator, "support_vectors_"):
        raise DataError(f"{name} has one classifier for each pair of classes; put it into OneVsRestClassifier")
    return coef, intercept


def scale_of(estimator: Any) -> str:
    """The loss whose scores are on the scale of this model's: log-odds, margins around -1 and 1, or answers 0 and 1.

    What is not known counts as the last. Ridge classifiers learn -1 and 1, so their scores are margins.
    """
    if isinstance(estimator, OneVsRestClassifier | MultiOutputClassifier):
        return scale_of(estimator.estimators_[0])
    kinds = {kind.__name__ for kind in type(estimator).__mro__}  # by name: importing them all takes long
    if "LogisticRegression" in kinds or getattr(estimator, "loss", None) == "log_loss":
        return "logistic"
    return "squared_hinge" if kinds & _MARGINS else "squared"


def _coefficients(estimator: Any) -> tuple[FloatArray, FloatArray]:
    coef = np.atleast_2d(dense(estimator.coef_))
    return coef, np.broadcast_to(np.ravel(dense(estimator.intercept_)), (len(coef),))
