"""SLEEC on all labels, beside what the extreme classification repository publishes for it.

Run with ``STREAMLABEL_DATA=... python benchmarks/sleec_published.py [DATASET ...]``; minutes, not part of
``make bench``. The candidates lie around the parameters that the authors give for the set. Each learns on 80% of the
training rows; the best mean of P@1, P@3 and P@5 on the other 20% is learned again on all of them and judged on the test
rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from streamlabel import SLEEC
from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.metrics.ranking import precision_at_k
from streamlabel.stats.threads import one_thread
from streamlabel.types import CSR, FloatArray


@dataclass(frozen=True)
class Published:
    """The authors' parameters for a set (one learner, one cluster, rank 100), and their P@1, P@3, P@5."""

    n_neighbours: int
    n_predict_neighbours: int
    precisions: tuple[float, ...]


PUBLISHED = {
    "bibtex": Published(250, 25, (65.1, 39.6, 28.9)),
    "delicious": Published(500, 70, (67.6, 61.4, 56.6)),
}
STRENGTHS = (1.0, 3.0, 10.0)


def candidates(published: Published) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """What a fit needs, and the numbers of neighbours to predict with that are tried on it."""
    near = [round(share * published.n_predict_neighbours) for share in (0.6, 1.0, 1.4)]
    for n_neighbours, beta in product((published.n_neighbours // 2, published.n_neighbours), STRENGTHS):
        yield {"n_neighbours": n_neighbours, "beta": beta}, near


def precisions(Y: CSR, scores: FloatArray) -> tuple[float, ...]:
    return tuple(100.0 * precision_at_k(Y, scores, k) for k in (1, 3, 5))


def choose(X: CSR, Y: CSR, published: Published) -> tuple[tuple[float, ...], dict[str, Any]]:
    """The best candidate on held-out rows of (X, Y), after its figures there."""
    kept, held = train_test_split(np.arange(X.shape[0]), test_size=0.2, random_state=0)
    found = []
    for options, near in candidates(published):
        model = SLEEC(**options).fit(X[kept], Y[kept])
        for k in near:
            scores = model.set_params(n_predict_neighbours=k).decision_function(X[held])
            found.append((precisions(Y[held], scores), {**options, "n_predict_neighbours": k}))
    return max(found, key=lambda pair: float(np.mean(pair[0])))


def measure(name: str) -> str:
    train, test = (load_catalogue_set(name, split) for split in ("train", "test"))
    published = PUBLISHED[name]
    valid, options = choose(train.X, train.Y, published)
    clocks = [(time.perf_counter(), time.process_time())]
    model = SLEEC(**options).fit(train.X, train.Y)
    clocks.append((time.perf_counter(), time.process_time()))
    scores = model.decision_function(test.X)
    clocks.append((time.perf_counter(), time.process_time()))
    figures = [" / ".join(f"{p:.1f}" for p in row) for row in (valid, precisions(test.Y, scores), published.precisions)]
    chosen = ", ".join(f"{key} {value:g}" for key, value in options.items())
    seconds = [f"{wall:.1f} / {cpu:.1f}" for wall, cpu in np.diff(clocks, axis=0)]
    return f"| {' | '.join((name, chosen, *figures, *seconds))} |"


def main(names: list[str]) -> int:
    print("| set | chosen | held-out P@1/3/5 | test P@1/3/5 | published | wall / CPU s of fit | of scoring the test |")
    print("|---|---|---|---|---|---|---|")
    with one_thread():
        for name in names or PUBLISHED:
            print(measure(name), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
