"""Accuracy of new labels against the number of annotated rows, with the past and without it."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from streamlabel.data.label_stream import random_stream
from streamlabel.metrics.summary import evaluate
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.results import Dataset

__all__ = ["BUDGETS", "METHODS", "BudgetRecord", "run_budget"]

BUDGETS = (20, 50, 100, 200, 500, 1000, 2000)
METHODS = {
    "with the past": {},
    "own ridge": {"lam": None, "metric": None},
    "paper (anchor only)": {"metric": None},
}


@dataclass(frozen=True)
class BudgetRecord:
    """One method on one draw of rows; measures in percent over the new labels that can be learned from the draw."""

    dataset: str
    method: str
    n_rows: int
    seed: int
    n_labels: int
    p1: float
    p3: float
    p5: float
    auc: float
    average_precision: float
    share: float
    lam: float | None
    seconds: float

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def run_budget(
    name: str,
    train: Dataset,
    test: Dataset,
    budgets: Iterable[int | None],
    seeds: Iterable[int],
    methods: Iterable[str] = ("with the past", "own ridge"),
    on_record: Callable[[BudgetRecord], None] = lambda record: None,
) -> list[BudgetRecord]:
    """Half of the labels are past, all others arrive together, annotated on the same random rows.

    A budget of None means all rows. Labels without a yes (or a no) on the drawn rows cannot be learned by anybody and
    are left out of that draw for every method. Rows are scaled to length one.
    """
    X, X_test = (sparse.csr_array(normalize(part.X.astype(np.float64))) for part in (train, test))
    records = []
    for seed in seeds:
        stream = random_stream(train.n_labels, train.n_labels // 2, random_state=seed)
        new = stream.arriving
        fitted = StreamingLabelClassifier(random_state=seed).fit(X, train.Y[:, stream.past])
        for budget in budgets:
            draw = np.random.default_rng((seed, 0 if budget is None else budget))
            whole = budget is None or budget >= train.n_rows
            rows = np.arange(train.n_rows) if whole else np.sort(draw.choice(train.n_rows, budget, replace=False))
            counts = np.asarray(train.Y[rows][:, new].sum(axis=0)).ravel()
            able = new[(counts > 0) & (counts < len(rows))]
            for method in methods:
                model = copy.copy(fitted).set_params(**METHODS[method])
                start = time.perf_counter()
                model.add_labels(X, train.Y[:, able], annotated=None if whole else rows)
                seconds = time.perf_counter() - start
                scores = model.decision_function(X_test)[:, len(stream.past) :]
                found = evaluate(test.Y[:, able], scores, metrics=["P@k", "macro_auc", "macro_average_precision"])
                report = model.reports_[-1]
                measured = [100.0 * found[key] for key in ("P@1", "P@3", "P@5", "macro_auc", "macro_average_precision")]
                record = BudgetRecord(
                    name, method, len(rows), seed, len(able), *measured, report.share, report.lam, seconds
                )
                on_record(record)
                records.append(record)
    return records
