"""A stored tagger as it is served: one whole immutable view that is swapped whole, and one writer at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from scipy.special import expit

from streamlabel.errors import DataError, Hint, NotFoundError, StreamlabelError
from streamlabel.serve.access import SERVICE_WORDS, Refusal, mistakes
from streamlabel.store.format import CATALOGUE
from streamlabel.store.history import LabelRecord, Revision
from streamlabel.store.model_store import ModelStore
from streamlabel.store.parts import NAMES, VECTORIZER
from streamlabel.store.reader import latest_revision
from streamlabel.store.sqlite import reading
from streamlabel.streaming.calibration import Estimate
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.found import threshold_for_precision
from streamlabel.tagging.examples import LabelExamples
from streamlabel.tagging.learn_report import LearnReport, learn_rows
from streamlabel.tagging.names import TextDirections, stored_reader
from streamlabel.tagging.questions import Question
from streamlabel.tagging.suggester import best_labels
from streamlabel.tagging.tagger import Tagger
from streamlabel.tagging.text_answers import ENOUGH, TextPool, digest, filled_rows
from streamlabel.types import BoolArray, FloatArray

Found = TypeVar("Found")


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
TAKES_ROWS = "this model takes rows of numbers, and this is for texts"
LOOK_EVERY = 1.0  # seconds after which somebody looks again for what others have written
MOST_CHARACTERS = 64 << 20  # of all texts that are remembered
MOST_ANSWERED = 1000  # texts that were answered, kept in memory so that the answers can be corrected


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
                if text not in self._texts:
                    self._characters, self._version = self._characters + len(text), self._version + 1
                self._texts.pop(text, None)
                self._texts[text] = None
            while self.most and (len(self._texts) > self.most or self._characters > MOST_CHARACTERS):
                oldest = next(iter(self._texts))
                del self._texts[oldest]
                self._characters -= len(oldest)


@dataclass(frozen=True, eq=False)
class View:
    """One revision of the tagger; never changed, so that everything in one answer comes from one model.

    tagger : not fitted where the model takes rows of numbers
    """

    revision: int
    tagger: Tagger
    labels: Mapping[str, LabelRecord]
    classifier: StreamingLabelClassifier
    takes_rows: bool = False

    @classmethod
    def of(cls, reader: Tagger | ModelStore) -> Self:
        """Make the view of an opened tagger, or of the store of a model that takes rows."""
        takes_rows = isinstance(reader, ModelStore)
        store = reader if isinstance(reader, ModelStore) else reader.store
        classifier = reader.model(learning=False) if isinstance(reader, ModelStore) else reader.classifier_
        tagger = Tagger() if isinstance(reader, ModelStore) else Tagger.from_parts(reader.vectorizer_, classifier)
        labels = {record.name: record for record in store.labels()}
        return cls(store.revision, tagger, labels, classifier, takes_rows)

    def chances(self, texts: Sequence[str], names: Sequence[str]) -> tuple[FloatArray, BoolArray]:
        """The probability that labels apply to texts, (n, k), and where that is a yes."""
        records, parts = [self.labels[name] for name in names], ("slope", "shift", "threshold")
        slope, shift, threshold = (np.array([getattr(one, part) for one in records]) for part in parts)
        scores, known = self.tagger.scores_of(texts, names)
        return np.clip(expit(slope * scores + shift), 0.0, 1.0), (scores > threshold) & known[:, None]

    def suggest_rows(self, rows: Sequence[Sequence[float]], k: int) -> list[list[tuple[str, float]]]:
        """The k best labels of rows of numbers with their scores, best first."""
        X = self.rows(rows, "rows")
        return best_labels(self.classifier.label_names_, self.classifier.decision_function(X), k) if len(X) else []

    def rows(self, rows: Sequence[Sequence[float]], where: str) -> FloatArray:
        """Rows of numbers as one array; Refusal if one has another length than the model has features."""
        width = self.classifier.n_features_in_
        for place, row in enumerate(rows):
            if len(row) != width:
                problem = f"{where}[{place}] has {len(row):,} numbers; the model takes {width:,} in a row"
                raise Refusal(422, problem)
        return np.array(rows, dtype=np.float64).reshape(len(rows), width)


def open_reader(path: Path, *, mapped: bool = True) -> Tagger | ModelStore:
    """Open a stored model to read: as a tagger, or the store alone where it takes rows of numbers."""
    store = ModelStore.open(path, mapped=mapped)
    return Tagger.of_store(store) if VECTORIZER in store.parts() else store


class LivingTagger:
    """A stored tagger in a directory, for many readers and writers in threads.

    `view` never waits for a writer. A change takes the lock of the directory for its own duration only, so that other
    processes can write in between; what they write is seen by `view` about a second later, also if it is a whole
    other model.

    reader : opened to read, and from now on the living tagger's own; a store if the model takes rows of numbers
    recent : the pool by which labels are judged, if it holds enough texts, and of which questions are asked
    problem : why the newest revision cannot be read, or ""; the last one that could be read goes on
    n_lost : events of an annotation tool that could not be written
    """

    def __init__(
        self,
        reader: Tagger | ModelStore,
        *,
        actor: str = "",
        read_only: bool = False,
        recent: RecentTexts | None = None,
    ) -> None:
        self.recent = RecentTexts() if recent is None else recent
        self._reader, self._view = reader, View.of(reader)
        self.path, self.read_only, self.problem, self.n_lost = self._store.path, read_only, "", 0
        self._actor, self._acting = actor, threading.local()
        self._mark = read_mark(self.path, self._view.revision)
        self._looked = time.monotonic()
        self._looking, self._writing = threading.Lock(), threading.Lock()
        self._learner: _Learner | None = None
        self._answered: dict[bytes, str] = {}
        if not read_only and isinstance(reader, Tagger) and NAMES in reader.store.parts():
            names = stored_reader(reader.store.get_part(NAMES).content, self.path, learning=True)
            TextDirections.of(names, reader.vectorizer_)  # what reads names must be there before somebody needs it

    @property
    def actor(self) -> str:
        """Who changes the model, for the history."""
        return getattr(self._acting, "name", self._actor)

    @contextmanager
    def acting(self, name: str) -> Iterator[None]:
        """What this thread changes meanwhile is of the one with this name."""
        self._acting.name = name
        try:
            yield
        finally:
            del self._acting.name

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
        withdrawn: Sequence[bytes] = (),
    ) -> tuple[LearnReport, int]:
        """Learn a label; it is on the disk and in `view` when this returns. Returns its report and its revision.

        more : a label that is known, from the answers that it has and from these;   asked : they answer questions
        withdrawn : digests of texts whose answers it shall forget
        """

        def work(learner: _Learner, looked: Any) -> LearnReport:
            report = learner.learn_kept(name, yes, no, about, looked, more=more, asked=asked, withdrawn=withdrawn)
            self._note(yes, no)
            return report

        return self._learned(pool, work)

    def learn_many(
        self,
        answers: Mapping[str, tuple[Sequence[str], Sequence[str]]],
        *,
        about: Mapping[str, str],
        pool: Sequence[str] | None = None,
    ) -> tuple[list[LearnReport], int]:
        """Learn several labels in one revision: all of them, or none if something is wrong."""
        return self._learned(pool, lambda learner, looked: learner.learn_kept_many(answers, about, looked))

    def learn_rows(
        self, name: str, yes: Sequence[Sequence[float]], no: Sequence[Sequence[float]]
    ) -> tuple[LearnReport, int]:
        """Learn a label of a model that takes rows of numbers, from rows for yes and for no."""
        X = np.vstack((self._view.rows(yes, "yes"), self._view.rows(no, "no")))
        answers = np.repeat([1, 0], (len(yes), len(no)))

        def change(store: ModelStore) -> tuple[LearnReport, int]:
            check_free(name, store.label_names)
            return learn_rows(store, name, X, answers), store.revision

        return self._change(change)

    def _learned(self, pool: Sequence[str] | None, work: Callable[[_Learner, Any], Found]) -> tuple[Found, int]:
        """What the learner makes of some answers, and the revision in which it is stored."""
        with self._writing:
            learner = self._learner
            if learner is None or not learner.resume(self.actor):  # what it worked out is kept while nobody else writes
                self._learner = None
                learner = self._learner = _Learner.begin(self.path, self.actor)
            try:
                looked = pool if pool is not None or len(self.recent) < ENOUGH else self.recent.pool(learner)
                found = work(learner, looked)
            except Refusal:
                raise
            except BaseException:
                self._learner = None  # nobody knows how far it came
                raise
            finally:
                learner.close()
            self._catch_up()
            return found, learner.mark.revision

    def next(self, label: str, pool: Sequence[str] | None, n: int) -> tuple[list[Question], int, int]:
        """Texts to ask about a label, of a pool or of the recent texts; of how many, and of which revision."""
        reader = self._tagger
        looked = self.recent.pool(reader) if pool is None else reader.pool(pool)
        with self._looking:  # nobody moves the reader on meanwhile
            check_known(label, reader.label_names_)
            return reader.next(label, looked, n), len(looked.texts), reader.store.revision

    def estimate(self, label: str) -> tuple[View, Estimate | None, bool]:
        """The view, how good a label was thought to be when it was learned (None: not estimated), `threshold_moved`."""
        self.view()
        with self._looking:
            check_known(label, self._view.labels)
            found = self._reader.estimate(label) if isinstance(self._reader, Tagger) else None
            moved = found is not None and threshold_moved(self._store, self._view.labels[label])
            return self._view, found, moved

    def history(self, label: str | None = None) -> tuple[list[Revision], int]:
        """The revisions, newest first, or those that changed a label; and the newest revision."""
        self.view()
        with self._looking:
            try:
                return self._store.history(label), self._store.revision
            except NotFoundError:
                raise Refusal(404, f"no label was ever called {label!r}") from None

    def rename(self, label: str, name: str) -> int:
        """Give a label another name; returns the new revision."""

        def change(store: ModelStore) -> int:
            check_known(label, store.label_names)
            check_free(name, store.label_names)
            return store.rename(label, name)

        return self._change(change)

    def set_threshold(self, label: str, value: float | None) -> int:
        """Set the threshold of a label, None for the one that it was learned with; returns the new revision."""

        def change(store: ModelStore) -> int:
            check_known(label, store.label_names)
            if value is not None:
                return store.set_threshold(label, value)
            record = store.labels()[store.label_names.index(label)]
            return store.set_threshold(label, store.learned_threshold(record))

        return self._change(change)

    def set_precision(self, label: str, precision: float, pool: Sequence[str] | None) -> int:
        """Set the lowest threshold at which a precision is expected; returns the new revision.

        A label whose answers are kept is learned again for it.
        """

        def work(learner: _Learner, looked: Any) -> int:
            check_known(label, learner.label_names_)
            number = learner.label_names_.index(label)
            with mistakes():
                if learner.store.beside(number):
                    learner.learn_more(label, pool=looked, precision=precision)
                else:
                    X = None if looked is None else learner.pool(looked).rows
                    X = None if X is None else X[filled_rows(X)]
                    value = threshold_for_precision(learner.classifier_.state_, number, precision, X)[0]
                    learner.store.set_threshold(label, value)
                    learner.refresh()
            learner.mark = read_mark(self.path)
            return learner.mark.revision

        return self._learned(pool, work)[0]

    def examples(self, label: str) -> LabelExamples | None:
        """The answers that a label was learned from, without the texts; None if there is no such label, or none."""
        self.view()
        with self._looking:
            if not isinstance(self._reader, Tagger) or label not in self._view.labels:
                return None
            return self._reader.examples(label)

    def retire(self, label: int) -> int:
        """Take the label with this id out; returns the new revision."""

        def change(store: ModelStore) -> int:
            names = [record.name for record in store.labels() if record.id == label]
            if not names:
                raise Refusal(404, f"no label has the id {label}", hint=Hint.LABELS)
            if len(store.label_names) == 1:
                raise Refusal(409, f"a model needs at least one label, and {names[0]!r} is the last one")
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

    def undo(self, revision: int | None = None) -> tuple[Revision, int]:
        """Undo the last change, if it is this revision where one is given; returns it, and the new revision."""

        def change(store: ModelStore) -> tuple[Revision, int]:
            try:
                undone = store.last_change()
            except DataError as error:
                raise Refusal(409, error.problem) from None
            if revision not in (None, undone.number):
                problem = f"the last change is revision {undone.number} now, not {revision}; look again, then undo"
                raise Refusal(409, problem)
            return undone, store.undo()

        return self._change(change)

    @property
    def _store(self) -> ModelStore:
        return self._reader.store if isinstance(self._reader, Tagger) else self._reader

    @property
    def _tagger(self) -> Tagger:
        if not isinstance(self._reader, Tagger):
            raise Refusal(409, TAKES_ROWS)
        return self._reader

    def _change(self, change: Callable[[ModelStore], Found]) -> Found:
        with self._writing:
            with ModelStore.open(self.path, "a", actor=self.actor) as store, mistakes():
                found = change(store)
            self._catch_up()
            return found

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
                    self._reader = open_reader(self.path, mapped=self._store.mapped)
                self._view, self._mark = View.of(self._reader), newest
            self.problem = ""
        except (StreamlabelError, OSError) as error:
            problem = error.told(SERVICE_WORDS) if isinstance(error, StreamlabelError) else str(error)
            if problem != self.problem:
                logger.error("the newest revision cannot be read, the last one that could be goes on: %s", problem)
            self.problem = problem
        self._looked = time.monotonic()

    @contextmanager
    def reading(self) -> Iterator[tuple[View, Tagger]]:
        """The newest view, and the reader of its revision, which nobody moves on meanwhile."""
        self.view()
        with self._looking:
            yield self._view, self._tagger

    def texts_of(self, digests: Iterable[bytes]) -> dict[bytes, str]:
        """The texts with these digests, of those in the pool or answered since the service began."""
        wanted, pool = set(digests), self.recent.pool(self._tagger)
        found = {one: text for one, text in self._answered.copy().items() if one in wanted}
        for one, text in zip(pool.digests, pool.texts, strict=True):
            if (key := one.tobytes()) in wanted:
                found[key] = text
        return found

    def _note(self, *sides: Iterable[str]) -> None:
        """Keep texts that were answered, so that their answers can be shown; the oldest make room."""
        for text in (text for side in sides for text in side):
            self._answered[digest(text)] = text
        while len(self._answered) > MOST_ANSWERED or sum(map(len, self._answered.values())) > MOST_CHARACTERS:
            del self._answered[next(iter(self._answered))]


def threshold_moved(store: ModelStore, record: LabelRecord) -> bool:
    """Whether a label's threshold is another one than its estimate is for."""
    known = {store.learned_threshold(record)}
    for revision, _ in store.estimates_since(store.label_names.index(record.name))[-1:]:
        # learned again for a precision: the weights may be the same, the threshold not
        known.update(threshold for born, _, threshold in store.thresholds(record.id) if born == revision)
    return record.threshold not in known


def check_known(label: str, names: Iterable[str]) -> None:
    """Refuse a label that there is not."""
    if label not in names:
        raise Refusal(404, f"no label is called {label!r}", hint=Hint.LABELS)


def check_free(name: str, names: Iterable[str]) -> None:
    """Refuse the name of a label that there is."""
    if name in names:
        problem = f"label {name!r} is known already; choose another name, send answers for it, or DELETE it first"
        raise Refusal(409, problem)


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
        store.take_over(self.store)
        self._store = store
        return True

    def learn_kept(
        self,
        name: str,
        yes: Sequence[str],
        no: Sequence[str],
        about: str,
        pool: Any,
        *,
        more: bool,
        asked: bool,
        withdrawn: Sequence[bytes],
    ) -> LearnReport:
        """Learn a label, or more about one; Refusal if the answers are wrong, and then nothing has changed."""
        if more:
            check_known(name, self.label_names_)
            if not self.store.beside(self.label_names_.index(name)):
                raise Refusal(409, f"the answers that {name!r} was learned from are not kept; none can be added")
        else:
            check_free(name, self.label_names_)
        with mistakes():
            if more:
                report = self.learn_more(name, yes, no, asked=asked, pool=pool, withdrawn=withdrawn)
            else:
                report = self.learn(name, yes, no, about=about, pool=pool)
        self.mark = read_mark(self.store.path)
        return report

    def learn_kept_many(
        self, answers: Mapping[str, tuple[Sequence[str], Sequence[str]]], about: Mapping[str, str], pool: Any
    ) -> list[LearnReport]:
        """Learn labels in one revision; Refusal if something is wrong with one, and then nothing has changed."""
        for name in answers:
            check_free(name, self.label_names_)
        with mistakes():
            reports = self.learn_many(answers, about=about, pool=pool)
        self.mark = read_mark(self.store.path)
        return reports
