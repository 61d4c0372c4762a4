"""Pictures: their lines are groups of the frame, their bytes are equal for equal frames."""

from __future__ import annotations

from dataclasses import replace
from statistics import quantiles

import numpy as np
import pytest

from streamlabel.errors import StreamlabelError
from streamlabel.experiments.plots import draw, line_styles, series
from streamlabel.experiments.spec import Plot

pd = pytest.importorskip("pandas")
PLOT = Plot("p1", "Values", "batch", "p1", "labels", "P@1 (%)", "They grow.")
DRAW = np.random.default_rng(0)
FRAME = pd.DataFrame(
    [
        {"dataset": dataset, "method": method, "batch": batch, "seed": seed, "p1": DRAW.normal(50.0, 5.0), "error": 2.0}
        for dataset in ("one", "two")
        for method in ("SLL", "BR ridge")
        for batch in (5, 10)
        for seed in range(4)
    ]
)


@pytest.mark.parametrize(("spread", "half"), [("error", "sem"), ("sd", "std")])
def test_a_line_is_the_mean_by_x_with_its_band(spread, half):
    found = series(replace(PLOT, spread=spread), FRAME)
    assert {panel: list(lines) for panel, lines in found.items()} == {
        name: ["SLL", "BR ridge"] for name in ("one", "two")
    }
    here = FRAME[(FRAME["dataset"] == "two") & (FRAME["method"] == "SLL")].groupby("batch")["p1"]
    line = found["two"]["SLL"]
    np.testing.assert_allclose(line["y"], here.mean())
    np.testing.assert_allclose(line["high"] - line["y"], getattr(here, half)())


def test_bands_of_medians_are_quartiles_where_there_are_several_runs():
    here = FRAME[
        (FRAME["dataset"] == "one") & (FRAME["method"] == "SLL") & ((FRAME["batch"] == 5) | (FRAME["seed"] == 0))
    ]
    line = series(replace(PLOT, middle="median", spread="quartiles"), here)["one"]["SLL"]
    low, middle, high = quantiles(here[here["batch"] == 5]["p1"], method="inclusive")
    np.testing.assert_allclose(line.loc[5], [middle, low, high])
    assert np.isnan(line.loc[10, ["low", "high"]].astype(float)).all()


def test_a_given_error_is_the_band_and_the_least_run_may_be_the_point():
    line = series(replace(PLOT, spread="given", middle="min"), FRAME)["one"]["SLL"]
    least = FRAME[(FRAME["dataset"] == "one") & (FRAME["method"] == "SLL")].groupby("batch")["p1"].min()
    np.testing.assert_allclose(line["y"], least)
    np.testing.assert_allclose(line["high"] - line["low"], 4.0)


def test_a_method_looks_the_same_in_every_picture():
    assert line_styles(["SLL", "LEML"])["SLL"] == line_styles(["x", "SLL"])["SLL"]
    assert line_styles(["x", "y"])["x"] != line_styles(["x", "y"])["y"]


@pytest.mark.parametrize("plot", [PLOT, replace(PLOT, bars=True, spread=""), replace(PLOT, log_x=True, zero=True)])
def test_equal_frames_give_equal_bytes(plot, tmp_path):
    pytest.importorskip("matplotlib")
    first, second = (draw(plot, FRAME, tmp_path / name, "toy") for name in ("a", "b"))
    assert [path.name for path in first] == ["toy-p1.png", "toy-p1.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert "They grow." in first[1].read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StreamlabelError, match="are kept"):
        draw(PLOT, FRAME, tmp_path / "file", "toy")
