"""Mulan and Meka ARFF: hand-written files, liac-arff on the same content, the two ways of reading, errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrix_sets import assert_same_set, datasets
from streamlabel.data import files as _limits
from streamlabel.data.arff import RowReader, read_arff, read_header, write_arff
from streamlabel.errors import DataError
from streamlabel.types import Dataset

HEAD = """% a comment
@RELATION toy

@attribute width numeric
@ATTRIBUTE 'two words' REAL
@attribute flag {0,1}
@attribute "it's" { no, yes }
@attribute TAG_a {0,1}
@attribute TAG_b {0,1}

@DATA
"""
PLAIN_HEAD = HEAD.replace("{ no, yes }", "{0,1}")
DENSE = "0.5,0,1,yes,1,0\n% nothing\n\n-2, 1e-3 ,0,'no',0 , 1\n"
SPARSE = "{0 0.5,2 1,3 yes,4 1}\n% nothing\n\n{ 0 -2, 1 1e-3,5 1 }\n"
XML = '<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n{}</labels>\n'
TWO_LABELS = XML.format('<label name="TAG_b"></label>\n<label name="TAG_a"/>\n')


def written(folder: Path, content: str | bytes, name: str = "toy.arff") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def check_toy(dataset: Dataset) -> None:
    assert dataset.X.toarray().tolist() == [[0.5, 0, 1, 1], [-2, 1e-3, 0, 0]]
    assert dataset.Y.toarray().tolist() == [[1, 0], [0, 1]]
    assert dataset.label_names == ("TAG_a", "TAG_b")
    assert dataset.feature_names == ("width", "two words", "flag", "it's")


@pytest.mark.parametrize("rows", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_the_ways_to_name_labels(tmp_path: Path, rows: str) -> None:
    path = written(tmp_path, HEAD + rows)
    check_toy(read_arff(path, written(tmp_path, TWO_LABELS, "toy.xml")))
    check_toy(read_arff(path, n_labels=-2))
    meka = HEAD.replace("@RELATION toy", "@relation 'toy: -C -2 -split-percentage 50'")
    check_toy(read_arff(written(tmp_path, meka + rows)))
    check_toy(read_arff(written(tmp_path, ("\ufeff" + meka + rows).replace("\n", "\r\n"))))


def test_labels_at_the_start(tmp_path: Path) -> None:
    text = "@relation 'm: -C 1'\n@attribute l {0,1}\n@attribute f numeric\n@data\n{0 1,1 3}\n{1 0.5}\n{}\n"
    dataset = read_arff(written(tmp_path, text))
    assert dataset.Y.toarray().tolist() == [[1], [0], [0]]
    assert dataset.X.toarray().tolist() == [[3], [0.5], [0]]


def test_nested_labels_are_flattened(tmp_path: Path) -> None:
    nested = XML.format('<label name="TAG_a"><label name="TAG_b"/></label>')
    check_toy(read_arff(written(tmp_path, HEAD + DENSE), written(tmp_path, nested, "toy.xml")))


def test_a_label_with_predefined_entities(tmp_path: Path) -> None:
    path = written(tmp_path, "@relation x\n@attribute 'a&b' {0,1}\n@attribute f numeric\n@data\n1,2\n")
    xml = written(tmp_path, XML.format('<label name="a&amp;b"/>'), "x.xml")
    assert read_arff(path, xml).label_names == ("a&b",)


WRONG_HEADERS = [
    ("", 1, "without @data"),
    (HEAD.split("@DATA")[0], 10, "without @data"),
    ("@relation x\n@data\n1\n", 2, "without any @attribute"),
    ("@relation x\n@attribute a string\n@data\n1\n", 2, "'string'"),
    ("@relation x\n@attribute a date 'yyyy'\n@data\n1\n", 2, "date"),
    ("@relation x\n@attribute a {x,y,z}\n@data\n1\n", 2, "3 values in words"),
    ("@relation x\n@attribute a {x,x}\n@data\n1\n", 2, "twice"),
    ("@relation x\n@attribute a {x y}\n@data\n1\n", 2, "between commas"),
    ("@relation x\n@attribute a {'x}\n@data\n1\n", 2, "quote"),
    ("@relation x\n@attribute\n@data\n1\n", 2, "@attribute name type"),
    ("@relation x\n@attribute a\n@data\n1\n", 2, "type ''"),
    ("relation x\n@attribute a numeric\n@data\n1\n", 1, "in the header"),
    (b"@relation x\n@attribute \xff numeric\n@data\n1\n", 2, "UTF-8"),
    ("@relation x\n@attribute a {0,1}\n@data\n1\n", None, "nothing says which"),
    ("@relation 'x: -C 5'\n@attribute a {0,1}\n@data\n1\n", None, "5 labels of 1 attributes"),
    ("@relation 'x: -C 0'\n@attribute a {0,1}\n@data\n1\n", None, "0 labels of 1 attributes"),
]


@pytest.mark.parametrize(("content", "line", "words"), WRONG_HEADERS, ids=[words for _, _, words in WRONG_HEADERS])
def test_errors_of_the_header(tmp_path: Path, content: str | bytes, line: int | None, words: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_arff(path)
    assert (caught.value.source, caught.value.line) == (str(path), line)
    assert words in caught.value.problem


def test_a_header_larger_than_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "@relation x\n" + "@attribute a numeric\n" * 40_000 + "@data\n")
    monkeypatch.setattr(_limits, "available_memory", lambda: 1_000_000)
    with pytest.raises(DataError, match="memory is free"):
        read_arff(path, n_labels=1)


WRONG_ROWS = [
    ("1,2,0\n", "3 values for 6 attributes"),
    ("1,2,0,no,0,0,0\n", "7 values for 6 attributes"),
    ("1,2,0,maybe,0,0\n", "'maybe'"),
    ("1,2,7,no,0,0\n", "value '7' for attribute 'flag'"),
    ("1,2,0,no,0,2\n", "value '2' for attribute 'TAG_b'"),
    ("1,?,0,no,0,0\n", "missing"),
    ("1,nan,0,no,0,0\n", "value 'nan'"),
    ("1,1e999,0,no,0,0\n", "value '1e999'"),
    ("1,,0,no,0,0\n", "expected one value"),
    ("1,2 3,0,no,0,0\n", "expected one value"),
    ("1,'2,0,no,0,0\n", "quote"),
    ("{0 1,6 1}\n", "attribute index 6"),
    ("{0 1,12345678901234567890 1}\n", "there are 6 attributes"),
    ("{0 1,-1 1}\n", "'-1 1'"),
    ("{0 1,2}\n", "expected one value"),
    ("{0 1,,2 1}\n", "index value"),
    ("{0 1,2 1\n", "ends in"),
    ("{0 1,2 1}, {5}\n", "value '1}'"),
    ("{2 1,0 1}\n", "attribute 0 comes after 2"),
    ("{0 1,0 1}\n", "attribute 0 occurs twice"),
    ("{0 inf}\n", "value 'inf'"),
    ("{4 0.5}\n", "value '0.5' for attribute 'TAG_a'"),
    ("\xff\xfe,0\n", "2 values for 6"),
]


@pytest.mark.parametrize(("row", "words"), WRONG_ROWS, ids=[words for _, words in WRONG_ROWS])
@pytest.mark.parametrize("head", [HEAD, PLAIN_HEAD], ids=["words", "numbers"])
def test_errors_of_the_rows(tmp_path: Path, head: str, row: str, words: str) -> None:
    good = "{0 1}\n\n"
    path = written(tmp_path, head + good + (row if head == HEAD else row.replace("no", "0")))
    with pytest.raises(DataError) as caught:
        read_arff(path, n_labels=-2)
    assert caught.value.line == head.count("\n") + 3
    assert words in caught.value.problem


def test_a_numeric_label_must_be_zero_or_one(tmp_path: Path) -> None:
    path = written(tmp_path, "@relation x\n@attribute f numeric\n@attribute l numeric\n@data\n5,1\n5,3\n")
    with pytest.raises(DataError, match="line 6: label 'l' has the value 3"):
        read_arff(path, n_labels=-1)


def test_a_left_out_value_that_is_not_zero_is_refused(tmp_path: Path) -> None:
    head = "@relation x\n@attribute f {1,0}\n@attribute l {0,1}\n@data\n"
    assert read_arff(written(tmp_path, head + "1,1\n"), n_labels=-1).X.toarray().tolist() == [[1]]
    with pytest.raises(DataError, match="line 5: a sparse row, and the first declared value of attribute 'f' is not 0"):
        read_arff(written(tmp_path, head + "{1 1}\n"), n_labels=-1)


WRONG_XML = [
    ('<!DOCTYPE labels [<!ENTITY a "b">]>' + TWO_LABELS.split("\n", 1)[1], 1, "declaration"),
    ('<!DOCTYPE labels SYSTEM "file:///etc/passwd"><labels/>', 1, "declaration"),
    (XML.format('<label name="&unknown;"/>'), 3, "well-formed"),
    (XML.format('<label name="TAG_a"/>')[:-12], 3, "well-formed"),
    (XML.format("<label/>"), 3, "<label name=...>"),
    (XML.format("<other/>"), 3, "'other'"),
    (XML.format(""), None, "no label"),
    (XML.format('<label name="TAG_c"/>'), None, "'TAG_c' is no attribute"),
    (XML.format('<label name="TAG_a"/><label name="TAG_a"/>'), None, "occurs twice"),
    ('<?xml version="1.0" encoding="utf-7"?><labels/>', None, ""),
    ("", 1, "well-formed"),
]


@pytest.mark.parametrize(("xml", "line", "words"), WRONG_XML, ids=[words for _, _, words in WRONG_XML])
def test_errors_of_the_xml(tmp_path: Path, xml: str, line: int | None, words: str) -> None:
    xml_path = written(tmp_path, xml, "toy.xml")
    with pytest.raises(DataError) as caught:
        read_arff(written(tmp_path, HEAD + DENSE), xml_path)
    assert caught.value.source == str(xml_path)
    assert words in caught.value.problem
    if words:
        assert caught.value.line == line


@settings(max_examples=30, deadline=None)
@given(dataset=datasets(min_labels=1, named=True))
def test_round_trips_are_exact(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    write_arff(dataset, folder / "round.arff")
    back = read_arff(folder / "round.arff", dtype=dataset.X.dtype)
    assert_same_set(back, dataset)
    assert back.feature_names == dataset.feature_names
    if not set(dataset.label_names) & set(dataset.feature_names or ()):
        write_arff(dataset, folder / "round.arff", folder / "round.xml")
        assert_same_set(read_arff(folder / "round.arff", folder / "round.xml", dtype=dataset.X.dtype), dataset)


CELL = st.one_of(st.sampled_from(["0", "1", "-2.5", "1e-3", "0.1", " 1", "7", "?", "", "x", "'1'", "+1", "1."]))
DENSE_ROWS = st.lists(CELL, min_size=3, max_size=4).map(",".join)
SPARSE_ROWS = st.lists(st.tuples(st.integers(0, 4), CELL), max_size=4).map(
    lambda cells: "{" + ",".join(f"{j} {value}" for j, value in cells) + "}"
)


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(st.one_of(DENSE_ROWS, SPARSE_ROWS, st.sampled_from(["", "%"])), max_size=4))
def test_the_fast_way_agrees_with_the_slow_way(rows: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    head = "@relation x\n@attribute a numeric\n@attribute b {0,1,7}\n@attribute l {0,1}\n@data\n"
    header, _ = read_header(written(tmp_path_factory.getbasetemp(), head, "head.arff"))
    reader, block = RowReader(header, "rows"), ("\n".join(rows) + "\n").encode()
    fast = reader.fast_block(block, 6)
    if fast is not None:
        slow = reader.slow_block(block, 6)
        for name in ("columns", "values", "counts", "lines"):
            assert getattr(fast, name).tolist() == getattr(slow, name).tolist()


def test_plain_rows_take_the_fast_way(tmp_path: Path) -> None:
    header, _ = read_header(written(tmp_path, PLAIN_HEAD))
    reader = RowReader(header, "rows")
    for block in (b"{0 0.5,4 1}\n{}\n\n{5 1}\n", b"0.5,0,0,0,1,0\n\n-1,2,0,0,0,1\n"):
        assert reader.fast_block(block, 1) is not None


def test_liac_arff_reads_what_we_write(tmp_path: Path, rng: np.random.Generator) -> None:
    arff = pytest.importorskip("arff")
    from scipy import sparse

    X = sparse.random_array((40, 10), density=0.3, format="csr", rng=rng)
    Y = sparse.csr_array(rng.random((40, 4)) < 0.4, dtype=np.int8)
    path = tmp_path / "set.arff"
    names = ("a b", "c'd", "e", "f%")
    write_arff(Dataset(X, Y, names), path)
    with path.open(encoding="utf-8") as file:
        theirs = arff.load(file, return_type=arff.LOD)
    table = np.zeros((40, 14))
    for i, row in enumerate(theirs["data"]):
        for j, value in row.items():
            table[i, j] = float(value)
    assert np.array_equal(table, np.hstack([Y.toarray(), X.toarray()]))


@pytest.mark.data
@pytest.mark.parametrize(("name", "d", "L"), [("bibtex", 1836, 159), ("delicious", 500, 983)])
def test_real_sets_are_what_liac_arff_reads(data_root: Path, name: str, d: int, L: int) -> None:
    arff = pytest.importorskip("arff")
    folder = data_root / name
    dataset = read_arff(folder / f"{name}-test.arff", folder / f"{name}.xml")
    assert (dataset.n_features, dataset.n_labels) == (d, L)
    with (folder / f"{name}-test.arff").open(encoding="utf-8") as file:
        theirs = arff.load(file, return_type=arff.LOD)
    columns = {attribute: j for j, (attribute, _) in enumerate(theirs["attributes"])}
    stored = {(i, j) for i, row in enumerate(theirs["data"]) for j, value in row.items() if float(value) == 1}
    assert dataset.feature_names is not None
    for matrix, names in ((dataset.X, dataset.feature_names), (dataset.Y, dataset.label_names)):
        rows, found = matrix.nonzero()
        ours = {(int(i), columns[names[j]]) for i, j in zip(rows, found, strict=True)}
        assert ours <= stored
        stored -= ours
    assert not stored
