"""The classifiers of a growing model, in blocks of columns that never change their shape.

A matrix product may round a column differently when columns are added beside it. So the classifiers are kept in
blocks of `BLOCK` columns, padded with zeros; every product has the shape it had before, and the score of an old label
is the same bits whatever has been added since.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np

from streamlabel.errors import NotFoundError, did_you_mean
from streamlabel.types import CSR, FloatArray, IntArray

BLOCK = 64

Item = TypeVar("Item")


class ClassifierBlocks:
    """Weights and intercepts of m labels, growing at the end. Instances are immutable: `appended` gives a new one."""

    def __init__(
        self, n_features: int, blocks: tuple[FloatArray, ...] = (), intercept: FloatArray | None = None
    ) -> None:
        self.n_features = n_features
        self.intercept = np.empty(0) if intercept is None else intercept
        self._blocks = blocks

    @property
    def n_labels(self) -> int:
        return int(self.intercept.shape[0])

    def appended(self, weights: FloatArray, intercept: FloatArray) -> ClassifierBlocks:
        """These classifiers, then ``weights`` (d, k). Whole blocks are shared, the last one is copied."""
        blocks, filled = list(self._blocks), self.n_labels % BLOCK
        start = 0
        while start < weights.shape[1]:
            if filled == 0:
                blocks.append(np.zeros((self.n_features, BLOCK)))
            else:
                blocks[-1] = blocks[-1].copy()
            taken = min(BLOCK - filled, weights.shape[1] - start)
            blocks[-1][:, filled : filled + taken] = weights[:, start : start + taken]
            start, filled = start + taken, 0
        return ClassifierBlocks(self.n_features, tuple(blocks), np.concatenate((self.intercept, intercept)))

    def replaced(self, labels: IntArray, weights: FloatArray, intercept: FloatArray) -> ClassifierBlocks:
        """These classifiers with ``weights`` (d, k) in place of those of some labels; other blocks are shared."""
        blocks, offsets = list(self._blocks), self.intercept.copy()
        for position in np.unique(labels // BLOCK):
            mine = labels // BLOCK == position
            blocks[position] = blocks[position].copy()
            blocks[position][:, labels[mine] % BLOCK] = weights[:, mine]
        offsets[labels] = intercept
        return ClassifierBlocks(self.n_features, tuple(blocks), offsets)

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
            product = np.asarray(X @ self._blocks[position])
            result[:, columns] = product[:, inside % BLOCK] + self.intercept[inside]
        return result

    def column_blocks(self, X: CSR | FloatArray) -> Iterator[tuple[int, FloatArray]]:
        """Iterate over the scores in blocks of at most `BLOCK` labels: (first label, (n, k) scores)."""
        for position, block in enumerate(self._blocks):
            start = position * BLOCK
            stop = min(start + BLOCK, self.n_labels)
            yield start, np.asarray(X @ block)[:, : stop - start] + self.intercept[start:stop]

    def label_blocks(self, X: CSR | FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Iterate over the scores in blocks of labels: (numbers of k labels, ascending; (n, k) scores)."""
        for start, scores in self.column_blocks(X):
            yield np.arange(start, start + scores.shape[1]), scores

    def weights(self, labels: IntArray | None = None) -> FloatArray:
        """The classifiers of these labels (all by default) as one matrix (d, len(labels)), a copy."""
        chosen = np.arange(self.n_labels) if labels is None else np.asarray(labels)
        result = np.empty((self.n_features, len(chosen)))
        owner = chosen // BLOCK
        for position in np.unique(owner):
            columns = np.flatnonzero(owner == position)
            result[:, columns] = self._blocks[position][:, chosen[columns] % BLOCK]
        return result


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

    def appended(self, items: Iterable[Item]) -> SharedList[Item]:
        """The same list with more items at the end."""
        everything = self._everything if len(self._everything) == self._size else self._everything[: self._size]
        everything.extend(items)
        return SharedList(everything, len(everything))


class LabelNames:
    """The names of labels in order, and the number of every name; growing at the end, immutable for its holder.

    Models that grew from one another share one list and one dictionary. Names that others appended behind a holder's
    part are not in it; a holder that is not the newest copies.
    """

    def __init__(self, names: SharedList[str], numbers: dict[str, int]) -> None:
        self._names, self._numbers = names, numbers

    @classmethod
    def of(cls, names: Iterable[str]) -> LabelNames:
        """Make an index of these names, in order."""
        found = SharedList.of(names)
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
