"""Multi-label svmlight: hand-written files, scikit-learn both ways, round trips, errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from matrix_sets import assert_same_set, datasets
from streamlabel.data import files as _limits
from streamlabel.data.xc_svmlight import read_svmlight, write_svmlight
from streamlabel.errors import DataError
from streamlabel.types import Dataset


def written(folder: Path, content: str) -> Path:
    path = folder / "set.svm"
    path.write_bytes(content.encode())
    return path


def test_a_file_by_hand(tmp_path: Path) -> None:
    path = written(tmp_path, "# a set\n0,2 1:0.5 3:2 # first\n 2:1\n1\n \n  # not a row\n\n0 1:1\n\n\n")
    dataset = read_svmlight(path)
    assert dataset.X.toarray().tolist() == [[0.5, 0, 2], [0, 1, 0], [0] * 3, [0] * 3, [0] * 3, [1, 0, 0]]
    assert dataset.Y.toarray().tolist() == [[1, 0, 1], [0] * 3, [0, 1, 0], [0] * 3, [0] * 3, [1, 0, 0]]
    wider = read_svmlight(path, n_features=5, n_labels=4)
    assert (wider.n_features, wider.n_labels) == (5, 4)


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    dataset = read_svmlight(written(tmp_path, "\ufeff0 1:1\r\n1 2:1\r\n\r\n"))
    assert dataset.X.toarray().tolist() == [[1, 0], [0, 1]]


WRONG = [
    ("", 1, "no rows"),
    ("\n\n", 1, "no rows"),
    ("0 1:1\n0 0:1\n", 2, "feature 0; ids start at 1 (use first_feature=0"),
    ("0 1:1\n-1 1:1\n", 2, "label '-1'"),
    ("0 1:1\n0 qid:3 1:1\n", 2, "qid"),
    ("# c\n0 1:1\n0 2:1 1:1\n", 3, "feature 1 comes after 2"),
    ("0 1:1\n# c\n0 2:1 2:1\n", 3, "feature 2 occurs twice"),
    ("0 1:1\n\n\n0 1:nan\n", 4, "value 'nan'"),
    ("0 1:1\n0 999999999999999:1\n", None, "memory"),
    ("999999999999999 1:1\n", None, "memory"),
    ("0 99999999999999999999:1\n", 1, "too large"),
    ("# streamlabel n_rows=3 n_features=2 n_labels=1\n0 1:1\n", 1, "says 3 rows, the file has 1"),
    ("# streamlabel n_rows=1 n_features=2 n_labels=1\n0 3:1\n", 2, "there are 2 features"),
    ("# streamlabel n_rows=1 n_features=2 n_labels=999999999999999\n0 3:1\n", 1, "memory"),
]


@pytest.mark.parametrize(("content", "line", "words"), WRONG, ids=[words for _, _, words in WRONG])
def test_one_error_with_file_line_and_reason(tmp_path: Path, content: str, line: int | None, words: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_svmlight(path)
    assert (caught.value.source, caught.value.line) == (str(path), line)
    assert words in caught.value.problem


def test_empty_lines_between_blocks_are_rows(tmp_path: Path) -> None:
    # More empty lines than a block holds: they count when a row follows, and do not when the file ends.
    gap = "\n" * 600_000
    assert read_svmlight(written(tmp_path, f"0 1:1\n{gap}0 1:1\n{gap}")).n_rows == 600_002


def test_a_gap_larger_than_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "0 1:1\n" + "\n" * 3_000_000 + "0 1:1\n")
    monkeypatch.setattr(_limits, "available_memory", lambda: 200_000_000)
    with pytest.raises(DataError, match="line 2: a piece of"):
        read_svmlight(path)


@settings(max_examples=30, deadline=None)
@given(dataset=datasets())
def test_round_trips_are_exact(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "round.svm"
    write_svmlight(dataset, path)
    assert_same_set(read_svmlight(path, dtype=dataset.X.dtype), dataset)


def test_scikit_learn_reads_what_we_write_and_we_read_what_it_writes(tmp_path: Path, rng: np.random.Generator) -> None:
    X = sparse.random_array((100, 30), density=0.2, format="csr", rng=rng)
    Y = sparse.csr_array(rng.random((100, 6)) < 0.4, dtype=np.int8)
    path = str(tmp_path / "set.svm")
    write_svmlight(Dataset(X, Y, tuple("abcdef")), path)
    theirs, labels = load_svmlight_file(path, n_features=30, multilabel=True, zero_based=False)
    rows = [i for i in range(100) if X.indptr[i] < X.indptr[i + 1] or Y.indptr[i] < Y.indptr[i + 1]]
    assert (abs(theirs - X[rows])).nnz == 0
    assert labels == [tuple(np.flatnonzero(row)) for row in Y.toarray()[rows]]
    dump_svmlight_file(X, Y.toarray(), path, multilabel=True, zero_based=False, comment="by scikit-learn")
    ours = read_svmlight(path, n_features=30, n_labels=6)
    assert (ours.Y != Y).nnz == 0
    np.testing.assert_allclose(ours.X.toarray(), X.toarray(), rtol=1e-14)
