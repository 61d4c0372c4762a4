"""The arrays of an ``.npz`` file, with every size checked before a byte is inflated, and no pickle."""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
import zlib
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from streamlabel.data._bytes import show
from streamlabel.data._limits import check_memory
from streamlabel.exceptions import DataError, NotFoundError

__all__ = ["read_members"]

MAX_MEMBERS = 64
MAX_HEADER = 10_000
# Deflate cannot shrink by more than about 1,032 to 1; a member that claims more is not what it says.
MAX_RATIO = 1040
HEADER = re.compile(
    r"\{'descr': '(?P<descr>[^']*)', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>[0-9, ]*)\), ?\} *\n?"
)
PLAIN_TYPE = re.compile(r"[<>|=](?:[fiu][1248]|b1|[SU][0-9]{1,4})")
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError)


def read_members(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Name -> array for every ``.npy`` of the archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if not 1 <= len(entries) <= MAX_MEMBERS:
                raise DataError(f"{len(entries)} members; an .npz file of a matrix has a handful", source=path)
            if len({entry.filename for entry in entries}) != len(entries):
                raise DataError("two members of the same name; the file is damaged, write it again", source=path)
            total = sum(entry.file_size for entry in entries)
            check_memory(2 * total, "the arrays in it", source=path)
            return {entry.filename.removesuffix(".npy"): _read_array(archive, entry, path) for entry in entries}
    except DataError:
        raise
    except FileNotFoundError as error:
        raise NotFoundError(f"{os.fspath(path)}: there is no such file") from error
    except (*ZIP_ERRORS, struct.error, OverflowError, LookupError) as error:
        raise DataError(
            f"not a readable .npz file ({show(str(error), 80)}); it may be cut short", source=path
        ) from error


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: object) -> NDArray[Any]:
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{show(entry.filename)} is packed in a way that numpy does not write", source=path)
    if entry.file_size > MAX_RATIO * (entry.compress_size + 64):
        raise DataError(f"{show(entry.filename)} claims {entry.file_size} bytes, more than it can hold", source=path)
    with archive.open(entry) as file:
        dtype, fortran, shape = _read_header(file, entry.filename, path)
        n_items = math.prod(shape)
        n_bytes = n_items * dtype.itemsize
        if n_bytes > entry.file_size:
            problem = f"{show(entry.filename)} says it has the shape {shape}, but is too short for that; it is damaged"
            raise DataError(problem, source=path)
        content = file.read(n_bytes + 1)
    if len(content) != n_bytes:
        problem = f"{show(entry.filename)} has not the {n_bytes} bytes that its shape {shape} needs; it is damaged"
        raise DataError(problem, source=path)
    array = np.frombuffer(content, dtype=dtype, count=n_items)
    array = array.reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="))


def _read_header(file: IO[bytes], name: str, path: object) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    """Type, order and shape, from the header of the ``.npy`` format, versions 1 to 3."""
    start = file.read(8)
    if len(start) < 8 or start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3):
        raise DataError(f"{show(name)} is not an .npy array", source=path)
    width = 2 if start[6] == 1 else 4
    size = int.from_bytes(file.read(width), "little")
    text = file.read(min(size, MAX_HEADER)).decode("latin-1")
    header = HEADER.fullmatch(text)
    if header is None:
        raise DataError(f"{show(name)} has the header {show(text)}; expected a plain array of numbers", source=path)
    descr = header["descr"]
    if "O" in descr:
        raise DataError(f"{show(name)} holds pickled Python objects, which can run code; save numbers", source=path)
    lengths = [part for part in header["shape"].replace(" ", "").split(",") if part]
    if PLAIN_TYPE.fullmatch(descr) is None or len(lengths) > 2 or any(len(part) > 18 for part in lengths):
        problem = f"{show(name)} is an array of the type {show(descr)}, shape ({show(header['shape'])[1:-1]}); "
        raise DataError(f"{problem}expected a list or a matrix of numbers", source=path)
    try:
        dtype = np.dtype(descr)
    except TypeError as error:
        raise DataError(f"{show(name)} is of the type {show(descr)}, which numpy does not know", source=path) from error
    return dtype, header["fortran"] == "True", tuple(int(part) for part in lengths)
