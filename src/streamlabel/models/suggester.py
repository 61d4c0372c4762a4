"""The reading half of a tagger: labels for texts, and why."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, overload

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array

from streamlabel.data.text import check_texts
from streamlabel.exceptions import DataError, NotFoundError
from streamlabel.metrics.topk import check_k, top_k
from streamlabel.models.explain import N_WORDS, Explanation, explain_score
from streamlabel.models.inputs import canonical_rows
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.models.text_answers import filled_rows
from streamlabel.results import FloatArray

__all__ = ["TextSuggester"]

AT_ONCE = 1024


class TextSuggester(BaseEstimator):
    """What a tagger does with the labels that it knows: `suggest`, `predict`, `explain`."""

    vectorizer_: Any
    classifier_: StreamingLabelClassifier

    @property
    def label_names_(self) -> tuple[str, ...]:
        self._check_fitted()
        return self.classifier_.label_names_

    @overload
    def suggest(self, texts: str, k: int = 5) -> list[tuple[str, float]]: ...  # type: ignore[overload-overlap]
    @overload
    def suggest(self, texts: Iterable[str], k: int = 5) -> list[list[tuple[str, float]]]: ...
    def suggest(self, texts: str | Iterable[str], k: int = 5) -> Any:
        """The k best labels with their scores, best first: [(name, score), ...], or a list of these for several texts.

        Scores order the labels; where they mean yes is the label's own threshold, which `predict` uses. A text without
        a known word scores as an empty one (`knows`).
        """
        k = check_k(k)
        if isinstance(texts, str):
            return self.suggest([texts], k)[0]
        found: list[list[tuple[str, float]]] = []
        for scores in self._scores(texts):
            columns = top_k(scores, min(k, scores.shape[1]))
            best = np.take_along_axis(scores, columns, axis=1)
            found += [
                [(self.classifier_._names[int(j)], float(s)) for j, s in zip(*row, strict=True)]
                for row in zip(columns, best, strict=True)
            ]
        return found

    def predict(self, texts: Iterable[str]) -> list[list[str]]:
        """For each text the labels whose score exceeds their threshold, in order of arrival."""
        names, thresholds = self.label_names_, self.classifier_._decisions.thresholds
        return [
            [names[j] for j in np.flatnonzero(row)]
            for scores in self._scores(texts)
            for row in np.asarray(scores > thresholds)
        ]

    def knows(self, texts: Iterable[str]) -> list[bool]:
        """For each text whether the vectoriser finds anything in it; without a known word it scores as an empty one."""
        self._check_fitted()
        return filled_rows(self._features(check_texts(texts))).tolist()

    def explain(self, text: str, label: str, n_words: int = N_WORDS) -> Explanation:
        """The words that spoke for and against a label, and what the labels that it resembles say."""
        number = self._number(label)
        if not isinstance(text, str):
            raise DataError(f"the text is of type {type(text).__name__}; it must be a string")
        return explain_score(self.classifier_, self.vectorizer_, text, self._features([text]), number, n_words)

    def neighbours(self, label: str, k: int = 5) -> list[tuple[str, float]]:
        """The labels that a label was learned to resemble, with signed weights."""
        self._check_fitted()
        return self.classifier_.neighbours(label, k)

    def _number(self, label: str) -> int:
        self._check_fitted()
        label = unicodedata.normalize("NFC", str(label))
        if label not in self.classifier_._numbers:
            raise NotFoundError(f"no label is called {label!r}; label_names_ lists all {len(self.label_names_)}")
        return self.classifier_._numbers[label]

    def _scores(self, texts: Iterable[str]) -> Iterator[FloatArray]:
        """Scores (k, n_labels) of the texts, so many at a time."""
        self._check_fitted()
        checked = check_texts(texts)
        for start in range(0, len(checked), AT_ONCE):
            yield self.classifier_.decision_function(self._features(checked[start : start + AT_ONCE]))

    def _features(self, texts: list[str]) -> Any:
        """The texts as float64 rows, sparse (csr_array) or dense, as the classifier keeps them."""
        rows = self.vectorizer_.transform(texts)
        return canonical_rows(check_array(rows, accept_sparse="csr", dtype=np.float64))

    def _check_fitted(self) -> None:
        if not hasattr(self, "classifier_"):
            raise NotFittedError("this tagger knows no label yet; call fit first")
