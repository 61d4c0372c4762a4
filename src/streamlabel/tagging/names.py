"""Names of labels as directions in the space of a text's features: what a name says about a text, linear in its terms.

The words of a name that the vectoriser knows are one direction. With an encoder (`encode`: a list of texts to vectors)
the likeness of the name to each term of the vocabulary is another: the square of their cosine where that is positive,
so that a few close terms count for more than many distant ones. What each is worth is found out by trials
(`streaming.found`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from streamlabel.errors import DataError, MissingExtraError
from streamlabel.stats.spectral import dense
from streamlabel.types import FloatArray

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MARKS, _FACET = re.compile(r"[_\-./:#|]+"), re.compile(r"^(?:[\w-]+::)+(?=\w)")
STATIC = "wordllama"
CHOICES = '"words", "static", an object with version and encode(texts), or None'


class NameEncoder(Protocol):
    """What makes vectors of texts: an embedding model, or an API. ``version`` names it in a stored model."""

    version: str

    def encode(self, texts: list[str]) -> Any:
        """Vectors (n, k) of n texts."""
        ...


class StaticEncoder:
    """Vectors of texts from a table with one for each token, that of the package wordllama (extra ``names``): the mean.

    It needs no network: the table and its tokenizer come with the package.
    """

    def __init__(self) -> None:
        try:
            import wordllama
        except ImportError:
            raise MissingExtraError(STATIC, "names", 'a reader of names of the kind "static"') from None
        folder = Path(str(wordllama.__file__)).parent  # `load` alone would look elsewhere, and fetch the tokenizer
        loaded = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
        self._table, self._tokenizer = np.asarray(loaded.embedding, dtype=np.float32), loaded.tokenizer
        self._tokenizer.no_padding()
        self.version = f"{STATIC} {'.'.join(metadata.version(STATIC).split('.')[:3])}"

    def encode(self, texts: list[str]) -> FloatArray:
        """Vectors (n, 256); zero for an empty text."""
        found = [one.ids for one in self._tokenizer.encode_batch(texts, add_special_tokens=False)]
        rows = np.repeat(np.arange(len(found)), [len(ids) for ids in found])
        tokens = np.array([token for ids in found for token in ids], dtype=np.intp)
        shares = 1.0 / np.bincount(rows, minlength=len(found))[rows]
        counts = sparse.csr_array((shares, (rows, tokens)), shape=(len(found), len(self._table)))
        return np.asarray(counts @ self._table)


def spelled(name: str) -> str:
    """A name in separate words: marks such as "_" and "-", and capitals inside a word, part them.

    The facet of a name, "use" in "use::games", is what many labels share, and is left out.
    """
    return _MARKS.sub(" ", _CAMEL.sub(" ", _FACET.sub("", name))).strip()


class TextDirections:
    """The reader of names for a vectoriser of texts (`streaming.found_trials.Directions`).

    vectorizer : a fitted one;   encoder : None for the words of a name alone
    """

    def __init__(self, vectorizer: Any, encoder: NameEncoder | None = None) -> None:
        if encoder is not None and not hasattr(vectorizer, "get_feature_names_out"):
            raise DataError(
                'an encoder of names needs a vectoriser with a vocabulary; use the vectoriser "tfidf", or leave names '
                'at "words"'
            )
        self._vectorizer, self._encoder = vectorizer, encoder
        self.version = "words" if encoder is None else f"words, {encoder.version}"
        self._terms: FloatArray | None = None
        self._middle: FloatArray = np.zeros(0)

    @classmethod
    def of(cls, names: Any, vectorizer: Any) -> TextDirections | None:
        """The reader that a user asked for; ``vectorizer`` need not be fitted yet."""
        if names is None or (isinstance(names, str) and names == "words"):
            return None if names is None else cls(vectorizer)
        if isinstance(names, str) and names == "static":
            return cls(vectorizer, StaticEncoder())
        if not callable(getattr(names, "encode", None)) or not isinstance(getattr(names, "version", None), str):
            raise DataError(f"names is {names!r:.80}; it must be {CHOICES}")
        return cls(vectorizer, names)

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """Directions (kinds, d, n): words, and with an encoder likeness to terms."""
        wanted = [spelled(text) for text in texts]
        words = self._vectorizer.transform(wanted)
        rows = np.asarray(dense(words), dtype=np.float64).T
        if self._encoder is None or not wanted:
            return rows[None]
        if self._terms is None:
            terms = self._encoded([str(term) for term in self._vectorizer.get_feature_names_out()])
            self._middle = terms.mean(axis=0)
            self._terms = _of_length_1(terms - self._middle)
        vectors = self._encoded(wanted)
        here = _of_length_1((vectors - self._middle) * vectors.any(axis=1, keepdims=True))
        return np.stack((rows, np.square(np.maximum(self._terms @ here.T, 0.0))))

    def _encoded(self, texts: list[str]) -> FloatArray:
        assert self._encoder is not None
        vectors = np.asarray(self._encoder.encode(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise DataError(
                f"the encoder of names gave shape {vectors.shape} for {len(texts)} texts; "
                "it must give one finite vector each"
            )
        return _of_length_1(vectors)


def _of_length_1(vectors: FloatArray) -> FloatArray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def stored_reader(content: Any, source: object, *, learning: bool) -> str | None:
    """What read names when a tagger was saved: "words", "static" or None; to learn, another encoder is refused."""
    version = content.get("reader", "words") if isinstance(content, dict) else "words"
    if version in ("", "words"):
        return version or None
    if str(version).startswith(f"words, {STATIC} "):
        return "static"
    if not learning:
        return "words"
    raise DataError(
        f"names were read by {version!r:.80} when this tagger was saved; open it with the same (names=...)",
        source=source,
    )


def check_reader(content: Any, version: str, source: object) -> None:
    """Refuse to go on with another reader of names than the one that a model was saved with."""
    known = content.get("reader", "words") if isinstance(content, dict) else "words"
    if known != version:
        asks = f"names were read by {known!r}" if known else "names were not read"
        raise DataError(
            f"{asks} when this tagger was saved, and are now to be read by {version!r}; "
            "open it with the same (names=...)",
            source=source,
        )
