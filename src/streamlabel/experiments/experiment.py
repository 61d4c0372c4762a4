"""What an experiment is: data about its grid, the functions from grid to records, and the page of these."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from streamlabel.experiments.spec import PageSpec

Key: TypeAlias = tuple[Any, ...]  # the values of a record's key fields


class Record(Protocol):
    """A dataclass of numbers, strings and booleans, or None where a field allows it.

    A ValueError that it raises is what the user reads. A field with a default may be missing on a line: it came later
    than the line.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]


def named(names: Sequence[str], key: Key) -> dict[str, Any]:
    """The values of a key by the names of its fields."""
    return dict(zip(names, key, strict=True))


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
    page : what is made of all records, which come sorted by key
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
    page: PageSpec
    seeds: int = 5
    quick_seeds: int = 2
    options: tuple[Option, ...] = ()
    measures_times: bool = False
    parts: Callable[[T], list[T]] | None = None


@dataclass(frozen=True)
class Registered:
    """Where an `Experiment` lies, ``module:OBJECT``, to be imported when it is used, and its line in the list."""

    target: str
    summary: str

    def load(self) -> Experiment[Any, Any]:
        module, _, attribute = self.target.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, Experiment)
        return found


_SUMMARIES = {
    "bounds": "The two theorems of the paper against what they bound.",
    "budget": "Accuracy of new labels against the number of annotated rows.",
    "figure1": "Accuracy over all labels against the share of them at the start.",
    "figure2": "Running time of 100 new labels against the number of past ones.",
    "names": "What the name of a label is worth beside a few found yes.",
    "questions": "Which texts of a pool are worth an answer: four ways to choose them.",
    "table2": "New labels in batches, every method, beside the paper's Table 2.",
    "table3": "The labels that named labels are made of, beside the paper's Table 3.",
    "timeline": "Labels in the order of the calendar: learned from their first years, judged on what follows.",
}
_MODULES = {"names": "named_labels", "questions": "asking"}  # where the command has another name
EXPERIMENTS = {
    name: Registered(f"streamlabel.experiments.{_MODULES.get(name, name)}:EXPERIMENT", words)
    for name, words in _SUMMARIES.items()
}
