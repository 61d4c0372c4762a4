"""Names of labels as directions in the space of a text's features: what a name says about a text, linear in its terms.

The words of a name that the vectoriser knows are one direction. If an encoder is there (`encode`: a list of texts to
vectors), the likeness of the name to each term of the vocabulary is another, and the classifiers of known labels whose
names are like it, added up, a third. Which of them are worth something is found out by trials (`streaming.found`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from streamlabel.errors import DataError
from streamlabel.stats.spectral import dense
from streamlabel.types import FloatArray

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MARKS = re.compile(r"[_\-./:#|]+")


class NameEncoder(Protocol):
    """What makes vectors of texts: an embedding model, or an API. ``version`` names it in a stored model."""

    version: str

    def encode(self, texts: list[str]) -> Any:
        """Vectors (n, k) of n texts."""
        ...


def spelled(name: str) -> str:
    """A name in separate words: marks such as "_" and "-", and capitals inside a word, part them."""
    return _MARKS.sub(" ", _CAMEL.sub(" ", name)).strip()


class TextDirections:
    """The reader of names for a vectoriser of texts (`streaming.found.Directions`).

    vectorizer : a fitted one;   encoder : None for the words of a name alone
    """

    def __init__(self, vectorizer: Any, encoder: NameEncoder | None = None) -> None:
        self._vectorizer, self._encoder = vectorizer, encoder
        self.version = "words" if encoder is None else f"words, {encoder.version}"
        self._terms: FloatArray | None = None
        self._vectors: dict[str, FloatArray] = {}

    def __call__(self, texts: Sequence[str], known: Sequence[str], weights: FloatArray) -> FloatArray:
        """Directions (kinds, d, n): words, and with an encoder likeness to terms, and classifiers of like names."""
        words = self._vectorizer.transform([spelled(text) for text in texts])
        rows = np.asarray(dense(words), dtype=np.float64).T
        if self._encoder is None:
            return rows[None]
        names, others = self._encoded(texts), self._encoded(known)
        middle = others.mean(axis=0) if len(known) else np.zeros(names.shape[1])
        return np.stack(
            (
                rows,
                self._term_vectors(middle) @ (names - middle).T,
                _by_likeness(names - middle, others - middle, weights),
            )
        )

    def _term_vectors(self, middle: FloatArray) -> FloatArray:
        """The vectors (d, k) of the vocabulary's terms; zero for a vectoriser without a vocabulary."""
        if self._terms is None:
            terms = getattr(self._vectorizer, "get_feature_names_out", None)
            if terms is None:
                raise DataError("an encoder of names needs a vectoriser with a vocabulary; leave the encoder out")
            self._terms = self._checked([str(term) for term in terms()])
        return self._terms - self._terms.mean(axis=0)

    def _encoded(self, texts: Sequence[str]) -> FloatArray:
        wanted = [spelled(text) for text in texts]
        missing = [text for text in dict.fromkeys(wanted) if text not in self._vectors]
        if missing:
            self._vectors.update(zip(missing, self._checked(missing), strict=True))
        return np.array([self._vectors[text] for text in wanted]).reshape(len(wanted), -1)

    def _checked(self, texts: list[str]) -> FloatArray:
        assert self._encoder is not None
        vectors = np.asarray(self._encoder.encode(texts), dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise DataError(
                f"the encoder of names gave shape {vectors.shape} for {len(texts)} texts; "
                "it must give one finite vector each"
            )
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float64).tiny)


def _by_likeness(names: FloatArray, others: FloatArray, weights: FloatArray) -> FloatArray:
    """Classifiers (d, n) that ridge from the vectors of known names to their classifiers gives for these names."""
    if not len(others):
        return np.zeros((len(weights), len(names)))
    kernel = others @ others.T
    kernel.flat[:: len(kernel) + 1] += float(kernel.trace()) / len(kernel)
    return weights @ linalg.solve(kernel, others @ names.T, assume_a="pos", check_finite=False)


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
