"""``streamlabel datasets list|info|get``: the catalogue of named sets, on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from streamlabel.cli.group import ExitCode, StreamlabelGroup
from streamlabel.cli.output import format_table, json_option, note, progress_bar, write
from streamlabel.data.catalogue import (
    ENTRIES,
    Counts,
    Entry,
    FoundSet,
    cache_folder,
    count,
    data_roots,
    differences,
    find_entry,
    load_catalogue_splits,
    locate,
    total,
)
from streamlabel.data.download import Progress
from streamlabel.data.fetch import fetch_set

_cache_option = click.option(
    "--cache-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Use this cache folder instead of the user's (or set STREAMLABEL_CACHE).",
)


@click.group(cls=StreamlabelGroup)
def datasets() -> None:
    """List, describe and download the named data sets.

    They are looked for in the folder that STREAMLABEL_DATA names, then in the user's cache.
    """


@datasets.command("list")
@_cache_option
@json_option
def list_sets(cache_dir: Path | None, as_json: bool) -> None:
    """Show all named sets, their shape, and where they lie on this machine."""
    roots = data_roots(cache_dir)
    places = {entry.name: locate(entry, roots) for entry in ENTRIES}
    data = [_shape(entry) | _place(places[entry.name]) for entry in ENTRIES]
    write(data, as_json=as_json, text=lambda: _list_text(places))


@datasets.command("info")
@click.argument("name")
@_cache_option
@json_option
@click.pass_context
def info(ctx: click.Context, name: str, cache_dir: Path | None, as_json: bool) -> None:
    """Show what was published about the set NAME and, where its files are here, what they hold.

    Exit code 1 when the two differ.
    """
    entry = find_entry(name)
    found = locate(entry, data_roots(cache_dir))
    counts: dict[str, Counts] = {}
    if found is not None:
        note(f"reading {found.folder} ...")
        counts = {split: count(data) for split, data in load_catalogue_splits(found).items()}
    wrong = differences(entry, counts) if counts else []
    data = _shape(entry) | _facts(entry) | _place(found) | {"measured": _measured(counts), "differences": wrong}
    write(data, as_json=as_json, text=lambda: _info_text(entry, found, counts, wrong))
    if wrong:
        ctx.exit(ExitCode.FAILURE)


@datasets.command("get")
@click.argument("name")
@click.option(
    "--from",
    "places",
    multiple=True,
    metavar="FILE|URL",
    help="Take this file, archive or web address instead of the public source; may be given several times.",
)
@click.option("--force", is_flag=True, help="Fetch it even when it is already on this machine.")
@_cache_option
@json_option
def get(name: str, places: tuple[str, ...], force: bool, cache_dir: Path | None, as_json: bool) -> None:
    """Download the set NAME into the cache, check it, and print its folder.

    An interrupted download goes on where it stopped. Without a network, the message says where the files are to be
    had and which folder to put them into.
    """
    entry = find_entry(name)
    found = None if force or places else locate(entry, data_roots(cache_dir))
    if found is not None:
        note(f"{entry.name} is already here; --force fetches it again")
    else:
        root = (cache_dir or cache_folder()) / "datasets"
        with ExitStack() as bars:

            def progress(file_name: str) -> Progress:
                bars.close()
                return bars.enter_context(progress_bar(file_name, unit="bytes"))

            found = fetch_set(entry, root, places=places, progress=progress)
    folder = found.folder
    write({"name": entry.name} | _place(found), as_json=as_json, text=lambda: str(folder))


def _shape(entry: Entry) -> dict[str, Any]:
    names = ("name", "description", "n_rows", "n_features", "n_labels")
    return {name: getattr(entry, name) for name in names} | {"n_rows": dict(entry.n_rows)}


def _place(found: FoundSet | None) -> dict[str, Any]:
    if found is None:
        return {"present": False, "folder": None, "files": None}
    return {"present": True, "folder": str(found.folder), "files": found.form.name}


def _number(printed: str | None) -> float | None:
    return None if printed is None else float(printed)


def _facts(entry: Entry) -> dict[str, Any]:
    return {
        "labels_per_example": _number(entry.labels_per_example),
        "examples_per_label": _number(entry.examples_per_label),
        "averages_over": list(entry.averages_over),
        "statistics_from": entry.statistics_from,
        "form": entry.form,
        "source": entry.source,
        "licence": entry.licence,
        "by_hand": entry.by_hand,
        "downloads": [{"url": file.url, "size": file.size, "sha256": file.sha256} for file in entry.files],
    }


def _measured(counts: Mapping[str, Counts]) -> dict[str, Any] | None:
    if not counts:
        return None
    return {
        split: {
            "n_rows": measured.n_rows,
            "n_features": measured.n_features,
            "n_labels": measured.n_labels,
            "labels_per_example": round(measured.labels_per_example, 4),
            "examples_per_label": round(measured.examples_per_label, 4),
            "values_per_example": round(measured.values_per_example, 4),
        }
        for split, measured in [*counts.items(), ("all", total(counts))]
    }


def _list_text(places: Mapping[str, FoundSet | None]) -> str:
    rows = []
    for entry in ENTRIES:
        found = places[entry.name]
        splits = " / ".join(f"{n:,}" for n in entry.n_rows.values())
        here = "-" if found is None else str(found.folder)
        rows.append([entry.name, splits, f"{entry.n_features:,}", f"{entry.n_labels:,}", here])
    return format_table(["name", "train / test", "features", "labels", "folder"], rows, right=(2, 3))


def _info_text(entry: Entry, found: FoundSet | None, counts: Mapping[str, Counts], wrong: list[str]) -> str:
    over = " + ".join(entry.averages_over)
    lines = [
        f"{entry.name}: {entry.description}",
        "",
        f"published by    {entry.statistics_from}",
        f"source          {entry.source}",
        f"licence         {entry.licence}",
        f"files           {found.folder if found else 'not on this machine'}{f' ({found.form.name})' if found else ''}",
        "",
        _statistics_table(entry, counts),
    ]
    if set(entry.averages_over) != set(entry.n_rows):
        lines.append(f"(the published averages are over {over})")
    if found is None:
        get = [f"get it          streamlabel datasets get {entry.name}"] if entry.files else []
        lines += ["", *get, f"by hand         {entry.by_hand}"]
    elif wrong:
        lines += ["", *(f"DIFFERS         {difference}" for difference in wrong)]
    else:
        lines += ["", "What is here agrees with what was published."]
    return "\n".join(lines)


def _statistics_table(entry: Entry, counts: Mapping[str, Counts]) -> str:
    """One row a statistic, one column for the publication and one for every split that was measured."""
    columns = {**counts, "all": total(counts)} if counts else {}
    rows = [[f"{split} examples", f"{n:,}"] + [""] * len(columns) for split, n in entry.n_rows.items()]
    for row, split in zip(rows, entry.n_rows, strict=True):
        for position, (name, measured) in enumerate(columns.items()):
            if name == split:
                row[2 + position] = f"{measured.n_rows:,}"
    found, unknown = columns.values(), "not known"
    rows += [
        ["features", f"{entry.n_features:,}", *(f"{c.n_features:,}" for c in found)],
        ["labels", f"{entry.n_labels:,}", *(f"{c.n_labels:,}" for c in found)],
        ["labels per example", entry.labels_per_example or unknown, *(f"{c.labels_per_example:.4f}" for c in found)],
        ["examples per label", entry.examples_per_label or unknown, *(f"{c.examples_per_label:.2f}" for c in found)],
    ]
    return format_table(["", "published", *columns], rows, right=range(1, 2 + len(columns)))
