"""Run what is missing of an experiment, and keep every record as it is finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlabel.errors import Hint
from streamlabel.experiments.experiment import Experiment, Key, Setting
from streamlabel.experiments.provenance import read_origin, with_command, write_origin
from streamlabel.experiments.record_file import RecordFile, keeping, opening
from streamlabel.experiments.workers import results_of
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


@dataclass(frozen=True)
class _Rest:
    """What a worker is given: calls ``run`` with an item."""

    run: Callable[[Any, Mapping[Key, Any]], Iterator[Any]]

    def __call__(self, item: _Item) -> Iterator[Any]:
        return self.run(*item)


class _Work:
    """What is to be run now, and the parts of tasks that wait for the first record of their task."""

    def __init__(self, experiment: Experiment[Any, Any], file: RecordFile[Any], *, divided: bool) -> None:
        self.run = _Rest(experiment.run)
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
