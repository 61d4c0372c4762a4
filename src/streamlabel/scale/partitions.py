"""Rows that are somewhere else, in blocks: their products for the solvers, and their labels from a stored model.

Works with any executor; with `DaskExecutor` the blocks may be partitions that workers hold and nobody else has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from streamlabel.classifier.objective import column_sums
from streamlabel.errors import DataError
from streamlabel.executors import Executor, SerialExecutor
from streamlabel.stats.spectral import dense
from streamlabel.store.model_store import ModelStore
from streamlabel.store.predict import predict_rows
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.inputs import canonical_rows
from streamlabel.types import FloatArray, IntArray
from streamlabel.validation import checked_matrix


class PartitionedRows(LinearOperator):
    """Rows in blocks, of which only products are needed: ``X @ Z`` and ``X.T @ G``. `solve` takes them for X.

    blocks : of rows, dense or sparse, in order; with Dask the delayed blocks of an array (`row_blocks`), which the
        workers read once and keep
    executor : who multiplies; None: here

    A product sends Z (d, k) to every worker and brings (n, k) back, or sends each block its share of G (n, k) and
    brings (d, k) a block. That is little beside the rows themselves: answers and scores are with the caller.
    """

    def __init__(self, blocks: Iterable[Any], executor: Executor | None = None) -> None:
        self._executor = SerialExecutor() if executor is None else executor
        keep = getattr(self._executor, "keep", list)
        self._blocks = keep(blocks)
        facts = self._executor.map(_facts, self._blocks)
        if len({sums.shape for _, sums, _ in facts}) != 1:
            raise DataError("the blocks do not have the same number of features, or there are none")
        self._ends = np.cumsum([n_rows for n_rows, _, _ in facts])
        self._sums: FloatArray = np.sum([sums for _, sums, _ in facts], axis=0)
        self._squares: FloatArray = np.sum([squares for _, _, squares in facts], axis=0)
        shape: Any = int(self._ends[-1]), len(self._sums)
        super().__init__(np.dtype(np.float64), shape)  # type: ignore[call-arg]

    def mean(self, axis: int = 0) -> FloatArray:
        """The mean of each column, (d,)."""
        return self._sums / self.shape[0]

    def square_sums(self) -> FloatArray:
        """The sum of the squares of each column, (d,)."""
        return self._squares

    def _matmat(self, Z: Any) -> FloatArray:
        return np.concatenate(self._executor.map(partial(_times, np.ascontiguousarray(dense(Z))), self._blocks))

    def _rmatmat(self, G: Any) -> FloatArray:
        shares = (G[start:end] for start, end in zip((0, *self._ends), self._ends, strict=False))
        return self._executor.map_reduce(_transposed, zip(self._blocks, shares, strict=True), np.add)


def predict_blocks(
    path: str | Path, blocks: Iterable[Any], k: int, executor: Executor | None = None
) -> Iterator[tuple[IntArray, FloatArray]]:
    """The k best labels of every row of each block, (n, k), and their scores, block by block.

    path : the directory of a stored model, which every worker sees; each process opens it once and maps its weights.
        All blocks are scored by the revision that is current now.
    """
    with ModelStore.open(path) as store:
        at = str(Path(path).resolve()), store.revision, Path(path).stat().st_ino
    executor = SerialExecutor() if executor is None else executor
    yield from getattr(executor, "stream", executor.map)(partial(_best, at, k), blocks)


@lru_cache(maxsize=2)
def stored_model(path: str, revision: int, folder: int) -> StreamingLabelClassifier:
    """A stored model to predict with, opened once a process; its weights are mapped, not read.

    folder : the number of the directory, so that another model at the same place is not taken for this one
    """
    return ModelStore.open(path, revision=revision).model(learning=False)


def _best(at: tuple[str, int, int], k: int, block: Any) -> tuple[IntArray, FloatArray]:
    model, block = stored_model(*at), checked_matrix(block)
    if block.shape[1] != model.n_features_in_:
        raise DataError(f"a block of {block.shape[1]} features; the model has {model.n_features_in_}")
    rows = list(predict_rows(model, canonical_rows(block), k=k))
    shape = len(rows), min(k, len(model.label_names_))
    labels: IntArray = np.array([row.labels for row in rows], dtype=np.int64).reshape(shape)
    return labels, np.array([row.scores for row in rows]).reshape(shape)


def _facts(block: Any) -> tuple[int, FloatArray, FloatArray]:
    rows = checked_matrix(block)
    squares = np.square(rows) if isinstance(rows, np.ndarray) else rows.multiply(rows)
    return int(rows.shape[0]), column_sums(rows), column_sums(squares)


def _times(Z: FloatArray, block: Any) -> FloatArray:
    return np.asarray(block @ Z)


def _transposed(item: tuple[Any, Any]) -> FloatArray:
    block, share = item
    return dense(block.T @ (np.ascontiguousarray(share) if isinstance(share, np.ndarray) else share))
