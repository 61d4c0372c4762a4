"""The reading side of a stored model: one whole revision, and what there is to know about all of them."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from streamlabel.errors import DataError, Hint, NotFoundError
from streamlabel.store.classifiers import BlockCache, StoredClassifiers
from streamlabel.store.damage import check_labels
from streamlabel.store.history import (
    LabelChange,
    LabelRecord,
    Metric,
    Revision,
    StoreSizes,
    read_diff,
    read_history,
    read_metrics,
    read_sizes,
    read_thresholds,
    records_of,
)
from streamlabel.store.parts import (
    ANSWERS,
    Part,
    list_parts,
    read_beside,
    read_estimates,
    read_estimates_since,
    read_part,
)
from streamlabel.store.predict import best_labels
from streamlabel.store.reader import LIVE, Snapshot, damaged_columns, load_snapshot, read_files, read_snapshot
from streamlabel.store.segments import map_file
from streamlabel.store.sqlite import copied, explain
from streamlabel.streaming.label_index import LabelIndex
from streamlabel.types import CSR, FloatArray, IntArray
from streamlabel.validation import checked_matrix

if TYPE_CHECKING:
    from streamlabel.streaming.classifier import StreamingLabelClassifier

CACHE = 1 << 30


class StoredModel:
    """One revision of a stored model, read-only. It stays what it is while others write; `refresh` moves on."""

    def __init__(
        self, snapshot: Snapshot, cache_bytes: int, catalogue: sqlite3.Connection | None = None, *, mapped: bool = True
    ) -> None:
        self._snapshot = snapshot
        self._cache, self.mapped = BlockCache(cache_bytes), mapped
        self._classifiers: StoredClassifiers | None = None
        self._records: dict[Any, LabelRecord] = {}
        self._listed: tuple[Snapshot, list[LabelRecord]] | None = None
        self._index: LabelIndex | None = None
        self._own: _OwnCatalogue | None = None if catalogue is None else _OwnCatalogue(snapshot, catalogue)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        revision: int | None = None,
        leave_out_damaged: bool = False,
        cache_bytes: int = CACHE,
        mapped: bool = True,
    ) -> Self:
        """Open a stored model to read; the parameters are those of `ModelStore.open`."""
        snapshot, catalogue = load_snapshot(Path(path), revision, lenient=leave_out_damaged, mapped=mapped)
        if leave_out_damaged:
            damaged = [column for column, _ in damaged_columns(snapshot)]
            snapshot = snapshot.take(np.setdiff1d(np.arange(len(snapshot.labels)), damaged))
        return cls(snapshot, cache_bytes, catalogue=catalogue, mapped=mapped)

    @property
    def path(self) -> Path:
        """The directory of the model."""
        return self._snapshot.folder

    @property
    def revision(self) -> int:
        """The number of the revision that is read."""
        return self._snapshot.revision

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of the labels, in the order of every column: that of their ids."""
        return self._snapshot.names

    @property
    def n_features(self) -> int:
        return self._snapshot.n_features

    def refresh(self) -> int:
        """Read the newest revision from now on; returns its number."""
        snapshot, catalogue = load_snapshot(self.path, mapped=self.mapped)
        self._own = _OwnCatalogue(snapshot, catalogue)
        self._show(snapshot)
        return self.revision

    def scores(self, X: ArrayLike | CSR) -> FloatArray:
        """Scores (n, m), columns as in `label_names`: the same bits as `model().decision_function(X)`."""
        return self._stored().scores(self._rows(X))

    def predict_top_k(
        self, X: ArrayLike | CSR, k: int = 5, *, approximate: bool = False
    ) -> tuple[IntArray, FloatArray]:
        """The k best labels of each row and their scores, as `StreamingLabelClassifier.predict_top_k`."""
        rows, classifiers = self._rows(X), self._stored()
        if not approximate:
            return best_labels(classifiers, rows, k)
        self._index = LabelIndex.of(classifiers, self._index)
        return self._index.top_labels(classifiers, rows, k)

    def _rows(self, X: ArrayLike | CSR) -> CSR | FloatArray:
        matrix = checked_matrix(X)
        if matrix.shape[1] != self.n_features:
            raise DataError(f"X has {matrix.shape[1]} features; the stored model has {self.n_features}")
        return matrix

    def model(self, *, learning: bool = True) -> StreamingLabelClassifier:
        """The estimator, on the classifiers as they are stored: weights rounded to float32, multiplied in float64.

        It can learn further labels; they are not stored before `append`. ``learning`` False leaves out the rows that
        it was fitted on, which saves reading them.
        """
        from streamlabel.store.assemble import assemble  # with scikit-learn, which takes a second

        with self._catalogue() as connection:
            stored, maps, records = self._stored(), self._maps(), self._read_records(connection)
            return assemble(self._snapshot, connection, stored, learning=learning, maps=maps, records=records)

    def labels(self, revision: int | None = None) -> list[LabelRecord]:
        """The records of all labels: everything that is known about each; of an older revision if one is given."""
        with self._catalogue() as connection:
            if revision is None:
                return self._read_records(connection).copy()
            segments = self._snapshot.segments
            return records_of(connection, read_snapshot(self.path, connection, revision, segments, mapped=self.mapped))

    def history(self, label: str | None = None) -> list[Revision]:
        """Every revision, newest first; or those that touched a label."""
        with self._catalogue() as connection:
            return read_history(connection, self.path, label)

    def learned_threshold(self, record: LabelRecord) -> float:
        """The threshold that a label was learned with: of the oldest revision that has it with the same classifier."""
        same = (threshold for _, checksum, threshold in self.thresholds(record.id) if checksum == record.checksum)
        return next(same, record.threshold)

    def thresholds(self, label: int) -> list[tuple[int, int, float]]:
        """The thresholds that a label (id) has had (`history.read_thresholds`), oldest first."""
        with self._catalogue() as connection:
            return read_thresholds(connection, self.path, label)

    def last_change(self) -> Revision:
        """The newest change that is not undone; DataError if there is none, or none that can be undone."""
        newest = self.revision
        for one in self.history():
            if one.number <= newest and one.action == "undo":
                newest = one.detail["to"]
            elif one.number <= newest and one.action != "vacuum":
                if one.number > self._snapshot.meta["oldest"]:
                    return one
                break
        raise DataError("there is no change to undo", source=self.path)

    def diff(self, before: int, after: int | None = None) -> list[LabelChange]:
        """The changes of the labels between two revisions; up to the one that is read by default."""
        with self._catalogue() as connection:
            return read_diff(connection, self.path, before, self.revision if after is None else after)

    def check_revision(self, revision: int, changes: Iterable[LabelChange]) -> None:
        """Raise an error if a label of these changes is damaged in a revision, so that it could not come back."""
        with self._catalogue() as connection:
            check_labels(self.path, connection, (change.id for change in changes), revision)

    def metrics(self, label: str | None = None) -> list[Metric]:
        """Measurements that were noted with `put_metric`, oldest first."""
        column = None if label is None else self._snapshot.column(label)
        with self._catalogue() as connection:
            return read_metrics(connection, None if column is None else int(self._snapshot.labels[column]))

    def parts(self) -> list[str]:
        """The names of the parts beside the labels."""
        with self._catalogue() as connection:
            return sorted(list_parts(connection, self.revision))

    def get_part(self, name: str) -> Part:
        """A part as `put_part` got it; its arrays are mapped, and cannot be written to."""
        with self._catalogue() as connection:
            files = read_files(connection, self.path, self.n_features)
            return read_part(self.path, connection, files, name, self.revision, maps=self._maps())

    def beside(self, number: int) -> list[tuple[int, Any]]:
        """What is kept beside a label of this number (`parts.read_beside`), oldest first; [] if there is nothing."""
        classifier = int(self._snapshot.classifiers[number])
        try:
            with self._catalogue() as connection:
                return read_beside(self.path, connection, classifier, self.revision)
        except (DataError, NotFoundError) as error:
            problem = f"the answers of label {self.label_names[number]!r} are damaged ({error.args[0]})"
            raise DataError(problem, hint=Hint.DOCTOR) from error

    def estimates(self, numbers: Sequence[int]) -> dict[int, Any]:
        """The estimates that are kept beside labels of these numbers, as they were stored; a glance, not checked."""
        names = {f"{ANSWERS}{self._snapshot.classifiers[number]}": number for number in numbers}
        with self._catalogue() as connection:
            return {names[name]: found for name, found in read_estimates(connection, self.revision, list(names))}

    def estimates_since(self, number: int) -> list[tuple[int, Any]]:
        """The estimates of a label each time that it was learned, (revision, estimate), oldest first; not checked."""
        with self._catalogue() as connection:
            return read_estimates_since(connection, self.revision, int(self._snapshot.labels[number]))

    def with_something_beside(self) -> list[int]:
        """The numbers of the labels for which `beside` has something."""
        with self._catalogue() as connection:
            names = list_parts(connection, self.revision)
        wanted = (f"{ANSWERS}{number}" for number in self._snapshot.classifiers.tolist())
        return [place for place, name in enumerate(wanted) if name in names]

    def sizes(self) -> StoreSizes:
        """The bytes on the disk, by what they are for."""
        with self._catalogue() as connection:
            return read_sizes(connection, self.path)

    def verify(self) -> list[str]:
        """Read every row of this revision, and all that is said about it; what is wrong. [] where all is whole."""
        from streamlabel.store.doctor import HISTORY, examine

        damaged = list(damaged_columns(self._snapshot))
        said = {("label", int(self._snapshot.labels[column])) for column, _ in damaged}
        others = (finding for finding in examine(self.path) if (finding.kind, finding.subject) not in said)
        return [
            *(self._snapshot.complaint(column, problem) for column, problem in damaged),
            *(f"{one.where}: {one.problem}" for one in others if one.kind not in ("orphan", "leftover", HISTORY)),
        ]

    def close(self) -> None:
        """Do nothing: a reader holds nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__} stands for files and cannot be copied; open {self.path} again")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, revision {self.revision}, {len(self.label_names)} labels)"

    def take_over(self, other: StoredModel) -> None:
        """Use what another one of the same directory, which is not used any more, has read and checked."""
        self._cache, self._records, self._classifiers = other._cache, other._records, None

    def _read_records(self, connection: sqlite3.Connection) -> list[LabelRecord]:
        """The records of the labels, read once a revision."""
        if self._listed is None or self._listed[0] is not self._snapshot:
            self._listed = self._snapshot, records_of(connection, self._snapshot, self._records)
        return self._listed[1]

    def _maps(self) -> Mapping[int, memoryview]:
        return {} if self._own is None else self._own.maps

    @contextmanager
    def _catalogue(self) -> Iterator[sqlite3.Connection]:
        own = self._own  # kept alive to the end of the block, whatever a refresh puts in its place
        if own is None:  # a writer that was closed reads on
            own = self._own = _OwnCatalogue(self._snapshot, copied(self.path))
        with own.lock, explain(self.path):
            yield own.connection

    def _stored(self) -> StoredClassifiers:
        if self._classifiers is None:
            self._classifiers = StoredClassifiers(self._snapshot, self._cache)
        return self._classifiers

    def _show(self, snapshot: Snapshot) -> None:
        self._snapshot, self._classifiers = snapshot, None


class _OwnCatalogue:
    """The catalogue and the files of parts as they were when a revision was opened; a vacuum does not touch them."""

    def __init__(self, snapshot: Snapshot, connection: sqlite3.Connection) -> None:
        self.connection, self.lock = connection, threading.RLock()
        weakref.finalize(self, connection.close)
        files = read_files(connection, snapshot.folder, snapshot.n_features)
        used = connection.execute(
            f"SELECT a.segment FROM part_array a JOIN part v ON v.number = a.part WHERE {LIVE}",
            {"revision": snapshot.revision},
        )
        self.maps: dict[int, memoryview] = {}
        for number in {number for (number,) in used.fetchall()} & files.keys():
            with suppress(DataError, NotFoundError):  # it is said when it is asked for
                self.maps[number] = map_file(snapshot.folder, files[number])
