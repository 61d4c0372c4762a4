"""An experiment without mathematics, for tests of what runs experiments; workers import it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from processes import wait_for
from streamlabel.errors import DataError
from streamlabel.experiments.experiment import Experiment, Key, Setting
from streamlabel.experiments.runner import planned, run_experiment, writing
from streamlabel.experiments.spec import Frame, PageSpec, Plot

MEET = "TOY_EXPERIMENT_MEET"  # a folder where workers wait for each other


@dataclass(frozen=True)
class ToyRecord:
    dataset: str
    seed: int
    step: int
    value: float
    seconds: float


@dataclass(frozen=True)
class ToyTask:
    dataset: str
    seed: int
    n_steps: int
    fails: str = ""


def tasks(setting: Setting) -> list[ToyTask]:
    n_steps, fails = setting.options.get("steps", 3), setting.options.get("fails", "")
    return [ToyTask(name, seed, n_steps, fails) for name in setting.datasets for seed in setting.seeds]


def keys(task: ToyTask) -> list[Key]:
    return [(task.dataset, task.seed, step) for step in range(task.n_steps)]


def run(task: ToyTask, done: Collection[Key]) -> Iterator[ToyRecord]:
    for key in keys(task):
        if key in done:
            continue
        if task.seed == 1 and key[2] == 1:
            if task.fails == "user":
                raise DataError("a wrong row", source="file.txt", line=7)
            if task.fails == "bug":
                raise ZeroDivisionError("never")
            if task.fails == "dies":
                os._exit(9)
        if task.fails in ("slow", "stuck"):
            time.sleep(600.0 if task.fails == "stuck" and key[2] >= 3 else 0.05)
        yield ToyRecord(*key, value=0.1 * (task.seed + key[2]), seconds=time.perf_counter())


def _count(frame: Frame, compared: Frame) -> str:
    return str(len(frame))


def _values(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    return [
        {"dataset": one.dataset, "seed": str(one.seed), "step": str(one.step), "value": f"{one.value:.3f}"}
        for one in frame.itertuples()
    ]


PAGE = PageSpec(
    tables={"values": _values},
    facts={"count": _count},
    plots=(
        Plot(
            "values", "Values", "step", "value", "step", "value (points)", "They grow.", line="seed", spread="",
            of=lambda frame, compared: frame.assign(step=frame["step"] + 1.0), log_x=True,
        ),
    ),
    template=Path(__file__).with_name("toy_page.md"),
)  # fmt: skip
TOY: Experiment[ToyRecord, ToyTask] = Experiment(
    name="toy",
    title="A toy",
    explanation="Counts.",
    record=ToyRecord,
    key=("dataset", "seed", "step"),
    datasets=("news corpus",),
    quick_datasets=("news corpus",),
    tasks=tasks,
    keys=keys,
    run=run,
    page=PAGE,
)


@dataclass(frozen=True)
class ChoosingRecord:
    dataset: str
    seed: int
    chosen: str
    worker: int
    seconds: float


@dataclass(frozen=True)
class ChoosingTask:
    dataset: str
    seeds: tuple[int, ...]


def _meet(folder: Path) -> None:
    """Wait for another worker, so that neither does everything."""
    folder.mkdir(exist_ok=True)
    (folder / str(os.getpid())).touch()
    wait_for(lambda: len(list(folder.iterdir())) > 1)


def choosing_run(task: ChoosingTask, done: Mapping[Key, ChoosingRecord]) -> Iterator[ChoosingRecord]:
    """Who chooses says so; who finds a record takes what was chosen for it."""
    chosen = next((record.chosen for record in done.values()), f"{task.dataset}, by {os.getpid()} for {task.seeds}")
    for seed in task.seeds:
        if (task.dataset, seed) not in done:
            if MEET in os.environ and seed:
                _meet(Path(os.environ[MEET]) / "meeting")
            yield ChoosingRecord(task.dataset, seed, chosen, os.getpid(), time.perf_counter())


def nothing(task: ChoosingTask, done: Mapping[Key, ChoosingRecord]) -> Iterator[ChoosingRecord]:
    return iter(())


CHOOSING: Experiment[ChoosingRecord, ChoosingTask] = Experiment(
    name="choosing",
    title="A choice",
    explanation="Chooses once.",
    record=ChoosingRecord,
    key=("dataset", "seed"),
    datasets=("a",),
    quick_datasets=("a",),
    tasks=lambda setting: [ChoosingTask(name, setting.seeds) for name in setting.datasets],
    keys=lambda task: [(task.dataset, seed) for seed in task.seeds],
    run=choosing_run,
    page=PAGE,
    parts=lambda task: [ChoosingTask(task.dataset, (seed,)) for seed in task.seeds],
)


def run_slowly() -> None:
    """A run that has to be ended, as a program: arguments are the folder, the number of jobs, "slow" or "stuck"."""
    options = {"steps": 40 if sys.argv[3] == "stuck" else 4000, "fails": sys.argv[3]}
    setting = Setting(("a",), (0, 1, 2, 3), options=options)
    with writing(TOY, Path(sys.argv[1])) as file:
        run_experiment(TOY, planned(TOY, setting), file, int(sys.argv[2]))
