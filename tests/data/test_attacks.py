"""Small files that would become large, and files that somebody planted: refused early, one clear message."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from streamlabel.data import files
from streamlabel.data.jsonl import read_jsonl
from streamlabel.data.load import guess_columns, load_dataset
from streamlabel.errors import DataError

needs_links = pytest.mark.skipif(not hasattr(os, "symlink"), reason="there are no links")


@pytest.mark.parametrize("arrow_dictionary", [True, False])
@pytest.mark.parametrize("column", ["text", "labels"])
def test_strings_of_a_dictionary_count_as_often_as_they_stand_there(
    tmp_path: Path, column: str, arrow_dictionary: bool
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    long, n_rows = "x" * 100_000, 2_000
    kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string()) if arrow_dictionary else pyarrow.string()
    texts = pyarrow.array([long if column == "text" else "short"] * n_rows, kind if column == "text" else None)
    labels = pyarrow.array([[long if column == "labels" else "a"]] * n_rows, pyarrow.list_(pyarrow.string()))
    path = tmp_path / "bomb.parquet"
    parquet.write_table(pyarrow.table({"text": texts, "labels": labels}), path, compression="zstd")
    assert path.stat().st_size < 200_000
    from streamlabel.data.parquet import read_parquet

    with pytest.raises(DataError, match="take over 5000000 bytes in memory"):
        read_parquet(path, max_bytes=5_000_000)


def test_features_that_were_only_declared_are_counted_as_what_they_become(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "available_memory", lambda: 8 << 30)
    path = tmp_path / "declared.txt"
    path.write_text("4 40000000 3\n0 0:1\n1 1:1\n0 1:2\n2 0:3\n")
    with pytest.raises(DataError, match=r"40000000 features and 3 labels needs 20\.9 GiB"):
        load_dataset(path)
    path.write_text("4 2000 3\n0 0:1\n1 1:1\n0 1:2\n2 0:3\n")
    assert load_dataset(path).n_features == 2000


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz", "a.txt.gz"])
def test_nothing_packed_into_little_ends_soon(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BLANK_LINES", 10_000)
    monkeypatch.setattr(files, "MOST_BLANK_BYTES", 1 << 20)
    path = tmp_path / name
    with gzip.open(path, "wb", compresslevel=9) as packed:
        packed.write(b"4 3 2\n0 0:1\n" if "txt" in name else b"")
        for _ in range(30):
            packed.write(b"\n" * (1 << 20))
    with pytest.raises(DataError, match="in a row; is it the right file"):
        read_jsonl(path) if "jsonl" in name else load_dataset(path)


@needs_links
def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "out.csv"
    victim.write_text("mine")
    (tmp_path / f".out.csv.{os.getpid()}.new").symlink_to(victim)
    with files.replacing(path) as handle:
        handle.write(b"theirs")
    assert victim.read_text() == "mine"
    assert path.read_bytes() == b"theirs"
    assert not path.is_symlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.csv", "victim"]


@needs_links
def test_a_link_that_comes_back_at_once_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim, path = tmp_path / "victim", tmp_path / "out.csv"
    victim.write_text("mine")
    monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: None)
    (tmp_path / f".out.csv.{os.getpid()}.new").symlink_to(victim)
    with pytest.raises(DataError, match="cannot be written"), files.replacing(path):
        pass
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_a_table_in_utf_16_is_said_to_be(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,labels\nhello there,a;b\nsecond one,b\n", encoding=encoding)
    with pytest.raises(DataError, match="UTF-16"):
        guess_columns(str(path), path.read_bytes())
