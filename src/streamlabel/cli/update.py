"""``streamlabel update``: known labels, learned again with new texts or rows."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from streamlabel.cli.add_label import open_model
from streamlabel.cli.models import actor_option, dry_run_option, known_label, model_argument
from streamlabel.cli.options import FileOptions, file_options, read_set, say_guess
from streamlabel.cli.output import json_option, plural, write
from streamlabel.data.rows import rows_of_names
from streamlabel.errors import DataError
from streamlabel.store.model_store import ModelStore
from streamlabel.store.stored_rows import LEARNING
from streamlabel.tagging.learn_report import UpdateReport
from streamlabel.types import Dataset, TextDataset

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
