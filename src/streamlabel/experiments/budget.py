"""``streamlabel reproduce budget``: new labels against the number of annotated rows, with the past and without it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from streamlabel.data.streams import random_stream
from streamlabel.errors import DataError
from streamlabel.experiments.budget_methods import (
    DEFAULT,
    METHODS,
    NAMES,
    OWN_RIDGE,
    SHOWN,
    Answer,
    Past,
    parse_methods,
)
from streamlabel.experiments.compare import FEWEST_PAIRS, LOSES, comparisons
from streamlabel.experiments.experiment import Experiment, Key, Option, Setting
from streamlabel.experiments.sets import learnable, load_set, training_rows, unit_rows
from streamlabel.experiments.spec import LEARNER, Frame, Measure, PageSpec, Pivot, Versus, measure_plots, most
from streamlabel.experiments.tables import chosen, differences, standing_lines, with_spread
from streamlabel.experiments.tuning import as_text
from streamlabel.metrics.evaluate import evaluate
from streamlabel.types import CSR, Dataset, FloatArray, IntArray

BUDGETS: tuple[int | None, ...] = (20, 50, 100, 200, 500, 1000, 2000, 4000, 8000, None)  # None: all rows
QUICK_BUDGETS: tuple[int | None, ...] = (20, 100)
MEASURES = (
    Measure("p1", "P@1"),
    Measure("p3", "P@3"),
    Measure("p5", "P@5"),
    Measure("auc", "AUC"),
    Measure("average_precision", "average precision"),
)
ALL_LABELS = tuple(replace(one, field=f"all_{one.field}") for one in MEASURES)
KEY = ("dataset", "method", "n_rows", "seed", "protocol")
PROTOCOL = 2  # raised when a record comes to mean something else, so that old and new ones are never compared


@dataclass(frozen=True)
class BudgetRecord:
    """One method on one draw of rows; measures in percent, on the test rows, over the new labels that can be learned.

    A label without a yes, or without a no, on the annotated rows can be learned by nobody: it is counted and left out
    of p1 to average_precision, whose columns are the ``n_learned`` others. P@k is over all test rows, so that a row
    without a true label among those columns counts 0 (`metrics.evaluate`). AUC and average precision are means over
    those of the columns that have both answers on the test rows. None: there was no such label.

    n_rows, n_train : annotated rows, and how many there were to annotate
    n_labels, n_learned : the new labels, and those of them that had a yes and a no on the annotated rows
    share, anchored : how the past was used (`streaming.trials.Recipe`); anchored where any label was
    cpu_seconds : of learning and scoring; the first method that needs them also pays for the trials at this budget
    parameters : the hyper-parameters that were chosen, as JSON; empty where there were none to choose
    all_p1 to all_average_precision : the same measures over all new labels, where one that cannot be learned scores the
        same for every row; these compare across numbers of rows
    protocol : 1 (records before 2 do not have the field): p1 to average_precision were over all new labels, and
        competitors chose their strength in a single trial of 30 labels; 2: as described here
    """

    dataset: str
    method: str
    n_rows: int
    n_train: int
    seed: int
    n_labels: int
    n_learned: int
    p1: float | None
    p3: float | None
    p5: float | None
    auc: float | None
    average_precision: float | None
    share: float
    anchored: bool
    cpu_seconds: float
    parameters: str = ""
    all_p1: float | None = None
    all_p3: float | None = None
    all_p5: float | None = None
    all_auc: float | None = None
    all_average_precision: float | None = None
    protocol: int = 1

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"no method of the budget is called {self.method!r}")

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
    methods = setting.options.get("methods", (DEFAULT, OWN_RIDGE) if setting.quick else tuple(METHODS))
    return [BudgetTask(name, seed, budgets, methods) for name in setting.datasets for seed in setting.seeds]


def keys(task: BudgetTask, n_train: int | None = None) -> list[Key]:
    """Numbers of rows ascending, then methods. A budget of None, or of more than there are, means all rows."""
    n_train = training_rows(task.dataset) if n_train is None else n_train
    sizes = sorted({n_train if budget is None else min(budget, n_train) for budget in task.budgets})
    return [(task.dataset, method, n_rows, task.seed, PROTOCOL) for n_rows in sizes for method in task.methods]


def run(task: BudgetTask, done: Collection[Key] = ()) -> Iterator[BudgetRecord]:
    return run_on(task, *load_set(task.dataset), done)


def run_on(task: BudgetTask, train: Dataset, test: Dataset, done: Collection[Key] = ()) -> Iterator[BudgetRecord]:
    """Half of the labels are past, all others arrive together, annotated on the same random rows.

    The order of the labels and the rows are drawn anew with every seed. What is in ``done`` is left out. Rows have
    length one.
    """
    missing = [key for key in keys(task, train.n_rows) if key not in done]
    if missing:
        draw = _Draw(task.dataset, train, test, task.seed)
        for _, method, n_rows, _, _ in missing:
            yield draw.measure(n_rows, method)


class _Draw:
    """The labels that one seed makes past; the others arrive."""

    def __init__(self, name: str, train: Dataset, test: Dataset, seed: int) -> None:
        self.name, self.train, self.seed = name, train, seed
        stream = random_stream(train.n_labels, train.n_labels // 2, random_state=seed)
        self.truth: CSR = test.Y[:, stream.arriving]
        if not len(stream.past) or not len(learnable(self.truth)):
            raise DataError(
                f"seed {seed}: no new label of {name} has both answers on the {test.n_rows} test rows; "
                "it has too few labels or rows for this experiment",
                source=train.source or None,
            )
        Y_past, Y_new = train.Y[:, stream.past], train.Y[:, stream.arriving]
        self.past = Past(unit_rows(train.X), Y_past, Y_new, unit_rows(test.X), seed)

    def measure(self, n_rows: int, name: str) -> BudgetRecord:
        """Let the others arrive on ``n_rows`` rows, the same for every method, and judge them."""
        method = METHODS[name]
        rows = drawn_rows(self.train.n_rows, n_rows, self.seed)
        answers = self.past.Y_new[rows]
        counts, able = np.asarray(answers.sum(axis=0)).ravel(), learnable(answers)
        scores: FloatArray = np.tile(method.constant(counts, n_rows), (self.truth.shape[0], 1))
        answer = Answer(scores[:, able])
        method.start(self.past)
        start = time.process_time()
        if able.size:
            answer = method.learn(self.past, able, rows)
        cpu_seconds = time.process_time() - start
        scores[:, able] = answer.scores
        return BudgetRecord(
            dataset=self.name,
            method=name,
            n_rows=n_rows,
            n_train=self.train.n_rows,
            seed=self.seed,
            n_labels=len(counts),
            n_learned=len(able),
            **measured(self.truth[:, able], answer.scores),
            **{f"all_{name}": value for name, value in measured(self.truth, scores).items()},
            share=answer.share,
            anchored=answer.anchored,
            cpu_seconds=cpu_seconds,
            parameters=as_text(answer.parameters) if answer.parameters else "",
            protocol=PROTOCOL,
        )


def measured(truth: CSR, scores: FloatArray) -> dict[str, float | None]:
    """The measures in percent, by the names of fields; all None where no label has both answers on these rows."""
    if not len(learnable(truth)):
        return dict.fromkeys(one.field for one in MEASURES)
    found = evaluate(truth, scores, metrics=["P@k", "macro_auc", "macro_average_precision"])
    return {one.field: 100.0 * value for one, value in zip(MEASURES, found.values(), strict=False)}


def drawn_rows(n_train: int, n_rows: int, seed: int) -> IntArray:
    """The training rows that are annotated, the same for every method."""
    draw = np.random.default_rng((seed, n_rows))
    return np.arange(n_train) if n_rows == n_train else np.sort(draw.choice(n_train, n_rows, replace=False))


BAR = 0.3  # points: no measure may fall further under BR ridge
_ALONE = NAMES[OWN_RIDGE]


def _prepared(frame: Frame) -> Frame:
    """Of each set the records of its newest protocol; in those of the first, all new labels were the only columns."""
    newest = most(frame, "protocol")
    for one, over_all in zip(MEASURES, ALL_LABELS, strict=True):
        values = newest[one.field].astype(float)
        whole = newest[over_all.field].astype(float).where(newest["protocol"] > 1, values)
        newest = newest.assign(**{one.field: values, over_all.field: whole})
    few = newest["n_rows"] < newest["n_train"]
    used = (newest["share"] > 0) | newest["anchored"]
    n_older = len(frame) - len(newest)
    return newest.assign(n_rows_a_label=newest["n_rows"].where(few), past_used=used, n_older=n_older)


def _protocol(frame: Frame, compared: Frame) -> str:
    """What a reader must know where a folder has older records."""
    found, older = [], frame[frame["protocol"] < PROTOCOL]["dataset"].unique()
    if len(older):
        found.append(
            f"**Older records: {', '.join(older)}.** There means are over all new labels, also those that nobody can "
            "learn, and competitors chose their strength in a single trial of 30 labels."
        )
    if n_older := frame["n_older"].iloc[0]:
        found.append(f"{n_older} older records of sets that were run again are left out.")
    return " ".join(found)


def _by_set(cells: Iterable[tuple[float, str, str]]) -> list[dict[str, str]]:
    """Lines of numbers of rows (infinite: all), a column a set, from (rows, set, text)."""
    found: dict[float, dict[str, str]] = {}
    for n_rows, dataset, text in sorted(cells, key=lambda cell: cell[0]):
        line = found.setdefault(n_rows, {"annotated rows": "all" if np.isinf(n_rows) else f"{n_rows:,.0f}"})
        line[dataset] = text
    return list(found.values())


def _learned(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """How many of the new labels could be learned."""
    places = frame.assign(few=frame["n_rows_a_label"].fillna(np.inf)).groupby(["few", "dataset"])
    means = places[["n_learned", "n_labels"]].mean()
    return _by_set((*place, f"{learned:.0f} of {labels:.0f}") for place, learned, labels in means.itertuples())


def _gains(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """BR ridge, SLL and the gain by the number of rows."""
    means = frame.groupby(["dataset", "n_rows", "method"])[[one.field for one in MEASURES]].mean()
    against = compared[compared["competitor"] == _ALONE].set_index(["dataset", "where", "measure"])
    found = []
    for (dataset, n_rows), here in frame[frame["method"] == LEARNER].groupby(["dataset", "n_rows"]):
        if (dataset, n_rows, _ALONE) in means.index:
            every = " (all)" if n_rows == here["n_train"].iloc[0] else ""
            line = {"dataset": dataset, "annotated rows": f"{n_rows}{every}"}
            for one in MEASURES:
                if (dataset, f"{n_rows} rows", one.title) not in against.index:  # no label could be learned
                    continue
                gain = against.loc[(dataset, f"{n_rows} rows", one.title)]
                before, after = (means.loc[(dataset, n_rows, name), one.field] for name in (_ALONE, LEARNER))
                line[one.title] = f"{before:.1f} to {after:.1f} ({with_spread(gain.gain, gain.error, 2, signed=True)})"
            line["past used"] = f"{here['past_used'].sum()} of {len(here)}"
            line["labels learned"] = f"{here['n_learned'].mean():.0f} of {here['n_labels'].iloc[0]}"
            found.append(line)
    return found


def _short_gains(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """The gain in AUC over BR ridge."""
    here = compared[(compared["competitor"] == _ALONE) & (compared["measure"] == "AUC")]
    lines = here.assign(n_rows=here["n_rows"].fillna(np.inf)).itertuples()
    return _by_set((one.n_rows, one.dataset, with_spread(one.gain, one.error, 2, signed=True)) for one in lines)


def rows_needed(curve: Mapping[int, float], value: float) -> float | None:
    """The first number of rows where the curve reaches the value, linear in log rows between those measured.

    >>> rows_needed({10: 0.0, 1000: 1.0}, 0.5)
    100.0
    """
    sizes = sorted(curve)
    for low, high in zip([sizes[0], *sizes], sizes, strict=False):
        if curve[high] >= value:
            if low == high:
                return float(low)
            part = (value - curve[low]) / (curve[high] - curve[low])
            return float(np.round(np.exp((1.0 - part) * np.log(low) + part * np.log(high)), 6))
    return None


def _savings(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """How many rows BR ridge needs to be as good as SLL; numbers of rows that not every seed has are left out.

    Over all new labels: those that can be learned change with the number of rows.
    """
    found = []
    for dataset, here in frame[frame["method"].isin((LEARNER, _ALONE))].groupby("dataset", sort=False):
        counts = here.groupby("n_rows").size()
        whole = here[here["n_rows"].isin(counts[counts == 2 * here["seed"].nunique()].index)]
        n_train = here["n_train"].iloc[0]
        curves = whole.groupby(["method", "n_rows"])[[one.field for one in ALL_LABELS]].mean()
        for n_rows in sorted(set(whole["n_rows"]) - {n_train}):
            line, at = {"dataset": dataset, "rows of SLL": str(n_rows)}, (LEARNER, n_rows)
            for one in ALL_LABELS:
                alone = curves.loc[_ALONE][one.field].to_dict()
                needed = rows_needed(alone, curves.loc[at, one.field])
                least = "at most " if needed == min(alone) and alone[min(alone)] > curves.loc[at, one.field] else ""
                last = "all" if max(alone) == n_train else str(max(alone))
                words = f"more than {last}" if needed is None else f"{least}{needed:.0f} ({needed / n_rows:.1f}x)"
                line[one.title] = words
            found.append(line)
    return found


def _falls(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Where more rows made a measure of SLL over all new labels worse, by the rule that decides comparisons."""

    def split(records: Frame) -> tuple[Frame, Frame]:
        mine = records[records["method"] == LEARNER]
        sizes = mine.groupby("dataset")["n_rows"].unique().map(sorted)
        following = {(name, few): more for name, found in sizes.items() for few, more in pairwise(found)}
        before = mine.assign(more=[following.get(pair) for pair in zip(mine["dataset"], mine["n_rows"], strict=True)])
        before = before.dropna(subset="more")
        steps = before["n_rows"].astype(str) + " to " + before["more"].astype(int).astype(str)
        after = mine.merge(before[["dataset", "seed", "n_rows", "more"]].assign(where=steps).drop(columns="n_rows"),
                           left_on=["dataset", "seed", "n_rows"], right_on=["dataset", "seed", "more"])  # fmt: skip
        return after, before.assign(where=steps, method="with fewer rows")

    found = comparisons(frame, Versus(ALL_LABELS, split=split))
    lost = found[found["verdict"] == LOSES]
    return [
        {"set": one.dataset, "rows": one.where, "measure": one.measure}
        | {"change": with_spread(one.gain, one.error, 2, signed=True)}
        for one in lost.itertuples()
    ]


def _judged(compared: Frame) -> Frame:
    """What the bar judges: SLL against BR ridge with seeds enough, the lowest gain first."""
    here = compared[(compared["competitor"] == _ALONE) & (compared["freedom"] >= FEWEST_PAIRS - 1)]
    return here.sort_values("gain", kind="stable")


def _lowest(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    return [
        {"set": one.dataset, "at": one.where, "measure": one.measure}
        | {"SLL minus BR ridge": with_spread(one.gain, one.error, 2, signed=True)}
        for one in _judged(compared).head(5).itertuples()
    ]


def _bar(frame: Frame, compared: Frame) -> str:
    judged = _judged(compared)
    if not len(judged):
        return f"not judged (that takes {FEWEST_PAIRS} seeds)"
    return "missed" if (judged["gain"] < -BAR).any() else "met"


def _read_budgets(text: str) -> tuple[int | None, ...]:
    found: list[int | None] = []
    for part in text.split(","):
        word = part.strip()
        if word != "all" and not (word.isdecimal() and len(word) < 16 and int(word) >= 2):
            raise ValueError(f"{word!r} is neither a number of rows, 2 or more, nor 'all'")
        found.append(None if word == "all" else int(word))
    return tuple(found)


PAGE = PageSpec(
    prepare=_prepared,
    names=NAMES,
    order=tuple(SHOWN),
    versus=Versus(MEASURES, place="n_rows", where="{} rows"),
    tables={
        "gains": _gains,
        "short_gains": _short_gains,
        "methods": Pivot(MEASURES, ("n_rows",), "method", "error", {"n_rows": "annotated rows"}),
        "learned": _learned,
        "savings": _savings,
        "falls": _falls,
        "lowest": _lowest,
        "chosen": lambda frame, compared: chosen(frame, lambda name, run: METHODS[SHOWN[name]].grid(run.n_rows)),
        "differences": differences,
        "standings": standing_lines,
    },
    facts={"bar": _bar, "protocol": _protocol},
    plots=measure_plots(
        MEASURES[3:],
        "New labels: {} against the number of annotated rows",
        "n_rows",
        "annotated rows (log scale)",
        "BR ridge is SLL without the past: the distance between the two is what the past gives. Bands are standard "
        "errors over seeds.",
        over="new labels",
        log_x=True,
    ),
)
EXPERIMENT = Experiment(
    name="budget",
    title="New labels against the number of annotated rows",
    explanation=(
        "Accuracy of new labels against the number of annotated rows, with the past and without it.\n\n"
        "Half of the labels of a set are past; the others arrive together, annotated on the same few rows. The last "
        "line says whether any measure fell more than 0.3 points under BR ridge, the same learner without the past."
    ),
    record=BudgetRecord,
    key=KEY,
    datasets=("bibtex", "delicious", "mediamill_reduced"),
    quick_datasets=("mediamill_reduced",),
    tasks=tasks,
    keys=keys,
    run=run,
    page=PAGE,
    options=(
        Option(
            "budgets",
            "Numbers of annotated rows; 'all' for all of them. [default: 20,50,100,200,500,1000,2000,4000,8000,all]",
            metavar="N,N,...",
            parse=_read_budgets,
        ),
        Option(
            "methods",
            f"Only these, and {_ALONE}: {', '.join(SHOWN)}; or 'all'. [default: all; with --quick {LEARNER}, {_ALONE}]",
            metavar="NAME,NAME,...",
            parse=parse_methods,
        ),
    ),
)
