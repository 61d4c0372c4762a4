"""Accuracy of new labels against the number of annotated rows, with the past and without it."""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from streamlabel.data.label_stream import random_stream
from streamlabel.exceptions import DataError
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.records import Key
from streamlabel.experiments.sets import load_set, training_rows
from streamlabel.metrics.summary import evaluate
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.results import CSR, Dataset, FloatArray, IntArray

__all__ = [
    "BUDGETS",
    "DEFAULT",
    "KEY",
    "MEASURES",
    "METHODS",
    "OWN_RIDGE",
    "BudgetRecord",
    "BudgetTask",
    "keys",
    "run",
    "run_on",
    "tasks",
]

BUDGETS: tuple[int | None, ...] = (20, 50, 100, 200, 500, 1000, 2000, None)  # None: all rows
QUICK_BUDGETS: tuple[int | None, ...] = (20, 100)
DEFAULT, OWN_RIDGE = "with the past", "own ridge"
METHODS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    OWN_RIDGE: {"lam": None, "metric": None},
    "paper (anchor only)": {"metric": None},
}
MEASURES = {"p1": "P@1", "p3": "P@3", "p5": "P@5", "auc": "AUC", "average_precision": "average precision"}
KEY = ("dataset", "method", "n_rows", "seed")


@dataclass(frozen=True)
class BudgetRecord:
    """One method on one draw of rows; measures in percent, on the test rows, over all ``n_labels`` new labels.

    n_rows, n_train : annotated rows, and how many there were to annotate
    n_learned : the new labels that had a yes and a no there
    share, anchored : how the past was used (`models.calibration.Recipe`)
    seconds : of the arrival; the first method that needs them also pays for the trials at this budget
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
    seconds: float

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
    methods = tuple(METHODS) if setting.options.get("paper") else (DEFAULT, OWN_RIDGE)
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
    a yes (or a no) on the drawn rows cannot be learned by anybody: they score the same for every row, with every
    method. Rows are scaled to length one.
    """
    missing = [key for key in keys(task, train.n_rows) if key not in done]
    if missing:
        past = _Past(task.dataset, train, test, task.seed)
        for _, method, n_rows, _ in missing:
            yield past.measure(n_rows, method)


class _Past:
    """The labels that one seed makes past, fitted on all rows; the others arrive."""

    def __init__(self, name: str, train: Dataset, test: Dataset, seed: int) -> None:
        self.name, self.train, self.test, self.seed = name, train, test, seed
        self.X, self.X_test = _unit_rows(train), _unit_rows(test)
        stream = random_stream(train.n_labels, train.n_labels // 2, random_state=seed)
        self.new, self.n_past = stream.arriving, len(stream.past)
        self.truth: CSR = test.Y[:, self.new]
        counts = np.asarray(self.truth.sum(axis=0)).ravel()
        if not self.n_past or not ((counts > 0) & (counts < test.n_rows)).any():
            raise DataError(
                f"seed {seed}: no new label of {name} has both answers on the {test.n_rows} test rows; "
                "it has too few labels or rows for this experiment",
                source=train.source or None,
            )
        self.model = StreamingLabelClassifier(random_state=seed).fit(self.X, train.Y[:, stream.past])

    def measure(self, n_rows: int, method: str) -> BudgetRecord:
        """Let the others arrive on ``n_rows`` rows, the same for every method, and judge them."""
        rows = self._rows(n_rows)
        counts = np.asarray(self.train.Y[rows][:, self.new].sum(axis=0)).ravel()
        able = np.flatnonzero((counts > 0) & (counts < n_rows))
        model = copy.copy(self.model).set_params(**METHODS[method])  # an arrival replaces, never writes
        scores: FloatArray = np.tile(counts / n_rows, (self.test.n_rows, 1))
        start = time.perf_counter()
        if able.size:
            model.add_labels(self.X, self.train.Y[:, self.new[able]], annotated=rows)
        seconds = time.perf_counter() - start
        scores[:, able] = model.decision_function(self.X_test)[:, self.n_past :]
        found = evaluate(self.truth, scores, metrics=["P@k", "macro_auc", "macro_average_precision"])
        report = model.reports_[-1]
        return BudgetRecord(
            dataset=self.name,
            method=method,
            n_rows=n_rows,
            n_train=self.train.n_rows,
            seed=self.seed,
            n_labels=len(self.new),
            n_learned=len(able),
            p1=100.0 * found["P@1"],
            p3=100.0 * found["P@3"],
            p5=100.0 * found["P@5"],
            auc=100.0 * found["macro_auc"],
            average_precision=100.0 * found["macro_average_precision"],
            share=report.share,
            anchored=report.anchored,
            seconds=seconds,
        )

    def _rows(self, n_rows: int) -> IntArray:
        n_train = self.train.n_rows
        draw = np.random.default_rng((self.seed, n_rows))
        return np.arange(n_train) if n_rows == n_train else np.sort(draw.choice(n_train, n_rows, replace=False))


def _unit_rows(data: Dataset) -> CSR:
    return sparse.csr_array(normalize(data.X.astype(np.float64)))
