"""Numbered files of fixed size: a header of 64 bytes, then room that is filled from the front and never rewritten."""

from __future__ import annotations

import mmap
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from streamlabel.exceptions import DataError
from streamlabel.store.format import FORMAT, HEADER, HEADER_SIZE, MAGIC, file_name
from streamlabel.store.limits import open_regular

__all__ = ["FileInfo", "create_file", "header_of", "header_problem", "map_file", "sync", "sync_directory", "write_at"]


@dataclass(frozen=True)
class FileInfo:
    """A numbered file as the catalogue knows it: room for ``n_rows`` rows, ``n_bytes`` bytes behind the header."""

    kind: int
    number: int
    n_features: int
    n_rows: int
    n_bytes: int

    @property
    def name(self) -> str:
        return file_name(self.kind, self.number)


def header_of(info: FileInfo) -> bytes:
    fields = (MAGIC, FORMAT, info.kind, info.number, info.n_features, info.n_rows, info.n_bytes, bytes(16))
    return HEADER.pack(*fields, zlib.crc32(HEADER.pack(*fields, 0)[:-4]))


def header_problem(info: FileInfo, header: bytes) -> str:
    """What is wrong with the first bytes of a file, or ""."""
    return "" if header == header_of(info) else "its header is not that of the file in the catalogue"


def create_file(folder: Path, info: FileInfo) -> int:
    """The file with all its room, on the disk, open for writing. What a killed writer left under the name goes."""
    path = folder / info.name
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o644)
    try:
        _reserve(descriptor, HEADER_SIZE + info.n_bytes)
        write_at(descriptor, header_of(info), 0)
        os.fsync(descriptor)
        sync_directory(folder)
    except BaseException:
        os.close(descriptor)
        with suppress(OSError):
            path.unlink()
        raise
    return descriptor


def map_file(folder: Path, info: FileInfo, *, lenient: bool = False) -> memoryview:
    """What follows the header, mapped read-only; shorter than ``n_bytes`` where the file was cut short.

    ``lenient`` takes a file that is too long, or has a wrong header, for what it may still hold.
    """
    path = folder / info.name
    descriptor = open_regular(path)
    try:
        size = os.fstat(descriptor).st_size
        if size > HEADER_SIZE + info.n_bytes and not lenient:
            raise DataError(f"has {size} bytes; the catalogue says {HEADER_SIZE + info.n_bytes}", source=path)
        problem = header_problem(info, os.read(descriptor, HEADER_SIZE))
        if problem and not lenient:
            raise DataError(f"{problem}; run doctor", source=path)
        if size <= HEADER_SIZE:
            return memoryview(b"")
        whole = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        return whole[HEADER_SIZE : HEADER_SIZE + info.n_bytes]
    finally:
        os.close(descriptor)


def write_at(descriptor: int, content: bytes | memoryview, position: int) -> None:
    """All bytes, at this position."""
    rest = memoryview(content).cast("B")
    while rest:
        if hasattr(os, "pwrite"):
            written = os.pwrite(descriptor, rest, position)
        else:
            os.lseek(descriptor, position, os.SEEK_SET)
            written = os.write(descriptor, rest)
        rest, position = rest[written:], position + written


def sync(descriptor: int) -> None:
    """What was written is on the disk when this returns; the size of the file does not change any more."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def sync_directory(folder: Path) -> None:
    """New names in the directory are on the disk when this returns (where a directory can be flushed)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reserve(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    zeros = bytes(1 << 20)
    for start in range(0, size, len(zeros)):
        write_at(descriptor, zeros[: min(len(zeros), size - start)], start)
