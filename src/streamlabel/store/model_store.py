"""The store `ModelStore`: a growing model in a directory, with one writer and any number of readers."""

from __future__ import annotations

import copy
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from streamlabel.errors import ConflictError, DataError
from streamlabel.store import changes
from streamlabel.store.append import append_labels, check_grown, write_model
from streamlabel.store.changes import Learn
from streamlabel.store.doctor import Finding, examine
from streamlabel.store.guard import check_directory
from streamlabel.store.parts import ANSWERS, Part
from streamlabel.store.reader import Snapshot, read_snapshot
from streamlabel.store.sqlite import explain
from streamlabel.store.stored_model import CACHE, StoredModel
from streamlabel.store.writer import StoreWriter
from streamlabel.types import CSR

if TYPE_CHECKING:
    from streamlabel.streaming.classifier import StreamingLabelClassifier

# Parts that the package writes.
RESERVED = ("found", "later", "later-texts", "learning", "names", "texts", "trials", "vectorizer")


class ModelStore(StoredModel):
    """A growing model in a directory. `create` and `open` make one; use it in a ``with`` block, or `close` it.

    Everything that `StoredModel` reads, and with ``mode="a"`` changes: each is one revision, on the disk when the
    method returns, whole or not at all. A ``key`` makes a change happen once: the same key again does nothing.
    One thread at a time may change it; `scores` may be called by many.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from streamlabel import ModelStore, StreamingLabelClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> clf = StreamingLabelClassifier(beta=0.1).fit(X, X.astype(int), label_names=["a", "b"])
    >>> path = tempfile.mkdtemp() + "/tags.streamlabel"
    >>> with ModelStore.create(path, clf) as store:
    ...     store.add_labels(None, [1, 1, 1, 0], ["a or b"])
    2
    >>> ModelStore.open(path).label_names
    ('a', 'b', 'a or b')
    """

    def __init__(
        self,
        snapshot: Snapshot,
        cache_bytes: int,
        writer: StoreWriter | None = None,
        catalogue: sqlite3.Connection | None = None,
        *,
        mapped: bool = True,
    ) -> None:
        super().__init__(snapshot, cache_bytes, catalogue, mapped=mapped)
        self._writer = writer
        self._learner: StreamingLabelClassifier | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        model: StreamingLabelClassifier,
        *,
        keep_rows: bool = True,
        parts: Mapping[str, Part] | None = None,
        private: bool = True,
        actor: str = "",
    ) -> ModelStore:
        """Store a fitted model in a new directory, and open it for writing.

        keep_rows : also keep the rows of `fit` and their answers, so that labels can be added after a restart as if
            there had been none; `sizes` says what that takes
        parts : what to put beside the labels, by name
        private : nobody else on this machine may read the directory; False leaves that to the umask
        """
        write_model(Path(path), model, keep_rows=keep_rows, parts=parts or {}, private=private, actor=actor)
        return cls.open(path, "a", actor=actor)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        mode: str = "r",
        *,
        revision: int | None = None,
        leave_out_damaged: bool = False,
        cache_bytes: int = CACHE,
        mapped: bool = True,
        actor: str = "",
    ) -> ModelStore:
        """Open a stored model to read ("r") or to append ("a").

        revision : an older one, to read
        leave_out_damaged : check every row now, and go on without the labels whose rows are damaged
        cache_bytes : how much of the classifiers may be kept as float64 between calls
        mapped : False reads the classifiers at once instead of mapping their files (to read): the model then takes
            their size in memory, and nothing that happens to the files matters to it
        actor : who writes, for the history and for others who would like to
        """
        folder = Path(path)
        if mode not in ("r", "a"):
            raise DataError(f'mode is {mode!r}; it must be "r" (read) or "a" (append)')
        if mode == "a" and (revision is not None or leave_out_damaged):
            raise DataError("an older revision, or a part of a damaged one, can only be read; use mode='r'")
        if mode == "r":
            return cls.read(
                folder, revision=revision, leave_out_damaged=leave_out_damaged, cache_bytes=cache_bytes, mapped=mapped
            )
        check_directory(folder)
        writer = StoreWriter(folder, actor=actor)
        try:
            with explain(folder):
                return cls(read_snapshot(folder, writer.connection), cache_bytes, writer)
        except BaseException:
            writer.close()
            raise

    @staticmethod
    def doctor(path: str | os.PathLike[str], *, repair: bool = False) -> list[Finding]:
        """Find what is wrong with a stored model, [] if nothing; with ``repair``, mend it if that is possible."""
        return examine(Path(path), repair=repair)

    def add_labels(
        self,
        X: ArrayLike | CSR | None,
        Y_new: ArrayLike | CSR,
        label_names: Iterable[str] | None = None,
        *,
        annotated: ArrayLike | CSR | None = None,
        coupled: bool = False,
        key: str | None = None,
    ) -> int:
        """Learn new labels, as `StreamingLabelClassifier.add_labels` does, and store them; returns the new revision.

        X None stands for the rows that the model was fitted on, if they were kept.
        """
        if (done := self._done(key)) is not None:
            return done
        learner = self._learner or self.model()
        if X is None:
            if learner.state_.memory is None:
                raise DataError("the rows of fit are not kept in this store; give the rows that were annotated")
            X = learner.state_.memory.X
        model = copy.copy(learner)
        model.add_labels(X, Y_new, label_names, annotated=annotated, coupled=coupled)
        n_rows = int(X.shape[0] if sparse.issparse(X) else np.shape(X)[0])
        self._write(model, key, n_rows)
        self._learner = self.settled(model)
        return self.revision

    def append(
        self, model: StreamingLabelClassifier, *, beside: Mapping[str, Any] | None = None, key: str | None = None
    ) -> int:
        """Store the labels that a model has learned since it was stored, or since it came from `model()`.

        beside : what to keep beside some of them (JSON), by name; `StoredModel.beside` gives it back
        """
        if (done := self._done(key)) is not None:
            return done
        check_grown(model, self._snapshot)
        self._write(model, key, beside=beside)
        self._learner = None
        return self.revision

    def settled(self, model: StreamingLabelClassifier) -> StreamingLabelClassifier:
        """A model of the same labels on the classifiers as they are stored: rounded to float32."""
        found = copy.copy(model)
        found.state_ = replace(model.state_, classifiers=self._stored())
        return found

    def rename(self, name: str, new_name: str, *, key: str | None = None) -> int:
        """Give a label another name; its id stays."""
        return self._change(changes.rename_label, name, new_name, key=key)

    def retire(self, *names: str, key: str | None = None) -> int:
        """Take labels out; `rollback` brings them back."""
        return self._change(changes.retire_labels, names, key=key)

    def set_threshold(self, name: str, value: float, *, key: str | None = None) -> int:
        """Set the score above which `predict` says yes to a label."""
        return self._change(changes.set_threshold, name, value, key=key)

    def rollback(self, revision: int | None = None, *, label: str | None = None, key: str | None = None) -> int:
        """Go back to a revision; or one label: to a revision, or to what it was before its last change.

        A roll-back is a change, too: that of a label without a revision undoes itself when it is repeated.
        """
        if label is not None:
            return self._change(changes.roll_back_label, label, revision, key=key)
        if revision is None:
            raise DataError("say where to go: rollback(revision), or which label: rollback(label=...)")
        return self._change(changes.roll_back, revision, "rollback", key=key)

    def undo(self, *, key: str | None = None) -> int:
        """Undo the last change; repeated, the one before it, and so on. `rollback` to its revision brings one back."""
        if (done := self._done(key)) is not None:
            return done
        return self._change(changes.roll_back, self.last_change().number - 1, "undo", key=key)

    def merge(self, names: Iterable[str], into: str, *, key: str | None = None) -> int:
        """Put one label in place of several (`changes.merge_labels`)."""
        return self._change(changes.merge_labels, list(names), into, (self._cache, self._records), key=key)

    def relearn(self, name: str, learn: Learn, *, beside: Any = None, key: str | None = None) -> int:
        """Learn a label anew by ``learn`` (`changes.relearn_label`), with its id, in one revision."""
        return self._change(changes.relearn_label, name, learn, (self._cache, self._records), beside, key=key)

    def update(
        self,
        X: ArrayLike | CSR,
        Y: ArrayLike | CSR,
        label_names: Iterable[str] | None = None,
        *,
        annotated: ArrayLike | CSR | None = None,
        parts: Mapping[str, Part] | None = None,
        key: str | None = None,
    ) -> int:
        """Learn labels of `fit` again with new rows (`StreamingLabelClassifier.update`), in one revision; returns it.

        parts : what to put beside the labels with them
        """
        if (done := self._done(key)) is not None:
            return done
        found = (self._learner or self.model()).learn_update(X, Y, label_names, annotated=annotated)
        return self._change(changes.update_labels, found, parts or {}, key=key)

    def put_part(self, name: str, content: Any, arrays: Mapping[str, NDArray[Any]] | None = None) -> int:
        """Put JSON and arrays beside the labels, in place of what had that name."""
        if name in RESERVED or name.startswith(ANSWERS):
            raise ConflictError(f"the name {name!r} is kept for what a model itself puts there; choose another one")
        return self._change(changes.put_part, name, Part(content, arrays or {}), key=None)

    def put_metric(self, label: str, name: str, value: float, n_answers: int) -> int:
        """Store a measurement of a label after so many answers."""
        return self._change(changes.note_metric, label, name, value, n_answers, key=None)

    def vacuum(self, *, keep_from: int | None = None) -> int:
        """Forget the revisions before ``keep_from`` (all but the newest); returns the bytes that were freed."""
        with explain(self.path):
            freed = changes.vacuum(self._writing(), self._snapshot, keep_from)
        self._reload()
        return freed

    def refresh(self) -> int:
        """Read the newest revision from now on; a writer has it already."""
        return super().refresh() if self._writer is None else self.revision

    def close(self) -> None:
        """Give the writer's lock back."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    @contextmanager
    def _catalogue(self) -> Iterator[sqlite3.Connection]:
        if self._writer is None:
            with super()._catalogue() as connection:
                yield connection
        else:
            with explain(self.path):
                yield self._writer.connection

    @property
    def can_write(self) -> bool:
        """Whether the store is open to append."""
        return self._writer is not None

    def check_writing(self) -> None:
        """Raise an error if the store is open for reading only."""
        self._writing()

    def _writing(self) -> StoreWriter:
        if self._writer is None:
            raise ConflictError(f"{self.path} is open for reading only; open it with mode='a'")
        return self._writer

    def _done(self, key: str | None) -> int | None:
        """The revision in which this key was used."""
        self._writing()
        with self._catalogue() as connection:
            found = connection.execute("SELECT revision FROM event WHERE key = ?", (key,)).fetchone()
        return None if found is None else int(found[0])

    def _write(
        self,
        model: StreamingLabelClassifier,
        key: str | None,
        n_rows: int | None = None,
        beside: Mapping[str, Any] | None = None,
    ) -> None:
        """Store the labels that a model has behind those of the store: the one way in which labels are added.

        ``n_rows``: of how many rows some may not have been asked; None if that is not known
        """
        batch = model.state_.labels(len(self._snapshot.labels))
        unasked = [0 if rows is not None else None for rows in batch.positives]
        if n_rows is not None:
            unasked = [n_rows - report.n_rows for report in batch.reports]
        memory = model.state_.memory
        self._show(append_labels(self._writing(), self._snapshot, batch, unasked, key, memory, beside))

    def _change(self, function: Any, *arguments: Any, key: str | None) -> int:
        if (done := self._done(key)) is not None:
            return done
        with explain(self.path):
            function(self._writing(), self._snapshot, *arguments, key)
        return self._reload()

    def _reload(self) -> int:
        self._learner = None
        with self._catalogue() as connection:
            self._show(read_snapshot(self.path, connection, known=self._snapshot.segments))
        return self.revision
