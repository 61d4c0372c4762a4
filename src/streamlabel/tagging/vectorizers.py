"""Vectorisers, which turn texts into rows: ours, whose state is plain data, and those that users bring along."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from streamlabel.data.terms import check_texts, word_pattern
from streamlabel.data.text import TextVectorizer
from streamlabel.errors import DataError, Hint
from streamlabel.types import CSR, IntArray
from streamlabel.validation import canonical_csr

FORMAT = 1
KIND = "streamlabel hashed text vectorizer"
MOST_COLUMNS = 2**22


class HashedTextVectorizer(TransformerMixin, BaseEstimator):
    """tf-idf weights of words in a fixed number of columns, each row of length 1. A scikit-learn transformer.

    Words share a column if their hashes meet; the idf weight is that of the column.

    Parameters
    ----------
    n_columns : 2 to 4,194,304; every label has a weight for each of them
    longest : words in a row that count as one term too: 1 (words only) to 5
    numbers : whether words that begin with a digit ("2009") are terms

    Attributes
    ----------
    idf_ : (n_columns,) inverse document frequency weights
    """

    def __init__(self, *, n_columns: int = 2**15, longest: int = 1, numbers: bool = False) -> None:
        self.n_columns = n_columns
        self.longest = longest
        self.numbers = numbers

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Learn the idf weights. ``y`` is not used."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> CSR:
        """Learn the idf weights and transform the same texts into X (n_texts, n_columns)."""
        self._prepare()
        checked = check_texts(texts)
        if not checked:
            raise DataError("there are no texts to learn from")
        counts = self._count(checked)
        self._weigher = TfidfTransformer(sublinear_tf=True).fit(counts)
        self.idf_: np.ndarray = self._weigher.idf_
        return canonical_csr(self._weigher.transform(counts))

    def transform(self, texts: Iterable[str]) -> CSR:
        """Transform texts into X (n_texts, n_columns); a word that is new has its column, too."""
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
        """The parameters and idf weights, as values that JSON knows."""
        self._check_fitted()
        parameters = {"n_columns": int(self.n_columns), "longest": int(self.longest), "numbers": self.numbers}
        return {"kind": KIND, "format": FORMAT, "parameters": parameters, "idf": self.idf_.tolist()}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """Make a vectorizer from the values of `to_document`; everything is checked."""
        known = isinstance(document, dict) and document.get("kind") == KIND and document.get("format") == FORMAT
        parameters = document.get("parameters") if known else None
        parameters = {"numbers": True, **parameters} if isinstance(parameters, dict) else {}  # as in `data.terms`
        if set(parameters) != {"n_columns", "longest", "numbers"}:
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
        if not isinstance(self.numbers, bool):
            raise DataError(f"numbers is {self.numbers!r}; it must be true or false")
        pattern = word_pattern(self.numbers).pattern
        counter = CountVectorizer(ngram_range=(1, int(self.longest)), strip_accents="unicode", token_pattern=pattern)
        self._analyse = counter.build_analyzer()
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


FEW_TEXTS = 200
FOREIGN = "brought along"
OWN = (TextVectorizer, HashedTextVectorizer)
CHOICES = '"tfidf", "hashing", a scikit-learn vectoriser, or a function from a list of texts to rows'


@dataclass(frozen=True, eq=False)
class VectorizerState:
    """A fitted vectoriser as plain data: ``content`` is anything that JSON knows, ``arrays`` are plain numbers."""

    content: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class TextFunction:
    """A vectoriser made of a function from a list of texts to rows (n, d); there is nothing to fit, and no words."""

    def __init__(self, function: Callable[[list[str]], Any]) -> None:
        self.function = function

    def transform(self, texts: Sequence[str]) -> Any:
        """Turn texts into rows by the function."""
        rows: Any = self.function(list(texts))
        if not sparse.issparse(rows):
            rows = np.asarray(rows)
        if rows.ndim != 2 or rows.shape[0] != len(texts):
            raise DataError(
                f"the vectoriser made shape {rows.shape} of {len(texts)} texts; it must give one row a text"
            )
        return rows

    fit_transform = transform


def make_vectorizer(wanted: Any, n_texts: int) -> Any:
    """Make the vectoriser that a user asked for, not fitted yet (`fit_transform`, `transform`).

    "tfidf" is `TextVectorizer`; if there are few texts, words that occur in one of them count, too.
    """
    if isinstance(wanted, str):
        if wanted == "tfidf":
            return TextVectorizer(min_df=1 if n_texts < FEW_TEXTS else 2)
        if wanted == "hashing":
            return HashedTextVectorizer()
        raise DataError(f"vectorizer is {wanted!r}; it must be {CHOICES}")
    if isinstance(wanted, type):
        raise DataError(f"vectorizer is the class {wanted.__name__}; give an object, {wanted.__name__}()")
    if hasattr(wanted, "transform") and hasattr(wanted, "fit_transform"):
        return clone(wanted)
    if callable(wanted):
        return TextFunction(wanted)
    raise DataError(f"vectorizer is of type {type(wanted).__name__}; it must be {CHOICES}")


def words_at(vectorizer: Any, text: str, columns: IntArray) -> list[str] | None:
    """The words of a text behind these columns; None if columns have no words."""
    if isinstance(vectorizer, TextVectorizer):
        return [vectorizer.terms_[column] for column in columns]
    if isinstance(vectorizer, HashedTextVectorizer):
        return vectorizer.words_at(text, columns)
    if hasattr(vectorizer, "get_feature_names_out"):
        return [str(name) for name in vectorizer.get_feature_names_out()[columns]]
    return None


def vectorizer_state(vectorizer: Any) -> VectorizerState:
    """The state of a fitted vectoriser. One that was brought along is only named: it cannot be kept without pickle."""
    if not isinstance(vectorizer, OWN):
        owner = vectorizer.function if isinstance(vectorizer, TextFunction) else vectorizer
        name = getattr(owner, "__qualname__", None) or type(owner).__qualname__
        return VectorizerState({"kind": FOREIGN, "name": name})
    document = vectorizer.to_document()
    return VectorizerState(
        {key: value for key, value in document.items() if key != "idf"}, {"idf": np.array(document["idf"])}
    )


def restore_vectorizer(state: VectorizerState, brought: Any = None) -> Any:
    """The fitted vectoriser of a state; ``brought`` is the one to use, fitted, if it was brought along."""
    content = state.content if isinstance(state.content, dict) else {}
    if content.get("kind") == FOREIGN:
        if brought is None or isinstance(brought, str):
            raise DataError(
                f"this tagger was made with a vectoriser of its user's own ({content.get('name')!s:.80}), which is not "
                "stored",
                hint=Hint.VECTORIZER,
            )
        return brought if hasattr(brought, "transform") else TextFunction(brought)
    if brought is not None:
        raise DataError("this tagger has its vectoriser stored; do not pass another one, its columns would not match")
    if "idf" not in state.arrays:
        raise DataError("the stored vectoriser has no idf weights; it is damaged")
    document = {**content, "idf": state.arrays["idf"].tolist()}
    owner = TextVectorizer if "terms" in content else HashedTextVectorizer
    return owner.from_document(document)
