"""``streamlabel reproduce names``: what is the name of a label worth beside a few yes?"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np

from streamlabel.errors import DataError
from streamlabel.experiments.experiment import Experiment, Key, named
from streamlabel.experiments.found_labels import (
    Draw,
    DrawTask,
    chosen_strengths,
    draw_labels,
    logistic,
    negatives,
    ranking,
    tasks,
    yes_rows,
)
from streamlabel.experiments.sets import NEWS_CORPUS
from streamlabel.experiments.spec import LEARNER, Frame, Measure, PageSpec, Pivot, Versus, measure_plots, most
from streamlabel.experiments.tables import differences
from streamlabel.types import FloatArray, IntArray

KEY = ("dataset", "method", "n_yes", "seed", "protocol")
PROTOCOL = 1  # raised when a record comes to mean something else, so that old and new ones are never compared
SIZES, QUICK_SIZES = (0, 1, 2, 5, 10, 20), (0, 1, 5)
N_LABELS = 20
WITHOUT, LOGISTIC, AS_TEXT = "SLL without the name", "scikit-learn logistic", "scikit-learn logistic, name as a text"
MEASURES = (Measure("auc", "AUC"), Measure("average_precision", "average precision"))


@dataclass(frozen=True)
class NameRecord:
    """New labels from so many found yes and a pool, by one method; means over labels in percent, on rows that judge.

    A label whose name has no known word cannot be learned from its name alone by anybody: it scores all rows the same.
    """

    dataset: str
    method: str
    n_yes: int
    seed: int
    protocol: int
    n_labels: int
    auc: float
    average_precision: float

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"no method for found labels is called {self.method!r}")


def _ours(draw: Draw, n_yes: int, *, name: bool) -> Callable[[int, IntArray], FloatArray]:
    def learn(label: int, yes: IntArray) -> FloatArray:
        data, model = draw.data, copy.copy(draw.model)
        reader, title = data.directions if name else None, data.label_names[label]
        try:
            model.add_found(title, data.X[yes], pool=data.X[data.pool], names=reader)
        except DataError:
            if n_yes:
                raise
            return np.zeros(len(data.test))
        return model.state_.classifiers.scores(data.X[data.test], np.array([len(draw.known)]))[:, 0]

    return learn


def _logistic(draw: Draw, n_yes: int, *, name: bool) -> Callable[[int, IntArray], FloatArray]:
    strength = chosen_strengths(draw, n_yes, name=name).ranking

    def learn(label: int, yes: IntArray) -> FloatArray:
        data = draw.data
        rows = yes_rows(data, label, yes, name=name)
        if not rows.shape[0]:
            return np.zeros(len(data.test))
        no = data.X[negatives(data.pool, yes, np.random.default_rng((draw.seed, label, 6)))]
        model = logistic(rows, no, strength)
        return np.asarray(model.decision_function(data.X[data.test]))

    return learn


METHODS: dict[str, Callable[[Draw, int], Callable[[int, IntArray], FloatArray]]] = {
    LEARNER: lambda draw, n_yes: _ours(draw, n_yes, name=True),
    WITHOUT: lambda draw, n_yes: _ours(draw, n_yes, name=False),
    LOGISTIC: lambda draw, n_yes: _logistic(draw, n_yes, name=False),
    AS_TEXT: lambda draw, n_yes: _logistic(draw, n_yes, name=True),
}


def keys(task: DrawTask) -> list[Key]:
    """Without a yes there is nothing to learn from but the name."""
    return [
        (task.dataset, method, n_yes, task.seed, PROTOCOL)
        for n_yes in (QUICK_SIZES if task.quick else SIZES)
        for method in METHODS
        if n_yes or method in (LEARNER, AS_TEXT)
    ]


def run(task: DrawTask, done: Collection[Key] = ()) -> Iterator[NameRecord]:
    """Every method gets the same labels, and the same yes of each."""
    missing = [key for key in keys(task) if key not in done]
    draw = draw_labels(task.dataset, task.seed, N_LABELS // 3 if task.quick else N_LABELS, task.quick)
    data = draw.data
    for key in missing:
        _, method, n_yes, _, _ = key
        learn, found = METHODS[method](draw, n_yes), []
        for label in draw.new.tolist():
            order = np.random.default_rng((draw.seed, label, 5)).permutation(data.yes(label, data.fit))
            found.append(ranking(data.answers(label, data.test), learn(label, np.sort(order[:n_yes]))))
        auc, average_precision = np.mean(found, axis=0).tolist()
        yield NameRecord(**named(KEY, key), n_labels=len(found), auc=auc, average_precision=average_precision)


def _short(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Average precision, a line a method, a column a number of yes."""
    means = frame.groupby(["dataset", "method", "n_yes"], sort=False)["average_precision"].mean()
    found: dict[tuple[str, str], dict[str, str]] = {}
    for (dataset, method, n_yes), value in sorted(means.items(), key=lambda item: item[0][2]):
        line = found.setdefault((dataset, method), {"set": dataset, "average precision of": method})
        line[f"{n_yes} yes"] = f"{value:.1f}"
    order = list(dict.fromkeys(zip(frame["dataset"], frame["method"], strict=True)))
    columns = ("set", "average precision of", *(f"{n_yes} yes" for n_yes in sorted(frame["n_yes"].unique())))
    return [{name: found[key].get(name, "") for name in columns} for key in order]


PAGE = PageSpec(
    prepare=lambda frame: most(frame, "protocol"),
    order=tuple(METHODS),
    versus=Versus(MEASURES, place="n_yes", where="{} yes"),
    tables={
        "yes": Pivot(MEASURES, ("n_yes",), "method", "error", {"n_yes": "yes"}),
        "short": _short,
        "differences": differences,
    },
    plots=measure_plots(
        MEASURES,
        "New labels: {} against the number of yes",
        "n_yes",
        "yes that were found",
        "What a name gives is the distance from SLL without it. Where the logistic regression is given the name, it is "
        "another text for yes. Bands are standard errors over seeds.",
    ),
)
EXPERIMENT = Experiment(
    name="names",
    title="What a name is worth",
    explanation=(
        "New labels from so many found yes and a pool, with their names and without.\n\n"
        "Yes are drawn from the rows of fit, and rows of a pool that nobody has looked at stand for no. Labels are "
        "judged on rows that are neither. The logistic regression chooses its strength on known labels."
    ),
    record=NameRecord,
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
