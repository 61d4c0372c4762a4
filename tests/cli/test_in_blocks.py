"""fit, add-all and predict in blocks say and store what they do without."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from streamlabel import ModelStore, Tagger
from streamlabel.cli import in_blocks
from streamlabel.scale import out_of_core
from streamlabel.scale.row_files import RowFiles
from tagged_texts import tagged_texts

Call = Callable[..., Result]
Ask = Callable[..., Any]


def xc_text(X: np.ndarray, Y: np.ndarray) -> str:
    rows = [
        f"{','.join(map(str, np.flatnonzero(y)))} {' '.join(f'{j}:{v:.6f}' for j, v in enumerate(x))}"
        for x, y in zip(X, Y, strict=True)
    ]
    return "\n".join([f"{len(X)} {X.shape[1]} {Y.shape[1]}", *rows, ""])


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5))
    Y = (X[:, [0, 1, 2, 0]] + 0.5 * rng.standard_normal((120, 4)) > 0.4).astype(int)
    (tmp_path / "past.txt").write_text(xc_text(X, Y[:, :3]))
    (tmp_path / "all.txt").write_text(xc_text(X, Y))
    return tmp_path


def test_rows_in_blocks_are_rows(rows: Path, ask: Ask, call: Call) -> None:
    would = ask("fit", rows / "blocks", rows / "past.txt", "--in-blocks", "--dry-run")
    assert (would["n_rows"], would["n_features"], would["n_labels"], would["texts"]) == (120, 5, 3, False)
    assert not (rows / "blocks").exists()
    found = ask("fit", rows / "blocks", rows / "past.txt", "--in-blocks")
    call("fit", rows / "whole", rows / "past.txt")
    with ModelStore.open(rows / "blocks") as blocks, ModelStore.open(rows / "whole") as whole:
        assert found["beta"] == pytest.approx(whole.model().beta_)
        np.testing.assert_allclose(blocks.model().coef_, whole.model().coef_, atol=1e-6)
    assert ask("add-all", rows / "blocks", rows / "all.txt", "--dry-run")["labels"] == ["label_3"]
    learned = ask("add-all", rows / "blocks", rows / "all.txt")
    assert (learned["labels"], learned["revision"]) == (["label_3"], 2)
    for more in ([], ["--dry-run"]):
        said = call("add-all", rows / "blocks", rows / "all.txt", *more, code=1).stderr
        assert "no label that the model does not know" in said
    assert (
        "no label 'x'" in call("add-all", rows / "blocks", rows / "all.txt", "--label", "x", "--dry-run", code=1).stderr
    )
    assert "label_0" in call("relations", rows / "blocks", "label_3").stdout
    for model, more in (("blocks", ["--in-blocks"]), ("blocks", [])):
        out = rows / f"labels{len(more)}.jsonl"
        call("predict", rows / model, rows / "past.txt", "--out", out, "--probabilities", *more)
    assert (rows / "labels1.jsonl").read_text() == (rows / "labels0.jsonl").read_text()
    assert not list(rows.glob("*unfinished*"))


@pytest.mark.parametrize("command", ["fit", "add-all"])
def test_the_sums_stay_until_the_model_is_stored(
    command: str, rows: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    if command == "add-all":
        call("fit", rows / "m", rows / "past.txt")
    monkeypatch.setattr(in_blocks, "fit_files", partial(out_of_core.fit_files, seconds=0.0))
    monkeypatch.setattr(in_blocks, "add_labels_from_files", partial(out_of_core.add_labels_from_files, seconds=0.0))
    monkeypatch.setattr(in_blocks, "RowFiles", partial(RowFiles, piece_bytes=400))
    given = (command, rows / "m", rows / "all.txt", *(["--in-blocks"] if command == "fit" else []))
    with monkeypatch.context() as patch:
        patch.setattr(ModelStore, "create", full)
        patch.setattr(ModelStore, "append", full)
        call(*given, code=1)
    assert (rows / "m.unfinished.npz").exists()
    assert "going on from" in call(*given).stderr
    assert not (rows / "m.unfinished.npz").exists()


def test_a_prediction_does_not_go_on_with_other_columns(
    rows: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("fit", rows / "m", rows / "past.txt")
    monkeypatch.setattr(in_blocks, "RowFiles", partial(RowFiles, piece_bytes=400))
    given = ("predict", rows / "m", rows / "past.txt", "--in-blocks", "--out", rows / "o.jsonl")

    room, replacing = iter(range(3)), out_of_core.replacing

    def nearly_full(path: Path) -> Any:
        if next(room, None) is None:
            raise OSError(28, "No space left on device")
        return replacing(path)

    with monkeypatch.context() as patch:
        patch.setattr(out_of_core, "replacing", nearly_full)
        call(*given, code=1)
    assert "other settings" in call(*given, "--probabilities", code=4).stderr
    call(*given)
    assert len((rows / "o.jsonl").read_text().splitlines()) == 120


@pytest.mark.parametrize("vectorizer", ["tfidf", "hashing"])
def test_texts_in_blocks_are_tagged(vectorizer: str, tmp_path: Path, ask: Ask, call: Call) -> None:
    data = tagged_texts(300, 100)
    path, later = tmp_path / "texts.jsonl", tmp_path / "later.jsonl"
    for file, tags in ((path, data.tags), (later, [["new"] if "game" in text else [] for text in data.texts])):
        records = [{"text": text, "tags": names} for text, names in zip(data.texts, tags, strict=True)]
        file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    call("fit", tmp_path / "model", path, "--in-blocks", "--vectorizer", vectorizer)
    assert ask("evaluate", tmp_path / "model", path)["P@1"] > 0.8
    assert ask("add-all", tmp_path / "model", later)["labels"] == ["new"]
    with Tagger.open(tmp_path / "model") as tagger:
        assert "new" in tagger.label_names_
    said = call("predict", tmp_path / "model", path, "--in-blocks", "--out", tmp_path / "out.jsonl", code=1).stderr
    assert "texts, which are always read in blocks" in said


def test_what_does_not_go_with_blocks(rows: Path, call: Call) -> None:
    assert "squared" in call("fit", rows / "m", rows / "all.txt", "--in-blocks", "--loss", "logistic", code=2).stderr
    call("fit", rows / "m", rows / "all.txt")
    assert "--out NAME.jsonl" in call("predict", rows / "m", rows / "all.txt", "--in-blocks", code=2).stderr
    call("add-all", rows / "none", rows / "all.txt", code=3)
