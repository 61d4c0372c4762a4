"""A stored tagger as it is served: one whole immutable view that is swapped whole, and one writer at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from streamlabel.streaming.calibration import Estimate
from streamlabel.tagging.learn_report import LearnReport
from streamlabel.tagging.questions import Question
from streamlabel.tagging.tagger import Tagger
from streamlabel.tagging.text_answers import ENOUGH, TextPool


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
MOST_CHARACTERS = 64 << 20  # of all texts that are remembered


class RecentTexts:
    """The pool of a service, in memory only: texts of who runs it, and the newest ``most`` that it was sent."""

    def __init__(self, texts: Iterable[str] = (), most: int = 0) -> None:
        self.most, self._lock = most, threading.Lock()
        self._texts: dict[str, None] = {}
        self._characters = self._version = 0
        self._made: list[tuple[object, int, TextPool]] = []  # vectoriser, version, pool
        self._add(texts)

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, texts: Iterable[str]) -> None:
        """Remember texts, if any are to be remembered; the oldest make room."""
        if self.most:
            self._add(texts)

    def pool(self, tagger: Tagger) -> TextPool:
        """The texts as a pool for a tagger; made again only if there are new ones."""
        with self._lock:
            version, texts = self._version, list(self._texts)
            for vectorizer, known, made in self._made:
                if vectorizer is tagger.vectorizer_ and known == version:
                    return made
        pool = tagger.pool(texts)
        with self._lock:  # one for readers, one for the writer
            self._made = [(tagger.vectorizer_, version, pool), *self._made[:1]]
        return pool

    def _add(self, texts: Iterable[str]) -> None:
        with self._lock:
            for text in texts:
                self._characters += 0 if text in self._texts else len(text)
                self._texts.pop(text, None)
                self._texts[text] = None
            while self.most and (len(self._texts) > self.most or self._characters > MOST_CHARACTERS):
                oldest = next(iter(self._texts))
                del self._texts[oldest]
                self._characters -= len(oldest)
            self._version += 1


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
    recent : the pool by which labels are judged, if it holds enough texts, and of which questions are asked
    problem : why the newest revision cannot be read, or ""; the last one that could be read goes on
    """

    def __init__(
        self, reader: Tagger, *, actor: str = "", read_only: bool = False, recent: RecentTexts | None = None
    ) -> None:
        self.recent = RecentTexts() if recent is None else recent
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

    def learn(
        self,
        name: str,
        yes: Sequence[str],
        no: Sequence[str],
        *,
        about: str = "",
        pool: Sequence[str] | None = None,
        more: bool = False,
        asked: bool = False,
    ) -> tuple[LearnReport, int]:
        """Learn a label; it is on the disk and in `view` when this returns. Returns its report and its revision.

        more : a label that is known, from the answers that it has and from these;   asked : they answer questions
        """
        with self._writing:
            learner = self._awake()
            try:
                looked = pool if pool is not None or len(self.recent) < ENOUGH else self.recent.pool(learner)
                report = learner.learn_kept(name, yes, no, about, looked, more=more, asked=asked)
            except Refusal:
                raise
            except BaseException:
                self._learner = None  # nobody knows how far it came
                raise
            finally:
                learner.close()
            self._catch_up()
            return report, learner.mark.revision

    def next(self, label: str, pool: Sequence[str] | None, n: int) -> tuple[list[Question], int, int]:
        """Texts to ask about a label, of a pool or of the recent texts; of how many, and of which revision."""
        reader = self._reader
        looked = self.recent.pool(reader) if pool is None else reader.pool(pool)
        with self._looking:  # nobody moves the reader on meanwhile
            check_known(label, reader.label_names_)
            return reader.next(label, looked, n), len(looked.texts), reader.store.revision

    def estimate(self, label: str) -> tuple[View, Estimate | None]:
        """How good a label was thought to be when it was learned, None if nothing was estimated; and the view."""
        self.view()
        with self._looking:
            check_known(label, self._view.labels)
            return self._view, self._reader.estimate(label)

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


def check_known(label: str, names: Iterable[str]) -> None:
    """Refuse a label that there is not."""
    if label not in names:
        raise Refusal(404, f"no label is called {label!r}; GET /labels lists all")


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

    def learn_kept(
        self, name: str, yes: Sequence[str], no: Sequence[str], about: str, pool: Any, *, more: bool, asked: bool
    ) -> LearnReport:
        """Learn a label, or more about one; Refusal if the answers are wrong, and then nothing has changed."""
        if more:
            check_known(name, self.label_names_)
            if not self.store.beside(self.label_names_.index(name)):
                raise Refusal(409, f"the answers that {name!r} was learned from are not kept; none can be added")
        elif name in self.label_names_:
            problem = f"label {name!r} is known already; choose another name, send answers for it, or DELETE it first"
            raise Refusal(409, problem)
        with mistakes():
            if more:
                report = self.learn_more(name, yes, no, asked=asked, pool=pool)
            else:
                report = self.learn(name, yes, no, about=about, pool=pool)
        self.mark = read_mark(self.store.path)
        return report
