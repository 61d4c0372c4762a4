"""``streamlabel reproduce bounds``: the two theorems of the paper against measurements."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from streamlabel.data.streams import random_stream
from streamlabel.experiments import bounds_pictures, bounds_tables
from streamlabel.experiments.bounds_distance import distances_of_stream, random_record
from streamlabel.experiments.bounds_records import DISTANCE, KEY, RISK, BoundsRecord
from streamlabel.experiments.bounds_risk import risk_records
from streamlabel.experiments.experiment import Experiment, Setting
from streamlabel.experiments.random_problems import RANDOM, random_beta, random_rows
from streamlabel.experiments.records import Key
from streamlabel.experiments.sets import load_set, training_rows
from streamlabel.types import Dataset

__all__ = ["EXPERIMENT", "BoundsTask", "keys", "run", "run_on", "tasks"]

SIZES, BETAS, N_BATCHES, N_PROBLEMS = (250, 500, 1000, 2000, sys.maxsize), (1.0, 10.0, 100.0), 5, 60
QUICK_SIZES, QUICK_BETAS, QUICK_BATCHES, QUICK_PROBLEMS = (250, sys.maxsize), (1.0,), 2, 15


@dataclass(frozen=True)
class BoundsTask:
    """One theorem on one order of the labels of a set, or on random problems."""

    theorem: int
    dataset: str
    seed: int
    sizes: tuple[int, ...] = ()
    betas: tuple[float, ...] = ()
    n_batches: int = N_BATCHES
    n_problems: int = 0


def tasks(setting: Setting) -> list[BoundsTask]:
    sizes, betas, batches, problems = (
        (QUICK_SIZES, QUICK_BETAS, QUICK_BATCHES, QUICK_PROBLEMS)
        if setting.quick
        else (SIZES, BETAS, N_BATCHES, N_PROBLEMS)
    )
    grid = [(name, seed) for name in setting.datasets for seed in setting.seeds]
    return [
        *(BoundsTask(DISTANCE, name, seed, betas=betas, n_batches=batches) for name, seed in grid),
        *(BoundsTask(RISK, name, seed, sizes=sizes, n_batches=batches) for name, seed in grid),
        *(BoundsTask(DISTANCE, RANDOM, seed, n_problems=problems) for seed in setting.seeds),
    ]


def keys(task: BoundsTask, n_train: int | None = None) -> list[Key]:
    if task.dataset == RANDOM:
        numbers = range(task.n_problems)
        return [(DISTANCE, RANDOM, random_rows(i), 0, i, random_beta(i), task.seed) for i in numbers]
    n_train = training_rows(task.dataset) if n_train is None else n_train
    n_batches = task.n_batches
    if task.theorem == DISTANCE:
        return [(DISTANCE, task.dataset, n_train, n_batches, n_batches, beta, task.seed) for beta in task.betas]
    sizes = sorted({min(size, n_train - n_train // 2) for size in task.sizes})
    batches = range(1, n_batches + 1)
    return [(RISK, task.dataset, size, n_batches, batch, 0.0, task.seed) for size in sizes for batch in batches]


def run(task: BoundsTask, done: Collection[Key] = ()) -> Iterator[BoundsRecord]:
    if task.dataset == RANDOM:
        for number in range(task.n_problems):
            if keys(task)[number] not in done:
                yield random_record(number, task.seed)
    else:
        yield from run_on(task, *load_set(task.dataset), done)


def run_on(task: BoundsTask, train: Dataset, test: Dataset, done: Collection[Key] = ()) -> Iterator[BoundsRecord]:
    """Half of the labels, drawn with the seed, are past; the others arrive in batches. Rows have length one."""
    missing = [key for key in keys(task, train.n_rows) if key not in done]
    stream = random_stream(train.n_labels, train.n_labels // 2, n_batches=task.n_batches, random_state=task.seed)
    if missing:
        if task.theorem == DISTANCE:
            yield from distances_of_stream(missing, train, stream)
        else:
            yield from risk_records(missing, train, test, stream)


EXPERIMENT = Experiment(
    name="bounds",
    title="The two theorems, computed",
    explanation=(
        "The bounds of the paper's two theorems against what they bound.\n\n"
        "Theorem 1: the risk of new labels on unseen rows, after every batch of a stream. Theorem 2: the distance of "
        "classifiers learned label after label to those learned all at once, on whole sets and on small random "
        "problems. Both as printed and mended; the page says in how many of how many checks they held."
    ),
    record=BoundsRecord,
    key=KEY,
    datasets=("bibtex", "delicious"),
    quick_datasets=("mediamill_reduced",),
    tasks=tasks,
    keys=keys,
    run=run,
    page=bounds_tables.page,
    pictures=bounds_pictures.pictures,
)
