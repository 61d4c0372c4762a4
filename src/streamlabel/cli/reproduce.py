"""``streamlabel reproduce NAME``: the experiments, each from one command."""

from __future__ import annotations

import json
from pathlib import Path

import click

from streamlabel.cli._output import json_option, note, progress_bar, write
from streamlabel.data.catalogue import find_entry, load_catalogue_set, locate, require
from streamlabel.experiments.arrivals import corpus_sets
from streamlabel.experiments.budget import BUDGETS, DEFAULT, KEY, METHODS, OWN_RIDGE, BudgetRecord, pending, run_budget
from streamlabel.experiments.records import RecordFile, write_whole
from streamlabel.experiments.tables import as_data, as_markdown, budget_rows
from streamlabel.results import Dataset

__all__ = ["reproduce"]

_SETS = ("bibtex", "delicious", "mediamill_reduced")
_QUICK_SET, _QUICK_BUDGETS = "mediamill_reduced", (20, 100)
_CORPUS = "news corpus"


@click.group()
def reproduce() -> None:
    """Run an experiment and write its records and tables.

    An interrupted run goes on where it stopped when the same command is given again.
    """


def _read_budgets(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int | None, ...] | None:
    if value is None:
        return None
    found: list[int | None] = []
    for part in value.split(","):
        word = part.strip()
        if word != "all" and not (word.isdecimal() and len(word) < 16 and int(word) >= 2):
            raise click.BadParameter(f"{word!r} is neither a number of rows, 2 or more, nor 'all'")
        found.append(None if word == "all" else int(word))
    return tuple(found)


@reproduce.command("budget")
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="NAME",
    help=f"A set of the catalogue; may be given several times. [default: {', '.join(_SETS)}]",
)
@click.option("--seeds", type=click.IntRange(min=1), help="How many draws of label orders and rows. [default: 5]")
@click.option(
    "--budgets",
    callback=_read_budgets,
    metavar="N,N,...",
    help="Numbers of annotated rows; 'all' for all of them. [default: 20,50,100,200,500,1000,2000,all]",
)
@click.option("--paper", is_flag=True, help="Also run the paper's form: the anchor, without the metric.")
@click.option("--quick", is_flag=True, help="One small set (or the embedded texts), 2 seeds, 20 and 100 rows.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="The folder for budget.jsonl, budget.md and budget.json.",
)
@json_option
def budget(
    datasets: tuple[str, ...],
    seeds: int | None,
    budgets: tuple[int | None, ...] | None,
    paper: bool,
    quick: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Accuracy of new labels against the number of annotated rows, with the past and without it.

    Writes one record a run to budget.jsonl, and the tables over all records there to budget.md and budget.json. The
    last line says whether any measure fell more than 0.3 points under own ridge, the same learner without the past.
    """
    grid = (
        budgets or (_QUICK_BUDGETS if quick else BUDGETS),
        range(seeds or (2 if quick else 5)),
        tuple(METHODS) if paper else (DEFAULT, OWN_RIDGE),
    )
    sets = _load(datasets, quick)
    file = RecordFile(out / "budget.jsonl", BudgetRecord, KEY)
    total = sum(len(pending(name, train.n_rows, *grid, done=file)) for name, (train, _) in sets.items())
    if n_before := len(file.records):
        note(f"{n_before} records are already in {file.path}; they are not computed again")
    with progress_bar("runs") as progress:
        progress(0, total)

        def keep(record: BudgetRecord) -> None:
            file.append(record)
            progress(len(file.records) - n_before, total)

        for name, (train, test) in sets.items():
            run_budget(name, train, test, *grid, done=file, on_record=keep)
    rows = budget_rows(file.records)
    data, page = as_data(rows), as_markdown(rows)
    write_whole(out / "budget.json", json.dumps(data, indent=2, allow_nan=False) + "\n")
    write_whole(out / "budget.md", page)
    note(f"tables: {out / 'budget.md'} and {out / 'budget.json'}")
    write(data, as_json=as_json, text=page.rstrip)


def _load(names: tuple[str, ...], quick: bool) -> dict[str, tuple[Dataset, Dataset]]:
    """Training and test part of every set, before anything is run: a wrong name is found at once."""
    if quick and not names and locate(find_entry(_QUICK_SET)) is None:
        return {_CORPUS: corpus_sets(0)}
    entries = [find_entry(name) for name in names or ((_QUICK_SET,) if quick else _SETS)]
    for entry in entries:
        require(entry)
    found = {}
    for entry in entries:
        found[entry.name] = load_catalogue_set(entry.name, "train"), load_catalogue_set(entry.name, "test")
    return found
