"""``streamlabel reproduce timeline``: labels in the order of the calendar, into one model that grows."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamlabel.errors import DataError
from streamlabel.experiments.births import (
    ALWAYS_USED,
    COMPARED,
    EVER,
    KEY,
    LOGISTIC,
    METHODS,
    OWN_RIDGE,
    WITH_PAST,
    Birth,
    BirthRecord,
    DatedRows,
    LogisticAlone,
    age_edges,
    births,
    load_by_date,
)
from streamlabel.experiments.compare import mean_and_error
from streamlabel.experiments.experiment import Experiment, Key, Option, Setting, named
from streamlabel.experiments.sets import NEWS_CORPUS
from streamlabel.experiments.spec import LEARNER, Frame, Measure, PageSpec, Versus, measure_plots
from streamlabel.experiments.tables import standing_lines, with_spread
from streamlabel.metrics.auc import label_auc, label_average_precision
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.trials import LAM, RECIPES
from streamlabel.types import FloatArray

STARTS: Mapping[str, tuple[int, ...]] = {NEWS_CORPUS: (2020,)}
USUAL_STARTS = (1985, 1995)
SETTING = {
    "lam": LAM,
    "metric": max(way.share for way in RECIPES),
    "loss": "squared",
}  # of the past that is always used
_FORMS: Mapping[str, Mapping[str, Any]] = {
    OWN_RIDGE: {"lam": None, "metric": None, "loss": "squared"},
    ALWAYS_USED: SETTING,
}
_CHUNK = 32  # arrivals between two evaluations
_FIXED = 100  # rows by which scores are compared, bit by bit


@dataclass(frozen=True)
class TimelineTask:
    """One start of one set: all labels that are born from that year on, in one stream."""

    dataset: str
    start: int
    years: int
    seed: int


def tasks(setting: Setting) -> list[TimelineTask]:
    years = setting.options.get("years", 1)
    return [
        TimelineTask(name, start, years, seed)
        for name in setting.datasets
        for start in setting.options.get("start") or STARTS.get(name, USUAL_STARTS)
        for seed in setting.seeds
    ]


def keys(task: TimelineTask, data: DatedRows | None = None) -> list[Key]:
    """What cannot be run with this start is refused here, before anything is."""
    data = load_by_date(task.dataset) if data is None else data
    _check_past(task, data)
    arriving = births(data, task.start, task.years)
    if not arriving:
        first, last = data.years
        raise DataError(
            f"no label that is born in {task.start} or later has rows enough to be learned and judged; the rows are of "
            f"{first} to {last}: choose an earlier --start",
            source=task.dataset,
        )
    return [key for birth in arriving for key in _keys_of(task, data, birth)]


def _check_past(task: TimelineTask, data: DatedRows) -> None:
    if not data.past(task.start).size:
        first, last = data.years
        raise DataError(
            f"no label has three rows before {task.start}; the rows are of {first} to {last}: choose a later --start",
            source=task.dataset,
        )


def _keys_of(task: TimelineTask, data: DatedRows, birth: Birth) -> list[Key]:
    name = data.label_names[birth.label]
    return [
        (task.dataset, task.start, task.years, name, method, age, task.seed)
        for method in METHODS
        for age in birth.judged
    ]


def run(task: TimelineTask, done: Collection[Key] = ()) -> Iterator[BirthRecord]:
    return run_on(task, load_by_date(task.dataset), done)


def run_on(
    task: TimelineTask, data: DatedRows, done: Collection[Key] = (), dictionary: str = "all"
) -> Iterator[BirthRecord]:
    """Fit the labels known at the start on the rows before it; then the others arrive, each when it is born.

    A label is annotated on all rows of its first years and judged on all rows after these. With the dictionary "fit"
    it may lean on labels of the start only.
    """
    arriving = births(data, task.start, task.years)
    wanted = {key[4] for birth in arriving for key in _keys_of(task, data, birth) if key not in done}
    if not wanted:
        return
    stream = _Stream(task, data, dictionary, wanted)
    for begin in range(0, len(arriving), _CHUNK):
        for record in stream.arrive(arriving[begin : begin + _CHUNK]):
            if tuple(getattr(record, name) for name in KEY) not in done:
                yield record


class _Stream:
    """Models that grow: the learner, which is always run, and of its forms and the classifier a label those wanted."""

    def __init__(self, task: TimelineTask, data: DatedRows, dictionary: str, wanted: Collection[str]) -> None:
        self._task, self._data = task, data
        _check_past(task, data)
        n_rows, past = data.before(task.start), data.past(task.start)
        names = [data.label_names[label] for label in past]
        model = StreamingLabelClassifier(dictionary=dictionary, random_state=task.seed)
        self._helped = model.fit(data.X[:n_rows], data.Y[:n_rows][:, past], names)
        forms = {method: copy.copy(model).set_params(**_FORMS[method]) for method in _FORMS if method in wanted}
        self._models = {WITH_PAST: self._helped, **forms}
        chosen = LOGISTIC in wanted
        self._logistic = LogisticAlone.chosen(data, task.start, task.years, task.seed) if chosen else None
        self._fixed = data.X[np.linspace(0, len(data.dates) - 1, _FIXED).astype(np.intp)]
        self._n_start = self._n_known = len(past)
        self._start_print = self._print = _fingerprint(self._helped.decision_function(self._fixed))

    def arrive(self, chunk: Sequence[Birth]) -> Iterator[BirthRecord]:
        """Let these labels arrive one after another, then judge them."""
        lines, facts = [], []
        for birth in chunk:
            rows = slice(birth.start, birth.stop)
            X, answers = self._data.X[rows], self._data.columns[:, [birth.label]].toarray().ravel()[rows]
            name = [self._data.label_names[birth.label]]
            for model in self._models.values():
                model.add_labels(X, answers, name)
            if self._logistic is not None:
                lines.append(self._logistic.learn(X, answers)[0])
            facts.append(self._facts(birth, int(answers.sum())))
        first = min(birth.stop for birth in chunk)
        later = self._data.X[first:]
        scores = {
            method: np.asarray(later @ model.coef_[-len(chunk) :].T) + model.intercept_[-len(chunk) :]
            for method, model in self._models.items()
        }
        if lines:
            scores[LOGISTIC] = np.asarray(later @ np.column_stack(lines))
        for column, (birth, fact) in enumerate(zip(chunk, facts, strict=True)):
            truth = self._data.columns[:, [birth.label]].toarray()
            for key in _keys_of(self._task, self._data, birth):
                method, part = key[4], birth.judged[key[5]]
                if method in scores:
                    judged = slice(part.start - first, part.stop - first)
                    yield _record(key, fact, truth[part], scores[method][judged, column : column + 1])

    def _facts(self, birth: Birth, n_yes: int) -> dict[str, Any]:
        """What the records of the label that has just arrived have in common; compares all older scores bit by bit."""
        scores = self._helped.decision_function(self._fixed)
        old, known = _fingerprint(scores[:, : self._n_start]), _fingerprint(scores[:, : self._n_known])
        unchanged = old == self._start_print and known == self._print
        reports = {method: model.reports_[-1] for method, model in self._models.items()}
        facts = {
            "born": str(birth.day),
            "n_known": self._n_known,
            "n_rows": birth.stop - birth.start,
            "n_yes": n_yes,
            "past_used": [method for method, said in reports.items() if said.share or said.anchored],
            "old_scores": old,
            "unchanged": unchanged,
        }
        self._n_known, self._print = scores.shape[1], _fingerprint(scores)
        return facts


def _record(key: Key, facts: dict[str, Any], truth: FloatArray, scores: FloatArray) -> BirthRecord:
    facts = {**facts, "past_used": key[4] in facts["past_used"]}
    return BirthRecord(
        **named(KEY, key),
        **facts,
        n_judged=len(truth),
        n_judged_yes=int(truth.sum()),
        auc=100.0 * float(label_auc(truth, scores)[0]),
        average_precision=100.0 * float(label_average_precision(truth, scores)[0]),
    )


def _fingerprint(scores: FloatArray) -> str:
    return hashlib.sha256(np.ascontiguousarray(scores).tobytes()).hexdigest()


def _read_years(text: str) -> int:
    if not (text.isdecimal() and 1 <= len(text) < 4 and int(text) >= 1):
        raise ValueError(f"{text!r} is not a number of years, 1 or more")
    return int(text)


def _read_starts(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not (word.isdecimal() and len(word) == 4):
            raise ValueError(f"{word!r} is not a year")
    return tuple(dict.fromkeys(int(word) for word in words))


_MEASURES = (Measure("auc", "AUC"), Measure("average_precision", "average precision"))
NAMES = {
    WITH_PAST: LEARNER,
    OWN_RIDGE: "BR ridge",
    LOGISTIC: "scikit-learn logistic",
    ALWAYS_USED: "SLL past always used",
}
_SHOWN = tuple(NAMES[name] for name in COMPARED)
_PAIR = (NAMES[ALWAYS_USED], NAMES[OWN_RIDGE])
FEWEST_LABELS = 5  # a point of a picture rests on no fewer


def _prepared(frame: Frame) -> Frame:
    years = frame["years"].map(lambda n: "" if n == 1 else f", annotated {n} years")
    return frame.assign(run=frame["dataset"] + ", born from " + frame["start"].astype(str) + " on" + years)


def by_label(frame: Frame, methods: Sequence[str]) -> Frame:
    """One value a label, age and method: the mean over the seeds that all these methods were run on."""
    keys = ["dataset", "start", "run", "age", "label"]
    here = frame[frame["method"].isin(methods)]
    wide = here.pivot_table(index=[*keys, "seed"], columns="method", values=[one.field for one in _MEASURES])
    if len(here["method"].unique()) < len(methods):
        return here.iloc[:0]
    means = wide.dropna().groupby(keys).mean()
    return means.stack("method", future_stack=True).reset_index()


def _split(frame: Frame) -> tuple[Frame, Frame]:
    """Of all rows after the annotation; labels are the pairs."""
    found = by_label(frame[frame["age"] == EVER], _SHOWN)
    learner = frame[frame["method"] == LEARNER]
    median = learner.groupby("run")["n_rows"].median().astype(int)
    where = [run.partition(", ")[2] for run in found["run"]]
    placed = found.assign(where=where, n_rows_a_label=found["run"].map(median))
    return placed[placed["method"] == LEARNER], placed[placed["method"] != LEARNER]


def _facts(frame: Frame, compared: Frame) -> list[dict[str, Any]]:
    """One line a start: how many labels arrived, how the past was used, whether old scores stayed the same bits."""
    arrived = frame[(frame["method"] == LEARNER) & (frame["age"] == EVER)]
    return [
        {
            "run": run,
            "labels at the start": int(here["n_known"].min()),
            "arrived": int(here["label"].nunique()),
            "median of annotated rows": int(here["n_rows"].median()),
            "of them yes": int(here["n_yes"].median()),
            "past used for": int(here[here["past_used"]]["label"].nunique()),
            "arrivals that left all old scores the same bits": f"{here['unchanged'].sum():,} of {len(here):,}",
        }
        for run, here in arrived.groupby("run")
    ]


def _age_words(age: int, years: int) -> str:
    edges = age_edges(years)
    if age == EVER:
        return "all later"
    return f"{age} on" if age == edges[-1] else f"{age} to {edges[edges.index(age) + 1]}"


def _ages(methods: Sequence[str], shown_ages: Sequence[int] | None = None) -> Callable[[Frame, Frame], Any]:
    """A table of measures by age: every method, and the gain of the first over the others."""

    def table(frame: Frame, compared: Frame) -> list[dict[str, str]]:
        found, values = [], by_label(frame, methods)
        years = frame.drop_duplicates("run").set_index("run")["years"]
        for (run, age), here in values.groupby(["run", "age"]):
            if shown_ages is not None and age not in shown_ages:
                continue
            line = {"dataset": run, "years since birth": _age_words(age, years[run])}
            for one in _MEASURES:
                wide = here.pivot(index="label", columns="method", values=one.field)
                line["labels"] = str(len(wide))
                line |= {f"{one.title}, {method}": f"{wide[method].mean():.1f}" for method in methods}
                for other in methods[1:]:
                    gain, error, _ = mean_and_error(wide[methods[0]] - wide[other])
                    line[f"{one.title}, gain over {other}"] = with_spread(gain, error, 2, signed=True)
            found.append(line)
        return found

    return table


def _summary(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """All rows after the annotation, a line a start, without the set and the years."""
    lines = [*_ages(_SHOWN, (EVER,))(frame, compared)]
    starts, hidden = frame.drop_duplicates("run").set_index("run")["start"], ("dataset", "years since birth")
    return [
        {"born from": str(starts[line["dataset"]])}
        | {name: cell for name, cell in line.items() if name not in hidden and "BR ridge" not in name}
        for line in lines
    ]


def _drawn(frame: Frame, compared: Frame) -> Frame:
    """By age, where there are labels enough; the variant where it has learned every label that the others have."""
    every = by_label(frame, _SHOWN)
    more = by_label(frame, (*_SHOWN, NAMES[ALWAYS_USED]))
    parts = every if not len(more) else every.merge(more[more["method"] == NAMES[ALWAYS_USED]], how="outer")
    parts = parts[parts["age"] != EVER]
    if not len(parts):
        return parts
    counts = parts.groupby(["run", "age", "method"])["label"].transform("size")
    whole = parts[parts["method"] == LEARNER].groupby(["run", "age"])["label"].size()
    expected = [whole.get(pair, 0) for pair in zip(parts["run"], parts["age"], strict=True)]
    order = [*_SHOWN, NAMES[ALWAYS_USED]]
    kept = parts[(counts >= FEWEST_LABELS) & (counts == expected)]
    return kept.sort_values("method", key=lambda column: column.map(order.index), kind="stable").sort_values(
        "run", kind="stable"
    )


PAGE = PageSpec(
    prepare=_prepared,
    names=NAMES,
    order=(*_SHOWN, NAMES[ALWAYS_USED]),
    versus=Versus(_MEASURES, pairs="label", split=_split),
    tables={
        "facts": _facts,
        "ages": _ages(_SHOWN),
        "always": _ages(_PAIR),
        "summary": _summary,
        "always_summary": _ages(_PAIR, (EVER,)),
        "standings": standing_lines,
    },
    plots=measure_plots(
        _MEASURES,
        "Labels by age: {} on rows that followed",
        "age",
        "years since the label's first row, from",
        "A label is annotated in its first years and judged on later rows, by its age. Where SLL did not use the past, "
        f"it is BR ridge and the two lie on each other. Points rest on {FEWEST_LABELS} labels or more; bands are "
        "standard errors over labels.",
        panel="run",
        of=_drawn,
    ),
)
EXPERIMENT = Experiment(
    name="timeline",
    title="Labels in the order of the calendar",
    explanation=(
        "Labels arrive at their first row, are annotated for a time, and are judged on the rows that follow.\n\n"
        "The labels known at the start are fitted on the rows before it; all later ones arrive one after another, in "
        "the order of their births, into one model that grows. The scores of all older labels are compared bit by bit "
        "after every arrival. Seeds change nothing but the trials by which the model decides how far to trust the past."
    ),
    record=BirthRecord,
    key=KEY,
    datasets=("eurlex57k",),
    quick_datasets=(NEWS_CORPUS,),
    tasks=tasks,
    keys=keys,
    run=run,
    page=PAGE,
    seeds=1,
    quick_seeds=1,
    options=(
        Option("years", "For how long a label is annotated. [default: 1]", metavar="N", parse=_read_years),
        Option(
            "start",
            "The years from which on labels arrive, each a run of its own. [default: 1985,1995]",
            metavar="YEAR,YEAR",
            parse=_read_starts,
        ),
    ),
)
