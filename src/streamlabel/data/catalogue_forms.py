"""The file forms in which a named set is met, and how each is read.

==============  =====================================================================================================
Mulan           ``NAME-train.arff``, ``NAME-test.arff``, ``NAME.xml``
npz             ``X_train.npz``, ``Y_train.npz``, ... (scipy CSR), ``labels.txt``, ``features.txt``
XC text         ``train.txt``, ``test.txt``, or ``NAME_train.txt``, ``NAME_test.txt``
XC single file  ``NAME_data.txt``, ``NAME_trSplit.txt``, ``NAME_tstSplit.txt``: rows from 1, a split a column
svmlight        ``train-exp1.svm``, ``test-exp1.svm``, or ``train.svm``, ``test.svm`` (labels from 0, features from 1)
==============  =====================================================================================================

Capitals do not matter, and NAME may be any of the entry's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamlabel.data.arff import read_arff
from streamlabel.data.catalogue_entries import Entry
from streamlabel.data.npz import read_npz
from streamlabel.data.svmlight import read_svmlight
from streamlabel.data.xc_text import read_xc_text
from streamlabel.exceptions import DataError, NotFoundError
from streamlabel.results import Dataset, IntArray

__all__ = ["FileForm", "find_form", "read_split_rows"]

Paths = Mapping[str, Path]
"""What a form needs, by role: a split's name, ``"labels"``, ``"data"``."""


@dataclass(frozen=True)
class FileForm:
    """Files of one form that together hold all splits of an entry."""

    name: str
    paths: Paths
    reader: Callable[[Entry, Paths, Iterable[str], int], dict[str, Dataset]]

    def read(self, entry: Entry, splits: Iterable[str], column: int) -> dict[str, Dataset]:
        return self.reader(entry, self.paths, splits, column)


def find_form(entry: Entry, folder: Path) -> FileForm | None:
    """The first form in which all splits of the entry lie in the folder."""
    files = {path.name.lower(): path for path in sorted(folder.iterdir()) if path.is_file()}
    splits = tuple(entry.n_rows)
    for name, patterns, reader in _FORMS:
        for stem in entry.names:
            wanted = _expand(patterns, splits, stem.lower())
            if all(file in files for file in wanted.values()):
                return FileForm(name, {role: files[file] for role, file in wanted.items()}, reader)
    return None


def _expand(patterns: Mapping[str, str], splits: tuple[str, ...], stem: str) -> dict[str, str]:
    """File names by role; the role ``{split}`` stands for every split."""
    wanted = {}
    for role, pattern in patterns.items():
        for split in splits if "{split}" in role else ("",):
            short = {"train": "tr", "test": "tst"}.get(split, split)
            wanted[role.format(split=split)] = pattern.format(stem=stem, split=split, short=short)
    return wanted


def _read_mulan(entry: Entry, paths: Paths, splits: Iterable[str], column: int) -> dict[str, Dataset]:
    return {split: read_arff(paths[split], xml=paths["labels"]) for split in splits}


def _read_npz(entry: Entry, paths: Paths, splits: Iterable[str], column: int) -> dict[str, Dataset]:
    return {split: read_npz(paths[f"X {split}"].parent, split=split) for split in splits}


def _read_xc(entry: Entry, paths: Paths, splits: Iterable[str], column: int) -> dict[str, Dataset]:
    return {split: read_xc_text(paths[split], sort=True) for split in splits}


def _read_svmlight(entry: Entry, paths: Paths, splits: Iterable[str], column: int) -> dict[str, Dataset]:
    return {
        split: read_svmlight(paths[split], n_features=entry.n_features, n_labels=entry.n_labels, sort=True)
        for split in splits
    }


def _read_single(entry: Entry, paths: Paths, splits: Iterable[str], column: int) -> dict[str, Dataset]:
    whole = read_xc_text(paths["data"], sort=True)
    return {split: whole.take_rows(read_split_rows(paths[split], whole.n_rows, column)) for split in splits}


def read_split_rows(path: Path, n_rows: int, column: int = 0) -> IntArray:
    """The row positions, from 0, that one column of an XC split file names; int64 (n,).

    The file has one row number (from 1) a line and column, and as many columns as there are random splits.
    """
    rows: list[int] = []
    try:
        with open(path, encoding="ascii") as file:
            for number, line in enumerate(file, start=1):
                fields = line.split()
                if fields:
                    rows.append(_split_row(fields, column, n_rows, path, number))
    except UnicodeDecodeError as error:
        raise DataError("not a text file of row numbers", source=path) from error
    chosen = np.asarray(rows, dtype=np.int64)
    if np.unique(chosen).size != chosen.size:
        raise DataError(f"column {column} names a row twice; a split takes each row once", source=path)
    return chosen


def _split_row(fields: list[str], column: int, n_rows: int, path: Path, number: int) -> int:
    if not 0 <= column < len(fields):
        raise NotFoundError(f"{path}, line {number}: no split {column}; there are {len(fields)}, counted from 0")
    text = fields[column]
    if not text.isdigit() or len(text) > 18 or not 1 <= int(text) <= n_rows:
        raise DataError(f"row {text[:30]!r}; rows are counted from 1 to {n_rows}", source=path, line=number)
    return int(text) - 1


_FORMS = (
    ("Mulan ARFF + XML", {"{split}": "{stem}-{split}.arff", "labels": "{stem}.xml"}, _read_mulan),
    ("npz", {"X {split}": "x_{split}.npz", "Y {split}": "y_{split}.npz"}, _read_npz),
    ("XC text", {"{split}": "{split}.txt"}, _read_xc),
    ("XC text", {"{split}": "{stem}_{split}.txt"}, _read_xc),
    ("XC text, single file", {"data": "{stem}_data.txt", "{split}": "{stem}_{short}split.txt"}, _read_single),
    ("svmlight", {"{split}": "{split}-exp1.svm"}, _read_svmlight),
    ("svmlight", {"{split}": "{split}.svm"}, _read_svmlight),
)
