"""``make results`` has every experiment, by commands that the command line understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from streamlabel.cli.reproduce import reproduce
from streamlabel.experiments.experiment import EXPERIMENTS

MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")


def test_results_are_of_all_experiments_and_end_in_the_page():
    lines = re.findall(r"^\t\$\(REPRODUCE\) (.+)$", MAKEFILE.partition("\nresults:")[2].partition("\n\n")[0], re.M)
    commands = [shlex.split(line) for line in lines]
    assert {name for name, *_ in commands} == {*EXPERIMENTS, "report"}
    words = "src/streamlabel/experiments/pages/results.md"
    assert commands[-1] == ["report", "--from", "results", "--template", words, "--out", "docs/results.md"]
    for name, *arguments in commands:
        command = reproduce.get_command(click.Context(reproduce), name)
        parameters = command.make_context(name, arguments).params
        assert name == "report" or parameters["out"] == Path("results")
