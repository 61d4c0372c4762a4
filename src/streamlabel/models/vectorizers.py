"""The ways from texts to rows: ours, whose state is plain data, and those that users bring along."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from streamlabel.data.text import TextVectorizer
from streamlabel.exceptions import DataError
from streamlabel.models.hashed_text import HashedTextVectorizer
from streamlabel.results import IntArray

__all__ = ["TextFunction", "VectorizerState", "make_vectorizer", "restore_vectorizer", "vectorizer_state", "words_at"]

FEW_TEXTS = 200
FOREIGN = "brought along"
OWN = (TextVectorizer, HashedTextVectorizer)
CHOICES = '"tfidf", "hashing", a scikit-learn vectoriser, or a function from a list of texts to rows'


@dataclass(frozen=True, eq=False)
class VectorizerState:
    """A fitted vectoriser: ``content`` is anything that JSON knows, ``arrays`` are plain numbers."""

    content: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class TextFunction:
    """A function from a list of texts to rows (n, d) as a vectoriser; there is nothing to fit, and no words."""

    def __init__(self, function: Callable[[list[str]], Any]) -> None:
        self.function = function

    def transform(self, texts: Sequence[str]) -> Any:
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
    """A vectoriser that is not fitted yet (`fit_transform`, `transform`) for what a user asked for.

    "tfidf" is `TextVectorizer`; where there are few texts, words that occur in one of them count, too.
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
    """The words of a text behind these columns; None where columns have no words."""
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
    """The fitted vectoriser of a state; ``brought`` is the one to use, fitted, where it was brought along."""
    content = state.content if isinstance(state.content, dict) else {}
    if content.get("kind") == FOREIGN:
        if brought is None or isinstance(brought, str):
            raise DataError(
                f"this tagger was made with a vectoriser of its user's own ({content.get('name')!s:.80}), which is not "
                "stored; pass it again, fitted: vectorizer=..."
            )
        return brought if hasattr(brought, "transform") else TextFunction(brought)
    if brought is not None:
        raise DataError("this tagger has its vectoriser stored; do not pass another one, its columns would not match")
    if "idf" not in state.arrays:
        raise DataError("the stored vectoriser has no idf weights; it is damaged")
    document = {**content, "idf": state.arrays["idf"].tolist()}
    owner = TextVectorizer if "terms" in content else HashedTextVectorizer
    return owner.from_document(document)
