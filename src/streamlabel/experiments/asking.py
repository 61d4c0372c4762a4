"""``streamlabel reproduce questions``: which texts of a pool are worth an answer?"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np

from streamlabel.errors import DataError
from streamlabel.experiments.experiment import Experiment, Key, named
from streamlabel.experiments.found_labels import Draw, DrawTask, draw_labels, f1_of, ranking, tasks
from streamlabel.experiments.sets import NEWS_CORPUS
from streamlabel.experiments.spec import Frame, Measure, PageSpec, Pivot, measure_plots, most
from streamlabel.streaming.found import Examples
from streamlabel.tagging.questions import choose_questions
from streamlabel.types import FloatArray, IntArray

KEY = ("dataset", "start", "method", "n_answers", "seed", "protocol")
PROTOCOL = 1  # raised when a record comes to mean something else, so that old and new ones are never compared
SHOWN = (0, 5, 10, 20, 50)
ENDS = (5, 10, 15, 20, 30, 40, 50)  # how many answers there are when the label is learned again
STARTS = {"the name": 0, "the name and 2 yes": 2}
N_LABELS = 12
MEASURES = (Measure("f1", "F1"), Measure("average_precision", "average precision"))


@dataclass(frozen=True)
class AnswersRecord:
    """New labels after so many answers; means over labels, measures in percent, on rows that judge.

    start : what a label was learned from before the first question (`STARTS`)
    method : the strategy that chose the questions (`STRATEGIES`)
    n_answers : to questions about rows of the pool, the found examples not counted;   n_yes : yes among them
    f1 : at the label's own threshold;   said : the rows for which it says yes, for each to which it applies (median)
    """

    dataset: str
    start: str
    method: str
    n_answers: int
    seed: int
    protocol: int
    n_labels: int
    n_yes: float
    f1: float
    average_precision: float
    auc: float
    said: float

    def __post_init__(self) -> None:
        if self.method not in STRATEGIES:
            raise ValueError(f"no strategy is called {self.method!r}")


@dataclass(frozen=True, eq=False)
class Open:
    """The rows that can be asked about, (n, d), with their scores, and what the label says."""

    X: object
    scores: FloatArray
    threshold: float
    n_yes: int
    rng: np.random.Generator


def _next(pool: Open, n: int) -> IntArray:
    found = choose_questions(pool.X, pool.scores, pool.threshold, pool.n_yes, n)
    return np.array([at for at, _ in found], dtype=np.intp)


STRATEGIES: dict[str, Callable[[Open, int], IntArray]] = {
    "next": _next,
    "highest scores": lambda pool, n: np.argsort(-pool.scores, kind="stable")[:n],
    "nearest to the threshold": lambda pool, n: np.argsort(np.abs(pool.scores - pool.threshold), kind="stable")[:n],
    "at random": lambda pool, n: pool.rng.permutation(len(pool.scores))[:n],
}


def keys(task: DrawTask) -> list[Key]:
    shown = SHOWN[:3] if task.quick else SHOWN
    return [
        (task.dataset, start, strategy, n_answers, task.seed, PROTOCOL)
        for start in STARTS
        for strategy in STRATEGIES
        for n_answers in shown
    ]


def run(task: DrawTask, done: Collection[Key] = ()) -> Iterator[AnswersRecord]:
    """Answer from the truth; every strategy and start begins with the same labels and examples."""
    missing = [key for key in keys(task) if key not in done]
    draw = draw_labels(task.dataset, task.seed, N_LABELS // 5 if task.quick else N_LABELS, task.quick, named=True)
    for start, strategy in dict.fromkeys((key[1], key[2]) for key in missing):
        wanted = [key[3] for key in missing if key[1:3] == (start, strategy)]
        lines = [list(_asked(draw, label, STARTS[start], strategy, max(wanted))) for label in draw.new.tolist()]
        for n_answers in wanted:
            here = np.array([dict(line)[n_answers] for line in lines])
            key = (task.dataset, start, strategy, n_answers, task.seed, PROTOCOL)
            n_yes, f1, average_precision, auc, _ = here.mean(axis=0).tolist()
            said = float(np.median(here[:, 4]))
            yield AnswersRecord(
                **named(KEY, key), n_labels=len(lines), n_yes=n_yes, f1=f1, average_precision=average_precision,
                auc=auc, said=said,
            )  # fmt: skip


Line = tuple[int, tuple[float, ...]]


def _asked(draw: Draw, label: int, n_found: int, strategy: str, most: int) -> Iterator[Line]:
    """Ask about one label, and judge it after every round: (answers, (yes, F1, average precision, AUC, said))."""
    data, rng = draw.data, np.random.default_rng((draw.seed, label, 4))
    found = np.sort(rng.permutation(data.yes(label, data.fit))[:n_found])
    asked: IntArray = np.empty(0, dtype=np.intp)
    truth, learned = data.answers(label, data.test), _learn(draw, label, found, n_found)
    for end in (0, *(end for end in ENDS if end <= most)):
        if end:
            left = np.setdiff1d(data.pool, asked)
            scores, threshold = learned(left)
            n_yes = n_found + int(data.answers(label, asked).sum())
            chosen = STRATEGIES[strategy](Open(data.X[left], scores, threshold, n_yes, rng), end - len(asked))
            asked = np.concatenate((asked, left[chosen]))
            learned = _learn(draw, label, np.concatenate((found, asked)).astype(np.intp), n_found)
        scores, threshold = learned(data.test)
        auc, average_precision = ranking(truth, scores)
        said, n_yes = scores > threshold, int(data.answers(label, asked).sum())
        yield end, (n_yes, f1_of(truth, said), average_precision, auc, float(said.sum() / truth.sum()))


def _learn(draw: Draw, label: int, rows: IntArray, n_found: int) -> Callable[[IntArray], tuple[FloatArray, float]]:
    """Learn a label from rows of which all but the first ones were asked; gives scores of rows, and the threshold."""
    data, model = draw.data, copy.copy(draw.model)
    examples = Examples(data.X[rows], data.answers(label, rows), np.arange(len(rows)) >= n_found)
    pool = data.X[np.setdiff1d(data.pool, rows)]
    try:
        model.learn_examples({"new": examples}, pool, data.directions, [data.label_names[label]])
    except DataError:  # a name alone where names are worth nothing
        return lambda rows: (np.zeros(len(rows)), 0.0)
    state, number = model.state_, np.array([len(draw.known)])
    threshold = float(state.decisions.thresholds[-1])
    return lambda rows: (state.classifiers.scores(data.X[rows], number)[:, 0], threshold)


def _prepared(frame: Frame) -> Frame:
    newest = most(frame, "protocol")
    placed = newest.assign(panel=newest["dataset"] + ", from " + newest["start"])
    place = placed["start"].map(STARTS)
    return placed.assign(place=place).sort_values(["dataset", "place"], kind="stable").drop(columns="place")


def _short(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """F1 and average precision before the first and after the last answer, a line a strategy, a column a set."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    last = int(frame["n_answers"].max())
    for (start, method), here in frame.groupby(["start", "method"], sort=False):
        line = found.setdefault((start, method), {"from": start, "questions": method})
        for dataset, part in here.groupby("dataset", sort=False):
            for one in MEASURES:
                means = part.groupby("n_answers")[one.field].mean()
                line[f"{dataset}: {one.title}"] = f"{means.loc[0]:.1f} to {means.loc[last]:.1f}"
    return list(found.values())


_ROWS = ("start", "method")
_TITLES = {"start": "from", "method": "questions", "n_answers": "{} answers"}
PAGE = PageSpec(
    prepare=_prepared,
    order=tuple(STRATEGIES),
    tables={
        "answers": Pivot(MEASURES, _ROWS, "n_answers", "error", _TITLES),
        "found": Pivot((Measure("n_yes", "yes among the answers"),), _ROWS, "n_answers", "", _TITLES),
        "short": _short,
    },
    plots=measure_plots(
        MEASURES,
        "New labels: {} against the number of answers",
        "n_answers",
        "answers to questions",
        "The learner is the same; lines differ in who chooses the texts that are asked about. Bands are standard "
        "errors over seeds.",
        panel="panel",
    ),
)
EXPERIMENT = Experiment(
    name="questions",
    title="Which texts are worth an answer",
    explanation=(
        "New labels after so many answers to questions, by who chose the questions.\n\n"
        "A label begins with its name, or with its name and two yes. Questions are about rows of a pool, and answers "
        "are the truth; the label is learned again after every few. It is judged on rows that are neither."
    ),
    record=AnswersRecord,
    key=KEY,
    datasets=("bibtex", "citeulike-t-min5", "eurlex57k"),
    quick_datasets=(NEWS_CORPUS,),
    tasks=tasks,
    keys=keys,
    run=run,
    page=PAGE,
    seeds=3,
    quick_seeds=1,
)
