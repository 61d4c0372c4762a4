"""Pictures as data, and their drawing. The only import of matplotlib."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from streamlabel.exceptions import MissingExtraError
from streamlabel.experiments.records import saving

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Panel", "Picture", "Series", "draw", "slug"]

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999")  # Okabe and Ito
_MARKS = "osD^vP*X"
_DASHES = ("-", "--", ":")  # for more series than colours
_STYLE: dict[str, Any] = {
    "svg.hashsalt": "streamlabel",
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_PER_PANEL, _HEIGHT, _DPI = 3.6, 3.9, 130  # inches, inches, dots an inch
_NO_TRACES: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
_MOST_TICKS = 12  # a log axis with no more places than this has a tick at each


@dataclass(frozen=True)
class Series:
    """One line, or one colour of bars.

    x : numbers; for bars the names of the groups
    spread : half the height of the band or error bar about every y; empty for none
    """

    label: str
    x: tuple[float, ...] | tuple[str, ...]
    y: tuple[float, ...]
    spread: tuple[float, ...] = ()


@dataclass(frozen=True)
class Panel:
    """One pair of axes; panels stand side by side. Series with one label have one colour in all panels."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Picture:
    """A picture that can be read without the text around it.

    name : goes into the names of its files
    x_label, y_label : with units
    spread : what the spread is, in words, for the caption: "standard error over 5 seeds"
    reading : the sentence below it
    """

    name: str
    title: str
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    reading: str
    spread: str = ""
    kind: Literal["lines", "bars"] = "lines"
    log_x: bool = False
    log_y: bool = False


def slug(name: str) -> str:
    """The name as a part of a file's: letters, digits, ``-`` and ``_``.

    >>> slug("mediamill (stand-in mediamill_reduced)")
    'mediamill-stand-in-mediamill_reduced'
    """
    return re.sub("[^A-Za-z0-9_-]+", "-", name).strip("-")


def draw(picture: Picture, out: Path, stem: str, forms: tuple[str, ...] = ("png", "svg")) -> list[Path]:
    """Write ``STEM-NAME.png`` and ``.svg`` into the folder: equal bytes for equal pictures.

    Raises
    ------
    MissingExtraError : matplotlib is not installed
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing pictures") from None
    paths = [out / f"{stem}-{picture.name}.{form}" for form in forms]
    labels = list(dict.fromkeys(series.label for panel in picture.panels for series in panel.series))
    style: Any = {**matplotlib.rcParamsDefault, **_STYLE}
    with matplotlib.rc_context(style):
        width = max(6.5, 1.5 + _PER_PANEL * len(picture.panels))
        figure = Figure(figsize=(width, _HEIGHT), dpi=_DPI, layout="constrained")
        all_axes = figure.subplots(1, len(picture.panels), squeeze=False)[0]
        for axes, panel in zip(all_axes, picture.panels, strict=True):
            _fill(axes, picture, panel, labels)
        all_axes[0].set_ylabel(picture.y_label)
        figure.suptitle(picture.title, fontsize=11.0)
        if len(labels) > 1:
            found = [axes.get_legend_handles_labels() for axes in all_axes]
            handles = {label: handle for pair in found for handle, label in zip(*pair, strict=True)}
            figure.legend([handles[label] for label in labels], labels, loc="outside right center", frameon=False)
        caption = picture.reading + (f" Spread: {picture.spread}." if picture.spread else "")
        figure.supxlabel("\n".join(textwrap.wrap(caption, int(17 * width))), fontsize=8.0, color="#444444")
        for path, form in zip(paths, forms, strict=True):
            with saving(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                figure.savefig(path, metadata=_NO_TRACES[form])
    return paths


def _fill(axes: Axes, picture: Picture, panel: Panel, labels: list[str]) -> None:
    if picture.kind == "bars":
        _bars(axes, panel, labels)
    else:
        _lines(axes, panel, labels)
    if picture.log_x:
        axes.set_xscale("log")
        at = sorted({x for series in panel.series for x in series.x if isinstance(x, int | float)})
        if len(at) <= _MOST_TICKS:
            axes.set_xticks(at, [f"{x:g}" for x in at], rotation=45)
            axes.set_xticks([], minor=True)
    if picture.log_y:
        axes.set_yscale("log")
    axes.set_title(panel.title, fontsize=9.0)
    axes.set_xlabel(picture.x_label)


def _lines(axes: Axes, panel: Panel, labels: list[str]) -> None:
    for series in panel.series:
        place = labels.index(series.label)
        colour = _COLOURS[place % len(_COLOURS)]
        mark, dash = _MARKS[place % len(_MARKS)], _DASHES[place // len(_COLOURS) % len(_DASHES)]
        axes.plot(series.x, series.y, color=colour, marker=mark, ls=dash, ms=4, lw=1.4, label=series.label)
        if series.spread:
            low = [y - half for y, half in zip(series.y, series.spread, strict=True)]
            high = [y + half for y, half in zip(series.y, series.spread, strict=True)]
            axes.fill_between(series.x, low, high, color=colour, alpha=0.15, lw=0)


def _bars(axes: Axes, panel: Panel, labels: list[str]) -> None:
    groups = list(dict.fromkeys(name for series in panel.series for name in series.x))
    width = 0.8 / max(1, len(labels))
    for series in panel.series:
        place = labels.index(series.label)
        at = [groups.index(name) + (place - (len(labels) - 1) / 2) * width for name in series.x]
        colour = _COLOURS[place % len(_COLOURS)]
        axes.bar(at, series.y, width, yerr=series.spread or None, color=colour, label=series.label, capsize=2)
    many: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if len(groups) > 6 else {}
    axes.set_xticks(range(len(groups)), [str(name) for name in groups], **many)
