"""A small tagger on disk, made once; a test that changes it gets a copy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from streamlabel import Tagger
from streamlabel.cli import main
from tagged_texts import tagged_texts


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tagged_texts(300, 100)
    tagger = Tagger().fit(data.texts, data.tags)
    path = tmp_path_factory.mktemp("cli") / "model"
    tagger.save(path)
    with Tagger.open(path, "a", actor="ann") as living:
        living.learn("football", yes=data.rows["football"][:8])
    return path


@pytest.fixture
def model(made_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made_once, tmp_path / "model"))


@pytest.fixture
def call() -> Callable[..., Result]:
    """Runs a command in this process."""

    def run(*arguments: object, code: int = 0, input: str | None = None) -> Result:
        result = CliRunner().invoke(main, [str(a) for a in arguments], prog_name="streamlabel", input=input)
        unexpected = result.exception if not isinstance(result.exception, SystemExit) else None
        assert result.exit_code == code, f"{result.output}\n{unexpected!r}"
        return result

    return run


@pytest.fixture
def ask(call: Callable[..., Result]) -> Callable[..., Any]:
    """Runs a command with ``--json``, and gives what it said."""
    return lambda *arguments, **options: json.loads(call(*arguments, "--json", **options).stdout)
