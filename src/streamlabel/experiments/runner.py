"""Run what is missing of an experiment, here or in worker processes, and keep every record as it is finished.

joblib returns what a task returns when it is done; here a worker sends every record as soon as it is there.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from streamlabel.errors import Hint, StreamlabelError
from streamlabel.experiments.experiment import Experiment, Key, Setting
from streamlabel.experiments.provenance import read_origin, with_command, write_origin
from streamlabel.experiments.record_file import RecordFile, keeping, opening
from streamlabel.stats.threads import one_thread
from streamlabel.store.guard import FileLock


@dataclass(frozen=True)
class Planned:
    """A task with the keys of its records."""

    task: Any
    keys: tuple[Key, ...]


def planned(experiment: Experiment[Any, Any], setting: Setting) -> tuple[Planned, ...]:
    """All tasks that were asked for: what is wrong with the setting is found here, before anything is written."""
    return tuple(Planned(task, tuple(experiment.keys(task))) for task in experiment.tasks(setting))


def record_file(experiment: Experiment[Any, Any], out: Path) -> RecordFile[Any]:
    """The records of the experiment in this folder; made when it is not there."""
    return RecordFile(out / f"{experiment.name}.jsonl", experiment.record, experiment.key)


@contextmanager
def writing(experiment: Experiment[Any, Any], out: Path) -> Iterator[RecordFile[Any]]:
    """The records of the experiment in this folder, for one process at a time, until the block or the process ends.

    Raises
    ------
    ConflictError : another process has them
    StreamlabelError : nothing can be written there
    DataError : what is there are no such records, or no such origin
    """
    path, guarded = out / f".{experiment.name}.lock", out / f"{experiment.name}.jsonl"
    with opening(out):
        out.mkdir(parents=True, exist_ok=True)
        path.touch()
        lock = FileLock(path, guarded, f"reproduce {experiment.name}", Hint.OTHER_FOLDER)
    try:
        read_origin(_origin_path(experiment, out))
        yield record_file(experiment, out)
    finally:
        lock.release()


def run_experiment(
    experiment: Experiment[Any, Any],
    plan: Iterable[Planned],
    file: RecordFile[Any],
    n_jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
    command: str = "",
) -> None:
    """Run what is not in the file yet; only this process writes there. An interrupt keeps what is finished.

    command : goes to ``NAME.run.json`` just before the first record, so that an interrupted one is there
    """
    work = _Work(experiment, file, divided=n_jobs > 1)
    total = 0
    for one in plan:
        done = file.among(one.keys)
        if len(done) < len(one.keys):
            work.add(one.task, done)
            total += len(one.keys) - len(done)
    progress(0, total)
    out = file.path.parent
    for n_done, record in enumerate(_results(work, n_jobs, out), start=1):
        try:
            if command and n_done == 1:  # before the record: none may be of an unknown origin
                path = _origin_path(experiment, out)
                with keeping(out):
                    write_origin(with_command(read_origin(path), command), path)
        finally:  # a finished record is kept whatever becomes of that
            file.append(record)
        progress(n_done, total)
    assert not work.waits, "a task gave none of its records"


_Item = tuple[Any, Mapping[Key, Any]]  # a task, or a part of one, with the finished records of the task


def _run(run: Callable[[Any, Mapping[Key, Any]], Iterator[Any]], item: _Item) -> Iterator[Any]:
    """What a worker is given, with the ``run`` of its experiment."""
    return run(*item)


class _Work:
    """What is to be run now, and the parts of tasks that wait for the first record of their task."""

    def __init__(self, experiment: Experiment[Any, Any], file: RecordFile[Any], *, divided: bool) -> None:
        self.run = partial(_run, experiment.run)
        self.now: list[_Item] = []
        self._keys, self._key_of = experiment.keys, file.key
        self._parts = experiment.parts if divided else None
        self._waiting: dict[Key, list[Any]] = {}  # by every key of the first part

    def add(self, task: Any, done: Mapping[Key, Any]) -> None:
        if self._parts is None:
            self.now.append((task, done))
            return
        missing = [part for part in self._parts(task) if any(key not in done for key in self._keys(part))]
        if done:  # what the parts have in common is known
            self.now += [(part, done) for part in missing]
            return
        first, *others = missing
        self.now.append((first, done))
        self._waiting.update(dict.fromkeys(self._keys(first), others))

    @property
    def waits(self) -> bool:
        return any(self._waiting.values())

    def more(self, record: Any) -> list[_Item]:
        """What this record lets be run."""
        key = self._key_of(record)
        waiting = self._waiting.get(key, [])
        found: list[_Item] = [(part, {key: record}) for part in waiting]
        waiting.clear()
        return found


def _results(work: _Work, n_jobs: int, out: Path) -> Iterator[Any]:
    with keeping(out):
        yield from results_of(work.run, work.now, n_jobs, work.more if work.waits else None)


def _origin_path(experiment: Experiment[Any, Any], out: Path) -> Path:
    return out / f"{experiment.name}.run.json"


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
        found, end = chain.from_iterable(map(function, tasks)), object()
        step: Any = one_thread()(next)  # the limit is not held between results: one who stops early would keep it
        while (result := step(found, end)) is not end:
            yield result
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
