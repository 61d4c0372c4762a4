"""Theorem 1 along a stream: the risk of new labels on unseen rows, and its bound after every batch."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from streamlabel.data.streams import LabelStream
from streamlabel.errors import DataError
from streamlabel.experiments.bounds_records import BoundsRecord, named
from streamlabel.experiments.records import Key
from streamlabel.experiments.rows import learnable, unit_rows
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.trials import LAM
from streamlabel.theory.excess_risk import clipped_loss, printed_terms, risk_bound
from streamlabel.types import CSR, Dataset, FloatArray

__all__ = ["risk_records"]


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
                n_new = int(ends[named(key)["batch"] - 1])
                seen, unseen = (X[rows], answers[:, :n_new]), (X_test, test.Y[:, arriving[:n_new]])
                yield _record(key, seen, unseen, len(past), _stacked(helped), helped.structure_, _stacked(alone))


def _record(
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
        **named(key),
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
