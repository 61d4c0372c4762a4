"""Files of sums: read back to the last bit, by numpy too; anything else is one DataError that says what is wrong."""

from __future__ import annotations

import contextlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from streamlabel.data import files as _limits
from streamlabel.errors import DataError, NotFoundError
from streamlabel.stats.sums import Stats
from streamlabel.store import sums_file as stats_file
from streamlabel.store.sums_file import read_stats, write_stats

X = np.array([[1.0, 0.5, 0.0], [0.0, -2.0, 3.0], [4.0, 0.0, 0.25], [1.0, 1.0, 1.0]])
Y = np.array([[1, 0, 1], [0, 0, 1], [1, 0, 1], [0, 0, 0]])
SUMS = Stats.from_batch(X, Y, ["été", "b", "c"], ["x", "y", "z"])


def assert_same(one: Stats, other: Stats) -> None:
    assert (one.n_rows, one.label_names, one.feature_names) == (other.n_rows, other.label_names, other.feature_names)
    for name in ("feature_sums", "feature_gram", "cross"):
        assert getattr(one, name).dtype == np.float64
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert one.label_gram.dtype == np.int64
    assert one.label_gram.toarray().tolist() == other.label_gram.toarray().tolist()


def saved(path: Path, sums: Stats = SUMS, **changes: Any) -> Path:
    write_stats(sums, path)
    with np.load(path, allow_pickle=False) as file:
        arrays = {**file, **changes}
    objects = any(getattr(getattr(value, "dtype", None), "hasobject", False) for value in changes.values())
    if "checksum" not in changes and not objects:  # as somebody would write it who means harm
        arrays["checksum"] = np.int64(
            stats_file._checksum({name: value for name, value in arrays.items() if value is not None})
        )
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
    return path


def test_numpy_reads_it(tmp_path: Path) -> None:
    write_stats(SUMS, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        assert file["streamlabel_stats"] == 2
        assert file["n_rows"] == 4
        assert np.array_equal(file["feature_gram"], X.T @ X)
        assert np.array_equal(file["cross"], X.T @ Y)
        pairs = zip(file["pair_rows"], file["pair_columns"], file["pair_counts"], strict=True)
        assert sorted(map(tuple, pairs)) == [(0, 0, 2), (0, 2, 2), (2, 2, 3)]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), n_rows=st.integers(0, 6), d=st.integers(1, 4), m=st.integers(1, 4))
def test_it_is_read_back_exactly(data: st.DataObject, n_rows: int, d: int, m: int) -> None:
    finite = st.floats(-1e100, 1e100)
    rows = data.draw(st.lists(finite, min_size=n_rows * d, max_size=n_rows * d))
    answers = data.draw(st.lists(st.booleans(), min_size=n_rows * m, max_size=n_rows * m))
    names = data.draw(st.none() | st.just([f"label é {j}" for j in range(m)]))
    sums = Stats.from_batch(np.reshape(rows, (n_rows, d)), np.reshape(answers, (n_rows, m)).astype(int), names)
    buffer = io.BytesIO()
    write_stats(sums, buffer)
    buffer.seek(0)
    assert_same(read_stats(buffer), sums)


def test_what_was_read_can_be_added(tmp_path: Path) -> None:
    write_stats(SUMS, tmp_path / "a.npz")
    both = read_stats(tmp_path / "a.npz") + read_stats(str(tmp_path / "a.npz"))
    assert both.feature_gram.tolist() == (2.0 * X.T @ X).tolist()
    assert both.label_gram.toarray().tolist() == (2 * Y.T @ Y).tolist()


WRONG = [
    ({"streamlabel_stats": None}, "holds no sums"),
    ({"streamlabel_stats": np.int64(4)}, "format 4, this version reads 3"),
    ({"streamlabel_stats": np.int64(3)}, "do not add up"),
    ({"checksum": np.int64(5)}, "checksum is wrong"),
    ({"checksum": None}, "checksum is wrong"),
    ({"streamlabel_stats": np.array("1")}, "not one whole number"),
    ({"n_rows": np.int64(-1)}, "-1 rows"),
    ({"n_rows": np.array([4, 4])}, "not one whole number"),
    ({"n_rows": np.int64(1)}, "damaged"),
    ({"cross": None}, "no 'cross'"),
    ({"pair_counts": None}, "no 'pair_counts'"),
    ({"feature_sums": np.zeros(4)}, "do not go together"),
    ({"feature_gram": np.zeros((3, 2))}, "do not go together"),
    ({"feature_gram": np.zeros((0, 0)), "feature_sums": np.zeros(0), "cross": np.zeros((0, 3))}, "at least one"),
    ({"cross": np.zeros((3, 0))}, "at least one"),
    ({"cross": np.zeros((3, 2))}, "label pairs"),
    ({"cross": np.full((3, 3), np.nan)}, "finite float64"),
    ({"cross": np.zeros((3, 3), dtype=np.float32)}, "finite float64"),
    ({"cross": np.full((3, 3), 1e9)}, "cross is not a sum"),
    ({"feature_gram": np.array(["a"] * 9).reshape(3, 3)}, "finite float64"),
    ({"feature_gram": np.triu(X.T @ X)}, "not sums over the same rows"),
    ({"feature_gram": -(X.T @ X)}, "not sums over the same rows"),
    ({"feature_sums": np.array([1e6, 0.0, 0.0])}, "not sums over the same rows"),
    ({"pair_rows": np.array([0, 0, 3])}, "label pairs"),
    ({"pair_rows": np.array([0, -1, 2])}, "label pairs"),
    ({"pair_rows": np.array([0, 2, 2]), "pair_columns": np.array([0, 0, 2])}, "label pairs"),
    ({"pair_rows": np.array([0.0, 0.0, 2.0])}, "label pairs"),
    ({"pair_rows": np.array([0, 2])}, "label pairs"),
    ({"pair_counts": np.array([2, 0, 3])}, "label pairs"),
    ({"pair_counts": np.array([2, 2, 5])}, "label pairs"),
    ({"pair_counts": np.array([2, 2**63 + 1, 3], dtype=np.uint64)}, "label pairs"),
    ({"pair_counts": np.array([2, 3, 3])}, "more often than alone"),
    ({"pair_rows": np.array([0, 2, 2]), "pair_columns": np.array([0, 2, 2])}, "more often than alone"),
    ({"label_names": np.array(["a", "b"])}, "expected 3 names"),
    ({"label_names": np.array(["a", "b", "a"])}, "occurs twice"),
    ({"label_names": np.array([1, 2, 3])}, "expected 3 names"),
    ({"label_names": np.array([0x110000] * 3, dtype=np.uint32).view("<U1")}, "no text"),
    ({"feature_names": np.array(["x"])}, "expected 3 names"),
    ({"cross": np.array([None] * 9, dtype=object).reshape(3, 3)}, "pickled"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_one_error_with_file_and_reason(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = saved(tmp_path / "a.npz", **changes)
    with pytest.raises(DataError, match=words) as caught:
        read_stats(path)
    assert str(path) in str(caught.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        read_stats(tmp_path / "none.npz")
    sparse.save_npz(tmp_path / "X.npz", sparse.csr_array(X))
    with pytest.raises(DataError, match="holds no sums"):
        read_stats(tmp_path / "X.npz")
    (tmp_path / "text.npz").write_text("no zip at all")
    with pytest.raises(DataError, match=r"text\.npz: not a readable \.npz file"):
        read_stats(tmp_path / "text.npz")
    with pytest.raises(DataError, match="input: not a readable"):
        read_stats(io.BytesIO(b"PK"))


def test_a_file_cut_or_changed_anywhere_is_a_data_error_or_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_stats(SUMS, path)
    content = path.read_bytes()
    for size in range(0, len(content), 37):
        path.write_bytes(content[:size])
        with pytest.raises(DataError):
            read_stats(path)
    for place in range(len(content)):
        for flipped in (0x55, 1 << place % 8):
            changed = content[:place] + bytes([content[place] ^ flipped]) + content[place + 1 :]
            with contextlib.suppress(DataError):
                assert_same(read_stats(io.BytesIO(changed)), SUMS)


def test_sizes_are_checked_before_anything_is_inflated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, streamlabel_stats=np.int64(1), feature_gram=np.zeros((1000, 1000)))
    monkeypatch.setattr(_limits, "available_memory", lambda: 10_000_000)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("the archive was opened"))
    with pytest.raises(DataError, match="the arrays in it needs"):
        read_stats(path)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stats(SUMS, tmp_path / "a.npz")
    before = (tmp_path / "a.npz").read_bytes()

    def fail(handle: Any, _: Any) -> None:
        handle.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stats_file, "write_members", fail)
    with pytest.raises(DataError, match="No space left"):
        write_stats(SUMS, tmp_path / "a.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
    assert (tmp_path / "a.npz").read_bytes() == before
    with pytest.raises(DataError, match=r"ends in \.npz"):
        write_stats(SUMS, tmp_path / "a.gz")


def test_sums_of_the_first_format_are_read(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", streamlabel_stats=np.int64(1), checksum=None)
    assert_same(read_stats(path), SUMS)


def flipped(content: bytes, positions: range, bits: range) -> int:
    """How many flipped bits were read as something else."""
    silent = 0
    for position in positions:
        for bit in bits:
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            with contextlib.suppress(DataError):
                found = read_stats(io.BytesIO(bytes(damaged)))
                try:
                    assert_same(found, SUMS)
                except AssertionError:
                    silent += 1
    return silent


def test_a_flipped_bit_is_never_another_sum() -> None:
    buffer = io.BytesIO()
    write_stats(SUMS, buffer)
    assert flipped(buffer.getvalue(), range(0, len(buffer.getvalue()), 3), range(0, 8, 5)) == 0


@pytest.mark.slow
def test_no_flipped_bit_is_another_sum() -> None:
    buffer = io.BytesIO()
    write_stats(SUMS, buffer)
    assert flipped(buffer.getvalue(), range(len(buffer.getvalue())), range(8)) == 0


GROUPED = Stats.from_batch(X[:2], Y[:2, :2], ["a", "b"]).joined(Stats.from_batch(X[2:], Y[2:, 1:], ["b", "c"]))


def test_who_was_asked_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (1 << 28, 1):  # with a Gram for each group, and with too many of them
        monkeypatch.setattr("streamlabel.stats.sums.MAX_CROSS", most)
        sums = GROUPED + GROUPED if most > 1 else replace(GROUPED, asked=replace(GROUPED.asked, grams=None))
        monkeypatch.setattr("streamlabel.stats.sums.MAX_CROSS", 1 << 28)
        write_stats(sums, tmp_path / "a.npz")
        again = read_stats(tmp_path / "a.npz")
        assert_same(again, sums)
        assert again.asked is not None
        for name in ("rows", "labels", "sums", "grams"):
            assert np.array_equal(getattr(again.asked, name), getattr(sums.asked, name))
        for (labels, part), (others, twin) in zip(sums.by_asked(), again.by_asked(), strict=True):
            assert labels.tolist() == others.tolist()
            assert_same(part, twin)


@pytest.mark.parametrize(
    "changes",
    [
        {"group_rows": None},
        {"group_rows": np.array([3, 2])},
        {"group_rows": np.array([5, -1])},
        {"group_labels": np.ones((2, 2), dtype=np.int8)},
        {"group_labels": np.zeros((2, 3), dtype=np.int8)},
        {"group_labels": np.full((2, 3), 2, dtype=np.int8)},
        {"group_sums": np.zeros((2, 3))},
        {"group_sums": np.full((2, 3), np.nan)},
        {"group_grams": np.zeros((6, 3))},
        {"group_grams": np.zeros((2, 3))},
        {"group_grams": np.array("x")},
    ],
)
def test_groups_that_are_none_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="do not add up to all rows"):
        read_stats(saved(tmp_path / "a.npz", GROUPED, **changes))
