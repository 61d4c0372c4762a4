"""Explanations: why a text got its score for a label."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.tagging.learn_report import unknown_words
from streamlabel.tagging.vectorizers import words_at
from streamlabel.types import FloatArray, IntArray

N_WORDS = 10  # shown on each side, where nobody says how many
NO_WORDS = "the vectoriser has no words for its columns; only the neighbours can be told"
NO_KNOWN_WORD = "the text has no word that the tagger knows, so no label is a yes; the score is that of any text"


class Neighbour(NamedTuple):
    """A label in the code of another: its weight there, and its own score for the text."""

    label: str
    weight: float
    score: float


@dataclass(frozen=True)
class Explanation:
    """An explanation of a score: ``score = intercept + sum of words_for + sum of words_against + others``.

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

    @property
    def yes(self) -> bool:
        """Whether the label is a yes: never for a text without a known word."""
        return self.note != NO_KNOWN_WORD and self.score > self.threshold


def explanation_data(found: Explanation) -> dict[str, Any]:
    """Convert an explanation to JSON values, where pairs have names; a threshold may be infinite."""
    data = asdict(found)
    for side in ("words_for", "words_against"):
        data[side] = [{"word": word, "part": part} for word, part in getattr(found, side)]
    data["neighbours"] = [near._asdict() for near in found.neighbours]
    return data | {"yes": found.yes}


def explain_score(
    model: StreamingLabelClassifier, vectorizer: Any, text: str, row: Any, number: int, n_words: int
) -> Explanation:
    """Explain the score of a text, given as ``row`` (1, d): at most ``n_words`` per side, and as many neighbours."""
    label = model.state_.names[number]
    scores = model.decision_function(row)[0]
    columns, values = _entries(row)
    products = model.state_.classifiers.weights(np.array([number]))[columns, 0] * values
    intercept, score = float(model.state_.classifiers.intercept[number]), float(scores[number])
    words = words_at(vectorizer, text, columns)
    best, worst = _extremes(products, n_words) if words is not None else (columns[:0], columns[:0])
    shown = float(products[best].sum() + products[worst].sum())
    decisions = model.state_.decisions
    odds = decisions.slope[number] * score + decisions.offset[number]
    note = NO_KNOWN_WORD if not columns.size else NO_WORDS if words is None else ""
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
            Neighbour(name, weight, float(scores[model.state_.names.number(name)]))
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
