"""Unpacking zip, gzip and bzip2 without trust: no path leaves the folder, nothing inflates without bound."""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Protocol

from streamlabel.exceptions import DataError

__all__ = ["archive_kind", "unpack"]

CHUNK_BYTES = 1 << 20
MAX_MEMBERS = 1000
_MAGIC = {b"PK\x03\x04": "zip", b"\x1f\x8b": "gz", b"BZh": "bz2"}


def archive_kind(path: Path) -> str | None:
    """``"zip"``, ``"gz"`` or ``"bz2"`` by the file's first bytes; None for anything else (and for ``.npz``)."""
    if path.suffix.lower() == ".npz":
        return None
    with open(path, "rb") as file:
        head = file.read(4)
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def unpack(archive: Path, folder: Path, *, max_bytes: int) -> list[Path]:
    """Unpack the archive's files side by side into the folder (a zip's inner folders are left out).

    Raises
    ------
    DataError : a damaged archive, a member that points out of it, two members of one name, a link, a password, or
        more than ``max_bytes`` in all. What had been unpacked is removed.
    """
    written: list[Path] = []
    try:
        with _reading(archive):
            if archive_kind(archive) == "zip":
                _unpack_zip(archive, folder, max_bytes, written)
            else:
                _unpack_stream(archive, folder, max_bytes, written)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written


@contextmanager
def _reading(archive: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"a damaged or cut archive ({error}); get it again", source=archive) from error
    except NotImplementedError as error:
        raise DataError(
            f"an archive of a kind that is not supported ({error}); unpack it by hand", source=archive
        ) from error
    except OSError as error:
        if error.errno is None:  # bz2 reports damage so; troubles with files carry a number
            raise DataError(f"a damaged archive ({error}); get it again", source=archive) from error
        raise


def _unpack_zip(archive: Path, folder: Path, max_bytes: int, written: list[Path]) -> None:
    with zipfile.ZipFile(archive) as zipped:
        members = [member for member in zipped.infolist() if not member.is_dir()]
        if len(members) > MAX_MEMBERS:
            raise DataError(f"{len(members)} files; no data set has more than {MAX_MEMBERS}", source=archive)
        for member in members:
            target = folder / _member_name(member, archive)
            if target.name.lower() in {path.name.lower() for path in written}:
                raise DataError(f"two files are called {target.name!r}; unpack it by hand", source=archive)
            with zipped.open(member) as packed:
                max_bytes -= _copy(packed, target, max_bytes, archive, written)


def _member_name(member: zipfile.ZipInfo, archive: Path) -> str:
    name = PurePosixPath(member.filename)
    if name.is_absolute() or ".." in name.parts or any(sign in member.filename for sign in "\\:\0"):
        raise DataError(f"the member {member.filename!r} points out of the archive; refused", source=archive)
    if stat.S_ISLNK(member.external_attr >> 16):
        raise DataError(f"the member {member.filename!r} is a link; refused", source=archive)
    if member.flag_bits & 0x1:
        raise DataError(f"the member {member.filename!r} asks for a password; unpack it by hand", source=archive)
    return name.name


def _unpack_stream(archive: Path, folder: Path, max_bytes: int, written: list[Path]) -> None:
    name = archive.stem if archive.suffix.lower() in (".gz", ".bz2") else archive.name
    kind: type[bz2.BZ2File] | type[gzip.GzipFile] = bz2.BZ2File if archive_kind(archive) == "bz2" else gzip.GzipFile
    with kind(archive) as packed:
        _copy(packed, folder / name, max_bytes, archive, written)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _copy(packed: _Readable, target: Path, max_bytes: int, archive: Path, written: list[Path]) -> int:
    size = 0
    with open(target, "xb") as file:
        written.append(target)
        while chunk := packed.read(CHUNK_BYTES):
            size += len(chunk)
            if size > max_bytes:
                raise DataError("inflates to more than a data set may have; refused", source=archive)
            file.write(chunk)
    return size
