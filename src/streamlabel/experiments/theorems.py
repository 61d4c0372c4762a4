"""What the two theorems bound, measured: the distance of a stream to the whole problem, and the risk of new labels.

Theorem 2 is also checked on small random problems of every awkward kind, which are numbered.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from streamlabel.data.streams import LabelStream
from streamlabel.errors import ConvergenceWarning, DataError
from streamlabel.experiments.experiment import Key, named
from streamlabel.experiments.sets import learnable, unit_rows
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.trials import LAM
from streamlabel.theory.excess_risk import clipped_loss, printed_terms, risk_bound
from streamlabel.theory.streaming_distance import (
    RowSpectrum,
    distance_bound,
    row_spectrum,
    solve_together,
    streaming_gradient,
)
from streamlabel.types import CSR, Dataset, FloatArray, IntArray

RISK, DISTANCE = 1, 2
KEY = ("theorem", "dataset", "n_rows", "n_batches", "batch", "beta", "seed")
RANDOM = "random problems"
KINDS = ("plain", "copies of labels", "repeated features", "more features than rows", "rare labels", "unrelated labels")
_ROWS = (20, 40, 80)
_BETAS = (1e-3, 1e-1, 1.0, 10.0, 1e3)
_ROUNDING = 1e-7  # relative; what a distance may lie above its bound by arithmetic alone


@dataclass(frozen=True)
class BoundsRecord:
    """One bound and what it bounds. Theorem 1 counts a label, means over the labels that have arrived.

    n_rows : of learning
    n_batches, batch : of the stream; batches that have arrived (random problems: 0, and the number of the problem)
    beta : the strength; 0 where the model chose it (theorem 1)
    actual : theorem 1: risk on unseen rows less that on the rows of learning. Theorem 2: ``||Zh - Z||_F``
    bound, printed : the mended bound on ``actual``, and the paper's (theorem 1: its terms, without constants)
    held, checked : inequalities that held, and how many there were (theorem 1: one a label; theorem 2: both bounds)
    scale : theorem 1: the risk on the rows of learning. Theorem 2: ``||Zh||_F``
    epsilon, code_norm, past_norm, weights_norm : the norms of deviations, codes, past classifiers, all that is bounded
    own, past, confidence, alone : parts of ``bound``, and the same bound for own ridge (theorem 1 only)
    curvature, gradient_norm, cancelled : theorem 2 only; ``cancelled`` is ``||beta E S1'||_F``, equal to the gradient's
    """

    theorem: int
    dataset: str
    n_rows: int
    n_batches: int
    batch: int
    beta: float
    seed: int
    n_past: int
    n_new: int
    actual: float
    bound: float
    printed: float
    held: int
    checked: int
    scale: float
    epsilon: float
    code_norm: float
    past_norm: float
    weights_norm: float
    own: float = 0.0
    past: float = 0.0
    confidence: float = 0.0
    alone: float = 0.0
    curvature: float = 0.0
    gradient_norm: float = 0.0
    cancelled: float = 0.0


def random_rows(number: int) -> int:
    """How many rows problem ``number`` has."""
    return _ROWS[number % len(_ROWS)]


def random_beta(number: int) -> float:
    """The strength that problem ``number`` is solved with."""
    return _BETAS[number % len(_BETAS)]


def random_problem(number: int, seed: int) -> tuple[FloatArray, IntArray, int, str]:
    """Rows X (n, d), labels (n, m) of 0/1 with both answers in each, how many of them are past, how these are learned.

    Kinds, sizes and the start ("independent", "alternating") take turns with the number.
    """
    rng = np.random.default_rng((seed, number))
    kind, n_rows = KINDS[number % len(KINDS)], random_rows(number)
    n_features = n_rows + 5 if kind == "more features than rows" else int(rng.integers(2, 13))
    n_past, n_new = int(rng.integers(2, 9)), int(rng.integers(1, 6))
    X = rng.normal(size=(n_rows, n_features))
    if kind == "repeated features":
        X[:, -1] = X[:, 0]
    n_topics = 3
    topics = X @ rng.normal(size=(n_features, n_topics))
    wishes = topics @ rng.normal(size=(n_topics, n_past + n_new)) + 0.5 * rng.normal(size=(n_rows, n_past + n_new))
    if kind == "unrelated labels":
        wishes = rng.normal(size=wishes.shape)
    share = 0.1 if kind == "rare labels" else 0.4
    labels = (wishes > np.quantile(wishes, 1.0 - share, axis=0)).astype(np.int64)
    if kind == "copies of labels":
        labels[:, n_past] = labels[:, 0]
        labels[:, 1] = 1 - labels[:, 0]
    return X, labels, n_past, ("independent", "alternating")[number // len(KINDS) % 2]


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
        model = StreamingLabelClassifier(beta=named(KEY, key)["beta"], lam=LAM, metric=None).fit(X, train.Y[:, past])
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
    beta, weights, structure = named(KEY, key)["beta"], model.coef_.T, model.structure_
    whole = solve_together(X, Y, structure, beta, spectrum)
    found = distance_bound(X, Y, structure, beta, weights, spectrum)
    distance, scale = float(linalg.norm(whole - weights)), float(linalg.norm(whole))
    codes = structure[:, n_past:]
    bounds = [min(bound, sys.float_info.max) for bound in (found.tight, found.printed)]
    slack = _ROUNDING * (scale + found.weights_norm)
    return BoundsRecord(
        **named(KEY, key),
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


def risk_records(missing: list[Key], train: Dataset, test: Dataset, stream: LabelStream) -> Iterator[BoundsRecord]:
    """Past labels on one half of the rows, new ones on rows of the other half: the theorem takes the past as given.

    Only past labels may enter a code, so that new labels learned together are what they would be batch after batch.
    The strength is the one that was chosen for the past, on its half.
    """
    seed = missing[0][-1]
    X, X_test = unit_rows(train.X), unit_rows(test.X)
    order = np.random.default_rng(seed).permutation(train.n_rows)
    first, second = np.sort(order[: train.n_rows // 2]), order[train.n_rows // 2 :]
    past = stream.past[learnable(train.Y[first][:, stream.past])]
    known = X[first], train.Y[first][:, past]
    model = StreamingLabelClassifier(dictionary="fit", lam=LAM, metric=None, random_state=seed).fit(*known)
    model.set_params(beta=model.beta_).fit(*known)
    for size in sorted({key[2] for key in missing}):
        rows = np.sort(second[:size])
        able = [labels[learnable(train.Y[rows][:, labels])] for labels in stream.batches]
        arriving = np.concatenate(able)
        if not able[0].size:
            raise DataError(f"{missing[0][1]}: no label of the first batch has a yes and a no on {size} rows")
        answers = train.Y[rows][:, arriving]
        helped = copy.copy(model).add_labels(X[rows], answers)
        alone = copy.copy(model).set_params(lam=None).add_labels(X[rows], answers)
        ends = np.cumsum([len(labels) for labels in able])
        for key in missing:
            if key[2] == size:
                n_new = int(ends[named(KEY, key)["batch"] - 1])
                seen, unseen = (X[rows], answers[:, :n_new]), (X_test, test.Y[:, arriving[:n_new]])
                yield _risk_record(key, seen, unseen, len(past), _stacked(helped), helped.structure_, _stacked(alone))


def _risk_record(
    key: Key,
    seen: tuple[CSR, CSR],
    unseen: tuple[CSR, CSR],
    n_past: int,
    weights: FloatArray,
    structure: sparse.csc_array,
    alone: FloatArray,
) -> BoundsRecord:
    """The labels after the first ``n_past`` in ``weights`` (d + 1, ...) and ``alone``, as many as ``seen`` has."""
    X, targets = _with_ones(seen[0]), seen[1].toarray().astype(np.float64)
    n_new = targets.shape[1]
    here = slice(n_past, n_past + n_new)
    old, new, codes, own = weights[:, :n_past], weights[:, here], structure[:n_past, here], alone[:, here]
    printed, mended = printed_terms(X, new, old, codes), risk_bound(X, targets, new, old, codes)
    plain = risk_bound(X, targets, own, own[:, :0], np.zeros((0, n_new)))
    truth, scores = unseen[1].toarray().astype(np.float64), np.asarray(_with_ones(unseen[0]) @ new)
    found = clipped_loss(truth, scores).mean(axis=0)
    return BoundsRecord(
        **named(KEY, key),
        n_past=n_past,
        n_new=n_new,
        actual=float((found - mended.seen).mean()),
        bound=float(mended.gap.mean()),
        printed=(printed.representation + printed.confidence) / n_new,
        held=int((found <= mended.risk).sum()),
        checked=n_new,
        scale=float(mended.seen.mean()),
        epsilon=printed.epsilon,
        code_norm=printed.code_norm,
        past_norm=printed.past_norm,
        weights_norm=printed.weights_norm,
        own=float(mended.own.mean()),
        past=float(mended.past.mean()),
        confidence=float(mended.confidence.mean()),
        alone=float(plain.gap.mean()),
    )


def _stacked(model: StreamingLabelClassifier) -> FloatArray:
    return np.vstack((model.coef_.T, model.intercept_))


def _with_ones(X: CSR) -> CSR:
    return sparse.csr_array(sparse.hstack((X, sparse.csr_array(np.ones((X.shape[0], 1)))), format="csr"))
