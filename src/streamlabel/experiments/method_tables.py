"""What the pages that compare methods have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np

from streamlabel.experiments.comparisons import LOSES, TIES, UNDECIDED, WINS, Comparison
from streamlabel.experiments.experiment import QUICK_FORM, Option
from streamlabel.experiments.methods import METHODS, PEERS, QUICK, installed, parse_methods
from streamlabel.experiments.peers import RIVER_CELLS

__all__ = [
    "METHODS_OPTION",
    "NOT_RUN_NOTE",
    "by_method",
    "counted",
    "fewer_note",
    "left_out_note",
    "library_notes",
    "parameters_of",
    "quick_form",
    "quick_left_out",
    "spread_of",
    "tuned_only",
    "unfinished_note",
    "verdicts",
    "with_spread",
]

NOT_RUN_NOTE = (
    "A method whose package is not installed is left out, as is one that would take many minutes a run on so many rows "
    "and labels, unless --methods names it; the page says which."
)
METHODS_OPTION = Option(
    "methods",
    f"Only these: {', '.join(METHODS)}. [default: all; with --quick {', '.join(QUICK)}]",
    metavar="NAME,NAME,...",
    parse=parse_methods,
)


class _OfMethod(Protocol):
    @property
    def method(self) -> str: ...


class _Tuned(Protocol):
    @property
    def tuned(self) -> bool: ...


class _Parametrised(Protocol):
    @property
    def parameters(self) -> str: ...


M = TypeVar("M", bound=_OfMethod)
T = TypeVar("T", bound=_Tuned)


def tuned_only(records: Sequence[T]) -> list[T]:
    """Records with chosen hyper-parameters where there are any: a folder may hold those of a quick run, too."""
    return [record for record in records if record.tuned] or list(records)


def quick_form(records: Iterable[_Tuned]) -> str:
    """A sentence before others where nothing was chosen; else empty."""
    if all(record.tuned for record in records):
        return ""
    return f"{QUICK_FORM} hyper-parameters were not chosen), whose figures decide nothing. "


def quick_left_out(records: Sequence[_Tuned]) -> list[str]:
    """A paragraph, where `tuned_only` leaves records out."""
    n_quick = sum(not record.tuned for record in records)
    if n_quick in (0, len(records)):
        return []
    return [f"Left out here: {counted(n_quick, 'quick record')}, whose hyper-parameters were not chosen."]


def by_method(records: Iterable[M], order: Sequence[str]) -> Iterator[tuple[str, list[M]]]:
    """The records of every method, in this order; methods without any, and others, are passed over."""
    found: dict[str, list[M]] = {}
    for record in records:
        found.setdefault(record.method, []).append(record)
    return ((name, found[name]) for name in order if name in found)


def counted(n: int, what: str) -> str:
    """
    >>> counted(1, "run"), counted(3, "run")
    ('1 run', '3 runs')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def spread_of(values: Sequence[float]) -> dict[str, float]:
    """Mean and standard deviation (0 for one value)."""
    return {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0}


def with_spread(values: Sequence[float], digits: int, n_orders: int) -> str:
    """Mean ± standard deviation, and over how many orders where these are fewer than they should be.

    >>> with_spread([1.0, 2.0, 3.0], 1, n_orders=3), with_spread([4.25], 1, n_orders=3)
    ('2.0 ± 1.0', '4.2 (1 order)')
    """
    if not values:
        return ""
    found = spread_of(values)
    text = f"{found['mean']:.{digits}f}"
    return (text if len(values) == 1 else f"{text} ± {found['sd']:.{digits}f}") + fewer_note(len(values), n_orders)


def fewer_note(n: int, n_orders: int) -> str:
    """For a cell: empty where all orders are there.

    >>> fewer_note(5, 5), fewer_note(2, 5)
    ('', ' (2 orders)')
    """
    return f" ({counted(n, 'order')})" if n < n_orders else ""


def unfinished_note(methods: Iterable[str]) -> str:
    """A sentence after others; empty where every method has all orders."""
    given = set(methods)
    names = [name for name in METHODS if name in given]
    return f" Not all orders are there yet of {', '.join(names)}: their cells say how many." if names else ""


def parameters_of(records: Iterable[_Parametrised]) -> list[str]:
    """The hyper-parameters of these records, each once."""
    return list(dict.fromkeys(record.parameters for record in records))


def verdicts(compared: Sequence[Comparison]) -> str:
    """Wins, ties and losses in words."""
    found = Counter(c.verdict for c in compared)
    undecided = f", {found[UNDECIDED]} undecided" if found[UNDECIDED] else ""
    return f"{found[WINS]} wins, {found[TIES]} ties, {found[LOSES]} losses{undecided}"


def left_out_note(run: Collection[str]) -> str:
    """Which methods are not in the table, and why."""
    absent = [name for name in METHODS if name not in run]
    there = set(installed(absent))
    parts = []
    if uninstalled := [name for name in absent if name not in there]:
        parts.append(f"Not installed, so not compared: {', '.join(uninstalled)} (pip install 'streamlabel[dev]').")
    if rest := [name for name in METHODS if name in there]:
        parts.append(f"Not run here (not asked for, or too many rows times labels for it): {', '.join(rest)}.")
    return " ".join([*parts, *library_notes(run)])


def library_notes(run: Collection[str]) -> list[str]:
    """Sentences on how those of other libraries were run."""
    parts = []
    if "river" in run:
        parts.append(f"river is shown {RIVER_CELLS:,} answers (rows times labels) at most, in one pass.")
    if "omikuji" in run:
        parts.append("omikuji takes no seed: run again, it gives other figures.")
    if set(run) & set(PEERS):
        parts.append("Methods of other libraries are run on one thread.")
    return parts
