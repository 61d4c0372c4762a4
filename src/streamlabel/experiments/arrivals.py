"""Let the labels of a set arrive in batches with few answers each, with and without the help of the past."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from streamlabel.data.news import make_news_corpus
from streamlabel.data.streams import LabelStream, annotated_rows, dated_stream, random_stream
from streamlabel.data.text import TextVectorizer
from streamlabel.errors import DataError
from streamlabel.experiments.rows import learnable, unit_rows
from streamlabel.metrics.evaluate import evaluate
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.types import Dataset, IntArray

__all__ = ["ArrivalSettings", "BatchRecord", "DemoResult", "Measures", "Neighbours", "corpus_sets", "run_arrivals"]


@dataclass(frozen=True)
class ArrivalSettings:
    """How the labels arrive: a share of past labels, the number of batches, the answers given for each new label."""

    past_share: float = 0.6
    n_batches: int = 6
    budget: int = 100
    seed: int = 0


@dataclass(frozen=True)
class Measures:
    """In percent, over the new labels that have arrived so far, on rows that no model has seen."""

    p1: float
    p3: float
    p5: float
    auc: float


@dataclass(frozen=True)
class Neighbours:
    """A new label, its yes answers, and the signed weights of the past labels in its code, strongest first."""

    label: str
    n_yes: int
    code: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class BatchRecord:
    """What was measured after one batch."""

    labels: tuple[str, ...]
    n_known: int
    with_past: Measures
    alone: Measures
    ms_per_label: float
    ms_per_label_alone: float
    neighbours: tuple[Neighbours, ...]


@dataclass(frozen=True)
class DemoResult:
    """The whole run. ``fingerprint`` is the SHA-256 of the past labels' scores on the test rows, before and after."""

    source: str
    n_train: int
    n_test: int
    n_features: int
    n_past: int
    n_skipped: int
    settings: ArrivalSettings
    fit_seconds: float
    batches: tuple[BatchRecord, ...]
    fingerprint_before: str
    fingerprint_after: str

    @property
    def old_unchanged(self) -> bool:
        return self.fingerprint_before == self.fingerprint_after


def corpus_sets(seed: int, n_texts: int = 3000, test_share: float = 1 / 3) -> tuple[Dataset, Dataset]:
    """The embedded corpus as a training and a test part, tf-idf fitted on the training texts only."""
    corpus = make_news_corpus(n_texts, random_state=seed)
    order = np.random.default_rng(seed).permutation(corpus.n_rows)
    n_test = int(corpus.n_rows * test_share)
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    vectorizer = TextVectorizer().fit([corpus.texts[i] for i in train])

    def part(rows: IntArray) -> Dataset:
        return Dataset(
            X=vectorizer.transform([corpus.texts[i] for i in rows]),
            Y=corpus.Y[rows],
            label_names=corpus.label_names,
            row_dates=None if corpus.row_dates is None else corpus.row_dates[rows],
            source="the embedded news corpus",
        )

    return part(train), part(test)


def run_arrivals(
    train: Dataset,
    test: Dataset,
    settings: ArrivalSettings,
    progress: Callable[[int, int], None] = lambda done, total: None,
    on_batch: Callable[[BatchRecord], None] = lambda record: None,
) -> DemoResult:
    """Fit the past labels, let the others arrive, measure after every batch.

    Labels arrive by date where the rows have dates, else in random order. Each new label is answered on ``budget``
    rows of its own (at least one yes among them, as from a user who names a label because of an example); everything
    else is unknown. Labels without a yes and a no among the training rows cannot be learned and are counted.
    """
    if settings.budget > train.n_rows:
        raise DataError(f"{settings.budget} answers a label; there are {train.n_rows} training rows: ask for fewer")
    X, X_test = unit_rows(train.X), unit_rows(test.X)
    stream, n_skipped = _stream(train, settings)
    names = train.label_names
    start = time.perf_counter()
    helped = StreamingLabelClassifier().fit(X, train.Y[:, stream.past], [names[j] for j in stream.past])
    fit_seconds = time.perf_counter() - start
    alone = copy.copy(helped).set_params(
        lam=None, metric=None
    )  # the same past labels; an arrival replaces, never writes
    n_past = len(stream.past)
    before = _fingerprint(helped, X_test, n_past)
    asked = annotated_rows(
        train.Y[:, stream.arriving], settings.budget, how="random", stratify=True, random_state=settings.seed
    )
    records: list[BatchRecord] = []
    done = 0
    for batch in stream.batches:
        cells = asked[:, done : done + len(batch)]
        ms = _arrive(helped, X, train, batch, cells)
        ms_alone = _arrive(alone, X, train, batch, cells)
        done += len(batch)
        truth = test.Y[:, stream.arriving[:done]]
        records.append(
            BatchRecord(
                labels=tuple(names[j] for j in batch),
                n_known=n_past + done,
                with_past=_measure(helped, X_test, truth, n_past),
                alone=_measure(alone, X_test, truth, n_past),
                ms_per_label=ms,
                ms_per_label_alone=ms_alone,
                neighbours=tuple(
                    Neighbours(report.label, report.n_yes, _visible(helped.neighbours(report.label)))
                    for report in helped.reports_[-len(batch) :]
                ),
            )
        )
        on_batch(records[-1])
        progress(done, len(stream.arriving))
    return DemoResult(
        source=train.source,
        n_train=train.n_rows,
        n_test=test.n_rows,
        n_features=train.n_features,
        n_past=n_past,
        n_skipped=n_skipped,
        settings=settings,
        fit_seconds=fit_seconds,
        batches=tuple(records),
        fingerprint_before=before,
        fingerprint_after=_fingerprint(helped, X_test, n_past),
    )


def _stream(train: Dataset, settings: ArrivalSettings) -> tuple[LabelStream, int]:
    if not 0.0 < settings.past_share < 1.0:
        raise DataError(f"the share of past labels is {settings.past_share:g}; it must lie between 0 and 1")
    able = learnable(train.Y)
    n_past = round(settings.past_share * len(able))
    if not 0 < n_past < len(able):
        raise DataError(f"only {len(able)} labels have both answers in the training rows; nothing can arrive")
    kept = train.take_labels(able)
    n_batches = min(settings.n_batches, len(able) - n_past)
    if train.row_dates is not None:
        stream = dated_stream(kept, n_past=n_past, n_batches=n_batches)
    else:
        stream = random_stream(len(able), n_past, n_batches=n_batches, random_state=settings.seed)
    back = LabelStream(able[stream.past], tuple(able[batch] for batch in stream.batches))
    return back, train.n_labels - len(able)


def _arrive(
    model: StreamingLabelClassifier, X: sparse.csr_array, train: Dataset, batch: IntArray, cells: sparse.csc_array
) -> float:
    """Add the labels one by one, each with its own annotated rows; milliseconds a label."""
    start = time.perf_counter()
    for position, label in enumerate(batch):
        rows = cells.indices[cells.indptr[position] : cells.indptr[position + 1]]
        model.add_labels(X, train.Y[:, [label]], [train.label_names[label]], annotated=rows)
    return 1000.0 * (time.perf_counter() - start) / len(batch)


def _measure(model: StreamingLabelClassifier, X: sparse.csr_array, truth: sparse.csr_array, n_past: int) -> Measures:
    found = evaluate(truth, model.decision_function(X)[:, n_past:], metrics=["P@k", "macro_auc"])
    return Measures(*(100.0 * found[name] for name in ("P@1", "P@3", "P@5", "macro_auc")))


def _visible(code: list[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """What does not round to zero at two digits."""
    return tuple((name, weight) for name, weight in code if abs(weight) >= 0.005)


def _fingerprint(model: StreamingLabelClassifier, X: sparse.csr_array, n_past: int) -> str:
    return hashlib.sha256(np.ascontiguousarray(model.decision_function(X)[:, :n_past]).tobytes()).hexdigest()
