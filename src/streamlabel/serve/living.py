"""A stored tagger as it is served: one whole immutable view that is swapped whole, and one writer at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from streamlabel.exceptions import NotFoundError, StreamlabelError
from streamlabel.models.learn_report import LearnReport
from streamlabel.models.tagger import MemoryTagger
from streamlabel.store.catalogue import reading
from streamlabel.store.model_store import ModelStore
from streamlabel.store.reader import latest_revision
from streamlabel.store.records import LabelRecord
from streamlabel.store.tagger_store import Tagger

__all__ = ["LivingTagger", "View"]

LOOK_EVERY = 1.0  # seconds after which somebody looks again for what others have written


@dataclass(frozen=True, eq=False)
class View:
    """One revision; never changed, so that everything in one answer comes from one model."""

    revision: int
    tagger: MemoryTagger
    labels: Mapping[str, LabelRecord]

    @classmethod
    def of(cls, tagger: Tagger) -> Self:
        suggester = MemoryTagger.from_parts(tagger.vectorizer_, tagger.classifier_)
        return cls(tagger.store.revision, suggester, {record.name: record for record in tagger.store.labels()})


class LivingTagger:
    """The tagger in a directory, for many readers and writers in threads.

    `view` never waits for a writer. A change takes the lock of the directory for its own duration only, so that other
    processes can write in between; what they write is seen by `view` about a second later.

    reader : opened to read, and from now on the living tagger's own
    problem : why the newest revision cannot be read, or ""; the last one that could be read goes on
    """

    def __init__(self, reader: Tagger, *, actor: str = "", read_only: bool = False) -> None:
        self.path, self.actor, self.read_only, self.problem = reader.store.path, actor, read_only, ""
        self._reader, self._view = reader, View.of(reader)
        self._looked = time.monotonic()
        self._looking, self._writing = threading.Lock(), threading.Lock()
        self._learner: _Learner | None = None

    def view(self) -> View:
        """The newest revision, whole."""
        if time.monotonic() - self._looked > LOOK_EVERY and self._looking.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._looking.release()
        return self._view

    def learn(self, name: str, yes: Sequence[str], no: Sequence[str]) -> tuple[LearnReport, int]:
        """Learn a label; it is on the disk and in `view` when this returns. Its report and its revision."""
        with self._writing:
            learner = self._awake()
            try:
                report = learner.learn(name, yes, no)
            except StreamlabelError:
                raise
            except BaseException:
                self._learner = None  # nobody knows how far it came
                raise
            finally:
                learner.close()
            self._catch_up()
            return report, learner.store.revision

    def retire(self, label: int) -> int:
        """Take the label with this id out; the new revision."""

        def change(store: ModelStore) -> int:
            names = [record.name for record in store.labels() if record.id == label]
            if not names:
                raise NotFoundError(f"no label has the id {label}; GET /labels lists all")
            return store.retire(*names)

        return self._change(change)

    def rollback(self, revision: int) -> int:
        """Go back to a revision; the new one."""
        return self._change(lambda store: store.rollback(revision))

    def _change(self, change: Callable[[ModelStore], int]) -> int:
        with self._writing:
            with ModelStore.open(self.path, "a", actor=self.actor) as store:
                revision = change(store)
            self._catch_up()
            return revision

    def _awake(self) -> _Learner:
        """The learner with the lock. What it worked out for earlier labels is kept while nobody else has written."""
        if self._learner is None or not self._learner.resume(self.actor):
            self._learner = None
            self._learner = _Learner.open(self.path, "a", actor=self.actor)
        return self._learner

    def _catch_up(self) -> None:
        with self._looking:
            self._look()

    def _look(self) -> None:
        try:
            with reading(self.path) as connection:
                newest = latest_revision(connection, self.path)
            if newest != self._view.revision:
                self._reader.refresh()
                self._view = View.of(self._reader)
            self.problem = ""
        except (StreamlabelError, OSError) as error:
            self.problem = str(error)
        self._looked = time.monotonic()


class _Learner(Tagger):
    """A tagger that gives the lock back after a change, and takes it again for the next one."""

    def resume(self, actor: str) -> bool:
        """Take the lock; False, without it, where the model was changed since."""
        store = ModelStore.open(self.store.path, "a", actor=actor)
        if store.revision != self.store.revision:
            store.close()
            return False
        self._store = store
        return True
