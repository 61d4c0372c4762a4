"""Map and map-reduce in this process, or in threads or processes through joblib.

Executors are passed in as arguments; the mathematics knows none of them. `SerialExecutor` is the default and the
reference: every other one gives the same results in the same order (``tests/contracts/test_executors.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from itertools import islice
from typing import Literal, Protocol, TypeVar, get_args, runtime_checkable

from joblib import Parallel, delayed, effective_n_jobs

from streamlabel.errors import DataError

Item = TypeVar("Item")
Result = TypeVar("Result")


@runtime_checkable
class Executor(Protocol):
    """An object that applies a function to many items, here or elsewhere.

    The function and the items may travel to another process: they hold data, not open files or locks, and the function
    does not count on changing its arguments. The first exception that a function raises ends the call and reaches the
    caller with its own type.
    """

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Apply the function to every item: ``[function(item) for item in items]``, in this order."""
        ...

    def map_reduce(
        self, function: Callable[[Item], Result], items: Iterable[Item], combine: Callable[[Result, Result], Result]
    ) -> Result:
        """Apply the function to every item and combine the results from the left, in order.

        With ``ri = function(item_i)`` this is ``combine(... combine(combine(r0, r1), r2) ...)``. Items are drawn as
        they are needed and results combined as they come, so neither is ever there as a whole. No items are an error
        (DataError): there is nothing to combine.
        """
        ...


class SerialExecutor:
    """An `Executor` without workers.

    >>> SerialExecutor().map(abs, [-2, 1])
    [2, 1]
    >>> SerialExecutor().map_reduce(abs, [-2, 1], lambda a, b: a + b)
    3
    """

    def __repr__(self) -> str:
        return "SerialExecutor()"

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        return list(self.stream(function, items))

    def stream(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """What `map` gives, one by one."""
        return map(function, items)

    def map_reduce(
        self, function: Callable[[Item], Result], items: Iterable[Item], combine: Callable[[Result, Result], Result]
    ) -> Result:
        results = self.stream(function, items)
        for first in results:
            return reduce(combine, results, first)
        raise DataError("map_reduce got no items; there is nothing to combine")


Prefer = Literal["threads", "processes"]

_WAVE = 4  # items a worker, in each wave of a map_reduce


class JoblibExecutor(SerialExecutor):
    """An `Executor` on several cores, in threads or processes of joblib.

    Parameters
    ----------
    n_jobs : workers; -1 for one per core, -2 for one less, and so on
    prefer : "threads" share memory and start at once, for functions that spend their time in compiled code;
        "processes" do not share the interpreter, take about a second to start, and copy what travels (arrays above
        1 MB are mapped instead, read-only)
    """

    def __init__(self, n_jobs: int = -1, prefer: Prefer = "threads") -> None:
        if not isinstance(n_jobs, int) or n_jobs == 0:
            raise DataError(f"n_jobs is {n_jobs!r}; expected a number of workers, or -1 for one a core")
        if prefer not in get_args(Prefer):
            raise DataError(f"prefer is {prefer!r}; there are {' and '.join(get_args(Prefer))}")
        self.n_jobs = n_jobs
        self.prefer = prefer

    def __repr__(self) -> str:
        return f"JoblibExecutor(n_jobs={self.n_jobs}, prefer={self.prefer!r})"

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        # Not `backend=`: inside a worker joblib then falls back to what can be nested there, and it warns of nothing.
        pool = Parallel(n_jobs=self.n_jobs, prefer=self.prefer)
        if isinstance(function, partial):  # what it holds goes as arguments, which the backend of Dask sends once
            return list(pool(delayed(function.func)(*function.args, item, **function.keywords) for item in items))
        return list(pool(delayed(function)(item) for item in items))

    def stream(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        source, wave = iter(items), _WAVE * self.n_workers
        waves: Iterator[list[Result]] = iter(lambda: self.map(function, list(islice(source, wave))), [])
        return (result for part in waves for result in part)

    @property
    def n_workers(self) -> int:
        return int(effective_n_jobs(self.n_jobs))
