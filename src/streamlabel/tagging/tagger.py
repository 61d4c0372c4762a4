"""The tagger: texts and label names in, label names with scores out; it learns new labels while in use."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array

from streamlabel.data.terms import check_texts
from streamlabel.errors import ConflictError, DataError, Hint
from streamlabel.metrics.topk import check_k
from streamlabel.store.append import write_model
from streamlabel.store.model_store import ModelStore
from streamlabel.store.parts import TEXTS, VECTORIZER, Part
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.inputs import canonical_rows
from streamlabel.streaming.state import ModelState
from streamlabel.tagging.explain import N_WORDS, Explanation, explain_score
from streamlabel.tagging.learn_report import LearnReport, report_label
from streamlabel.tagging.suggester import AT_ONCE, best_labels
from streamlabel.tagging.text_answers import (
    Answers,
    TextIndex,
    add_weak_answers,
    bounded_thresholds,
    check_known_words,
    filled_rows,
    gather_answers,
    read_answers,
    read_tags,
    stack_rows,
)
from streamlabel.tagging.vectorizers import VectorizerState, make_vectorizer, restore_vectorizer, vectorizer_state
from streamlabel.types import CSR, FloatArray
from streamlabel.validation import check_label_names


class Tagger(BaseEstimator):
    """A tagger of texts: it suggests label names with scores, and learns new labels while in use.

    It lives in memory, or, if `open` made it, in a directory that `save` wrote: then a label is on the disk when
    `learn` returns (`store`).

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

    vectorizer_: Any
    classifier_: StreamingLabelClassifier
    _store: ModelStore | None = None

    def __init__(self, vectorizer: Any = "tfidf", classifier: StreamingLabelClassifier | None = None) -> None:
        self.vectorizer = vectorizer
        self.classifier = classifier

    def fit(
        self, texts: Iterable[str], labels: Iterable[Iterable[str]] | ArrayLike | CSR, label_names: Any = None
    ) -> Self:
        """Learn labels from texts on which all of them were answered. Forgets everything learned before.

        labels : a list of names for each text; or a matrix (n, m) of 0/1, whose columns ``label_names`` names
        """
        if self._store is not None:
            raise ConflictError(f"this tagger lives in {self._store.path}; fit a new Tagger, and save it elsewhere")
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
        """Make a tagger of a fitted vectoriser (or its state) and a fitted classifier.

        digests : those of fit's texts (`text_digests_`), so that these are recognised
        brought : the fitted vectoriser, if the state only names one
        """
        state = isinstance(vectorizer, VectorizerState)
        fitted = restore_vectorizer(vectorizer, brought) if state else vectorizer
        if not hasattr(classifier, "state_"):
            raise DataError("the classifier is not fitted; fit it first")
        n_columns = getattr(fitted, "idf_", np.empty(classifier.n_features_in_)).shape[0]
        if n_columns != classifier.n_features_in_:
            raise DataError(
                f"the vectoriser makes {n_columns} columns and the classifier has {classifier.n_features_in_}; "
                "they do not belong together"
            )
        memory = classifier.state_.memory
        n_rows = 0 if memory is None else int(memory.X.shape[0])
        known = np.empty((0, 16), dtype=np.uint8) if digests is None or not n_rows else np.asarray(digests)
        if digests is not None and n_rows and known.shape != (n_rows, 16):
            raise DataError(f"{len(known)} digests of texts for {n_rows} rows; they do not belong together")
        tagger = cls(fitted, classifier)
        tagger._adopt(fitted, classifier, TextIndex(known))
        return tagger

    @property
    def label_names_(self) -> tuple[str, ...]:
        """The label names in order of arrival."""
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
        for state, scores in self._scores(texts):
            found += best_labels(state.names, scores, k)
        return found

    def predict(self, texts: Iterable[str]) -> list[list[str]]:
        """Predict, for each text, the labels whose score exceeds their threshold, in order of arrival."""
        return [
            [state.names[j] for j in np.flatnonzero(row).tolist()]
            for state, scores in self._scores(texts)
            for row in np.asarray(scores > state.decisions.thresholds)
        ]

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

    def learn(
        self, name: str, yes: Iterable[str | int], no: Iterable[str | int] = (), *, weak_no: int | None = None
    ) -> LearnReport:
        """Learn a new label. The others stay as they are, to the last bit of every score.

        yes, no : texts, or numbers of fit's texts, for which the answer is known
        weak_no : how many of fit's texts that nobody was asked about are taken for no, drawn at random, and the label
            kept from firing much more often than labels do (`tagging.text_answers`). None: as many as make 20 no for
            each yes, none if 100 no are given. 0: the answers are taken at their word.
        """
        return self.learn_many({name: (yes, no)}, weak_no=weak_no)[0]

    def learn_many(
        self, answers: Mapping[str, tuple[Iterable[str | int], Iterable[str | int]]], *, weak_no: int | None = None
    ) -> list[LearnReport]:
        """Learn several labels at once, ``{name: (yes, no)}``: all of them, or none if something is wrong."""
        begin = time.perf_counter()
        self._check_fitted()
        names = check_label_names(answers, len(answers))
        if not names:
            return []
        for name in names:
            if name in self.classifier_.state_.names:
                raise ConflictError(
                    f"label {name!r} is known already; choose another name, or relearn({name!r}, ...) with all of its "
                    "answers"
                )
        batch = self._read_batch(names, answers.values(), weak_no)
        grown = self._grown(self.classifier_, batch)
        if self._store is not None:
            self._store.append(grown)
            grown = self._store.settled(grown)
        self.classifier_ = grown
        return [report_label(self.classifier_, self.vectorizer_, one, time.perf_counter() - begin) for one in batch]

    def relearn(
        self, name: str, yes: Iterable[str | int], no: Iterable[str | int] = (), *, weak_no: int | None = None
    ) -> LearnReport:
        """Learn a label of `learn` anew, from these answers alone: give those it had, too.

        The others stay as they are. A label of `fit` was answered on every text; fit again to change it.
        """
        begin = time.perf_counter()
        number = self._number(name)
        state = self.classifier_.state_
        if state.memory is not None and number < state.n_fitted:
            raise ConflictError(f"label {name!r} was learned by fit, from all of its texts; fit again to change it")
        batch = self._read_batch((state.names[number],), [(yes, no)], weak_no)
        if self._store is None:
            smaller = copy.copy(self.classifier_)
            smaller.state_ = state.without(number)
            self.classifier_ = self._grown(smaller, batch)
        else:
            self._store.relearn(state.names[number], lambda past: self._grown(past, batch))
            self.classifier_ = self._store.model()
        return report_label(self.classifier_, self.vectorizer_, batch[0], time.perf_counter() - begin)

    def save(
        self, path: str | os.PathLike[str], *, keep_rows: bool = True, private: bool = True, actor: str = ""
    ) -> None:
        """Write the tagger into a new directory. This one goes on in memory; `open` goes on there.

        keep_rows : keep what is needed to learn labels there as well as here: the features of fit's texts and their
            answers; never the texts themselves. Without, a new label needs texts for yes and for no.

        private : nobody else on this machine may read the directory; False leaves that to the umask

        Weights are rounded to float32. A vectoriser of the user's own is not stored, only its name.
        """
        state = self.vectorizer_state()
        parts = {VECTORIZER: Part(state.content, state.arrays)}
        if keep_rows:
            parts[TEXTS] = Part({}, {"digests": self.text_digests_})
        write_model(Path(path), self.classifier_, keep_rows=keep_rows, parts=parts, private=private, actor=actor)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        mode: str = "r",
        *,
        vectorizer: Any = None,
        mapped: bool = True,
        actor: str = "",
    ) -> Self:
        """Open a saved tagger to read ("r") or to learn ("a"): then a label is on the disk when `learn` returns.

        vectorizer : the fitted one, or the function, if the tagger was saved with one of the user's own
        mapped : False reads the classifiers instead of mapping their files (`ModelStore.open`)
        """
        store = ModelStore.open(path, mode, mapped=mapped, actor=actor)
        try:
            return cls.of_store(store, vectorizer=vectorizer)
        except BaseException:
            store.close()
            raise

    @classmethod
    def of_store(cls, store: ModelStore, *, vectorizer: Any = None) -> Self:
        """Make the tagger of a store that is open already; it can learn if the store was opened to append."""
        names = store.parts()
        if VECTORIZER not in names:
            raise DataError("a model without texts", source=store.path, hint=Hint.TAKES_ROWS)
        part = store.get_part(VECTORIZER)
        digests = store.get_part(TEXTS).arrays.get("digests") if TEXTS in names and store.can_write else None
        tagger = cls.from_parts(
            VectorizerState(part.content, part.arrays),
            store.model(learning=store.can_write),
            digests=digests,
            brought=vectorizer,
        )
        tagger._store = store
        return tagger

    @property
    def store(self) -> ModelStore:
        """The store of this tagger: history, `rename`, `retire`, `rollback`; call `refresh` after a change there."""
        if self._store is None:
            raise ConflictError("this tagger lives in memory; save it, and open it where it was saved")
        return self._store

    def refresh(self) -> None:
        """Read the newest revision: after a change in the `store`, or, for a reader, by the writer."""
        self.store.refresh()
        self.classifier_ = self.store.model(learning=self.classifier_.state_.memory is not None)

    def close(self) -> None:
        """Close the store so that others can write; this tagger can be read on."""
        if self._store is not None:
            self._store.close()

    def __getstate__(self) -> Any:
        """A copy, or a pickle, lives in memory: it does not write where this one does."""
        return {name: value for name, value in super().__getstate__().items() if name != "_store"}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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

    def _scores(self, texts: Iterable[str]) -> Iterator[tuple[ModelState, FloatArray]]:
        """Scores (k, n_labels) of the texts, so many at a time, and the model that they all come from."""
        self._check_fitted()
        checked, state = check_texts(texts), self.classifier_.state_
        for start in range(0, len(checked), AT_ONCE):
            yield state, state.classifiers.scores(self._features(checked[start : start + AT_ONCE]))

    def _features(self, texts: list[str]) -> Any:
        """The texts as float64 rows, sparse (csr_array) or dense, as the classifier keeps them."""
        rows = self.vectorizer_.transform(texts)
        return canonical_rows(check_array(rows, accept_sparse="csr", dtype=np.float64))

    def _check_fitted(self) -> None:
        if not hasattr(self, "classifier_"):
            raise NotFittedError("this tagger knows no label yet; call fit first")

    def _adopt(self, vectorizer: Any, classifier: StreamingLabelClassifier, index: TextIndex) -> None:
        self.vectorizer_, self.classifier_, self._index = vectorizer, classifier, index

    def _read_batch(self, names: tuple[str, ...], given: Iterable[Any], weak_no: int | None) -> list[Answers]:
        if self._store is not None:
            self._store.check_writing()
            if self._store.label_names != self.label_names_:
                raise ConflictError(f"{self._store.path} was changed since it was read; call refresh() first")
        n_rows, seed = self._index.n_rows, self.classifier_.random_state
        found = [read_answers(name, *_pair(name, sides), self._index) for name, sides in zip(names, given, strict=True)]
        return [add_weak_answers(answers, n_rows, weak_no, seed) for answers in found]

    def _grown(self, past: StreamingLabelClassifier, batch: list[Answers]) -> StreamingLabelClassifier:
        """A copy of the classifier that has learned these labels, too."""
        kept, model = past.state_.memory, copy.copy(past)
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


def _pair(name: str, sides: Any) -> tuple[Any, Any]:
    if not isinstance(sides, Sequence) or isinstance(sides, str) or len(sides) != 2:
        raise DataError(f"label {name!r}: give its answers as two lists, (yes, no)")
    return sides[0], sides[1]
