"""Theorem 2: the distance of a stream to the solution of the whole problem, and its bounds."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np
from scipy import linalg

from streamlabel.data.streams import LabelStream
from streamlabel.errors import ConvergenceWarning
from streamlabel.experiments.bounds_records import DISTANCE, BoundsRecord, named
from streamlabel.experiments.random_problems import RANDOM, random_beta, random_problem, random_rows
from streamlabel.experiments.records import Key
from streamlabel.experiments.rows import learnable, unit_rows
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.trials import LAM
from streamlabel.theory.streaming_distance import (
    RowSpectrum,
    distance_bound,
    row_spectrum,
    solve_together,
    streaming_gradient,
)
from streamlabel.types import Dataset, FloatArray

__all__ = ["distances_of_stream", "random_record"]

_ROUNDING = 1e-7  # relative; what a distance may lie above its bound by arithmetic alone


def distances_of_stream(missing: list[Key], train: Dataset, stream: LabelStream) -> Iterator[BoundsRecord]:
    """All rows of a real set: the labels of `fit` learned each alone, the others in batches; once for every beta.

    Labels without a yes (or a no) on any row cannot be learned and are left out.
    """
    X = unit_rows(train.X)
    past, *batches = (labels[learnable(train.Y[:, labels])] for labels in (stream.past, *stream.batches))
    rows, answers = X.toarray(), train.Y[:, np.concatenate((past, *batches))].toarray().astype(np.float64)
    rows, answers = rows - rows.mean(axis=0), answers - answers.mean(axis=0)
    spectrum = row_spectrum(rows)
    for key in missing:
        model = StreamingLabelClassifier(beta=named(key)["beta"], lam=LAM, metric=None).fit(X, train.Y[:, past])
        for labels in batches:
            if labels.size:
                model.add_labels(X, train.Y[:, labels])
        yield _distance_record(key, rows, answers, model, len(past), spectrum)


def random_record(number: int, seed: int) -> BoundsRecord:
    """A random problem in the paper's form: answers -1/+1, no intercept, one label after another."""
    X, labels, n_past, start = random_problem(number, seed)
    beta = random_beta(number)
    key = (DISTANCE, RANDOM, random_rows(number), 0, number, beta, seed)
    model = StreamingLabelClassifier(beta=beta, lam=LAM, metric=None, start=start, fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the alternating start: the theorem holds for any past
        model.fit(X, labels[:, :n_past])
        for label in range(n_past, labels.shape[1]):
            model.add_labels(X, labels[:, [label]])
    return _distance_record(key, X, 2.0 * labels - 1.0, model, n_past, row_spectrum(X))


def _distance_record(
    key: Key, X: FloatArray, Y: FloatArray, model: StreamingLabelClassifier, n_past: int, spectrum: RowSpectrum
) -> BoundsRecord:
    beta, weights, structure = named(key)["beta"], model.coef_.T, model.structure_
    whole = solve_together(X, Y, structure, beta, spectrum)
    found = distance_bound(X, Y, structure, beta, weights, spectrum)
    distance, scale = float(linalg.norm(whole - weights)), float(linalg.norm(whole))
    codes = structure[:, n_past:]
    bounds = [min(bound, sys.float_info.max) for bound in (found.tight, found.printed)]
    slack = _ROUNDING * (scale + found.weights_norm)
    return BoundsRecord(
        **named(key),
        n_past=n_past,
        n_new=weights.shape[1] - n_past,
        actual=distance,
        bound=bounds[0],
        printed=bounds[1],
        held=sum(distance <= bound + slack for bound in bounds),
        checked=len(bounds),
        scale=scale,
        epsilon=float(linalg.norm(weights[:, n_past:] - weights @ codes.toarray())),
        code_norm=float(np.abs(codes.data).sum()),
        past_norm=float(linalg.norm(weights[:, :n_past])),
        weights_norm=found.weights_norm,
        curvature=found.curvature,
        gradient_norm=found.gradient_norm,
        cancelled=float(linalg.norm(streaming_gradient(weights, structure, n_past, beta))),
    )
