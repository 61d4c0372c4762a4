"""Fuzzing the record formats: any bytes give a data set or a DataError, and what was written comes back.

Each property runs 100 examples in the fast suite and 2,000 in the slow one.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from streamlabel.data.csv_table import read_csv, write_csv
from streamlabel.data.jsonl import read_jsonl, write_jsonl
from streamlabel.data.parquet import read_parquet, write_parquet
from streamlabel.data.text import TextVectorizer
from streamlabel.errors import DataError
from streamlabel.types import Dataset, TextDataset

AMOUNTS = [pytest.param(100, id="fast"), pytest.param(2_000, id="slow", marks=pytest.mark.slow)]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def fuzz(n_examples: int, strategy: st.SearchStrategy[Any], check: Callable[[Any], None]) -> None:
    """Run the check on so many examples of the strategy."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run = settings(max_examples=n_examples, deadline=None, database=None, suppress_health_check=checks)(
        given(strategy)(check)
    )
    run()


def check_whole(dataset: Dataset | TextDataset) -> None:
    """What every reader promises of what it returns."""
    Y = dataset.Y
    assert isinstance(Y, sparse.csr_array)
    assert Y.dtype == np.int8
    assert Y.has_canonical_format
    assert (Y.data == 1).all()
    assert Y.shape == (dataset.n_rows, len(dataset.label_names))
    assert len(set(dataset.label_names)) == len(dataset.label_names)
    for rows in (dataset.row_ids, dataset.row_dates):
        assert rows is None or len(rows) == dataset.n_rows
    if isinstance(dataset, TextDataset):
        assert all(isinstance(text, str) for text in dataset.texts)
    else:
        assert np.isfinite(dataset.X.data).all()
        assert dataset.X.has_canonical_format
        assert dataset.feature_names is None or len(dataset.feature_names) == dataset.n_features


def data_set_or_data_error(read: Callable[[], Dataset | TextDataset]) -> None:
    try:
        dataset = read()
    except DataError:
        return
    check_whole(dataset)


# ------------------------------------------------------------------------------------------------ what is fed in

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
# Unicode normalisation would turn a name into another; that is tested on its own.
names = st.text(
    st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zs", "Zl", "Zp"], max_codepoint=0x2FF), min_size=1, max_size=6
)
numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "text", "labels"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn, originals: list[bytes]) -> bytes:
    """One of the originals with bytes changed, put in, taken out, or the end cut off."""
    content = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(content)))
        kind = draw(st.sampled_from(["change", "put in", "take out", "cut"]))
        if kind == "change" and at < len(content):
            content[at] = draw(st.integers(0, 255))
        elif kind == "put in":
            content[at:at] = draw(
                st.binary(max_size=4) | st.sampled_from([b'"', b",", b"{", b"[", b"\n", b";", b"NaN"])
            )
        elif kind == "take out":
            del content[at : at + draw(st.integers(1, 20))]
        elif draw(st.booleans()):
            del content[at:]
    return bytes(content)


@st.composite
def text_sets(draw: st.DrawFn, texts: st.SearchStrategy[str] = words) -> TextDataset:
    n_rows = draw(st.integers(1, 6))
    label_names = tuple(draw(st.lists(names.filter(is_stable), max_size=5, unique=True)))
    cells = draw(st.lists(st.booleans(), min_size=n_rows * len(label_names), max_size=n_rows * len(label_names)))
    days = draw(st.lists(st.none() | st.dates(), min_size=n_rows, max_size=n_rows))
    return TextDataset(
        texts=draw(st.lists(texts, min_size=n_rows, max_size=n_rows)),
        Y=sparse.csr_array(np.array(cells, dtype=np.int8).reshape(n_rows, len(label_names))),
        label_names=label_names,
        row_ids=draw(st.none() | st.tuples(*[texts] * n_rows)),
        row_dates=None if draw(st.booleans()) else np.array(days, dtype="datetime64[D]"),
    )


def is_stable(name: str) -> bool:
    return name == name.strip() and ";" not in name


@st.composite
def feature_sets(draw: st.DrawFn) -> Dataset:
    base = draw(text_sets())
    width = draw(st.integers(1, 4))
    values = draw(st.lists(st.just(0.0) | numbers, min_size=base.n_rows * width, max_size=base.n_rows * width))
    feature_names = draw(st.none() | st.lists(words, min_size=width, max_size=width, unique=True).map(tuple))
    return Dataset(
        X=sparse.csr_array(np.array(values).reshape(base.n_rows, width)),
        Y=base.Y,
        label_names=base.label_names,
        feature_names=feature_names,
        row_ids=base.row_ids,
        row_dates=base.row_dates,
    )


def assert_same(back: Dataset | TextDataset, dataset: Dataset | TextDataset) -> None:
    check_whole(back)
    assert type(back) is type(dataset)
    assert back.label_names == dataset.label_names
    np.testing.assert_array_equal(back.Y.toarray(), dataset.Y.toarray())
    assert back.row_ids == dataset.row_ids
    if dataset.row_dates is None:
        assert back.row_dates is None
    else:
        np.testing.assert_array_equal(back.row_dates, dataset.row_dates)
    if isinstance(dataset, TextDataset):
        assert list(back.texts) == list(dataset.texts)
    else:
        np.testing.assert_array_equal(back.X.toarray(), dataset.X.toarray())
        assert back.feature_names == dataset.feature_names


# ---------------------------------------------------------------------------------------------------------- JSONL

JSONL_FILES = [
    b'{"text": "a", "labels": ["cat", "pet"], "id": "1", "date": "2020-01-01"}\n{"text": "", "labels": [], "id": 2}\n',
    b'{"features": {"a": 1.5, "b": -2e3}, "labels": ["x"]}\n\n{"features": {}, "labels": ["y", "x"]}',
    b'\xef\xbb\xbf{"features": [0, 1.5], "labels": ["x"]}\r\n{"features": [3, 0], "labels": []}\r\n',
]


@st.composite
def jsonl_records(draw: st.DrawFn) -> bytes:
    fields = {
        "text": words | json_values,
        "features": st.dictionaries(words, numbers, max_size=3) | st.lists(numbers, max_size=2) | json_values,
        "labels": st.lists(words, max_size=3) | json_values,
        "id": words | json_values,
        "date": st.dates().map(str) | json_values,
    }
    record = st.fixed_dictionaries({}, optional=fields)
    return "\n".join(json.dumps(value) for value in draw(st.lists(record | json_values, max_size=4))).encode()


@pytest.mark.parametrize("n_examples", AMOUNTS)
@pytest.mark.parametrize(
    "source", [st.binary(max_size=60), mutated(JSONL_FILES), jsonl_records()], ids=["bytes", "mutated", "records"]
)
def test_any_bytes_as_jsonl(n_examples: int, source: st.SearchStrategy[bytes]) -> None:
    merge = st.sampled_from(["error", "merge"])
    fuzz(
        n_examples,
        st.tuples(source, merge, st.integers(1, 200)),
        lambda case: data_set_or_data_error(
            lambda: read_jsonl(io.BytesIO(case[0]), repeated_labels=case[1], max_line_bytes=case[2])
        ),
    )


@pytest.mark.parametrize("n_examples", AMOUNTS)
@pytest.mark.parametrize("sets", [text_sets(), feature_sets()], ids=["texts", "features"])
def test_jsonl_comes_back(n_examples: int, sets: st.SearchStrategy[Any], tmp_path: Path) -> None:
    def check(dataset: Dataset | TextDataset) -> None:
        write_jsonl(dataset, tmp_path / "a.jsonl")
        feature_names = getattr(dataset, "feature_names", None)
        back = read_jsonl(tmp_path / "a.jsonl", label_names=dataset.label_names, feature_names=feature_names)
        assert_same(back, dataset)

    fuzz(n_examples, sets, check)


# ------------------------------------------------------------------------------------------------------------ CSV

CSV_FILES = [
    b'id,date,text,labels\n1,2020-01-01,"a ""cat"",\nmeows",cat;pet\n2,,,\n',
    b"\xef\xbb\xbftext,labels\r\n'=1+1,a\r\nb,c; d\r\n",
    b"text,x,y,labels\na,0,1,q\nb,1,1,r\n",
]
csv_cells = st.text(st.sampled_from("ab01;,\"'=\n\r\t -"), max_size=6)


@st.composite
def csv_tables(draw: st.DrawFn) -> bytes:
    header = draw(st.permutations(["text", "labels", "x", "y"]))
    rows = draw(st.lists(st.lists(csv_cells, min_size=3, max_size=5), max_size=4))
    return "\n".join(",".join(row) for row in [header, *rows]).encode()


@pytest.mark.parametrize("n_examples", AMOUNTS)
@pytest.mark.parametrize(
    "source", [st.binary(max_size=60), mutated(CSV_FILES), csv_tables()], ids=["bytes", "mutated", "tables"]
)
def test_any_bytes_as_csv(n_examples: int, source: st.SearchStrategy[bytes]) -> None:
    options = st.fixed_dictionaries(
        {},
        optional={
            "repeated_labels": st.just("merge"),
            "label_columns": st.just(["x", "y"]),
            "delimiter": st.characters(max_codepoint=127),
            "delimiter_of_tags": st.characters(),
            "max_line_bytes": st.integers(1, 100),
        },
    )
    fuzz(
        n_examples,
        st.tuples(source, options),
        lambda case: data_set_or_data_error(lambda: read_csv(io.BytesIO(case[0]), **case[1])),
    )


@pytest.mark.parametrize("n_examples", AMOUNTS)
def test_csv_comes_back(n_examples: int, tmp_path: Path) -> None:
    def check(case: tuple[TextDataset, str, bool]) -> None:
        dataset, name, one_column_a_label = case
        write_csv(dataset, tmp_path / name, one_column_a_label=one_column_a_label)
        which = "label_columns" if one_column_a_label else "label_names"
        back = read_csv(tmp_path / name, **{which: dataset.label_names})
        assert_same(back, dataset)

    cells = csv_cells | words.filter(lambda text: "\0" not in text)
    fuzz(n_examples, st.tuples(text_sets(cells), st.sampled_from(["a.csv", "a.tsv"]), st.booleans()), check)


# -------------------------------------------------------------------------------------------------------- Parquet


def parquet_files() -> list[bytes]:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    labels = [["a", "b"], [], ["b"]] * 5
    tables = [
        pa.table({"text": ["x", "", "yy"] * 5, "labels": labels, "id": list(range(15))}),
        pa.table({"features": [[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]] * 5, "labels": labels}),
    ]
    contents = []
    for table in tables:
        for options in ({}, {"compression": "none", "row_group_size": 4, "use_dictionary": False}):
            sink = io.BytesIO()
            pq.write_table(table, sink, **options)
            contents.append(sink.getvalue())
    return contents


@pytest.mark.parametrize("n_examples", AMOUNTS)
def test_any_bytes_as_parquet(n_examples: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"

        def check(content: bytes) -> None:
            path.write_bytes(content)
            data_set_or_data_error(lambda: read_parquet(path))

        fuzz(n_examples, st.binary(max_size=60) | mutated(parquet_files()), check)


@pytest.mark.parametrize("n_examples", AMOUNTS)
def test_any_columns_as_parquet(n_examples: int, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kinds = {
        pa.string(): words,
        pa.int64(): st.integers(-(2**63), 2**63 - 1),
        pa.float64(): st.floats(),
        pa.bool_(): st.booleans(),
        pa.date32(): st.dates(),
        pa.timestamp("us"): st.datetimes(),
        pa.timestamp("s", tz="UTC"): st.integers(-(2**50), 2**50),
        pa.binary(): st.binary(max_size=3),
        pa.list_(pa.string()): st.lists(st.none() | words, max_size=3),
        pa.list_(pa.float32()): st.lists(st.none() | st.floats(width=32), min_size=2, max_size=2),
        pa.list_(pa.list_(pa.string())): st.lists(st.lists(words, max_size=2), max_size=2),
        pa.struct([("a", pa.int64())]): st.fixed_dictionaries({"a": st.integers(0, 9)}),
        pa.null(): st.none(),
    }
    kind = st.sampled_from(list(kinds))

    @st.composite
    def tables(draw: st.DrawFn) -> Any:
        n_rows = draw(st.integers(0, 4))
        usual = {"text": pa.string(), "features": pa.list_(pa.float32()), "labels": pa.list_(pa.string())}
        columns = {}
        for name in draw(st.lists(st.sampled_from(["text", "features", "labels", "id", "date"]), unique=True)):
            type_ = usual[name] if name in usual and draw(st.booleans()) else draw(kind)
            cells = kinds[type_] if draw(st.booleans()) else st.none() | kinds[type_]
            columns[name] = pa.array(draw(st.lists(cells, min_size=n_rows, max_size=n_rows)), type_)
        return pa.table(columns)

    def check(table: Any) -> None:
        pq.write_table(table, tmp_path / "a.parquet")
        data_set_or_data_error(lambda: read_parquet(tmp_path / "a.parquet"))

    fuzz(n_examples, tables(), check)


@pytest.mark.parametrize("n_examples", AMOUNTS)
@pytest.mark.parametrize("sets", [text_sets(), feature_sets()], ids=["texts", "features"])
def test_parquet_comes_back(n_examples: int, sets: st.SearchStrategy[Any], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")

    def check(dataset: Dataset | TextDataset) -> None:
        write_parquet(dataset, tmp_path / "a.parquet")
        assert_same(read_parquet(tmp_path / "a.parquet"), dataset)

    fuzz(n_examples, sets, check)


# ----------------------------------------------------------------------------------------------------- vocabulary


@pytest.mark.parametrize("n_examples", AMOUNTS)
def test_any_bytes_as_a_vocabulary(n_examples: int, tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    TextVectorizer(min_df=1, max_features=5).fit(["a cat sat", "the dog sat"]).save(path)
    original = path.read_bytes()

    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            vectorizer = TextVectorizer.load(path)
        except DataError:
            return
        X = vectorizer.transform(["the cat sat", ""])
        assert X.shape == (2, len(vectorizer.terms_))
        assert np.isfinite(X.data).all()

    fuzz(n_examples, st.binary(max_size=60) | mutated([original]), check)


@pytest.mark.parametrize("n_examples", AMOUNTS)
def test_a_vocabulary_comes_back(n_examples: int, tmp_path: Path) -> None:
    def check(case: tuple[list[str], str, str]) -> None:
        texts, analyzer, dtype = case
        vectorizer = TextVectorizer(min_df=1, analyzer=analyzer, ngram_range=(1, 2), dtype=dtype)
        try:
            before = vectorizer.fit_transform(texts)
        except DataError:
            return
        vectorizer.save(tmp_path / "v.json")
        after = TextVectorizer.load(tmp_path / "v.json").transform(texts)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(after, part), getattr(before, part))

    texts = st.lists(st.text(st.sampled_from("abcé ß\u0301\U0001f600")) | words, min_size=1, max_size=5)
    fuzz(
        n_examples,
        st.tuples(texts, st.sampled_from(["word", "char_wb"]), st.sampled_from(["float32", "float64"])),
        check,
    )
