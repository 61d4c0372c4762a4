"""The reading side of a stored model: one whole revision, and what there is to know about all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from streamlabel.errors import DataError
from streamlabel.store.assemble import assemble
from streamlabel.store.classifiers import BlockCache, StoredClassifiers
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
    records_of,
)
from streamlabel.store.parts import Part, list_parts, read_part
from streamlabel.store.reader import Snapshot, damaged_columns, load_snapshot, read_files
from streamlabel.store.sqlite import reading
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.inputs import canonical_rows
from streamlabel.types import CSR, FloatArray

Self = TypeVar("Self", bound="StoredModel")


class StoredModel:
    """One revision of a stored model, read-only. It stays what it is while others write; `refresh` moves on."""

    def __init__(self, snapshot: Snapshot, cache_bytes: int) -> None:
        self._snapshot = snapshot
        self._cache = BlockCache(cache_bytes)
        self._classifiers: StoredClassifiers | None = None

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
        self._show(load_snapshot(self.path))
        return self.revision

    def scores(self, X: ArrayLike | CSR) -> FloatArray:
        """Scores (n, m), columns as in `label_names`: the same bits as `model().decision_function(X)`."""
        matrix = canonical_rows(check_array(X, accept_sparse="csr", dtype=np.float64))
        if matrix.shape[1] != self.n_features:
            raise DataError(f"X has {matrix.shape[1]} features; the stored model has {self.n_features}")
        return self._stored().scores(matrix)

    def model(self, *, learning: bool = True) -> StreamingLabelClassifier:
        """The estimator, on the classifiers as they are stored: weights rounded to float32, multiplied in float64.

        It can learn further labels; they are not stored before `append`. ``learning`` False leaves out the rows that
        it was fitted on, which saves reading them.
        """
        with self._catalogue() as connection:
            return assemble(self._snapshot, connection, self._stored(), learning=learning)

    def labels(self) -> list[LabelRecord]:
        """The records of all labels: everything that is known about each."""
        with self._catalogue() as connection:
            return records_of(connection, self._snapshot)

    def history(self, label: str | None = None) -> list[Revision]:
        """Every revision, newest first; or those that touched a label."""
        with self._catalogue() as connection:
            return read_history(connection, self.path, label)

    def diff(self, before: int, after: int | None = None) -> list[LabelChange]:
        """The changes of the labels between two revisions; up to the one that is read by default."""
        with self._catalogue() as connection:
            return read_diff(connection, self.path, before, self.revision if after is None else after)

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
            return read_part(self.path, connection, files, name, self.revision)

    def sizes(self) -> StoreSizes:
        """The bytes on the disk, by what they are for."""
        with self._catalogue() as connection:
            return read_sizes(connection, self.path)

    def verify(self) -> list[str]:
        """Check every row of this revision; returns what is wrong, label by label, [] if all is whole."""
        return [self._snapshot.complaint(column, problem) for column, problem in damaged_columns(self._snapshot)]

    def close(self) -> None:
        """Do nothing: a reader holds nothing."""

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, revision {self.revision}, {len(self.label_names)} labels)"

    @contextmanager
    def _catalogue(self) -> Iterator[sqlite3.Connection]:
        with reading(self.path) as connection:
            yield connection

    def _stored(self) -> StoredClassifiers:
        if self._classifiers is None:
            self._classifiers = StoredClassifiers(self._snapshot, self._cache)
        return self._classifiers

    def _show(self, snapshot: Snapshot) -> None:
        self._snapshot, self._classifiers = snapshot, None


def without_damaged(snapshot: Snapshot) -> Snapshot:
    """The snapshot with only the labels whose rows are whole; reads every row."""
    damaged = [column for column, _ in damaged_columns(snapshot)]
    return snapshot.take(np.setdiff1d(np.arange(len(snapshot.labels)), damaged))
