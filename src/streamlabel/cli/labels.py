"""``streamlabel labels`` and ``relations``: what a model knows, and what resembles what."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from streamlabel.cli._model import known_label, megabytes, model_argument, open_store, plural
from streamlabel.cli._output import format_table, json_option, write

__all__ = ["labels", "relations"]

SORTS = {"arrival": lambda record: record.id, "name": lambda record: record.name.casefold(),
         "yes": lambda record: -record.n_yes}  # fmt: skip


@click.command()
@model_argument
@click.option("--match", default="", metavar="TEXT", help="Only labels with this in their name.")
@click.option("--sort", type=click.Choice(list(SORTS)), default="arrival", show_default=True, help="Their order.")
@click.option("--revision", type=int, help="Of an older revision.")
@json_option
def labels(model: Path, match: str, sort: str, revision: int | None, as_json: bool) -> None:
    """The labels of MODEL: ids, answers they were learned from, thresholds, where they came from.

    Texts that were only taken for no (see add-label) count as no.
    """
    with open_store(model, revision=revision) as store:
        records, sizes, number = store.labels(), store.sizes(), store.revision
    chosen = sorted((record for record in records if match.casefold() in record.name.casefold()), key=SORTS[sort])
    data = {
        "revision": number,
        "n_labels": len(records),
        "bytes": {**dataclasses.asdict(sizes), "total": sizes.total},
        "labels": [dataclasses.asdict(record) for record in chosen],
    }
    rows = [
        [
            str(record.id), record.name, str(record.n_yes), str(record.n_no),
            "-" if record.n_unasked is None else str(record.n_unasked), f"{record.threshold:.3f}", record.origin,
            "yes" if record.anchored or record.share else "", str(record.born), record.born_at[:10],
        ]
        for record in chosen
    ]  # fmt: skip
    header = ["id", "label", "yes", "no", "not asked", "threshold", "from", "used past", "revision", "born"]
    size = f"{megabytes(sizes.total)} on the disk, {megabytes(sizes.learning)} of it to go on learning"
    last = f"{plural(len(chosen), 'label')}, revision {number}, {size}"
    write(data, as_json=as_json, text=lambda: f"{format_table(header, rows, right=(0, 2, 3, 4, 5, 8))}\n{last}")


@click.command()
@model_argument
@click.argument("label", required=False)
@click.option("-k", type=click.IntRange(min=1), default=5, show_default=True, help="At most so many a label.")
@json_option
def relations(model: Path, label: str | None, k: int, as_json: bool) -> None:
    """Which labels a label was learned to resemble, with signed weights; for LABEL, also who resembles it.

    Labels of fit resemble none: they were learned from all rows, without the help of others.
    """
    with open_store(model) as store:
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
