"""The page of an experiment as data: its measures, who is compared with whom, its tables and its plots.

Nothing here needs pandas: `tables`, `compare`, `plots` and `report` make frames and pages of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

Frame: TypeAlias = Any  # a pandas DataFrame
Table: TypeAlias = "Pivot | Callable[[Frame, Frame], Any]"
LEARNER = "SLL"  # what every page calls the whole learner


@dataclass(frozen=True)
class Measure:
    """A field of the records that says how good a method is.

    points : how many points one unit is; negative where less is better
    digits : shown in tables
    """

    field: str
    title: str
    points: float = 1.0
    digits: int = 1


@dataclass(frozen=True)
class Versus:
    """The learner against every other method, run by run.

    place, where : the field that says at which place of the grid a run stands, and that place in words
    pairs : the field that makes two runs a pair
    split : the learner's runs and those of the others, for experiments where a method alone does not tell them
        apart; both need the column ``where``
    runs_once : methods that draw nothing at random, so that one run stands against all of the learner's
    unfair : methods and measures that are shown and not counted
    """

    measures: tuple[Measure, ...]
    place: str = ""
    where: str = "{}"
    pairs: str = "seed"
    split: Callable[[Frame], tuple[Frame, Frame]] | None = None
    runs_once: frozenset[str] = frozenset()
    unfair: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Pivot:
    """A table of means with their spread, one a set.

    rows : the fields whose values are lines
    columns : the field whose values are columns, a table a measure; "" has a column a measure
    spread : "sd" is the standard deviation over runs, "error" that of the mean
    titles : headings of fields; ``{}`` in the heading of ``columns`` is the value
    keep : the records that are shown
    """

    measures: tuple[Measure, ...]
    rows: tuple[str, ...] = ("method",)
    columns: str = ""
    spread: Literal["sd", "error", ""] = "sd"
    titles: Mapping[str, str] = field(default_factory=dict)
    keep: Callable[[Frame], Frame] = lambda frame: frame


@dataclass(frozen=True)
class Plot:
    """A picture that can be read without the text around it.

    name : goes into the names of its files
    caption : what to see in it, below the axes
    panel, line, x, y : the fields that make a pair of axes, a line, and its points
    middle : of the runs at one point
    spread : the band about it; "given" takes the column ``error``
    of : from records and comparisons to what is drawn
    zero : a line at zero, for differences
    """

    name: str
    title: str
    x: str
    y: str
    x_label: str
    y_label: str
    caption: str
    panel: str = "dataset"
    line: str = "method"
    middle: Literal["mean", "median", "min"] = "mean"
    spread: Literal["error", "sd", "quartiles", "given", ""] = "error"
    of: Callable[[Frame, Frame], Frame] = lambda frame, compared: frame
    bars: bool = False
    log_x: bool = False
    log_y: bool = False
    zero: bool = False


@dataclass(frozen=True)
class PageSpec:
    """From records to a page.

    template : Markdown with placeholders, ``{{name}}`` of a table or a fact and ``{{plot NAME}}``; by default the
        file under pages/ that has the experiment's name
    tables, facts : by placeholder, from records and comparisons; a fact is a word or a figure
    names : what pages call methods that records call otherwise
    order : of the methods in tables
    prepare : the records that the page is of, with further columns
    """

    tables: Mapping[str, Table] = field(default_factory=dict)
    facts: Mapping[str, Callable[[Frame, Frame], str]] = field(default_factory=dict)
    plots: tuple[Plot, ...] = ()
    versus: Versus | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    prepare: Callable[[Frame], Frame] = lambda frame: frame
    template: Path | None = None


def measure_plots(
    measures: Iterable[Measure], title: str, x: str, x_label: str, caption: str, *, over: str = "labels", **looks: Any
) -> tuple[Plot, ...]:
    """Means over labels against ``x``, a plot a measure, which is ``{}`` in the title; looks : further fields."""
    return tuple(
        Plot(
            one.field.replace("_", "-"), title.format(one.title), x, one.field, x_label,
            f"{one.title}, mean over {over} (%)", caption, **looks,
        )
        for one in measures
    )  # fmt: skip


def most(frame: Frame, field: str) -> Frame:
    """Of each set the records whose field is as high as it gets there: of the newest protocol, or the largest batch."""
    return frame[frame[field] == frame.groupby("dataset")[field].transform("max")]


def tuned_only(frame: Frame) -> Frame:
    """Records with chosen hyper-parameters where there are any: a folder may hold those of a quick run, too."""
    return frame[frame["tuned"]] if frame["tuned"].any() else frame
