"""Suggestions without scikit-learn are those of the tagger, to the last bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from streamlabel import StreamingLabelClassifier, Tagger
from streamlabel.cli.suggest import N_WORDS
from streamlabel.errors import DataError
from streamlabel.store.model_store import ModelStore
from streamlabel.tagging import explain
from streamlabel.tagging.suggester import Suggester
from tagged_texts import tagged_texts

DATA = tagged_texts(300, 100)
ODD = ["", "zzzz", "Überschwemmung im Café", DATA.texts[0]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suggester")
    for name in ("tfidf", "hashing"):
        Tagger(name).fit(DATA.texts, DATA.tags).save(path / name)
    with Tagger.open(path / "tfidf", "a") as living:
        living.learn("football", DATA.rows["football"][:8])
    return path


@pytest.mark.parametrize("name", ["tfidf", "hashing"])
def test_scores_are_those_of_the_tagger_to_the_last_bit(folder: Path, name: str) -> None:
    texts = [*DATA.unseen, *ODD]
    tagger, suggester = Tagger.open(folder / name), Suggester.open(folder / name)
    for k in (1, 5, 1000):
        assert suggester.suggest(texts, k)[0] == tagger.suggest(texts, k)
    assert suggester.suggest(texts)[1] == tagger.knows(texts)
    assert list(suggester.thresholds.values()) == tagger.classifier_.thresholds_.tolist()


def test_a_model_of_rows_is_refused(tmp_path: Path) -> None:
    X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    ModelStore.create(tmp_path / "rows", StreamingLabelClassifier().fit(X, [[0, 1], [1, 0], [1, 1], [0, 0]])).close()
    with pytest.raises(DataError, match="a model without texts"):
        Suggester.open(tmp_path / "rows")


@pytest.mark.parametrize("command", [["suggest", "tfidf", "bird flu"], ["labels", "tfidf"], ["history", "tfidf"]])
def test_commands_that_read_load_no_scikit_learn(folder: Path, command: list[str]) -> None:
    code = "import sys; from streamlabel.cli import main; main(sys.argv[1:], standalone_mode=False)"
    code += "; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    found = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=folder, check=True, capture_output=True, text=True
    )
    loaded = set(found.stdout.splitlines()[-1].split())
    assert "streamlabel" in loaded
    assert not loaded & {"sklearn", "joblib", "pandas", "rich"}


def test_the_command_line_shows_as_many_words_as_python() -> None:
    assert N_WORDS == explain.N_WORDS
