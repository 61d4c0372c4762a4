"""Rows and features that are both too many for a factor: fit, then 100 labels, with CPU time and the largest memory.

``make bench ARGS=large`` takes minutes; the set is a made-up twin of 30,000 rows and 60,000 features.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from streamlabel import StreamingLabelClassifier
from streamlabel.data.synthetic import make_twin

N_ROWS, N_FEATURES, N_PAST, N_NEW = 30_000, 60_000, 200, 100


def main(argv: list[str] | None = None) -> int:
    twin = make_twin(N_ROWS, N_FEATURES, N_PAST + N_NEW, 80.0, 4.0, random_state=0)
    new = twin.Y[:, N_PAST:]
    model = StreamingLabelClassifier()
    rows = np.arange(0, N_ROWS, 60)
    few = [j for j in range(N_NEW) if new[rows][:, [j]].sum() > 0][:20]
    steps = (
        ("fit, all rows", lambda: model.fit(twin.X, twin.Y[:, :N_PAST])),
        (f"{N_NEW} labels, all rows", lambda: model.add_labels(twin.X, new, [f"new {j}" for j in range(N_NEW)])),
        (
            f"{len(few)} labels, {len(rows)} rows",
            lambda: model.add_labels(twin.X, new[:, few], [f"few {j}" for j in few], annotated=rows),
        ),
    )
    print(f"{N_ROWS:,} x {N_FEATURES:,}, {twin.X.nnz:,} values, {N_PAST} past labels")
    for what, step in steps:
        wall, cpu = time.perf_counter(), time.process_time()
        step()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{what:24} {cpu:8.1f} CPU s {wall:8.1f} s; largest memory so far {peak:.2f} GiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
