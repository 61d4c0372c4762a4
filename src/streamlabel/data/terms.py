"""Texts as rows of tf-idf weights, by a vocabulary that is there: what is needed to score a text, and no scikit-learn.

`data.text` learns the vocabulary, with scikit-learn. Terms, counts and weights are those of its `CountVectorizer` and
`TfidfTransformer`, to the last bit in float32.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.types import CSR
from streamlabel.validation import canonical_csr

FORMAT = 1
KIND = "streamlabel text vectorizer"
WORD = re.compile(r"\b\w\w+\b")
WORD_NO_NUMBER = re.compile(r"\b[^\W\d]\w+\b")  # "h5n1" is one, "2009" and "32009r0123" are not


def word_pattern(numbers: bool) -> re.Pattern[str]:
    """What counts as a word; without ``numbers`` none that begins with a digit."""
    return WORD if numbers else WORD_NO_NUMBER


class TermSplitter:
    """A function from a text to its terms, known or not; the parameters are those of `TextVectorizer`."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.by_words = parameters["analyzer"] == "word"
        self.shortest, self.longest = parameters["ngram_range"]
        self.lowercase, self.strip_accents = parameters["lowercase"], parameters["strip_accents"]
        self.stop_words = _stop_words(parameters["stop_words"])
        self.words = word_pattern(parameters["numbers"])

    def __call__(self, text: str) -> list[str]:
        text = text.lower() if self.lowercase else text
        if self.strip_accents is not None and not text.isascii():
            text = _without_accents(text, self.strip_accents)
        if not self.by_words:
            return [piece for word in text.split() for piece in self._pieces(f" {word} ")]
        words = self.words.findall(text)
        if self.stop_words:
            words = [word for word in words if word not in self.stop_words]
        if self.longest == 1:
            return words
        sizes = range(self.shortest, self.longest + 1)
        return [" ".join(words[i : i + size]) for size in sizes for i in range(len(words) - size + 1)]

    def _pieces(self, word: str) -> Iterable[str]:
        """The n-grams of one word; a word that is shorter than the shortest counts once, whole."""
        for size in range(self.shortest, self.longest + 1):
            yield from (word[i : i + size] for i in range(max(1, len(word) - size + 1)))
            if len(word) <= size:
                return


def _stop_words(wanted: str | Sequence[str] | None) -> frozenset[str]:
    if wanted == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    return frozenset(wanted or ())


def _without_accents(text: str, how: str) -> str:
    parts = unicodedata.normalize("NFKD", text)
    if how == "ascii":
        return parts.encode("ascii", "ignore").decode("ascii")
    return "".join(character for character in parts if not unicodedata.combining(character))


class TermRows:
    """Rows of tf-idf weights, each of length 1, for texts that come after the vocabulary was learned.

    parameters : those of `TextVectorizer`;   terms : the term of each column;   idf : (n_terms,)
    """

    def __init__(self, parameters: Mapping[str, Any], terms: Sequence[str], idf: NDArray[np.floating]) -> None:
        self.split, self.idf = TermSplitter(parameters), idf
        self._sublinear = bool(parameters["sublinear_tf"])
        self._column = {term: column for column, term in enumerate(terms)}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """Make the rows of a saved vectorizer (`TextVectorizer.to_document`); everything is checked."""
        parameters, terms, idf = check_document(document)
        return cls(parameters, terms, np.array(idf, dtype=parameters["dtype"]))

    def transform(self, texts: Iterable[str]) -> CSR:
        """X of these texts, (n_texts, n_terms); terms outside the vocabulary count nothing."""
        counted = [self._count(text) for text in check_texts(texts)]
        starts = np.cumsum([0, *map(len, counted)])
        starts = starts.astype(sparse.get_index_dtype(maxval=starts[-1]))
        columns = np.fromiter(chain.from_iterable(counted), starts.dtype, starts[-1])
        values = np.fromiter(chain.from_iterable(one.values() for one in counted), self.idf.dtype, starts[-1])
        counts = sparse.csr_array((values, columns, starts), shape=(len(counted), len(self._column)))
        counts.sort_indices()
        return self.weigh(counts)

    def weigh(self, counts: CSR) -> CSR:
        """Turn counts of terms, with sorted columns, into weights: the row norms add up in this order."""
        values = counts.data.astype(self.idf.dtype)
        if self._sublinear:
            values = np.log(values) + values.dtype.type(1)
        values *= self.idf[counts.indices]
        n_rows = int(counts.shape[0])
        rows = np.repeat(np.arange(n_rows), np.diff(counts.indptr))
        norms = np.sqrt(np.bincount(rows, values * values, n_rows))
        weights = (values / norms[rows]).astype(self.idf.dtype)
        return canonical_csr(sparse.csr_array((weights, counts.indices, counts.indptr), shape=counts.shape))

    def _count(self, text: str) -> dict[int, int]:
        counts: dict[int, int] = {}
        for term in self.split(text):
            column = self._column.get(term)
            if column is not None:
                counts[column] = counts.get(column, 0) + 1
        return counts


def check_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list; DataError for one text alone, or for what is not a string."""
    if isinstance(texts, str | bytes):
        raise DataError("one text was given; give a list of texts")
    if not isinstance(texts, Iterable):
        raise DataError(f"texts is of type {type(texts).__name__}; give a text, or a list of texts")
    checked = list(texts)
    for position, text in enumerate(checked):
        if not isinstance(text, str):
            raise DataError(f"text {position} is of type {type(text).__name__}; texts must be strings")
    return checked


def check_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters in JSON form, or a DataError that names the one that is wrong."""
    checked = dict(parameters)
    if isinstance(checked["ngram_range"], tuple):
        checked["ngram_range"] = list(checked["ngram_range"])
    if not isinstance(checked["stop_words"], str | None) and isinstance(checked["stop_words"], Sequence):
        checked["stop_words"] = list(checked["stop_words"])
    for name, value in checked.items():
        is_right, wanted = _RULES[name]
        if not is_right(value):
            note = "; functions cannot be saved as JSON" if callable(value) else ""
            raise DataError(f"{name} is {str(value)[:60]!r}; it must be {wanted}{note}")
    return checked


def _is_int(value: Any, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


def _is_count_or_share(value: Any) -> bool:
    return _is_int(value, 1) or (isinstance(value, float) and 0.0 <= value <= 1.0)


def _is_ngram_range(value: Any) -> bool:
    return (
        isinstance(value, list) and len(value) == 2 and all(_is_int(n, 1) for n in value) and value[0] <= value[1] <= 10
    )


def _is_string_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


_FLAG = (lambda value: isinstance(value, bool), "true or false")
_RULES: dict[str, tuple[Any, str]] = {
    "analyzer": (lambda value: value in ("word", "char_wb"), "'word' or 'char_wb'"),
    "ngram_range": (_is_ngram_range, "(shortest, longest), whole numbers from 1 to 10"),
    "min_df": (_is_count_or_share, "a count (int, from 1) or a share (float, 0 to 1)"),
    "max_df": (_is_count_or_share, "a count (int, from 1) or a share (float, 0 to 1)"),
    "max_features": (lambda value: value is None or _is_int(value, 1), "None or a whole number from 1"),
    "sublinear_tf": _FLAG,
    "lowercase": _FLAG,
    "strip_accents": (lambda value: value in (None, "unicode", "ascii"), "None, 'unicode' or 'ascii'"),
    "stop_words": (lambda value: value in (None, "english") or _is_string_list(value), "None, 'english' or a list"),
    "numbers": _FLAG,
    "dtype": (lambda value: value in ("float32", "float64"), "'float32' or 'float64'"),
}


def check_document(document: Any, source: object = None) -> tuple[dict[str, Any], list[str], list[float]]:
    """(parameters, terms, idf) of a saved document; DataError says what is wrong with it."""
    try:
        return _parts_of(document)
    except ValueError as error:
        problem = getattr(error, "problem", str(error))
        raise DataError(f"not a saved text vectorizer: {problem}; save it again", source=source) from None


def _parts_of(document: Any) -> tuple[dict[str, Any], list[str], list[float]]:
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise ValueError("it is another document")
    if document.get("format") != FORMAT or document["format"] is True:
        raise ValueError(f"its format is {str(document.get('format'))[:20]!r}; this version reads format {FORMAT}")
    if set(document) != {"kind", "format", "parameters", "terms", "idf"}:
        raise ValueError("its fields are not those of this format")
    parameters, terms, idf = document["parameters"], document["terms"], document["idf"]
    if not isinstance(parameters, dict):
        raise ValueError("its parameters are not those of this format")
    parameters = {"numbers": True, **parameters}  # a document that does not say it is older, and has them
    if set(parameters) != set(_RULES):
        raise ValueError("its parameters are not those of this format")
    parameters = check_parameters(parameters)
    if not _is_string_list(terms) or not terms or not all(terms) or len(set(terms)) != len(terms):
        raise ValueError("its terms are not different strings")
    if (
        not isinstance(idf, list)
        or len(idf) != len(terms)
        or not all(isinstance(x, float) and 0 < x < 1e6 for x in idf)
    ):
        raise ValueError("its idf weights are not one positive number a term")
    return {**parameters, "ngram_range": tuple(parameters["ngram_range"])}, terms, idf
