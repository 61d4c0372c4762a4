"""Labels that are born by the calendar: their records, the rows they are annotated and judged on, a rival for them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from streamlabel.data.catalogue import find_entry, load_catalogue_set
from streamlabel.data.streams import first_occurrence
from streamlabel.errors import DataError
from streamlabel.experiments.sets import NEWS_CORPUS, TWIN, corpus_sets, used_name
from streamlabel.metrics.auc import label_average_precision
from streamlabel.types import CSC, CSR, Dataset, FloatArray, IntArray

WITH_PAST, OWN_RIDGE, LOGISTIC = "with the past", "own ridge", "logistic regression"
COMPARED = (WITH_PAST, OWN_RIDGE, LOGISTIC)
ALWAYS_USED = "past always used"  # the learner whose choice is switched off: a variant, which older records lack
METHODS = (*COMPARED, ALWAYS_USED)
KEY = ("dataset", "start", "years", "label", "method", "age", "seed")
LEAST_PAST, LEAST_YES, LEAST_LATER = 3, 2, 5
_YEAR = np.timedelta64(365, "D")
_TEXTS = 2000
EVER = 0  # the age that stands for all rows after the annotation
_LATER = (0, 1, 2, 5, 10)
_STRENGTHS = (1.0, 10.0, 100.0, 1000.0)  # scikit-learn's C
_MOST_LABELS = 30


@dataclass(frozen=True)
class BirthRecord:
    """A label born after the start, learned by one method and judged on rows of one age; measures in percent.

    start, years : the year from which on labels arrive; the years for which each is annotated
    age : years since birth from which on rows are judged, up to the next of `age_edges`; `EVER`: all after the answers
    n_known : labels that the growing model knew before this one
    n_rows, n_yes : annotated;   n_judged, n_judged_yes : judged
    past_used : whether this method leaned on the past (`OWN_RIDGE` and `LOGISTIC` never do)
    old_scores : SHA-256 of the scores of the labels of the start on fixed rows, after this arrival
    unchanged : whether these, and those of all labels that had arrived, were the same bits as before
    """

    dataset: str
    start: int
    years: int
    label: str
    method: str
    age: int
    seed: int
    born: str
    n_known: int
    n_rows: int
    n_yes: int
    n_judged: int
    n_judged_yes: int
    auc: float
    average_precision: float
    past_used: bool
    old_scores: str
    unchanged: bool

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"no method of the timeline is called {self.method!r}")


def age_edges(years: int) -> tuple[int, ...]:
    """Where the ages begin, in years since birth; the last one has no end."""
    return tuple(years + later for later in _LATER)


@dataclass(frozen=True, eq=False)
class DatedRows:
    """A set with its rows in the order of their dates; ``columns`` is Y by labels."""

    X: CSR
    Y: CSR
    columns: CSC
    dates: NDArray[np.datetime64]
    label_names: tuple[str, ...]

    @property
    def years(self) -> tuple[int, int]:
        """Of the first row and of the last."""
        first, last = (int(str(day)[:4]) for day in (self.dates[0], self.dates[-1]))
        return first, last

    def before(self, year: int) -> int:
        """How many rows are older than this year."""
        return int(np.searchsorted(self.dates, np.datetime64(f"{year:04d}-01-01", "D")))

    def past(self, year: int) -> IntArray:
        """The labels that are known at the start of this year: with three yes before it, and a no."""
        n_rows = self.before(year)
        counts = np.asarray(self.Y[:n_rows].sum(axis=0)).ravel()
        return np.flatnonzero((counts >= LEAST_PAST) & (counts < n_rows))

    def positives(self, label: int) -> IntArray:
        """The rows with this label."""
        return self.columns.indices[self.columns.indptr[label] : self.columns.indptr[label + 1]]


@dataclass(frozen=True, eq=False)
class Birth:
    """A label that arrives: annotated on the rows ``start`` to ``stop``, judged by age on the rows of ``judged``."""

    label: int
    day: np.datetime64
    start: int
    stop: int
    judged: Mapping[int, slice]


def by_date(data: Dataset) -> DatedRows:
    if data.row_dates is None:
        raise DataError("the rows have no dates; a timeline needs them", source=data.source or None)
    order = np.argsort(data.row_dates, kind="stable")
    Y = data.Y[order]
    return DatedRows(data.X[order].astype(np.float64), Y, Y.tocsc(), data.row_dates[order], data.label_names)


def births(data: DatedRows, year: int, years: int) -> list[Birth]:
    """The labels born in this year or later, in order of birth.

    Left out are those with fewer than two yes (or without a no) in the years of their annotation, and those with fewer
    than five yes afterwards. An age without a yes or a no is not judged.
    """
    born = first_occurrence(data.Y, data.dates)
    young = np.flatnonzero(born >= np.datetime64(f"{year:04d}-01-01", "D"))
    found = []
    for label in young[np.argsort(born[young], kind="stable")]:
        day, rows = born[label], data.positives(int(label))
        start, stop = (int(place) for place in np.searchsorted(data.dates, [day, day + years * _YEAR]))
        n_yes, n_later = int(np.sum(rows < stop)), int(np.sum(rows >= stop))
        if n_yes < LEAST_YES or n_yes == stop - start or n_later < LEAST_LATER:
            continue
        parts = _ages(data, day, stop, years).items()
        judged = {age: part for age, part in parts if 0 < _count(rows, part.start, part.stop) < part.stop - part.start}
        found.append(Birth(int(label), day, start, stop, judged))
    return found


def _ages(data: DatedRows, day: np.datetime64, stop: int, years: int) -> dict[int, slice]:
    edges = age_edges(years)
    places = [int(place) for place in np.searchsorted(data.dates, [day + edge * _YEAR for edge in edges])]
    ends = [*places[1:], len(data.dates)]
    parts = {edge: slice(begin, end) for edge, begin, end in zip(edges, places, ends, strict=True)}
    return {EVER: slice(stop, len(data.dates)), **parts}


def _count(positives: IntArray, begin: int, end: int) -> int:
    """How many of these rows lie there."""
    return int(np.sum((positives >= begin) & (positives < end)))


@lru_cache(maxsize=1)
def load_by_date(name: str) -> DatedRows:
    """All parts of a set together: the calendar is the split."""
    used = used_name(name)
    if used == TWIN:
        raise DataError("the rows of a set that was made up have no dates; a timeline needs them", source=name)
    if used == NEWS_CORPUS:
        parts = list(corpus_sets(0, _TEXTS))
    else:
        parts = [load_catalogue_set(used, split) for split in find_entry(used).n_rows]
    dates = [part.row_dates for part in parts if part.row_dates is not None]
    whole = Dataset(
        X=sparse.csr_array(sparse.vstack([part.X for part in parts], format="csr")),
        Y=sparse.csr_array(sparse.vstack([part.Y for part in parts], format="csr")),
        label_names=parts[0].label_names,
        row_dates=np.concatenate(dates) if len(dates) == len(parts) else None,
        source=name,
    )
    return by_date(whole)


def fit_logistic(X: Any, answers: IntArray, C: float, class_weight: str | None = None) -> LogisticRegression:
    """scikit-learn's logistic regression, as far as it comes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=C, class_weight=class_weight, solver="liblinear", max_iter=1000).fit(X, answers)


@dataclass(frozen=True)
class LogisticAlone:
    """scikit-learn's logistic regression (liblinear) with one strength for all labels."""

    C: float

    @classmethod
    def chosen(cls, data: DatedRows, start: int, years: int, seed: int) -> LogisticAlone:
        """With the strength of the best average precision before the start: labels learned on the last years but some,
        judged on the last. Ties, and sets without such labels, go to the weakest fit."""
        begin, middle, end = (data.before(start - back * years) for back in (2, 1, 0))
        able = [label for label in range(len(data.label_names)) if _able(data.positives(label), begin, middle, end)]
        drawn = np.random.default_rng((seed, start)).permutation(able)[:_MOST_LABELS]
        means = []
        for C in _STRENGTHS:
            found = []
            for label in drawn:
                answers = data.columns[:, [label]].toarray()
                line, _ = cls(C).learn(data.X[begin:middle], answers[begin:middle].ravel())
                scores = np.asarray(data.X[middle:end] @ line)[:, None]
                found.append(float(label_average_precision(answers[middle:end], scores)[0]))
            means.append(float(np.mean(found)) if found else 0.0)
        return cls(_STRENGTHS[int(np.argmax(means))])

    def learn(self, X: CSR, answers: IntArray) -> tuple[FloatArray, float]:
        """Weights (d,) and intercept for 0/1 answers (n,)."""
        model = fit_logistic(X, answers, self.C)
        return model.coef_[0], float(model.intercept_[0])


def _able(positives: IntArray, begin: int, middle: int, end: int) -> bool:
    n_yes, n_judged = _count(positives, begin, middle), _count(positives, middle, end)
    return LEAST_YES <= n_yes < middle - begin and 0 < n_judged < end - middle
