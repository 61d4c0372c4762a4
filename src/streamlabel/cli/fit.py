"""``streamlabel fit``: a model from a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from streamlabel.cli.models import actor_option, dry_run_option, megabytes, model_argument, new_model_path, say_twins
from streamlabel.cli.options import FileOptions, dense_if_full, file_options, read_set
from streamlabel.cli.output import json_option, note, plural, write
from streamlabel.data.load import TextColumns
from streamlabel.store.history import StoreSizes
from streamlabel.store.model_store import ModelStore
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.tagging.tagger import Tagger
from streamlabel.tagging.vectorizers import make_vectorizer
from streamlabel.types import Dataset, TextDataset


@click.command()
@model_argument
@click.argument("file")
@file_options()
@click.option(
    "--vectorizer",
    type=click.Choice(["tfidf", "hashing"]),
    default="tfidf",
    show_default=True,
    help="How texts become numbers.",
)
@click.option("--numbers", is_flag=True, help="Words that begin with a digit, such as 2009, count, too.")
@click.option(
    "--keep-rows/--no-keep-rows",
    default=True,
    show_default=True,
    help="Keep what is needed to learn new labels as well as now (never the texts); it takes room.",
)
@click.option("--shared", is_flag=True, help="Let others on this machine read the model, as the umask says.")
@click.option("--seed", type=int, default=0, show_default=True, help="For what is drawn at random.")
@actor_option
@dry_run_option
@json_option
def fit(
    model: Path, file: str, vectorizer: str, numbers: bool, keep_rows: bool, shared: bool, seed: int, actor: str, dry_run: bool,
    as_json: bool, **arguments: Any,
) -> None:  # fmt: skip
    """Learn all labels of FILE, and store the model in the new directory MODEL.

    FILE has tagged texts (JSONL, CSV, TSV, Parquet; - for standard input) or rows of numbers with labels (svmlight,
    XC text, ARFF, JSONL, a folder of npz; .npz or .npy with --labels-file). Every label is taken as answered on every
    row. With --dry-run the file is read and what was found is shown.
    """
    new_model_path(model)
    data, columns = read_set(file, FileOptions.of(arguments), learning=True)
    say_twins(data.label_names)
    found: dict[str, Any] = {
        "model": str(model),
        "texts": isinstance(data, TextDataset),
        "n_rows": data.n_rows,
        "n_labels": data.n_labels,
        "guessed": "" if columns is None else columns.guessed,
        "columns": _columns(columns),
        "dry_run": dry_run,
    }
    if dry_run:
        write(found, as_json=as_json, text=lambda: "\n".join(_would(found)))
        return
    note(f"learning {plural(data.n_labels, 'label')} from {_rows(found)} ...")
    begin = time.perf_counter()
    sizes, n_features = _learn(
        data, model, (vectorizer, numbers), seed, keep_rows=keep_rows, private=not shared, actor=actor
    )
    found |= {
        "n_features": n_features,
        "seconds": round(time.perf_counter() - begin, 3),
        "bytes": sizes.total,
        "bytes_for_learning": sizes.learning,
        "revision": 1,
    }
    write(found, as_json=as_json, text=lambda: "\n".join(_report(found)))


def _learn(
    data: Dataset | TextDataset, path: Path, words: tuple[str, bool], seed: int, **options: Any
) -> tuple[StoreSizes, int]:
    classifier = StreamingLabelClassifier(random_state=seed)
    if isinstance(data, TextDataset):
        vectorizer = make_vectorizer(words[0], data.n_rows).set_params(numbers=words[1])
        tagger = Tagger(vectorizer, classifier).fit(data.texts, data.Y, data.label_names)
        tagger.save(path, **options)
        stored = ModelStore.open(path)
    else:
        classifier.fit(dense_if_full(data.X), data.Y, label_names=data.label_names)
        stored = ModelStore.create(path, classifier, **options)
    with stored as store:
        return store.sizes(), store.n_features


def _columns(columns: TextColumns | None) -> dict[str, Any] | None:
    if columns is None:
        return None
    return {"text": columns.text, "labels": columns.labels, "label_columns": list(columns.label_columns)}


def _rows(found: dict[str, Any]) -> str:
    return plural(found["n_rows"], "text" if found["texts"] else "row")


def _would(found: dict[str, Any]) -> list[str]:
    lines = [f"would learn {plural(found['n_labels'], 'label')} from {_rows(found)} into {found['model']}"]
    return lines + _guessed(found)


def _report(found: dict[str, Any]) -> list[str]:
    return [
        f"learned {plural(found['n_labels'], 'label')} from {_rows(found)} in {found['seconds']:.1f} s: "
        f"{found['model']}, revision 1",
        *_guessed(found),
        f"{found['n_features']:,} features; {megabytes(found['bytes'])} on the disk, "
        f"{megabytes(found['bytes_for_learning'])} of it to go on learning",
    ]


def _guessed(found: dict[str, Any]) -> list[str]:
    return [f"guessed: {found['guessed']} (--text, --labels and --tag-delimiter override)"] if found["guessed"] else []
