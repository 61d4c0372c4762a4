"""Suggestions from a stored tagger, without scikit-learn: what a command that answers one text has to load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from streamlabel.data.terms import KIND, TermRows, check_texts
from streamlabel.errors import DataError, Hint
from streamlabel.metrics.topk import check_k, top_k
from streamlabel.store.parts import VECTORIZER, Part
from streamlabel.store.stored_model import StoredModel
from streamlabel.types import CSR, FloatArray

AT_ONCE = 1024


class Suggester:
    """The reading half of a tagger in a directory; its scores are those of `Tagger.suggest`, to the last bit."""

    def __init__(self, store: StoredModel) -> None:
        if VECTORIZER not in store.parts():
            raise DataError("a model without texts", source=store.path, hint=Hint.TAKES_ROWS)
        self.store, self._vectorizer = store, _vectorizer(store.get_part(VECTORIZER))

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a saved tagger to read."""
        return cls(StoredModel.read(path))

    @property
    def thresholds(self) -> dict[str, float]:
        """The score of each label above which it is a yes."""
        return {record.name: record.threshold for record in self.store.labels()}

    def suggest(self, texts: Iterable[str], k: int = 5) -> tuple[list[list[tuple[str, float]]], list[bool]]:
        """The k best labels of each text with their scores, best first, and whether any word of it is known."""
        found: list[list[tuple[str, float]]] = []
        known: list[bool] = []
        for rows in self._rows(check_texts(texts)):
            found += best_labels(self.store.label_names, self.store.scores(rows), check_k(k))
            known += (np.diff(rows.indptr) > 0).tolist()
        return found, known

    def _rows(self, texts: list[str]) -> Iterator[CSR]:
        for start in range(0, len(texts), AT_ONCE):
            yield self._vectorizer.transform(texts[start : start + AT_ONCE])


def best_labels(names: Any, scores: FloatArray, k: int) -> list[list[tuple[str, float]]]:
    """The k best labels of each row of scores (n, m), [(name, score), ...], best first; ties go to the older label."""
    columns = top_k(scores, min(k, scores.shape[1]))
    best = np.take_along_axis(scores, columns, axis=1)
    return [
        [(names[int(j)], float(score)) for j, score in zip(*row, strict=True)]
        for row in zip(columns, best, strict=True)
    ]


def _vectorizer(part: Part) -> Any:
    """The stored vectoriser; one that hashes its words, or was brought along, is a matter of scikit-learn."""
    if isinstance(part.content, dict) and part.content.get("kind") == KIND and "idf" in part.arrays:
        return TermRows.from_document({**part.content, "idf": part.arrays["idf"].tolist()})
    from streamlabel.tagging.vectorizers import VectorizerState, restore_vectorizer

    return restore_vectorizer(VectorizerState(part.content, part.arrays))
