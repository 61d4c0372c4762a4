"""Pictures of frames. The only import of matplotlib."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamlabel.errors import MissingExtraError
from streamlabel.experiments.record_file import saving
from streamlabel.experiments.spec import Frame, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLE: dict[str, Any] = {
    "svg.hashsalt": "streamlabel",
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_PER_PANEL, _HEIGHT, _PER_ROW, _DPI, _BESIDE = 3.4, 3.9, 3.1, 110, 1.7  # inches, dots an inch, inches for the legend
_MOST_BESIDE, _COLUMNS, _MOST_TICKS = 4, 3, 12
_NO_TRACES: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
_BLUE, _ORANGE, _GREEN, _PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"  # Okabe and Ito, for all eyes
_SKY, _YELLOW, _BLACK, _GREY, _VIOLET, _BROWN = "#56b4e9", "#e69f00", "#000000", "#999999", "#5e3c99", "#8c510a"
_OTHERS, _MARKS = (_BLUE, _ORANGE, _GREEN, _PINK, _SKY, _YELLOW, _BLACK, _GREY), "osD^vP*X"


@dataclass(frozen=True)
class LineStyle:
    """How a line looks; of two that meet, the one with the larger ``above`` is on top."""

    colour: str
    mark: str
    dash: str = "-"
    width: float = 1.4
    above: int = 2


_KNOWN = {  # every method looks the same in all pictures, and the learner stands out
    "SLL": LineStyle(_BLUE, "o", "-", 3.0, 3),
    "BR ridge": LineStyle(_ORANGE, "s", "--", above=4),  # over the learner, which shows where they are equal
    "SLL logistic": LineStyle(_VIOLET, "^"),
    "SLL past always used": LineStyle(_VIOLET, "D", ":"),
    "SLL paper": LineStyle(_SKY, "s", "--"),
    "SLL paper signed": LineStyle(_SKY, "D", ":"),
    "SLL anchor only": LineStyle(_SKY, "s", "--"),
    "RidgeCV": LineStyle(_ORANGE, "^", ":"),
    "BR logistic": LineStyle(_GREEN, "v"),
    "scikit-learn logistic": LineStyle(_GREEN, "P", "--"),
    "napkinXC BR": LineStyle(_GREEN, "X", ":"),
    "BR squared hinge": LineStyle(_PINK, "*"),
    "scikit-learn SVM": LineStyle(_PINK, "X", "--"),
    "LEML": LineStyle(_YELLOW, "D"),
    "SLEEC": LineStyle(_GREY, "P"),
    "napkinXC tree": LineStyle(_BROWN, "^"),
    "omikuji": LineStyle(_BLACK, "v"),
    "river": LineStyle(_GREY, "X", "--"),
}


def line_styles(labels: Sequence[str]) -> dict[str, LineStyle]:
    """By label: that of the method; what is no method takes colours and marks by turns."""
    unknown = [label for label in labels if label not in _KNOWN]
    turns = {
        label: LineStyle(_OTHERS[place % len(_OTHERS)], _MARKS[place % len(_MARKS)])
        for place, label in enumerate(unknown)
    }
    return {label: (_KNOWN | turns)[label] for label in labels}


def series(plot: Plot, frame: Frame) -> dict[str, dict[str, Frame]]:
    """By panel and line: frames with the columns ``y``, ``low`` and ``high`` by x; NaN where there is no spread."""
    found: dict[str, dict[str, Frame]] = {}
    for (panel, line), here in frame.groupby([plot.panel, plot.line], sort=False, observed=True):
        points = here.groupby(plot.x, sort=not plot.bars, observed=True)[plot.y]
        y = getattr(points, plot.middle)()
        if plot.spread == "quartiles":
            several = points.count() > 1
            low, high = (points.quantile(share).where(several) for share in (0.25, 0.75))
        else:
            half = _half(plot, here, points, y)
            low, high = y - half, y + half
        if len(y):
            found.setdefault(str(panel), {})[str(line)] = y.to_frame("y").assign(low=low, high=high)
    return found


def _half(plot: Plot, here: Frame, points: Any, y: Frame) -> Frame:
    if plot.spread == "given":
        return here.groupby(plot.x, sort=not plot.bars, observed=True)["error"].mean()
    return {"error": points.sem, "sd": points.std}[plot.spread]() if plot.spread else y * np.nan


def draw(plot: Plot, frame: Frame, out: Path, stem: str, forms: tuple[str, ...] = ("png", "svg")) -> list[Path]:
    """Write ``STEM-NAME.png`` and ``.svg`` into the folder: equal bytes for equal frames.

    Raises
    ------
    MissingExtraError : matplotlib is not installed
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "experiments", "drawing pictures") from None
    panels = series(plot, frame)
    styles = line_styles(list(dict.fromkeys(line for lines in panels.values() for line in lines)))
    paths = [out / f"{stem}-{plot.name}.{form}" for form in forms]
    style: Any = {**matplotlib.rcParamsDefault, **_STYLE}
    with matplotlib.rc_context(style):
        n_columns = max(1, len(panels) if len(panels) <= _MOST_BESIDE else _COLUMNS)
        n_rows = max(1, -(-len(panels) // n_columns))
        width = max(6.5, _PER_PANEL * n_columns + _BESIDE)
        figure = Figure(figsize=(width, _HEIGHT + _PER_ROW * (n_rows - 1)), dpi=_DPI, layout="constrained")
        grid = figure.subplots(n_rows, n_columns, squeeze=False)
        for axes in grid.ravel()[len(panels) :]:
            axes.set_axis_off()
        for axes, (title, lines) in zip(grid.ravel(), panels.items(), strict=False):
            axes.set_title(title, fontsize=9.0)
            axes.set_xlabel(plot.x_label)
            _fill(axes, plot, lines, styles)
        for axes in grid[:, 0]:
            axes.set_ylabel(plot.y_label)
        figure.suptitle(plot.title, fontsize=11.0)
        named = [axes.get_legend_handles_labels() for axes in grid.ravel()]
        handles = {label: handle for pair in named for handle, label in zip(*pair, strict=True)}
        shown = [label for label in styles if label in handles]
        figure.legend([handles[label] for label in shown], shown, loc="outside right center", frameon=False)
        figure.supxlabel("\n".join(textwrap.wrap(plot.caption, int(17 * width))), fontsize=8.0, color="#444444")
        for path, form in zip(paths, forms, strict=True):
            with saving(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                figure.savefig(path, metadata=_NO_TRACES[form])
    return paths


def _fill(axes: Axes, plot: Plot, lines: dict[str, Frame], styles: dict[str, LineStyle]) -> None:
    if plot.bars:
        _bars(axes, lines, styles)
        return
    for label, points in lines.items():
        style = styles[label]
        looks: dict[str, Any] = {"color": style.colour, "marker": style.mark, "ls": style.dash, "zorder": style.above}
        axes.plot(points.index, points["y"], lw=style.width, ms=3 + style.width, label=label, **looks)
        axes.fill_between(points.index, points["low"], points["high"], color=style.colour, alpha=0.15, lw=0)
    at = sorted({x for points in lines.values() for x in points.index})
    if plot.log_x:
        axes.set_xscale("log")
    if len(at) <= _MOST_TICKS:
        axes.set_xticks(at, [f"{x:g}" for x in at], rotation=45 if plot.log_x else 0)
        axes.set_xticks([], minor=True)
    if plot.log_y:
        axes.set_yscale("log")
    if plot.zero:
        axes.axhline(0.0, color="#000000", lw=1.2, zorder=1.5)


def _bars(axes: Axes, lines: dict[str, Frame], styles: dict[str, LineStyle]) -> None:
    groups = list(dict.fromkeys(name for points in lines.values() for name in points.index))
    labels = list(styles)
    width = 0.8 / max(1, len(labels))
    for label, points in lines.items():
        shift = (labels.index(label) - (len(labels) - 1) / 2) * width
        at = [groups.index(name) + shift for name in points.index]
        axes.bar(at, points["y"], width, color=styles[label].colour, label=label)
    axes.set_xticks(range(len(groups)), [str(name) for name in groups], rotation=40, ha="right", rotation_mode="anchor")
