"""The classifiers of a stored model, multiplied in blocks that keep their rows' places in the files.

A row never moves while labels come and go, so a column of a product always has the same neighbours and the same
shape: the score of a label is the same bits after every append, retirement or roll-back. Rows are float32; products
are made in float64.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.data.files import check_memory
from streamlabel.errors import DataError, Hint
from streamlabel.store.format import DENSE, SPARSE
from streamlabel.store.reader import Snapshot
from streamlabel.streaming.blocks import BLOCK, ClassifierBlocks, extended
from streamlabel.streaming.pruned import WIDTH, SparseBlocks, sparse_scores
from streamlabel.types import CSR, FloatArray, IntArray

MANY_FEATURES = 1 << 17
IN_ORDER = np.arange(BLOCK)
WIDE = 128 << 20  # bytes of full blocks side by side that sparse rows meet at once: few long products take less time


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
        self.drop(key)
        if _n_bytes(block) <= self._free:
            self._free -= _n_bytes(block)
            self._blocks[key] = (members, block)

    def drop(self, key: tuple[int, int]) -> None:
        """Forget a block, if it is kept."""
        before = self._blocks.pop(key, None)
        self._free += 0 if before is None else _n_bytes(before[1])

    def is_checked(self, key: tuple[int, int], members: bytes) -> bool:
        return (*key, members) in self._checked

    def mark_checked(self, key: tuple[int, int], members: bytes) -> None:
        self._checked.add((*key, members))


def _n_bytes(block: Any) -> int:
    return int(block.nbytes if isinstance(block, np.ndarray) else 16 * block.nnz)


class StoredClassifiers(ClassifierBlocks):
    """The classifiers of a snapshot, and behind them those that were learned since and are not stored yet."""

    def __init__(self, snapshot: Snapshot, cache: BlockCache, tail: ClassifierBlocks | None = None) -> None:
        self._tail = ClassifierBlocks(snapshot.n_features) if tail is None else tail
        newest = self._tail.intercept
        super().__init__(
            snapshot.n_features, intercept=extended(snapshot.intercept, newest) if len(newest) else snapshot.intercept
        )
        self._snapshot, self._cache, self._n_stored = snapshot, cache, len(snapshot.labels)

    @functools.cached_property
    def _layout(self) -> tuple[Any, Any, list[Any], Any]:
        """The blocks (segment, number there), the block of each label, the labels of each, the column of each label."""
        snapshot = self._snapshot
        wide = [number for number, segment in snapshot.segments.items() if segment.info.kind == SPARSE]
        width = np.where(np.isin(snapshot.segment, wide), WIDTH, BLOCK) if wide else BLOCK
        number, column = np.divmod(snapshot.slot, width)
        keys, owner = np.unique(snapshot.segment << 32 | number, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(owner, minlength=len(keys)))[:-1])
        return np.stack((keys >> 32, keys & (2**32 - 1)), axis=1), owner, members, column

    def __reduce__(self) -> Any:
        """Copies and pickles are in memory and know no file; their scores are the same up to rounding."""
        return _in_memory, (self.n_features, self.columns(np.arange(self.n_labels)), self.intercept)

    def empty(self) -> ClassifierBlocks:
        return SparseBlocks(self.n_features) if self._kinds == {SPARSE} else ClassifierBlocks(self.n_features)

    def appended(self, weights: Any, intercept: FloatArray) -> ClassifierBlocks:
        return StoredClassifiers(self._snapshot, self._cache, self._tail.appended(weights, intercept))

    def replaced(self, labels: IntArray, weights: FloatArray, intercept: FloatArray) -> ClassifierBlocks:
        """In memory, as a copy; a store keeps labels that were learned again itself (`ModelStore.update`)."""
        make, parts = self.__reduce__()
        found: ClassifierBlocks = make(*parts).replaced(labels, weights, intercept)
        return found

    def scores(self, X: CSR | FloatArray, labels: IntArray | None = None) -> FloatArray:
        chosen = np.arange(self.n_labels) if labels is None else np.asarray(labels)
        if self._kinds == {SPARSE} and 2 * len(chosen) < self.n_labels and (chosen < self._n_stored).all():
            return sparse_scores(X, self.columns(chosen)) + self.intercept[chosen]
        if 2 * len(chosen) > self.n_labels and not isinstance(X, np.ndarray) and self.all_dense:
            return self._sparse_scores(X) if labels is None else self._sparse_scores(X)[:, chosen]
        result = np.empty((X.shape[0], len(chosen)))
        stored = np.flatnonzero(chosen < self._n_stored)
        _, owners, _, column = self._layout
        owner = owners[chosen[stored]]
        order = np.argsort(owner, kind="stable")
        stored, owner = stored[order], owner[order]
        for columns in np.split(stored, np.flatnonzero(np.diff(owner)) + 1) if stored.size else ():
            inside = chosen[columns]
            product = sparse_scores(X, self._block(int(owners[inside[0]])))
            result[:, columns] = product[:, column[inside]] + self.intercept[inside]
        rest = np.flatnonzero(chosen >= self._n_stored)
        if rest.size:
            result[:, rest] = self._tail.scores(X, chosen[rest] - self._n_stored)
        return result

    def _sparse_scores(self, X: CSR) -> FloatArray:
        """All scores of sparse rows: a column of such a product is a sum of its own, the same bits at any width."""
        result = np.empty((X.shape[0], self.n_labels))
        for (first, size), name, labels, slots in self._groups:
            block = self._cache.get(*name)
            block = self._block(first, size=size) if block is None else block
            result[:, labels] = np.asarray(X @ block)[:, slots]
        result += self.intercept
        return result

    @functools.cached_property
    def _groups(self) -> list[tuple[tuple[int, int], tuple[tuple[int, int], bytes], Any, Any]]:
        """The blocks in groups: first, how many, name, labels, columns.

        Full blocks in line are together, also of several segments: as many as a power of two and `WIDE` allow, so that
        a block that becomes full joins few others, and seldom many.
        """
        found, position = [], 0
        members = self._layout[2]
        full = np.array([len(one) == BLOCK for one in members])
        most = max(1, WIDE // (8 * BLOCK * self.n_features))
        while position < len(members):
            size = int(np.append(full[position : position + most], False).argmin())  # in line, from here on
            size = 1 << (max(size, 1).bit_length() - 1)
            labels = np.concatenate(members[position : position + size])
            place = np.repeat(np.arange(size), [len(one) for one in members[position : position + size]])
            columns = self._snapshot.slot[labels] % BLOCK + BLOCK * place
            found.append(((position, size), self._name(position, np.float64, size)[:2], _run(labels), _run(columns)))
            position += size
        return found

    def column_blocks(self, X: CSR | FloatArray) -> Iterator[tuple[int, FloatArray]]:
        for start in range(0, self.n_labels, BLOCK):
            yield start, self.scores(X, np.arange(start, min(start + BLOCK, self.n_labels)))

    def label_blocks(self, X: CSR | FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
        _, _, members, column = self._layout
        for position, labels in enumerate(members if self._n_stored else ()):
            product, slots = sparse_scores(X, self._block(position)), column[labels]
            scores = product if np.array_equal(slots, np.arange(product.shape[1])) else product[:, slots]
            scores += self.intercept[labels]
            yield labels, scores
        for newest, scores in self._tail.label_blocks(X):
            yield newest + self._n_stored, scores

    @property
    def all_dense(self) -> bool:
        """Whether every label lies in a dense segment."""
        return self.n_labels == self._n_stored and self._kinds == {DENSE}

    @property
    def _kinds(self) -> set[int]:
        return {segment.info.kind for segment in self._snapshot.segments.values()}

    def columns(self, labels: IntArray) -> Any:
        """As of `ClassifierBlocks`: a csc_array (float64) if all segments are sparse."""
        snapshot, labels = self._snapshot, np.asarray(labels)
        if self._kinds != {SPARSE}:
            return self.weights(labels)
        if not (labels < self._n_stored).all():
            return sparse.csc_array(self.weights(labels))
        features, values, sizes = [], [], snapshot.nnz[labels]
        order = np.argsort(snapshot.segment[labels], kind="stable")
        for mine in np.split(order, np.flatnonzero(np.diff(snapshot.segment[labels][order])) + 1):
            if mine.size:
                found = self._sparse(labels[mine])
                features.append(found[0])
                values.append(found[1])
        indptr = np.concatenate(([0], np.cumsum(sizes[order])))
        parts = (np.concatenate(values or [np.empty(0)]), np.concatenate(features or [np.empty(0, np.int32)]), indptr)
        matrix = sparse.csc_array(parts, shape=(self.n_features, len(labels)))
        return matrix if (np.diff(order) == 1).all() else matrix[:, np.argsort(order)]

    def _sparse(self, labels: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
        """Features, values (float64) and ends of these labels, all in one sparse segment; each row is checked."""
        at, number = self._snapshot, int(self._snapshot.segment[labels[0]])
        found = at.segments[number].sparse_rows(
            at.start[labels], at.nnz[labels], at.checksums[labels], at.intercept[labels]
        )
        if found is None:
            self._complain(labels)
            raise DataError("a label was written to", source=at.folder, hint=Hint.DOCTOR)
        return found[0], found[1].astype(np.float64), found[2]

    def rough_blocks(self, X: CSR) -> Iterator[tuple[IntArray, FloatArray, float]]:
        """Iterate over rough scores, in float32 and half the time: (labels, scores, largest norm of a classifier).

        As `label_blocks`; only if `all_dense`.
        """
        _, _, members, column = self._layout
        for position, labels in enumerate(members):
            block, slots = self._block(position, np.float32), column[labels]
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
        owner = self._snapshot.segment[chosen[stored]]
        for number in np.unique(owner).tolist():
            columns, segment = stored[owner == number], self._snapshot.segments[number]
            if segment.info.kind == DENSE:
                self._check(chosen[columns])
                result[:, columns] = segment.dense_rows(self._snapshot.slot[chosen[columns]]).T
            else:
                features, values, ends = self._sparse(chosen[columns])
                result[features, np.repeat(columns, np.diff(ends))] = values
        rest = np.flatnonzero(chosen >= self._n_stored)
        if rest.size:
            result[:, rest] = self._tail.weights(chosen[rest] - self._n_stored)
        return result

    def _block(self, position: int, dtype: Any = np.float64, size: int = 1) -> Any:
        """A block (d, BLOCK), or (d, WIDTH) by rows of sparse ones (float64). Columns of no label here are zero.

        size : so many dense ones side by side, from this on
        """
        key, signature, labels = self._name(position, dtype, size)
        found = self._cache.get(key, signature)
        if found is not None:
            return found
        keys, _, members, _ = self._layout
        slots, segments = self._snapshot.slot[labels], self._snapshot.segments
        if segments[int(keys[position][0])].info.kind == DENSE:
            if not self._cache.is_checked(key, signature):
                self._check(labels)
                self._cache.mark_checked(key, signature)
            if self.n_features > MANY_FEATURES:
                check_memory(8 * BLOCK * size * self.n_features, "a block of classifiers")
            parts = [(int(segment), int(number)) for segment, number in keys[position : position + size]]
            for segment, number in parts if size > 1 else ():  # they lie in memory once
                self._cache.drop((segment, number))
                self._cache.drop((~segment, number))
            block: Any = np.zeros((self.n_features, BLOCK * size), dtype)
            for place, (segment, _) in enumerate(parts):
                mine = self._snapshot.slot[members[position + place]]
                block[:, _run(mine % BLOCK + BLOCK * place)] = segments[segment].dense_rows(mine).T
        else:
            features, values, ends = self._sparse(labels)
            columns = np.repeat(slots % WIDTH, np.diff(ends))
            block = sparse.coo_array((values, (features, columns)), shape=(self.n_features, WIDTH)).tocsr()
        self._cache.put(key, signature, block)
        return block

    def _name(self, position: int, dtype: Any, size: int) -> tuple[tuple[int, int], bytes, IntArray]:
        """What a block is called in the cache, by what its members are told, and which they are."""
        keys, _, members, _ = self._layout
        segment, number = (int(value) for value in keys[position])
        key, labels = (segment, number if dtype == np.float64 else ~number), members[position]
        if size > 1:
            key, labels = (~segment, number), np.concatenate(members[position : position + size])
        slots, checksums = self._snapshot.slot[labels], self._snapshot.checksums[labels]
        return key, slots.tobytes() + checksums.tobytes(), labels

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


def _run(numbers: IntArray) -> Any:
    """The numbers as a slice where they follow one another."""
    return slice(int(numbers[0]), int(numbers[-1]) + 1) if (np.diff(numbers) == 1).all() else numbers


def _in_memory(n_features: int, weights: Any, intercept: FloatArray) -> ClassifierBlocks:
    kind = ClassifierBlocks if isinstance(weights, np.ndarray) else SparseBlocks
    return kind(n_features).appended(weights, intercept)
