"""A tagger on a store: saved, opened, learning on disk; also made from the export of an annotation tool."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from streamlabel.data.annotations import Annotations
from streamlabel.errors import ConflictError, DataError, Hint, NotFoundError
from streamlabel.store.model_store import ModelStore
from streamlabel.store.parts import Part
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.state import replace_classifiers
from streamlabel.tagging.learn_report import LearnReport
from streamlabel.tagging.tagger import MemoryTagger
from streamlabel.tagging.text_answers import Answers
from streamlabel.tagging.vectorizers import VectorizerState
from streamlabel.types import CSR

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
                raise DataError("a model without texts", source=store.path, hint=Hint.TAKES_ROWS)
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


@dataclass(frozen=True)
class Plan:
    """What becomes of each label.

    fitted : labels of a new tagger;   learned : labels that arrive in it, or in one that is there
    left : label -> why nothing is done;   n_yes, n_no : answers of each label
    rows : the texts that a new tagger is fitted on
    """

    fitted: tuple[str, ...]
    learned: tuple[str, ...]
    left: dict[str, str]
    n_yes: dict[str, int]
    n_no: dict[str, int]
    rows: tuple[int, ...] = field(default=(), repr=False)

    def what(self, name: str) -> str:
        """In a word, for a person."""
        return self.left.get(name) or ("fitted" if name in self.fitted else "learned")


def plan_import(read: Annotations, known: Sequence[str] | None, only: Sequence[str] = ()) -> Plan:
    """What an import would do; ``known`` are the labels of the model, None where there is none yet.

    only : these labels; all by default
    """
    data = read.dataset
    for name in only:
        if name not in data.label_names:
            raise NotFoundError(f"{data.source}: no label is called {name!r}; it has {data.n_labels} others")
    names = [name for name in data.label_names if not only or name in only]
    asked = read.annotated(names)
    yes = data.Y[:, [data.label_names.index(name) for name in names]].toarray().astype(bool) & asked
    n_yes = dict(zip(names, yes.sum(axis=0).tolist(), strict=True))
    n_no = dict(zip(names, (asked & ~yes).sum(axis=0).tolist(), strict=True))
    left = {name: "left: it is known already" for name in names if known is not None and name in known}
    left |= {name: "left: nobody said yes" for name in names if not n_yes[name]}
    rows = np.flatnonzero(asked.any(axis=1))
    if known is not None:
        return Plan((), tuple(name for name in names if name not in left), left, n_yes, n_no)
    everywhere = np.asarray(asked[rows].all(axis=0)).tolist()
    fitted = tuple(name for name, all_ in zip(names, everywhere, strict=True) if all_ and name not in left)
    learned = tuple(name for name in names if name not in fitted and name not in left)
    if not fitted:
        raise DataError(
            "no label was asked of every answered text, so there is nothing to begin with; fit a model on a file of "
            "tagged texts, then import into it",
            source=data.source,
        )
    return Plan(fitted, learned, left, n_yes, n_no, tuple(rows.tolist()))


def carry_out(plan: Plan, read: Annotations, path: Path, *, actor: str = "") -> tuple[list[LearnReport], int]:
    """Fit and learn as planned; the reports of what was learned, and the revision.

    People said no to these labels, so their answers are taken at their word. Only a label with fewer no than yes gets
    weak answers (`tagging.text_answers`); its report counts them.
    """
    data = read.dataset
    if plan.fitted:
        rows, columns = list(plan.rows), [data.label_names.index(name) for name in plan.fitted]
        tagger = Tagger().fit([data.texts[i] for i in rows], data.Y[rows][:, columns], plan.fitted)
        tagger.save(path, actor=actor)
    with Tagger.open(path, "a", actor=actor) as living:
        reports = []
        for weak_no, wanted in ((0, False), (None, True)):
            few = [name for name in plan.learned if (plan.n_no[name] < plan.n_yes[name]) is wanted]
            reports += living.learn_many({name: read.answers(name) for name in few}, weak_no=weak_no)
        return reports, living.store.revision
