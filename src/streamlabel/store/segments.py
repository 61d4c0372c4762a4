"""Numbered memory-mapped files, and rows of classifiers in them: dense float32, or sparse if mostly zero.

A dense row is ``n_features`` float32. A sparse row is ``nnz`` int32 feature numbers, ascending, then as many float32.
All is little-endian. The checksum of a row covers its bytes and the intercept.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamlabel.errors import DataError, Hint
from streamlabel.store.format import DENSE, HEADER, HEADER_SIZE, MAGIC, SEGMENT_FORMAT, SPARSE, file_name
from streamlabel.store.guard import open_regular
from streamlabel.streaming.blocks import BLOCK
from streamlabel.streaming.pruned import spans
from streamlabel.types import FloatArray, IntArray


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
    """The header of a numbered file, with its checksum."""
    fields = (MAGIC, SEGMENT_FORMAT, info.kind, info.number, info.n_features, info.n_rows, info.n_bytes, bytes(16))
    return HEADER.pack(*fields, zlib.crc32(HEADER.pack(*fields, 0)[:-4]))


def header_problem(info: FileInfo, header: bytes) -> str:
    """The problem with the first bytes of a file, or ""."""
    return "" if header == header_of(info) else "its header is not that of the file in the catalogue"


def create_file(folder: Path, info: FileInfo) -> int:
    """Create a file with all its room, on the disk, open for writing. What a killed writer left under the name goes."""
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


@dataclass(frozen=True, eq=False)
class MappedFile:
    """What follows the header of a numbered file: ``content``, mapped or read; ``whole`` is the map itself."""

    content: memoryview
    name: str
    whole: mmap.mmap | None = None

    def check(self) -> None:
        """Refuse to read a mapped file that was cut since: the process would be ended, without a word."""
        if self.whole is not None and self.whole.size() < len(self.whole):
            problem = "was cut short while it was in use; open the model again when it is restored"
            raise DataError(problem, source=self.name)


def map_file(folder: Path, info: FileInfo, *, lenient: bool = False) -> memoryview:
    """What follows the header of a file, mapped read-only; see `open_file`."""
    return open_file(folder, info, lenient=lenient).content


def open_file(folder: Path, info: FileInfo, *, lenient: bool = False, mapped: bool = True) -> MappedFile:
    """Map what follows the header of a file, read-only; shorter than ``n_bytes`` if the file was cut short.

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
            raise DataError(problem, source=path, hint=Hint.DOCTOR)
        if size <= HEADER_SIZE:
            return MappedFile(memoryview(b""), str(path))
        if not mapped:
            with os.fdopen(os.dup(descriptor), "rb") as file:
                return MappedFile(memoryview(file.read(info.n_bytes)), str(path))
        whole = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        return MappedFile(memoryview(whole)[HEADER_SIZE : HEADER_SIZE + info.n_bytes], str(path), whole)
    finally:
        os.close(descriptor)


def write_at(descriptor: int, content: bytes | memoryview, position: int) -> None:
    """Write all bytes at this position."""
    rest = memoryview(content).cast("B")
    while rest:
        if hasattr(os, "pwrite"):
            written = os.pwrite(descriptor, rest, position)
        else:
            os.lseek(descriptor, position, os.SEEK_SET)
            written = os.write(descriptor, rest)
        rest, position = rest[written:], position + written


def sync(descriptor: int) -> None:
    """Flush a file: what was written is on the disk when this returns; its size does not change any more."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def sync_directory(folder: Path) -> None:
    """Flush a directory: new names in it are on the disk when this returns (if a directory can be flushed)."""
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


LEAST_SPARSE = 4096
LARGEST = 64 << 20
_NUMBER = struct.Struct("<d")
_VALUE, _INDEX = np.dtype("<f4"), np.dtype("<i4")


@dataclass(frozen=True)
class Place:
    """The place of a row: segment, row number there; for sparse rows also the first byte and the stored values."""

    segment: int
    slot: int
    start: int = 0
    nnz: int = 0


def encode_row(row: FloatArray, indices: IntArray | None = None) -> tuple[bytes, bool, int]:
    """Encode a row: its bytes, whether these are sparse, and then how many values are stored.

    A row is sparse if that is less than half of the dense form, and worth it; or if it is given by its values and their
    ``indices``, ascending. Refused if float32 cannot hold a value.
    """
    with np.errstate(over="ignore"):
        values = row.astype(_VALUE)
    if not np.isfinite(values).all():
        raise DataError("a classifier has weights that are not finite as float32; it cannot be stored")
    kept = np.flatnonzero(values)
    if indices is None and (row.size < LEAST_SPARSE or 4 * kept.size >= row.size):
        return values.tobytes(), False, 0
    features = kept if indices is None else indices[kept]
    return features.astype(_INDEX).tobytes() + values[kept].tobytes(), True, int(kept.size)


def checksum(content: bytes | memoryview, intercept: float) -> int:
    """The CRC-32 of a row's bytes and its intercept."""
    return zlib.crc32(_NUMBER.pack(intercept), zlib.crc32(content))


def version_checksum(label: int, classifier: int, name: str, threshold: float) -> int:
    """The CRC-32 of what a version says about a label: which classifier, which name, which threshold."""
    return zlib.crc32(f"{label} {classifier} {threshold!r} {name}".encode())


def room_for(n_features: int, n_before: int, n_now: int) -> int:
    """The number of rows of a new dense segment: as many as there are already, in whole blocks, up to 64 MB.

    At least what is needed. So a small model stays small, and a large one has few files.
    """
    most = max(LARGEST // (4 * n_features), BLOCK)
    rows = max(min(max(n_before, BLOCK), most), min(n_now, most))
    return -(-rows // BLOCK) * BLOCK


class Segment:
    """One file of rows, mapped or read; ``lenient``: whatever its length and header."""

    def __init__(self, folder: Path, info: FileInfo, *, lenient: bool = False, mapped: bool = True) -> None:
        self.info = info
        self._file = open_file(folder, info, lenient=lenient, mapped=mapped)
        self._bytes = self._file.content
        whole = len(self._bytes) // (4 * info.n_features) if info.kind == DENSE else 0
        self._rows = np.frombuffer(self._bytes, _VALUE, whole * info.n_features).reshape(whole, info.n_features)

    def content(self, place: Place) -> memoryview | None:
        """The bytes of a row; None if they are not in the file."""
        self._file.check()
        if self.info.kind == DENSE:
            start, size = 4 * self.info.n_features * place.slot, 4 * self.info.n_features
        else:
            start, size = place.start, 8 * place.nnz
        return self._bytes[start : start + size] if 0 <= start <= len(self._bytes) - size else None

    def are_whole(self, slots: IntArray, expected: IntArray, intercept: FloatArray) -> bool:
        """Whether all these rows of a dense segment are whole: `problem` in one go."""
        self._file.check()
        size = 4 * self.info.n_features
        if slots.max(initial=-1) >= len(self._rows):
            return False
        numbers = zip(slots.tolist(), expected.tolist(), intercept.tolist(), strict=True)
        for slot, right, offset in numbers:
            if checksum(self._bytes[size * slot : size * (slot + 1)], offset) != right:
                return False
        return bool(np.isfinite(self.dense_rows(slots)).all())

    def problem(self, place: Place, expected: int, intercept: float) -> str:
        """The problem with a row, or ""."""
        content = self.content(place)
        if content is None:
            return "the file ends before it"
        if checksum(content, intercept) != expected:
            return "its checksum is wrong"
        if not np.isfinite(self._values(content)).all():
            return "it holds values that are not finite"
        if self.info.kind == SPARSE and place.nnz:
            indices = np.frombuffer(content, _INDEX, place.nnz)
            if indices[0] < 0 or indices[-1] >= self.info.n_features or (np.diff(indices) <= 0).any():
                return "its feature numbers are out of order"
        return ""

    def dense_rows(self, slots: IntArray) -> FloatArray:
        """Rows (k, d) of a dense segment, float32; checked before by `problem`."""
        self._file.check()
        if len(slots) and slots[-1] - slots[0] == len(slots) - 1 and (np.diff(slots) == 1).all():
            return self._rows[slots[0] : slots[-1] + 1]
        return self._rows[slots]

    def dense_cells(self, slots: IntArray, features: IntArray) -> FloatArray:
        """Single weights of a dense segment, float32; the two arrays are broadcast."""
        self._file.check()
        return self._rows[slots, features]

    def sparse_rows(
        self, starts: IntArray, sizes: IntArray, expected: IntArray | None, intercept: FloatArray
    ) -> tuple[IntArray, FloatArray, IntArray] | None:
        """Feature numbers, values and ends of sparse rows, one after the other; None if one is not whole.

        expected : their checksums; None if these were looked at before
        """
        self._file.check()
        if expected is not None:
            numbers = zip(starts.tolist(), (8 * sizes).tolist(), expected.tolist(), intercept.tolist(), strict=True)
            for start, size, right, offset in numbers:
                if checksum(self._bytes[start : start + size], offset) != right:
                    return None
        words = np.frombuffer(self._bytes, _INDEX, len(self._bytes) // 4)
        if len(starts) and (starts // 4 + 2 * sizes).max() > len(words):
            return None
        place, ends = spans(starts // 4, sizes)
        features = words[place]
        values = words.view(_VALUE)[place + np.repeat(sizes, sizes)]
        rising = np.diff(features, prepend=-1) > 0
        rising[ends[:-1][sizes > 0]] = features[ends[:-1][sizes > 0]] >= 0
        if not (rising.all() and (features < self.info.n_features).all() and np.isfinite(values).all()):
            return None
        return features, values, ends

    def _values(self, content: memoryview) -> FloatArray:
        if self.info.kind == DENSE:
            return np.frombuffer(content, _VALUE)
        return np.frombuffer(content, _VALUE, offset=len(content) // 2)
