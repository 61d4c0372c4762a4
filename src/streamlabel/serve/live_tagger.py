"""A stored tagger as it is served: one whole immutable view that is swapped whole, and one writer at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from streamlabel.errors import NotFoundError, StreamlabelError
from streamlabel.serve.access import SERVICE_WORDS, Refusal, mistakes
from streamlabel.store.format import CATALOGUE
from streamlabel.store.history import LabelRecord
from streamlabel.store.model_store import ModelStore
from streamlabel.store.reader import latest_revision
from streamlabel.store.sqlite import reading
from streamlabel.tagging.learn_report import LearnReport
from streamlabel.tagging.tagger import Tagger


@dataclass(frozen=True)
class Mark:
    """The mark of a revision: device and number of the catalogue's file; a note of when it was made, by whom, what."""

    file: tuple[int, int]
    revision: int
    note: tuple[Any, ...] | None


def read_mark(folder: Path, revision: int | None = None) -> Mark:
    """Read the mark of the newest revision, or of that one; its note is None if there is no such revision."""
    with reading(folder) as connection:
        found = (folder / CATALOGUE).stat()
        number = latest_revision(connection, folder) if revision is None else revision
        query = "SELECT at, actor, action, detail FROM revision WHERE number = ?"
        note = connection.execute(query, (number,)).fetchone()
    return Mark((found.st_dev, found.st_ino), number, note)


logger = logging.getLogger("streamlabel.serve")
LOOK_EVERY = 1.0  # seconds after which somebody looks again for what others have written


@dataclass(frozen=True, eq=False)
class View:
    """One revision of the tagger; never changed, so that everything in one answer comes from one model."""

    revision: int
    tagger: Tagger
    labels: Mapping[str, LabelRecord]

    @classmethod
    def of(cls, tagger: Tagger) -> Self:
        """Make the view of an opened tagger."""
        suggester = Tagger.from_parts(tagger.vectorizer_, tagger.classifier_)
        return cls(tagger.store.revision, suggester, {record.name: record for record in tagger.store.labels()})


class LivingTagger:
    """A stored tagger in a directory, for many readers and writers in threads.

    `view` never waits for a writer. A change takes the lock of the directory for its own duration only, so that other
    processes can write in between; what they write is seen by `view` about a second later, also if it is a whole
    other model.

    reader : opened to read, and from now on the living tagger's own
    problem : why the newest revision cannot be read, or ""; the last one that could be read goes on
    """

    def __init__(self, reader: Tagger, *, actor: str = "", read_only: bool = False) -> None:
        self.path, self.actor, self.read_only, self.problem = reader.store.path, actor, read_only, ""
        self._reader, self._view = reader, View.of(reader)
        self._mark = read_mark(self.path, self._view.revision)
        self._looked = time.monotonic()
        self._looking, self._writing = threading.Lock(), threading.Lock()
        self._learner: _Learner | None = None

    def view(self) -> View:
        """The newest revision, as one whole view."""
        if time.monotonic() - self._looked > LOOK_EVERY and self._looking.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._looking.release()
        return self._view

    def learn(self, name: str, yes: Sequence[str], no: Sequence[str]) -> tuple[LearnReport, int]:
        """Learn a label; it is on the disk and in `view` when this returns. Returns its report and its revision."""
        with self._writing:
            learner = self._awake()
            try:
                report = learner.learn_new(name, yes, no)
            except Refusal:
                raise
            except BaseException:
                self._learner = None  # nobody knows how far it came
                raise
            finally:
                learner.close()
            self._catch_up()
            return report, learner.mark.revision

    def retire(self, label: int) -> int:
        """Take the label with this id out; returns the new revision."""

        def change(store: ModelStore) -> int:
            names = [record.name for record in store.labels() if record.id == label]
            if not names:
                raise Refusal(404, f"no label has the id {label}; GET /labels lists all")
            return store.retire(*names)

        return self._change(change)

    def rollback(self, revision: int) -> int:
        """Go back to a revision; returns the new one."""

        def change(store: ModelStore) -> int:
            try:
                return store.rollback(revision)
            except NotFoundError as error:
                logger.info("%s", error)
                raise Refusal(404, f"there is no revision {revision}; the newest is {store.revision}") from None

        return self._change(change)

    def _change(self, change: Callable[[ModelStore], int]) -> int:
        with self._writing:
            with ModelStore.open(self.path, "a", actor=self.actor) as store, mistakes():
                revision = change(store)
            self._catch_up()
            return revision

    def _awake(self) -> _Learner:
        """The learner with the lock. What it worked out for earlier labels is kept while nobody else has written."""
        if self._learner is None or not self._learner.resume(self.actor):
            self._learner = None
            self._learner = _Learner.begin(self.path, self.actor)
        return self._learner

    def _catch_up(self) -> None:
        with self._looking:
            self._look()

    def _look(self) -> None:
        try:
            newest = read_mark(self.path)
            if newest != self._mark:
                if read_mark(self.path, self._mark.revision) == self._mark:
                    self._reader.refresh()
                else:
                    self._reader = Tagger.open(self.path, mapped=self._reader.store.mapped)
                self._view, self._mark = View.of(self._reader), newest
            self.problem = ""
        except (StreamlabelError, OSError) as error:
            problem = error.told(SERVICE_WORDS) if isinstance(error, StreamlabelError) else str(error)
            if problem != self.problem:
                logger.error("the newest revision cannot be read, the last one that could be goes on: %s", problem)
            self.problem = problem
        self._looked = time.monotonic()


class _Learner(Tagger):
    """A tagger that gives the lock back after a change, and takes it again for the next one.

    mark : of the revision that it knows
    """

    mark: Mark

    @classmethod
    def begin(cls, path: Path, actor: str) -> Self:
        learner = cls.open(path, "a", actor=actor)
        try:
            learner.mark = read_mark(path)
        except BaseException:
            learner.close()
            raise
        return learner

    def resume(self, actor: str) -> bool:
        """Take the lock; False, without it, if the model was changed since."""
        store = ModelStore.open(self.store.path, "a", actor=actor)
        try:
            known = read_mark(store.path) == self.mark
        except BaseException:
            store.close()
            raise
        if not known:
            store.close()
            return False
        self._store = store
        return True

    def learn_new(self, name: str, yes: Sequence[str], no: Sequence[str]) -> LearnReport:
        """Learn a label; Refusal if the answers are wrong, and then nothing has changed."""
        if name in self.label_names_:
            raise Refusal(409, f"label {name!r} is known already; choose another name, or DELETE that label first")
        with mistakes():
            report = self.learn(name, yes, no)
        self.mark = read_mark(self.store.path)
        return report
