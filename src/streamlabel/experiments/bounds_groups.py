"""Records of the bounds experiment, chosen and grouped for its tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamlabel.experiments.bounds_records import BoundsRecord
from streamlabel.experiments.random_problems import RANDOM

__all__ = ["grouped", "last_batch", "most_rows", "of_theorem", "one_grid", "place_of"]


def one_grid(records: Sequence[BoundsRecord]) -> list[BoundsRecord]:
    """Of the streams of a set those with the most batches: a quick run beside a full one is not shown."""
    most: dict[tuple[int, str], int] = {}
    for record in records:
        place = record.theorem, record.dataset
        most[place] = max(record.n_batches, most.get(place, 0))
    return [record for record in records if record.n_batches == most[record.theorem, record.dataset]]


def of_theorem(records: Sequence[BoundsRecord], theorem: int) -> list[BoundsRecord]:
    return [record for record in records if record.theorem == theorem]


def place_of(record: BoundsRecord) -> tuple[Any, ...]:
    if record.dataset == RANDOM:
        return (RANDOM, 0, 0, record.beta)
    return (record.dataset, record.n_rows, record.batch, record.beta)


def grouped(records: Sequence[BoundsRecord], by: Callable[[BoundsRecord], Any]) -> list[list[BoundsRecord]]:
    groups: dict[Any, list[BoundsRecord]] = {}
    for record in records:
        groups.setdefault(by(record), []).append(record)
    return [groups[place] for place in sorted(groups)]


def last_batch(records: Sequence[BoundsRecord]) -> list[BoundsRecord]:
    last = {name: max(r.batch for r in records if r.dataset == name) for name in {r.dataset for r in records}}
    return [record for record in records if record.batch == last[record.dataset]]


def most_rows(records: Sequence[BoundsRecord]) -> list[BoundsRecord]:
    most = {name: max(r.n_rows for r in records if r.dataset == name) for name in {r.dataset for r in records}}
    return [record for record in records if record.n_rows == most[record.dataset]]
