"""How far a long run is: a bar on a terminal, a plain line now and then where stderr goes to a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streamlabel.cli._output import plural, progress_bar, remark

__all__ = ["run_progress"]

_SECONDS = 60.0  # between two lines, at least
_ENOUGH = 50  # one in so many runs must be done before the time left is guessed: the first one includes the set-up
_TOO_FEW = "too few to say how long the others take"


@contextmanager
def run_progress(name: str, n_runs: int, n_before: int) -> Iterator[Callable[[int, int | None], None]]:
    """Call the yielded function with (done, total) of the runs that were missing.

    n_runs, n_before : all that were asked for, and how many of them were there already
    """
    if sys.stderr.isatty():
        with progress_bar(f"{name}, runs") as progress:
            yield progress
        return
    remark(f"{name}: {plural(n_runs, 'run')}, {n_before:,} done already")
    yield _Lines(name).tell


class _Lines:
    def __init__(self, name: str) -> None:
        self._name = name
        self._start = self._told = time.monotonic()

    def tell(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if total is None or not 0 < done < total or now - self._told < _SECONDS:
            return
        self._told = now
        left = f"about {_time((now - self._start) / done * (total - done))} left"
        remark(f"{self._name}: {done:,} of {total:,} runs done, {left if done * _ENOUGH >= total else _TOO_FEW}")


def _time(seconds: float) -> str:
    minutes = max(1, round(seconds / 60.0))
    return plural(minutes, "minute") if minutes < 120 else f"{minutes / 60.0:.0f} hours"
