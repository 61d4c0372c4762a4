"""Texts to numbers: tf-idf through scikit-learn, with a vocabulary that is saved as JSON.

A `TextVectorizer` is fitted once, on the texts of the past; texts that come later are transformed with the same
vocabulary. The saved form is one JSON document: a format number, the parameters, the terms in column order, the idf
weights. Reading it back gives transforms that are the same to the last bit, and runs no code from the file: that is
why parameters are plain values only, and why there is no ``token_pattern`` (a hostile one can hang the matcher).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from streamlabel.data.files import read_bytes, replacing
from streamlabel.data.rows import parse_json
from streamlabel.data.terms import FORMAT, KIND, TermRows, check_document, check_parameters, check_texts, word_pattern
from streamlabel.errors import DataError, Hint
from streamlabel.types import CSR, Dataset, TextDataset


class TextVectorizer(TransformerMixin, BaseEstimator):
    """tf-idf weights of words, each row of length 1. A scikit-learn transformer; every parameter is a plain value.

    Parameters
    ----------
    analyzer : "word", or "char_wb" for character n-grams inside words
    ngram_range : (shortest, longest), 1 to 10
    min_df, max_df : leave out terms in fewer (more) texts than this: a count (int) or a share of the texts (float)
    max_features : keep this many most frequent terms, of equally frequent ones those that come first in the alphabet;
        None keeps all
    sublinear_tf : 1 + log(count) in place of the count, so that a word said ten times does not weigh ten times
    lowercase, strip_accents : fold case; fold accents with "unicode" or "ascii", or None
    stop_words : None, "english", or a list of words to leave out
    numbers : whether words that begin with a digit ("2009", "32009r0123") are terms; "h5n1" always is. Only for words.
    dtype : "float32" or "float64"

    Attributes
    ----------
    terms_ : tuple of str, the term of each column
    idf_ : (n_terms,) inverse document frequency weights
    """

    def __init__(
        self,
        *,
        analyzer: str = "word",
        ngram_range: tuple[int, int] = (1, 1),
        min_df: int | float = 2,
        max_df: int | float = 1.0,
        max_features: int | None = 100_000,
        sublinear_tf: bool = True,
        lowercase: bool = True,
        strip_accents: str | None = "unicode",
        stop_words: str | Sequence[str] | None = None,
        numbers: bool = False,
        dtype: str = "float32",
    ) -> None:
        self.analyzer = analyzer
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.sublinear_tf = sublinear_tf
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.stop_words = stop_words
        self.numbers = numbers
        self.dtype = dtype

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Learn vocabulary and idf weights. ``y`` is not used."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> CSR:
        """Learn vocabulary and idf weights; X of these texts, (n_texts, n_terms)."""
        counter = self._make_counter()
        checked = check_texts(texts)
        if not checked:
            raise DataError("there are no texts to learn a vocabulary from")
        try:
            counts = counter.fit_transform(checked)
        except ValueError as error:
            problem = f"no vocabulary can be learnt from these {len(checked)} texts ({error})"
            raise DataError(problem, hint=Hint.VOCABULARY) from None
        terms = counter.get_feature_names_out()
        if self.max_features is not None and counts.shape[1] > self.max_features:
            kept = _most_frequent(counts, self.max_features)
            counts, terms = counts[:, kept], terms[kept]
        counts.sort_indices()
        self._adopt(terms, TfidfTransformer().fit(counts).idf_)
        return self._rows.weigh(counts)

    def transform(self, texts: Iterable[str]) -> CSR:
        """X of these texts, (n_texts, n_terms); terms outside the vocabulary count nothing."""
        self._check_fitted()
        return self._rows.transform(texts)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The terms, as scikit-learn wants them."""
        self._check_fitted()
        return np.array(self.terms_, dtype=object)

    def to_document(self) -> dict[str, Any]:
        """Parameters, vocabulary and idf weights, as values that JSON knows."""
        self._check_fitted()
        return {
            "kind": KIND,
            "format": FORMAT,
            "parameters": check_parameters(self.get_params(deep=False)),
            "terms": list(self.terms_),
            "idf": self.idf_.tolist(),
        }

    @classmethod
    def from_document(cls, document: Any, *, source: object = None) -> Self:
        """The vectorizer of `to_document`. Everything is checked; transforms are the same to the last bit."""
        parameters, terms, idf = check_document(document, source)
        vectorizer = cls(**parameters)
        vectorizer._adopt(terms, idf)
        return vectorizer

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_document` as JSON; whole or not at all."""
        document = self.to_document()
        try:
            content = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:
            raise DataError(f"the vocabulary cannot be written: {error}", source=path) from None
        with replacing(path) as handle:
            handle.write(content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        content = read_bytes(path, what="the vocabulary")
        try:
            document = parse_json(content.decode())
        except ValueError as error:
            problem = getattr(error, "problem", str(error))
            raise DataError(f"not a saved text vectorizer: {problem}; save it again", source=path) from None
        return cls.from_document(document, source=path)

    def build_analyzer(self) -> Callable[[str], list[str]]:
        """A function from a text to its terms, known or not; as scikit-learn's vectorisers have it."""
        self._check_fitted()
        return self._rows.split

    def _make_counter(self) -> CountVectorizer:
        parameters = check_parameters(self.get_params(deep=False))
        del parameters["sublinear_tf"], parameters["max_features"]  # which is ours: see `_most_frequent`
        parameters.update(ngram_range=tuple(parameters["ngram_range"]), dtype=np.dtype(parameters["dtype"]).type)
        pattern = word_pattern(parameters.pop("numbers")).pattern
        return CountVectorizer(token_pattern=pattern if self.analyzer == "word" else None, **parameters)

    def _adopt(self, terms: Iterable[str], idf: ArrayLike) -> None:
        self.terms_: tuple[str, ...] = tuple(str(term) for term in terms)
        self.idf_: NDArray[np.floating] = np.array(idf, dtype=self.dtype)
        self._rows = TermRows(self.get_params(deep=False), self.terms_, self.idf_)

    def _check_fitted(self) -> None:
        if not hasattr(self, "terms_"):
            raise NotFittedError("this TextVectorizer has no vocabulary yet; call fit or load first")


def vectorise(dataset: TextDataset, vectorizer: TextVectorizer | None = None) -> Dataset:
    """The data set with tf-idf features.

    A fitted vectorizer is used as it is, so that training and test rows share columns; one that is not fitted yet
    is fitted on these texts. None: `TextVectorizer` with its defaults.
    """
    vectorizer = TextVectorizer() if vectorizer is None else vectorizer
    convert = vectorizer.transform if hasattr(vectorizer, "terms_") else vectorizer.fit_transform
    return Dataset(
        X=convert(dataset.texts),
        Y=dataset.Y,
        label_names=dataset.label_names,
        feature_names=vectorizer.terms_,
        row_ids=dataset.row_ids,
        row_dates=dataset.row_dates,
        source=dataset.source,
    )


def _most_frequent(counts: Any, most: int) -> np.ndarray:
    """The columns of the most frequent terms, increasing; of equally frequent ones the first.

    scikit-learn cuts with an unstable sort, whose choice among equally frequent terms differs between processors.
    """
    totals = np.asarray(counts.sum(axis=0, dtype=np.float64)).ravel()
    return np.sort(np.argsort(-totals, kind="stable")[:most])
