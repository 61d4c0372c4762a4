"""New labels in batches after half of the labels: every method on several orders of the labels (Table 2 of the paper).

All training rows are annotated. The batches of one order are nested: the 30 new labels are the 15 and 15 more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlabel.data.streams import random_stream
from streamlabel.errors import DataError
from streamlabel.experiments.experiment import Experiment, Key, Setting, named
from streamlabel.experiments.methods import (
    BR,
    METHODS,
    METHODS_OPTION,
    NOT_RUN_NOTE,
    OWN,
    PAPER_NAMES,
    PEERS,
    SLL,
    Method,
    Parameters,
    absent,
    grid_of,
    sized,
    to_run,
)
from streamlabel.experiments.paper import DSLL, MISPRINTS, PAPER, PAPER_PAST, paper_figure
from streamlabel.experiments.sets import asked_name, learnable, load_set, used_name
from streamlabel.experiments.spec import Frame, Measure, PageSpec, Pivot, Plot, Versus, most, tuned_only
from streamlabel.experiments.tables import chosen, differences, standing_lines
from streamlabel.experiments.tuning import Started, as_text, narrowed, precisions, settled
from streamlabel.metrics.decisions import hamming_loss
from streamlabel.metrics.evaluate import evaluate
from streamlabel.types import CSR, FloatArray, IntArray

KEY = ("dataset", "method", "seed", "batch", "tuned")
_LONGEST_FIRST = ("SLEEC", "SLL logistic", "BR squared hinge", "SLL paper signed", "BR logistic", "SLL paper")


@dataclass(frozen=True)
class Table2Record:
    """One method on one batch, judged on the test rows over the new labels alone.

    seed : of the order of labels;  batch : how many arrived
    tuned : whether the hyper-parameters were chosen on held-out training rows; else the first of the grid were taken
    n_learned : new labels that had a yes and a no in training
    p1, p3, p5 : in percent;  micro_auc, ranking_loss : shares
    hamming : wrong cells / (rows x labels), where the method decides; None also in records from before it was measured
    seconds, cpu_seconds : from arrival until the labels can be scored. Where labels are learned one by one, smaller
        batches are parts of the largest one, and the time is that of the largest.
    """

    dataset: str
    method: str
    seed: int
    batch: int
    tuned: bool
    n_past: int
    n_learned: int
    p1: float
    p3: float
    p5: float
    micro_auc: float
    ranking_loss: float
    parameters: str
    seconds: float
    cpu_seconds: float
    hamming: float | None = None


@dataclass(frozen=True)
class Table2Task:
    """One method on one set: its hyper-parameters are chosen once."""

    dataset: str
    method: str
    seeds: tuple[int, ...]
    n_past: int
    batches: tuple[int, ...]
    largest: int
    tuned: bool


def batches_of(name: str, n_labels: int) -> tuple[int, tuple[int, ...]]:
    """How many labels are past, and the sizes of the batches: the paper's, or fifths of the other half."""
    asked = asked_name(name).removesuffix("_reduced")
    n_past = min(PAPER_PAST.get(asked, n_labels // 2), n_labels - 1)
    n_new = n_labels - n_past
    sizes = PAPER.get(asked) or [n_new * fifth // 5 for fifth in range(1, 6)]
    return n_past, tuple(sorted({min(size, n_new) for size in sizes if size > 0}))


def tasks(setting: Setting) -> list[Table2Task]:
    """A task for every set and method, long ones first.

    Peers are run on the largest batch only, and so are methods that learn everything again where that takes long and
    they were not asked for by name.
    """
    asked: tuple[str, ...] | None = setting.options.get("methods")
    names = to_run(asked, (*_LONGEST_FIRST, *PEERS, *OWN), quick=setting.quick)
    found = []
    for dataset in setting.datasets:
        train, _ = load_set(dataset)
        n_past, batches = batches_of(dataset, train.n_labels)
        if n_past < 1:
            raise DataError(f"{dataset} has {train.n_labels} labels; half of them must be past", source=dataset)
        if setting.quick:
            batches = (batches[0], batches[-1]) if len(batches) > 1 else batches
        for name in names:
            method = METHODS[name]
            cells = method.cells(train.n_rows, train.X.nnz, n_past, batches[-1])
            if not asked and cells > method.most_cells:
                continue
            sizes = batches[-1:] if name in PEERS or (not asked and cells > method.all_batches) else batches
            found.append(Table2Task(dataset, name, setting.seeds, n_past, sizes, batches[-1], not setting.quick))
    return found


def keys(task: Table2Task) -> list[Key]:
    return [(task.dataset, task.method, seed, batch, task.tuned) for seed in task.seeds for batch in task.batches]


def parts(task: Table2Task) -> list[Table2Task]:
    """One order of the labels each."""
    return [replace(task, seeds=(seed,)) for seed in task.seeds]


def run(task: Table2Task, done: Mapping[Key, Table2Record]) -> Iterator[Table2Record]:
    data = _Set(task)
    method = sized(METHODS[task.method], task.n_past)
    parameters = settled(method, done.values(), data.X, data.train.Y, data.order(0), tuned=task.tuned)
    for seed in task.seeds:
        missing = [b for b in task.batches if (task.dataset, task.method, seed, b, task.tuned) not in done]
        if missing:
            yield from data.measure(method, parameters, seed, missing)


class _Set:
    """The rows of one set, and the order of its labels for a seed."""

    def __init__(self, task: Table2Task) -> None:
        self.task = task
        self.train, self.test = load_set(task.dataset)
        self.X, self.X_test = narrowed(self.train, self.test)

    def order(self, seed: int) -> tuple[IntArray, IntArray]:
        """The past labels, and those of the largest batch."""
        stream = random_stream(self.train.n_labels, self.task.n_past, random_state=seed)
        return stream.past, stream.arriving[: self.task.largest]

    def measure(self, method: Method, parameters: Parameters, seed: int, batches: list[int]) -> Iterator[Table2Record]:
        past, new = self.order(seed)
        started = Started(method, parameters, self.X, self.train.Y[:, past], seed)
        whole = started.learn(self.train.Y[:, new], self.X_test) if method.independent else None
        for batch in batches:
            labels = new[:batch]
            found = whole or started.learn(self.train.Y[:, labels], self.X_test)
            yield Table2Record(
                **named(KEY, (self.task.dataset, method.name, seed, batch, self.task.tuned)),
                n_past=len(past),
                n_learned=len(learnable(self.train.Y[:, labels])),
                **_judge(self.test.Y[:, labels], found.scores[:, :batch], f"{self.task.dataset}, seed {seed}"),
                parameters=as_text(parameters),
                seconds=found.wall_seconds,
                cpu_seconds=found.cpu_seconds,
                hamming=_hamming(self.test.Y[:, labels], found.decisions),
            )


def _hamming(truth: CSR, decisions: NDArray[np.bool_] | None) -> float | None:
    """Of a batch, which may be the beginning of a larger one that was decided at once."""
    return None if decisions is None else hamming_loss(truth, decisions[:, : truth.shape[1]].astype(np.int8))


def _judge(truth: CSR, scores: FloatArray, where: str) -> dict[str, Any]:
    if not truth.nnz:
        raise DataError(f"{where}: no test row has any of the {truth.shape[1]} new labels; it cannot be judged")
    found = evaluate(truth, scores, metrics=["P@k", "micro_auc", "ranking_loss"])
    return precisions(found) | {name: found[name] for name in ("micro_auc", "ranking_loss")}


_PRECISIONS = (Measure("p1", "P@1"), Measure("p3", "P@3"), Measure("p5", "P@5"))
_SHARES = (Measure("micro_auc", "micro AUC", 100.0, 3), Measure("ranking_loss", "ranking loss", -100.0, 3))
_HAMMING = Measure("hamming", "Hamming loss", -100.0, 4)  # shown, not counted: methods decide by different rules
_BATCHES = {"batch": "{} labels"}


def _prepared(frame: Frame) -> Frame:
    return tuned_only(frame).assign(hamming=lambda found: found["hamming"].astype(float))


def _own(frame: Frame) -> Frame:
    return frame[frame["method"].isin(OWN)]


def _short(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """P@1 of every method at the largest batch, a column a set; the best of a set is marked."""
    means = most(frame, "batch").groupby(["method", "dataset"], sort=False)["p1"].mean().unstack(sort=False)
    best = means.round(1).max()
    return [
        {"method": method}
        | {name: f"**{p1:.1f}**" if round(p1, 1) == best[name] else f"{p1:.1f}" for name, p1 in row.dropna().items()}
        for method, row in means.iterrows()
    ]


def _claim(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """The paper's main claim, a gain of SLL over BR in P@1: measured, and printed, where the set is the paper's."""
    found = []
    here = compared[(compared["competitor"] == BR) & (compared["measure"] == "P@1")]
    for one in here.itertuples():
        batch = int(one.where.split()[0])
        ours, theirs = (paper_figure(one.dataset, batch, 1, PAPER_NAMES[name]) for name in (SLL, BR))
        if ours is not None and theirs is not None and (one.dataset, batch, 1, PAPER_NAMES[BR]) not in MISPRINTS:
            line = {
                "set": one.dataset,
                "new labels": str(batch),
                "SLL minus BR here": f"{one.gain:+.2f} ± {one.error:.2f}",
            }
            found.append({**line, "verdict": one.verdict, "in the paper": f"{ours - theirs:+.2f}"})
    return found


def _printed(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """P@k as the paper prints it for the sets of the records, or those that they stand in for."""
    found = []
    for name in dict.fromkeys(frame["dataset"]):
        asked = asked_name(name)
        note = "" if asked == used_name(name) else f" (not the rows and labels of {used_name(name)})"
        for depth in (1, 3, 5) if asked in PAPER else ():
            for method in PAPER_NAMES.values():
                line = {"dataset": f"{asked}{note}", "as printed": f"P@{depth}, {method}"}
                for batch in sorted(PAPER[asked]):
                    mark = " (a misprint?)" if (asked, batch, depth, method) in MISPRINTS else ""
                    line[f"{batch} labels"] = f"{paper_figure(asked, batch, depth, method):.2f}{mark}"
                found.append(line)
        for field, figures in DSLL.get(asked, {}).items():
            shown = {f"{batch} labels": f"{value:.3f}" for batch, value in figures.items()}
            found.append({"dataset": f"{asked}{note}", "as printed": f"{field.replace('_', ' ')}, DSLL", **shown})
    return found


def _drawn(frame: Frame, compared: Frame) -> Frame:
    """The differences in P@1 of the methods that were run on every batch."""
    here = compared[(compared["measure"] == "P@1") & compared["competitor"].isin(OWN)]
    return here.assign(batch=here["where"].str.split().str[0].astype(int))


PAGE = PageSpec(
    prepare=_prepared,
    order=(*OWN, *PEERS),
    versus=Versus(
        (*_PRECISIONS, *_SHARES),
        place="batch",
        where="{} new labels",
        unfair=frozenset({("SLEEC", "ranking_loss")}),  # ties, which it has many of, are wrong in full there
    ),
    tables={
        "precisions": Pivot(_PRECISIONS, columns="batch", titles=_BATCHES, keep=_own),
        "shares": Pivot((*_SHARES, _HAMMING), columns="batch", titles=_BATCHES, keep=_own),
        "everybody": Pivot((*_PRECISIONS, *_SHARES, _HAMMING), keep=lambda frame: most(frame, "batch")),
        "short": _short,
        "differences": differences,
        "standings": standing_lines,
        "claim": _claim,
        "printed": _printed,
        "chosen": lambda frame, compared: chosen(frame, grid_of),
        "absent": absent,
    },
    plots=(
        Plot(
            "differences",
            "SLL against the others on new labels, all rows annotated",
            "batch",
            "gain",
            "new labels in the batch",
            "SLL minus the other in P@1 (points)",
            "Above zero SLL is better than the method on the same new labels. Bands are standard errors over orders of "
            "the labels.",
            line="competitor",
            spread="given",
            of=_drawn,
            zero=True,
        ),
    ),
)
EXPERIMENT = Experiment(
    name="table2",
    title="New labels in batches, half of the labels past",
    explanation=(
        "P@k, micro AUC and ranking loss of new labels in batches, for every method, beside the paper's Table 2.\n\n"
        "Half of the labels of a set are past (Delicious 483), the others arrive in batches of the paper's sizes; all "
        "training rows are annotated. Hyper-parameters are chosen on a fifth of the training rows. " + NOT_RUN_NOTE
    ),
    record=Table2Record,
    key=KEY,
    datasets=("bibtex", "mediamill", "delicious"),
    quick_datasets=("mediamill_reduced",),
    tasks=tasks,
    keys=keys,
    run=run,
    parts=parts,
    page=PAGE,
    options=(METHODS_OPTION,),
)
