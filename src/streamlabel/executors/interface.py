"""What an executor is: two functions, and what a caller may rely on.

Executors are passed in as arguments; the mathematics knows none of them. `SerialExecutor` is the default and the
reference: every other one gives what it gives, in the same order (``tests/contracts/test_executors.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar, runtime_checkable

__all__ = ["Executor"]

Item = TypeVar("Item")
Result = TypeVar("Result")


@runtime_checkable
class Executor(Protocol):
    """Applies a function to many items, here or elsewhere.

    The function and the items may travel to another process: they hold data, not open files or locks, and the function
    does not count on changing its arguments. The first exception that a function raises ends the call and reaches the
    caller with its own type.
    """

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """``[function(item) for item in items]``, in this order."""
        ...

    def map_reduce(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        combine: Callable[[Result, Result], Result],
    ) -> Result:
        """``combine(... combine(combine(r0, r1), r2) ...)``, with ``ri = function(item_i)``: from the left, in order.

        Items are drawn as they are needed and results combined as they come, so neither is ever there as a whole.
        No items are an error (DataError): there is nothing to combine.
        """
        ...
