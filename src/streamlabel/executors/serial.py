"""One item after the other, in this thread: the default, and the reference for every other executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TypeVar

from streamlabel.exceptions import DataError

__all__ = ["SerialExecutor"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class SerialExecutor:
    """Implements `Executor` without workers.

    >>> SerialExecutor().map(abs, [-2, 1])
    [2, 1]
    >>> SerialExecutor().map_reduce(abs, [-2, 1], lambda a, b: a + b)
    3
    """

    def __repr__(self) -> str:
        return "SerialExecutor()"

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        return [function(item) for item in items]

    def map_reduce(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        combine: Callable[[Result, Result], Result],
    ) -> Result:
        results = map(function, items)
        for first in results:
            return reduce(combine, results, first)
        raise DataError("map_reduce got no items; there is nothing to combine")
