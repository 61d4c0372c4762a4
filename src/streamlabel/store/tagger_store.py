"""`Tagger`: a tagger that can be saved, and opened where it was saved; what it learns there is kept at once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from numpy.typing import ArrayLike

from streamlabel.exceptions import ConflictError, DataError
from streamlabel.models.snapshot import replace_classifiers
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.models.tagger import MemoryTagger
from streamlabel.models.text_answers import Answers
from streamlabel.models.vectorizers import VectorizerState
from streamlabel.results import CSR
from streamlabel.store.model_store import ModelStore
from streamlabel.store.parts import Part

__all__ = ["Tagger"]

VECTORIZER, TEXTS = "vectorizer", "texts"


class Tagger(MemoryTagger):
    __doc__ = MemoryTagger.__doc__

    _store: ModelStore | None = None

    def fit(
        self, texts: Iterable[str], labels: Iterable[Iterable[str]] | ArrayLike | CSR, label_names: Any = None
    ) -> Self:
        if self._store is not None:
            raise ConflictError(f"this tagger lives in {self._store.path}; fit a new Tagger, and save it elsewhere")
        return super().fit(texts, labels, label_names)

    def save(self, path: str | os.PathLike[str], *, keep_rows: bool = True, actor: str = "") -> None:
        """Write the tagger into a new directory. This one goes on in memory; `open` goes on there.

        keep_rows : keep what is needed to learn labels there as well as here: the features of fit's texts and their
            answers; never the texts themselves. Without, a new label needs texts for yes and for no.

        Weights are rounded to float32. A vectoriser of the user's own is not stored, only its name.
        """
        state = self.vectorizer_state()
        parts = {VECTORIZER: Part(state.content, state.arrays)}
        if keep_rows:
            parts[TEXTS] = Part({}, {"digests": self.text_digests_})
        ModelStore.create(path, self.classifier_, keep_rows=keep_rows, parts=parts, actor=actor).close()

    @classmethod
    def open(cls, path: str | os.PathLike[str], mode: str = "r", *, vectorizer: Any = None, actor: str = "") -> Self:
        """Open a saved tagger to read ("r") or to learn ("a"): then a label is on the disk when `learn` returns.

        vectorizer : the fitted one, or the function, where the tagger was saved with one of the user's own
        """
        store = ModelStore.open(path, mode, actor=actor)
        try:
            names = store.parts()
            if VECTORIZER not in names:
                raise DataError("a model without texts; open it with ModelStore.open", source=store.path)
            part = store.get_part(VECTORIZER)
            digests = store.get_part(TEXTS).arrays.get("digests") if TEXTS in names and mode == "a" else None
            tagger = cls.from_parts(
                VectorizerState(part.content, part.arrays),
                store.model(learning=mode == "a"),
                digests=digests,
                brought=vectorizer,
            )
        except BaseException:
            store.close()
            raise
        tagger._store = store
        return tagger

    @property
    def store(self) -> ModelStore:
        """Where the tagger lives: its history, `rename`, `retire`, `rollback`; call `refresh` after a change there."""
        if self._store is None:
            raise ConflictError("this tagger lives in memory; save it, and open it where it was saved")
        return self._store

    def refresh(self) -> None:
        """Read the newest revision: after a change in the `store`, or, for a reader, by the writer."""
        self.store.refresh()
        self.classifier_ = self.store.model(learning=self.classifier_._memory is not None)

    def close(self) -> None:
        """Let others write; this tagger can be read on."""
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_batch(self, names: tuple[str, ...], given: Iterable[Any], weak_no: int | None) -> list[Answers]:
        if self._store is not None:
            self._store._writing()
            if self._store.label_names != self.label_names_:
                raise ConflictError(f"{self._store.path} was changed since it was read; call refresh() first")
        return super()._read_batch(names, given, weak_no)

    def _commit(self, grown: StreamingLabelClassifier) -> None:
        if self._store is not None:
            self._store.append(grown)
            replace_classifiers(grown, self._store._stored())
        super()._commit(grown)

    def _replace(self, number: int, batch: list[Answers]) -> None:
        if self._store is None:
            return super()._replace(number, batch)
        self._store.relearn(self.label_names_[number], lambda past: self._grown(past, batch))
        self.classifier_ = self._store.model()
        return None
