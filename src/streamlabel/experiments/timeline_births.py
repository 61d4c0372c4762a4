"""Rows in the order of their dates, the labels that are born after a start, and when each is annotated and judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.catalogue import find_entry, load_catalogue_set
from streamlabel.data.streams import first_occurrence
from streamlabel.errors import DataError
from streamlabel.experiments.arrivals import corpus_sets
from streamlabel.experiments.sets import NEWS_CORPUS, TWIN, used_name
from streamlabel.experiments.timeline_records import EVER, age_edges
from streamlabel.types import CSC, CSR, Dataset, IntArray

__all__ = ["Birth", "DatedRows", "births", "by_date", "load_by_date"]

LEAST_PAST, LEAST_YES, LEAST_LATER = 3, 2, 5
_YEAR = np.timedelta64(365, "D")
_TEXTS = 2000


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
        judged = {age: part for age, part in _ages(data, day, stop, years).items() if _both(rows, part)}
        found.append(Birth(int(label), day, start, stop, judged))
    return found


def _ages(data: DatedRows, day: np.datetime64, stop: int, years: int) -> dict[int, slice]:
    edges = age_edges(years)
    places = [int(place) for place in np.searchsorted(data.dates, [day + edge * _YEAR for edge in edges])]
    ends = [*places[1:], len(data.dates)]
    parts = {edge: slice(begin, end) for edge, begin, end in zip(edges, places, ends, strict=True)}
    return {EVER: slice(stop, len(data.dates)), **parts}


def _both(positives: IntArray, part: slice) -> bool:
    n_yes = int(np.sum((positives >= part.start) & (positives < part.stop)))
    return 0 < n_yes < part.stop - part.start


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
