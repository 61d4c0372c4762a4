"""Options and arguments that commands share: input files and their columns, the stored model, finding a label."""

from __future__ import annotations

import codecs
import getpass
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from streamlabel.cli.output import plural, remark
from streamlabel.data.files import replayable
from streamlabel.data.load import (
    FORMATS,
    TextColumns,
    TextRow,
    begins_as_table,
    format_of,
    guess_columns,
    load_dataset,
    read_one_label_rows,
    read_text_lines,
    read_text_rows,
)
from streamlabel.data.xc_svmlight import states_shape
from streamlabel.errors import ConflictError, DataError, NotFoundError, did_you_mean
from streamlabel.store.model_store import ModelStore
from streamlabel.tagging.tagger import VECTORIZER, Tagger
from streamlabel.types import Dataset, TextDataset

_Function = TypeVar("_Function", bound=Callable[..., Any])
READABLE = ("arff", "csv", "jsonl", "ndjson", "npz", "parquet", "svm", "tsv")
SECOND_FILE = {"arff": "xml", "npz": "Y_path", "xc": "labels_path"}  # what their readers call it


@dataclass(frozen=True)
class FileOptions:
    """How to read a file; None where it is to be found out."""

    format: str | None = None
    text: str | None = None
    labels: str | None = None
    tag_delimiter: str | None = None
    split: str = "train"
    labels_file: str | None = None

    @classmethod
    def of(cls, arguments: dict[str, Any]) -> FileOptions:
        """Takes its options out of the arguments of a command."""
        names = ("format", "text", "labels", "tag_delimiter", "split", "labels_file")
        return cls(**{name: arguments.pop(name) for name in names if name in arguments})


def file_options(*, labels: bool = True, split: str = "train") -> Callable[[_Function], _Function]:
    """``--format``, ``--text``, ``--split`` and, with labels, ``--labels`` and ``--tag-delimiter``."""

    def decorate(function: _Function) -> _Function:
        options = [
            click.option("--format", type=click.Choice([*FORMATS, "lines"]), help="Of the file; by default told."),
            click.option("--text", metavar="COLUMN", help="The column or field with the texts; by default guessed."),
        ]
        if labels:
            options += [
                click.option("--labels", metavar="COLUMN", help="The column with the tags; by default guessed."),
                click.option("--tag-delimiter", metavar="MARK", help="Between the tags of a CSV cell, such as ';'."),
            ]
        second = "The second file of a set of rows: Y of npz, labels of XC text, Mulan's XML of ARFF."
        options.append(click.option("--labels-file", metavar="FILE", help=second))
        folders = "Which part of a folder of npz files: X_NAME.npz and Y_NAME.npz."
        options.append(click.option("--split", default=split, show_default=True, metavar="NAME", help=folders))
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def read_set(
    path: str, options: FileOptions, *, n_features: int | None = None, learning: bool = False
) -> tuple[Dataset | TextDataset, TextColumns | None]:
    """A labelled set, and the columns it was read from where they are columns of texts.

    n_features : what the model has, for formats that do not say how many columns there are
    learning : say which numbers of svmlight are no label, for no row has them
    """
    _check(path)
    if options.format == "lines":
        raise DataError("plain lines have no labels; give JSONL, CSV or a set of rows", source=path)
    if _is_folder(path):
        _check_folder(Path(path))
        return load_dataset(path, "npz", split=options.split), None
    source, head = replayable(path)
    _check_array(path, head, options.format)
    format = options.format or _told(path, head)
    if options.format is None and format == "xc" and not _begins_as_xc(head):
        problem = "is plain text without tags; give tagged texts, JSONL or CSV (XC text begins with its numbers of rows"
        raise DataError(f"{problem}, features and labels)", source=path)
    columns = guess_columns(
        source,
        head,
        format=format,
        text=options.text,
        labels=options.labels,
        tag_delimiter=options.tag_delimiter,
    )
    if columns is not None and columns.one_label:
        return read_one_label_rows(source, columns), columns
    if columns is not None:
        return load_dataset(source, columns.format, repeated_labels="merge", **columns.options()), columns
    more: dict[str, Any] = {}
    if format in SECOND_FILE and options.labels_file is not None:
        more = {SECOND_FILE[format]: options.labels_file}
    elif format == "svmlight" and n_features is not None:
        more = {"n_features": n_features}
    elif format == "parquet":
        given = {"text_column": options.text, "labels_column": options.labels}
        more = {name: column for name, column in given.items() if column is not None}
    data = load_dataset(source, format, **more)
    if format == "svmlight" and isinstance(data, Dataset) and not states_shape(head):
        data = _without_empty_labels(data, path, say=learning)
    return data, None


def _without_empty_labels(data: Dataset, path: str, *, say: bool) -> Dataset:
    """svmlight numbers its labels: those below the largest that no row has are none. The others keep their numbers."""
    has_rows = np.bincount(data.Y.indices, minlength=data.n_labels) > 0
    if has_rows.all() or not has_rows.any():
        return data
    if say:
        empty = [name for name, known in zip(data.label_names, has_rows, strict=True) if not known]
        shown = ", ".join(empty[:3]) + (", ..." if len(empty) > 3 else "")
        remark(f"{path}: no row has {shown}; {plural(len(empty), 'number')} left out, the others keep theirs")
    names = tuple(name for name, known in zip(data.label_names, has_rows, strict=True) if known)
    return replace(data, Y=data.Y[:, np.flatnonzero(has_rows)], label_names=names)


def _begins_as_xc(head: bytes) -> bool:
    first = head.removeprefix(codecs.BOM_UTF8).partition(b"\n")[0].split()
    return len(first) == 3 and all(number.isdigit() for number in first)


def read_texts(path: str, options: FileOptions, other: str | None = None) -> Iterator[TextRow]:
    """Texts one at a time: JSONL or CSV, else one a line (``.txt``, ``--format lines``). A guess is said.

    Standard input is any of them, by how it begins.
    """
    _check(path)
    if options.format == "lines" or (options.format is None and path.endswith((".txt", ".txt.gz"))):
        yield from read_text_lines(path)
        return
    source, head = replayable(path)
    _check_array(path, head, options.format)
    if path == "-" and options.format is None and options.text is None and _begins_as_lines(head):
        remark("standard input: taken for one text a line (--format csv or --format jsonl overrides)")
        yield from read_text_lines(source)
        return
    format = options.format or _told(path, head)
    columns = guess_columns(source, head, format=format, text=options.text, labels=options.labels, need_labels=False)
    if columns is None:
        if not head.strip():
            raise DataError("holds no rows; is it the right file, and whole?", source=path)
        raise DataError("holds no texts; give JSONL, CSV, or one text a line (--format lines)", source=path)
    say_guess(path, columns)
    yield from read_text_rows(source, columns, other)


def say_guess(path: str, columns: TextColumns | None) -> None:
    """Which columns were guessed."""
    if columns is not None and columns.guessed:
        options = "--text, --labels and --tag-delimiter override" if "tags" in columns.guessed else "--text overrides"
        name = f"standard input: guessed {columns.format.upper()}," if path == "-" else f"{path}: guessed"
        remark(f"{name} {columns.guessed} ({options})")


def _told(path: str, head: bytes) -> str:
    """The format of a file, by its name or how it begins."""
    if path == "-":
        return "jsonl" if head.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"{" else "csv"
    try:
        return format_of(path)
    except DataError as error:
        error.hint_value += ", lines"  # which have no tags, so that no reader of sets knows them
        raise


def _begins_as_lines(head: bytes) -> bool:
    return head.removeprefix(codecs.BOM_UTF8).lstrip()[:1] != b"{" and not begins_as_table(head)


def _check_array(path: str, head: bytes, format: str | None) -> None:
    """JSONL is one object a line; an array of objects is hardly ever anything else."""
    if format in (None, "jsonl") and re.match(rb"\s*\[\s*\{", head.removeprefix(codecs.BOM_UTF8)):
        problem = "is one JSON array; make it JSONL, one object a line (\"jq -c '.[]'\" does)"
        raise DataError(problem, source="standard input" if path == "-" else path)


def _check_folder(folder: Path) -> None:
    """A folder is read only where it has matrices; else a file in it was meant."""
    if any(folder.glob("X_*.npz")):
        return
    files = sorted(path.name for path in folder.iterdir() if path.suffix.lstrip(".") in READABLE)[:5]
    hint = f"name a file in it, such as {' or '.join(files)}" if files else "name a file"
    raise DataError(f"is a folder without X_NAME.npz and Y_NAME.npz; {hint}", source=folder)


def _is_folder(path: str) -> bool:
    return path != "-" and Path(path).is_dir()


def _check(path: str) -> None:
    if path != "-" and not Path(path).exists():
        raise NotFoundError(f"{path}: there is no such file")


ACTOR = "STREAMLABEL_ACTOR"

model_argument = click.argument("model", type=click.Path(path_type=Path))


def actor_option(function: _Function) -> _Function:
    """``--actor``: who is named in the history."""
    return click.option(
        "--actor",
        default=_actor,
        metavar="NAME",
        help=f"Who the history says it was (default: {ACTOR}, else the name you are logged in with).",
    )(function)


def dry_run_option(function: _Function) -> _Function:
    """``--dry-run``: the command says what it would do."""
    return click.option("--dry-run", is_flag=True, help="Say what would happen; change nothing.")(function)


def has_texts(store: ModelStore) -> bool:
    """Whether the model takes texts; others take rows of numbers."""
    return VECTORIZER in store.parts()


def open_model(path: Path, mode: str = "r", *, actor: str = "") -> tuple[ModelStore, Tagger | None]:
    """The stored model, and as a tagger where it takes texts."""
    store = ModelStore.open(path, mode, actor=actor)
    try:
        return store, Tagger.of_store(store) if has_texts(store) else None
    except BaseException:
        store.close()
        raise


def new_model_path(path: Path) -> None:
    """An error unless a model can be made there; found before the work is done."""
    if path.exists() or path.is_symlink():
        raise ConflictError(f"{path} is there already; choose another directory, or add to it with add-label")


def known_label(names: Iterable[str], name: str, path: Path) -> str:
    """The label as it is spelled in the model."""
    known, wanted = list(names), unicodedata.normalize("NFC", name)
    if wanted in known:
        return wanted
    hint = did_you_mean(wanted, known) or f"'streamlabel labels {path}' lists all"
    raise NotFoundError(f"{path}: no label is called {name!r}; {hint}")


def new_label_name(given: str, known: Collection[str]) -> str:
    """The name of a new label without outer spaces; said where they were taken off, or a label has a close name."""
    whole = unicodedata.normalize("NFC", given)
    name = whole.strip()
    if not name:
        raise click.UsageError("the name of the label is empty; give it one, in quotes where it has spaces")
    if name != whole:
        remark(f"the spaces around the name were taken off: {name!r}")
    others = [other for other in known if other != name]
    twins = [other for other in others if other.casefold() == name.casefold()]
    for twin in twins:
        remark(f"warning: there is a label {twin!r}, which differs from {name!r} only by case")
    same_digits = (other for other in others if re.findall(r"\d", other) == re.findall(r"\d", name))
    question = did_you_mean(name, same_digits, 0.85)  # one letter more in three, or another one in seven
    if question and not twins and len(others) == len(known):
        remark(f"warning: {name!r} is close to a label that is known; {question}")
    return name


def say_twins(names: Iterable[str]) -> None:
    """Names that differ only by case or outer spaces are hardly ever meant."""
    first: dict[str, str] = {}
    for name in names:
        twin = first.setdefault(name.strip().casefold(), name)
        if twin != name:
            remark(f"warning: {twin!r} and {name!r} differ only by case or spaces; they are learned as two labels")


def megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:,.0f} kB"


def _actor() -> str:
    if ACTOR in os.environ:
        return os.environ[ACTOR]
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
