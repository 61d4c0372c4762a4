"""A fitted model into a new directory: written aside, and put in its place when it is whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from streamlabel._version import __version__
from streamlabel.exceptions import ConflictError, DataError
from streamlabel.models.snapshot import export_facts, export_labels, export_rows
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.store.append import insert_labels
from streamlabel.store.assemble import meta_of
from streamlabel.store.catalogue import create_catalogue
from streamlabel.store.files import sync_directory
from streamlabel.store.learning import LEARNING, TRIALS, encode_rows, encode_trials
from streamlabel.store.parts import Part
from streamlabel.store.writer import Change, StoreWriter

__all__ = ["write_model"]

CHUNK = 64


def write_model(
    path: Path, model: StreamingLabelClassifier, *, keep_rows: bool, parts: Mapping[str, Part], actor: str
) -> None:
    """The directory appears whole, or not at all."""
    facts = export_facts(model)
    if path.exists() or path.is_symlink():
        raise ConflictError(f"{path} is there already; ModelStore.open(path, 'a') goes on with a stored model")
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        create_catalogue(aside)
        writer = StoreWriter(aside, facts.n_features, actor)
        try:
            with writer.change("create", {"labels": len(model.label_names_), "version": __version__}) as change:
                for key, value in {**meta_of(facts), "oldest": 1}.items():
                    change.connection.execute("INSERT INTO meta VALUES (?, ?)", (key, json.dumps(value)))
                _write_labels(change, model, keep_rows=keep_rows)
                for name, part in parts.items():
                    change.part(name, part)
        finally:
            writer.close()
        sync_directory(aside)
        os.rename(aside, path)
        sync_directory(path.parent)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", source=path) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_labels(change: Change, model: StreamingLabelClassifier, *, keep_rows: bool) -> None:
    rows = export_rows(model) if keep_rows else None
    n_labels, n_fitted = len(model.label_names_), model._n_fitted
    ids = np.arange(1, n_labels + 1)
    origin = "adopted" if model._memory is None else "fit"
    starts = sorted({*range(0, n_fitted, CHUNK), *range(n_fitted, n_labels, CHUNK), n_labels})
    for start, stop in pairwise(starts):
        fitted = start < n_fitted
        states = export_labels(model, start, stop, answers=not fitted and rows is not None)
        everywhere = fitted and origin == "fit"
        unasked = [0 if everywhere or positives is not None else None for positives in states.positives]
        insert_labels(
            change, states, ids[:start], origin=origin if fitted else "added", unasked=unasked, keep=rows is not None
        )
    if rows is not None:
        change.part(LEARNING, encode_rows(rows, ids[:n_fitted]))
        change.part(TRIALS, encode_trials(rows.trials, n_fitted))
