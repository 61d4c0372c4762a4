"""Why a text got its score for a label, and the best labels of a text.

The best labels of many rows in little memory: scores are made block by block and never kept.

A row keeps its k best so far and the lowest of these, its level; of a block only the scores that reach the level are
looked at. They are sorted in when as many labels were seen since as before, so a row has about k of them each time.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from streamlabel.metrics.topk import check_k, top_k_of_block
from streamlabel.streaming.blocks import BLOCK, ClassifierBlocks
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.tagging.learn_report import unknown_words
from streamlabel.tagging.vectorizers import words_at
from streamlabel.types import CSR, FloatArray, IntArray

N_WORDS = 10  # shown on each side, where nobody says how many
NO_WORDS = "the vectoriser has no words for its columns; only the neighbours can be told"
NO_KNOWN_WORD = "the text has no word that the tagger knows; the score is what it says about any text"


class Neighbour(NamedTuple):
    """A label in the code of another: its weight there, and its own score for the text."""

    label: str
    weight: float
    score: float


@dataclass(frozen=True)
class Explanation:
    """Why a text got its score: ``score = intercept + sum of words_for + sum of words_against + others``.

    words_for, words_against : (word, weight times value), strongest first
    others : what the words that are not listed add up to
    neighbours : labels that this one was learned to resemble, if any, with what they say about the text
    note : what could not be told, or ""
    unknown_words : the words of the text that the vectoriser does not know; they say nothing
    """

    label: str
    score: float
    threshold: float
    probability: float
    intercept: float
    words_for: tuple[tuple[str, float], ...]
    words_against: tuple[tuple[str, float], ...]
    others: float
    neighbours: tuple[Neighbour, ...]
    note: str = ""
    unknown_words: tuple[str, ...] = ()


def explanation_data(found: Explanation) -> dict[str, Any]:
    """An explanation as it is written in JSON, where pairs have names; a threshold may be infinite."""
    data = asdict(found)
    for side in ("words_for", "words_against"):
        data[side] = [{"word": word, "part": part} for word, part in getattr(found, side)]
    data["neighbours"] = [near._asdict() for near in found.neighbours]
    return data | {"yes": found.score > found.threshold}


def explain_score(
    model: StreamingLabelClassifier, vectorizer: Any, text: str, row: Any, number: int, n_words: int
) -> Explanation:
    """``row`` is the text as (1, d); at most ``n_words`` on each side, and as many neighbours."""
    label = model._names[number]
    scores = model.decision_function(row)[0]
    columns, values = _entries(row)
    products = model._classifiers.weights(np.array([number]))[columns, 0] * values
    intercept, score = float(model._classifiers.intercept[number]), float(scores[number])
    words = words_at(vectorizer, text, columns)
    best, worst = _extremes(products, n_words) if words is not None else (columns[:0], columns[:0])
    shown = float(products[best].sum() + products[worst].sum())
    decisions = model._decisions
    odds = decisions.slope[number] * score + decisions.offset[number]
    note = NO_WORDS if words is None else NO_KNOWN_WORD if not columns.size else ""
    return Explanation(
        label,
        score,
        float(decisions.thresholds[number]),
        float(expit(odds)),
        intercept,
        tuple((words[i], float(products[i])) for i in best) if words is not None else (),
        tuple((words[i], float(products[i])) for i in worst) if words is not None else (),
        float(products.sum()) - shown,
        tuple(
            Neighbour(name, weight, float(scores[model._numbers[name]]))
            for name, weight in model.neighbours(label, k=n_words)
        ),
        note,
        tuple(unknown_words(vectorizer, [text])),
    )


def _entries(row: Any) -> tuple[IntArray, FloatArray]:
    """The columns of one row that are not zero, and their values."""
    if isinstance(row, np.ndarray):
        columns = np.flatnonzero(row[0])
        return columns, row[0, columns]
    found = np.flatnonzero(row.data)
    return row.indices[found], row.data[found]


def _extremes(products: FloatArray, n_words: int) -> tuple[IntArray, IntArray]:
    order = np.argsort(-products, kind="stable")
    positive = order[products[order] > 0][:n_words]
    negative = order[::-1][products[order[::-1]] < 0][:n_words]
    return positive, negative


MOST_WAITING = 256  # scores a row on average,
MOST_LABELS = 1024  # and labels, before those that wait are sorted in
BYTES_A_ROW = 24 * (MOST_LABELS + MOST_WAITING + BLOCK)


def top_labels(classifiers: ClassifierBlocks, X: CSR | FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """The k best labels of each row and their scores, (n, min(k, m)) each, best first; ties go to the older label.

    The same as the first columns of a sort of ``classifiers.scores(X)``, in about `BYTES_A_ROW` bytes a row for small
    k, however many labels there are.
    """
    best = BestLabels(int(X.shape[0]), min(check_k(k), classifiers.n_labels))
    for labels, scores in classifiers.label_blocks(X):
        best.add(labels, scores)
    return best.result()


def labels_above(
    classifiers: ClassifierBlocks, X: CSR | FloatArray, thresholds: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Every (row, label, score) with a score above the label's threshold (m,), row by row, best first."""
    found = []
    for labels, scores in classifiers.label_blocks(X):
        rows, columns = np.nonzero(scores > thresholds[labels])
        found.append((rows, labels[columns], scores[rows, columns]))
    rows, labels, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((labels, -values, rows))
    return rows[order], labels[order], values[order]


class BestLabels:
    """The k best of each row so far; `add` the scores of further labels, then ask for the `result`."""

    def __init__(self, n_rows: int, k: int) -> None:
        self._labels: IntArray = np.full((n_rows, k), -1, dtype=np.int64)
        self._values: FloatArray = np.full((n_rows, k), -np.inf)
        self._waiting: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._n_waiting = self._n_seen = self._n_merged = 0

    def add(self, labels: IntArray, scores: FloatArray) -> None:
        n_rows, k = self._values.shape
        if not self._n_seen and k < len(labels):
            columns = top_k_of_block(scores, k)
            self._labels, self._values = labels[columns], np.take_along_axis(scores, columns, axis=1)
            self._n_seen = self._n_merged = len(labels)
            return
        reached = np.flatnonzero(scores >= self._values[:, -1:])
        rows, columns = np.divmod(reached, scores.shape[1])
        self._waiting.append((rows, labels[columns], scores[rows, columns]))
        self._n_waiting += len(rows)
        self._n_seen += len(labels)
        due = min(2 * self._n_merged, self._n_merged + MOST_LABELS)
        if self._n_seen >= due or self._n_waiting > MOST_WAITING * n_rows:
            self._merge()

    def result(self) -> tuple[IntArray, FloatArray]:
        self._merge()
        return self._labels, self._values

    def _merge(self) -> None:
        """Rows of different lengths side by side, filled up with what is never the best; then each is sorted."""
        n_rows, k = self._values.shape
        known = np.flatnonzero(self._labels >= 0)
        self._waiting.append((known // k, self._labels.ravel()[known], self._values.ravel()[known]))
        rows, labels, values = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        counts = np.bincount(rows, minlength=n_rows)
        place = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
        width = max(int(counts.max(initial=0)), k)
        all_labels, all_values = np.full((n_rows, width), -1), np.full((n_rows, width), -np.inf, values.dtype)
        all_labels[rows, place], all_values[rows, place] = labels[order], values[order]
        best = np.lexsort((all_labels, -all_values), axis=1)[:, :k]
        self._labels = np.take_along_axis(all_labels, best, axis=1)
        self._values = np.take_along_axis(all_values, best, axis=1)
        self._waiting, self._n_waiting, self._n_merged = [], 0, self._n_seen
