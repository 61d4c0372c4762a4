"""``streamlabel stats make|merge|show|fit``: sums over rows, made in parts, added, and learned from."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy import sparse

from streamlabel.cli.models import actor_option, dry_run_option, megabytes, model_argument, new_model_path
from streamlabel.cli.options import FileOptions, Spread, dask_option, file_options, on_cluster, read_set
from streamlabel.cli.output import format_table, json_option, note, plural, progress_bar, write
from streamlabel.data.load import read_text_lines
from streamlabel.errors import ClusterError, ConflictError, DataError, NotFoundError
from streamlabel.stats.sums import Stats
from streamlabel.store.model_store import ModelStore
from streamlabel.store.sums_file import read_stats, write_stats
from streamlabel.streaming.from_stats import classifier_from_stats
from streamlabel.types import Dataset, TextDataset
from streamlabel.validation import check_label_names

PART = re.compile(r"[0-9a-f]{20}\.npz")  # the sums of one file, until all are there
NUMBERED = re.compile(r"label_[0-9]+")
_out_option = click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The .npz file to write."
)
_unknown_option = click.option(
    "--unknown",
    is_flag=True,
    help="A label that a part does not name was not asked there; else all must name the same.",
)


@click.group()
def stats() -> None:
    """Sums over rows: make them in parts, anywhere; add them; learn a model from them.

    A file of sums has counts and products of rows, not the rows: its size does not depend on how many there were.
    """


@stats.command("make")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@_out_option
@file_options()
@click.option("--n-features", type=click.IntRange(min=1), help="How many, for svmlight, which does not say.")
@click.option(
    "--label-names",
    metavar="FILE",
    help="All labels that were asked, one a line: the same in every part, also where one does not occur. Those of "
    "svmlight and XC text are called label_0, label_1, ... by their numbers.",
)
@_unknown_option
@dask_option
@dry_run_option
@json_option
def make(
    files: tuple[str, ...],
    out: Path,
    n_features: int | None,
    label_names: str | None,
    unknown: bool,
    dask: str | None,
    dry_run: bool,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Sum the rows of FILE...: rows of numbers with labels (svmlight, XC text, ARFF, JSONL, a folder of npz).

    Every label of a file is taken as answered on every row of it. Several files are parts of one set and are added in
    the order in which they are given: they must have the same features and labels. The sums of each are kept in a
    folder beside the output until all are there, so that the same command again sums only what is missing.

    With --dask the files are read and summed by workers, which must see them under the same names.
    """
    _check_out(out)
    _check_different([Path(file) for file in files])
    names = None if label_names is None else [row.text for row in read_text_lines(label_names)]
    work = partial(_file_sums, FileOptions.of(arguments), n_features, names, label_names)
    with on_cluster(dask) as spread:
        if len(files) == 1 and dask is None:
            _write_sums(work(files[0]), out, list(files), dry_run=dry_run, as_json=as_json)
            return
        folder = None if dry_run else out.with_suffix(".parts")
        sums = _sums_of_parts(work, files, folder, unknown, spread)
    _write_sums(sums, out, list(files), dry_run=dry_run, as_json=as_json)
    with suppress(OSError):  # somebody may have put other files there
        if folder is not None:
            for part in filter(lambda part: PART.fullmatch(part.name), folder.iterdir()):
                part.unlink()
            folder.rmdir()


def _file_sums(
    options: FileOptions, n_features: int | None, names: list[str] | None, names_file: str | None, file: str
) -> Stats:
    data, _ = read_set(file, options, n_features=n_features, learning=names is None)
    if isinstance(data, TextDataset):
        raise DataError("holds texts; sums need rows of numbers, which one vectoriser made of all parts", source=file)
    if n_features is not None and data.n_features != n_features:
        raise DataError(f"{data.n_features} features, and --n-features is {n_features}", source=file)
    if names is not None:
        data = _with_labels(data, names, str(names_file))
    try:
        return Stats.from_batch(data.X, data.Y, data.label_names, data.feature_names)
    except DataError as error:
        raise DataError(error.problem, source=file) from error


def _sums_of_parts(
    work: partial[Stats], files: Sequence[str], folder: Path | None, unknown: bool, spread: Spread
) -> Stats:
    """The sums of all files; those of each are in the folder as soon as they are there, and not made again."""
    paths = [Path(file).resolve() for file in files]
    parts = [None if folder is None else folder / _part_name(path, work) for path in paths]
    if folder is not None:
        folder.mkdir(exist_ok=True)
    done = [part is not None and part.exists() for part in parts]
    if any(done):
        note(f"{sum(done)} of {plural(len(files), 'file')} summed before, in {folder}")
    fresh = iter(spread(work, [str(path) for path, is_there in zip(paths, done, strict=True) if not is_there]))
    merged: Stats | None = None
    with progress_bar("summing") as progress:
        for number, (file, part, is_there) in enumerate(zip(files, parts, done, strict=True), start=1):
            try:
                sums = read_stats(part) if is_there and part is not None else next(fresh)
            except ClusterError as error:
                kept = f"; {number - 1} of {len(files)} files are summed and kept in {folder}" if folder else ""
                raise ClusterError(f"{error}{kept}") from error
            if part is not None and not is_there:
                write_stats(sums, part)
            merged = sums if merged is None else _added(merged, sums, unknown, files[0], file)
            progress(number, len(files))
    assert merged is not None
    return merged


def _part_name(path: Path, work: partial[Stats]) -> str:
    """A name for the sums of a file as it is now, read in this way."""
    if not path.exists():
        raise NotFoundError(f"{path}: there is no such file")
    found = path.stat()
    said = f"{path} {found.st_size} {found.st_mtime_ns} {work.args}"
    return f"{hashlib.sha256(said.encode()).hexdigest()[:20]}.npz"


def _added(one: Stats, other: Stats, unknown: bool, first: object, source: object) -> Stats:
    try:
        return one.joined(other) if unknown else one + other
    except DataError as error:
        raise DataError(f"{error.problem} (the other side: {first})", source=source) from error


@stats.command("merge")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@_out_option
@_unknown_option
@dry_run_option
@json_option
def merge(files: tuple[Path, ...], out: Path, unknown: bool, dry_run: bool, as_json: bool) -> None:
    """Add the sums in FILE... and write them to another file.

    The parts must have the same features and the same labels; labels may come in another order. With --unknown they
    may have different labels, and each is learned from the parts in which it was asked. With --dry-run the
    files are read and added, and nothing is written.
    """
    _check_out(out)
    _check_different(files)
    merged: Stats | None = None
    with progress_bar("adding") as progress:
        for done, path in enumerate(files, start=1):
            part = read_stats(path)
            merged = part if merged is None else _added(merged, part, unknown, files[0], path)
            progress(done, len(files))
    assert merged is not None
    _write_sums(merged, out, [str(path) for path in files], dry_run=dry_run, as_json=as_json)


@stats.command("show")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-k", type=click.IntRange(min=0), default=10, show_default=True, help="So many labels, frequent first.")
@json_option
def show(file: Path, k: int, as_json: bool) -> None:
    """Show what the sums in FILE are over."""
    sums = read_stats(file)
    counts = sums.label_counts
    best = np.argsort(-counts, kind="stable")[:k]
    asked = sums.asked_rows
    labels = [{"label": _name(sums, int(j)), "n_yes": int(counts[j]), "n_asked": int(asked[j])} for j in best]
    found = _facts(sums) | {"file": str(file), "bytes": file.stat().st_size, "labels": labels}
    write(found, as_json=as_json, text=lambda: "\n".join(_shown(found)))


@stats.command("fit")
@model_argument
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--beta", type=click.FloatRange(min=0.0, min_open=True), help="The ridge strength; by default chosen.")
@actor_option
@dry_run_option
@json_option
def fit(model: Path, file: Path, beta: float | None, actor: str, dry_run: bool, as_json: bool) -> None:
    """Learn all labels from the sums in FILE, and store the model in the new directory MODEL.

    The classifiers are those that 'streamlabel fit' learns from the rows. The rows are not there, so new labels are
    learned from rows of their own.
    """
    new_model_path(model)
    sums = read_stats(file)
    found = _facts(sums) | {"file": str(file), "model": str(model), "dry_run": dry_run}
    learned = f"{plural(sums.n_labels, 'label')} from the sums of {plural(sums.n_rows, 'row')}"
    if dry_run:
        write(found, as_json=as_json, text=lambda: f"would learn {learned} into {model}")
        return
    note(f"learning {plural(sums.n_labels, 'label')} ...")
    begin = time.perf_counter()
    classifier = classifier_from_stats(sums, "auto" if beta is None else beta)
    ModelStore.create(model, classifier, actor=actor).close()
    found |= {"beta": classifier.beta_, "seconds": round(time.perf_counter() - begin, 3), "revision": 1}
    line = f"learned {learned} in {found['seconds']:.1f} s, beta {classifier.beta_:.4g}: {model}, revision 1"
    write(found, as_json=as_json, text=lambda: line)


def _check_out(out: Path) -> None:
    """Found before the work is done."""
    if out.exists() or out.is_symlink():
        raise ConflictError(f"{out} is there already; choose another name, or remove it")
    if out.suffix != ".npz":
        raise click.UsageError(f"{out}: sums are written to a file whose name ends in .npz")
    if not out.parent.is_dir():
        raise NotFoundError(f"{out.parent}: there is no such directory; make it first")


def _check_different(files: Sequence[Path]) -> None:
    seen: set[Path] = set()
    for path in files:
        place = path.resolve()
        if place in seen:
            raise click.UsageError(f"{path} is given twice; its rows would count twice")
        seen.add(place)


def _with_labels(data: Dataset, names: list[str], source: str) -> Dataset:
    """The set with these labels; those that it does not have are no on every row."""
    try:
        checked = check_label_names(names, len(names))
    except DataError as error:
        raise DataError(error.problem, source=source) from error
    places = {name: place for place, name in enumerate(checked)}
    unknown = [name for name in data.label_names if name not in places]
    if unknown:
        more = "" if len(unknown) == 1 else f" and {len(unknown) - 1} more"
        called = "; labels that the file only numbers are called so" if NUMBERED.fullmatch(unknown[0]) else ""
        problem = f"no line {unknown[0]!r}{more}, and {data.source} has rows with it; name all{called}"
        raise DataError(problem, source=source)
    cells = data.Y.tocoo()
    columns = np.array([places[name] for name in data.label_names], dtype=np.int64)[cells.col]
    Y = sparse.csr_array((cells.data, (cells.row, columns)), shape=(data.n_rows, len(checked)))
    return Dataset(data.X, Y, checked, data.feature_names, source=data.source)


def _write_sums(sums: Stats, out: Path, files: list[str], *, dry_run: bool, as_json: bool) -> None:
    if not dry_run:
        write_stats(sums, out)
    found = _facts(sums) | {"files": files, "out": str(out), "dry_run": dry_run}
    size = "" if dry_run else f", {megabytes(out.stat().st_size)}"
    did = "would write" if dry_run else "wrote"
    write(found, as_json=as_json, text=lambda: f"{did} {out}: {_summary(found)}{size}")


def _facts(sums: Stats) -> dict[str, Any]:
    return {"n_rows": sums.n_rows, "n_features": sums.n_features, "n_labels": sums.n_labels}


def _summary(found: dict[str, Any]) -> str:
    return ", ".join(plural(found[f"n_{word}s"], word) for word in ("row", "feature", "label"))


def _name(sums: Stats, label: int) -> str:
    return f"label_{label}" if sums.label_names is None else sums.label_names[label]


def _shown(found: dict[str, Any]) -> list[str]:
    lines = [f"{found['file']}: {_summary(found)}, {megabytes(found['bytes'])}"]
    rows = [[one["label"], f"{one['n_yes']:,}", f"{one['n_asked']:,}"] for one in found["labels"]]
    return [*lines, format_table(["label", "yes", "asked"], rows, right=(1, 2))] if rows else lines
