"""What sums, factor, solve, arrival and prediction cost, by formulae in rows, features and labels; checked, then used.

``make bench ARGS=cost_model`` calibrates at one size, checks at three larger ones, then prints the big table (minutes).

Formulae count multiplications and bytes; how many of them a second is measured at one small size in the same run.
`simulate` plays a cluster with workers of unequal speed that fail, to see what the formula of the whole leaves out.
"""

from __future__ import annotations

import argparse
import heapq
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from streamlabel import StreamingLabelClassifier
from streamlabel.data.load import load_dataset
from streamlabel.data.synthetic import make_twin
from streamlabel.data.xc_svmlight import write_xc_text
from streamlabel.stats.sums import Stats, SumsFactor
from streamlabel.stats.threads import one_thread

BATCH, LARGE = 2**13, 2**20  # rows that are summed at once, here and on a worker of many
SPREAD = 1.25  # mean square of the values a row over their squared mean: rows differ in length
NETWORK, DISK = 1.25e9, 1e9  # bytes a second, each worker: 10 Gbit/s, and what it reads rows at
ROOM = 16e9  # bytes a worker may hold of sums
FEW = 8_000  # rows of an arrival
PRICE = 0.05  # of an hour of one core


@dataclass(frozen=True)
class Size:
    """Rows, features and labels; values and labels a row."""

    rows: float
    features: float
    labels: float
    stored: float
    tags: float

    @property
    def row_bytes(self) -> float:
        """float32 values with int32 places, int32 labels."""
        return self.rows * (8 * self.stored + 4 * self.tags)

    @property
    def sum_bytes(self) -> float:
        """X'X and X'B of a part."""
        return 8 * self.features * (self.features + self.labels)

    @property
    def pairs(self) -> float:
        """Multiplications of X'X, X'B and B'B over sparse rows."""
        return self.rows * (SPREAD * self.stored**2 + self.stored * self.tags + self.tags**2)

    def reduction_bytes(self, parts: float) -> float:
        """Moved until one has the sum of all parts: in a tree each part but one is sent once."""
        return (parts - 1) * self.sum_bytes


@dataclass(frozen=True)
class Speed:
    """What this machine does in a CPU second, and the seconds an arrival takes beside reading."""

    values: float  # read from text
    pairs: float  # multiplied, sparse with sparse
    cells: float  # of a dense part, made and added
    eigen: float  # features^3 of an eigenfactor
    dense: float  # multiplications of a matrix product
    products: float  # multiplications of sparse rows with dense classifiers, and the best of them
    bytes: float  # copied, read and written
    arrival: float

    def read(self, size: Size) -> float:
        return size.rows * size.stored / self.values

    def sums(self, size: Size, batch: float = BATCH) -> float:
        cells = size.features * (size.features + size.labels)
        return size.pairs / self.pairs + math.ceil(size.rows / batch) * cells / self.cells

    def factor(self, size: Size) -> float:
        return size.features**3 / self.eigen

    def solve(self, size: Size) -> float:
        """All labels: into the coordinates of the factor, and back."""
        return 2 * size.features**2 * size.labels / self.dense

    def arrive(self, size: Size) -> float:
        """One label: half of the inverse, twice, and the rows that have the label."""
        having = size.rows * size.tags / size.labels
        return (
            self.arrival + 8 * size.features * (size.features + 1) / self.bytes + having * size.stored / self.products
        )

    def predict(self, size: Size) -> float:
        return size.rows * size.stored * size.labels / self.products

    def works(self, size: Size) -> dict[str, float]:
        """Seconds of everything that `measure` measures."""
        sums = {f"sums {batch:,}": self.sums(size, batch) for batch in (BATCH, int(size.rows))}
        some = {what: getattr(self, what)(size) for what in ("read", "factor", "solve", "predict")}
        return sums | some | {"arrive": self.arrive(replace(size, rows=FEW))}


SMALL = Size(16_384, 3_000, 1_000, 100, 5)  # from 3,000 features on, the sums of a sparse product leave the first cache
SIZES = (Size(32_768, 3_500, 2_000, 120, 5), Size(49_152, 4_000, 3_000, 100, 5), Size(65_536, 5_000, 4_000, 120, 5))


def cpu(call: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """CPU seconds, the least of so many, and the result."""
    least = math.inf
    for _ in range(repeats):
        begin = time.process_time()
        result = call()
        least = min(least, time.process_time() - begin)
    return least, result


def summed(X: Any, Y: Any, batch: int) -> Stats:
    return reduce(add, (Stats.from_batch(X[at : at + batch], Y[at : at + batch]) for at in range(0, X.shape[0], batch)))


def measure(size: Size, repeats: int, batches: Iterable[int] = (BATCH,)) -> dict[str, float]:
    """CPU seconds of each piece of work on a twin of that size."""
    shape = (int(size.rows), int(size.features), int(size.labels))
    twin = make_twin(*shape, size.stored, size.tags, random_state=0)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        write_xc_text(twin, Path(folder) / "rows.txt")
        found["read"], _ = cpu(lambda: load_dataset(Path(folder) / "rows.txt"), repeats)
    X, Y = twin.X.astype(np.float64), twin.Y
    for batch in batches:
        found[f"sums {batch:,}"], stats = cpu(lambda batch=batch: summed(X, Y, batch), repeats)
    found["factor"], factor = cpu(
        lambda: SumsFactor(replace(stats, cross=stats.cross[:, :1], label_gram=stats.label_gram[:1, :1]))
    )
    factor.projected = np.zeros((len(factor.eigenvalues), shape[2]))
    found["solve"], weights = cpu(lambda: (factor.project_scores(stats.cross), factor.weights(1.0))[1], repeats)
    model = StreamingLabelClassifier.from_coef(weights.T, np.zeros(shape[2]))
    rows = X[: min(shape[0], 4000)]
    found["predict"] = cpu(lambda: model.predict_top_k(rows, 5), repeats)[0] * shape[0] / rows.shape[0]
    few, answers = X[:FEW], Y[:FEW]
    new = np.flatnonzero(np.asarray(answers.sum(axis=0)).ravel())[-20:]
    fitted = StreamingLabelClassifier(loss="squared", metric=None).fit(few, answers[:, :500])
    times = [cpu(lambda j=j: fitted.add_labels(few, answers[:, [j]]))[0] for j in new]
    found["arrive"] = float(np.median(times[5:]))  # the first ones try how far to trust the past
    return found


def calibrate(size: Size) -> Speed:
    """The speeds of this machine, from one small size."""
    block, matrix = np.zeros(2**24), np.ones((1500, 1500))
    copy = 16 * len(block) / cpu(lambda: np.copyto(np.empty_like(block), block), 5)[0]
    product = 1500**3 / cpu(lambda: matrix @ matrix, 5)[0]
    few, many = int(size.rows), BATCH // 4
    found = measure(size, 3, (few, many))
    cells = size.features * (size.features + size.labels)
    parts = [math.ceil(size.rows / batch) for batch in (few, many)]
    cell = max(found[f"sums {many:,}"] - found[f"sums {few:,}"], 1e-9) / (parts[1] - parts[0]) / cells
    start = Speed(
        size.rows * size.stored / found["read"],
        size.pairs / (found[f"sums {few:,}"] - parts[0] * cells * cell),
        1 / cell,
        size.features**3 / found["factor"],
        product,
        size.rows * size.stored * size.labels / found["predict"],
        copy,
        0.0,
    )
    return replace(start, arrival=max(0.0, found["arrive"] - start.arrive(replace(size, rows=FEW))))


@dataclass(frozen=True)
class Plan:
    """Workers in a grid: so many parts of the rows times so many groups of the labels, and of the columns of X'X."""

    size: Size
    workers: int

    @property
    def groups(self) -> int:
        """As few as leave each worker its room: its columns of X'X and X'B, and the part that is being added."""
        return min(self.workers, math.ceil(2 * self.size.sum_bytes / ROOM))

    @property
    def parts(self) -> int:
        return max(1, self.workers // self.groups)

    @property
    def worker_bytes(self) -> float:
        """Sums, the part that is added to them, what it was made of, and the rows of a batch."""
        size, batch = self.size, min(LARGE, self.size.rows / self.parts)
        sparse = size.features**2 + min(size.features * size.labels, batch * size.stored * size.tags)
        return (2 * size.sum_bytes + 12 * sparse) / self.groups + 12 * batch * size.stored

    @property
    def read_bytes(self) -> float:
        """Every group reads all rows."""
        return self.size.row_bytes * self.groups

    @property
    def moved_bytes(self) -> float:
        return self.size.reduction_bytes(self.parts)

    @property
    def levels(self) -> int:
        return math.ceil(math.log2(self.parts))

    def steps(self, speed: Speed) -> dict[str, float]:
        """Seconds of the clock, one core a worker."""
        return {
            "read": self.size.row_bytes / self.parts / DISK,
            "sums": speed.sums(self.size, LARGE) / (self.parts * self.groups),
            "reduce": self.levels * self.size.sum_bytes / self.groups / NETWORK,
            "factor": speed.factor(self.size),
            "send": 8 * self.size.features**2 / NETWORK * math.ceil(math.log2(max(2, self.workers))),
            "solve": speed.solve(self.size) / self.workers,
        }


def simulate(plan: Plan, speed: Speed, *, spread: float = 0.3, failing: float = 0.01, seed: int = 0) -> float:
    """Seconds until all labels are solved: workers differ in pace, and a share of the tasks fails and comes back."""
    rng, steps, tasks = np.random.default_rng(seed), plan.steps(speed), 50 * plan.workers
    pace = rng.lognormal(-(spread**2) / 2, spread, plan.workers)
    one = (steps["read"] + steps["sums"]) * plan.workers / tasks
    free = [(0.0, worker) for worker in range(plan.workers)]
    while tasks:
        now, worker = heapq.heappop(free)
        tasks -= int(rng.random() >= failing)
        heapq.heappush(free, (now + one / pace[worker], worker))
    clock = max(now for now, _ in free) + steps["factor"] + steps["send"] + steps["solve"] / pace.min()
    for _ in range(plan.levels):  # each waits for its slowest pair
        clock += steps["reduce"] / plan.levels / rng.lognormal(-(spread**2) / 2, spread, plan.workers // 2).min()
    return float(clock)


def billion(speed: Speed) -> str:
    """A billion rows and a million labels, as a table in Markdown."""
    lines = [f"| | {' | '.join(f'd = {d:,}, {w:,} workers' for d in (5_000, 16_384) for w in (100, 1_000))} |"]
    plans = [Plan(Size(1e9, d, 1e6, 120, 5), workers) for d in (5_000, 16_384) for workers in (100, 1_000)]
    steps = [plan.steps(speed) for plan in plans]
    clocks = [sum(step.values()) for step in steps]
    hours = [plan.workers * clock / 3600 for plan, clock in zip(plans, clocks, strict=True)]
    arrivals = [speed.arrive(plan.size) for plan in plans]
    rows: dict[str, list[str]] = {
        "rows on disk": [f"{plan.size.row_bytes / 1e12:.2f} TB" for plan in plans],
        "X'X and X'B": [f"{plan.size.sum_bytes / 1e9:.0f} GB" for plan in plans],
        "groups of labels x parts of rows": [f"{plan.groups} x {plan.parts}" for plan in plans],
        "memory a worker": [f"{plan.worker_bytes / 1e9:.1f} GB" for plan in plans],
        "read by all workers": [f"{plan.read_bytes / 1e12:.1f} TB" for plan in plans],
        "moved to add the parts": [f"{plan.moved_bytes / 1e12:.2f} TB" for plan in plans],
        **{f"seconds: {what}": [f"{step[what]:,.0f}" for step in steps] for what in steps[0]},
        "seconds in all": [f"{clock:,.0f}" for clock in clocks],
        "simulated (unequal, failing workers)": [f"{simulate(plan, speed):,.0f}" for plan in plans],
        "core hours": [f"{hour:,.0f}" for hour in hours],
        f"cost at {PRICE} an hour": [f"{PRICE * hour:,.0f}" for hour in hours],
        "core seconds a label": [f"{3600 * hour / 1e6:.2f}" for hour in hours],
        "one more label": [f"{1000 * arrival:,.0f} ms" for arrival in arrivals],
        "top 5 of a row": [f"{1000 * speed.predict(replace(plan.size, rows=1)):,.0f} ms" for plan in plans],
    }
    lines += ["|---" + "|--:" * len(plans) + "|"]
    return "\n".join(lines + [f"| {what} | {' | '.join(cells)} |" for what, cells in rows.items()])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="check at one small size")
    options = parser.parse_args(argv)
    with one_thread():
        speed = calibrate(SMALL)
        print("a CPU second:", ", ".join(f"{name} {value:.3g}" for name, value in vars(speed).items()), flush=True)
        print("\n| rows, features, labels | work | predicted | measured | ratio |\n|---|---|--:|--:|--:|")
        for size in SIZES[: 1 if options.quick else None]:
            told = f"{size.rows:,}, {size.features:,}, {size.labels:,}"
            found = measure(size, 1, (BATCH, int(size.rows)))
            for what, guess in speed.works(size).items():
                print(f"| {told} | {what} | {guess:.3g} | {found[what]:.3g} | {guess / found[what]:.2f} |", flush=True)
    print("\n" + billion(speed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
