"""``streamlabel reproduce bounds``: the two theorems of the paper against measurements."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from streamlabel.data.streams import random_stream
from streamlabel.experiments.experiment import Experiment, Key, Setting
from streamlabel.experiments.sets import load_set, training_rows
from streamlabel.experiments.spec import Frame, PageSpec, Plot
from streamlabel.experiments.theorems import (
    DISTANCE,
    KEY,
    RANDOM,
    RISK,
    BoundsRecord,
    distances_of_stream,
    random_beta,
    random_record,
    random_rows,
    risk_records,
)
from streamlabel.types import Dataset

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


TERMS = {
    "bound": "mended bound",
    "confidence": "of which: confidence",
    "own": "of which: deviation from the anchor",
    "past": "of which: freedom of the code",
    "alone": "the same bound for BR ridge",
    "actual": "measured: unseen less seen risk",
}
_DISTANCES = {"printed": "bound as printed", "bound": "mended bound", "actual": "true distance"}


def _one_grid(frame: Frame) -> Frame:
    """Of the streams of a set those with the most batches: a quick run beside a full one is not shown."""
    most = frame.groupby(["theorem", "dataset"])["n_batches"].transform("max")
    return frame[frame["n_batches"] == most]


def _of(frame: Frame, theorem: int) -> Frame:
    return frame[frame["theorem"] == theorem]


def _times(here: Frame, name: str) -> float:
    """How many times the bound is what it bounds, median over the records where there is anything to bound."""
    some = here[here["actual"] > 1e-9 * here["scale"]]
    return float((some[name] / some["actual"]).median()) if len(some) else 0.0


def _held(here: Frame) -> str:
    return f"{here['held'].sum():,} of {here['checked'].sum():,}"


def _last_batch(frame: Frame) -> Frame:
    risks = _of(frame, RISK)
    return risks[risks["batch"] == risks.groupby("dataset")["batch"].transform("max")]


def _by_rows(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Theorem 1 by the number of annotated rows, all batches in."""
    found = []
    for (dataset, n_rows), here in _last_batch(frame).groupby(["dataset", "n_rows"]):
        line = {"dataset": dataset, "rows": str(n_rows)}
        line |= {title: f"{here[name].mean():.4f}" for name, title in TERMS.items()}
        line |= {"seen risk": f"{here['scale'].mean():.4f}", "printed terms": f"{here['printed'].mean():.4f}"}
        found.append({**line, "held": _held(here)})
    return found


def _along(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Theorem 1 along the stream, with the most rows."""
    risks, found = _of(frame, RISK), []
    most = risks[risks["n_rows"] == risks.groupby("dataset")["n_rows"].transform("max")]
    titles = {"epsilon": "epsilon", "code_norm": "‖S‖₁₁", "past_norm": "‖W_old‖", "weights_norm": "‖W‖"}
    figures = {"printed": "printed terms", "bound": "bound", "actual": "measured"}
    for (dataset, batch), here in most.groupby(["dataset", "batch"]):
        line = {"dataset": dataset, "batch": str(batch), "new labels": f"{here['n_new'].mean():.0f}"}
        line |= {title: f"{here[name].mean():.2f}" for name, title in titles.items()}
        found.append(line | {title: f"{here[name].mean():.4f}" for name, title in figures.items()})
    return found


def _distances(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Theorem 2: medians over seeds, and over random problems."""
    found = []
    for (dataset, beta), here in _of(frame, DISTANCE).groupby(["dataset", "beta"]):
        share = (here["actual"] / here["scale"]).where(here["scale"] > 0, 0.0).median()
        line = {"set": dataset, "beta": f"{beta:g}", "true distance": f"{here['actual'].median():.3g}"}
        line |= {"of ‖Zh‖": f"{100 * share:.2g}%", "mended bound": f"{here['bound'].median():.3g}"}
        line |= {"times the truth": f"{_times(here, 'bound'):,.1f}", "printed bound": f"{here['printed'].median():.3g}"}
        found.append({**line, "times the truth, printed": f"{_times(here, 'printed'):,.0f}", "held": _held(here)})
    return found


def _credit(frame: Frame, compared: Frame) -> str:
    """At how many numbers of rows the bound is lower than that of BR ridge."""
    means = _last_batch(frame).groupby(["dataset", "n_rows"])[["bound", "alone"]].mean()
    return f"{(means['bound'] < means['alone']).sum()} of {len(means)}"


def _long(frame: Frame, names: Mapping[str, str]) -> Frame:
    """One row a figure, for lines that are fields."""
    long = frame.melt(id_vars=["dataset", "n_rows", "beta", "seed"], value_vars=list(names), var_name="term")
    return long.assign(term=long["term"].map(names))


PAGE = PageSpec(
    prepare=_one_grid,
    tables={"rows": _by_rows, "along": _along, "distances": _distances},
    facts={
        "held_1": lambda frame, compared: _held(_of(frame, RISK)),
        "times_1": lambda frame, compared: f"{_times(_of(frame, RISK), 'bound'):,.0f}",
        "credit": _credit,
        "held_2": lambda frame, compared: _held(_of(frame, DISTANCE)),
        "times_2": lambda frame, compared: f"{_times(_of(frame, DISTANCE), 'bound'):.1f}",
        "times_2_printed": lambda frame, compared: f"{_times(_of(frame, DISTANCE), 'printed'):,.0f}",
    },
    plots=(
        Plot(
            "risk",
            "Theorem 1: how the bound on unseen rows shrinks with annotated rows",
            "n_rows",
            "value",
            "annotated rows (log scale)",
            "squared error a label (log scale)",
            "What the bound allows lies far above what is measured. Bands are standard errors over seeds.",
            line="term",
            of=lambda frame, compared: _long(_last_batch(frame), TERMS),
            log_x=True,
            log_y=True,
        ),
        Plot(
            "distance",
            "Theorem 2: classifiers of a stream against those learned all at once",
            "beta",
            "value",
            "strength beta (log scale)",
            "distance of classifiers (Frobenius norm, log scale)",
            "Lines are medians; bands go from the lower to the upper quartile over seeds and problems.",
            line="term",
            middle="median",
            spread="quartiles",
            of=lambda frame, compared: _long(_of(frame, DISTANCE), _DISTANCES),
            log_x=True,
            log_y=True,
        ),
    ),
)
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
    page=PAGE,
)
