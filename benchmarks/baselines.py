"""P@1, P@3 and P@5 of the baselines on all labels, beside what the extreme classification repository publishes.

Run with ``STREAMLABEL_DATA=... python benchmarks/baselines.py [DATASET ...]``; minutes, not part of ``make bench``.
Every candidate of a grid learns on 80% of the training rows; the best mean of the three measures on the other 20% is
learned again on all of them and judged on the test rows. Rows have length one; one BLAS thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.preprocessing import normalize

from streamlabel import LEML, BinaryRelevance
from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.metrics.ranking import precision_at_k
from streamlabel.stats.threads import one_thread
from streamlabel.types import CSR, Dataset

PUBLISHED = {
    ("bibtex", "LEML"): (62.54, 38.41, 28.21),
    ("delicious", "LEML"): (65.67, 60.55, 56.08),
}
STRENGTHS = [0.1, 0.3, 1.0, 2.0, 5.0]
LOW_RANK_STRENGTHS = [0.3, 1.0, 2.0, 5.0, 10.0, 20.0]
RANKS = {"bibtex": [40, 80, 120, 159], "delicious": [50, 100, 250, 480]}


def grids(name: str) -> Iterator[tuple[str, Any, dict[str, list[Any]]]]:
    """What is measured: a title, an estimator, and the parameters to choose from."""
    for loss in ("squared", "logistic", "squared_hinge"):
        yield f"binary relevance, {loss}", BinaryRelevance(loss=loss), {"beta": STRENGTHS}
    ranks = RANKS.get(name, [50, 100, 250])
    yield "LEML", LEML(), {"rank": ranks, "beta": LOW_RANK_STRENGTHS}
    yield "LEML, no intercept", LEML(fit_intercept=False), {"rank": ranks, "beta": LOW_RANK_STRENGTHS}


def precisions(model: Any, X: CSR, Y: CSR) -> tuple[float, ...]:
    scores = model.decision_function(X)
    return tuple(100.0 * precision_at_k(Y, scores, k) for k in (1, 3, 5))


def unit_rows(data: Dataset) -> CSR:
    return sparse.csr_array(normalize(data.X.astype(np.float64)))


def written(values: tuple[float, ...] | None) -> str:
    return "" if values is None else " / ".join(f"{value:.1f}" for value in values)


def measure(name: str) -> Iterator[str]:
    train, test = (load_catalogue_set(name, split) for split in ("train", "test"))
    X, X_test = unit_rows(train), unit_rows(test)
    kept, held = train_test_split(np.arange(train.n_rows), test_size=0.2, random_state=0)
    for title, model, grid in grids(name):
        found = []
        for options in ParameterGrid(grid):
            model.set_params(**options).fit(X[kept], train.Y[kept])
            found.append((precisions(model, X[held], train.Y[held]), options))
        valid, options = max(found, key=lambda pair: float(np.mean(pair[0])))
        wall, cpu = time.perf_counter(), time.process_time()
        model.set_params(**options).fit(X, train.Y)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        chosen = ", ".join(f"{key} {value:g}" for key, value in options.items())
        cells = (name, title, chosen, written(valid), written(precisions(model, X_test, test.Y)))
        yield f"| {' | '.join(cells)} | {written(PUBLISHED.get((name, title)))} | {wall:.1f} | {cpu:.1f} |"


def main(names: list[str]) -> int:
    print("| set | method | chosen | held-out P@1/3/5 | test P@1/3/5 | published | wall s of fit | CPU s of fit |")
    print("|---|---|---|---|---|---|---|---|")
    with one_thread():
        for name in names or ["bibtex", "delicious"]:
            for line in measure(name):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
