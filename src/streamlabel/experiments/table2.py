"""New labels in batches after half of the labels: every method on several orders of the labels (Table 2 of the paper).

All training rows are annotated. The batches of one order are nested: the 30 new labels are the 15 and 15 more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from streamlabel.data.streams import random_stream
from streamlabel.errors import DataError
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.methods import METHODS, OWN, PEERS, Method, Parameters, sized, to_run
from streamlabel.experiments.paper_figures import PAPER, PAPER_PAST
from streamlabel.experiments.records import Key
from streamlabel.experiments.rows import learnable
from streamlabel.experiments.sets import asked_name, load_set
from streamlabel.experiments.tuning import Started, as_text, choose, chosen_before, narrowed
from streamlabel.metrics.evaluate import evaluate
from streamlabel.types import CSR, FloatArray, IntArray

__all__ = ["KEY", "Table2Record", "Table2Task", "batches_of", "keys", "parts", "run", "tasks"]

KEY = ("dataset", "method", "seed", "batch", "tuned")
_LONGEST_FIRST = ("SLEEC", "SLL logistic", "BR squared hinge", "SLL paper signed", "BR logistic", "SLL paper")


@dataclass(frozen=True)
class Table2Record:
    """One method on one batch, judged on the test rows over the new labels alone.

    seed : of the order of labels;  batch : how many arrived
    tuned : whether the hyper-parameters were chosen on held-out training rows; else the first of the grid were taken
    n_learned : new labels that had a yes and a no in training
    p1, p3, p5 : in percent;  micro_auc, ranking_loss : shares
    seconds, cpu_seconds : from arrival until the labels can be scored. Where labels are learned one by one, smaller
        batches are parts of the largest one, and the time is that of the largest.
    """

    dataset: str
    method: str
    seed: int
    batch: int
    tuned: bool
    n_past: int
    n_learned: int
    p1: float
    p3: float
    p5: float
    micro_auc: float
    ranking_loss: float
    parameters: str
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Table2Task:
    """One method on one set: its hyper-parameters are chosen once."""

    dataset: str
    method: str
    seeds: tuple[int, ...]
    n_past: int
    batches: tuple[int, ...]
    largest: int
    tuned: bool


def batches_of(name: str, n_labels: int) -> tuple[int, tuple[int, ...]]:
    """How many labels are past, and the sizes of the batches: the paper's, or fifths of the other half."""
    asked = asked_name(name).removesuffix("_reduced")
    n_past = min(PAPER_PAST.get(asked, n_labels // 2), n_labels - 1)
    n_new = n_labels - n_past
    sizes = PAPER.get(asked) or [n_new * fifth // 5 for fifth in range(1, 6)]
    return n_past, tuple(sorted({min(size, n_new) for size in sizes if size > 0}))


def tasks(setting: Setting) -> list[Table2Task]:
    """A task for every set and method, long ones first.

    Peers are run on the largest batch only, and so are methods that learn everything again where that takes long and
    they were not asked for by name.
    """
    asked: tuple[str, ...] | None = setting.options.get("methods")
    names = to_run(
        asked, (*_LONGEST_FIRST, *(name for name in (*PEERS, *OWN) if name not in _LONGEST_FIRST)), quick=setting.quick
    )
    found = []
    for dataset in setting.datasets:
        train, _ = load_set(dataset)
        n_past, batches = batches_of(dataset, train.n_labels)
        if n_past < 1:
            raise DataError(f"{dataset} has {train.n_labels} labels; half of them must be past", source=dataset)
        if setting.quick:
            batches = (batches[0], batches[-1]) if len(batches) > 1 else batches
        for name in names:
            method = METHODS[name]
            cells = method.cells(train.n_rows, train.X.nnz, n_past, batches[-1])
            if not asked and cells > method.most_cells:
                continue
            sizes = batches[-1:] if name in PEERS or (not asked and cells > method.all_batches) else batches
            found.append(Table2Task(dataset, name, setting.seeds, n_past, sizes, batches[-1], not setting.quick))
    return found


def keys(task: Table2Task) -> list[Key]:
    return [(task.dataset, task.method, seed, batch, task.tuned) for seed in task.seeds for batch in task.batches]


def parts(task: Table2Task) -> list[Table2Task]:
    """One order of the labels each."""
    return [replace(task, seeds=(seed,)) for seed in task.seeds]


def run(task: Table2Task, done: Mapping[Key, Table2Record]) -> Iterator[Table2Record]:
    data = _Set(task)
    method = sized(METHODS[task.method], task.n_past)
    parameters = chosen_before(method, (record.parameters for record in done.values()))
    if parameters is None:
        parameters = data.choose(method) if task.tuned else method.grid[0]
    for seed in task.seeds:
        missing = [b for b in task.batches if (task.dataset, task.method, seed, b, task.tuned) not in done]
        if missing:
            yield from data.measure(method, parameters, seed, missing)


class _Set:
    """The rows of one set, and the order of its labels for a seed."""

    def __init__(self, task: Table2Task) -> None:
        self.task = task
        self.train, self.test = load_set(task.dataset)
        self.X, self.X_test = narrowed(self.train, self.test)

    def order(self, seed: int) -> tuple[IntArray, IntArray]:
        """The past labels, and those of the largest batch."""
        stream = random_stream(self.train.n_labels, self.task.n_past, random_state=seed)
        return stream.past, stream.arriving[: self.task.largest]

    def choose(self, method: Method) -> Parameters:
        past, new = self.order(0)
        return choose(method, self.X, self.train.Y[:, past], self.train.Y[:, new])

    def measure(self, method: Method, parameters: Parameters, seed: int, batches: list[int]) -> Iterator[Table2Record]:
        past, new = self.order(seed)
        started = Started(method, parameters, self.X, self.train.Y[:, past], seed)
        whole = started.learn(self.train.Y[:, new], self.X_test) if method.independent else None
        for batch in batches:
            labels = new[:batch]
            found = whole or started.learn(self.train.Y[:, labels], self.X_test)
            yield Table2Record(
                dataset=self.task.dataset,
                method=method.name,
                seed=seed,
                batch=batch,
                tuned=self.task.tuned,
                n_past=len(past),
                n_learned=len(learnable(self.train.Y[:, labels])),
                **_judge(self.test.Y[:, labels], found.scores[:, :batch], f"{self.task.dataset}, seed {seed}"),
                parameters=as_text(parameters),
                seconds=found.wall_seconds,
                cpu_seconds=found.cpu_seconds,
            )


def _judge(truth: CSR, scores: FloatArray, where: str) -> dict[str, float]:
    if not truth.nnz:
        raise DataError(f"{where}: no test row has any of the {truth.shape[1]} new labels; it cannot be judged")
    found = evaluate(truth, scores, metrics=["P@k", "micro_auc", "ranking_loss"])
    return {
        "p1": 100.0 * found["P@1"],
        "p3": 100.0 * found["P@3"],
        "p5": 100.0 * found["P@5"],
        "micro_auc": found["micro_auc"],
        "ranking_loss": found["ranking_loss"],
    }
