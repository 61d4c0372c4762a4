"""CSV: cells, tags and 0/1 columns; what is refused and where; safe in spreadsheets, and back."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from streamlabel.data.csv_table import read_csv, write_csv
from streamlabel.errors import DataError
from streamlabel.types import TextDataset


def read(content: str | bytes, **options) -> TextDataset:
    return read_csv(io.BytesIO(content.encode() if isinstance(content, str) else content), **options)


def refusal(content: str | bytes, **options) -> DataError:
    with pytest.raises(DataError) as caught:
        read(content, **options)
    return caught.value


def test_a_tag_column() -> None:
    dataset = read('id,text,labels,date\n1,"a ""cat"",\nand a dog",cat; dog ,2020-02-29\n\n2,,,\n', label_names=None)
    assert dataset.texts == ['a "cat",\nand a dog', ""]
    assert dataset.label_names == ("cat", "dog")
    np.testing.assert_array_equal(dataset.Y.toarray(), [[1, 1], [0, 0]])
    assert dataset.row_ids == ("1", "2")
    np.testing.assert_array_equal(dataset.row_dates, np.array(["2020-02-29", "NaT"], "datetime64[D]"))


def test_a_column_for_each_label() -> None:
    dataset = read("text,dog,cat,bird\na,0,1,1\nb,0,0,1\n", label_columns=["cat", "dog"])
    assert dataset.label_names == ("cat", "dog")
    np.testing.assert_array_equal(dataset.Y.toarray(), [[1, 0], [0, 0]])
    error = refusal("text,cat\na,1\nb,yes\n", label_columns=["cat"])
    assert (error.line, "0 or 1" in error.problem) == (3, True)


def test_other_names_and_delimiters(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbfbody\ttags\tkey\r\nx\ta|b\tk\r\n")
    dataset = read_csv(path, text_column="body", labels_column="tags", id_column="key", delimiter_of_tags="|")
    assert (dataset.texts, dataset.label_names, dataset.row_ids) == (["x"], ("a", "b"), ("k",))
    spaced = read("text;labels\nx;a b\n", delimiter=";", delimiter_of_tags=" ")
    assert spaced.label_names == ("a", "b")


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        ("", None, "no rows"),
        ("text\nx\n", 1, "no column 'labels'; the columns are 'text'"),
        ("text;labels\nx;a\n", 1, "the columns are 'text;labels' (with ',' as delimiter)"),
        ("text,labels,text\n", 1, "'text' twice"),
        ("text,labels\nx,a\nx\n", 3, "1 cells where the header has 2"),
        ("text,labels\nx,a,b\n", 2, "3 cells where the header has 2"),
        ('text,labels\nx,a\n"x,a\nx,b\n', 3, "unexpected end of data"),
        ('text,labels\n"x"y,a\n', 2, "expected after"),
        ("text,labels\nx,a;;b\n", 2, "an empty tag"),
        ("text,labels\nx,a;\n", 2, "an empty tag"),
        ('text,labels\n"x\ny",a\nz,b;b\n', 4, "'b' stands twice"),
        ("text,labels\nx,a\x01b\n", 2, "control character"),
        ("text,labels,date\nx,a,1/2/2020\n", 2, "YYYY-MM-DD"),
        ("text,labels\nx\0,a\n", 2, "NUL"),
        ("text,labels\nx,a\rb,c\n", 2, "line end"),
        (b"text,labels\nx,a\n\xff,b\n", 3, "not UTF-8"),
        ("text,labels\n", None, "no rows"),
    ],
)
def test_bad_files_are_named(content: str | bytes, line: int | None, says: str) -> None:
    error = refusal(content)
    assert error.line == line
    assert says in error.problem


def test_rows_beyond_the_limit() -> None:
    error = refusal("text,labels\n" + "x" * 200 + ",a\n", max_line_bytes=100)
    assert (error.line, "max_line_bytes" in str(error)) == (2, True)
    error = refusal('text,labels\na,b\n"' + "x\n" * 200, max_line_bytes=100)
    assert (error.line, "close its quote" in str(error)) == (3, True)


def test_texts_longer_than_the_csv_module_likes() -> None:
    long = "x" * 200_000
    assert read(f"text,labels\n{long},a\n").texts == [long]


def test_bad_options() -> None:
    for options in ({"delimiter": "::"}, {"delimiter": '"'}, {"delimiter_of_tags": ""}, {"repeated_labels": "no"}):
        assert "use" in str(refusal("text,labels\nx,a\n", **options))
    assert "no column 'key'" in refusal("text,labels,id\nx,a,1\n", id_column="key").problem
    assert "'b' is not among" in refusal("text,labels\nx,a;b\n", label_names=["a"]).problem


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text,labels\nx,a\n")))
    assert read_csv("-").texts == ["x"]


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "'=quoted", "''-x", "\t=1", "\r=1", "\uff1d1", "'plain", "a=b", ""]


def formulas() -> TextDataset:
    names = ("=cmd", "-minus", "plain", "'@x", "unused")
    rng = np.random.default_rng(0)
    return TextDataset(
        texts=FORMULAS,
        Y=sparse.csr_array(rng.integers(0, 2, (len(FORMULAS), 5)).astype(np.int8) * np.array([1, 1, 1, 1, 0], np.int8)),
        label_names=names,
        row_ids=tuple(FORMULAS),
        row_dates=np.array(["NaT"] + ["2001-02-03"] * (len(FORMULAS) - 1), dtype="datetime64[D]"),
    )


@pytest.mark.parametrize("one_column_a_label", [False, True])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz"])
def test_formulas_are_guarded_and_come_back(tmp_path: Path, name: str, one_column_a_label: bool) -> None:
    dataset, path = formulas(), tmp_path / name
    write_csv(dataset, path, one_column_a_label=one_column_a_label)
    names = {"label_columns": dataset.label_names} if one_column_a_label else {"label_names": dataset.label_names}
    back = read_csv(path, **names)
    assert (back.texts, back.row_ids, back.label_names) == (dataset.texts, dataset.row_ids, dataset.label_names)
    np.testing.assert_array_equal(back.row_dates, dataset.row_dates)
    np.testing.assert_array_equal(back.Y.toarray(), dataset.Y.toarray())


def test_no_cell_of_a_written_file_is_a_formula(tmp_path: Path) -> None:
    write_csv(formulas(), tmp_path / "a.csv", one_column_a_label=True)
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as handle:
        cells = [cell for row in csv.reader(handle) for cell in row]
    assert len(cells) == (len(FORMULAS) + 1) * 8
    assert not [cell for cell in cells if cell[:1] in set("=+-@\t\r\n\uff1d")]


def test_the_guard_can_be_left_in_place() -> None:
    content = "text,labels\n'=1,a\n'tis,b\n"
    assert read(content).texts == ["=1", "'tis"]
    assert read(content, formula_guard=False).texts == ["'=1", "'tis"]


def test_what_csv_cannot_hold_is_not_written(tmp_path: Path) -> None:
    def dataset(text: str, label: str) -> TextDataset:
        return TextDataset(texts=[text], Y=sparse.csr_array(np.ones((1, 1), np.int8)), label_names=(label,))

    for text, label, says in (
        ("a", "x;y", "delimiter_of_tags"),
        ("a", " x", "outer spaces"),
        ("a\0", "x", "row 1 holds a NUL"),
        ("\ud800", "x", "surrogate"),
    ):
        with pytest.raises(DataError, match=says):
            write_csv(dataset(text, label), tmp_path / "a.csv")
    with pytest.raises(DataError, match="same name"):
        write_csv(dataset("a", "text"), tmp_path / "a.csv", one_column_a_label=True)
    assert not list(tmp_path.iterdir())
