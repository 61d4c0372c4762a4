"""Files of sums (`stats.sums`), ``.npz``: plain arrays, no pickle, every size checked before a byte is inflated.

====================================  ====================================================================
streamlabel_stats                     the number of this format
n_rows                                how many rows were summed
has_names                             (2,) 0/1: whether there are label names, feature names (not in the first files)
feature_sums                          (d,) float64 = X'1
feature_gram                          (d, d) float64 = X'X
cross                                 (d, m) float64 = X'B
pair_rows, pair_columns, pair_counts  (p,) integers: the non-zero entries of B'B on and above the diagonal
label_names, feature_names            (m,) and (d,) unicode, left out if there are none
group_rows, group_sums, group_grams   (g,) integers, (g, d) and (g d, d) float64: the same over groups of rows, left
                                      out where every label was asked on every row; the last also if it is too large
group_labels                          (g, m) 0/1: which labels were asked on the rows of each group
checksum                              CRC-32 of all other arrays, their names, types and shapes (from format 2 on)
====================================  ====================================================================
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.files import replacing, source_name
from streamlabel.data.npz import read_members, write_members
from streamlabel.errors import DataError
from streamlabel.stats.sums import AskedGroups, Stats, check_size
from streamlabel.types import CSR
from streamlabel.validation import check_label_names

FORMAT = 3
_FORMAT_OF_ALL = 2  # that of sums in which every label was asked everywhere, which earlier versions read
_MARK = "streamlabel_stats"
_PAIRS = ("pair_rows", "pair_columns", "pair_counts")
_SUMS = ("feature_sums", "feature_gram", "cross")
_NAMES = ("label_names", "feature_names")
_GROUPS = ("group_rows", "group_labels", "group_sums")
_KNOWN = {_MARK, "n_rows", "has_names", "checksum", "group_grams", *_SUMS, *_PAIRS, *_NAMES, *_GROUPS}
_BLOCK = 256
_UNDERFLOW = 1e-150  # numbers whose squares are lost


def write_stats(
    stats: Stats, target: str | os.PathLike[str] | BinaryIO, beside: Mapping[str, NDArray[Any]] | None = None
) -> None:
    """Write sums to a file ``*.npz``, which appears whole or not at all, or to an open binary file.

    beside : further arrays to put into it, which `read_stats_beside` reads
    """
    upper = sparse.triu(stats.label_gram, format="coo")
    arrays: dict[str, Any] = {
        _MARK: np.int64(_FORMAT_OF_ALL if stats.asked is None else FORMAT),
        "n_rows": np.int64(stats.n_rows),
        "has_names": np.array([stats.label_names is not None, stats.feature_names is not None], dtype=np.int64),
        "feature_sums": stats.feature_sums,
        "feature_gram": stats.feature_gram,
        "cross": stats.cross,
        **dict(zip(_PAIRS, (upper.row, upper.col, upper.data), strict=True)),
    }
    if stats.label_names is not None:
        arrays["label_names"] = np.array(stats.label_names)
    if stats.feature_names is not None:
        arrays["feature_names"] = np.array(stats.feature_names)
    if stats.asked is not None:
        groups = stats.asked
        arrays |= dict(zip(_GROUPS, (groups.rows, groups.labels.astype(np.int8), groups.sums), strict=True))
        arrays |= {} if groups.grams is None else {"group_grams": groups.grams.reshape(-1, stats.n_features)}
    arrays |= beside or {}
    arrays["checksum"] = np.int64(_checksum(arrays))
    if not isinstance(target, str | os.PathLike):
        write_members(target, arrays)
        return
    if Path(target).suffix != ".npz":
        raise DataError("sums are written to a file whose name ends in .npz", source=target)
    with replacing(target) as handle:
        write_members(handle, arrays)


def read_stats(source: str | os.PathLike[str] | BinaryIO) -> Stats:
    """Read what `write_stats` wrote, from a file or an open binary file.

    Raises
    ------
    NotFoundError : no such file
    DataError : it is something else, it is damaged, or a later version wrote it
    """
    try:
        return _stats(read_members(cast("str | os.PathLike[str]", source)))
    except DataError as error:
        raise DataError(error.problem, source=source_name(source)) from error


def read_stats_beside(path: str | os.PathLike[str], names: Sequence[str]) -> tuple[Stats, dict[str, NDArray[Any]]]:
    """Read sums, and the arrays of these names that were written beside them."""
    try:
        members = read_members(path)
        stats = _stats(members, names)
        return stats, {name: members[name] for name in names}
    except (DataError, KeyError) as error:
        raise DataError(getattr(error, "problem", f"no {error} in it"), source=path) from error


def _stats(members: Mapping[str, NDArray[Any]], beside: Sequence[str] = ()) -> Stats:
    if _MARK not in members:
        raise DataError("holds no sums; expected what 'streamlabel stats make' or write_stats writes")
    format = _whole(members, _MARK)
    if not 1 <= format <= FORMAT:
        raise DataError(f"sums of format {format}, this version reads {FORMAT}; update streamlabel, or make them anew")
    if format > 1 and ("checksum" not in members or _whole(members, "checksum") != _checksum(members)):
        raise DataError("its checksum is wrong; the file is damaged, make it anew")
    missing = [name for name in ("n_rows", *_SUMS, *_PAIRS) if name not in members]
    if missing:
        raise DataError(f"no {missing[0]!r} in it; the file is damaged, make it anew")
    if strange := sorted(set(members) - _KNOWN - set(beside)):
        raise DataError(f"{strange[0]!r} is no part of sums; the file is damaged, make it anew")
    said = members.get("has_names")
    if said is not None and said.tolist() != [int(name in members) for name in _NAMES]:
        raise DataError("names are missing, or there are too many; the file is damaged, make it anew")
    n_rows = _whole(members, "n_rows")
    sums, gram, cross = (members[name] for name in _SUMS)
    if not 0 <= n_rows < 2**53:
        raise DataError(f"{n_rows} rows; the file is damaged, make it anew")
    if sums.ndim != 1 or cross.ndim != 2 or gram.shape != (len(sums), len(sums)) or len(cross) != len(sums):
        raise DataError(f"sums of the shapes {sums.shape}, {gram.shape} and {cross.shape}, which do not go together")
    check_size(len(sums), int(cross.shape[1]))
    for name in _SUMS:
        if members[name].dtype != np.float64 or not np.isfinite(members[name]).all():
            raise DataError(f"{name} must hold finite float64 numbers; the file is damaged, make it anew")
    _check_gram(n_rows, sums, gram)
    label_gram = _label_gram(tuple(members[name] for name in _PAIRS), int(cross.shape[1]), n_rows)
    _check_cross(np.diag(gram), label_gram.diagonal(), cross)
    names = _names(members, "label_names", int(cross.shape[1]))
    return Stats(
        n_rows,
        sums,
        gram,
        cross,
        label_gram,
        None if names is None else check_label_names(names, len(names)),
        _names(members, "feature_names", len(sums)),
        _asked(members, n_rows, sums, gram, label_gram.diagonal()) if format > _FORMAT_OF_ALL else None,
    )


def _asked(
    members: Mapping[str, NDArray[Any]], n_rows: int, sums: NDArray[Any], gram: NDArray[Any], counts: NDArray[Any]
) -> AskedGroups:
    """The groups of rows, which must add up to all rows and hold every yes."""
    rows, labels, group_sums = (members.get(name, np.empty(())) for name in _GROUPS)
    n_groups = len(rows) if rows.ndim == 1 else 0
    grams = members.get("group_grams")
    if grams is not None and grams.size == n_groups * gram.size:
        grams = grams.reshape(n_groups, *gram.shape)
    whole = [(group_sums, sums)] if grams is None else [(group_sums, sums), (grams, gram)]
    sound = n_groups > 0 and rows.dtype.kind in "iu" and labels.dtype.kind in "iu" and int(rows.min()) >= 0
    sound = sound and labels.shape == (n_groups, len(counts)) and bool(np.isin(labels, (0, 1)).all())
    sound = sound and sum(rows.tolist()) == n_rows and bool((rows.astype(np.int64) @ labels >= counts).all())
    roots = np.sqrt(np.diag(gram))
    for part, total in whole:
        slack = np.sqrt(n_rows) * roots if part is group_sums else np.outer(roots, roots)
        sound = sound and part.dtype == np.float64 and part.shape == (n_groups, *total.shape)
        with np.errstate(all="ignore"):
            sound = sound and bool((np.abs(part.sum(axis=0) - total) <= 1e-9 * slack + n_rows * _UNDERFLOW).all())
    if not sound:
        raise DataError("the groups of rows do not add up to all rows; the file is damaged, make it anew")
    return AskedGroups(rows.astype(np.int64), labels.astype(bool), group_sums, grams)


def _checksum(members: Mapping[str, Any]) -> int:
    """The checksum of everything but the member that holds it."""
    found = 0
    for name in sorted(set(members) - {"checksum"}):
        array = np.ascontiguousarray(members[name])
        said = f"{name} {array.dtype.str} {np.shape(members[name])}".encode()
        found = zlib.crc32(array.reshape(-1).view(np.uint8).data, zlib.crc32(said, found))
    return found


def _whole(members: Mapping[str, NDArray[Any]], name: str) -> int:
    value = members.get(name)
    if value is None or value.size != 1 or value.dtype.kind not in "iu":
        raise DataError(f"{name!r} is not one whole number; the file is damaged, make it anew")
    return int(value.item())


def _check_gram(n_rows: int, sums: NDArray[Any], gram: NDArray[Any]) -> None:
    """Check that X'X is symmetric, and no column sum is larger than its diagonal and the rows allow."""
    diagonal = np.diag(gram)
    roots = np.sqrt(np.maximum(diagonal, 0.0))
    most = np.sqrt(n_rows) * roots * (1.0 + 1e-6) + n_rows * _UNDERFLOW
    sound = bool((diagonal >= 0.0).all() and (np.abs(sums) <= most).all())
    for start in range(0, len(sums), _BLOCK):
        rows = slice(start, start + _BLOCK)
        sound = sound and bool((np.abs(gram[rows] - gram[:, rows].T) <= np.outer(1e-9 * roots[rows], roots)).all())
    if not sound:
        raise DataError("feature_gram and feature_sums are not sums over the same rows; the file is damaged")


def _check_cross(squares: NDArray[Any], counts: NDArray[Any], cross: NDArray[Any]) -> None:
    """Check that a feature summed over the rows of a label is at most what its squares and their number allow."""
    for start in range(0, len(squares), _BLOCK):
        rows = slice(start, start + _BLOCK)
        most = np.outer(np.sqrt(squares[rows]), np.sqrt(counts)) * (1.0 + 1e-6) + counts * _UNDERFLOW
        if (np.abs(cross[rows]) > most).any():
            raise DataError("cross is not a sum over the same rows as feature_gram; the file is damaged, make it anew")


def _label_gram(pairs: tuple[NDArray[Any], ...], n_labels: int, n_rows: int) -> CSR:
    sound = all(array.ndim == 1 and array.dtype.kind in "iu" and len(array) == len(pairs[0]) for array in pairs)
    if sound and len(pairs[0]):
        low, high = [int(array.min()) for array in pairs], [int(array.max()) for array in pairs]
        sound = min(low) >= 0 and low[2] > 0 and max(high[:2]) < n_labels and high[2] <= n_rows
    if not sound or (pairs[0] > pairs[1]).any():
        raise DataError("the counts of label pairs are damaged; make the file anew")
    rows, columns, counts = (array.astype(np.int64) for array in pairs)
    keys = rows * n_labels + columns
    single = np.zeros(n_labels, dtype=np.int64)
    on_diagonal = rows == columns
    single[rows[on_diagonal]] = counts[on_diagonal]
    most = np.minimum(single[rows], single[columns])
    if len(np.unique(keys)) != len(keys) or (counts > most).any():
        raise DataError("labels occur together more often than alone; the file is damaged, make it anew")
    beside = ~on_diagonal
    both = (np.concatenate((rows, columns[beside])), np.concatenate((columns, rows[beside])))
    return sparse.csr_array((np.concatenate((counts, counts[beside])), both), shape=(n_labels, n_labels))


def _names(members: Mapping[str, NDArray[Any]], name: str, n_names: int) -> tuple[str, ...] | None:
    if name not in members:
        return None
    names = members[name]
    if names.dtype.kind != "U" or not names.dtype.itemsize or names.shape != (n_names,):
        raise DataError(f"{name} holds {names.dtype} {names.shape}; expected {n_names} names")
    if names.view(np.uint32).max() > sys.maxunicode:
        raise DataError(f"{name} holds what is no text; the file is damaged, make it anew")
    return tuple(names.tolist())
