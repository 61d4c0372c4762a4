"""Parquet: list columns to CSR, what is refused and in which row, speed, and that a written set comes back."""

from __future__ import annotations

import datetime
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from streamlabel.data.parquet import read_parquet, write_parquet
from streamlabel.errors import DataError, MissingExtraError, NotFoundError
from streamlabel.types import Dataset, TextDataset

pa = pytest.importorskip("pyarrow", reason="the extra 'arrow' is not installed")
pq = pytest.importorskip("pyarrow.parquet")


def write(path: Path, columns: dict, **options) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def refusal(path: Path, **options) -> str:
    with pytest.raises(DataError) as caught:
        read_parquet(path, **options)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


LABEL_TYPES = [
    pa.list_(pa.string()),
    pa.large_list(pa.large_string()),
    pa.list_(pa.dictionary(pa.int32(), pa.string())),
]


@pytest.mark.parametrize("kind", LABEL_TYPES, ids=str)
@pytest.mark.parametrize("row_group_size", [1, 100])
def test_texts(tmp_path: Path, kind, row_group_size: int) -> None:
    path = write(
        tmp_path / "a.parquet",
        {
            "text": ["a", "b", "", "d"],
            "labels": pa.array([["y", "x"], [], ["x"], ["z", "y"]], kind),
            "id": [3, 2, 1, 0],
            "date": [datetime.date(1958, 7, 1), None, datetime.date(2020, 2, 29), None],
        },
        row_group_size=row_group_size,
    )
    dataset = read_parquet(path)
    assert isinstance(dataset, TextDataset)
    assert dataset.texts == ["a", "b", "", "d"]
    assert dataset.label_names == ("y", "x", "z")
    np.testing.assert_array_equal(dataset.Y.toarray(), [[1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 1]])
    assert dataset.Y.has_canonical_format
    assert dataset.row_ids == ("3", "2", "1", "0")
    expected = np.array(["1958-07-01", "NaT", "2020-02-29", "NaT"], "datetime64[D]")
    np.testing.assert_array_equal(dataset.row_dates, expected)


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 2), pa.list_(pa.int16())], ids=str)
def test_features(tmp_path: Path, kind) -> None:
    path = write(tmp_path / "a.parquet", {"vector": pa.array([[0, 2], [3, 0]], kind), "labels": [["x"], ["x"]]})
    dataset = read_parquet(path, features_column="vector")
    assert isinstance(dataset, Dataset)
    np.testing.assert_array_equal(dataset.X.toarray(), [[0, 2], [3, 0]])
    assert dataset.X.nnz == 2
    assert dataset.X.dtype == (np.float32 if kind == pa.list_(pa.float32()) else np.float64)


@pytest.mark.parametrize(
    "dates",
    [
        pa.array([datetime.datetime(2020, 1, 2, 23), None]),
        pa.array(["2020-01-02", None]),
        pa.array(["2020-01-02T23:00:00", ""]),
    ],
    ids=lambda dates: str(dates.type),
)
def test_dates_of_other_types(tmp_path: Path, dates) -> None:
    path = write(tmp_path / "a.parquet", {"text": ["a", "b"], "labels": [["x"], []], "when": dates})
    dataset = read_parquet(path, date_column="when")
    np.testing.assert_array_equal(dataset.row_dates, np.array(["2020-01-02", "NaT"], "datetime64[D]"))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"text": ["a"]}, "no column 'labels'; the columns are 'text'"),
        ({"body": ["a"], "labels": [["x"]]}, "no column 'text'; the columns are 'body', 'labels'"),
        ({"text": [1], "labels": [["x"]]}, "'text' is of type int64; it must hold strings"),
        ({"text": ["a"], "labels": ["x"]}, "it must hold lists"),
        ({"text": ["a"], "labels": [[1]]}, "labels must be strings"),
        ({"text": ["a", None], "labels": [["x"], []]}, "row 2: column 'text' is null"),
        ({"text": ["a", "b"], "labels": [["x"], None]}, "row 2: column 'labels' is null"),
        ({"text": ["a", "b"], "labels": [[], ["x", None]]}, "row 2: a list in column 'labels' contains null"),
        ({"text": ["a", "b"], "labels": [["y"], ["x", "y", "x"]]}, "row 2: label 'x' stands twice"),
        ({"text": ["a", "b"], "labels": [["y"], [""]]}, "row 2: a label name has 0 characters"),
        ({"text": ["a"], "labels": [["x"]], "date": ["soon"]}, "row 1: 'soon' is not a date"),
        ({"text": ["a"], "labels": [["x"]], "date": [1.5]}, "it must hold dates"),
        ({"text": ["a"], "labels": [["x"]], "id": [1.5]}, "it must hold strings"),
        ({"features": [[1.0], [1.0, 2.0]], "labels": [["x"], []]}, "row 2: 2 features where the rows before have 1"),
        ({"features": [[1.0], [float("nan")]], "labels": [["x"], []]}, "row 2: a feature is NaN or infinite"),
        ({"features": [[1.0, None]], "labels": [["x"]]}, "row 1: a list in column 'features' contains null"),
        ({"features": [["a"]], "labels": [["x"]]}, "features must be numbers"),
        ({"text": pa.array([], pa.string()), "labels": pa.array([], pa.list_(pa.string()))}, "no rows"),
    ],
)
def test_bad_columns_are_named(tmp_path: Path, columns: dict, says: str) -> None:
    assert says in refusal(write(tmp_path / "a.parquet", columns))


def test_options(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"text": ["a", "b"], "labels": [["x", "y", "x"], ["z"]]})
    merged = read_parquet(path, repeated_labels="merge", label_names=["z", "y", "w", "x"])
    np.testing.assert_array_equal(merged.Y.toarray(), [[0, 1, 0, 1], [1, 0, 0, 0]])
    assert "row 2: label 'z' is not among" in refusal(path, repeated_labels="merge", label_names=["x", "y"])
    assert "raise max_bytes" in refusal(path, max_bytes=10)
    assert "no column 'key'" in refusal(path, id_column="key")
    with pytest.raises(DataError, match="not both"):
        read_parquet(path, text_column="text", features_column="labels")


def test_a_small_file_that_unpacks_without_end(tmp_path: Path) -> None:
    """A few kB on disk, 2 GB in memory: stopped after the first batches."""
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), ["x" * 100_000])
    path = write(tmp_path / "a.parquet", {"text": text, "labels": [["a"]] * 20_000}, store_schema=False)
    assert path.stat().st_size < 100_000
    assert "raise max_bytes" in refusal(path, max_bytes=50_000_000)


def test_damaged_files(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"text": ["a"] * 100, "labels": [["x"]] * 100})
    content = path.read_bytes()
    for size in (0, 3, 4, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        assert "not a whole Parquet file" in refusal(path)
    path.write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1")
    assert "not a whole Parquet file" in refusal(path)
    with pytest.raises(NotFoundError):
        read_parquet(tmp_path / "absent.parquet")
    with pytest.raises(DataError, match="folder"):
        read_parquet(tmp_path)


def test_strings_that_are_no_utf8(tmp_path: Path) -> None:
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe")]
    )
    assert "UTF8" in refusal(write(tmp_path / "a.parquet", {"text": bad, "labels": [["x"]]}))


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'streamlabel\[arrow\]'"):
        read_parquet(tmp_path / "a.parquet")


def text_set() -> TextDataset:
    return TextDataset(
        texts=["a\0b", "", "\U0001f600"],
        Y=sparse.csr_array(np.array([[0, 0, 1], [1, 0, 1], [0, 0, 0]], dtype=np.int8)),
        label_names=("b", "never used", "\u00e9"),
        row_ids=("x", "y", "x"),
        row_dates=np.array(["0001-01-01", "NaT", "9999-12-31"], dtype="datetime64[D]"),
    )


def test_a_text_set_comes_back_with_its_columns(tmp_path: Path) -> None:
    dataset, path = text_set(), tmp_path / "a.parquet"
    write_parquet(dataset, path)
    back = read_parquet(path)
    assert (back.texts, back.row_ids, back.label_names) == (dataset.texts, dataset.row_ids, dataset.label_names)
    np.testing.assert_array_equal(back.row_dates, dataset.row_dates)
    np.testing.assert_array_equal(back.Y.toarray(), dataset.Y.toarray())
    assert pq.read_table(path).column("labels").to_pylist() == [["\u00e9"], ["b", "\u00e9"], []]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_feature_set_comes_back(tmp_path: Path, rng: np.random.Generator, dtype) -> None:
    X = sparse.csr_array(rng.standard_normal((20, 7)).astype(dtype) * rng.integers(0, 2, (20, 7)))
    Y = sparse.csr_array(rng.integers(0, 2, (20, 4)).astype(np.int8))
    dataset = Dataset(X=X.astype(dtype), Y=Y, label_names=tuple("dcba"), feature_names=tuple("ABCDEFG"))
    write_parquet(dataset, tmp_path / "a.parquet")
    back = read_parquet(tmp_path / "a.parquet")
    assert back.X.dtype == dtype
    np.testing.assert_array_equal(back.X.toarray(), dataset.X.toarray())
    np.testing.assert_array_equal(back.Y.toarray(), dataset.Y.toarray())
    assert (back.feature_names, back.label_names) == (dataset.feature_names, dataset.label_names)


@pytest.mark.parametrize(
    "metadata",
    [
        "{",
        "[]",
        '{"label_names": ["\\u0007"]}',
        '{"label_names": [1]}',
        '{"label_names": ["a", "a"]}',
        '{"label_names": 3}',
    ],
)
def test_damaged_metadata(tmp_path: Path, metadata: str) -> None:
    table = pa.table({"text": ["a"], "labels": [["x"]]}).replace_schema_metadata({"streamlabel": metadata})
    pq.write_table(table, tmp_path / "a.parquet")
    problem = refusal(tmp_path / "a.parquet")
    assert "metadata" in problem or "control character" in problem


def test_what_cannot_be_written(tmp_path: Path) -> None:
    wide = Dataset(X=sparse.csr_array((1000, 10**6)), Y=sparse.csr_array((1000, 1), dtype=np.int8), label_names=("a",))
    with pytest.raises(DataError, match="npz"):
        write_parquet(wide, tmp_path / "a.parquet")
    bad = TextDataset(texts=["\ud800"], Y=sparse.csr_array((1, 1), dtype=np.int8), label_names=("a",))
    with pytest.raises(DataError, match="cannot be written as Parquet"):
        write_parquet(bad, tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


def test_200_000_rows_within_two_seconds_of_processor_time(tmp_path: Path, rng: np.random.Generator) -> None:
    lengths = rng.integers(0, 8, 200_000)
    within_row = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    codes = ((np.repeat(rng.integers(0, 3000, 200_000), lengths) + within_row) % 3000).astype(np.int32)
    names = pa.DictionaryArray.from_arrays(codes, [f"label {j}" for j in range(3000)]).cast(pa.string())
    labels = pa.ListArray.from_arrays(pa.array(np.r_[0, np.cumsum(lengths)], pa.int32()), names)
    path = write(tmp_path / "a.parquet", {"text": ["a short text"] * 200_000, "labels": labels})
    start = time.process_time()
    dataset = read_parquet(path)
    assert time.process_time() - start < 2.0
    order = {name: j for j, name in enumerate(dataset.label_names)}
    row = 123_456
    expected = sorted(order[name] for name in labels[row].as_py())
    assert dataset.Y.indices[dataset.Y.indptr[row] : dataset.Y.indptr[row + 1]].tolist() == expected
    np.testing.assert_array_equal(np.diff(dataset.Y.indptr), lengths)


@pytest.mark.data
def test_eurlex57k(data_root: Path) -> None:
    path = data_root / "eurlex57k" / "eurlex57k_text.parquet"
    if not path.exists():
        pytest.skip("STREAMLABEL_DATA has no eurlex57k text")
    dataset = read_parquet(path, id_column="celex_id")
    table = pq.read_table(path, columns=["labels", "celex_id", "date"])
    assert dataset.n_rows == 57_000
    assert dataset.n_labels == 4_271
    assert dataset.row_ids == tuple(table["celex_id"].to_pylist())
    rows = [0, 1, 28_500, 56_999]
    for row in rows:
        present = dataset.Y.indices[dataset.Y.indptr[row] : dataset.Y.indptr[row + 1]]
        assert {dataset.label_names[j] for j in present} == set(table["labels"][row].as_py())
        assert dataset.row_dates[row].astype(object) == table["date"][row].as_py()
