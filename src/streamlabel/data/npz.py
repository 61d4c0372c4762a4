"""Matrices in ``.npz`` files as scipy writes them, or ``.npy``: a folder with its splits, or a pair of files.

A folder holds ``X_train.npz``, ``Y_train.npz`` (and the same for other splits), ``labels.txt`` and optionally
``features.txt`` (one name a line) and ``rows_train.csv`` (first column: row id; a column ``date``: row date).

Nothing is inflated before the sizes in its headers are known to be consistent and to fit into memory, nothing is
unpickled, and no matrix is made before its index arrays are checked.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.datasets import PathLike, named_dataset, sort_rows
from streamlabel.data.files import (
    MAX_LINE_BYTES,
    check_memory,
    check_shape,
    numbered_lines,
    read_bytes,
    replacing,
    show,
    utf8,
)
from streamlabel.data.rows import GatheredRows, labels_column_of, parse_json
from streamlabel.errors import DataError, Hint, NotFoundError
from streamlabel.types import CSR, Dataset, FloatArray
from streamlabel.validation import canonical_labels

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


def write_members(target: IO[bytes], arrays: Mapping[str, Any]) -> None:
    """Plain arrays, for `read_members`: the bytes of `numpy.savez`, which can refuse to pickle only since numpy 2.1."""
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: object) -> NDArray[Any]:
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{show(entry.filename)} is packed in a way that numpy does not write", source=path)
    if entry.file_size > MAX_RATIO * (entry.compress_size + 64):
        raise DataError(f"{show(entry.filename)} claims {entry.file_size} bytes, more than it can hold", source=path)
    with archive.open(entry) as file:
        return _read_npy(file, entry.filename, entry.file_size, path)


def _read_npy(file: IO[bytes], name: str, size: int, path: object) -> NDArray[Any]:
    """The array of an ``.npy`` file of so many bytes."""
    dtype, fortran, shape = _read_header(file, name, path)
    n_items = math.prod(shape)
    n_bytes = n_items * dtype.itemsize
    if n_bytes > size:
        problem = f"{show(name)} says it has the shape {shape}, but is too short for that; it is damaged"
        raise DataError(problem, source=path)
    content = file.read(n_bytes + 1)
    if len(content) != n_bytes:
        problem = f"{show(name)} has not the {n_bytes} bytes that its shape {shape} needs; it is damaged"
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


def read_npz(
    path: PathLike,
    Y_path: PathLike | None = None,
    *,
    split: str = "train",
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    sort: bool = False,
    need_labels: bool = True,
) -> Dataset:
    """Read a folder of ``.npz`` files, or a pair of files, ``.npz`` or ``.npy`` (embeddings, say).

    Parameters
    ----------
    path : the folder, or the file with X
    Y_path : the file with Y, when ``path`` is a file; or JSON lines, a list of label names for each row (or an object
        that has one)
    split : which of the folder's splits: ``X_{split}.npz`` and ``Y_{split}.npz``
    label_names, feature_names : one name a column; a folder's ``labels.txt`` and ``features.txt`` are used without
    sort : accept column indices in any order within a row of X; without it, disorder is an error
    need_labels : False reads X alone, where no Y is given: the set then has no label

    X keeps float32 and float64; other numbers become float64.
    """
    path = Path(path)
    if Y_path is not None:
        return _read_pair(path, Path(Y_path), label_names, feature_names, sort)
    if not path.is_dir():
        if path.exists() and not need_labels:
            return _read_pair(path, None, label_names, feature_names, sort)
        if path.exists():
            raise DataError("X without Y", source=path, hint=Hint.LABELS_OF_ROWS)
        raise NotFoundError(f"{path}: there is no such folder")
    X_path, Y_path = path / f"X_{split}.npz", path / f"Y_{split}.npz"
    if not X_path.exists():
        splits = sorted(file.stem[2:] for file in path.glob("X_*.npz"))
        raise NotFoundError(f"{X_path}: there is no such file; the folder has the splits {splits}")
    if label_names is None and (path / "labels.txt").exists():
        label_names = read_names(path / "labels.txt")
    if feature_names is None and (path / "features.txt").exists():
        feature_names = read_names(path / "features.txt")
    dataset = _read_pair(X_path, Y_path, label_names, feature_names, sort)
    rows_path = path / f"rows_{split}.csv"
    if rows_path.exists():
        row_ids, row_dates = _read_rows(rows_path, dataset.n_rows)
        dataset = replace(dataset, row_ids=row_ids, row_dates=row_dates)
    return replace(dataset, source=str(path))


def write_npz(dataset: Dataset, folder: PathLike, *, split: str = "train") -> None:
    """Write the files that `read_npz` reads from a folder, making it when it is not there; other splits stay."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for letter, matrix in (("X", dataset.X), ("Y", dataset.Y)):
        with replacing(folder / f"{letter}_{split}.npz") as file:
            sparse.save_npz(file, matrix, compressed=True)
    _write_names(folder / "labels.txt", dataset.label_names)
    if dataset.feature_names is not None:
        _write_names(folder / "features.txt", dataset.feature_names)
    if dataset.row_ids is not None or dataset.row_dates is not None:
        _write_rows(folder / f"rows_{split}.csv", dataset)


def _read_pair(
    X_path: Path,
    Y_path: Path | None,
    label_names: Sequence[str] | None,
    feature_names: Sequence[str] | None,
    sort: bool,
) -> Dataset:
    X = _read_matrix(X_path, "feature", sort)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if not np.isfinite(X.data).all():
        row = int(np.searchsorted(X.indptr, np.argmin(np.isfinite(X.data)), side="right")) - 1
        raise DataError(f"NaN or infinity in row {row}; remove or impute such rows", source=X_path)
    if Y_path is None:
        relevance = sparse.csr_array((X.shape[0], 0))
    elif Y_path.suffix in (".jsonl", ".ndjson"):
        relevance, label_names = _read_tags(Y_path, label_names)
    else:
        relevance = _read_matrix(Y_path, "label", True)
    if relevance.shape[0] != X.shape[0]:
        problem = f"{relevance.shape[0]} rows for {X.shape[0]} rows of X; the two files must describe the same rows"
        raise DataError(problem, source=Y_path)
    check_shape(X.shape[1], relevance.shape[1], source=X_path)
    try:
        Y = canonical_labels(relevance)
    except DataError as error:
        raise DataError(error.problem, source=Y_path) from error
    return named_dataset(X, Y, label_names, feature_names, X_path)


def _read_tags(path: Path, label_names: Sequence[str] | None) -> tuple[CSR, tuple[str, ...]]:
    """Y and its label names, from a list of names a line, or an object with such a list (``labels``, ``tags``, ...)."""
    rows = GatheredRows(str(path))
    for line, text in numbered_lines(path, MAX_LINE_BYTES):
        with rows.at(line):
            found = parse_json(text)
            names = found.get(labels_column_of(found)) if isinstance(found, dict) else found
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError('no list of label names; give one a line, ["a", "b"], or an object with "labels"')
            rows.add(names)
    return rows.labels.matrix(
        source=rows.source, row_error=rows.error, label_names=label_names, repeated_labels="merge"
    )


def _read_plain(path: Path) -> NDArray[Any]:
    """The array of an ``.npy`` file; a list of answers is one column."""
    try:
        size = path.stat().st_size
        check_memory(2 * size, "the array in it", source=path)
        with open(path, "rb") as file:
            array = _read_npy(file, path.name, size, path)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: there is no such file") from error
    return array[:, None] if array.ndim == 1 else array


def _read_matrix(path: Path, kind: str, sort: bool) -> CSR:
    """A CSR or CSC matrix, or the one dense matrix of the file, as CSR with everything checked."""
    members = {"": _read_plain(path)} if path.suffix == ".npy" else read_members(path)
    if len(members) == 1:
        (dense,) = members.values()
        if dense.ndim != 2 or dense.dtype.kind not in "fiub":
            raise DataError(f"an array with shape {dense.shape}; expected a matrix", source=path)
        return sparse.csr_array(dense)
    missing = {"format", "shape", "data", "indices", "indptr"} - members.keys()
    if missing:
        problem = f"no {sorted(missing)[0]!r} in it; expected what scipy.sparse.save_npz writes for a CSR matrix"
        raise DataError(problem, source=path)
    name = members["format"].item() if members["format"].size == 1 else b""
    name = name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)
    if name not in ("csr", "csc"):
        raise DataError(f"a sparse matrix in the form {show(name)}; save it as CSR (X.tocsr())", source=path)
    shape, data, indices, indptr = (members[key] for key in ("shape", "data", "indices", "indptr"))
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any() or (shape >= 2**62).any():
        raise DataError(f"shape {show(str(shape))}; expected two counts", source=path)
    n_rows, n_columns = int(shape[0]), int(shape[1])
    check_shape(n_rows + n_columns, 0, source=path)
    n_major, n_minor = (n_rows, n_columns) if name == "csr" else (n_columns, n_rows)
    indices, indptr = _check_indices(data, indices, indptr, n_major, n_minor, path)
    axis = kind if name == "csr" else "row"
    counts = np.diff(indptr)
    indices, data = sort_rows(indices, data, counts, None, path, axis, sort=sort)
    build = sparse.csr_array if name == "csr" else sparse.csc_array
    matrix = build((data, indices, indptr), shape=(n_rows, n_columns))
    return sparse.csr_array(matrix)


def _check_indices(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], n_major: int, n_minor: int, path: Path
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    problem = ""
    if data.dtype.kind not in "fiub":
        problem = f"data of the type {data.dtype}; expected numbers"
    elif indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        problem = f"indices of the type {indices.dtype} and indptr of the type {indptr.dtype}; expected integers"
    elif not data.ndim == indices.ndim == indptr.ndim == 1 or len(data) != len(indices):
        problem = f"{data.shape} data for {indices.shape} indices; expected two lists of the same length"
    elif len(indptr) != n_major + 1 or indptr[0] != 0 or indptr[-1] != len(indices):
        problem = f"indptr does not lead from 0 to {len(indices)} in {n_major + 1} entries"
    elif (indptr[1:] < indptr[:-1]).any():
        problem = f"indptr decreases at entry {int(np.argmax(indptr[1:] < indptr[:-1])) + 1}"
    elif len(indices) and (indices.min() < 0 or indices.max() >= n_minor):
        problem = f"index {indices.min() if indices.min() < 0 else indices.max()} in a matrix of {n_minor}"
    if problem:
        raise DataError(f"{problem}; the matrix is damaged, write it again", source=path)
    narrow = np.int32 if max(n_minor, len(indices)) < 2**31 else np.int64
    return indices.astype(narrow, copy=False), indptr.astype(narrow, copy=False)


class MatrixFile:
    """A matrix in an ``.npz`` (CSR of scipy, or dense) or ``.npy`` file, of which some rows at a time are read.

    The members of the archive must be stored, not compressed. Their checksums, which are over all of them, are not
    looked at; the indices and values of the rows that are read are checked.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        self._arrays: dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]] = {}
        try:
            with open(self.path, "rb") as file:
                for name, start, size in self._members(file):
                    file.seek(start)
                    dtype, fortran, shape = _read_header(file, name, path)
                    if fortran and len(shape) > 1:
                        raise DataError("its columns come one after the other; save it in C order", source=path)
                    if file.tell() - start + math.prod(shape) * dtype.itemsize > size:
                        raise DataError(f"{show(name)} is shorter than its shape {shape}; it is damaged", source=path)
                    self._arrays[name] = file.tell(), dtype, shape
        except FileNotFoundError as error:
            raise NotFoundError(f"{path}: there is no such file") from error
        except (*ZIP_ERRORS, struct.error) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"not a readable matrix ({show(str(error), 80)}); it may be cut short", source=path
            ) from error
        self.sparse = "indptr" in self._arrays
        if self.sparse:
            missing = {"format", "shape", "data", "indices"} - self._arrays.keys()
            kind = b"" if missing else self._read("format", 0, 1)[0]
            if missing or (kind.decode("ascii") if isinstance(kind, bytes) else str(kind)) != "csr":
                raise DataError("is not a CSR matrix of scipy; save it as one, X.tocsr()", source=path)
            n_rows, n_columns = self._read("shape", 0, 2).tolist()
        else:
            shape = next(iter(self._arrays.values()))[2] if len(self._arrays) == 1 else ()
            if len(shape) != 2:
                raise DataError("holds no matrix; expected one array (n, d), or a CSR matrix of scipy", source=path)
            n_rows, n_columns = shape
        self.shape: tuple[int, int] = int(n_rows), int(n_columns)

    def _members(self, file: IO[bytes]) -> list[tuple[str, int, int]]:
        """The name, the place and the size of every array."""
        if self.path.suffix == ".npy":
            return [("", 0, self.path.stat().st_size)]
        found = []
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if entry.compress_type != zipfile.ZIP_STORED:
                    problem = f"{show(entry.filename)} is compressed, so that no part of it can be read by itself"
                    raise DataError(f"{problem}; save it with save_npz(..., compressed=False)", source=self.path)
                with archive.open(entry):  # checks the entry
                    file.seek(entry.header_offset + 26)
                    start = entry.header_offset + 30 + sum(struct.unpack("<HH", file.read(4)))
                found.append((entry.filename.removesuffix(".npy"), start, entry.file_size))
        return found

    def _read(self, name: str, start: int, stop: int) -> NDArray[Any]:
        """Some entries of a list, or rows of a matrix."""
        place, dtype, shape = self._arrays[name]
        width = math.prod(shape[1:])
        with open(self.path, "rb") as file:
            file.seek(place + start * width * dtype.itemsize)
            found = np.fromfile(file, dtype, (stop - start) * width)
        if len(found) != (stop - start) * width:
            raise DataError("it is shorter than when it was opened", source=self.path)
        return found.astype(dtype.newbyteorder("="), copy=False).reshape(-1, *shape[1:])

    def n_bytes(self, start: int, stop: int) -> int:
        """The size of some rows in the file."""
        if not self.sparse:
            return (stop - start) * self.shape[1] * next(iter(self._arrays.values()))[1].itemsize
        first, last = (int(self._read("indptr", row, row + 1)[0]) for row in (start, stop))
        return (last - first) * sum(self._arrays[name][1].itemsize for name in ("data", "indices"))

    def rows(self, start: int, stop: int) -> CSR | FloatArray:
        """The rows from number ``start`` to before ``stop``, checked."""
        if not self.sparse:
            found: Any = self._read(next(iter(self._arrays)), start, stop)
            values = found
        else:
            indptr = self._read("indptr", start, stop + 1).astype(np.int64)
            data, indices = (self._read(name, int(indptr[0]), int(indptr[-1])) for name in ("data", "indices"))
            indptr -= indptr[0]
            indices, indptr = _check_indices(data, indices, indptr, stop - start, self.shape[1], self.path)
            indices, data = sort_rows(indices, data, np.diff(indptr), None, self.path, "column", sort=True)
            found, values = sparse.csr_array((data, indices, indptr), shape=(stop - start, self.shape[1])), data
        if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
            raise DataError(f"not all values of rows {start} to {stop - 1} are finite numbers", source=self.path)
        return found


def _read_text(path: Path) -> str:
    try:
        return read_bytes(path, what="the file").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 at byte {error.start}; save the file as UTF-8", source=path) from error


def read_names(path: Path) -> list[str]:
    text = _read_text(path).replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _write_names(path: Path, names: Sequence[str]) -> None:
    for name in names:
        if "\n" in name or "\r" in name:
            raise DataError(f"the name {show(name)} has a line end in it; names are written one a line", source=path)
    with replacing(path) as file:
        if names:
            # A name may itself start with U+FEFF; the reader takes away one mark, so one is put before it.
            mark = "\ufeff" if names[0].startswith("\ufeff") else ""
            file.write(utf8(mark + "\n".join(names) + "\n", path))


def _read_rows(path: Path, n_rows: int) -> tuple[tuple[str, ...] | None, NDArray[np.datetime64] | None]:
    text = _read_text(path)
    try:
        header, *rows = list(csv.reader(io.StringIO(text, newline=""), strict=True)) or [[]]
    except csv.Error as error:
        raise DataError(f"not a CSV file: {error}", source=path) from error
    if not header or len(rows) != n_rows:
        problem = f"{len(rows)} rows after the header, the matrix has {n_rows}; give one line a row"
        raise DataError(problem, source=path)
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise DataError(f"{len(row)} fields; the header has {len(header)}", source=path, line=line)
    date_column = header.index("date") if "date" in header else None
    ids = None if date_column == 0 else tuple(row[0] for row in rows)
    return ids, None if date_column is None else _dates([row[date_column] for row in rows], path)


def _dates(texts: list[str], path: Path) -> NDArray[np.datetime64]:
    dates = np.empty(len(texts), dtype="datetime64[D]")
    for position, text in enumerate(texts):
        try:
            dates[position] = np.datetime64(text, "D")
        except ValueError as error:
            problem = f"date {show(text)}; expected year-month-day, like 1979-05-24"
            raise DataError(problem, source=path, line=position + 2) from error
    return dates


def _write_rows(path: Path, dataset: Dataset) -> None:
    columns: dict[str, Sequence[str]] = {}
    if dataset.row_ids is not None:
        columns["id"] = dataset.row_ids
    if dataset.row_dates is not None:
        columns["date"] = [str(date) for date in dataset.row_dates]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    with replacing(path) as file:
        file.write(utf8(text.getvalue(), path))
