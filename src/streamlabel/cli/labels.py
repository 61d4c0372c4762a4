"""``streamlabel labels``, ``relations``, ``merge``, ``threshold``: what a model knows, and adjusting it."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import click

from streamlabel.cli.models import (
    actor_option,
    dry_run_option,
    has_texts,
    known_label,
    megabytes,
    model_argument,
    new_label_name,
    open_store,
)
from streamlabel.cli.output import estimate_lines, fires_lines, format_table, json_option, plural, write
from streamlabel.errors import NotFoundError, did_you_mean
from streamlabel.store.history import LabelRecord
from streamlabel.store.stored_model import StoredModel
from streamlabel.streaming.calibration import estimate_data
from streamlabel.validation import check_label_names

SORTS = {"arrival": lambda record: record.id, "name": lambda record: record.name.casefold(),
         "yes": lambda record: -record.n_yes}  # fmt: skip


@click.command()
@model_argument
@click.argument("label", required=False)
@click.option("--match", default="", metavar="TEXT", help="Only labels with this in their name.")
@click.option("--sort", type=click.Choice(list(SORTS)), default="arrival", show_default=True, help="Their order.")
@click.option("--revision", type=int, help="Of an older revision.")
@json_option
def labels(model: Path, label: str | None, match: str, sort: str, revision: int | None, as_json: bool) -> None:
    """The labels of MODEL: ids, answers they were learned from, thresholds, where they came from; or one LABEL.

    Texts that were only taken for no (see add-label) count as no. Where a label was learned from found examples, the
    precision and the recall that are expected of it stand there, too; for one LABEL in words.
    """
    with StoredModel.read(model, revision=revision) as store:
        records, sizes, number = store.labels(), store.sizes(), store.revision
        wanted = None if label is None else known_label(store.label_names, label, model)
        chosen = [one for one in records if wanted in (None, one.name) and match.casefold() in one.name.casefold()]
        beside = _beside(store, {one.name for one in chosen})
    chosen.sort(key=SORTS[sort])
    data = {
        "revision": number,
        "n_labels": len(records),
        "bytes": {**dataclasses.asdict(sizes), "total": sizes.total},
        "labels": [
            dataclasses.asdict(record) | {"estimate": estimate_data(beside.get(record.name, {}).get("estimate"))}
            for record in chosen
        ],
    }
    if wanted is not None:
        return write(data, as_json=as_json, text=lambda: _card(data["labels"][0], beside.get(wanted, {})))
    estimates = [one["estimate"] for one in data["labels"]]
    rows = [
        [
            str(record.id), record.name, str(record.n_yes), str(record.n_no),
            "-" if record.n_unasked is None else str(record.n_unasked), f"{record.threshold:.3f}", record.origin,
            "yes" if record.anchored or record.share else "", str(record.born), record.born_at[:10],
            *([_share(estimate, "precision"), _share(estimate, "recall")] if any(estimates) else []),
        ]
        for record, estimate in zip(chosen, estimates, strict=True)
    ]  # fmt: skip
    header = ["id", "label", "yes", "no", "not asked", "threshold", "from", "used past", "revision", "born"]
    header += ["precision", "recall"] if any(estimates) else []
    size = f"{megabytes(sizes.total)} on the disk, {megabytes(sizes.learning)} of it to go on learning"
    last = f"{plural(len(chosen), 'label')}, revision {number}, {size}"
    write(data, as_json=as_json, text=lambda: f"{format_table(header, rows, right=(0, 2, 3, 4, 5, 8, 10, 11))}\n{last}")


def _beside(store: StoredModel, names: set[str]) -> dict[str, dict[str, Any]]:
    """What is kept beside some labels (`tagging.examples`), as it is stored."""
    numbers = {number: store.label_names[number] for number in store.with_something_beside()}
    found = {name: store.beside(number) for number, name in numbers.items() if name in names}
    return {name: content for name, content in found.items() if isinstance(content, dict)}


def _share(estimate: dict[str, Any] | None, measure: str) -> str:
    return "" if estimate is None or estimate[measure] is None else f"{estimate[measure]['value']:.0%}"


def _card(one: dict[str, Any], beside: dict[str, Any]) -> str:
    """One label in words."""
    said, asked = beside.get("answers", []), beside.get("asked", [])
    given = f"{one['n_yes']:,} yes and {one['n_no']:,} no"
    if said:
        given = f"{sum(said)} yes and {len(said) - sum(said)} no, {plural(sum(asked), 'answer')} of these to questions"
    lines = [
        f"{one['name']}: id {one['id']}, {one['origin']}, since revision {one['born']} ({one['born_at'][:10]})",
        *([beside["about"]] if beside.get("about") else []),
        f"learned from {given}; yes is a score above {one['threshold']:.3f}",
    ]
    return "\n".join([*lines, *estimate_lines(one["estimate"])])


@click.command()
@model_argument
@click.argument("label", required=False)
@click.option("-k", type=click.IntRange(min=1), default=5, show_default=True, help="At most so many a label.")
@json_option
def relations(model: Path, label: str | None, k: int, as_json: bool) -> None:
    """Which labels a label was learned to resemble, with signed weights; for LABEL, also who resembles it.

    Labels of fit resemble none: they were learned from all rows, without the help of others.
    """
    with StoredModel.read(model) as store:
        names = store.label_names
        wanted = None if label is None else known_label(names, label, model)
        classifier = store.model(learning=False)
    chosen = names if wanted is None else (wanted,)
    pairs = [(name, near, weight) for name in chosen for near, weight in classifier.neighbours(name, k)]
    data: dict[str, Any] = {"relations": _pairs(pairs)}
    if wanted is not None:
        number = names.index(wanted)
        row = classifier.structure_.tocsr()[[number], :].tocoo()
        back = [(names[int(j)], wanted, float(weight)) for j, weight in zip(row.col, row.data, strict=True)]
        data["resembled_by"] = _pairs(sorted(back, key=lambda pair: -abs(pair[2]))[:k])
    write(data, as_json=as_json, text=lambda: _text(data, wanted))


def _pairs(pairs: list[tuple[str, str, float]]) -> list[dict[str, Any]]:
    return [{"label": label, "resembles": near, "weight": weight} for label, near, weight in pairs]


def _text(data: dict[str, Any], wanted: str | None) -> str:
    found = data["relations"] + data.get("resembled_by", [])
    if not found:
        return "no relation" if wanted is None else f"{wanted!r} resembles no label, and none resembles it"
    rows = [
        [pair["label"], "resembles" if pair["weight"] > 0 else "is unlike", pair["resembles"], f"{pair['weight']:+.3f}"]
        for pair in found
    ]
    return format_table(["label", "", "label", "weight"], rows, right=(3,))


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
    with open_store(model, dry_run=dry_run, actor=actor) as store:
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
    with open_store(model, dry_run=not changes, actor=actor) as store:
        label = known_label(store.label_names, label, model)
        record = next(one for one in store.labels() if one.name == label)
        learned = _learned(store, record)
        new = record.threshold if value is None else learned if wanted is None else wanted
        found = {"label": label, "before": record.threshold, "threshold": new, "learned": learned}
        found["fires"] = _fires(store, label, new)
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


def _learned(store: StoredModel, record: LabelRecord) -> float:
    """The threshold of the oldest revision that has the label with the same classifier."""
    for revision in reversed(store.history(record.name)):
        try:
            older = store.labels(revision.number)
        except NotFoundError:  # a vacuum forgot it
            continue
        for one in older:
            if (one.id, one.checksum) == (record.id, record.checksum):
                return one.threshold
    return record.threshold


def _fires(store: StoredModel, label: str, value: float) -> dict[str, int] | None:
    from streamlabel.tagging.learn_report import count_fires, fires_data

    model = store.model()
    thresholds, number = model.thresholds_, store.label_names.index(label)
    thresholds[number] = value
    model.thresholds_ = thresholds
    return fires_data(count_fires(model, number))


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
