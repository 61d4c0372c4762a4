"""Texts and label names in, label names with scores out; a tagger that learns new labels while it is in use."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from streamlabel._validation import check_label_names
from streamlabel.data.text import check_texts
from streamlabel.exceptions import ConflictError, DataError
from streamlabel.models.forget import without_label
from streamlabel.models.learn_report import LearnReport, report_label
from streamlabel.models.snapshot import export_rows
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.models.suggester import TextSuggester
from streamlabel.models.text_answers import (
    Answers,
    TextIndex,
    check_known_words,
    gather_answers,
    read_answers,
    read_tags,
    stack_rows,
)
from streamlabel.models.vectorizers import VectorizerState, make_vectorizer, restore_vectorizer, vectorizer_state
from streamlabel.models.weak_answers import add_weak_answers, bounded_thresholds
from streamlabel.results import CSR

__all__ = ["MemoryTagger"]


class MemoryTagger(TextSuggester):
    """Texts and label names in, label names with scores out; new labels are learned while it is in use.

    `streamlabel.Tagger` is this with `save` and `open`.

    Parameters
    ----------
    vectorizer : "tfidf", "hashing", a scikit-learn vectoriser, or a function from a list of texts to rows (embeddings)
        Objects are cloned and fitted by `fit`; a function is used as it is (pass ``vectoriser.transform`` to keep one
        that is fitted already).
    classifier : StreamingLabelClassifier, cloned by `fit`; None for one with its defaults

    Attributes
    ----------
    label_names_ : tuple of str, in order of arrival
    vectorizer_, classifier_ : the fitted ones

    Examples
    --------
    >>> from streamlabel import Tagger
    >>> texts = ["bird flu found on a farm", "flu vaccine tested", "farm prices fall", "prices rise again"]
    >>> tagger = Tagger().fit(texts, [["health", "farming"], ["health"], ["farming", "economy"], ["economy"]])
    >>> [name for name, score in tagger.suggest("prices on the farm", k=2)]
    ['farming', 'economy']
    """

    def __init__(self, vectorizer: Any = "tfidf", classifier: StreamingLabelClassifier | None = None) -> None:
        self.vectorizer = vectorizer
        self.classifier = classifier

    def fit(
        self, texts: Iterable[str], labels: Iterable[Iterable[str]] | ArrayLike | CSR, label_names: Any = None
    ) -> Self:
        """Learn labels from texts on which all of them were answered. Forgets everything learned before.

        labels : a list of names for each text; or a matrix (n, m) of 0/1, whose columns ``label_names`` names
        """
        checked = check_texts(texts)
        Y, names = read_tags(labels, label_names, len(checked))
        classifier = StreamingLabelClassifier() if self.classifier is None else self.classifier
        if not isinstance(classifier, StreamingLabelClassifier):
            raise DataError(f"classifier is of type {type(classifier).__name__}; give a StreamingLabelClassifier")
        vectorizer = make_vectorizer(self.vectorizer, len(checked))
        learned = clone(classifier).fit(vectorizer.fit_transform(checked), Y, label_names=names)
        self._adopt(vectorizer, learned, TextIndex.of(checked))
        return self

    @classmethod
    def from_parts(
        cls,
        vectorizer: VectorizerState | Any,
        classifier: StreamingLabelClassifier,
        *,
        digests: NDArray[np.uint8] | None = None,
        brought: Any = None,
    ) -> Self:
        """A tagger of a fitted vectoriser (or its state) and a fitted classifier.

        digests : those of fit's texts (`text_digests_`), so that these are recognised
        brought : the fitted vectoriser, where the state only names one
        """
        state = isinstance(vectorizer, VectorizerState)
        fitted = restore_vectorizer(vectorizer, brought) if state else vectorizer
        if not hasattr(classifier, "_classifiers"):
            raise DataError("the classifier is not fitted; fit it first")
        n_columns = getattr(fitted, "idf_", np.empty(classifier.n_features_in_)).shape[0]
        if n_columns != classifier.n_features_in_:
            raise DataError(
                f"the vectoriser makes {n_columns} columns and the classifier has {classifier.n_features_in_}; "
                "they do not belong together"
            )
        rows = export_rows(classifier)
        n_rows = 0 if rows is None else int(rows.X.shape[0])
        known = np.empty((0, 16), dtype=np.uint8) if digests is None or not n_rows else np.asarray(digests)
        if digests is not None and n_rows and known.shape != (n_rows, 16):
            raise DataError(f"{len(known)} digests of texts for {n_rows} rows; they do not belong together")
        tagger = cls(fitted, classifier)
        tagger._adopt(fitted, classifier, TextIndex(known))
        return tagger

    def learn(
        self, name: str, yes: Iterable[str | int], no: Iterable[str | int] = (), *, weak_no: int | None = None
    ) -> LearnReport:
        """Learn a new label. The others stay as they are, to the last bit of every score.

        yes, no : texts, or numbers of fit's texts, for which the answer is known
        weak_no : how many of fit's texts that nobody was asked about are taken for no, drawn at random, and the label
            kept from firing much more often than labels do (`models.weak_answers`). None: as many as make 20 no for
            each yes, none where 100 no are given. 0: the answers are taken at their word.
        """
        return self.learn_many({name: (yes, no)}, weak_no=weak_no)[0]

    def learn_many(
        self, answers: Mapping[str, tuple[Iterable[str | int], Iterable[str | int]]], *, weak_no: int | None = None
    ) -> list[LearnReport]:
        """Learn several labels at once, ``{name: (yes, no)}``: all of them, or none where something is wrong."""
        begin = time.perf_counter()
        self._check_fitted()
        names = check_label_names(answers, len(answers))
        if not names:
            return []
        for name in names:
            if name in self.classifier_._numbers:
                raise ConflictError(
                    f"label {name!r} is known already; choose another name, or relearn({name!r}, ...) with all of its "
                    "answers"
                )
        batch = self._read_batch(names, answers.values(), weak_no)
        self._commit(self._grown(self.classifier_, batch))
        return [report_label(self.classifier_, self.vectorizer_, one, time.perf_counter() - begin) for one in batch]

    def relearn(
        self, name: str, yes: Iterable[str | int], no: Iterable[str | int] = (), *, weak_no: int | None = None
    ) -> LearnReport:
        """Learn a label of `learn` anew, from these answers alone: give those it had, too.

        The others stay as they are. A label of `fit` was answered on every text; fit again to change it.
        """
        begin = time.perf_counter()
        number = self._number(name)
        if self.classifier_._memory is not None and number < self.classifier_._n_fitted:
            raise ConflictError(f"label {name!r} was learned by fit, from all of its texts; fit again to change it")
        batch = self._read_batch((self.classifier_._names[number],), [(yes, no)], weak_no)
        self._replace(number, batch)
        return report_label(self.classifier_, self.vectorizer_, batch[0], time.perf_counter() - begin)

    def vectorizer_state(self) -> VectorizerState:
        """The fitted vectoriser as plain data; one that the user brought along is only named."""
        self._check_fitted()
        return vectorizer_state(self.vectorizer_)

    @property
    def text_digests_(self) -> NDArray[np.uint8]:
        """(n, 16): by these, and not by their words, the texts of `fit` are recognised."""
        self._check_fitted()
        return self._index.digests

    def _adopt(self, vectorizer: Any, classifier: StreamingLabelClassifier, index: TextIndex) -> None:
        self.vectorizer_, self.classifier_, self._index = vectorizer, classifier, index

    def _read_batch(self, names: tuple[str, ...], given: Iterable[Any], weak_no: int | None) -> list[Answers]:
        n_rows, seed = self._index.n_rows, self.classifier_.random_state
        found = [read_answers(name, *_pair(name, sides), self._index) for name, sides in zip(names, given, strict=True)]
        return [add_weak_answers(answers, n_rows, weak_no, seed) for answers in found]

    def _grown(self, past: StreamingLabelClassifier, batch: list[Answers]) -> StreamingLabelClassifier:
        """A copy of the classifier that has learned these labels, too."""
        kept, model = export_rows(past), copy.copy(past)
        asked = gather_answers(batch, self._index.n_rows)
        if asked.rows is None:
            assert kept is not None
            X = kept.X
        else:
            X = self._features(asked.texts)
            X = X if kept is None else stack_rows(kept.X[asked.rows], X)
        check_known_words(X, asked.labels, batch)
        model.add_labels(X, asked.labels, [answers.name for answers in batch], annotated=asked.cells)
        thresholds = model.thresholds_
        for number, threshold in bounded_thresholds(model, batch, kept, model.random_state).items():
            thresholds[number] = threshold
        model.thresholds_ = thresholds
        return model

    def _commit(self, grown: StreamingLabelClassifier) -> None:
        """Make the grown classifier the tagger's; nothing has changed before."""
        self.classifier_ = grown

    def _replace(self, number: int, batch: list[Answers]) -> None:
        """Learn a label again, without what it was."""
        self.classifier_ = self._grown(without_label(self.classifier_, number), batch)


def _pair(name: str, sides: Any) -> tuple[Any, Any]:
    if not isinstance(sides, Sequence) or isinstance(sides, str) or len(sides) != 2:
        raise DataError(f"label {name!r}: give its answers as two lists, (yes, no)")
    return sides[0], sides[1]
