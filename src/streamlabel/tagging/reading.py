"""The reading half of a tagger: suggestions, decisions, explanations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array

from streamlabel.data.terms import check_texts
from streamlabel.data.text import TextVectorizer
from streamlabel.errors import DataError
from streamlabel.metrics.topk import check_k
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.inputs import canonical_rows
from streamlabel.streaming.state import ModelState
from streamlabel.tagging.explain import N_WORDS, Explanation, explain_score
from streamlabel.tagging.suggester import AT_ONCE, best_labels
from streamlabel.tagging.text_answers import filled_rows
from streamlabel.tagging.vectorizers import VectorizerState, vectorizer_state
from streamlabel.types import BoolArray, FloatArray


class ReadingTagger(BaseEstimator):
    """What a tagger says about texts, with a fitted vectoriser and a fitted classifier."""

    vectorizer_: Any
    classifier_: StreamingLabelClassifier

    @overload
    def suggest(self, texts: str, k: int = 5) -> list[tuple[str, float]]: ...  # type: ignore[overload-overlap]
    @overload
    def suggest(self, texts: Iterable[str], k: int = 5) -> list[list[tuple[str, float]]]: ...
    def suggest(self, texts: str | Iterable[str], k: int = 5) -> Any:
        """The k best labels with their scores, best first: [(name, score), ...], or a list of these for several texts.

        Scores order the labels; where they mean yes is the label's own threshold, which `predict` uses. A text without
        a known word scores as an empty one (`knows`).
        """
        if isinstance(texts, str):
            return self.suggest([texts], k)[0]
        return [found for found, _ in self.suggest_known(texts, k)]

    def suggest_known(self, texts: Iterable[str], k: int = 5) -> list[tuple[list[tuple[str, float]], bool]]:
        """For each text what `suggest` gives, and whether any word of it is known; if not, no label is a yes."""
        k = check_k(k)
        found: list[tuple[list[tuple[str, float]], bool]] = []
        for state, scores, known in self._scores(texts):
            found += zip(best_labels(state.names, scores, k), known.tolist(), strict=True)
        return found

    def predict(self, texts: Iterable[str]) -> list[list[str]]:
        """Predict, for each text, the labels whose score exceeds their threshold, in order of arrival.

        A text without a known word gets none.
        """
        return [
            [state.names[j] for j in np.flatnonzero(row).tolist()]
            for state, scores, known in self._scores(texts)
            for row in np.asarray((scores > state.decisions.thresholds) & known[:, None])
        ]

    def scores_of(self, texts: Iterable[str], labels: Iterable[str]) -> tuple[FloatArray, BoolArray]:
        """The scores (n, k) of some labels, and which texts have a known word, (n,)."""
        numbers = np.array([self._number(label) for label in labels], dtype=np.intp)
        X = self._features(check_texts(texts))
        return self.classifier_.state_.classifiers.scores(X, numbers), filled_rows(X)

    def knows(self, texts: Iterable[str]) -> list[bool]:
        """Whether the vectoriser finds a known word in each text; a text without one scores as an empty one."""
        self._check_fitted()
        return filled_rows(self._features(check_texts(texts))).tolist()

    def explain(self, text: str, label: str, n_words: int = N_WORDS) -> Explanation:
        """Explain a score: the words that spoke for and against a label, and what the labels that it resembles say."""
        number = self._number(label)
        if not isinstance(text, str):
            raise DataError(f"the text is of type {type(text).__name__}; it must be a string")
        return explain_score(self.classifier_, self.vectorizer_, text, self._features([text]), number, n_words)

    def neighbours(self, label: str, k: int = 5) -> list[tuple[str, float]]:
        """The labels that a label was learned to resemble, with signed weights."""
        self._check_fitted()
        return self.classifier_.neighbours(label, k)

    def vectorizer_state(self) -> VectorizerState:
        """The fitted vectoriser as plain data; one that the user brought along is only named."""
        self._check_fitted()
        return vectorizer_state(self.vectorizer_)

    @property
    def text_digests_(self) -> NDArray[np.uint8]:
        """The digests (n, 16) by which, and not by their words, the texts of `fit` are recognised."""
        self._check_fitted()
        return self._index.digests

    def _number(self, label: str) -> int:
        self._check_fitted()
        return self.classifier_.state_.names.number(str(label))

    def _scores(self, texts: Iterable[str]) -> Iterator[tuple[ModelState, FloatArray, BoolArray]]:
        """The model, scores (k, n_labels) of the texts, so many at a time, and whether they have known words, (k,)."""
        self._check_fitted()
        checked, state = check_texts(texts), self.classifier_.state_
        for start in range(0, len(checked), AT_ONCE):
            X = self._features(checked[start : start + AT_ONCE])
            yield state, state.classifiers.scores(X), filled_rows(X)

    def _features(self, texts: list[str]) -> Any:
        """The texts as float64 rows, sparse (csr_array) or dense, as the classifier keeps them."""
        rows = self.vectorizer_.transform(texts)
        if isinstance(self.vectorizer_, TextVectorizer):  # its rows need no check
            return canonical_rows(rows)
        return canonical_rows(check_array(rows, accept_sparse="csr", dtype=np.float64))

    def _no_rows(self) -> Any:
        return self._features([""])[:0]

    def _check_fitted(self) -> None:
        if not hasattr(self, "classifier_"):
            raise NotFittedError("this tagger knows no label yet; call fit first")
