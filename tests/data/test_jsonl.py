"""JSON Lines: what is read, what is refused and where, and that a written set comes back."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from streamlabel.data.jsonl import read_jsonl, write_jsonl
from streamlabel.errors import DataError, NotFoundError
from streamlabel.types import Dataset, TextDataset

GOOD = '{"text": "a cat", "labels": ["cat"]}\n'


def read(content: str | bytes, **options):
    return read_jsonl(io.BytesIO(content.encode() if isinstance(content, str) else content), **options)


def refusal(content: str | bytes, **options) -> DataError:
    with pytest.raises(DataError) as caught:
        read(content, **options)
    return caught.value


def test_texts_with_ids_and_dates(tmp_path: Path) -> None:
    path = tmp_path / "news.jsonl"
    records = [
        {"text": "a cat\nand a dog", "labels": ["cat", "dog"], "id": "x1", "date": "2020-02-29"},
        {"text": "", "labels": [], "id": 7, "date": None},
        {"text": "a dog, Zürich", "labels": ["dog", "Zürich"], "id": "x3", "date": "2021-01-01T23:59:59+02:00"},
    ]
    path.write_text("\n\n".join(map(json.dumps, records)), encoding="utf-8")
    dataset = read_jsonl(path)
    assert isinstance(dataset, TextDataset)
    assert list(dataset.texts) == [record["text"] for record in records]
    assert dataset.label_names == ("cat", "dog", "Zürich")
    np.testing.assert_array_equal(dataset.Y.toarray(), [[1, 1, 0], [0, 0, 0], [0, 1, 1]])
    assert dataset.Y.dtype == np.int8
    assert dataset.row_ids == ("x1", "7", "x3")
    np.testing.assert_array_equal(dataset.row_dates, np.array(["2020-02-29", "NaT", "2021-01-01"], "datetime64[D]"))
    assert dataset.source == str(path)


def test_features_by_name() -> None:
    dataset = read('{"features": {"b": 2, "a": 0, "c": -1.5}, "labels": []}\n{"features": {"a": 1e3}, "labels": ["x"]}')
    assert isinstance(dataset, Dataset)
    assert dataset.feature_names == ("b", "a", "c")
    np.testing.assert_array_equal(dataset.X.toarray(), [[2, 0, -1.5], [0, 1000, 0]])
    assert dataset.X.nnz == 3
    assert dataset.row_ids is None
    assert dataset.row_dates is None


def test_features_in_lists() -> None:
    dataset = read(
        '{"features": [0, 1.5], "labels": ["x"]}\n{"features": [-2, 0], "labels": ["x"]}',
        feature_names=["f", "g"],
        dtype="float32",
    )
    np.testing.assert_array_equal(dataset.X.toarray(), np.array([[0, 1.5], [-2, 0]], dtype=np.float32))
    assert dataset.X.dtype == np.float32
    assert dataset.feature_names == ("f", "g")


def test_given_names_fix_the_columns() -> None:
    content = '{"features": {"b": 2, "a": 3}, "labels": ["y", "x"]}'
    dataset = read(content, feature_names=["a", "z", "b"], label_names=["x", "w", "y"])
    np.testing.assert_array_equal(dataset.X.toarray(), [[3, 0, 2]])
    np.testing.assert_array_equal(dataset.Y.toarray(), [[1, 0, 1]])
    assert "'y' is not among the 1 label_names" in str(refusal(content, label_names=["x"]))
    error = refusal(content, feature_names=["a"])
    assert "'b' is not among the 1 feature_names" in error.problem
    assert error.line == 1
    assert "1 features for 2 feature_names" in str(refusal('{"features": [1], "labels": []}', feature_names=["a", "b"]))
    assert "use 'float64'" in str(refusal(content, dtype="int32"))
    assert "twice" in str(refusal(content, feature_names=["a", "a", "b"]))


def test_two_spellings_of_one_letter_are_one_label() -> None:
    composed, decomposed = "Z\u00fcrich", "Zu\u0308rich"
    dataset = read(f'{{"text": "", "labels": ["{decomposed}"]}}\n{{"text": "", "labels": ["{composed}"]}}')
    assert dataset.label_names == (composed,)
    assert "twice" in str(refusal(f'{{"text": "", "labels": ["{decomposed}", "{composed}"]}}'))


def test_repeated_labels_are_refused_or_merged() -> None:
    content = GOOD + '{"text": "", "labels": ["dog", "cat", "dog"]}'
    error = refusal(content)
    assert error.line == 2
    assert "'dog' stands twice" in error.problem
    merged = read(content, repeated_labels="merge")
    np.testing.assert_array_equal(merged.Y.toarray(), [[1, 0], [1, 1]])
    assert "'error' or 'merge'" in str(refusal(GOOD, repeated_labels="drop"))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("[1]", "must be an object"),
        ('{"text": "a"}', "no field 'labels'; the fields are 'text'"),
        ('{"labels": []}', "no field 'text' or 'features'"),
        ('{"text": 3, "labels": []}', "'text' is a number; it must be a string"),
        ('{"text": null, "labels": []}', "'text' is null"),
        ('{"text": "a", "labels": "cat"}', "'labels' is a string; it must be a list of strings"),
        ('{"text": "a", "labels": null}', "'labels' is null"),
        ('{"text": "a", "labels": [1]}', "holds a number"),
        ('{"text": "a", "labels": [""]}', "a label name has 0 characters"),
        ('{"text": "a", "labels": ["b\\u0000"]}', "control character"),
        ('{"text": "a", "labels": [], "labels": ["b"]}', "'labels' stands twice"),
        ('{"text": "a", "features": {}, "labels": []}', "has both"),
        ('{"features": {"a": 1}, "labels": []}', "one form must run through the file"),
        ('{"text": "\\ud800", "labels": []}', "surrogate"),
        ('{"text": "a", "labels": [], "id": "x"}', "has a field 'id', unlike the rows before"),
        ('{"text": "a", "labels": [], "date": "yesterday"}', "write it as YYYY-MM-DD"),
        ('{"text": "a", "labels": [], "date": 3}', "'date' is a number"),
        ('{"text": "a", "labels": [], "x": NaN}', "NaN is not a JSON number"),
        ('{"text": "a", "labels": ' + "[" * 100_000, "nested too deeply"),
        ('{"text": "a", "labels": [], "x": ' + "1" * 5000 + "}", "limit"),
        ('{"text": "' + "a" * 6000 + '", "labels": []}', "longer than 5500 bytes"),
        ('{"text": "a\0", "labels": []}', "NUL"),
    ],
)
def test_a_bad_line_is_named(line: str, says: str) -> None:
    limit = 5500 if "aaa" in line else 2**24
    error = refusal(GOOD + "\n" + line + "\n" + GOOD, max_line_bytes=limit)
    assert error.line == 3
    assert says in error.problem


@pytest.mark.parametrize(
    ("features", "says"),
    [
        ('{"a": NaN}', "NaN is not a JSON number"),
        ("[-Infinity]", "-Infinity is not a JSON number"),
        ("[1e999]", "too large"),
        ("[" + "9" * 400 + "]", "too large"),
        ("[true]", "true or false"),
        ('["1"]', "a string"),
        ('{"a": null}', "null"),
        ('"1 2 3"', "use an object name -> number or a list"),
        ("[1, 2]", "2 features where the rows before have 1"),
        ('{"a": 1, "a": 2}', "'a' stands twice"),
    ],
)
def test_bad_features_are_named(features: str, says: str) -> None:
    before = "[1]" if features.startswith("[") else '{"a": 1}'
    error = refusal(f'{{"features": {before}, "labels": []}}\n{{"features": {features}, "labels": []}}')
    assert error.line == 2
    assert says in error.problem


def test_numbers_that_do_not_fit_the_dtype() -> None:
    error = refusal('{"features": [1], "labels": []}\n{"features": [1e300], "labels": []}', dtype="float32")
    assert (error.line, "float64" in error.problem) == (2, True)


def test_bytes_that_are_no_utf8() -> None:
    assert refusal(GOOD.encode() + b'{"text": "\xff"}').line == 2
    assert "UTF-8" in refusal(GOOD.encode("utf-16")).problem
    assert read(b"\xef\xbb\xbf" + GOOD.encode()).texts == ["a cat"]


def test_no_rows() -> None:
    for content in ("", "\n\n"):
        assert "no rows" in refusal(content).problem


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    dataset = read_jsonl("-")
    assert dataset.n_rows == 1
    assert dataset.source == "standard input"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        read_jsonl(tmp_path / "absent.jsonl")
    with pytest.raises(DataError, match="folder"):
        read_jsonl(tmp_path)
    with pytest.raises(DataError, match="binary mode"):
        read_jsonl(io.StringIO(GOOD))
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(GOOD.encode() * 100)[:-12])
    with pytest.raises(DataError, match="cut short"):
        read_jsonl(cut)


def sample(**changes) -> TextDataset:
    fields = {
        "texts": ["one\u2028line\r\n", "=2+2 \u00e9\0", "\U0001f600"],
        "Y": sparse.csr_array(np.array([[1, 0, 1], [0, 0, 0], [0, 0, 1]], dtype=np.int8)),
        "label_names": ("b", "never used", "a"),
        "row_ids": ("1", "2", "1"),
        "row_dates": np.array(["1958-07-01", "NaT", "9999-12-31"], dtype="datetime64[D]"),
    }
    return TextDataset(**{**fields, **changes})


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_texts_come_back(tmp_path: Path, name: str) -> None:
    dataset, path = sample(), tmp_path / name
    write_jsonl(dataset, path)
    back = read_jsonl(path, label_names=dataset.label_names)
    assert back.texts == dataset.texts
    assert (back.row_ids, back.label_names) == (dataset.row_ids, dataset.label_names)
    np.testing.assert_array_equal(back.row_dates, dataset.row_dates)
    np.testing.assert_array_equal(back.Y.toarray(), dataset.Y.toarray())
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_every_line_is_plain_json(tmp_path: Path) -> None:
    write_jsonl(sample(), tmp_path / "a.jsonl")
    records = [json.loads(line) for line in (tmp_path / "a.jsonl").read_bytes().split(b"\n") if line]
    assert records[0] == {"id": "1", "date": "1958-07-01", "text": "one\u2028line\r\n", "labels": ["b", "a"]}


def test_wide_sets_without_names_are_not_written_densely(tmp_path: Path) -> None:
    wide = Dataset(X=sparse.csr_array((1000, 10**6)), Y=sparse.csr_array((1000, 1), dtype=np.int8), label_names=("a",))
    with pytest.raises(DataError, match="feature_names"):
        write_jsonl(wide, tmp_path / "a.jsonl")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_jsonl(sample(), path)
    before = path.read_bytes()
    with pytest.raises(DataError, match="row 3 cannot be written"):
        write_jsonl(sample(texts=["a", "b", "\ud800"]), path)
    with pytest.raises(DataError, match="years 1 to 9999"):
        write_jsonl(sample(row_dates=np.array([0, 1, 10**7], dtype="datetime64[D]")), path)
    with pytest.raises(DataError, match="cannot be written"):
        write_jsonl(sample(), tmp_path / "absent" / "a.jsonl")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
