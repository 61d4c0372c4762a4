"""Archives: what Python's own writers packed comes out again; what is meant to do harm does not."""

from __future__ import annotations

import bz2
import gzip
import stat
import zipfile
from pathlib import Path

import pytest

from streamlabel.data.fetch import archive_kind, unpack
from streamlabel.errors import DataError

TEXT = b"1 2 3\n" * 5000


def make_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name, content)
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("name", "packer", "result"),
    [
        ("a.txt.gz", gzip.compress, "a.txt"),
        ("a.svm.bz2", bz2.compress, "a.svm"),
        ("download", gzip.compress, "download"),
    ],
)
def test_streams(tmp_path: Path, out: Path, name: str, packer, result: str) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / name).write_bytes(packer(TEXT))
    assert unpack(tmp_path / name, out, max_bytes=1 << 20) == [out / result]
    assert (out / result).read_bytes() == TEXT


def test_zip_is_laid_flat(tmp_path: Path, out: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {"Eurlex/eurlex_train.txt": TEXT, "Eurlex/": b"", "Eurlex/b.txt": b"b"})
    unpack(archive, out, max_bytes=1 << 20)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {"eurlex_train.txt": TEXT, "b.txt": b"b"}


def test_kind_is_told_by_content(tmp_path: Path) -> None:
    plain, npz = tmp_path / "plain.zip", tmp_path / "X_train.npz"
    plain.write_bytes(b"not a zip")
    make_zip(npz, {"data.npy": b"x"})
    assert archive_kind(plain) is None
    assert archive_kind(npz) is None
    assert archive_kind(make_zip(tmp_path / "no suffix", {"a": b"x"})) == "zip"


@pytest.mark.parametrize("name", ["../evil.txt", "/etc/evil.txt", "a/../../evil.txt", "C:\\evil.txt", "..\\evil.txt"])
def test_paths_that_leave_the_folder(tmp_path: Path, out: Path, name: str) -> None:
    archive = make_zip(tmp_path / "a.zip", {"good.txt": b"x", name: b"evil"})
    with pytest.raises(DataError, match="points out of the archive"):
        unpack(archive, out, max_bytes=1 << 20)
    assert list(out.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "out"]


def test_links_and_doubles_and_crowds(tmp_path: Path, out: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as zipped:
        zipped.writestr(link, "/etc/passwd")
    with pytest.raises(DataError, match="is a link"):
        unpack(tmp_path / "link.zip", out, max_bytes=1 << 20)
    with pytest.raises(DataError, match="two files are called"):
        unpack(make_zip(tmp_path / "two.zip", {"a/x.txt": b"1", "b/X.txt": b"2"}), out, max_bytes=1 << 20)
    with pytest.raises(DataError, match="1001 files"):
        unpack(make_zip(tmp_path / "many.zip", {f"{i}": b"" for i in range(1001)}), out, max_bytes=1 << 20)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("kind", ["zip", "gz", "bz2"])
def test_bombs_are_bounded(tmp_path: Path, out: Path, kind: str) -> None:
    zeros = bytes(50_000_000)
    path = tmp_path / f"bomb.{kind}"
    if kind == "zip":
        make_zip(path, {"a": zeros})
    else:
        path.write_bytes(gzip.compress(zeros) if kind == "gz" else bz2.compress(zeros))
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="inflates to more"):
        unpack(path, out, max_bytes=1_000_000)
    assert list(out.iterdir()) == []


def test_the_bound_is_on_all_members_together(tmp_path: Path, out: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {"a": bytes(600), "b": bytes(600)})
    with pytest.raises(DataError, match="inflates to more"):
        unpack(archive, out, max_bytes=1000)
    assert len(unpack(archive, out, max_bytes=1200)) == 2


@pytest.mark.parametrize("kind", ["zip", "gz", "bz2"])
@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_damage_is_a_data_error(tmp_path: Path, out: Path, kind: str, damage: str, rng) -> None:  # type: ignore[no-untyped-def]
    content = rng.bytes(20_000)
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        make_zip(path, {"a": content})
    else:
        path.write_bytes(gzip.compress(content) if kind == "gz" else bz2.compress(content))
    packed = bytearray(path.read_bytes())
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(path.read_bytes()[: len(packed) // 2] if damage == "cut" else packed)
    with pytest.raises(DataError, match="damaged"):
        unpack(path, out, max_bytes=1 << 20)
    assert list(out.iterdir()) == []
