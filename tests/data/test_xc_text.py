"""XC text: hand-written files, scikit-learn on the same content, round trips, and every way to be wrong."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from matrix_sets import assert_same_set, datasets
from streamlabel.data import files as _limits
from streamlabel.data.npz import read_npz
from streamlabel.data.xc_svmlight import read_xc_pair, read_xc_text, write_xc_pair, write_xc_text
from streamlabel.errors import DataError, NotFoundError
from streamlabel.types import Dataset

GOOD = "4 5 3\n0,2 1:0.5 4:-2\n 0:1e-3\n1\n\n"


def written(folder: Path, content: str | bytes, name: str = "set.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def check_good(dataset: Dataset) -> None:
    X = [[0, 0.5, 0, 0, -2], [1e-3, 0, 0, 0, 0], [0] * 5, [0] * 5]
    assert np.array_equal(dataset.X.toarray(), X)
    assert np.array_equal(dataset.Y.toarray(), [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0]])
    assert dataset.X.dtype == np.float64
    assert dataset.Y.dtype == np.int8
    assert dataset.label_names == ("label_0", "label_1", "label_2")


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        GOOD.rstrip("\n") + "\n \n\n\n",
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        GOOD.replace(" 0:1e-3", "0:1e-3"),
        GOOD.replace("1:0.5 4:-2", "\t 1:0.5   4:-2 "),
        GOOD.replace("0,2", "2,0"),
    ],
    ids=["plain", "blank end", "windows", "byte order mark", "no leading space", "more spaces", "labels in any order"],
)
def test_a_file_by_hand(tmp_path: Path, content: str) -> None:
    check_good(read_xc_text(written(tmp_path, content)))


def test_packed_files(tmp_path: Path) -> None:
    check_good(read_xc_text(written(tmp_path, gzip.compress(GOOD.encode()), "set.txt.gz")))
    check_good(read_xc_text(written(tmp_path, bz2.compress(GOOD.encode()), "set.txt.bz2")))


def test_ids_from_one_names_and_type(tmp_path: Path) -> None:
    path = written(tmp_path, "1 2 2\n1,2 1:0.1 2:3\n")
    dataset = read_xc_text(
        path, first_label=1, first_feature=1, label_names=["a", "b"], feature_names=["x", "y"], dtype=np.float32
    )
    assert np.array_equal(dataset.X.toarray(), np.array([[0.1, 3]], dtype=np.float32))
    assert dataset.Y.toarray().tolist() == [[1, 1]]
    assert (dataset.label_names, dataset.feature_names) == (("a", "b"), ("x", "y"))


WRONG = [
    ("", 1, "header"),
    ("1 2\n0 1:1\n", 1, "3 whole numbers"),
    ("1 2 -3\n0 1:1\n", 1, "3 whole numbers"),
    ("1 5 99999999999999999999\n0 1:1\n", 1, "no machine"),
    ("1 5 999999999999999\n0 1:1\n", 1, "memory"),
    ("1 999999999999999 5\n0 1:1\n", 1, "memory"),
    ("3 5 3\n0 1:1\n1 2:1\n", 3, "header says 3 rows, the file has 2"),
    ("999999999999999 5 3\n0 1:1\n1 2:1\n", 3, "the file has 2"),
    ("1 5 3\n0 1:1\n\n1 2:1\n", 4, "header says 1 rows"),
    ("2 5 3\n0 1:1\n3 2:1\n", 3, "label 3, but there are 3 labels"),
    ("2 5 3\n0 1:1\n-1 2:1\n", 3, "label '-1'"),
    ("2 5 3\n0 1:1\n0 5:1\n", 3, "feature 5, but there are 5 features"),
    ("2 5 3\n0 1:1\n0 123456789012345678901:1\n", 3, "but there are 5 features"),
    ("2 5 3\n0 1:1\n0 x:1\n", 3, "feature 'x'"),
    ("2 5 3\n0 1:1\n0 1:nan\n", 3, "value 'nan'"),
    ("2 5 3\n0 1:1\n0 1:-inf\n", 3, "value '-inf'"),
    ("2 5 3\n0 1:1\n0 1:1e999\n", 3, "value '1e999'"),
    ("2 5 3\n0 1:1\n0 1:1_0\n", 3, "value '1_0'"),
    ("2 5 3\n0 1:1\n0 1:\n", 3, "nothing between"),
    ("2 5 3\n0 1:1\n0 1:1:1\n", 3, "a row reads"),
    ("2 5 3\n0 1:1\n0,,1 1:1\n", 3, "nothing between ','"),
    ("2 5 3\n0 1:1\n0, 1:1\n", 3, "nothing between ','"),
    ("2 5 3\n0 1:1\n0 1 1:1\n", 3, "a row reads"),
    ("2 5 3\n0 1:1\n0 3:1 2:1\n", 3, "feature 2 comes after 3"),
    ("2 5 3\n0 1:1\n0 3:1 3:1\n", 3, "feature 3 occurs twice"),
    ("2 5 3\n0 1:1\n2,1,2 3:1\n", 3, "label 2 occurs twice"),
    ("2 5 3\n0 1:1\n\x00\x01\x02", 3, "NUL"),
    ("2 5 3\n0 1:1\n\x89PNG\x1a\n", 3, "label"),
    ("1 5 3\n0 1:1\r1 2:1\n", 2, "value"),
]


@pytest.mark.parametrize(("content", "line", "words"), WRONG, ids=[words for _, _, words in WRONG])
def test_one_error_with_file_line_and_reason(tmp_path: Path, content: str, line: int, words: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_xc_text(path)
    assert caught.value.line == line
    assert caught.value.source == str(path)
    assert words in caught.value.problem


def test_the_line_is_right_far_into_a_large_file(tmp_path: Path) -> None:
    lines = ["0 " + " ".join(f"{j}:0.25" for j in range(100))] * 3000
    lines[2500] = lines[2500].replace("77:0.25", "77:0.2.5")
    path = written(tmp_path, "\n".join(["3000 100 1", *lines]))
    with pytest.raises(DataError, match=r"line 2502: value '0\.2\.5'"):
        read_xc_text(path)


def test_first_label_is_named_as_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="label 0; ids start at 1"):
        read_xc_text(written(tmp_path, "1 1 1\n0 1:1\n"), first_label=1)


def test_sort_accepts_disorder_but_not_duplicates(tmp_path: Path) -> None:
    path = written(tmp_path, "2 5 1\n0 3:1 2:4\n 4:1 0:2\n")
    assert read_xc_text(path, sort=True).X.toarray().tolist() == [[0, 0, 4, 1, 0], [2, 0, 0, 0, 1]]
    with pytest.raises(DataError, match="line 2: feature 3 occurs twice"):
        read_xc_text(written(tmp_path, "1 5 1\n0 3:1 2:4 3:5\n"), sort=True)


def test_a_value_too_large_for_float32_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1 1\n0 0:1e39\n")
    assert read_xc_text(path).X.data.tolist() == [1e39]
    with pytest.raises(DataError, match="line 2: value '1e39'"):
        read_xc_text(path, dtype=np.float32)


def test_a_header_larger_than_memory_is_refused_before_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "1 5 1000\n0 1:1\n")
    read_xc_text(path)
    monkeypatch.setattr(_limits, "available_memory", lambda: 10_000)
    with pytest.raises(DataError, match="line 1: a set of 5 features and 1000 labels needs"):
        read_xc_text(path)


def test_a_packed_file_that_inflates_beyond_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(b"1000000 5 1\n" + b"0 1:1 2:1\n" * 1_000_000)
    monkeypatch.setattr(_limits, "available_memory", lambda: 5_000_000)
    with pytest.raises(DataError, match="joining the rows"):
        read_xc_text(written(tmp_path, bomb, "bomb.txt.gz"))


def test_one_line_larger_than_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(b"1 5 1\n" + b" " * 20_000_000 + b"\n")
    monkeypatch.setattr(_limits, "available_memory", lambda: 100_000_000)
    with pytest.raises(DataError, match="bytes without a row end needs"):
        read_xc_text(written(tmp_path, bomb, "bomb.txt.gz"))


def test_a_packed_file_cut_short(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cut short"):
        read_xc_text(written(tmp_path, gzip.compress(GOOD.encode())[:-12], "set.txt.gz"))


def test_no_file_and_no_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        read_xc_text(tmp_path / "none.txt")
    with pytest.raises(DataError, match="is a folder; name a file in it"):
        read_xc_text(tmp_path)
    with pytest.raises(DataError, match="cannot be written"):
        write_xc_text(read_xc_text(written(tmp_path, GOOD)), tmp_path / "none" / "set.txt")


def test_names_must_fit(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    with pytest.raises(DataError, match="2 label names for 3 labels"):
        read_xc_text(path, label_names=["a", "b"])
    with pytest.raises(DataError, match="1 feature names for 5 features"):
        read_xc_text(path, feature_names=["a"])


def test_two_files(tmp_path: Path) -> None:
    features = written(tmp_path, "3 4\n0:0.5 3:2\n\n1:1\n", "trn_X_Xf.txt")
    labels = written(tmp_path, "3 2\n1:1.00000\n0:1 1:1\n\n", "trn_X_Y.txt")
    dataset = read_xc_pair(features, labels)
    assert dataset.X.toarray().tolist() == [[0.5, 0, 0, 2], [0] * 4, [0, 1, 0, 0]]
    assert dataset.Y.toarray().tolist() == [[0, 1], [1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("labels", "line", "words"),
    [
        ("2 2\n1:1\n0:1\n", None, "2 rows of labels for 3 rows"),
        ("3 2\n1:1\n0:2\n\n", 3, "value 2"),
        ("3 2\n1:1\n0\n\n", 3, "label 0, but there are 0"),
        ("3 2 4\n1:1\n0:1\n\n", 1, "2 whole numbers"),
    ],
)
def test_two_files_that_do_not_fit(tmp_path: Path, labels: str, line: int | None, words: str) -> None:
    features = written(tmp_path, "3 4\n0:0.5 3:2\n\n1:1\n", "trn_X_Xf.txt")
    with pytest.raises(DataError) as caught:
        read_xc_pair(features, written(tmp_path, labels, "trn_X_Y.txt"))
    assert caught.value.line == line
    assert words in caught.value.problem


@settings(max_examples=30, deadline=None)
@given(dataset=datasets())
def test_round_trips_are_exact(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    write_xc_text(dataset, folder / "round.txt.gz", first_label=1)
    assert_same_matrices(read_xc_text(folder / "round.txt.gz", first_label=1, dtype=dataset.X.dtype), dataset)
    write_xc_pair(dataset, folder / "round_X.txt", folder / "round_Y.txt")
    assert_same_set(read_xc_pair(folder / "round_X.txt", folder / "round_Y.txt", dtype=dataset.X.dtype), dataset)


def assert_same_matrices(got: Dataset, expected: Dataset) -> None:
    assert got.label_names == tuple(f"label_{j + 1}" for j in range(expected.n_labels))
    assert (got.X != expected.X).nnz == 0
    assert (got.Y != expected.Y).nnz == 0
    assert got.X.data.tobytes() == expected.X.data.tobytes()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    broken = Dataset(X=sparse.csr_array(np.eye(2)), Y=None, label_names=())  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        write_xc_text(broken, path)
    check_good(read_xc_text(path))
    assert [file.name for file in tmp_path.iterdir()] == ["set.txt"]


def test_scikit_learn_reads_the_same(tmp_path: Path, rng: np.random.Generator) -> None:
    X = sparse.random_array((200, 50), density=0.2, format="csr", rng=rng)
    Y = sparse.csr_array(rng.random((200, 8)) < 0.3, dtype=np.int8)
    path = tmp_path / "set.txt"
    write_xc_text(Dataset(X, Y, tuple("abcdefgh")), path)
    dataset = read_xc_text(path)
    body = written(tmp_path, path.read_bytes().split(b"\n", 1)[1], "body.txt")
    theirs, labels = load_svmlight_file(str(body), n_features=50, multilabel=True, zero_based=True)
    assert (abs(dataset.X - theirs)).nnz == 0
    assert [tuple(row.nonzero()[0]) for row in dataset.Y.toarray()] == [tuple(map(int, row)) for row in labels]


@pytest.mark.data
def test_a_real_set_survives_the_text(data_root: Path, tmp_path: Path) -> None:
    dataset = read_npz(data_root / "mediamill_reduced", split="test")
    write_xc_text(dataset, tmp_path / "set.txt")
    back = read_xc_text(tmp_path / "set.txt", label_names=dataset.label_names, dtype=np.float32)
    assert_same_set(back, dataset)
