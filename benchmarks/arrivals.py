"""The CPU time of new labels by the number of answers: the first, which runs the trials, and the median of later ones.

    python benchmarks/arrivals.py [--dataset eurlex57k] [--answers 20,100,500,1000,2000,all] [--labels 8] [--tune fit]

All labels but forty are known. A new one is answered on so many rows, a twentieth of them yes (at most all there are)
and the others drawn from all rows; default settings, one thread. Labels with fewer than fifty yes do not arrive.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from threadpoolctl import threadpool_limits

from streamlabel import StreamingLabelClassifier
from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.types import IntArray


def drawn(positives: IntArray, n_answers: int, n_rows: int, rng: np.random.Generator) -> IntArray:
    yes = rng.permutation(positives)[: max(5, n_answers // 20)]
    return np.unique(np.concatenate((yes, rng.permutation(n_rows)[: n_answers - len(yes)])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="eurlex57k")
    parser.add_argument("--answers", default="20,100,500,1000,2000,all")
    parser.add_argument("--labels", type=int, default=8)
    parser.add_argument("--tune", choices=("arrival", "fit"), default="arrival")
    options = parser.parse_args()
    data = load_catalogue_set(options.dataset, "train")
    order, columns = np.random.default_rng(0).permutation(data.n_labels), data.Y.tocsc()
    known, new = np.sort(order[:-40]), [j for j in order[-40:] if np.diff(columns.indptr)[j] >= 50][: options.labels]
    with threadpool_limits(1):
        begin = time.process_time()
        fitted = StreamingLabelClassifier(tune=options.tune).fit(data.X, data.Y[:, known])
        print(f"{data.n_rows:,} rows, {len(known):,} known labels, fit {time.process_time() - begin:.1f} CPU s")
        print("\n| answers | first, CPU s | later, CPU ms | learned by |\n|---|--:|--:|---|")
        for size in options.answers.split(","):
            clf, times = StreamingLabelClassifier.from_state(fitted.state_), list[float]()
            for j in new:
                rows = None
                if size != "all":
                    positives = columns.indices[columns.indptr[j] : columns.indptr[j + 1]]
                    rows = drawn(positives, int(size), data.n_rows, np.random.default_rng(j))
                y = columns[:, [j]].toarray().ravel()
                begin = time.process_time()
                clf = clf.add_labels(data.X, y, [f"new {j}"], annotated=rows)
                times.append(time.process_time() - begin)
            later = 1000.0 * statistics.median(times[1:])
            print(f"| {size} | {times[0]:.2f} | {later:.1f} | {clf.reports_[-1].loss} |", flush=True)


if __name__ == "__main__":
    main()
