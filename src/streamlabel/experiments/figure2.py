"""How long 100 new labels take after different numbers of past labels (Figure 2 of the paper).

Each number of past labels is the beginning of one order; the new labels are the same behind all of them. What is timed
is what a method has to do when the batch arrives: for LEML, SLEEC and the trees that is to learn all labels again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamlabel.errors import DataError
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.methods import BR, METHODS, OWN, PEERS, SLL, sized, to_run
from streamlabel.experiments.records import Key
from streamlabel.experiments.rows import learnable
from streamlabel.experiments.sets import asked_name, load_set
from streamlabel.experiments.tuning import Rows, as_text, learn_batch, narrowed
from streamlabel.types import CSR, IntArray

__all__ = [
    "KEY",
    "MOST_FACTORED",
    "NEW",
    "PAST",
    "Figure2Record",
    "Figure2Task",
    "keys",
    "left_out",
    "run",
    "tasks",
]

KEY = ("dataset", "method", "n_past", "seed", "n_features")
NEW = 100
PAST = {
    "bibtex": (25, 50),
    "delicious": (100, 200, 400, 800),
    "eurlex57k": (1000, 2000),
    "eurlex-4k": (1000, 2000),
    "wiki10-31k": (10_000, 20_000),
    "citeulike-t": (10_000, 20_000),
}
MOST_FACTORED = 6000  # rows or features: beyond, the strength is 1, since choosing it takes an eigendecomposition


@dataclass(frozen=True)
class Figure2Record:
    """The time of one method for one batch.

    n_features : after the cut of `tuning.narrowed`
    past_seconds : CPU, what could be done once, before the batch came
    """

    dataset: str
    method: str
    n_past: int
    seed: int
    n_new: int
    n_rows: int
    n_features: int
    parameters: str
    seconds: float
    cpu_seconds: float
    past_seconds: float


@dataclass(frozen=True)
class Figure2Task:
    dataset: str
    method: str
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    n_features: int


def tasks(setting: Setting) -> list[Figure2Task]:
    """One method on one set, in the order of the table, so that times are taken alike.

    Numbers of past labels for which the rule of `left_out` leaves a method out have no run, unless it was asked for.
    """
    asked: tuple[str, ...] | None = setting.options.get("methods")
    found = []
    for dataset in setting.datasets:
        train, test = load_set(dataset)
        X = narrowed(train, test)[0]
        sizes = PAST.get(asked_name(dataset)) or _sizes(train.n_labels)
        sizes = sizes[:2] if setting.quick else sizes
        for name in to_run(asked, (*OWN, *PEERS), quick=setting.quick):
            kept = tuple(size for size in sizes if asked or not left_out(name, X, size, NEW))
            if kept:
                found.append(Figure2Task(dataset, name, kept, setting.seeds, int(X.shape[1])))
    return found


def _sizes(n_labels: int) -> tuple[int, ...]:
    """A quarter and a half of the labels."""
    if n_labels < 8:
        raise DataError(f"{n_labels} labels; 8 or more are needed for past ones and new ones")
    return (n_labels // 4, n_labels // 2)


def keys(task: Figure2Task) -> list[Key]:
    return [(task.dataset, task.method, n_past, seed, task.n_features) for n_past in task.sizes for seed in task.seeds]


def left_out(name: str, X: CSR, n_past: int, n_new: int) -> bool:
    """Whether a run would take many minutes: more rows times labels than `Method.most_cells`."""
    return METHODS[name].cells(X.shape[0], X.nnz, n_past, n_new) > METHODS[name].most_cells


def run(task: Figure2Task, done: Collection[Key]) -> Iterator[Figure2Record]:
    train, test = load_set(task.dataset)
    X, X_test = narrowed(train, test)
    few = np.arange(min(10, test.n_rows))  # nothing is judged
    method = METHODS[task.method]
    for key in keys(task):
        if key in done:
            continue
        n_past, seed = key[2], key[3]
        past, new = _order(learnable(train.Y), n_past, max(task.sizes), seed)
        parameters = _parameters(task.method, n_past, min(X.shape))
        rows = Rows(X, train.Y[:, past], train.Y[:, new], X_test[few], test.Y[few][:, new])
        learned = learn_batch(method, parameters, rows, seed)
        yield Figure2Record(
            dataset=task.dataset,
            method=task.method,
            n_past=n_past,
            seed=seed,
            n_new=len(new),
            n_rows=train.n_rows,
            n_features=int(X.shape[1]),
            parameters=as_text(parameters),
            seconds=learned.wall_seconds,
            cpu_seconds=learned.cpu_seconds,
            past_seconds=learned.past_seconds,
        )


def _parameters(name: str, n_past: int, smaller_side: int) -> dict[str, Any]:
    parameters = dict(sized(METHODS[name], n_past).grid[0])
    if name in (SLL, BR) and smaller_side > MOST_FACTORED:
        parameters["beta"] = 1.0
    return parameters


def _order(able: IntArray, n_past: int, most_past: int, seed: int) -> tuple[IntArray, IntArray]:
    """The past labels and the new ones: the same new ones behind every number of past labels."""
    order = np.random.default_rng(seed).permutation(able)
    n_new = min(NEW, len(able) // 4)
    if most_past + n_new > len(able):
        raise DataError(f"{len(able)} labels have a yes and a no; {most_past} past and {n_new} new ones are asked for")
    return order[n_new : n_new + n_past], order[:n_new]
