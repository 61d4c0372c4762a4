"""Accuracy over all labels against the share of them that was there at the start; the others came one by one.

Figure 1 of the paper. All training rows are annotated. A label that comes later may lean on those that came before it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamlabel.data.streams import random_stream
from streamlabel.errors import DataError
from streamlabel.experiments.compare import pandas
from streamlabel.experiments.experiment import Experiment, Key, Setting, named
from streamlabel.experiments.methods import (
    BR,
    METHODS,
    METHODS_OPTION,
    NOT_RUN_NOTE,
    OWN,
    PEERS,
    SLL,
    Parameters,
    absent,
    grid_of,
    to_run,
)
from streamlabel.experiments.sets import learnable, load_set
from streamlabel.experiments.spec import Frame, Measure, PageSpec, Pivot, Plot, Versus, tuned_only
from streamlabel.experiments.tables import chosen, differences, standing_lines
from streamlabel.experiments.tuning import Rows, all_columns, as_text, learn_batch, narrowed, precisions, settled
from streamlabel.metrics.evaluate import evaluate
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.types import CSR, FloatArray, IntArray

KEY = ("dataset", "method", "share", "seed", "tuned")
SHARES = tuple(range(10, 101, 10))  # percent of the labels
CURVES: dict[str, dict[str, Any]] = {SLL: {}, "SLL paper": {"metric": None, "loss": "squared", "start": "alternating"}}
_LONGEST_FIRST = ("SLEEC", "SLL", "SLL paper", "BR squared hinge", "SLL logistic", "BR logistic")


@dataclass(frozen=True)
class Figure1Record:
    """One method with one order of the labels, judged on the test rows over all labels, in percent.

    share : percent of the labels that were there at the start; at 100 nothing arrives, and every method is run
    tuned : whether the hyper-parameters were chosen on held-out training rows; else the first of the grid were taken
    n_labels, n_learned : all labels, and those that had a yes and a no in training
    """

    dataset: str
    method: str
    share: int
    seed: int
    tuned: bool
    n_labels: int
    n_learned: int
    p1: float
    p3: float
    p5: float
    auc: float
    parameters: str
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Figure1Task:
    """One method on one set: its hyper-parameters are chosen once."""

    dataset: str
    method: str
    shares: tuple[int, ...]
    seeds: tuple[int, ...]
    tuned: bool


def tasks(setting: Setting) -> list[Figure1Task]:
    asked: tuple[str, ...] | None = setting.options.get("methods")
    names = to_run(asked, (*_LONGEST_FIRST, *OWN, *PEERS), quick=setting.quick)
    shares = (20, 60, 100) if setting.quick else SHARES
    found = []
    for dataset in setting.datasets:
        train, _ = load_set(dataset)
        if train.n_labels < 10:
            raise DataError(f"{dataset} has {train.n_labels} labels; a tenth of them must be one at least")
        for name in names:
            method = METHODS[name]
            if asked or method.cells(train.n_rows, train.X.nnz, 0, train.n_labels) <= method.most_cells:
                own = shares if name in CURVES else (100,)
                found.append(Figure1Task(dataset, name, own, setting.seeds, not setting.quick))
    return found


def keys(task: Figure1Task) -> list[Key]:
    """With all labels at the start their order does not matter: one run, unless the method draws at random."""
    return [
        (task.dataset, task.method, share, seed, task.tuned)
        for share in task.shares
        for seed in (task.seeds if share < 100 or METHODS[task.method].random else task.seeds[:1])
    ]


def parts(task: Figure1Task) -> list[Figure1Task]:
    """One run each, that of all labels at the start first."""
    return [replace(task, shares=(key[2],), seeds=(key[3],)) for key in sorted(keys(task), key=lambda key: -key[2])]


def run(task: Figure1Task, done: Mapping[Key, Figure1Record]) -> Iterator[Figure1Record]:
    train, test = load_set(task.dataset)
    X, X_test = narrowed(train, test)
    able = learnable(train.Y)
    method = METHODS[task.method]
    nothing = train.Y[:, :0]
    halves = random_stream(train.n_labels, train.n_labels // 2, random_state=0)
    parts = halves.past, halves.arriving  # chosen on the second half of the labels, after the first
    parameters = settled(method, done.values(), X, train.Y, parts, tuned=task.tuned)
    for key in keys(task):
        if key in done:
            continue
        share, seed = key[2], key[3]
        if share == 100:
            learned = learn_batch(method, parameters, Rows(X, nothing, train.Y, X_test, test.Y), seed)
            scores, wall, cpu = learned.scores, learned.wall_seconds, learned.cpu_seconds
        else:
            order = able[random_stream(len(able), 0, random_state=seed).arriving]
            n_past = max(1, round(share * len(able) / 100))
            arrived, wall, cpu = _one_by_one(task.method, parameters, X, train.Y, order, n_past, X_test, seed)
            scores = all_columns(arrived, order, train.Y)
        found = evaluate(test.Y, scores, metrics=["P@k", "macro_auc"])
        if not np.isfinite(found["macro_auc"]):
            raise DataError(f"{task.dataset}: no label has both answers on the test rows; it cannot be judged")
        yield Figure1Record(
            **named(KEY, key),
            n_labels=train.n_labels,
            n_learned=len(able),
            **precisions(found),
            auc=100.0 * found["macro_auc"],
            parameters=as_text(parameters),
            seconds=wall,
            cpu_seconds=cpu,
        )


def _one_by_one(
    name: str, parameters: Parameters, X: CSR, Y: CSR, order: IntArray, n_past: int, X_test: CSR, seed: int
) -> tuple[FloatArray, float, float]:
    """Scores in the order of arrival, and wall and CPU seconds of all arrivals."""
    model = StreamingLabelClassifier(random_state=seed, **CURVES[name], **parameters).fit(X, Y[:, order[:n_past]])
    wall, cpu = time.perf_counter(), time.process_time()
    for label in order[n_past:]:
        model.add_labels(X, Y[:, [label]])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return model.decision_function(X_test), wall, cpu


_MEASURES = (
    Measure("p1", "P@1", digits=2),
    Measure("p3", "P@3", digits=2),
    Measure("p5", "P@5", digits=2),
    Measure("auc", "average AUC", digits=2),
)
_LEVELS = (BR, "BR logistic", "LEML", "SLEEC")  # they do not depend on the start


def _split(frame: Frame) -> tuple[Frame, Frame]:
    """SLL with about half of the labels at the start, against the others with all of them."""
    ours = frame[(frame["method"] == SLL) & (frame["share"] < 100)]
    away = (ours["share"] - 50).abs()
    ours = ours[away == away.groupby(ours["dataset"]).transform("min")]
    ours = ours[ours["share"] == ours.groupby("dataset")["share"].transform("min")]
    share = ours.drop_duplicates("dataset").set_index("dataset")["share"]
    words = share.map("{}% of the labels at the start against all".format)
    theirs = frame[(frame["method"] != SLL) & (frame["share"] == 100) & frame["dataset"].isin(share.index)]
    return ours.assign(where=ours["dataset"].map(words)), theirs.assign(where=theirs["dataset"].map(words))


def _curves(frame: Frame) -> Frame:
    return frame[frame["method"].isin(CURVES)]


def _whole(frame: Frame) -> Frame:
    return frame[frame["share"] == 100]


def _drawn(frame: Frame, compared: Frame) -> Frame:
    """The curves, and the levels of those that have no curve, at both ends."""
    levels = frame[frame["method"].isin(_LEVELS) & (frame["share"] == 100)]
    first = levels.assign(share=levels["dataset"].map(frame.groupby("dataset")["share"].min()))
    return pandas().concat([_curves(frame), levels, first])


PAGE = PageSpec(
    prepare=tuned_only,
    order=(*OWN, *PEERS),
    versus=Versus(
        _MEASURES, split=_split, runs_once=frozenset(name for name, method in METHODS.items() if not method.random)
    ),
    tables={
        "curves": Pivot(_MEASURES, rows=("method", "share"), titles={"share": "% at the start"}, keep=_curves),
        "everybody": Pivot(_MEASURES, keep=_whole),
        "differences": differences,
        "standings": standing_lines,
        "chosen": lambda frame, compared: chosen(_whole(frame), grid_of),
        "absent": absent,
    },
    plots=(
        Plot(
            "curves",
            "All labels at the end, by how many were there at the start",
            "share",
            "p1",
            "labels at the start (percent)",
            "P@1 over all labels (percent)",
            "Curves are of labels that arrive one by one; straight lines are methods that do not depend on the start. "
            "Bands are standard deviations over orders of the labels. The axes do not begin at zero.",
            spread="sd",
            of=_drawn,
        ),
    ),
)
EXPERIMENT = Experiment(
    name="figure1",
    title="How many labels are needed at the start",
    explanation=(
        "P@k and average AUC over all labels against the share of them that was there at the start (Figure 1).\n\n"
        "The others arrive one by one, annotated on all training rows. With all labels at the start every method is "
        "run. Hyper-parameters are chosen on a fifth of the training rows. " + NOT_RUN_NOTE
    ),
    record=Figure1Record,
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
