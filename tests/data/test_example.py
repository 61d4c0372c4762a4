"""The example files: readable, without the label that is to be learned, and never written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlabel.data.jsonl import read_jsonl
from streamlabel.data.news import HELD_BACK, example_files, starter_files, write_files
from streamlabel.errors import ConflictError


@pytest.mark.parametrize("files", [example_files(200), example_files(300, seed=5), starter_files()])
def test_the_files_are_tagged_texts_and_answers_about_others(tmp_path: Path, files: dict[str, str]) -> None:
    paths = write_files(tmp_path / "new" / "folder", files)
    data = read_jsonl(paths[0])
    assert HELD_BACK not in data.label_names
    assert data.Y.sum() > data.n_rows // 2
    yes, no, pool = (set(path.read_text().splitlines()) for path in paths[1:])
    assert pool
    assert yes
    assert no
    assert not (yes | no) & set(data.texts)
    assert not yes & no


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "no.txt").write_text("mine")
    with pytest.raises(ConflictError, match=r"no\.txt"):
        write_files(tmp_path, starter_files())
    assert (tmp_path / "no.txt").read_text() == "mine"
    assert not (tmp_path / "yes.txt").exists()
