"""The classifiers of a stored model, multiplied in blocks that keep their rows' places in the files.

A row never moves while labels come and go, so a column of a product always has the same neighbours and the same
shape: the score of a label is the same bits after every append, retirement or roll-back. Rows are float32; products
are made in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.data.files import check_memory
from streamlabel.errors import DataError, Hint
from streamlabel.store.format import DENSE
from streamlabel.store.reader import Snapshot
from streamlabel.streaming.blocks import BLOCK, ClassifierBlocks
from streamlabel.types import CSR, FloatArray, IntArray

MANY_FEATURES = 1 << 17
IN_ORDER = np.arange(BLOCK)


class BlockCache:
    """A cache of blocks as float64, kept until ``n_bytes`` are used; those that came later are made anew each time."""

    def __init__(self, n_bytes: int) -> None:
        self._free = n_bytes
        self._blocks: dict[tuple[int, int], tuple[bytes, Any]] = {}
        self._checked: set[tuple[int, int, bytes]] = set()

    def get(self, key: tuple[int, int], members: bytes) -> Any:
        """The block under this key if it has these members, else None."""
        found = self._blocks.get(key)
        return found[1] if found is not None and found[0] == members else None

    def put(self, key: tuple[int, int], members: bytes, block: Any) -> None:
        """Keep a block, if there is room for it."""
        size = block.nbytes if isinstance(block, np.ndarray) else 16 * block.nnz
        before = self._blocks.pop(key, None)
        if before is not None:
            self._free += before[1].nbytes if isinstance(before[1], np.ndarray) else 16 * before[1].nnz
        if size <= self._free:
            self._free -= size
            self._blocks[key] = (members, block)

    def is_checked(self, key: tuple[int, int], members: bytes) -> bool:
        return (*key, members) in self._checked

    def mark_checked(self, key: tuple[int, int], members: bytes) -> None:
        self._checked.add((*key, members))


class StoredClassifiers(ClassifierBlocks):
    """The classifiers of a snapshot, and behind them those that were learned since and are not stored yet."""

    def __init__(self, snapshot: Snapshot, cache: BlockCache, tail: ClassifierBlocks | None = None) -> None:
        self._tail = ClassifierBlocks(snapshot.n_features) if tail is None else tail
        super().__init__(snapshot.n_features, (), np.concatenate((snapshot.intercept, self._tail.intercept)))
        self._snapshot, self._cache, self._n_stored = snapshot, cache, len(snapshot.labels)
        self._block_of = snapshot.slot // BLOCK
        keys = np.stack((snapshot.segment, self._block_of), axis=1) if self._n_stored else np.empty((0, 2), np.int64)
        self._keys, owner = np.unique(keys, axis=0, return_inverse=True)
        self._owner = owner.reshape(-1)
        order = np.argsort(self._owner, kind="stable")
        self._members = np.split(order, np.cumsum(np.bincount(self._owner, minlength=len(self._keys)))[:-1])

    def __reduce__(self) -> Any:
        """Copies and pickles are in memory and know no file; their scores are the same up to rounding."""
        return _in_memory, (self.n_features, self.weights(), self.intercept)

    def appended(self, weights: FloatArray, intercept: FloatArray) -> ClassifierBlocks:
        return StoredClassifiers(self._snapshot, self._cache, self._tail.appended(weights, intercept))

    def replaced(self, labels: IntArray, weights: FloatArray, intercept: FloatArray) -> ClassifierBlocks:
        """In memory, as a copy; a store keeps labels that were learned again itself (`ModelStore.update`)."""
        return _in_memory(self.n_features, self.weights(), self.intercept).replaced(labels, weights, intercept)

    def scores(self, X: CSR | FloatArray, labels: IntArray | None = None) -> FloatArray:
        chosen = np.arange(self.n_labels) if labels is None else np.asarray(labels)
        result = np.empty((X.shape[0], len(chosen)))
        stored = np.flatnonzero(chosen < self._n_stored)
        owner = self._owner[chosen[stored]]
        order = np.argsort(owner, kind="stable")
        stored, owner = stored[order], owner[order]
        for columns in np.split(stored, np.flatnonzero(np.diff(owner)) + 1) if stored.size else ():
            inside = chosen[columns]
            product = _dense(X @ self._block(int(self._owner[inside[0]])))
            result[:, columns] = product[:, self._snapshot.slot[inside] % BLOCK] + self.intercept[inside]
        rest = np.flatnonzero(chosen >= self._n_stored)
        if rest.size:
            result[:, rest] = self._tail.scores(X, chosen[rest] - self._n_stored)
        return result

    def column_blocks(self, X: CSR | FloatArray) -> Iterator[tuple[int, FloatArray]]:
        for start in range(0, self.n_labels, BLOCK):
            yield start, self.scores(X, np.arange(start, min(start + BLOCK, self.n_labels)))

    def label_blocks(self, X: CSR | FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
        for position, labels in enumerate(self._members if self._n_stored else ()):
            product, slots = _dense(X @ self._block(position)), self._snapshot.slot[labels] % BLOCK
            scores = product if np.array_equal(slots, IN_ORDER) else product[:, slots]
            scores += self.intercept[labels]
            yield labels, scores
        for newest, scores in self._tail.label_blocks(X):
            yield newest + self._n_stored, scores

    @property
    def all_dense(self) -> bool:
        """Whether every label lies in a dense segment."""
        kinds = {segment.info.kind for segment in self._snapshot.segments.values()}
        return self.n_labels == self._n_stored and kinds == {DENSE}

    def rough_blocks(self, X: CSR) -> Iterator[tuple[IntArray, FloatArray, float]]:
        """Iterate over rough scores, in float32 and half the time: (labels, scores, largest norm of a classifier).

        As `label_blocks`; only if `all_dense`.
        """
        for position, labels in enumerate(self._members):
            block, slots = self._block(position, np.float32), self._snapshot.slot[labels] % BLOCK
            norm = float(np.sqrt(np.einsum("ij,ij->j", block, block).max()))
            scores = np.asarray(X @ block)
            scores = scores if np.array_equal(slots, IN_ORDER) else scores[:, slots]
            scores += self.intercept[labels].astype(np.float32)
            yield labels, scores, norm

    def scores_at(self, X: CSR, labels: IntArray) -> FloatArray:
        """Scores (n, k) of k chosen labels per row, (n, k): the same sums in the same order as in `scores`.

        Only if `all_dense`. The values of a row lie beside the weights that they meet, once for each of its labels.
        """
        n_pairs, k, counts = labels.size, labels.shape[1], np.diff(X.indptr)
        segment, slot = self._snapshot.segment[labels.ravel()], self._snapshot.slot[labels.ravel()]
        order = np.argsort(segment, kind="stable")
        lengths = counts[order // k]
        ends = np.cumsum(lengths)
        place = np.arange(lengths.sum()) + np.repeat(X.indptr[order // k] - (ends - lengths), lengths)
        features, slots = X.indices[place], np.repeat(slot[order], lengths)
        weights = np.empty(len(place))
        bounds = np.searchsorted(segment[order], list(self._snapshot.segments), side="right")
        begin = 0
        for number, last in sorted(zip(self._snapshot.segments, bounds, strict=True)):
            end = int(ends[last - 1]) if last else 0
            weights[begin:end] = self._snapshot.segments[number].dense_cells(slots[begin:end], features[begin:end])
            begin = end
        starts = np.concatenate(([0], ends))
        products = sparse.csr_array((X.data[place], np.arange(len(place)), starts), shape=(n_pairs, len(place)))
        sums = np.empty(n_pairs)
        sums[order] = products @ weights
        return sums.reshape(labels.shape) + self.intercept[labels]

    def weights(self, labels: IntArray | None = None) -> FloatArray:
        chosen = np.arange(self.n_labels) if labels is None else np.asarray(labels)
        check_memory(8 * self.n_features * len(chosen), f"the weights of {len(chosen)} labels")
        result = np.zeros((self.n_features, len(chosen)))
        stored = np.flatnonzero(chosen < self._n_stored)
        self._check(chosen[stored])
        for number, segment in self._snapshot.segments.items():
            columns = stored[self._snapshot.segment[chosen[stored]] == number]
            if segment.info.kind == DENSE and columns.size:
                result[:, columns] = segment.dense_rows(self._snapshot.slot[chosen[columns]]).T
            elif columns.size:
                for column in columns:
                    indices, values = segment.sparse_row(self._snapshot.place(int(chosen[column])))
                    result[indices, column] = values
        rest = np.flatnonzero(chosen >= self._n_stored)
        if rest.size:
            result[:, rest] = self._tail.weights(chosen[rest] - self._n_stored)
        return result

    def _block(self, position: int, dtype: Any = np.float64) -> Any:
        """A block (d, BLOCK): an array, or a csc_array (float64) for sparse rows. Columns of no label here are zero."""
        segment_number, number = (int(value) for value in self._keys[position])
        key, labels = (segment_number, number if dtype == np.float64 else ~number), self._members[position]
        slots = self._snapshot.slot[labels]
        signature = slots.tobytes() + self._snapshot.checksums[labels].tobytes()
        found = self._cache.get(key, signature)
        if found is not None:
            return found
        if not self._cache.is_checked(key, signature):
            self._check(labels)
            self._cache.mark_checked(key, signature)
        segment = self._snapshot.segments[segment_number]
        if segment.info.kind == DENSE:
            if self.n_features > MANY_FEATURES:
                check_memory(8 * BLOCK * self.n_features, "a block of classifiers")
            block: Any = np.zeros((self.n_features, BLOCK), dtype)
            first = int(slots[0]) % BLOCK
            if (np.diff(slots) == 1).all():
                block[:, first : first + len(slots)] = segment.dense_rows(slots).T
            else:
                block[:, slots % BLOCK] = segment.dense_rows(slots).T
        else:
            rows = [segment.sparse_row(self._snapshot.place(int(label))) for label in labels]
            columns = np.repeat(slots % BLOCK, [len(indices) for indices, _ in rows])
            indices = np.concatenate([indices for indices, _ in rows])
            values = np.concatenate([values for _, values in rows]).astype(np.float64)
            block = sparse.csc_array((values, (indices, columns)), shape=(self.n_features, BLOCK))
        self._cache.put(key, signature, block)
        return block

    def _check(self, labels: IntArray) -> None:
        """Raise DataError if the row of one of these labels is damaged."""
        snapshot = self._snapshot
        for number in np.unique(snapshot.segment[labels]):
            mine = labels[snapshot.segment[labels] == number]
            whole = snapshot.segments[int(number)].are_whole(
                snapshot.slot[mine], snapshot.checksums[mine], snapshot.intercept[mine]
            )
            if not whole:
                self._complain(mine)

    def _complain(self, labels: IntArray) -> None:
        for label in labels:
            problem = self._snapshot.problem(int(label))
            if problem:
                complaint = self._snapshot.complaint(int(label), problem)
                raise DataError(complaint, source=self._snapshot.folder, hint=Hint.LEAVE_OUT)


def _dense(product: Any) -> FloatArray:
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product)


def _in_memory(n_features: int, weights: FloatArray, intercept: FloatArray) -> ClassifierBlocks:
    return ClassifierBlocks(n_features).appended(weights, intercept)
