"""Texts to numbers without a vocabulary: every word has a column by its hash, so nothing grows with the texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from streamlabel._validation import canonical_csr
from streamlabel.data.text import check_texts
from streamlabel.exceptions import DataError
from streamlabel.results import CSR, IntArray

__all__ = ["HashedTextVectorizer"]

FORMAT = 1
KIND = "streamlabel hashed text vectorizer"
MOST_COLUMNS = 2**22


class HashedTextVectorizer(TransformerMixin, BaseEstimator):
    """tf-idf weights of words in a fixed number of columns, each row of length 1. A scikit-learn transformer.

    Words share a column where their hashes meet; the idf weight is that of the column.

    Parameters
    ----------
    n_columns : 2 to 4,194,304; every label has a weight for each of them
    longest : words in a row that count as one term too: 1 (words only) to 5

    Attributes
    ----------
    idf_ : (n_columns,) inverse document frequency weights
    """

    def __init__(self, *, n_columns: int = 2**15, longest: int = 1) -> None:
        self.n_columns = n_columns
        self.longest = longest

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Learn the idf weights. ``y`` is not used."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> CSR:
        """Learn the idf weights; X of these texts, (n_texts, n_columns)."""
        self._prepare()
        checked = check_texts(texts)
        if not checked:
            raise DataError("there are no texts to learn from")
        counts = self._count(checked)
        self._weigher = TfidfTransformer(sublinear_tf=True).fit(counts)
        self.idf_: np.ndarray = self._weigher.idf_
        return canonical_csr(self._weigher.transform(counts))

    def transform(self, texts: Iterable[str]) -> CSR:
        """X of these texts, (n_texts, n_columns); a word that is new has its column, too."""
        self._check_fitted()
        return canonical_csr(self._weigher.transform(self._count(check_texts(texts))))

    def words_at(self, text: str, columns: IntArray) -> list[str]:
        """The words of a text behind these columns; several that share one are joined by " / "."""
        self._check_fitted()
        terms = sorted(set(self._analyse(text)))
        found: dict[int, list[str]] = {}
        for term, column in zip(terms, self._hasher.transform([term] for term in terms).indices.tolist(), strict=True):
            found.setdefault(column, []).append(term)
        return [" / ".join(found.get(int(column), [])) for column in columns]

    def to_document(self) -> dict[str, Any]:
        """Parameters and idf weights, as values that JSON knows."""
        self._check_fitted()
        parameters = {"n_columns": int(self.n_columns), "longest": int(self.longest)}
        return {"kind": KIND, "format": FORMAT, "parameters": parameters, "idf": self.idf_.tolist()}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The vectorizer of `to_document`; everything is checked."""
        known = isinstance(document, dict) and document.get("kind") == KIND and document.get("format") == FORMAT
        parameters = document.get("parameters") if known else None
        if not isinstance(parameters, dict) or set(parameters) != {"n_columns", "longest"}:
            raise DataError(f"not a hashed text vectorizer of format {FORMAT}; save it again")
        vectorizer = cls(**parameters)
        vectorizer._prepare()
        idf = np.array(document.get("idf"), dtype=np.float64)
        if idf.shape != (vectorizer.n_columns,) or not np.isfinite(idf).all() or (idf <= 0).any():
            raise DataError("its idf weights are not one positive number a column; the vectorizer is damaged")
        vectorizer._weigher = TfidfTransformer(sublinear_tf=True)
        vectorizer._weigher.idf_ = vectorizer.idf_ = idf
        return vectorizer

    def _prepare(self) -> None:
        if not _whole(self.n_columns, 2, MOST_COLUMNS):
            raise DataError(f"n_columns is {self.n_columns!r}; it must be a whole number, 2 to {MOST_COLUMNS}")
        if not _whole(self.longest, 1, 5):
            raise DataError(f"longest is {self.longest!r}; it must be a whole number, 1 to 5")
        self._analyse = CountVectorizer(ngram_range=(1, int(self.longest)), strip_accents="unicode").build_analyzer()
        self._hasher = FeatureHasher(int(self.n_columns), input_type="string", alternate_sign=False)

    def _count(self, texts: list[str]) -> Any:
        counts = self._hasher.transform(self._analyse(text) for text in texts)
        counts.sort_indices()
        return counts

    def _check_fitted(self) -> None:
        if not hasattr(self, "idf_"):
            raise NotFittedError("this HashedTextVectorizer has no weights yet; call fit first")


def _whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(low <= value <= high)
