"""``streamlabel fit`` and ``update``: a model from a file, and known labels learned again with new texts or rows."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from streamlabel.cli.add_label import open_model
from streamlabel.cli.models import (
    actor_option,
    dry_run_option,
    known_label,
    megabytes,
    model_argument,
    new_model_path,
    say_twins,
)
from streamlabel.cli.options import FileOptions, dense_if_full, file_options, read_set, say_guess
from streamlabel.cli.output import json_option, note, plural, remark, write
from streamlabel.data.files import available_memory
from streamlabel.data.load import TextColumns
from streamlabel.data.rows import rows_of_names
from streamlabel.data.text import TextVectorizer
from streamlabel.errors import DataError
from streamlabel.stats.threads import one_thread
from streamlabel.store.history import StoreSizes
from streamlabel.store.model_store import ModelStore
from streamlabel.store.stored_rows import LEARNING
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.fit_plan import RATE, FitSize, check_fit_memory
from streamlabel.tagging.learn_report import UpdateReport
from streamlabel.tagging.tagger import Tagger
from streamlabel.tagging.vectorizers import make_vectorizer
from streamlabel.types import Dataset, TextDataset

FEWEST, SINGLE = 20, 0.9  # labels, and the share of them with one row, from which they are hardly tags


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
    "--names",
    type=click.Choice(["words", "static", "none"]),
    default="words",
    show_default=True,
    help="What reads the names of labels that are added later; static embeddings need the extra 'names'.",
)
@click.option("--max-features", type=click.IntRange(1), help="Keep so many of the most frequent words of the texts.")
@click.option("--min-df", type=click.IntRange(1), help="Leave out words that are in fewer texts than this.")
@click.option(
    "--loss",
    type=click.Choice(["squared", "logistic", "squared_hinge", "auto"]),
    default="auto",
    show_default=True,
    help="What the classifiers minimise; auto: squared now, and for labels that are added whatever suits them best."
    " logistic and squared_hinge take several times as long.",
)
@click.option(
    "--tune",
    type=click.Choice(["arrival", "fit"]),
    default="arrival",
    show_default=True,
    help="When to find out how new labels are learned best: for the first of them, which waits, or now.",
)
@click.option(
    "--keep-rows/--no-keep-rows",
    default=True,
    show_default=True,
    help="Keep what is needed to learn new labels as well as now (never the texts); it takes room.",
)
@click.option(
    "--in-blocks",
    is_flag=True,
    help="FILE, or a folder of such files, may be larger than memory (XC text, Parquet, JSONL, CSV, npz that is not "
    "compressed). No rows are kept. A run that was killed goes on where it was.",
)
@click.option(
    "--prune",
    metavar="auto|N",
    help="For very many labels: keep so many weights a label on average, or the fewest that lose next to no P@k.",
)
@click.option("--dictionary", type=click.IntRange(min=1), help="Write new labels by so many of these, not by all.")
@click.option("--shared", is_flag=True, help="Let others on this machine read the model, as the umask says.")
@click.option("--seed", type=int, default=0, show_default=True, help="For what is drawn at random.")
@actor_option
@dry_run_option
@json_option
def fit(
    model: Path, file: str, vectorizer: str, numbers: bool, names: str, max_features: int | None, min_df: int | None,
    loss: str, tune: str, keep_rows: bool, in_blocks: bool, prune: str | None, dictionary: int | None, shared: bool,
    seed: int, actor: str, dry_run: bool, as_json: bool, **arguments: Any,
) -> None:  # fmt: skip
    """Learn all labels of FILE, and store the model in the new directory MODEL.

    FILE has tagged texts (JSONL, CSV, TSV, Parquet; - for standard input) or rows of numbers with labels (svmlight,
    XC text, ARFF, JSONL, a folder of npz; .npz or .npy with --labels-file). Every label is taken as answered on every
    row. With --dry-run the file is read, and what was found is shown with the time and the memory that learning would
    take.
    """
    new_model_path(model)
    if in_blocks:
        from streamlabel.cli.in_blocks import fit_in_blocks

        if loss not in ("auto", "squared") or tune != "arrival":
            raise click.UsageError("--in-blocks learns with --loss squared, and has no rows to tune on")
        if prune is not None or dictionary is not None:
            raise click.UsageError("--in-blocks keeps all weights; leave --prune and --dictionary out")
        words = {"numbers": numbers, "max_features": max_features, "min_df": min_df}
        fit_in_blocks(
            model, file, FileOptions.of(arguments), vectorizer, names, words, seed, dry_run, as_json,
            private=not shared, actor=actor,
        )  # fmt: skip
        return
    data, columns = read_set(file, FileOptions.of(arguments), learning=True)
    say_twins(data.label_names)
    n_single = int((np.bincount(data.Y.indices, minlength=data.n_labels) == 1).sum())
    if data.n_labels >= FEWEST and n_single > SINGLE * data.n_labels:
        remark(
            f"warning: {n_single:,} of {data.n_labels:,} labels have one row each; are these tags, or ids? (--labels)"
        )
    chosen = _vectorizer(data, vectorizer, numbers, max_features, min_df)
    if prune is not None and prune != "auto" and not prune.isdecimal():
        raise click.BadParameter(f"{prune!r} is neither a number nor auto", param_hint="--prune")
    few = int(prune) if prune is not None and prune.isdecimal() else prune
    classifier = StreamingLabelClassifier(
        loss=loss, tune=tune, random_state=seed, prune=few, dictionary=dictionary or "all"
    )
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
        found |= _cost(data, chosen, loss, pruned=prune is not None)
        write(found, as_json=as_json, text=lambda: "\n".join(_would(found)))
        return
    note(f"learning {plural(data.n_labels, 'label')} from {_rows(found)} ...")
    begin = time.perf_counter()
    sizes, n_features = _learn(
        data, model, chosen, names, classifier, keep_rows=keep_rows, private=not shared, actor=actor
    )
    found |= {
        "n_features": n_features,
        "seconds": round(time.perf_counter() - begin, 3),
        "bytes": sizes.total,
        "bytes_for_learning": sizes.learning,
        "revision": 1,
    }
    write(found, as_json=as_json, text=lambda: "\n".join(_report(found)))


def _vectorizer(
    data: Dataset | TextDataset, kind: str, numbers: bool, max_features: int | None, min_df: int | None
) -> Any:
    """What turns the texts of this set into numbers, not fitted yet."""
    if max_features is None and min_df is None:
        return make_vectorizer(kind, data.n_rows).set_params(numbers=numbers)
    if isinstance(data, Dataset):
        raise click.UsageError("--max-features and --min-df are for texts, and the file has rows of numbers")
    if kind != "tfidf":
        raise click.UsageError(f"--max-features and --min-df go with --vectorizer tfidf, not with {kind}")
    given = {"max_features": max_features, "min_df": min_df, "numbers": numbers}
    usual: TextVectorizer = make_vectorizer(kind, data.n_rows)
    return usual.set_params(**{name: value for name, value in given.items() if value is not None})


def _learn(
    data: Dataset | TextDataset,
    path: Path,
    vectorizer: Any,
    names: str,
    classifier: StreamingLabelClassifier,
    **options: Any,
) -> tuple[StoreSizes, int]:
    if isinstance(data, TextDataset):
        tagger = Tagger(vectorizer, classifier, None if names == "none" else names).fit(
            data.texts, data.Y, data.label_names
        )
        tagger.save(path, **options)
        stored = ModelStore.open(path)
    else:
        classifier.fit(dense_if_full(data.X), data.Y, label_names=data.label_names)
        stored = ModelStore.create(path, classifier, **options)
    with stored as store:
        return store.sizes(), store.n_features


def _cost(data: Dataset | TextDataset, vectorizer: Any, loss: str, *, pruned: bool) -> dict[str, Any]:
    """What learning would take, reading included; DataError with a remedy if there is not so much memory."""
    X = data.X if isinstance(data, Dataset) else make_vectorizer(vectorizer, data.n_rows).fit_transform(data.texts)
    free = available_memory()
    plan = check_fit_memory(FitSize.of(X, data.Y), loss, free, pruned=pruned)
    return {
        "n_features": int(X.shape[1]),
        "road": plan.road,
        "seconds": round(time.process_time() + _slowness() * plan.seconds, 1),
        "memory": _resident() + plan.n_bytes,
        "memory_free": free,
    }


def _slowness() -> float:
    """How much longer this machine takes for a product of matrices than the one by which the times were measured."""
    rows = np.ones((1000, 1000), dtype=np.float32)
    with one_thread():
        seconds = []
        for _ in range(4):
            begin = time.process_time()
            rows @ rows
            seconds.append(time.process_time() - begin)
    return max(min(seconds) * (RATE / 2.0) / 1000**3, 0.1)  # small products have half the rate of large factors


def _resident() -> int:
    """The memory that this process has needed so far; 0 where the system does not say."""
    try:
        said = Path("/proc/self/status").read_text(encoding="utf-8").partition("VmHWM:")[2]
        return int(said.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return 0


def _columns(columns: TextColumns | None) -> dict[str, Any] | None:
    if columns is None:
        return None
    return {"text": columns.text, "labels": columns.labels, "label_columns": list(columns.label_columns)}


def _rows(found: dict[str, Any]) -> str:
    return plural(found["n_rows"], "text" if found["texts"] else "row")


def _would(found: dict[str, Any]) -> list[str]:
    return [
        f"would learn {plural(found['n_labels'], 'label')} from {_rows(found)} into {found['model']}",
        *_guessed(found),
        f"{found['n_features']:,} features; about {found['seconds']:,.0f} s on one core and "
        f"{found['memory'] / 2**30:,.1f} GiB of memory ({found['memory_free'] / 2**30:,.1f} GiB more is free)",
    ]


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


SHOWN = 5


@click.command()
@model_argument
@click.argument("file")
@click.option("--label", "only", metavar="NAME", multiple=True, help="Only this label; may be given again.")
@file_options()
@actor_option
@dry_run_option
@json_option
def update(
    model: Path, file: str, only: tuple[str, ...], actor: str, dry_run: bool, as_json: bool, **arguments: Any
) -> None:
    """Learn labels of MODEL again, from what it was fitted on and from FILE: new texts, or rows, with known labels.

    They become what 'streamlabel fit' on both files gives, with the vocabulary and the strength of the first. Labels
    that FILE does not have, or that --label does not name, stay as they are to the last bit; --label counts as answered
    on every row of FILE. Labels that were added after fit get answers from 'streamlabel add-label --more'.
    """
    options = FileOptions.of(arguments)
    store, tagger = open_model(model, "a", actor=actor)
    with store:
        wanted = [known_label(store.label_names, name, model) for name in only] or None
        data, columns = read_set(file, options, n_features=store.n_features)
        if tagger is None:
            report = _update_rows(store, data, wanted, dry_run=dry_run)
        elif isinstance(data, TextDataset):
            say_guess(file, columns)
            learner = tagger.in_memory() if dry_run else tagger
            report = learner.update(data.texts, list(rows_of_names(data.Y, data.label_names)), wanted)
        else:
            raise DataError("holds rows of numbers, and the model takes texts", source=file)
        found = {**asdict(report), "dry_run": dry_run, "revision": None if dry_run else store.revision}
    write(found, as_json=as_json, text=lambda: "\n".join(_lines(found, "row" if tagger is None else "text")))


def _update_rows(
    store: ModelStore, data: Dataset | TextDataset, wanted: list[str] | None, *, dry_run: bool
) -> UpdateReport:
    if isinstance(data, TextDataset):
        raise DataError("holds texts, and the model takes rows of numbers", source=data.source)
    begin = time.perf_counter()
    model = store.model()
    state, names = model.state_, list(data.label_names)
    fitted = [name for name in names if name in state.names and state.names.number(name) < state.n_fitted]
    chosen = fitted if wanted is None else wanted
    missing = [name for name in chosen if name not in names]
    if missing or not chosen:
        problem = f"has no label {missing[0]!r}" if missing else "has no label that the model was fitted on"
        raise DataError(problem, source=data.source)
    answers = data.Y[:, [names.index(name) for name in chosen]]
    kept_dense = LEARNING in store.parts() and not store.get_part(LEARNING).content["sparse"]
    X = data.X.toarray() if kept_dense else data.X
    if dry_run:
        model.learn_update(X, answers, chosen)
    else:
        store.update(X, answers, chosen)
    left = [name for name in names if name not in fitted]
    n_fit = 0 if state.memory is None else int(state.memory.X.shape[0])
    return UpdateReport(
        tuple(chosen), n_fit, data.n_rows, 0,
        tuple(name for name in left if name in state.names), tuple(name for name in left if name not in state.names),
        time.perf_counter() - begin,
    )  # fmt: skip


def _lines(found: dict[str, Any], unit: str) -> list[str]:
    did = "would learn" if found["dry_run"] else "learned"
    where = "" if found["dry_run"] else f"; on the disk as revision {found['revision']}"
    lines = [
        f"{did} {plural(len(found['labels']), 'label')} again from {plural(found['n_fit'], unit)} of fit and "
        f"{found['n_new']:,} new {'one' if found['n_new'] == 1 else 'ones'} in {found['seconds']:.2f} s{where}"
    ]
    if found["n_known"]:
        lines.append(f"{plural(found['n_known'], unit)} that fit or an earlier update had, left out")
    if found["later"]:
        lines.append(f"added after fit, and left as they are: {_some(found['later'])} (add-label --more)")
    if found["unknown"]:
        lines.append(f"not known to the model: {_some(found['unknown'])} (add-label)")
    return lines


def _some(names: tuple[str, ...]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
