"""Any bytes at all: each reader gives a sound data set or one DataError, in bounded time and memory."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from streamlabel.data import files as _limits
from streamlabel.data.arff import read_arff
from streamlabel.data.npz import read_npz
from streamlabel.data.xc_svmlight import read_svmlight, read_xc_pair, read_xc_text
from streamlabel.errors import DataError
from streamlabel.types import Dataset

XC = b"3 6 4\n0,2 1:0.5 4:-2.25\n 0:1e-3 5:7\n1,3\n"
XF = b"2 3\n0:0.5 2:1\n1:2\n"
XY = b"2 2\n0:1 1:1\n\n"
SVM = b"# streamlabel n_rows=3 n_features=6 n_labels=4\n0,2 1:0.5 4:-2.25 # c\n 2:1e-3\n1,3\n"
ARFF = (
    b"@relation 'toy: -C 2'\n\n@attribute a {0,1}\n@attribute 'b c' {no,yes}\n@attribute w numeric\n"
    b"@attribute v {0,1}\n@data\n1,yes,0.5,1\n{0 1,2 -3}\n% c\n{}\n"
)
PLAIN_ARFF = ARFF.replace(b"no,yes", b"0,1").replace(b"1,yes,0.5,1\n", b"").replace(b"% c\n", b"{2 0.25,3 1}\n")
XML = b'<?xml version="1.0"?>\n<labels xmlns="x"><label name="a"/><label name="b c"></label></labels>\n'


def _npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _saved(matrix: sparse.csr_array) -> bytes:
    parts = {"indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape), "data": matrix.data}
    return _npz(format=np.array(b"csr"), **parts)


X_NPZ = _saved(sparse.csr_array(np.array([[0, 1.5, 0], [2, 0, 3]])))
Y_NPZ = _saved(sparse.csr_array(np.array([[1, 0], [1, 1]], dtype=np.uint8)))

PIECES = [
    b" ",
    b",",
    b":",
    b"\n",
    b"\r\n",
    b"\0",
    b"-",
    b".",
    b"e",
    b"9" * 12,
    b"nan",
    b"{",
    b"}",
    b"'",
    b"%",
    b"#",
    b"\xff",
]
PIECES += [
    b"1e999",
    b"\\",
    b'"',
    b"?",
    b"&x;",
    b"<!DOCTYPE a>",
    b"@data\n",
    b"-C 9",
    b"\xef\xbb\xbf",
    b"0 1:1 1:1",
    b"_",
]
INSERTS = st.one_of(st.sampled_from(PIECES), st.binary(max_size=4))
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), INSERTS), min_size=0, max_size=4)


def edited(content: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    """Each edit (where, how much, what) replaces some bytes by others."""
    for where, n_removed, inserted in edits:
        start = int(where * len(content))
        content = content[:start] + inserted + content[start + n_removed :]
    return content


def corrupted(valid: bytes) -> st.SearchStrategy[bytes]:
    cut = st.integers(0, len(valid)).map(lambda size: valid[:size])
    return st.one_of(EDITS.map(lambda edits: edited(valid, edits)), cut, st.binary(max_size=200))


@st.composite
def matrix_archives(draw: st.DrawFn) -> bytes:
    """Well-formed archives whose arrays need not make a matrix."""
    kinds = st.sampled_from([np.int32, np.int64, np.uint8, np.float32, np.float64, "S2", bool])

    def array(low: int, high: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(low, high), max_size=5))).astype(draw(kinds))

    with np.errstate(all="ignore"):
        return _npz(
            format=np.array(draw(st.sampled_from([b"csr", b"csc", b"coo"]))),
            shape=np.array(draw(st.lists(st.sampled_from([0, 1, 2, 3, -1, 2**40, 2**62]), min_size=1, max_size=3))),
            data=array(0, 2),
            indices=array(-1, 3),
            indptr=array(-1, 4),
        )


def _one(reader: Callable[[Path], Dataset], name: str) -> Callable[[Path, list[bytes]], Dataset]:
    def read(folder: Path, contents: list[bytes]) -> Dataset:
        (folder / name).write_bytes(contents[0])
        return reader(folder / name)

    return read


def _two(reader: Callable[[Path, Path], Dataset], name: str, other: str) -> Callable[[Path, list[bytes]], Dataset]:
    def read(folder: Path, contents: list[bytes]) -> Dataset:
        (folder / name).write_bytes(contents[0])
        (folder / other).write_bytes(contents[1])
        return reader(folder / name, folder / other)

    return read


CASES: dict[str, tuple[Callable[[Path, list[bytes]], Dataset], st.SearchStrategy[list[bytes]]]] = {
    "xc_text": (_one(read_xc_text, "f.txt"), st.tuples(corrupted(XC)).map(list)),
    "xc_pair": (_two(read_xc_pair, "f.txt", "l.txt"), st.tuples(corrupted(XF), corrupted(XY)).map(list)),
    "svmlight": (_one(read_svmlight, "f.svm"), st.tuples(corrupted(SVM)).map(list)),
    "arff_meka": (_one(read_arff, "f.arff"), st.tuples(st.one_of(corrupted(ARFF), corrupted(PLAIN_ARFF))).map(list)),
    "arff_mulan": (_two(read_arff, "f.arff", "f.xml"), st.tuples(corrupted(ARFF), corrupted(XML)).map(list)),
    "npz": (
        _two(read_npz, "X.npz", "Y.npz"),
        st.tuples(st.one_of(corrupted(X_NPZ), matrix_archives()), st.one_of(st.just(Y_NPZ), corrupted(Y_NPZ))).map(
            list
        ),
    ),
}


def check_sound(dataset: Dataset) -> None:
    for matrix, kinds in ((dataset.X, (np.float32, np.float64)), (dataset.Y, (np.int8,))):
        assert isinstance(matrix, sparse.csr_array)
        assert matrix.dtype in kinds
        assert matrix.shape[0] == dataset.n_rows
        matrix.check_format(full_check=True)
        assert matrix.has_canonical_format
        assert np.isfinite(matrix.data).all()
    assert (dataset.Y.data == 1).all()
    assert len(set(dataset.label_names)) == dataset.n_labels
    assert dataset.feature_names is None or len(dataset.feature_names) == dataset.n_features


def fuzz(name: str, folder: Path, contents: list[bytes]) -> None:
    reader, _ = CASES[name]
    try:
        dataset = reader(folder, contents)
    except DataError as error:
        assert str(folder) in str(error)  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
        return
    check_sound(dataset)


@pytest.fixture(autouse=True, scope="module")
def _little_memory():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_limits, "available_memory", lambda: 64 * 2**20)
        yield


def _runs(n_examples: int, **options: Any) -> Callable[[Any], Any]:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=n_examples, deadline=timedelta(seconds=60), suppress_health_check=checks, database=None, **options
    )


@pytest.mark.parametrize("name", CASES)
@_runs(100, derandomize=True)
@given(data=st.data())
def test_fuzz(name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    fuzz(name, tmp_path_factory.getbasetemp(), data.draw(CASES[name][1]))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@_runs(2500)
@given(data=st.data())
def test_fuzz_long(name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    fuzz(name, tmp_path_factory.getbasetemp(), data.draw(CASES[name][1]))


@pytest.mark.parametrize("name", CASES)
def test_the_files_that_are_corrupted_are_good(name: str, tmp_path: Path) -> None:
    good = {"xc_text": [XC], "xc_pair": [XF, XY], "svmlight": [SVM], "arff_meka": [ARFF], "arff_mulan": [ARFF, XML]}
    check_sound(CASES[name][0](tmp_path, good.get(name, [X_NPZ, Y_NPZ])))


def test_member_sizes_that_lie_are_caught(tmp_path: Path) -> None:
    """The size in the central directory is what the memory check trusts, so reading must not go beyond it."""
    content = bytearray(X_NPZ)
    with zipfile.ZipFile(io.BytesIO(X_NPZ)) as archive:
        directory = archive.start_dir
    content[directory + 24 : directory + 28] = (10).to_bytes(4, "little")
    with pytest.raises(DataError):
        CASES["npz"][0](tmp_path, [bytes(content), Y_NPZ])
