"""Every experiment in its quick form, as a person runs it: it ends in time and leaves records, a page and JSON."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from streamlabel.experiments.methods import METHODS, installed
from tiny_commands import has

MOST_SECONDS = 120.0  # of the processor, so that a busy machine does not matter


ALL = ("--methods", ",".join(installed(METHODS)))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(
            (name, ())
            for name in ("table2", "figure1", "figure2", "table3", "bounds", "budget", "timeline", "questions", "names")
        ),
        *(pytest.param(name, ALL, marks=pytest.mark.slow) for name in ("table2", "figure1", "figure2")),
    ],
)
def test_quick_forms_end_within_two_minutes(name: str, options: tuple[str, ...], tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "streamlabel", "reproduce", name, "--quick", "--jobs", "1", "--out", str(tmp_path)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=3600, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert after.ru_utime - before.ru_utime < MOST_SECONDS
    records = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text("utf-8").splitlines()]
    assert records
    if not has("pandas"):
        assert "no page: " in done.stderr
        return
    assert (tmp_path / f"{name}.md").read_text("utf-8").startswith("# ")
    assert json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
