"""Tasks that give many results each, here or in worker processes; results arrive one by one, as they are finished.

The executors of the package return what a function returns when it is done; an experiment keeps every record as soon
as it is there, so a worker sends them one by one.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from streamlabel.errors import StreamlabelError
from streamlabel.stats.threads import one_thread

Task = TypeVar("Task")
Result = TypeVar("Result")
_RESULT, _DONE, _ERROR = "result", "done", "error"


def results_of(
    function: Callable[[Task], Iterable[Result]],
    tasks: Sequence[Task],
    n_jobs: int,
    more: Callable[[Result], Sequence[Task]] | None = None,
) -> Iterator[Result]:
    """Everything that ``function`` gives for the tasks, each with one BLAS thread.

    With one job the results come in the order of the tasks; with more, in the order in which they are finished, and
    ``function`` and the tasks travel to other processes. The first error ends the iteration and reaches the caller.
    However it ends, no worker is left.

    more : the tasks that may be run now that a result is there, in their order; they go before those that wait. With
        one job it is not asked.
    """
    if n_jobs == 1 or (len(tasks) <= 1 and more is None):
        with one_thread():
            for task in tasks:
                yield from function(task)
        return
    yield from _Pool(function, n_jobs).results(list(tasks), more or (lambda result: ()))


class _Pool:
    """Fresh interpreters, a pipe to each: a fork would copy BLAS threads in whatever state they are.

    A worker is started when there is a task for it.
    """

    def __init__(self, function: Callable[[Any], Iterable[Any]], most_workers: int) -> None:
        self._function, self._most = function, most_workers
        self._workers: dict[Connection, BaseProcess] = {}
        self._idle: list[Connection] = []

    def results(self, tasks: list[Any], more: Callable[[Any], Sequence[Any]]) -> Iterator[Any]:
        tasks.reverse()
        try:
            self._give(tasks)
            while len(self._idle) < len(self._workers):
                ready = wait([pipe for pipe in self._workers if pipe not in self._idle])
                for pipe in [pipe for pipe in self._workers if pipe in ready]:
                    kind, value = self._receive(pipe)
                    if kind == _RESULT:
                        yield value  # before anything can go wrong
                        tasks.extend(reversed(more(value)))
                        self._give(tasks)
                    elif kind == _ERROR:
                        raise value
                    else:
                        self._idle.append(pipe)
                        self._give(tasks)
        finally:
            self._end()

    def _give(self, tasks: list[Any]) -> None:
        """The last of the tasks to idle workers, and to new ones while there may be more."""
        missing = min(len(tasks) - len(self._idle), self._most - len(self._workers))
        if missing > 0:
            self._start(missing)
        while tasks and self._idle:
            self._idle.pop().send(tasks.pop())

    def _start(self, n_workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        with _interrupts_later():
            for _ in range(n_workers):
                ours, theirs = context.Pipe()
                worker = context.Process(target=_work, args=(self._function, theirs), daemon=True)
                worker.start()
                theirs.close()
                self._workers[ours] = worker
                self._idle.append(ours)

    def _receive(self, pipe: Connection) -> tuple[str, Any]:
        try:
            found: tuple[str, Any] = pipe.recv()
        except (EOFError, OSError):
            worker = self._workers[pipe]
            worker.join(5)
            raise StreamlabelError(
                f"a worker process ended in the middle of its work (exit code {worker.exitcode}; -9 often means that "
                "memory ran out: try --jobs 1); records that were finished are kept"
            ) from None
        return found

    def _end(self) -> None:
        for pipe, worker in self._workers.items():
            worker.terminate()
            worker.join()
            pipe.close()


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """An interrupt waits until the block has ended, and never reaches the processes that are started in it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # the first process would start it, which lets interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(function: Callable[[Any], Iterable[Any]], pipe: Connection) -> None:
    """The life of a worker. An interrupt is the parent's, which ends its workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            task = pipe.recv()
        except (EOFError, ConnectionError):
            return  # the parent is gone
        try:
            with one_thread():
                for result in function(task):
                    pipe.send((_RESULT, result))
            pipe.send((_DONE, None))
        except ConnectionError:
            return
        except Exception as error:
            if not isinstance(error, StreamlabelError):
                error.add_note(f"In a worker process:\n{traceback.format_exc()}")
            pipe.send((_ERROR, error))
            return
