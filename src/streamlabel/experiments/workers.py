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

from streamlabel.exceptions import StreamlabelError
from streamlabel.stats.threads import one_thread

__all__ = ["results_of"]

Task = TypeVar("Task")
Result = TypeVar("Result")
_RESULT, _DONE, _ERROR = "result", "done", "error"


def results_of(function: Callable[[Task], Iterable[Result]], tasks: Sequence[Task], n_jobs: int) -> Iterator[Result]:
    """Everything that ``function`` gives for the tasks, each with one BLAS thread.

    With one job the results come in the order of the tasks; with more, in the order in which they are finished, and
    ``function`` and the tasks travel to other processes. The first error ends the iteration and reaches the caller.
    However it ends, no worker is left.
    """
    if n_jobs == 1 or len(tasks) <= 1:
        with one_thread():
            for task in tasks:
                yield from function(task)
        return
    yield from _Pool(function, min(n_jobs, len(tasks))).results(list(tasks))


class _Pool:
    """Fresh interpreters, a pipe to each: a fork would copy BLAS threads in whatever state they are."""

    def __init__(self, function: Callable[[Any], Iterable[Any]], n_workers: int) -> None:
        self._workers: dict[Connection, BaseProcess] = {}
        context = multiprocessing.get_context("spawn")
        with _interrupts_later():
            for _ in range(n_workers):
                ours, theirs = context.Pipe()
                worker = context.Process(target=_work, args=(function, theirs), daemon=True)
                worker.start()
                theirs.close()
                self._workers[ours] = worker

    def results(self, tasks: list[Any]) -> Iterator[Any]:
        tasks.reverse()
        busy = set()
        try:
            for pipe in self._workers:
                pipe.send(tasks.pop())
                busy.add(pipe)
            while busy:
                ready = wait(list(busy))
                for pipe in [pipe for pipe in busy if pipe in ready]:
                    kind, value = self._receive(pipe)
                    if kind == _RESULT:
                        yield value
                    elif kind == _ERROR:
                        raise value
                    elif tasks:
                        pipe.send(tasks.pop())
                    else:
                        busy.discard(pipe)
        finally:
            self._end()

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
        except EOFError:
            return
        try:
            with one_thread():
                for result in function(task):
                    pipe.send((_RESULT, result))
            pipe.send((_DONE, None))
        except BrokenPipeError:
            return  # the parent is gone
        except Exception as error:
            if not isinstance(error, StreamlabelError):
                error.add_note(f"In a worker process:\n{traceback.format_exc()}")
            pipe.send((_ERROR, error))
            return
