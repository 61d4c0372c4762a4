"""Threads or processes of this machine, through joblib (which scikit-learn brings along)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Literal, TypeVar, get_args

from joblib import Parallel, delayed, effective_n_jobs

from streamlabel.exceptions import DataError
from streamlabel.executors.serial import SerialExecutor

__all__ = ["JoblibExecutor"]

Item = TypeVar("Item")
Result = TypeVar("Result")
Prefer = Literal["threads", "processes"]

_WAVE = 4  # items a worker, in each wave of a map_reduce


class JoblibExecutor:
    """Implements `Executor` on several cores.

    Parameters
    ----------
    n_jobs : workers; -1 for one a core, -2 for one less, and so on
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
        return list(pool(delayed(function)(item) for item in items))

    def map_reduce(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        combine: Callable[[Result, Result], Result],
    ) -> Result:
        wave = _WAVE * effective_n_jobs(self.n_jobs)
        source = iter(items)
        waves: Iterator[list[Result]] = iter(lambda: self.map(function, list(islice(source, wave))), [])
        results = (result for part in waves for result in part)
        return SerialExecutor().map_reduce(lambda result: result, results, combine)
