"""``make results`` has every experiment, and what is installed for developers is what ``pyproject.toml`` says."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import click

from streamlabel.cli.reproduce import reproduce
from streamlabel.experiments.experiment import EXPERIMENTS

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_results_are_of_all_experiments_and_end_in_the_pages():
    lines = re.findall(r"^\t\$\(REPRODUCE\) (.+)$", MAKEFILE.partition("\nresults:")[2].partition("\n\n")[0], re.M)
    commands = [shlex.split(line) for line in lines]
    assert {name for name, *_ in commands} == {*EXPERIMENTS, "report"}
    words = "src/streamlabel/experiments/pages/results.md"
    assert commands[-1] == ["report", "--from", "results", "--template", words, "--out", "docs/results.md"]
    words, out = (
        "src/streamlabel/experiments/pages/found.md",
        ["--out", "docs/found.md", "--pictures", "docs/_static/found"],
    )
    assert ["report", "--from", "results/found", "--template", words, *out] in commands
    for name, *arguments in commands:
        command = reproduce.get_command(click.Context(reproduce), name)
        parameters = command.make_context(name, arguments).params
        about_found = name in ("questions", "names")
        assert name == "report" or parameters["out"] == Path("results/found" if about_found else "results")


def test_every_extra_is_installed_for_developers():
    (extras,) = re.findall(r"^EXTRAS := (.+)$", MAKEFILE, re.M)
    assert extras.split(",") == sorted(PROJECT["project"]["optional-dependencies"].keys() - {"gpu"})  # PyTorch is apart


def test_the_lock_has_every_requirement_and_names_no_place():
    """For each Python from 3.11 on: a line may hold for some of them only."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; [^/@]+)?", line) for line in lines)
    project = PROJECT["project"]
    groups = [*project["optional-dependencies"].values(), *PROJECT["dependency-groups"].values()]
    wanted = project["dependencies"] + [one for group in groups for one in group if isinstance(one, str)]
    locked = {line.partition("==")[0] for line in lines}
    assert {re.match(r"[\w-]+", one)[0] for one in wanted} - {"torch"} <= locked
