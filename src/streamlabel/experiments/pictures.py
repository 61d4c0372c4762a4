"""Pictures as data, and their drawing. The only import of matplotlib."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from streamlabel.errors import MissingExtraError
from streamlabel.experiments.picture_styles import LineStyle, line_styles
from streamlabel.experiments.records import saving

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Panel", "Picture", "Series", "draw", "slug"]

_STYLE: dict[str, Any] = {
    "svg.hashsalt": "streamlabel",
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_PER_PANEL, _HEIGHT, _PER_ROW, _DPI = 3.6, 3.9, 3.1, 130  # inches, inches, inches a further row, dots an inch
_BESIDE = 1.5  # inches for the legend beside the panels
_MOST_BESIDE, _COLUMNS = 4, 3  # more panels than this stand in rows of so many
_NO_TRACES: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
_PER_DOT = 0.22  # inches
_MOST_TICKS = 12  # an axis with no more places than this has a tick at each


@dataclass(frozen=True)
class Series:
    """One line, one colour of bars, or one panel of dots.

    x : numbers; for bars the names of the groups, for dots those of the methods, from the top
    spread : half the height of the band or error bar about every y, NaN where it is not known; empty for none
    band : of lines, instead of spread: the lower and the upper end at every y, which need not lie in the middle
    """

    label: str
    x: tuple[float, ...] | tuple[str, ...]
    y: tuple[float, ...]
    spread: tuple[float, ...] = ()
    band: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Panel:
    """One pair of axes; many panels stand in rows. Series with one label look the same in all panels."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Picture:
    """A picture that can be read without the text around it.

    name : goes into the names of its files
    x_label, y_label : with units
    spread : what the spread is, in words, for the caption: "standard error over 5 seeds"
    reading : the sentence below it
    kind : dots stand on horizontal axes that begin near the smallest value; panels have the same methods
    zero : a line at zero, for differences
    """

    name: str
    title: str
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    reading: str
    spread: str = ""
    kind: Literal["lines", "bars", "dots"] = "lines"
    log_x: bool = False
    log_y: bool = False
    zero: bool = False


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
    styles = line_styles(_labels(picture))
    style: Any = {**matplotlib.rcParamsDefault, **_STYLE}
    with matplotlib.rc_context(style):
        n_rows, n_columns = _grid(len(picture.panels))
        n_free = n_rows * n_columns - len(picture.panels)
        width = max(6.5, _PER_PANEL * n_columns + (0.0 if n_free else _BESIDE))
        figure = Figure(figsize=(width, _height(picture, n_rows)), dpi=_DPI, layout="constrained")
        grid = figure.subplots(n_rows, n_columns, squeeze=False, sharey=picture.kind == "dots")
        all_axes, free = grid.ravel()[: len(picture.panels)], grid.ravel()[len(picture.panels) :]
        for axes, panel in zip(all_axes, picture.panels, strict=True):
            _fill(axes, picture, panel, styles)
        for axes in free:
            axes.set_axis_off()
        figure.suptitle(picture.title, fontsize=11.0)
        if picture.kind != "dots":
            for axes in grid[:, 0]:
                axes.set_ylabel(picture.y_label)
            found = [axes.get_legend_handles_labels() for axes in all_axes]
            handles = {label: handle for pair in found for handle, label in zip(*pair, strict=True)}
            named: Any = [handles[label] for label in styles], list(styles)
            looks: dict[str, Any] = {"frameon": False, "handlelength": 3.0}
            if n_free:
                free[-1].legend(*named, loc="center", **looks)
            else:
                figure.legend(*named, loc="outside right center", **looks)
        caption = picture.reading + (f" Spread: {picture.spread}." if picture.spread else "")
        figure.supxlabel("\n".join(textwrap.wrap(caption, int(17 * width))), fontsize=8.0, color="#444444")
        for path, form in zip(paths, forms, strict=True):
            with saving(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                figure.savefig(path, metadata=_NO_TRACES[form])
    return paths


def _labels(picture: Picture) -> list[str]:
    """In the order of the legend; beside a single panel of lines as these end, from the top."""
    labels = list(dict.fromkeys(series.label for panel in picture.panels for series in panel.series))
    if picture.kind == "lines" and len(picture.panels) == 1:
        ends = {series.label: series.y[-1] for series in picture.panels[0].series if series.y}
        labels.sort(key=lambda label: -ends.get(label, float("-inf")))
    return labels


def _grid(n_panels: int) -> tuple[int, int]:
    """Rows and columns."""
    n_columns = n_panels if n_panels <= _MOST_BESIDE else _COLUMNS
    return -(-n_panels // n_columns), n_columns


def _height(picture: Picture, n_rows: int) -> float:
    if picture.kind != "dots":
        return _HEIGHT + _PER_ROW * (n_rows - 1)
    n_dots = max((len(series.x) for panel in picture.panels for series in panel.series), default=0)
    return max(_HEIGHT, 1.6 + _PER_DOT * n_dots) * n_rows


def _fill(axes: Axes, picture: Picture, panel: Panel, styles: Mapping[str, LineStyle]) -> None:
    axes.set_title(panel.title, fontsize=9.0)
    if picture.kind == "dots":
        axes.set_xlabel(picture.y_label)
        _dots(axes, panel)
        return
    axes.set_xlabel(picture.x_label)
    if picture.kind == "bars":
        _bars(axes, panel, styles)
    else:
        _lines(axes, panel, styles)
        at = sorted({x for series in panel.series for x in series.x if isinstance(x, int | float)})
        if picture.log_x:
            axes.set_xscale("log")
        if len(at) <= _MOST_TICKS:
            axes.set_xticks(at, [f"{x:g}" for x in at], rotation=45 if picture.log_x else 0)
            axes.set_xticks([], minor=True)
    if picture.log_y:
        axes.set_yscale("log")
    if picture.zero:
        axes.axhline(0.0, color="#000000", lw=1.2, zorder=1.5)


def _lines(axes: Axes, panel: Panel, styles: Mapping[str, LineStyle]) -> None:
    for series in panel.series:
        style = styles[series.label]
        looks: dict[str, Any] = {"color": style.colour, "marker": style.mark, "ls": style.dash, "zorder": style.above}
        axes.plot(series.x, series.y, lw=style.width, ms=3 + style.width, label=series.label, **looks)
        if ends := _ends(series):
            low, high = zip(*ends, strict=True)
            axes.fill_between(series.x, low, high, color=style.colour, alpha=0.15, lw=0)
            for place in _alone(ends):
                y = series.y[place]
                error = [[y - low[place]], [high[place] - y]]
                axes.errorbar(series.x[place], y, error, fmt="none", ecolor=style.colour, capsize=5, zorder=style.above)


def _ends(series: Series) -> tuple[tuple[float, float], ...]:
    if not series.spread:
        return series.band
    return tuple((y - half, y + half) for y, half in zip(series.y, series.spread, strict=True))


def _alone(ends: Sequence[tuple[float, float]]) -> list[int]:
    """Places whose spread is known and that of no neighbour is, so that a band about them has no width to be seen."""
    known = [False, *(isfinite(low) and isfinite(high) for low, high in ends), False]
    return [place for place in range(len(ends)) if known[place : place + 3] == [False, True, False]]


def _bars(axes: Axes, panel: Panel, styles: Mapping[str, LineStyle]) -> None:
    labels, groups = list(styles), list(dict.fromkeys(name for series in panel.series for name in series.x))
    width = 0.8 / max(1, len(labels))
    for series in panel.series:
        at = [groups.index(name) + (labels.index(series.label) - (len(labels) - 1) / 2) * width for name in series.x]
        colour = styles[series.label].colour
        axes.bar(at, series.y, width, yerr=series.spread or None, color=colour, label=series.label, capsize=2)
    many: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if len(groups) > 6 else {}
    axes.set_xticks(range(len(groups)), [str(name) for name in groups], **many)


def _dots(axes: Axes, panel: Panel) -> None:
    (series,) = panel.series
    names = [str(name) for name in series.x]
    for place, style in enumerate(line_styles(names).values()):
        half = series.spread[place] if series.spread else 0.0
        looks: dict[str, Any] = {"fmt": style.mark, "color": style.colour, "ms": 4 + style.width}
        axes.errorbar(series.y[place], -place, xerr=half or None, capsize=2, **looks)
    axes.set_yticks([-place for place in range(len(names))], names)
