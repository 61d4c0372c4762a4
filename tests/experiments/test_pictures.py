"""Pictures: they can be read, and equal data gives equal files."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from streamlabel.experiments.pictures import Panel, Picture, Series, draw

matplotlib = pytest.importorskip("matplotlib")


def picture(kind: str = "lines", **other) -> Picture:
    x: tuple = (20.0, 50.0, 1000.0) if kind == "lines" else ("ridge", "ours", "theirs")
    series = (Series("alone", x, (50.0, 60.0, 70.0), (1.0, 2.0, 1.0)), Series("with the past", x, (55.0, 61.0, 70.5)))
    return Picture(
        "auc", "Labels & rows", "annotated rows", "AUC (%)", (Panel("bibtex", series), Panel("delicious", series[:1])),
        reading="The past helps most where there is little.", spread="standard error over 5 seeds", kind=kind, **other,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["lines", "bars"])
def test_equal_pictures_are_equal_files_whatever_the_users_style(tmp_path, kind):
    first = draw(picture(kind), tmp_path / "a", "budget")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 20}):
        second = draw(picture(kind), tmp_path / "b", "budget")
    assert [path.name for path in first] == ["budget-auc.png", "budget-auc.svg"]
    for left, right in zip(first, second, strict=True):
        assert left.read_bytes() == right.read_bytes()


def test_all_that_a_reader_needs_is_in_it(tmp_path):
    _, path = draw(picture(log_x=True, log_y=True), tmp_path, "budget")
    root = ElementTree.parse(path).getroot()  # noqa: S314
    texts = [" ".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")]
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
        rows, columns = blue.nonzero()
        middle = abs(columns - (columns.min() + columns.max()) / 2) <= 1
        grid[value] = (rows.max() - rows[middle].mean()) / (rows.max() - rows.min())
    assert grid[10.0] == pytest.approx(0.1, abs=0.03)
    assert grid[90.0] == pytest.approx(0.9, abs=0.03)
