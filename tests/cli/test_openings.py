"""A command opens the catalogue of a model once, whatever it does with it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from streamlabel.cli import COMMANDS
from streamlabel.store import sqlite
from tagged_texts import tagged_texts

DATA = tagged_texts(300, 100)
LABEL = DATA.tags[0][0]
TEXTS = [
    "fit NEW tagged.jsonl",
    "fit NEW rows.svm",
    "add-all MODEL new.jsonl --dry-run",
    "add-all MODEL new.jsonl",
    "add-label MODEL hospitals --yes yes.txt",
    "add-label MODEL football --yes yes.txt --replace",
    "add-label MODEL hospitals --yes yes.txt --dry-run",
    "add-label MODEL football --yes yes.txt --more",
    "next MODEL football --pool yes.txt",
    "next MODEL football --pool yes.txt --out questions.csv",
    "next MODEL football --pool yes.txt --ask",
    "update MODEL later.jsonl",
    "suggest MODEL words",
    "explain MODEL words football",
    "predict MODEL tagged.jsonl",
    "evaluate MODEL tagged.jsonl",
    "labels MODEL",
    "labels MODEL football",
    "labels MODEL --revision 1",
    "relations MODEL football",
    "history MODEL",
    "diff MODEL 1",
    "rollback MODEL 1",
    "rollback MODEL 1 --dry-run",
    "undo MODEL",
    "rollback MODEL --label football",
    "rename MODEL football soccer",
    "rename MODEL football soccer --dry-run",
    "retire MODEL football",
    "merge MODEL football LABEL both",
    "threshold MODEL football",
    "threshold MODEL football 0.5",
    "threshold MODEL football auto",
    "threshold MODEL LABEL --tune tagged.jsonl",
    "threshold MODEL LABEL --precision 0.3",
    "threshold MODEL football --precision 0.1 --dry-run",
    "import MODEL answers.jsonl --format prodigy",
    "import MODEL answers.jsonl --format prodigy --dry-run",
    "import NEW answers.jsonl --format prodigy",
    "export MODEL out.npz",
    "vacuum MODEL",
    "vacuum MODEL --dry-run",
]
ROWS = [
    "add-label MODEL third --file rows.svm --column label_0",
    "predict MODEL rows.svm",
    "evaluate MODEL rows.svm",
    "export MODEL out.npz",
    "threshold MODEL label_0 0.5",
]
OTHERS = {"doctor": "it reads the catalogue anew for every kind of damage"}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the directories whose catalogues are opened: for reading, and before one is written to."""
    found: list[str] = []
    inner = sqlite._open_reader

    def counted(folder: Path) -> sqlite3.Connection:
        found.append(folder.name)
        return inner(folder)

    monkeypatch.setattr(sqlite, "_open_reader", counted)
    return found


@pytest.fixture
def files(tmp_path: Path) -> Path:
    tagged = [json.dumps({"text": text, "tags": tags}) for text, tags in zip(DATA.texts, DATA.tags, strict=True)]
    answers = [{"text": DATA.texts[i], "label": "rail", "answer": "accept" if i % 3 else "reject"} for i in range(30)]
    rows = [f"{i % 2} 1:{i % 2} 2:{i % 3} 3:1" for i in range(12)]
    for name, lines in {
        "tagged.jsonl": tagged,
        "answers.jsonl": list(map(json.dumps, answers)),
        "rows.svm": rows,
        "new.jsonl": [json.dumps({"text": text, "tags": ["new"] * (i % 2)}) for i, text in enumerate(DATA.texts)],
        "yes.txt": DATA.texts[:3],
        "later.jsonl": [
            json.dumps({"text": f"{text} once more", "tags": tags})
            for text, tags in list(zip(DATA.texts, DATA.tags, strict=True))[:9]
        ],
    }.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return tmp_path


def run_in(files: Path, line: str, call: Callable[..., Result]) -> None:
    places: dict[str, Any] = {"MODEL": files / "model", "NEW": files / "new", "LABEL": LABEL}
    words = [places.get(word, files / word if "." in word and word[0].isalpha() else word) for word in line.split()]
    call(*words)


@pytest.mark.parametrize("line", TEXTS)
def test_a_command_opens_a_model_of_texts_once(
    line: str, model: Path, files: Path, opened: list[str], call: Callable[..., Result]
) -> None:
    run_in(files, line, call)
    assert [name for name in opened if not name.startswith(".")] == ["new" if "NEW" in line else "model"]


@pytest.mark.parametrize("line", ROWS)
def test_a_command_opens_a_model_of_rows_once(
    line: str, files: Path, opened: list[str], call: Callable[..., Result]
) -> None:
    run_in(files, "fit MODEL rows.svm", call)
    opened.clear()
    run_in(files, line, call)
    assert opened == ["model"]


def test_no_command_is_left_out() -> None:
    loaded = {name: lazy.load() for name, lazy in COMMANDS.items()}
    on_models = {
        name
        for name, command in loaded.items()
        if any(isinstance(one, click.Argument) and one.name == "model" for one in command.params)
    }
    assert on_models == {line.split()[0] for line in TEXTS} | OTHERS.keys()
