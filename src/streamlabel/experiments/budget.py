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
METHODS: dict[str, dict[str, object]] = {
    "with the past": {},
    "own ridge": {"lam": None, "metric": None},
    "paper (anchor only)": {"metric": None},
}


@dataclass(frozen=True)
class BudgetRecord:
    """One method on one draw of rows; measures in percent over all new labels, of which ``n_learned`` were learned."""

    dataset: str
    method: str
    n_rows: int
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

    A budget of None means all rows. Labels without a yes (or a no) on the drawn rows cannot be learned by anybody: they
    score the same for every row, with every method. Rows are scaled to length one.
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
            able = np.flatnonzero((counts > 0) & (counts < len(rows)))
            for method in methods:
                model = copy.copy(fitted).set_params(**METHODS[method])
                start = time.perf_counter()
                model.add_labels(X, train.Y[:, new[able]], annotated=None if whole else rows)
                seconds = time.perf_counter() - start
                scores = np.tile(counts / len(rows), (test.n_rows, 1))
                scores[:, able] = model.decision_function(X_test)[:, len(stream.past) :]
                found = evaluate(test.Y[:, new], scores, metrics=["P@k", "macro_auc", "macro_average_precision"])
                report = model.reports_[-1]
                record = BudgetRecord(
                    dataset=name,
                    method=method,
                    n_rows=len(rows),
                    seed=seed,
                    n_labels=len(new),
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
                on_record(record)
                records.append(record)
    return records
