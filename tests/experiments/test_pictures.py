"""Pictures: they can be read, and equal data gives equal files."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from math import nan
from pathlib import Path

import pytest

from streamlabel.experiments import budget_methods
from streamlabel.experiments.methods import METHODS
from streamlabel.experiments.picture_styles import line_styles
from streamlabel.experiments.pictures import Panel, Picture, Series, draw

matplotlib = pytest.importorskip("matplotlib")


def picture(kind: str = "lines", **other) -> Picture:
    x: tuple = (20.0, 50.0, 1000.0) if kind == "lines" else ("ridge", "ours", "theirs")
    series = (Series("alone", x, (50.0, 60.0, 70.0), (1.0, 2.0, 1.0)), Series("with the past", x, (55.0, 61.0, 70.5)))
    first = series[:1] if kind == "dots" else series
    return Picture(
        "auc", "Labels & rows", "annotated rows", "AUC (%)", (Panel("bibtex", first), Panel("delicious", series[:1])),
        reading="The past helps most where there is little.", spread="standard error over 5 seeds", kind=kind, **other,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["lines", "bars", "dots"])
def test_equal_pictures_are_equal_files_whatever_the_users_style(tmp_path, kind):
    first = draw(picture(kind), tmp_path / "a", "budget")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 20}):
        second = draw(picture(kind), tmp_path / "b", "budget")
    assert [path.name for path in first] == ["budget-auc.png", "budget-auc.svg"]
    for left, right in zip(first, second, strict=True):
        assert left.read_bytes() == right.read_bytes()


def texts_of(path: Path) -> list[str]:
    root = ElementTree.parse(path).getroot()  # noqa: S314
    return [" ".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_all_that_a_reader_needs_is_in_it(tmp_path):
    _, path = draw(picture(log_x=True, log_y=True), tmp_path, "budget")
    texts = texts_of(path)
    said = " ".join(texts)
    for wanted in (
        "Labels & rows",
        "AUC (%)",
        "bibtex",
        "delicious",
        "with the past",
        "The past helps most",
        "5 seeds",
    ):
        assert wanted in said
    assert texts.count("annotated rows") == 2
    assert {"20", "50", "1000"} <= set(texts)  # a tick at every place, in plain numbers
    assert texts.count("alone") == 1  # one legend


def test_the_pixels_are_those_of_the_series(tmp_path):
    """The line of a series is where its numbers say: the highest value of all lies highest."""
    import matplotlib.image

    grid = {}
    for value in (10.0, 90.0):
        line = Series("a", (1.0, 2.0, 3.0), (0.0, value, 100.0))
        path, _ = draw(Picture("p", "t", "x", "y", (Panel("", (line,)),), "r"), tmp_path, str(value))
        pixels = matplotlib.image.imread(path)
        blue = (pixels[..., 2] > 0.6) & (pixels[..., 0] < 0.1)
        gap = (blue.any(axis=0)[:-1] > blue.any(axis=0)[1:]).argmax() + 1  # the legend is right of it
        rows, columns = blue[:, :gap].nonzero()
        middle = abs(columns - (columns.min() + columns.max()) / 2) <= 1
        grid[value] = (rows.max() - rows[middle].mean()) / (rows.max() - rows.min())
    assert grid[10.0] == pytest.approx(0.1, abs=0.03)
    assert grid[90.0] == pytest.approx(0.9, abs=0.03)


def lines(*series: Series, **other) -> Picture:
    return Picture("p", "t", "x", "y", (Panel("", series),), "r", **other)


def test_a_single_line_has_its_name(tmp_path):
    _, path = draw(lines(Series("BR ridge", (1.0, 2.0), (3.0, 4.0))), tmp_path, "a")
    assert "BR ridge" in texts_of(path)


def test_the_legend_is_in_the_order_in_which_lines_end(tmp_path):
    ends = {"SLL": 2.0, "SLEEC": 9.0, "LEML": 5.0}
    _, path = draw(lines(*(Series(name, (1.0, 2.0), (4.0, end)) for name, end in ends.items())), tmp_path, "a")
    assert [text for text in texts_of(path) if text in ends] == ["SLEEC", "LEML", "SLL"]


def test_a_method_looks_the_same_whatever_else_is_in_the_picture():
    both = line_styles(["LEML", "SLL", "something"])
    assert line_styles(["SLL"])["SLL"] == both["SLL"] == line_styles(["own ridge", "with the past"])["with the past"]
    everything = line_styles([*METHODS, *budget_methods.METHODS])
    assert both["LEML"] == everything["LEML"]
    assert max(everything.values(), key=lambda style: style.width) == everything["SLL"]
    for names in (METHODS, budget_methods.METHODS):
        assert len({everything[name] for name in names}) == len(names)
        assert not any(line_styles([name])[name] == line_styles(["no method"])["no method"] for name in names)


def test_whole_places_have_their_tick_and_differences_their_zero(tmp_path):
    ages = Series("SLL", (1.0, 2.0, 3.0, 6.0, 11.0), (5.0, 4.0, 3.0, 2.0, 1.0))
    _, path = draw(lines(ages), tmp_path, "a")
    assert texts_of(path)[:5] == ["1", "2", "3", "6", "11"]
    _, with_zero = draw(lines(ages, zero=True), tmp_path, "b")
    assert with_zero.read_text().count("stroke: #000000; stroke-width: 1.2") == 1
    assert "stroke: #000000; stroke-width: 1.2" not in path.read_text()


def test_dots_stand_in_the_given_order_with_the_values_on_an_axis_that_need_not_begin_at_zero(tmp_path):
    panel = Panel("P@1", (Series("P@1", ("SLL", "LEML"), (61.0, 60.0), (0.1, 0.0)),))
    _, path = draw(Picture("p", "t", "method", "percent", (panel, panel), "r", kind="dots"), tmp_path, "a")
    texts = texts_of(path)
    assert [text for text in texts if text in ("SLL", "LEML")] == ["SLL", "LEML"]  # once, before the first panel
    assert texts.count("percent") == 2
    assert "0.0" not in texts


def bars_of(path: Path) -> list[tuple[float, float]]:
    """Upper and lower end of the error bars, in points down from the top, in the order in which they were drawn."""
    found = re.findall(
        r'<g id="LineCollection_.*?<path d="M [\d.]+ ([\d.]+)\s+L [\d.]+ ([\d.]+)', path.read_text(), re.S
    )
    return [(min(ends), max(ends)) for ends in ((float(a), float(b)) for a, b in found)]


def test_a_point_without_neighbours_has_an_error_bar_where_others_have_a_band(tmp_path):
    scale = Series("SLL", (1.0, 2.0), (0.0, 10.0), (1.0, 1.0))
    one, three = Series("LEML", (2.0,), (5.0,), (1.0,)), Series("SLEEC", (2.0,), (6.0,), (3.0,))
    _, path = draw(lines(scale, one, three), tmp_path, "a")
    (top, bottom), (higher, lower) = bars_of(path)
    assert lower - higher == pytest.approx(3 * (bottom - top), rel=1e-3)
    unknown = Series("LEML", (1.0, 2.0, 3.0), (5.0, 5.0, 5.0), (nan, 1.0, nan))
    assert len(bars_of(draw(lines(unknown), tmp_path, "b")[1])) == 1
    for without in (scale, Series("LEML", (2.0,), (5.0,)), Series("LEML", (2.0,), (5.0,), (nan,))):
        assert bars_of(draw(lines(without), tmp_path, "c")[1]) == []


def test_a_band_need_not_lie_in_the_middle(tmp_path):
    middle = Series("SLEEC", (1.0,), (5.0,), (1.0,))
    above = Series("LEML", (2.0,), (5.0,), band=((4.0, 8.0),))
    (top, bottom), (higher, same) = bars_of(draw(lines(middle, above), tmp_path, "a")[1])
    assert same == pytest.approx(bottom)
    assert same - higher == pytest.approx(2 * (bottom - top), rel=1e-3)


@pytest.mark.parametrize(("n_panels", "n_rows"), [(4, 1), (5, 2), (6, 2), (7, 3)])
def test_many_panels_stand_in_rows_with_one_legend(tmp_path, n_panels, n_rows):
    panels = tuple(Panel(f"panel {n}", (Series("alone", (1.0, 2.0), (3.0, 4.0)),)) for n in range(n_panels))
    _, path = draw(Picture("p", "t", "x", "how good", panels, "r"), tmp_path, "a")
    texts = texts_of(path)
    assert [text for text in texts if text.startswith("panel")] == [f"panel {n}" for n in range(n_panels)]
    assert texts.count("how good") == n_rows
    assert texts.count("alone") == 1
