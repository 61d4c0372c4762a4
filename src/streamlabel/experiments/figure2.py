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
from streamlabel.experiments.experiment import Experiment, Key, Setting, named
from streamlabel.experiments.methods import BR, METHODS, METHODS_OPTION, OWN, PEERS, SLL, Method, absent, sized, to_run
from streamlabel.experiments.sets import asked_name, learnable, load_set
from streamlabel.experiments.spec import Frame, PageSpec, Plot
from streamlabel.experiments.tuning import Rows, as_text, learn_batch, narrowed
from streamlabel.types import CSR, IntArray

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
        sizes: tuple[int, ...] = PAST.get(asked_name(dataset), (train.n_labels // 4, train.n_labels // 2))
        if asked_name(dataset) not in PAST and train.n_labels < 8:
            raise DataError(f"{train.n_labels} labels; 8 or more are needed for past ones and new ones")
        sizes = sizes[:2] if setting.quick else sizes
        for name in to_run(asked, (*OWN, *PEERS), quick=setting.quick):
            kept = tuple(size for size in sizes if asked or not left_out(name, X, size, NEW))
            if kept:
                found.append(Figure2Task(dataset, name, kept, setting.seeds, int(X.shape[1])))
    return found


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
            **named(KEY, key),
            n_new=len(new),
            n_rows=train.n_rows,
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


def _times(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """The least CPU seconds of the runs (wall in parentheses), by the number of past labels."""
    least = frame.groupby(["dataset", "method", "n_past"], sort=False)[["cpu_seconds", "seconds", "past_seconds"]].min()
    found = []
    for dataset, here in frame.groupby("dataset", sort=False):
        sizes = sorted(here["n_past"].unique())
        last = sizes[-1]
        ours = least["cpu_seconds"].get((dataset, SLL, last))
        for method in dict.fromkeys(here["method"]):
            line = {"dataset": dataset, "method": method}
            line["learns"] = "all labels" if METHODS[method].retrains else "the new ones"
            for size in sizes:
                known = (dataset, method, size) in least.index
                cpu, wall, _ = least.loc[dataset, method, size] if known else (0.0, 0.0, 0.0)
                line[f"{size:,} past"] = f"{_short(cpu)} ({_short(wall)})" if known else "not run"
            if (dataset, method, last) in least.index:
                cpu, _, before = least.loc[dataset, method, last]
                line[f"times SLL at {last:,}"] = f"{cpu / ours:.1f}" if ours else ""
                line["before"] = _short(before)
            found.append(line)
    return found


def _short(seconds: float) -> str:
    """
    >>> _short(0.0001), _short(0.1234), _short(123.4)
    ('0', '0.12', '123')
    """
    if seconds < 0.0005:
        return "0"
    return f"{seconds:.0f}" if seconds >= 99.5 else f"{seconds:.2g}"


def _shapes(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Of every set: rows, features, new labels, and how far apart runs of one method lie."""
    found = []
    for dataset, here in frame.groupby("dataset", sort=False):
        times = here.groupby(["method", "n_past"])["cpu_seconds"]
        ratio = (times.max() / times.min())[times.count() > 1]
        line = {"set": dataset, "rows": here["n_rows"].iloc[0], "features": here["n_features"].iloc[0]}
        spread = f"{ratio.median():.2g} (at most {ratio.max():.2g})" if len(ratio) else "one run each"
        found.append({**line, "new labels": here["n_new"].iloc[0], "longest run by the least, median": spread})
    return found


def _ratios(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """CPU seconds of SLL after the most past labels, and how many times as long others take."""
    found: dict[str, dict[str, str]] = {}
    for dataset, here in frame.groupby("dataset", sort=False):
        cpu = here[here["n_past"] == here["n_past"].max()].groupby("method")["cpu_seconds"].min()
        if SLL in cpu and cpu[SLL] > 0:
            line = found.setdefault(dataset, {"set": dataset, "past labels": f"{here['n_past'].max():,}"})
            line["SLL, seconds"] = _short(cpu[SLL])
            for method in (BR, "BR logistic", "LEML", "SLEEC", "omikuji"):
                line[f"{method} / SLL"] = f"{cpu[method] / cpu[SLL]:.1f}" if method in cpu else ""
    return list(found.values())


def _limits(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Up to how many rows times labels a method is run without being asked for by name."""
    limits: dict[int, list[str]] = {}
    for name, method in METHODS.items():
        if method.most_cells != Method.most_cells:
            limits.setdefault(method.most_cells, []).append(name)
    return [{"million cells": f"{n / 1e6:,.0f}", "methods": ", ".join(names)} for n, names in sorted(limits.items())]


PAGE = PageSpec(
    # times on different numbers of features do not compare: of each set, those on as many as the last record has
    prepare=lambda frame: frame[frame["n_features"] == frame.groupby("dataset")["n_features"].transform("last")],
    order=(*OWN, *PEERS),
    tables={"times": _times, "shapes": _shapes, "ratios": _ratios, "limits": _limits, "absent": absent},
    plots=(
        Plot(
            "times",
            "Time for 100 new labels",
            "n_past",
            "cpu_seconds",
            "past labels (log scale)",
            "CPU seconds (log scale)",
            "A point is the least of its runs, on one thread. SLL and binary relevance learn the new labels alone; "
            "LEML, SLEEC and the trees learn all labels again.",
            middle="min",
            spread="",
            of=lambda frame, compared: frame[frame["cpu_seconds"] > 0],
            log_x=True,
            log_y=True,
        ),
    ),
)
EXPERIMENT = Experiment(
    name="figure2",
    title="Time for 100 new labels",
    explanation=(
        "Running time of 100 new labels after different numbers of past labels, for every method (Figure 2).\n\n"
        "SLL and binary relevance learn the new labels alone, LEML, SLEEC and the trees all labels again. CPU seconds "
        "beside wall seconds; take them on a machine that does nothing else. Large sets: --dataset eurlex57k, "
        "wiki10-31k, citeulike-t. What would take many minutes there is left out by a rule that is on the page."
    ),
    record=Figure2Record,
    key=KEY,
    datasets=("delicious",),
    quick_datasets=("mediamill_reduced",),
    tasks=tasks,
    keys=keys,
    run=run,
    page=PAGE,
    seeds=3,
    quick_seeds=1,
    options=(METHODS_OPTION,),
    measures_times=True,
)
