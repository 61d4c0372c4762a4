"""The import contracts hold, and they bite: a planted forbidden import breaks them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="import-linter is a development tool")

ROOT = Path(__file__).parents[1]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [*command, "--config", str(folder / "pyproject.toml"), "--no-cache"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(
        ROOT / "src" / "streamlabel", tmp_path / "streamlabel", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold(copy):
    result = lint(copy)
    assert result.returncode == 0, result.stdout
    assert "0 broken" in result.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("stats/label_gram.py", "import streamlabel.streaming.classifier", "imports go back only"),
        ("structure/lasso.py", "import rich", "prints nothing"),
        ("streaming/classifier.py", "import torch", "PyTorch and Dask enter through scale only"),
        ("data/npz.py", "import pickle", "No pickle anywhere"),
    ],
)
def test_a_planted_import_breaks_them(copy, module, line, contract):
    path = copy / "streamlabel" / module
    head, _, tail = path.read_text().partition("from __future__ import annotations\n")
    path.write_text(f"{head}from __future__ import annotations\n{line}\n{tail}")
    result = lint(copy)
    assert result.returncode != 0
    broken = [text for text in result.stdout.splitlines() if "BROKEN" in text]
    assert broken
    assert contract in " ".join(result.stdout.split())
