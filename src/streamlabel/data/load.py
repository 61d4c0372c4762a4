"""One door for every file format: `load_dataset` picks the reader by the file's name, else by how it begins."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from streamlabel.data.arff import read_arff
from streamlabel.data.catalogue import ENTRIES
from streamlabel.data.csv_table import read_csv
from streamlabel.data.files import Source, open_source, source_name
from streamlabel.data.jsonl import read_jsonl
from streamlabel.data.npz import read_npz
from streamlabel.data.parquet import read_parquet
from streamlabel.data.xc_svmlight import read_svmlight, read_xc_pair, read_xc_text
from streamlabel.errors import DataError, NotFoundError
from streamlabel.types import Dataset, TextDataset

Reader: TypeAlias = Callable[..., Dataset | TextDataset]


def _read_xc(
    path: str | os.PathLike[str], *, labels_path: str | os.PathLike[str] | None = None, **options: Any
) -> Dataset:
    """One file, or the features file of the two-file form with ``labels_path``."""
    return read_xc_text(path, **options) if labels_path is None else read_xc_pair(path, labels_path, **options)


FORMATS: dict[str, Reader] = {
    "arff": read_arff,
    "csv": read_csv,
    "jsonl": read_jsonl,
    "npz": read_npz,
    "parquet": read_parquet,
    "svmlight": read_svmlight,
    "xc": _read_xc,
}
STREAMED = ("csv", "jsonl")

_FORMAT_OF_SUFFIX = {
    ".arff": "arff",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".txt": "xc",
}
_FORMAT_OF_BEGINNING = (
    (re.compile(rb"PAR1"), "parquet"),
    (re.compile(rb"PK\x03\x04"), "npz"),
    (re.compile(rb"(?:\xef\xbb\xbf)?\s*\{"), "jsonl"),
    (re.compile(rb"(?:\s*%[^\n]*\n)*\s*@relation\b", re.IGNORECASE), "arff"),
    (re.compile(rb"[ \t]*\d+[ \t]+\d+[ \t]+\d+[ \t]*\r?\n"), "xc"),
    (re.compile(rb"(?:#[^\n]*\n)*[\d,]*[ \t]+\d+:[-+.\dEe]"), "svmlight"),
)


def load_dataset(path: Source, format: str | None = None, **options: Any) -> Dataset | TextDataset:
    """Read a data set in any of the formats.

    Parameters
    ----------
    path : a file, a folder of npz files, "-" for standard input or an open binary file (CSV and JSONL; give the
        format)
    format : one of `FORMATS`. None: by the suffix (``.txt`` is XC text), else by how the file begins
    options : passed on to the reader of that format (for XC text, ``labels_path`` names the second file of the
        two-file form)

    Returns
    -------
    `Dataset`, or `TextDataset` where rows hold texts: `streamlabel.data.text.vectorise` makes a `Dataset` of it.

    Raises
    ------
    NotFoundError
        There is no such file.
    DataError
        The format cannot be told, or the reader refuses the file.
    """
    name = format_of(path) if format is None else format
    if name not in FORMATS:
        raise DataError(f"format {name!r} is not known; use one of {', '.join(FORMATS)}")
    if _is_stream(path) and name not in STREAMED:
        raise DataError(f"{name} cannot be read from a stream; give a file name", source=source_name(path))
    return FORMATS[name](path, **options)


def format_of(path: Source) -> str:
    """The name of the format, by suffix, else by how the file begins."""
    if not isinstance(path, str | os.PathLike) or path == "-":
        raise DataError("give the format, 'jsonl' or 'csv', when reading a stream", source=source_name(path))
    place = Path(path)
    if "\0" in str(place) or not place.exists():
        raise NotFoundError(f"{str(place)!r}: there is no such file{_catalogue_hint(str(place))}")
    if place.is_dir():
        return "npz"
    suffixes = [suffix.lower() for suffix in place.suffixes if suffix not in (".gz", ".bz2")]
    return _FORMAT_OF_SUFFIX.get(suffixes[-1] if suffixes else "") or _format_of_beginning(place)


def _catalogue_hint(name: str) -> str:
    known = {alias.lower() for entry in ENTRIES for alias in entry.names}
    return f"; load_catalogue_set({name!r}) reads the data set of this name" if name.lower() in known else ""


def _is_stream(path: Source) -> bool:
    return not isinstance(path, str | os.PathLike) or path == "-"


def _format_of_beginning(path: Path) -> str:
    with open_source(path) as handle:
        beginning = handle.read(4096)
    for pattern, name in _FORMAT_OF_BEGINNING:
        if pattern.match(beginning):
            return name
    raise DataError(f"its format cannot be told; pass format=, one of {', '.join(FORMATS)}", source=path)
