"""What an experiment is: data about its grid, and the functions from grid to records to a page with pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from streamlabel.experiments.comparisons import Comparison
from streamlabel.experiments.pictures import Picture
from streamlabel.experiments.records import Key, Record

__all__ = ["QUICK_FORM", "Experiment", "Option", "Page", "Setting"]

QUICK_FORM = "A quick form (--quick:"  # how a page begins whose records are of quick runs alone
R = TypeVar("R", bound=Record)
T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """What one command asks for.

    datasets : names for `sets.load_set`; they are also what records and tables call the sets
    options : the experiment's own, by `Option.name`; one that was not given is not in it
    """

    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    quick: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Option:
    """An option of one experiment's command: ``--name``.

    parse : text to value; a ValueError is what the user reads. None makes it a flag.
    """

    name: str
    help: str
    metavar: str = ""
    parse: Callable[[str], Any] | None = None


@dataclass(frozen=True)
class Page:
    """What the records say.

    sentence : one sentence of what it shows, for somebody who has not read the paper
    body : Markdown: tables under headings of level 2, without the title, the sentence and the pictures
    data : the same as JSON; no time and no machine in it, so that equal runs give equal files
    comparisons : the learner against every competitor, for the reading over all experiments
    """

    sentence: str
    body: str
    data: dict[str, Any]
    comparisons: tuple[Comparison, ...] = ()


def _no_pictures(records: Sequence[Any]) -> list[Picture]:
    return []


@dataclass(frozen=True)
class Experiment(Generic[R, T]):
    """One command of ``streamlabel reproduce``. Functions are module-level, and a task holds plain data: both travel.

    Attributes
    ----------
    name, title, explanation : of the command; the heading of its page; its help
    record : a frozen dataclass of numbers, strings and booleans. Times are in fields called ``seconds`` or
        ``..._seconds``, and nothing else differs between two runs (but for omikuji, which takes no seed).
    key : the fields that tell one record from another
    datasets, seeds : the default; ``quick_datasets``, ``quick_seeds`` with ``--quick``. A quick set that is not on
        this machine is left out; when none is left, the embedded texts are used (`sets.NEWS_CORPUS`).
    tasks : the units of parallel work, long ones first
    keys : the records that a task gives, by key, in its order
    run : yields those records whose keys are not in ``done`` (key to finished record), each as soon as it is there
    parts : of a task, with all its keys, that can be run apart once it has a record, of which they take what was
        chosen. With several workers the first part is run first; its first record releases the others. None: tasks
        are not divided.
    page, pictures : of all records, which come sorted by key
    measures_times : whether its times are results, so that by default nothing runs beside them
    """

    name: str
    title: str
    explanation: str
    record: type[R]
    key: tuple[str, ...]
    datasets: tuple[str, ...]
    quick_datasets: tuple[str, ...]
    tasks: Callable[[Setting], list[T]]
    keys: Callable[[T], list[Key]]
    run: Callable[[T, Mapping[Key, R]], Iterator[R]]
    page: Callable[[Sequence[R]], Page]
    pictures: Callable[[Sequence[R]], list[Picture]] = _no_pictures
    seeds: int = 5
    quick_seeds: int = 2
    options: tuple[Option, ...] = ()
    measures_times: bool = False
    parts: Callable[[T], list[T]] | None = None
