"""CPU seconds of `fit` and of an arrival against rows, features, past labels and new labels, with the floor drawn in.

``make bench ARGS=shapes`` makes twins, prints the figures and draws docs/_static/performance/shapes.png. The squared
loss without a metric; what the first arrival tries, once, is not in it. The floor is what the sums, the factor and the
solve cannot do without: bytes read at the speed of a copy, multiplications at that of a matrix product, both measured
in the same run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from streamlabel import StreamingLabelClassifier
from streamlabel.data.synthetic import make_twin
from streamlabel.stats.threads import one_thread

PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "performance" / "shapes.png"
STORED, TAGS, REPEATS = 60, 4, 5
BASE = {"rows": 4_000, "features": 2_000, "past labels": 200, "new labels": 1}
SWEEPS = {
    "rows": (1_000, 2_000, 4_000, 8_000, 16_000, 32_000),
    "features": (250, 500, 1_000, 2_000, 4_000),
    "past labels": (50, 100, 200, 400, 800, 1_600),
    "new labels": (1, 4, 16, 64, 256),
}


def cpu(call: Callable[[], Any]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def machine() -> tuple[float, float]:
    """Bytes a second of a copy, read and written, and multiplications a second of a matrix product."""
    block, matrix = np.zeros(2**24), np.ones((1500, 1500))
    copied = np.empty_like(block)
    copy = min(cpu(lambda: np.copyto(copied, block)) for _ in range(5))
    return 16 * len(block) / copy, 1500**3 / min(cpu(lambda: matrix @ matrix) for _ in range(5))


def measured(shape: dict[str, int]) -> tuple[float, float]:
    """CPU seconds of `fit`, and of an arrival after the first."""
    n, d, past, new = shape.values()
    twin = make_twin(n, d, past + new * (REPEATS + 1), STORED, TAGS, random_state=0)
    X, Y = twin.X.astype(np.float64), twin.Y
    model = StreamingLabelClassifier(loss="squared", metric=None)
    fit = cpu(lambda: model.fit(X, Y[:, :past]))
    batches = [Y[:, past + at * new : past + (at + 1) * new] for at in range(REPEATS + 1)]
    return fit, float(np.median([cpu(lambda batch=batch: model.add_labels(X, batch)) for batch in batches][1:]))


def floors(shape: dict[str, int], bytes_a_second: float, products: float) -> tuple[float, float]:
    """Rows once, a Cholesky factor, a solve a label; of an arrival the rows of its labels and half of the inverse."""
    n, d, past, new = shape.values()
    order = min(n, d)
    fit = 12 * n * STORED / bytes_a_second + (order**3 / 6 + past * order**2) / products
    having = n * TAGS / (past + new * (REPEATS + 1))
    half = 4 * order * (order + 1) / bytes_a_second
    return fit, 12 * new * having * STORED / bytes_a_second + max(half, new * order**2 / products)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two points each, no picture")
    quick = parser.parse_args(argv).quick
    with one_thread():
        speeds = machine()
        print(f"copy {speeds[0] / 1e9:.1f} GB/s, product {speeds[1] / 1e9:.1f} billion multiplications a second")
        found: dict[str, list[tuple[float, ...]]] = {}
        print(
            f"{'':12}{'':>8}" + "".join(f"{what:>12}" for what in ("fit", "floor", "arrival", "floor")) + "  (CPU ms)"
        )
        for what, values in SWEEPS.items():
            for value in values[:2] if quick else values:
                shape = BASE | {what: value}
                (fit, arrival), (fit_floor, arrival_floor) = measured(shape), floors(shape, *speeds)
                found.setdefault(what, []).append((value, fit, fit_floor, arrival, arrival_floor))
                line = "".join(f"{1000 * seconds:12.2f}" for seconds in found[what][-1][1:])
                print(f"{what:12}{value:8,}{line}", flush=True)
    if not quick:
        draw(found)
    return 0


def draw(found: dict[str, list[tuple[float, ...]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["font.size"] = 9
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(found), figsize=(10, 3), sharey=True, layout="constrained")
    for panel, (what, points) in zip(panels, found.items(), strict=True):
        values, *curves = zip(*points, strict=True)
        for name, curve, style in zip(
            ("fit", "its floor", "arrival", "its floor"), curves, ("C0o-", "C0:", "C1o-", "C1:"), strict=True
        ):
            panel.loglog(values, curve, style, label=name, markersize=3)
        panel.set(xlabel=what, title=f"against {what}")
        panel.xaxis.set_minor_formatter("")
    panels[0].set_ylabel("CPU seconds")
    panels[-1].legend(fontsize=8)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=90, metadata={"Software": None})


if __name__ == "__main__":
    sys.exit(main())
