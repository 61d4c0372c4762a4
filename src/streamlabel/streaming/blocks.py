"""The classifiers of a growing model, in blocks of columns that never change their shape.

A matrix product may round a column differently when columns are added beside it. So the classifiers are kept in
blocks of `BLOCK` columns, padded with zeros; every product has the shape it had before, and the score of an old label
is the same bits whatever has been added since.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamlabel.errors import NotFoundError, did_you_mean
from streamlabel.metrics.topk import BestLabels, check_k
from streamlabel.types import CSR, FloatArray, IntArray

BLOCK = 64

Item = TypeVar("Item")


class _Room(np.ndarray[Any, Any]):
    """A buffer with room to grow, and how much of it has been written."""

    used = 0


def extended(array: NDArray[Any], more: Any) -> NDArray[Any]:
    """The values of a vector, then more, at a cost that does not grow with the vector; the vector stays what it is.

    They share a buffer: what comes later is written behind what its holder sees. A holder behind which something else
    was written already copies.
    """
    more = np.asarray(more, dtype=array.dtype)
    room: Any = array.base
    size, stop = len(array), len(array) + len(more)
    mine = isinstance(room, _Room) and array.flags.c_contiguous and room.dtype == array.dtype
    if not mine or stop > len(room) or (room.used != size and not _written(room, size, more)):
        room = _Room(stop + stop // 4 + 16, array.dtype)
        room[:size] = array
        room.used = size
    if room.used == size:
        room[size:stop] = more
        room.used = stop
    found = np.ndarray((stop,), array.dtype, buffer=room)
    found.flags.writeable = False
    return found


def _written(room: _Room, size: int, more: NDArray[Any]) -> bool:
    """Whether somebody has written these very values behind the first ones already."""
    stop = size + len(more)
    return stop <= room.used and room[size:stop].tobytes() == more.tobytes()


class ClassifierBlocks:
    """Weights and intercepts of m labels, growing at the end. Instances are immutable: `appended` gives a new one."""

    def __init__(
        self,
        n_features: int,
        whole: SharedList[FloatArray] | None = None,
        last: FloatArray | None = None,
        intercept: FloatArray | None = None,
    ) -> None:
        self.n_features = n_features
        self.intercept = np.empty(0) if intercept is None else intercept
        self._whole = SharedList[FloatArray].of(()) if whole is None else whole
        self._last = last  # the block that is not full yet

    @property
    def n_labels(self) -> int:
        return int(self.intercept.shape[0])

    def appended(self, weights: Any, intercept: FloatArray) -> ClassifierBlocks:
        """These classifiers, then ``weights`` (d, k), or sparse. Whole blocks are shared, the last is copied."""
        weights = weights if isinstance(weights, np.ndarray) else weights.toarray()
        filled, start = self.n_labels % BLOCK, 0
        blocks, last = [], None if self._last is None else self._last.copy()
        while start < weights.shape[1]:
            last = np.zeros((self.n_features, BLOCK)) if last is None else last
            taken = min(BLOCK - filled, weights.shape[1] - start)
            last[:, filled : filled + taken] = weights[:, start : start + taken]
            start, filled = start + taken, (filled + taken) % BLOCK
            if not filled:
                blocks.append(last)
                last = None
        return ClassifierBlocks(
            self.n_features, self._whole.appended(blocks), last, extended(self.intercept, intercept)
        )

    def empty(self) -> ClassifierBlocks:
        """Classifiers of the same kind, of no label yet."""
        return ClassifierBlocks(self.n_features)

    def replaced(self, labels: IntArray, weights: FloatArray, intercept: FloatArray) -> ClassifierBlocks:
        """These classifiers with ``weights`` (d, k) in place of those of some labels; other blocks are shared."""
        blocks, offsets = self._blocks(), self.intercept.copy()
        for position in np.unique(labels // BLOCK):
            mine = labels // BLOCK == position
            blocks[position] = blocks[position].copy()
            blocks[position][:, labels[mine] % BLOCK] = weights[:, mine]
        offsets[labels] = intercept
        last = None if self._last is None else blocks.pop()
        return ClassifierBlocks(self.n_features, SharedList.of(blocks), last, offsets)

    def _blocks(self) -> list[FloatArray]:
        return [*self._whole.items(), *([] if self._last is None else [self._last])]

    def _block_at(self, position: int) -> FloatArray:
        if self._last is not None and position == len(self._whole):
            return self._last
        return self._whole[position]

    def scores(self, X: CSR | FloatArray, labels: IntArray | None = None) -> FloatArray:
        """The scores ``X W + intercept``, (n, m); or of some labels, (n, len(labels)), computed in the same blocks."""
        if labels is not None:
            return self._some_scores(X, np.asarray(labels))
        result = np.empty((X.shape[0], self.n_labels))
        for start, block in self.column_blocks(X):
            result[:, start : start + block.shape[1]] = block
        return result

    def _some_scores(self, X: CSR | FloatArray, labels: IntArray) -> FloatArray:
        result = np.empty((X.shape[0], len(labels)))
        owner = labels // BLOCK
        for position in np.unique(owner):
            columns = np.flatnonzero(owner == position)
            inside = labels[columns]
            product = np.asarray(X @ self._block_at(int(position)))
            result[:, columns] = product[:, inside % BLOCK] + self.intercept[inside]
        return result

    def column_blocks(self, X: CSR | FloatArray) -> Iterator[tuple[int, FloatArray]]:
        """Iterate over the scores in blocks of at most `BLOCK` labels: (first label, (n, k) scores)."""
        for position, block in enumerate(self._blocks()):
            start = position * BLOCK
            stop = min(start + BLOCK, self.n_labels)
            yield start, np.asarray(X @ block)[:, : stop - start] + self.intercept[start:stop]

    def label_blocks(self, X: CSR | FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Iterate over the scores in blocks of labels: (numbers of k labels, ascending; (n, k) scores)."""
        for start, scores in self.column_blocks(X):
            yield np.arange(start, start + scores.shape[1]), scores

    def columns(self, labels: IntArray) -> Any:
        """The classifiers of these labels (d, len(labels)): a csc_array if most of their weights are zero."""
        return self.weights(labels)

    def weights(self, labels: IntArray | None = None) -> FloatArray:
        """The classifiers of these labels (all by default) as one matrix (d, len(labels)), a copy."""
        chosen = np.arange(self.n_labels) if labels is None else np.asarray(labels)
        result = np.empty((self.n_features, len(chosen)))
        owner = chosen // BLOCK
        for position in np.unique(owner):
            columns: Any = np.flatnonzero(owner == position)
            inside: Any = chosen[columns] % BLOCK
            if columns[-1] - columns[0] + 1 == len(columns) and (np.diff(inside) == 1).all():  # slices are much faster
                columns, inside = (slice(part[0], part[-1] + 1) for part in (columns, inside))
            result[:, columns] = self._block_at(int(position))[:, inside]
        return result


def top_labels(classifiers: ClassifierBlocks, X: CSR | FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """The k best labels of each row and their scores, (n, min(k, m)) each, best first; ties go to the older label.

    The same as the first columns of a sort of ``classifiers.scores(X)``, in a memory per row that does not grow with
    the number of labels.
    """
    best = BestLabels(int(X.shape[0]), min(check_k(k), classifiers.n_labels))
    for labels, scores in classifiers.label_blocks(X):
        best.add(labels, scores)
    return best.result()


class SharedList(Generic[Item]):
    """A list that grows at the end and is immutable for its holder.

    Models that grew from one another share one list, each knowing how much of it is its own; a holder that is not the
    newest copies.
    """

    def __init__(self, everything: list[Item], size: int) -> None:
        self._everything, self._size = everything, size
        self._mine: tuple[Item, ...] | None = None

    @classmethod
    def of(cls, items: Iterable[Item]) -> SharedList[Item]:
        """Make a list of these items."""
        everything = list(items)
        return cls(everything, len(everything))

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> Item:
        if not 0 <= position < self._size:
            raise IndexError(position)
        return self._everything[position]

    def items(self) -> tuple[Item, ...]:
        """All items as a tuple, made when first asked for."""
        if self._mine is None:
            self._mine = tuple(self._everything[: self._size])
        return self._mine

    def starts_with(self, other: SharedList[Item]) -> bool:
        """Whether the other list is the first part of this one; at once if they are shared."""
        shared = self._everything is other._everything
        return len(other) <= len(self) and (shared or self.items()[: len(other)] == other.items())

    def appended(self, items: Iterable[Item]) -> SharedList[Item]:
        """The same list with more items at the end; shared with one that has the very same there already."""
        items, everything, size = list(items), self._everything, self._size
        behind = everything[size : size + len(items)]
        if len(behind) < len(items) or any(a is not b for a, b in zip(behind, items, strict=True)):
            everything = everything if len(everything) == size else everything[:size]
            everything.extend(items)
        return SharedList(everything, size + len(items))


class LabelNames:
    """The names of labels in order, and the number of every name; growing at the end, immutable for its holder.

    Models that grew from one another share one list and one dictionary. Names that others appended behind a holder's
    part are not in it; a holder that is not the newest copies.
    """

    def __init__(self, names: SharedList[str], numbers: dict[str, int]) -> None:
        self._names, self._numbers = names, numbers

    @classmethod
    def of(cls, names: Iterable[str] | SharedList[str]) -> LabelNames:
        """Make an index of these names, in order."""
        found = names if isinstance(names, SharedList) else SharedList.of(names)
        return cls(found, {name: number for number, name in enumerate(found.items())})

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, number: int) -> str:
        return self._names[number]

    def __contains__(self, name: object) -> bool:
        return self._numbers.get(name, len(self)) < len(self)  # type: ignore[call-overload]

    def items(self) -> tuple[str, ...]:
        """All names, in order."""
        return self._names.items()

    def starts_with(self, other: SharedList[str]) -> bool:
        """Whether these names are the first ones."""
        return self._names.starts_with(other)

    def number(self, name: str) -> int:
        """The number of the label with this name."""
        name = unicodedata.normalize("NFC", name)
        if name not in self:
            hint = did_you_mean(name, self.items()) or f"label_names_ lists all {len(self)}"
            raise NotFoundError(f"no label is called {name!r}; {hint}")
        return self._numbers[name]

    def appended(self, names: tuple[str, ...]) -> LabelNames:
        """The same names, then new ones."""
        numbers, size = self._numbers, len(self)
        if len(numbers) != size:
            numbers = {name: number for name, number in numbers.items() if number < size}
        numbers.update((name, size + j) for j, name in enumerate(names))
        return LabelNames(self._names.appended(names), numbers)
