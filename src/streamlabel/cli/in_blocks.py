"""``--in-blocks`` of ``fit`` and ``predict``, and ``streamlabel add-all``: files that are larger than memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from streamlabel.cli.models import (
    actor_option,
    dry_run_option,
    has_texts,
    megabytes,
    model_argument,
    open_store,
    stored_vectorizer,
)
from streamlabel.cli.options import FileOptions, file_options
from streamlabel.cli.output import json_option, plural, progress_bar, remark, write
from streamlabel.data.text import TextVectorizer
from streamlabel.errors import DataError
from streamlabel.scale.out_of_core import add_labels_from_files, check_sums, fit_files, labels_to_add
from streamlabel.scale.row_files import RowFiles
from streamlabel.store.model_store import ModelStore
from streamlabel.tagging.tagger import Tagger
from streamlabel.tagging.vectorizers import HashedTextVectorizer

MOST_WORDS = 4_096  # columns of texts, unless others are asked for: the sums over them take 128 MB


def fit_in_blocks(
    model: Path, file: str, options: FileOptions, vectorizer: str, names: str, words: dict[str, Any], seed: int,
    dry_run: bool, as_json: bool, **stored: Any,
) -> None:  # fmt: skip
    """Learn all labels of files in blocks, and store the model; the checkpoint lies beside it."""
    source, begin = source_of(file, options), time.perf_counter()
    if source.has_texts:
        source.vectorizer = _vectorizer(source, vectorizer, words)
    with progress_bar("reading labels", unit="bytes") as progress:
        source.scan(progress=progress)
    check_sums(source.n_features, len(source.label_names or ()))
    found = _facts(source) | {"model": str(model), "dry_run": dry_run}
    if dry_run:
        write(found, as_json=as_json, text=lambda: f"would learn {_learned(found)} in blocks into {model}")
        return
    with progress_bar("summing", unit="bytes") as progress:
        kept = _unfinished(model)
        classifier = fit_files(source, checkpoint=kept, progress=progress, keep=True, random_state=seed)
    if source.has_texts:
        reader = None if names == "none" else names
        Tagger.from_parts(source.vectorizer, classifier, names=reader).save(model, **stored)
    else:
        ModelStore.create(model, classifier, **stored).close()
    kept.unlink(missing_ok=True)
    found |= {"beta": classifier.beta_, "seconds": round(time.perf_counter() - begin, 3), "revision": 1}
    line = f"learned {_learned(found)} in {found['seconds']:.1f} s, beta {classifier.beta_:.4g}: {model}, revision 1"
    write(found, as_json=as_json, text=lambda: line)


@click.command("add-all")
@model_argument
@click.argument("file")
@file_options()
@click.option("--label", "only", metavar="NAME", multiple=True, help="Only this label; may be given again.")
@actor_option
@dry_run_option
@json_option
def add_all(
    model: Path, file: str, only: tuple[str, ...], actor: str, dry_run: bool, as_json: bool, **arguments: Any
) -> None:
    """Learn all labels of FILE that MODEL does not know, in blocks: FILE, or a folder of such files, may be larger than
    memory (XC text, Parquet, JSONL, CSV, npz that is not compressed).

    First the label data is read, by which the new labels are written as combinations of those that are known, then the
    feature data. Every label is taken as answered on every row. Labels that are known stay as they are, to the last
    bit. A run that was killed goes on where it was when it is started again.
    """
    options, begin = FileOptions.of(arguments), time.perf_counter()
    with open_store(model, dry_run=dry_run, actor=actor) as store:
        source = source_of(file, options, store)
        with progress_bar("reading labels", unit="bytes") as progress:
            source.scan(progress=progress)
        wanted = labels_to_add(set(store.label_names), source, only or None)
        found = _facts(source) | {"model": str(model), "labels": wanted, "n_labels": len(wanted), "dry_run": dry_run}
        if not dry_run:
            with progress_bar("summing", unit="bytes") as progress:
                kept, old = _unfinished(model), store.model()
                grown = add_labels_from_files(old, source, wanted, checkpoint=kept, progress=progress, keep=True)
            found |= {"revision": store.append(grown), "seconds": round(time.perf_counter() - begin, 3)}
            kept.unlink(missing_ok=True)
    did = "would learn" if dry_run else "learned"
    where = "" if dry_run else f" in {found['seconds']:.1f} s; on the disk as revision {found['revision']}"
    write(found, as_json=as_json, text=lambda: f"{did} {_learned(found)}{where}")


def source_of(file: str, options: FileOptions, store: ModelStore | None = None) -> RowFiles:
    """The rows of a file or folder, for a model; texts become rows as its vectoriser says."""
    source = RowFiles(
        file, options.format, labels_file=options.labels_file, split=options.split, text=options.text,
        labels=options.labels, tag_delimiter=options.tag_delimiter,
    )  # fmt: skip
    if store is not None and source.has_texts != has_texts(store):
        holds, takes = ("texts", "rows of numbers") if source.has_texts else ("rows of numbers", "texts")
        raise DataError(f"holds {holds}, and the model takes {takes}", source=file)
    if store is not None and source.has_texts:
        source.vectorizer = stored_vectorizer(store)
    return source


def _vectorizer(source: RowFiles, kind: str, words: dict[str, Any]) -> Any:
    """What turns texts into numbers, fitted on texts from everywhere in the files."""
    numbers = words.pop("numbers")
    if kind == "hashing":
        return HashedTextVectorizer(n_columns=MOST_WORDS, numbers=numbers).fit(source.texts())
    given = {name: value for name, value in words.items() if value is not None}
    return TextVectorizer(**{"max_features": MOST_WORDS, **given}, numbers=numbers).fit(source.texts())


def _unfinished(model: Path) -> Path:
    path = model.with_name(f"{model.name}.unfinished.npz")
    if path.exists():
        remark(f"going on from {path}")
    return path


def _facts(source: RowFiles) -> dict[str, Any]:
    return {
        "files": len(source.files), "bytes": source.n_bytes, "texts": source.has_texts, "n_rows": source.n_rows,
        "n_features": source.n_features, "n_labels": len(source.label_names or ()), "pieces": len(source.pieces),
    }  # fmt: skip


def _learned(found: dict[str, Any]) -> str:
    rows = plural(found["n_rows"], "text" if found["texts"] else "row")
    return f"{plural(found['n_labels'], 'label')} from {rows}, {megabytes(found['bytes'])},"
