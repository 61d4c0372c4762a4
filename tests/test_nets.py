"""The house may be rebuilt; what it says may not change: scores, answers of commands, standings of the records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nets import make_nets

NETS = Path(__file__).with_name("nets")


def read(name: str) -> Any:
    return json.loads((NETS / f"{name}.json").read_text(encoding="utf-8"))


def test_scores_are_what_they_were() -> None:
    expected, found = read("scores"), make_nets.scores()
    assert list(found) == list(expected)
    for kind, (values, thresholds) in found.items():
        np.testing.assert_allclose(values, expected[kind][0], rtol=1e-5, atol=1e-6, err_msg=kind)
        np.testing.assert_allclose(thresholds, expected[kind][1], rtol=1e-4, atol=1e-5, err_msg=kind)


def test_commands_answer_as_they_did(tmp_path: Path) -> None:
    expected, found = read("commands"), make_nets.commands(tmp_path)
    assert list(found) == list(expected)
    for line, answer in found.items():
        assert_alike(answer, expected[line], line)


def assert_alike(found: Any, expected: Any, where: str) -> None:
    if isinstance(expected, dict):
        assert isinstance(found, dict), where
        assert list(found) == list(expected), where
        for key, value in expected.items():
            assert_alike(found[key], value, f"{where}: {key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_alike(one, other, f"{where}[{place}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-5), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("name", ["budget", "figure1", "table2", pytest.param("timeline", marks=pytest.mark.slow)])
def test_standings_of_the_committed_records(name: str) -> None:
    pytest.importorskip("pandas")
    expected = (NETS / "standings.csv").read_text(encoding="utf-8").splitlines()
    mine = [line for line in expected if line.startswith(f"{name},")]
    assert make_nets.standings_table([name]).splitlines() == [expected[0], *mine]
    assert mine
