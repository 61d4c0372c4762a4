"""npz: scipy on the same files, round trips with everything a set holds, and files made to do harm."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from matrix_sets import assert_same_matrix, assert_same_set, datasets
from streamlabel.data import files as _limits
from streamlabel.data.npz import read_npz, write_members, write_npz
from streamlabel.errors import DataError, NotFoundError
from streamlabel.types import Dataset

X = sparse.csr_array(np.array([[0, 1.5, 0], [2, 0, 3]]))
Y = sparse.csr_array(np.array([[1, 0], [1, 1]], dtype=np.uint8))
PARTS: dict[str, Any] = {
    "format": b"csr",
    "shape": np.array([2, 3]),
    "data": X.data,
    "indices": X.indices,
    "indptr": X.indptr,
}


def saved(folder: Path, **changes: Any) -> tuple[Path, Path]:
    np.savez(folder / "X.npz", **{name: value for name, value in (PARTS | changes).items() if value is not None})
    sparse.save_npz(folder / "Y.npz", Y)
    return folder / "X.npz", folder / "Y.npz"


def test_a_pair(tmp_path: Path) -> None:
    dataset = read_npz(*saved(tmp_path), label_names=["a", "b"])
    assert dataset.X.toarray().tolist() == X.toarray().tolist()
    assert dataset.Y.toarray().tolist() == Y.toarray().tolist()
    assert dataset.Y.dtype == np.int8
    assert dataset.label_names == ("a", "b")


def test_columns_dense_matrices_and_integers(tmp_path: Path) -> None:
    _, labels = saved(tmp_path)
    sparse.save_npz(tmp_path / "C.npz", sparse.csc_array(X))
    assert read_npz(tmp_path / "C.npz", labels).X.toarray().tolist() == X.toarray().tolist()
    np.savez_compressed(tmp_path / "D.npz", X=np.asfortranarray(X.toarray()))
    assert read_npz(tmp_path / "D.npz", labels).X.toarray().tolist() == X.toarray().tolist()
    big_endian, _ = saved(tmp_path, data=np.array([1, 2, 3], dtype=">i4"))
    assert read_npz(big_endian, labels).X.data.tolist() == [1.0, 2.0, 3.0]


WRONG = [
    ({"indptr": np.array([0, 1])}, "indptr"),
    ({"indptr": np.array([1, 1, 3])}, "indptr"),
    ({"indptr": np.array([0, 1, 4])}, "indptr"),
    ({"indptr": np.array([0, 4, 3])}, "indptr decreases"),
    ({"indptr": np.array([0, -1, 3])}, "indptr decreases"),
    ({"indptr": np.array([0.0, 1.0, 3.0])}, "expected integers"),
    ({"indices": np.array([1, 0, 3])}, "index 3"),
    ({"indices": np.array([1, -1, 2])}, "index -1"),
    ({"indices": np.array([1, 2, 0])}, "matrix row 1: feature 0 comes after 2"),
    ({"indices": np.array([1, 2, 2])}, "matrix row 1: feature 2 occurs twice"),
    ({"indices": np.array([[1, 2, 2]])}, "two lists"),
    ({"data": np.array([1.0, 2.0])}, "two lists"),
    ({"data": np.array([1.0, np.nan, 2.0])}, "NaN or infinity in row 1"),
    ({"data": np.array(["a", "b", "c"])}, "expected numbers"),
    ({"data": np.array([1, None, 2], dtype=object)}, "pickled"),
    ({"data": np.array([1j, 2j, 3j])}, "expected a list"),
    ({"shape": np.array([2, -3])}, "two counts"),
    ({"shape": np.array([2, 3, 4])}, "two counts"),
    ({"shape": np.array([2, 10**15])}, "memory"),
    ({"shape": np.array([10**15, 3])}, "memory"),
    ({"shape": np.array([3, 3])}, "indptr"),
    ({"format": b"coo"}, "save it as CSR"),
    ({"format": None}, "'format'"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG, ids=[words for _, words in WRONG])
def test_one_error_with_file_and_reason(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    files = saved(tmp_path, **changes)
    with pytest.raises(DataError, match=words) as caught:
        read_npz(*files)
    assert str(files[0]) in str(caught.value)


def test_sort_accepts_disorder(tmp_path: Path) -> None:
    dataset = read_npz(*saved(tmp_path, indices=np.array([1, 2, 0])), sort=True)
    assert dataset.X.toarray().tolist() == [[0, 1.5, 0], [3, 0, 2]]


def test_labels_are_zero_or_one_and_as_many_as_rows(tmp_path: Path) -> None:
    features, labels = saved(tmp_path)
    sparse.save_npz(labels, sparse.csr_array(np.array([[1, 0], [2, 1]])))
    with pytest.raises(DataError, match=r"Y\.npz: Y holds 2"):
        read_npz(features, labels)
    sparse.save_npz(labels, sparse.csr_array(np.ones((3, 2))))
    with pytest.raises(DataError, match=r"Y\.npz: 3 rows for 2 rows of X"):
        read_npz(features, labels)


def test_a_file_cut_anywhere_is_a_data_error(tmp_path: Path) -> None:
    features, labels = saved(tmp_path)
    content = features.read_bytes()
    for size in range(0, len(content), 29):
        features.write_bytes(content[:size])
        with pytest.raises(DataError):
            read_npz(features, labels)


def archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    features, labels = saved(tmp_path)
    with zipfile.ZipFile(features, "a") as file:
        file.writestr("data.npy", b"")
    with pytest.raises(DataError, match="two members of the same name"):
        read_npz(features, labels)


def npy(header: str, content: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"), "too short"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", b"0" * 49), "has not the 48 bytes"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"cos\nsystem\n."), "pickled"),
        (npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }"), "plain array"),
        (npy("{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }"), "type '<f3'"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1), }"), "list or a matrix"),
        (npy("(" * 5000), "plain array"),
        (b"PK", "not an .npy array"),
    ],
)
def test_headers_that_lie(tmp_path: Path, member: bytes, words: str) -> None:
    features, labels = saved(tmp_path)
    features.write_bytes(archive({"X.npy": member}))
    with pytest.raises(DataError, match=words):
        read_npz(features, labels)


def test_sizes_are_checked_before_inflating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = saved(tmp_path)
    zeros = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000, 1000), }", bytes(8_000_000))
    features.write_bytes(archive({"X.npy": zeros}))
    assert features.stat().st_size < 20_000
    monkeypatch.setattr(_limits, "available_memory", lambda: 10_000_000)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("the archive was opened"))
    with pytest.raises(DataError, match="the arrays in it needs"):
        read_npz(features, labels)


@settings(max_examples=20, deadline=None)
@given(dataset=datasets(named=True))
def test_round_trips_are_exact(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "round"
    ids = tuple(f'row "{i}",\n é' for i in range(dataset.n_rows))
    dates = np.datetime64("1958-07-01") + np.arange(dataset.n_rows)
    dataset = replace(dataset, row_ids=ids, row_dates=dates)
    write_npz(dataset, folder, split="all")
    back = read_npz(folder, split="all")
    assert_same_set(back, dataset)
    assert (back.feature_names, back.row_ids) == (dataset.feature_names, ids)
    assert back.row_dates is not None
    assert np.array_equal(back.row_dates, dates)


def test_a_folder_without_names_or_rows(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "X_dev.npz", X)
    sparse.save_npz(tmp_path / "Y_dev.npz", Y)
    dataset = read_npz(tmp_path, split="dev")
    assert dataset.label_names == ("label_0", "label_1")
    assert dataset.feature_names is dataset.row_ids is dataset.row_dates is None
    with pytest.raises(NotFoundError, match=r"the splits \['dev'\]"):
        read_npz(tmp_path)


@pytest.mark.parametrize(
    ("rows", "line", "words"),
    [
        ("id,date\na,1958-07-01\n", None, "1 rows after the header, the matrix has 2"),
        ("id,date\na,1958-07-01\nb,soon\n", 3, "date 'soon'"),
        ("id,date\na,1958-07-01\nb\n", 3, "1 fields"),
        ('id,date\na,1958-07-01\n"b', None, "CSV"),
    ],
)
def test_rows_that_do_not_fit(tmp_path: Path, rows: str, line: int | None, words: str) -> None:
    write_npz(Dataset(X, Y.astype(np.int8), ("a", "b")), tmp_path)
    (tmp_path / "rows_train.csv").write_text(rows, encoding="utf-8")
    with pytest.raises(DataError, match=words) as caught:
        read_npz(tmp_path)
    assert caught.value.line == line


def test_names_that_do_not_fit(tmp_path: Path) -> None:
    write_npz(Dataset(X, Y.astype(np.int8), ("a", "b")), tmp_path)
    (tmp_path / "labels.txt").write_text("a\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 label names for 2 labels"):
        read_npz(tmp_path)
    (tmp_path / "labels.txt").write_bytes(b"\xff\n")
    with pytest.raises(DataError, match="not UTF-8"):
        read_npz(tmp_path)


def test_what_is_not_there(tmp_path: Path) -> None:
    features, labels = saved(tmp_path)
    with pytest.raises(NotFoundError):
        read_npz(tmp_path / "none")
    with pytest.raises(NotFoundError):
        read_npz(tmp_path / "none.npz", labels)
    with pytest.raises(DataError, match="X without Y"):
        read_npz(features)


@pytest.mark.data
@pytest.mark.parametrize("name", ["mediamill_reduced", "citeulike-t-min5", "citeulike-t", "eurlex57k"])
def test_real_sets_are_what_scipy_loads(data_root: Path, name: str) -> None:
    dataset = read_npz(data_root / name, split="test")
    assert_same_matrix(dataset.X, sparse.csr_array(sparse.load_npz(data_root / name / "X_test.npz")))
    theirs = sparse.csr_array(sparse.load_npz(data_root / name / "Y_test.npz")).astype(np.int8)
    assert_same_matrix(dataset.Y, theirs)
    assert len(dataset.label_names) == dataset.n_labels
    assert (dataset.row_dates is not None) == (name == "eurlex57k")


def test_arrays_are_written_as_numpy_writes_them_and_never_pickled() -> None:
    ours, theirs = io.BytesIO(), io.BytesIO()
    arrays = {"names": np.array(["one", "zwei"]), "one": np.int64(3), "matrix": np.asfortranarray(np.eye(3))}
    write_members(ours, arrays)
    np.savez(theirs, **arrays)
    assert ours.getvalue() == theirs.getvalue()
    with pytest.raises(ValueError, match="allow_pickle"):
        write_members(io.BytesIO(), {"objects": np.array([{}], dtype=object)})


def test_plain_arrays_with_tags_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X.toarray().astype(np.float32))
    np.save(tmp_path / "Y.npy", Y.toarray())
    found = read_npz(tmp_path / "X.npy", tmp_path / "Y.npy", label_names=["a", "b"])
    assert (found.X.dtype, found.X.toarray().tolist()) == (np.float32, X.toarray().tolist())
    assert found.Y.toarray().tolist() == Y.toarray().tolist()
    np.save(tmp_path / "one.npy", np.array([True, False]))
    assert read_npz(tmp_path / "X.npy", tmp_path / "one.npy").Y.toarray().tolist() == [[1], [0]]
    for lines in ('["a"]\n["a", "b"]\n', '{"tags": ["a"]}\n\n{"tags": ["a", "b", "b"]}\n'):
        (tmp_path / "tags.jsonl").write_text(lines)
        named = read_npz(tmp_path / "X.npy", tmp_path / "tags.jsonl")
        assert (named.label_names, named.Y.toarray().tolist()) == (("a", "b"), Y.toarray().tolist())
    alone = read_npz(tmp_path / "X.npy", need_labels=False)
    assert (alone.n_rows, alone.n_labels) == (2, 0)


def test_plain_arrays_that_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X.toarray())
    np.save(tmp_path / "O.npy", np.array([[1, "a"]], dtype=object), allow_pickle=True)
    np.save(tmp_path / "nan.npy", np.array([[np.nan], [1.0]]))
    (tmp_path / "short.npy").write_bytes((tmp_path / "X.npy").read_bytes()[:-8])
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "tags.jsonl").write_text('["a"]\n"b"\n')
    (tmp_path / "few.jsonl").write_text('["a"]\n')
    for rows, labels, says in (
        ("X.npy", None, "X without Y"),
        ("O.npy", "X.npy", "pickled Python objects"),
        ("nan.npy", "X.npy", "NaN or infinity in row 0"),
        ("short.npy", "X.npy", "it is damaged"),
        ("text.npy", "X.npy", "is not an .npy array"),
        ("X.npy", "tags.jsonl", r"tags.jsonl, line 2: no list of label names"),
        ("X.npy", "few.jsonl", "1 rows for 2 rows of X"),
    ):
        with pytest.raises(DataError, match=says):
            read_npz(tmp_path / rows, labels and tmp_path / labels)
    with pytest.raises(NotFoundError):
        read_npz(tmp_path / "nothing.npy", tmp_path / "X.npy")
