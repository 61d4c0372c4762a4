"""Which labels are past, which arrive and in which batches; and which rows are annotated for those that arrive.

Labels are numbers of columns of Y throughout. Inside a stream a label occurs once: in ``past``, in one batch, or in
``left_out``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamlabel.data.files import RandomState, check_integer, make_rng
from streamlabel.errors import DataError
from streamlabel.types import CSC, CSR, Dataset, IntArray, TextDataset
from streamlabel.validation import canonical_labels

MAX_CELLS = 500_000_000  # a mask stores every annotated cell


def _no_labels() -> IntArray:
    return np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class LabelStream:
    """The order in which labels become known.

    Attributes
    ----------
    past : int array, the labels that are known at the start, in stream order
    batches : tuple of int arrays, none empty; labels of one batch arrive together
    left_out : int array, labels that have no place in the stream (`dated_stream`: they never occur)
    """

    past: IntArray
    batches: tuple[IntArray, ...]
    left_out: IntArray = field(default_factory=_no_labels)

    @property
    def arriving(self) -> IntArray:
        """All labels that arrive, in order of arrival."""
        return np.concatenate(self.batches) if self.batches else _no_labels()

    @property
    def n_labels(self) -> int:
        """Past and arriving labels together."""
        return len(self.past) + len(self.arriving)


def random_stream(
    n_labels: int,
    n_past: int,
    batch_size: int | None = None,
    *,
    n_batches: int | None = None,
    random_state: RandomState = 0,
) -> LabelStream:
    """Labels 0 .. n_labels - 1 in a random order: the first ``n_past`` are past, the others arrive.

    Give ``batch_size`` (the last batch may be smaller) or ``n_batches`` (sizes differ by one at most, the larger
    first); with neither, all arrive in one batch.

    >>> stream = random_stream(6, 2, batch_size=3, random_state=0)
    >>> len(stream.past), [len(batch) for batch in stream.batches]
    (2, [3, 1])
    """
    n_labels = check_integer(n_labels, "n_labels", low=1)
    order = make_rng(random_state).permutation(n_labels)
    return _cut(order, n_past, batch_size, n_batches)


def dated_stream(
    dataset: Dataset | TextDataset,
    *,
    n_past: int | None = None,
    cutoff: str | date | np.datetime64 | None = None,
    batch_size: int | None = None,
    n_batches: int | None = None,
) -> LabelStream:
    """Labels by the date of their first occurrence; ties go to the lower column.

    Past are either the first ``n_past`` labels (which may cut through a tie) or those that occurred before the day
    ``cutoff``. With neither ``batch_size`` nor ``n_batches``, the labels that first occur on one day form a batch.
    Labels without a dated positive row are in ``left_out``.
    """
    if dataset.row_dates is None:
        raise DataError("the data set has no row dates; use random_stream", source=dataset.source)
    if (n_past is None) == (cutoff is None):
        raise DataError("give either n_past or cutoff: how many labels are past, or the day before which they occurred")
    first = first_occurrence(dataset.Y, dataset.row_dates)
    dated = np.flatnonzero(~np.isnat(first))
    order = dated[np.argsort(first[dated], kind="stable")]
    if not order.size:
        raise DataError("no label has a dated positive row; nothing can arrive by date", source=dataset.source)
    if cutoff is not None:
        n_past = int(np.sum(first[order] < _as_day(cutoff)))
    assert n_past is not None
    stream = _cut(order, n_past, batch_size, n_batches)
    batches = stream.batches
    if batch_size is None and n_batches is None and batches:
        arriving = batches[0]
        new_day = np.flatnonzero(np.diff(first[arriving]) > np.timedelta64(0, "D")) + 1
        batches = tuple(np.split(arriving, new_day))
    return LabelStream(stream.past, batches, left_out=np.flatnonzero(np.isnat(first)))


def first_occurrence(Y: CSR, row_dates: NDArray[np.datetime64]) -> NDArray[np.datetime64]:
    """The first day of every label, datetime64[D] (n_labels,); NaT where no positive row has a date."""
    if len(row_dates) != Y.shape[0]:
        raise DataError(f"{len(row_dates)} dates for {Y.shape[0]} rows; give one date a row (NaT where unknown)")
    days = np.asarray(row_dates, dtype="datetime64[D]")
    never = np.iinfo(np.int64).max
    numbers = np.where(np.isnat(days), never, days.astype(np.int64))
    first = np.full(Y.shape[1], never)
    np.minimum.at(first, Y.indices, np.repeat(numbers, np.diff(Y.indptr)))
    return np.where(first == never, np.datetime64("NaT", "D"), first.astype("datetime64[D]"))


def annotated_rows(
    Y: Any,
    budget: int | None = None,
    *,
    how: Literal["all", "first", "random"] = "all",
    same_rows: bool = False,
    stratify: bool = False,
    random_state: RandomState = 0,
) -> CSC:
    """Which cells of Y somebody was asked about: a bool csc_array (n_rows, n_labels); the other cells are unknown.

    Parameters
    ----------
    Y : (n_rows, n_labels) of 0/1. Its values matter only when ``stratify`` is set.
    budget : rows annotated for each label; all of them where there are fewer. Left out with ``how="all"``.
    how : "all" rows, the "first" ``budget`` rows in row order, or ``budget`` rows at "random".
    same_rows : with "random", one draw for all labels; otherwise each label has its own. The draw for a column does
        not depend on the columns after it.
    stratify : a draw without a positive (negative) row gives up one row for one, where the label has any: the first
        such row with "first", a random one with "random". Positives are then more frequent than in a fair draw.
    random_state : seed or generator for "random"
    """
    labels = canonical_labels(Y)
    n_rows, n_labels = labels.shape
    size = _check_budget(budget, how, same_rows, stratify, n_rows)
    check_integer(size * n_labels, "the number of annotated cells", low=0, high=MAX_CELLS)
    rng = make_rng(random_state)
    if how == "random" and not same_rows:
        draws: list[IntArray] = [rng.choice(n_rows, size, replace=False) for _ in range(n_labels)]
    else:
        shared = rng.choice(n_rows, size, replace=False) if how == "random" else np.arange(size)
        draws = [shared] * n_labels
    if stratify and size < n_rows:
        columns = labels.tocsc()
        picker = rng if how == "random" else None
        for j, rows in enumerate(draws):
            positives = columns.indices[columns.indptr[j] : columns.indptr[j + 1]]
            draws[j] = _with_both_answers(rows, positives, n_rows, picker)
    indices = np.concatenate([np.sort(rows) for rows in draws]) if draws else _no_labels()
    indptr = np.concatenate([[0], np.cumsum([len(rows) for rows in draws])]).astype(np.int64)
    return CSC((np.ones(len(indices), dtype=bool), indices, indptr), shape=(n_rows, n_labels))


def _check_budget(budget: int | None, how: str, same_rows: bool, stratify: bool, n_rows: int) -> int:
    if how not in ("all", "first", "random"):
        raise DataError(f"how is {how!r}; expected 'all', 'first' or 'random'")
    if how == "all":
        if budget is not None:
            raise DataError("a budget needs how='first' or how='random'; how='all' annotates every row")
        return n_rows
    if budget is None:
        raise DataError(f"how={how!r} needs a budget: the number of rows annotated for each label")
    if stratify and same_rows:
        raise DataError("stratify draws rows for each label; it cannot be combined with same_rows")
    if stratify:
        check_integer(budget, "budget (with stratify: one positive and one negative)", low=2)
    return min(check_integer(budget, "budget", low=1), n_rows)


def _with_both_answers(rows: IntArray, positives: IntArray, n_rows: int, rng: np.random.Generator | None) -> IntArray:
    """``rows`` with one of them exchanged where all have the same answer and another row has the other answer."""
    rows = rows.copy()
    drawn_positives = np.isin(rows, positives).sum()
    if drawn_positives == 0:
        others = positives
    elif drawn_positives == len(rows):
        others = np.setdiff1d(np.arange(n_rows), positives, assume_unique=True)
    else:
        return rows
    if others.size:
        if rng is None:
            rows[-1] = others[0]
        else:
            rows[rng.integers(len(rows))] = others[rng.integers(others.size)]
    return rows


def _cut(order: IntArray, n_past: int, batch_size: int | None, n_batches: int | None) -> LabelStream:
    """Past = the first ``n_past`` of ``order``; the rest in batches."""
    n_past = check_integer(n_past, "n_past", low=0, high=len(order))
    past, arriving = order[:n_past], order[n_past:]
    if batch_size is not None and n_batches is not None:
        raise DataError("give batch_size or n_batches, not both")
    if not arriving.size:
        return LabelStream(past, ())
    if n_batches is not None:
        n_batches = check_integer(
            n_batches, "n_batches (labels that arrive: one or more a batch)", low=1, high=len(arriving)
        )
        return LabelStream(past, tuple(np.array_split(arriving, n_batches)))
    size = len(arriving) if batch_size is None else check_integer(batch_size, "batch_size", low=1)
    return LabelStream(past, tuple(arriving[i : i + size] for i in range(0, len(arriving), size)))


def _as_day(cutoff: Any) -> np.datetime64:
    try:
        day: np.datetime64 = np.array([cutoff], dtype="datetime64[D]")[0]
    except (ValueError, TypeError, OverflowError):
        day = np.datetime64("NaT", "D")
    if np.isnat(day) or isinstance(cutoff, int):
        raise DataError(f"cutoff {cutoff!r} is not a date; write it as 2020-12-31")
    return day
