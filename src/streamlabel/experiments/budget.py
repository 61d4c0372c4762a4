"""Accuracy of new labels against the number of annotated rows, with the past and without it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from streamlabel.data.streams import random_stream
from streamlabel.errors import DataError
from streamlabel.experiments.budget_methods import DEFAULT, METHODS, OWN_RIDGE, PAPER, USUAL
from streamlabel.experiments.budget_past import Answer, Past
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.records import Key
from streamlabel.experiments.rows import learnable, unit_rows
from streamlabel.experiments.sets import load_set, training_rows
from streamlabel.experiments.tuning import as_text
from streamlabel.metrics.evaluate import evaluate
from streamlabel.types import CSR, Dataset, FloatArray, IntArray

__all__ = [
    "BUDGETS",
    "KEY",
    "MEASURES",
    "BudgetRecord",
    "BudgetTask",
    "drawn_rows",
    "keys",
    "run",
    "run_on",
    "tasks",
]

BUDGETS: tuple[int | None, ...] = (20, 50, 100, 200, 500, 1000, 2000, None)  # None: all rows
QUICK_BUDGETS: tuple[int | None, ...] = (20, 100)
MEASURES = {"p1": "P@1", "p3": "P@3", "p5": "P@5", "auc": "AUC", "average_precision": "average precision"}
KEY = ("dataset", "method", "n_rows", "seed")


@dataclass(frozen=True)
class BudgetRecord:
    """One method on one draw of rows; measures in percent, on the test rows, over all ``n_labels`` new labels.

    n_rows, n_train : annotated rows, and how many there were to annotate
    n_learned : the new labels that had a yes and a no there
    share, anchored : how the past was used (`streaming.trials.Recipe`); anchored where any label was
    cpu_seconds : of learning and scoring; the first method that needs them also pays for the trials at this budget
    parameters : the hyper-parameters that were chosen, as JSON; empty where there were none to choose
    """

    dataset: str
    method: str
    n_rows: int
    n_train: int
    seed: int
    n_labels: int
    n_learned: int
    p1: float
    p3: float
    p5: float
    auc: float
    average_precision: float
    share: float
    anchored: bool
    cpu_seconds: float
    parameters: str = ""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"no method of the budget is called {self.method!r}")

    @property
    def past_used(self) -> bool:
        return self.share > 0.0 or self.anchored


@dataclass(frozen=True)
class BudgetTask:
    """One order of labels of one set: the past is fitted once, then every budget and method."""

    dataset: str
    seed: int
    budgets: tuple[int | None, ...]
    methods: tuple[str, ...]


def tasks(setting: Setting) -> list[BudgetTask]:
    budgets = setting.options.get("budgets", QUICK_BUDGETS if setting.quick else BUDGETS)
    methods = setting.options.get("methods", (DEFAULT, OWN_RIDGE) if setting.quick else USUAL)
    if setting.options.get("paper"):
        methods = tuple(dict.fromkeys((*methods, PAPER)))
    return [BudgetTask(name, seed, budgets, methods) for name in setting.datasets for seed in setting.seeds]


def keys(task: BudgetTask, n_train: int | None = None) -> list[Key]:
    """Numbers of rows ascending, then methods. A budget of None, or of more than there are, means all rows."""
    n_train = training_rows(task.dataset) if n_train is None else n_train
    sizes = sorted({n_train if budget is None else min(budget, n_train) for budget in task.budgets})
    return [(task.dataset, method, n_rows, task.seed) for n_rows in sizes for method in task.methods]


def run(task: BudgetTask, done: Collection[Key] = ()) -> Iterator[BudgetRecord]:
    return run_on(task, *load_set(task.dataset), done)


def run_on(task: BudgetTask, train: Dataset, test: Dataset, done: Collection[Key] = ()) -> Iterator[BudgetRecord]:
    """Half of the labels are past, all others arrive together, annotated on the same random rows.

    The order of the labels and the rows are drawn anew with every seed. What is in ``done`` is left out. Labels without
    a yes (or a no) on the drawn rows cannot be learned by anybody: they score the same for every row (what is constant
    on the method's own scale). Rows are scaled to length one.
    """
    missing = [key for key in keys(task, train.n_rows) if key not in done]
    if missing:
        draw = _Draw(task.dataset, train, test, task.seed)
        for _, method, n_rows, _ in missing:
            yield draw.measure(n_rows, method)


class _Draw:
    """The labels that one seed makes past; the others arrive."""

    def __init__(self, name: str, train: Dataset, test: Dataset, seed: int) -> None:
        self.name, self.train, self.seed = name, train, seed
        stream = random_stream(train.n_labels, train.n_labels // 2, random_state=seed)
        self.truth: CSR = test.Y[:, stream.arriving]
        if not len(stream.past) or not len(learnable(self.truth)):
            raise DataError(
                f"seed {seed}: no new label of {name} has both answers on the {test.n_rows} test rows; "
                "it has too few labels or rows for this experiment",
                source=train.source or None,
            )
        Y_past, Y_new = train.Y[:, stream.past], train.Y[:, stream.arriving]
        self.past = Past(unit_rows(train.X), Y_past, Y_new, unit_rows(test.X), seed)

    def measure(self, n_rows: int, name: str) -> BudgetRecord:
        """Let the others arrive on ``n_rows`` rows, the same for every method, and judge them."""
        method = METHODS[name]
        rows = drawn_rows(self.train.n_rows, n_rows, self.seed)
        answers = self.past.Y_new[rows]
        counts, able = np.asarray(answers.sum(axis=0)).ravel(), learnable(answers)
        scores: FloatArray = np.tile(method.constant(counts, n_rows), (self.truth.shape[0], 1))
        answer = Answer(scores[:, able])
        method.start(self.past)
        start = time.process_time()
        if able.size:
            answer = method.learn(self.past, able, rows)
        cpu_seconds = time.process_time() - start
        scores[:, able] = answer.scores
        found = evaluate(self.truth, scores, metrics=["P@k", "macro_auc", "macro_average_precision"])
        return BudgetRecord(
            dataset=self.name,
            method=name,
            n_rows=n_rows,
            n_train=self.train.n_rows,
            seed=self.seed,
            n_labels=len(counts),
            n_learned=len(able),
            p1=100.0 * found["P@1"],
            p3=100.0 * found["P@3"],
            p5=100.0 * found["P@5"],
            auc=100.0 * found["macro_auc"],
            average_precision=100.0 * found["macro_average_precision"],
            share=answer.share,
            anchored=answer.anchored,
            cpu_seconds=cpu_seconds,
            parameters=as_text(answer.parameters) if answer.parameters else "",
        )


def drawn_rows(n_train: int, n_rows: int, seed: int) -> IntArray:
    """The training rows that are annotated, the same for every method."""
    draw = np.random.default_rng((seed, n_rows))
    return np.arange(n_train) if n_rows == n_train else np.sort(draw.choice(n_train, n_rows, replace=False))
