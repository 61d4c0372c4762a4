"""Options of commands that read files: which format, which columns; and the reading."""

from __future__ import annotations

import codecs
import io
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from streamlabel.cli.output import plural, remark
from streamlabel.data.files import replayable, source_name
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
from streamlabel.errors import DataError, NotFoundError
from streamlabel.types import CSR, Dataset, FloatArray, TextDataset

_Function = TypeVar("_Function", bound=Callable[..., Any])
READABLE = ("arff", "csv", "jsonl", "ndjson", "npy", "npz", "parquet", "svm", "tsv")
ID_OPTION = {"jsonl": "id_field", "parquet": "id_column"}
SECOND_FILE = {"arff": "xml", "npz": "Y_path", "xc": "labels_path"}  # what their readers call it


Spread = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
dask_option = click.option("--dask", metavar="ADDRESS", help="Work on the Dask cluster whose scheduler is there.")


@contextmanager
def on_cluster(address: str | None) -> Iterator[Spread]:
    """What applies a function to many items, one by one and in order: ``map``, or the workers of a Dask cluster."""
    if address is None:
        yield map
        return
    from streamlabel.scale.dask_engine import DaskExecutor

    logging.disable(logging.CRITICAL)  # what Dask says of a lost connection is said in one line
    try:
        executor = DaskExecutor(address)
        yield executor.stream
        executor.close()
    finally:
        logging.disable(logging.NOTSET)


@dataclass(frozen=True)
class FileOptions:
    """How to read a file; None where it is to be found out.

    offered : whether the command has these options, so that a guess can name them
    """

    format: str | None = None
    text: str | None = None
    labels: str | None = None
    tag_delimiter: str | None = None
    split: str = "train"
    labels_file: str | None = None
    id: str | None = None
    offered: bool = True

    @classmethod
    def of(cls, arguments: dict[str, Any]) -> FileOptions:
        """Takes its options out of the arguments of a command."""
        names = ("format", "text", "labels", "tag_delimiter", "split", "labels_file")
        return cls(**{name: arguments.pop(name) for name in names if name in arguments})


def file_options(*, labels: bool = True, rows: bool = True, split: str = "train") -> Callable[[_Function], _Function]:
    """``--format``, ``--text``, with labels ``--labels`` and ``--tag-delimiter``, with rows those of sets of rows."""

    def decorate(function: _Function) -> _Function:
        options = [
            click.option("--format", type=click.Choice([*FORMATS, "lines"]), help="Of the file; by default told."),
            click.option("--text", metavar="COLUMN", help="The column or field with the texts; by default guessed."),
        ]
        if labels:
            options += [
                click.option("--labels", metavar="COLUMN", help="The column with the tags; by default guessed."),
                click.option("--tag-delimiter", metavar="MARK", help="Between the tags of a cell or string, as ';'."),
            ]
        second = "The second file of a set of rows: Y of npz or npy (or JSONL of tags), labels of XC text, XML of ARFF."
        options += [click.option("--labels-file", metavar="FILE", help=second)] if rows else []
        folders = "Which part of a folder of npz files: X_NAME.npz and Y_NAME.npz."
        if rows:
            options.append(click.option("--split", default=split, show_default=True, metavar="NAME", help=folders))
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def read_set(
    path: str, options: FileOptions, *, n_features: int | None = None, learning: bool = False, need_labels: bool = True
) -> tuple[Dataset | TextDataset, TextColumns | None]:
    """A labelled set, and the columns it was read from where they are columns of texts.

    n_features : what the model has, for formats that do not say how many columns there are
    learning : say which numbers of svmlight are no label, for no row has them
    need_labels : False does without the second file of npz
    """
    _check(path)
    if options.format == "lines":
        raise DataError("plain lines have no labels; give JSONL, CSV or a set of rows", source=path)
    if path != "-" and Path(path).is_dir():
        _check_folder(Path(path))
        return load_dataset(path, "npz", split=options.split), None
    source, head = replayable(path)
    _check_array(path, head, options.format)
    format = options.format or _told(path, head)
    if options.format is None and format == "xc" and not _begins_as_xc(head):
        problem = "is plain text without tags; give tagged texts, JSONL or CSV (XC text begins with its numbers of rows"
        raise DataError(f"{problem}, features and labels)", source=path)
    columns = guess_columns(
        source, head, format=format, text=options.text, labels=options.labels, tag_delimiter=options.tag_delimiter
    )
    if columns is not None:
        more: dict[str, Any] = columns.options() | {"repeated_labels": "merge"}
        one = columns.one_label
        texts = read_one_label_rows(source, columns) if one else load_dataset(source, columns.format, **more)
        if columns.doubt and texts.n_labels >= texts.n_rows:
            problem = f"{columns.doubt}, so that every text has a tag of its own; is --tag-delimiter right?"
            raise DataError(problem, source=path)
        if columns.doubt:
            remark(f"warning: {path}: {columns.doubt}; is --tag-delimiter right?")
        return texts, columns
    more = {}
    if format in SECOND_FILE and options.labels_file is not None:
        more = {SECOND_FILE[format]: options.labels_file}
    elif format == "npz":
        more = {"need_labels": need_labels}
    elif format == "svmlight" and n_features is not None:
        more = {"n_features": n_features}
    elif format == "parquet":
        given = {"text_column": options.text, "labels_column": options.labels}
        more = {name: column for name, column in given.items() if column is not None}
    if options.id is not None:
        if format not in ID_OPTION:
            raise DataError(f"--id is for {' and '.join(ID_OPTION)}, and this is {format}", source=path)
        more[ID_OPTION[format]] = options.id
    data = load_dataset(source, format, **more)
    if format == "svmlight" and isinstance(data, Dataset) and not states_shape(head):
        data = _without_empty_labels(data, path, say=learning)
    return data, None


def dense_if_full(X: CSR) -> CSR | FloatArray:
    """X as an array where most of its cells are filled, as in embeddings: that is learned from much faster."""
    return X.toarray() if 2 * X.nnz > X.shape[0] * X.shape[1] else X


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

    Standard input, and a pipe such as <(...) of a shell, is any of them, by how it begins.
    """
    _check(path)
    if options.format == "lines" or (options.format is None and path.endswith((".txt", ".txt.gz"))):
        if options.id is not None:
            raise DataError("one text a line, without ids; --id is for JSONL and CSV", source=path)
        yield from read_text_lines(path)
        return
    source, head = replayable(io.BytesIO(Path(path).read_bytes()) if Path(path).is_fifo() else path)
    _check_array(path, head, options.format)
    if _is_stream(path) and options.format is None and options.text is None and _begins_as_lines(head):
        remark(f"{source_name(path)}: taken for one text a line (--format csv or --format jsonl overrides)")
        yield from read_text_lines(source)
        return
    format = options.format or _told(path, head)
    columns = guess_columns(source, head, format=format, text=options.text, labels=options.labels, need_labels=False)
    if columns is None:
        if not head.strip():
            raise DataError("holds no rows; is it the right file, and whole?", source=path)
        raise DataError("holds no texts; give JSONL, CSV, or one text a line (--format lines)", source=path)
    say_guess(path, columns, offered=options.offered)
    yield from read_text_rows(source, columns, other, options.id)


def text_rows(path: str, options: FileOptions) -> list[TextRow]:
    """All texts of a file, at least one."""
    rows = list(read_texts(path, options))
    if not rows:
        raise DataError("holds no texts; is it the right file, and whole?", source=source_name(path))
    return rows


def say_guess(path: str, columns: TextColumns | None, *, offered: bool = True) -> None:
    """Which columns were guessed."""
    if columns is not None and columns.guessed:
        options = "--text, --labels and --tag-delimiter override" if "tags" in columns.guessed else "--text overrides"
        name = f"standard input: guessed {columns.format.upper()}," if path == "-" else f"{path}: guessed"
        remark(f"{name} {columns.guessed}{f' ({options})' if offered else ''}")


def _told(path: str, head: bytes) -> str:
    """The format of a file, by its name or how it begins."""
    if _is_stream(path):
        return "jsonl" if head.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"{" else "csv"
    try:
        return format_of(path)
    except DataError as error:
        error.hint_value += ", lines"  # which have no tags, so that no reader of sets knows them
        raise


def _is_stream(path: str) -> bool:
    return path == "-" or Path(path).is_fifo()


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


def _check(path: str) -> None:
    if path != "-" and not Path(path).exists():
        raise NotFoundError(f"{path}: there is no such file")
