"""``streamlabel merge`` and ``threshold``: several labels become one; where a label says yes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from streamlabel._validation import check_label_names
from streamlabel.cli._model import (
    actor_option,
    did_you_mean,
    dry_run_option,
    has_texts,
    known_label,
    model_argument,
    new_label_name,
    open_store,
)
from streamlabel.cli._output import json_option, write
from streamlabel.cli.add_label import fires_lines
from streamlabel.exceptions import NotFoundError
from streamlabel.models.learn_report import fires_data
from streamlabel.models.snapshot import export_rows
from streamlabel.models.weak_answers import count_fires
from streamlabel.store.model_store import ModelStore
from streamlabel.store.records import LabelRecord

__all__ = ["merge", "threshold"]

AUTO = "auto"
HOW = {"relearned": "learned again from all their answers", "averaged": "their mean, for not all answers are kept"}


@click.command()
@model_argument
@click.argument("names", nargs=-1, required=True, metavar="FROM...")
@click.argument("into")
@actor_option
@dry_run_option
@json_option
def merge(model: Path, names: tuple[str, ...], into: str, actor: str, dry_run: bool, as_json: bool) -> None:
    """One label INTO in place of the labels FROM, and of the label INTO where there is one.

    It is learned again from all their answers where these are kept, else it is their mean, weighted by yes answers. It
    has an id of its own; rollback brings the others back.
    """
    with open_store(model, "r" if dry_run else "a", actor=actor) as store:
        known = store.label_names
        chosen = list(dict.fromkeys(known_label(known, name, model) for name in names))
        target = into if into in known else new_label_name(into, known)
        check_label_names([target], 1)
        if target in known and target not in chosen:
            chosen.append(target)
        if len(chosen) < 2:
            hint = did_you_mean(target, (name for name in known if name not in chosen)) or "rename gives another name"
            problem = "merging takes two labels" if target in known else f"no label is called {target!r}"
            raise NotFoundError(f"{model}: {problem}; {hint}")
        number = None if dry_run else store.merge(chosen, target)
        how = None if dry_run else store.history()[0].detail["how"]
    found = {"revision": number, "dry_run": dry_run, "labels": chosen, "into": target, "how": how}
    write(found, as_json=as_json, text=lambda: _merged(found))


@click.command(context_settings={"ignore_unknown_options": True})  # a threshold may be negative
@model_argument
@click.argument("label")
@click.argument("value", required=False, metavar="[VALUE|auto]")
@actor_option
@dry_run_option
@json_option
def threshold(model: Path, label: str, value: str | None, actor: str, dry_run: bool, as_json: bool) -> None:
    """Show or set the score above which LABEL is a yes; auto goes back to the one that it was learned with.

    It also says on how many of fit's texts the label fires. That helps to choose: with --dry-run nothing is changed.
    """
    wanted = _number(value)
    changes = value is not None and not dry_run
    with open_store(model, "a" if changes else "r", actor=actor) as store:
        label = known_label(store.label_names, label, model)
        record = next(one for one in store.labels() if one.name == label)
        learned = _learned(store, record)
        new = record.threshold if value is None else learned if wanted is None else wanted
        found = {"label": label, "before": record.threshold, "threshold": new, "learned": learned}
        found["fires"] = fires_data(_fires(store, label, new))
        found["revision"] = store.set_threshold(label, new) if changes else None
        unit = "text" if has_texts(store) else "row"
    found["dry_run"] = dry_run
    write(found, as_json=as_json, text=lambda: "\n".join(_shown(found, value is None, unit)))


def _number(value: str | None) -> float | None:
    """A finite number; None for auto."""
    if value is None or value == AUTO:
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise click.UsageError(f"{value!r} is no threshold; give a number, or {AUTO}")
    return number


def _learned(store: ModelStore, record: LabelRecord) -> float:
    """The threshold of the oldest revision that has the label with the same classifier."""
    for revision in reversed(store.history(record.name)):
        try:
            with open_store(store.path, revision=revision.number) as older:
                same = [one for one in older.labels() if (one.id, one.checksum) == (record.id, record.checksum)]
        except NotFoundError:  # a vacuum forgot it
            continue
        if same:
            return same[0].threshold
    return record.threshold


def _fires(store: ModelStore, label: str, value: float) -> tuple[int, int] | None:
    model = store.model()
    thresholds, number = model.thresholds_, store.label_names.index(label)
    thresholds[number] = value
    model.thresholds_ = thresholds
    return count_fires(model, number, export_rows(model))


def _merged(found: dict[str, Any]) -> str:
    names = " and ".join(map(repr, found["labels"]))
    if found["dry_run"]:
        return f"would merge {names} into {found['into']!r}\nnothing was changed (--dry-run)"
    return f"merged {names} into {found['into']!r}: {HOW[found['how']]}\non the disk as revision {found['revision']}"


def _shown(found: dict[str, Any], only_asked: bool, unit: str) -> list[str]:
    was = "" if only_asked else f", before {found['before']:.3f}"
    learned = "" if found["learned"] == found["threshold"] else f", learned with {found['learned']:.3f}"
    lines = [f"{found['label']}: yes is a score above {found['threshold']:.3f}{was}{learned}"]
    lines += fires_lines(found["fires"], unit)
    if not only_asked:
        stored = f"on the disk as revision {found['revision']}"
        lines.append("nothing was changed (--dry-run)" if found["dry_run"] else stored)
    return lines
