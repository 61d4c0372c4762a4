"""The door for all formats: by suffix, by how the file begins, and what it says when it cannot tell."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from streamlabel.data.load import FORMATS, format_of, load_dataset
from streamlabel.errors import DataError, NotFoundError
from streamlabel.types import Dataset, TextDataset

Y_EXPECTED = [[1, 0], [0, 1]]
CONTENTS = {
    "jsonl": '{"text": "x", "labels": ["label_0"]}\n{"text": "y", "labels": ["label_1"]}\n',
    "csv": "text,labels\nx,label_0\ny,label_1\n",
    "xc": "2 3 2\n0 0:1.5 2:2\n1 1:3\n",
    "svmlight": "0 1:1.5 3:2\n1 2:3\n",
    "arff": "% a comment\n@relation 'r: -C 2'\n@attribute label_0 {0,1}\n@attribute label_1 {0,1}\n"
    "@attribute a numeric\n@attribute b numeric\n@attribute c numeric\n@data\n1,0,1.5,0,2\n0,1,0,3,0\n",
}
SUFFIXES = {
    "jsonl": [".jsonl", ".ndjson", ".JSONL"],
    "csv": [".csv"],
    "xc": [".txt"],
    "svmlight": [".svm", ".svmlight", ".libsvm"],
    "arff": [".arff"],
}


def check(dataset: Dataset | TextDataset) -> None:
    np.testing.assert_array_equal(dataset.Y.toarray(), Y_EXPECTED)
    assert dataset.label_names == ("label_0", "label_1")
    if isinstance(dataset, TextDataset):
        assert list(dataset.texts) == ["x", "y"]
    else:
        np.testing.assert_array_equal(dataset.X.toarray(), [[1.5, 0, 2], [0, 3, 0]])


@pytest.mark.parametrize(("name", "suffix"), [(name, suffix) for name in SUFFIXES for suffix in SUFFIXES[name]])
def test_by_suffix(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"data{suffix}"
    path.write_text(CONTENTS[name], encoding="utf-8")
    check(load_dataset(path))
    check(load_dataset(str(path)))


@pytest.mark.parametrize("name", sorted(set(CONTENTS) - {"csv"}))
def test_by_beginning(tmp_path: Path, name: str) -> None:
    path = tmp_path / "data.unknown"
    path.write_text(CONTENTS[name], encoding="utf-8")
    assert format_of(path) == name
    check(load_dataset(path))


@pytest.mark.parametrize("name", sorted(CONTENTS))
def test_by_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "data.zip"
    path.write_text(CONTENTS[name], encoding="utf-8")
    check(load_dataset(path, format=name))


def test_tabs(tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    path.write_text(CONTENTS["csv"].replace(",", "\t"), encoding="utf-8")
    check(load_dataset(path))


def test_npz_files_and_folders(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "X_train.npz", sparse.csr_array(np.array([[1.5, 0, 2], [0, 3, 0]])))
    sparse.save_npz(tmp_path / "Y_train.npz", sparse.csr_array(np.array(Y_EXPECTED)))
    check(load_dataset(tmp_path))
    check(load_dataset(tmp_path / "X_train.npz", Y_path=tmp_path / "Y_train.npz"))


def test_the_two_file_form(tmp_path: Path) -> None:
    (tmp_path / "trn_X_Xf.txt").write_text("2 3\n0:1.5 2:2\n1:3\n", encoding="utf-8")
    (tmp_path / "trn_X_Y.txt").write_text("2 2\n0:1\n1:1\n", encoding="utf-8")
    check(load_dataset(tmp_path / "trn_X_Xf.txt", labels_path=tmp_path / "trn_X_Y.txt"))


def test_parquet(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name in ("data.parquet", "data"):
        pq.write_table(pa.table({"text": ["x", "y"], "labels": [["label_0"], ["label_1"]]}), tmp_path / name)
        check(load_dataset(tmp_path / name))


def test_options_reach_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(CONTENTS["csv"], encoding="utf-8")
    assert load_dataset(path, text_column="labels").texts == ["label_0", "label_1"]
    with pytest.raises(TypeError, match="no_such_option"):
        load_dataset(path, no_such_option=1)


@pytest.mark.parametrize("name", ["labels", "tags", "Topics", "keywords"])
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_the_usual_names_of_tags_are_known_in_every_form(form: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{form}"
    if form == "csv":
        path.write_text(f"{name},text\na;b,x\n,y\n", encoding="utf-8")
    elif form == "jsonl":
        path.write_text(f'{{"text": "x", "{name}": ["a", "b"]}}\n{{"text": "y", "{name}": []}}\n', encoding="utf-8")
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({name: [["a", "b"], []], "text": ["x", "y"]}), path)
    data = load_dataset(path)
    assert isinstance(data, TextDataset)
    assert (data.texts, data.label_names, data.Y.toarray().tolist()) == (["x", "y"], ("a", "b"), [[1, 1], [0, 0]])


def test_labels_come_before_the_other_names_of_tags(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("text,tags,labels\nx,a,b\n", encoding="utf-8")
    assert load_dataset(path).label_names == ("b",)
    assert load_dataset(path, labels_column="tags").label_names == ("a",)
    path.write_text("text,Labels,labels\nx,a,b\n", encoding="utf-8")
    assert load_dataset(path).label_names == ("b",)
    path.write_text("text,mood\nx,a\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column 'labels'; the columns are 'text', 'mood'"):
        load_dataset(path)


def test_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("csv", "jsonl"):
        check(load_dataset(io.BytesIO(CONTENTS[name].encode()), format=name))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CONTENTS[name].encode())))
        check(load_dataset("-", format=name))
    with pytest.raises(DataError, match="give the format"):
        load_dataset("-")
    with pytest.raises(DataError, match="cannot be read from a stream"):
        load_dataset("-", format="xc")


@pytest.mark.parametrize("content", [b"", b"text,labels\nx,a\n", b"\x80\x04\x95", b"hello", b"\xff\xfe\x00"])
def test_formats_that_cannot_be_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(content)
    with pytest.raises(DataError, match="pass format=, one of arff, csv") as caught:
        load_dataset(path)
    assert caught.value.source == str(path)


def test_what_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.jsonl", tmp_path / "absent", "a\0b"):
        with pytest.raises(NotFoundError, match=r"no such file$"):
            load_dataset(path)
    with pytest.raises(DataError, match=f"use one of {', '.join(FORMATS)}"):
        load_dataset(tmp_path, format="excel")


@pytest.mark.data
def test_real_files(data_root: Path) -> None:
    pytest.importorskip("pyarrow", reason="Parquet is an extra")
    dataset = load_dataset(data_root / "eurlex57k" / "eurlex57k_text.parquet", id_column="celex_id")
    assert isinstance(dataset, TextDataset)
    assert (dataset.n_rows, dataset.n_labels) == (57_000, 4_271)


@pytest.mark.parametrize("name", ["rows.svm", "texts.jsonl"])
def test_who_may_not_read_a_file_is_not_told_that_it_is_damaged(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text("{}")

    def refuse(path: object, *_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    for module in ("files", "rows"):
        monkeypatch.setattr(f"streamlabel.data.{module}.open", refuse, raising=False)
    with pytest.raises(DataError, match=r"cannot be read: Permission denied$"):
        load_dataset(tmp_path / name)


def test_a_table_without_a_header_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match="holds no rows"):
        load_dataset(tmp_path / "empty.csv")


@pytest.mark.parametrize("name", ["bibtex", "Bibtex", "eurlex-4k"])
def test_the_name_of_a_catalogue_set_is_told_from_a_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError, match=rf"no such file; load_catalogue_set\('{name}'\) reads"):
        load_dataset(name)


def test_a_text_under_another_name_is_an_error_that_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"content": "x", "tags": ["a"]}\n')
    (tmp_path / "a.csv").write_text("content,tags\nx,a\n")
    with pytest.raises(DataError, match="the fields are 'content', 'tags'; pass text_field= to say which is the text"):
        load_dataset(tmp_path / "a.jsonl")
    with pytest.raises(DataError, match=r"'content', 'tags' .*; pass text_column= to say which has the texts"):
        load_dataset(tmp_path / "a.csv")
    assert load_dataset(tmp_path / "a.jsonl", text_field="content").n_labels == 1
    assert load_dataset(tmp_path / "a.csv", text_column="content").n_labels == 1
