"""The named data sets: what was published about each, where its files may lie, and the door that loads them.

Files are looked for in ``$STREAMLABEL_DATA/NAME``, then in the user cache (`cache_folder`). `load_catalogue_set` reads
whichever of these file forms is there and compares it with the published statistics:

==============  =====================================================================================================
Mulan           ``NAME-train.arff``, ``NAME-test.arff``, ``NAME.xml``
npz             ``X_train.npz``, ``Y_train.npz``, ... (scipy CSR), ``labels.txt``, ``features.txt``
XC text         ``train.txt``, ``test.txt``, or ``NAME_train.txt``, ``NAME_test.txt``
XC single file  ``NAME_data.txt``, ``NAME_trSplit.txt``, ``NAME_tstSplit.txt``: rows from 1, a split a column
svmlight        ``train-exp1.svm``, ``test-exp1.svm``, or ``train.svm``, ``test.svm`` (labels from 0, features from 1)
==============  =====================================================================================================

Capitals do not matter, and NAME may be any of the entry's names. The entries themselves are in ``catalogue.toml``.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from streamlabel.data.arff import read_arff
from streamlabel.data.files import packaged_toml
from streamlabel.data.npz import read_npz
from streamlabel.data.xc_svmlight import read_svmlight, read_xc_text
from streamlabel.errors import DataError, NotFoundError
from streamlabel.types import Dataset, IntArray


@dataclass(frozen=True)
class RemoteFile:
    """A file at a stable public address. ``size`` and ``sha256`` are None where nobody has published them.

    ``max_bytes`` bounds what is fetched when the size is not known.
    """

    url: str
    size: int | None = None
    sha256: str | None = None
    max_bytes: int = 1 << 26

    @property
    def name(self) -> str:
        name = urlsplit(self.url).path.rpartition("/")[2]
        return "download" if name in ("", ".", "..") else name


@dataclass(frozen=True)
class Entry:
    """A named data set and what was published about it.

    Attributes
    ----------
    n_rows : examples of each split, by the split's name
    labels_per_example, examples_per_label : averages as printed by ``statistics_from``, strings, so that their rounding
        is known; None: not seen by us
    averages_over : the splits that these two were taken over
    split_averages : labels per example of single splits, where they are known
    files : where `get` downloads from; empty where no stable public address is known
    by_hand : what to do without a network
    """

    name: str
    description: str
    n_rows: Mapping[str, int]
    n_features: int
    n_labels: int
    averages_over: tuple[str, ...]
    statistics_from: str
    form: str
    source: str
    licence: str
    by_hand: str
    labels_per_example: str | None = None
    examples_per_label: str | None = None
    aliases: tuple[str, ...] = ()
    split_averages: Mapping[str, str] = field(default_factory=dict)
    files: tuple[RemoteFile, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)


def _entry(published: Mapping[str, Any]) -> Entry:
    """An entry from its table in the TOML file."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in published.items()
    }
    return Entry(**fields | {"files": tuple(RemoteFile(**file) for file in published.get("files", ()))})


ENTRIES: tuple[Entry, ...] = tuple(_entry(published) for published in packaged_toml("catalogue.toml")["set"])

Paths = Mapping[str, Path]
"""What a form needs, by role: a split's name, ``"labels"``, ``"data"``."""
SplitReader = Callable[[Entry, Paths, str], Dataset]


@dataclass(frozen=True)
class FileForm:
    """Files of one form that together hold all splits of an entry."""

    name: str
    paths: Paths
    reader: SplitReader


def _read_svmlight(entry: Entry, paths: Paths, split: str) -> Dataset:
    return read_svmlight(paths[split], n_features=entry.n_features, n_labels=entry.n_labels, sort=True)


def _read_xc(entry: Entry, paths: Paths, split: str) -> Dataset:
    return read_xc_text(paths[split], sort=True)


_FORMS: tuple[tuple[str, Mapping[str, str], SplitReader], ...] = (
    (
        "Mulan ARFF + XML",
        {"{split}": "{stem}-{split}.arff", "labels": "{stem}.xml"},
        lambda entry, paths, split: read_arff(paths[split], xml=paths["labels"]),
    ),
    (
        "npz",
        {"X {split}": "x_{split}.npz", "Y {split}": "y_{split}.npz"},
        lambda entry, paths, split: read_npz(paths[f"X {split}"].parent, split=split),
    ),
    ("XC text", {"{split}": "{split}.txt"}, _read_xc),
    ("XC text", {"{split}": "{stem}_{split}.txt"}, _read_xc),
    ("XC text, single file", {"data": "{stem}_data.txt", "{split}": "{stem}_{short}split.txt"}, _read_xc),
    ("svmlight", {"{split}": "{split}-exp1.svm"}, _read_svmlight),
    ("svmlight", {"{split}": "{split}.svm"}, _read_svmlight),
)


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


def find_entry(name: str) -> Entry:
    """The entry called so (its aliases and other capitals count too)."""
    wanted = name.strip().lower()
    for entry in ENTRIES:
        if wanted in (alias.lower() for alias in entry.names):
            return entry
    known = [entry.name for entry in ENTRIES]
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise NotFoundError(f"no data set is called {name!r}; {hint}")


def cache_folder(environ: Mapping[str, str] | None = None, platform: str = sys.platform) -> Path:
    """Where downloaded sets are kept: ``$STREAMLABEL_CACHE``, or ``streamlabel`` in the platform's cache folder."""
    environ = os.environ if environ is None else environ
    if chosen := environ.get("STREAMLABEL_CACHE"):
        return Path(chosen).expanduser()
    try:
        home = Path.home()
    except RuntimeError as error:
        raise NotFoundError("your home folder is not known; set STREAMLABEL_CACHE to a folder for data sets") from error
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "streamlabel" / "Cache"
    if platform == "darwin":
        return home / "Library" / "Caches" / "streamlabel"
    base = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    return (base if base.is_absolute() else home / ".cache") / "streamlabel"


def data_roots(cache: Path | None = None, environ: Mapping[str, str] | None = None) -> list[Path]:
    """The folders that hold one folder a data set, in the order in which they are searched."""
    environ = os.environ if environ is None else environ
    roots = [Path(environ["STREAMLABEL_DATA"]).expanduser()] if environ.get("STREAMLABEL_DATA") else []
    return [*roots, (cache or cache_folder(environ)) / "datasets"]


@dataclass(frozen=True)
class FoundSet:
    """The files of an entry on this machine."""

    entry: Entry
    folder: Path
    form: FileForm


def _folders(entry: Entry, roots: list[Path]) -> Iterator[Path]:
    names = {name.lower() for name in entry.names}
    for root in roots:
        try:
            children = sorted(root.iterdir())
        except OSError:
            continue  # a root that is not there, or may not be read, holds nothing for us
        yield from (child for child in children if child.name.lower() in names and child.is_dir())


def locate(entry: Entry, roots: list[Path] | None = None) -> FoundSet | None:
    """The first folder that holds all splits of the entry in a form that can be read; None where there is none."""
    for folder in _folders(entry, data_roots() if roots is None else roots):
        form = find_form(entry, folder)
        if form is not None:
            return FoundSet(entry, folder, form)
    return None


def require(entry: Entry, roots: list[Path] | None = None) -> FoundSet:
    """As `locate`, but a set that is not there is an error that says how to get it."""
    roots = data_roots() if roots is None else roots
    found = locate(entry, roots)
    if found is None:
        places = " or ".join(str(root / entry.name) for root in roots)
        get = f"run 'streamlabel datasets get {entry.name}', or " if entry.files else ""
        raise NotFoundError(
            f"the data set {entry.name} is not on this machine (looked for {places}); "
            f"{get}put its files there by hand: {entry.by_hand}"
        )
    return found


@dataclass(frozen=True)
class Counts:
    """What one split holds: its shape and how many label assignments and stored feature values there are."""

    n_rows: int
    n_features: int
    n_labels: int
    n_assignments: int
    n_values: int

    @property
    def labels_per_example(self) -> float:
        return self.n_assignments / self.n_rows if self.n_rows else 0.0

    @property
    def examples_per_label(self) -> float:
        return self.n_assignments / self.n_labels if self.n_labels else 0.0

    @property
    def values_per_example(self) -> float:
        return self.n_values / self.n_rows if self.n_rows else 0.0

    def __add__(self, other: Counts) -> Counts:
        """The counts of both splits together (they share their columns)."""
        return Counts(
            self.n_rows + other.n_rows,
            max(self.n_features, other.n_features),
            max(self.n_labels, other.n_labels),
            self.n_assignments + other.n_assignments,
            self.n_values + other.n_values,
        )


def count(data: Dataset) -> Counts:
    """The counts of a loaded split."""
    return Counts(data.n_rows, data.n_features, data.n_labels, int(data.Y.nnz), int(data.X.nnz))


def total(counts: Mapping[str, Counts]) -> Counts:
    """The counts of all these splits together."""
    return sum(counts.values(), Counts(0, 0, 0, 0, 0))


def differences(entry: Entry, counts: Mapping[str, Counts]) -> list[str]:
    """Where the splits given by name contradict what was published; empty when all agrees.

    Numbers of rows, features and labels must be equal. Averages may differ by the rounding of the publication (half a
    unit of the last printed digit), and are compared when all the splits they were taken over are given.
    """
    found = []
    for split, measured in counts.items():
        found += _unequal(f"{split}: examples", measured.n_rows, entry.n_rows[split])
        found += _unequal(f"{split}: features", measured.n_features, entry.n_features)
        found += _unequal(f"{split}: labels", measured.n_labels, entry.n_labels)
        if split in entry.split_averages:
            known = entry.split_averages[split]
            found += _far(f"{split}: labels per example", measured.labels_per_example, known)
    if set(entry.averages_over) <= set(counts):
        base = total({split: counts[split] for split in entry.averages_over})
        over = " + ".join(entry.averages_over)
        found += _far(f"labels per example over {over}", base.labels_per_example, entry.labels_per_example)
        found += _far(f"examples per label over {over}", base.examples_per_label, entry.examples_per_label)
    return found


def _unequal(what: str, measured: int, published: int) -> list[str]:
    return [] if measured == published else [f"{what}: {measured:,} here, {published:,} published"]


def _far(what: str, measured: float, published: str | None) -> list[str]:
    if published is None:
        return []
    decimals = len(published.partition(".")[2])
    if abs(measured - float(published)) <= 0.5 * 10.0**-decimals + 1e-9:
        return []
    return [f"{what}: {measured:.{decimals + 2}f} here, {published} published"]


def load_catalogue_splits(
    found: FoundSet, splits: tuple[str, ...] | None = None, *, column: int = 0
) -> dict[str, Dataset]:
    """These splits (all by default) of a set that was found, not yet compared with what was published.

    ``column`` chooses the split where the set comes as one file with several random splits (the XC repository's
    ``trSplit``/``tstSplit`` files have one split a column).
    """
    entry, form = found.entry, found.form
    wanted = tuple(entry.n_rows) if splits is None else splits
    if "data" in form.paths:
        whole = form.reader(entry, form.paths, "data")
        return {split: whole.take_rows(read_split_rows(form.paths[split], whole.n_rows, column)) for split in wanted}
    return {split: form.reader(entry, form.paths, split) for split in wanted}


def load_catalogue_set(name: str, split: str = "train", *, roots: list[Path] | None = None, column: int = 0) -> Dataset:
    """A split of a named data set, equal in shape and averages to what was published.

    Parameters
    ----------
    name : an entry of the catalogue
    split : ``"train"``, ``"test"``, or another split that the entry has
    roots : folders that hold one folder a data set; by default `data_roots`
    column : which random split, where the files come with several

    Raises
    ------
    NotFoundError : no such name or split, or the files are not on this machine
    DataError : the files cannot be read, or differ from what was published; the message names the number
    """
    entry = find_entry(name)
    if split not in entry.n_rows:
        raise NotFoundError(f"{entry.name} has no split {split!r}; it has {', '.join(entry.n_rows)}")
    found = require(entry, roots)
    data = load_catalogue_splits(found, (split,), column=column)[split]
    check_statistics(found, {split: count(data)})
    return data


def check_statistics(found: FoundSet, counts: Mapping[str, Counts]) -> None:
    """Raise DataError, with every number that differs, unless these splits are what was published."""
    wrong = differences(found.entry, counts)
    if wrong:
        raise DataError(
            f"not {found.entry.name} as published ({'; '.join(wrong)}); another version of the set, or a damaged file: "
            f"get it again, or read the file by its path",
            source=found.folder,
        )
