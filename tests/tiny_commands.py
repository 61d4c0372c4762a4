"""``streamlabel reproduce table2`` and ``figure1`` on the tiny set, called in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import click
from click.testing import CliRunner, Result

from streamlabel.cli import main, reproduce
from streamlabel.cli.group import LazyCommand
from streamlabel.experiments import report
from streamlabel.experiments.spec import Frame, Plot
from tiny_runs import EXPERIMENTS, TINY


def has(package: str) -> bool:
    """Whether an optional package is installed."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def no_picture(plot: Plot, frame: Frame, out: Path, stem: str, forms: tuple[str, ...]) -> list[Path]:
    """Drawing takes half a second a picture."""
    return [out / f"{stem}-{plot.name}.png"]


class _Tiny(LazyCommand):
    def load(self) -> click.Command:
        return reproduce._command(EXPERIMENTS[self.target])


@contextmanager
def _tiny_commands(draws: bool) -> Iterator[None]:
    lazy = {name: _Tiny(name, "On the tiny set.") for name in EXPERIMENTS}
    with (
        mock.patch.dict(reproduce.reproduce.lazy, lazy),
        mock.patch.object(reproduce, "resolve_sets", return_value=(TINY,)),
        mock.patch.object(report, "draw", report.draw if draws else no_picture),
    ):
        yield


def run_tiny(name: str, out: Path, *arguments: str, jobs: int = 1, draws: bool = False) -> Result:
    """Hyper-parameters are chosen unless ``--quick`` is among the arguments."""
    with _tiny_commands(draws):
        words = ["reproduce", name, "--out", str(out), "--jobs", str(jobs), "--dataset", TINY, *arguments]
        return CliRunner().invoke(main, words)


def records_in(path: Path) -> list[str]:
    """Sorted, without times."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        values = {key: value for key, value in json.loads(line).items() if not key.endswith("seconds")}
        found.append(json.dumps(values))
    return sorted(found)
