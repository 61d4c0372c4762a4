"""``streamlabel demo``: the whole idea in a minute."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import click

from streamlabel.cli.output import format_table, json_option, note, plural, progress_bar, write
from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.experiments.demo import ArrivalSettings, BatchRecord, DemoResult, Measures, report_page, run_arrivals
from streamlabel.experiments.sets import corpus_sets

_SHOWN_NEIGHBOURS = 6
PAGE_TITLE = b"<title>streamlabel: labels on the fly</title>"


@click.command()
@click.option("--dataset", metavar="NAME", help="A set of the catalogue (see 'streamlabel datasets list').")
@click.option("--budget", type=click.IntRange(min=2), default=100, show_default=True, help="Answers a new label gets.")
@click.option(
    "--batches", type=click.IntRange(min=1), default=6, show_default=True, help="In how many batches they come."
)
@click.option(
    "--past",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.6,
    show_default=True,
    help="Share of the labels that is known from the start.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="For the corpus, the split and the answers.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="Where the page with the curves goes.",
)
@json_option
def demo(dataset: str | None, budget: int, batches: int, past: float, seed: int, out: Path, as_json: bool) -> None:
    """The whole idea in a minute, offline.

    Fits the labels known at the start, lets the others arrive in batches with a few answers each, and measures after
    every batch how well the new labels are predicted with and without the help of the past.
    """
    if not out.resolve().parent.is_dir():
        raise NotFoundError(f"{out}: there is no folder {out.parent} to write the report to; make it or change --out")
    aside = out.with_name(out.name + ".part")
    try:
        aside.touch()
        aside.unlink()
    except OSError as error:
        raise DataError(f"{out}: the report cannot be written there ({error.strerror}); change --out") from error
    if out.exists() and not _is_report(out):
        raise ConflictError(f"{out} is there already, and is no report of the demo; change --out")
    settings = ArrivalSettings(past, batches, budget, seed)
    if dataset is None:
        train, test = corpus_sets(seed)
    else:
        train, test = load_catalogue_set(dataset, "train"), load_catalogue_set(dataset, "test")
    note(f"{train.source or dataset}: {train.n_rows} training rows, {test.n_rows} test rows, {train.n_labels} labels")
    with progress_bar("labels arriving") as progress:
        result = run_arrivals(train, test, settings, progress=progress)
    aside.write_text(report_page(result), encoding="utf-8")
    os.replace(aside, out)
    data = {**dataclasses.asdict(result), "old_unchanged": result.old_unchanged, "report": str(out)}
    write(data, as_json=as_json, text=lambda: _as_text(result, out))


def _is_report(path: Path) -> bool:
    """Whether the demo wrote it: that may be made anew, nothing else."""
    with open(path, "rb") as handle:
        return PAGE_TITLE in handle.read(1024)


def _as_text(result: DemoResult, out: Path) -> str:
    settings, last = result.settings, result.batches[-1]
    parts = [
        f"{result.n_past} labels known, fitted on {result.n_train} rows in {result.fit_seconds:.1f} s. "
        f"{last.n_known - result.n_past} more arrive in {_batches(len(result.batches))}, "
        f"{plural(settings.budget, 'answer')} each.",
        _batch_table(result.batches),
        f"P@1/3/5 and average AUC in percent over the new labels so far, on {result.n_test} unseen rows\n"
        "(a row with none of them counts as a miss); 'alone' is the same learner without the past.",
        "What the new labels with the most yes answers resemble:\n" + _neighbour_lines(result),
        f"Old labels: scores {'bit-identical to' if result.old_unchanged else 'DIFFERENT FROM'} those before any label "
        f"arrived (SHA-256 {result.fingerprint_after[:16]}).",
        f"Report with the curves: {out}",
    ]
    if result.n_skipped:
        skipped = plural(result.n_skipped, "label")
        parts.insert(1, f"Left out, for they have no yes or no no among the training rows: {skipped}.")
    return "\n\n".join(parts)


def _batches(number: int) -> str:
    return "1 batch" if number == 1 else f"{number} batches"


def _batch_table(batches: tuple[BatchRecord, ...]) -> str:
    header = ["batch", "new labels", "P@1", "alone", "P@3", "alone", "P@5", "alone", "AUC", "alone", "ms/label"]
    n_first = batches[0].n_known - len(batches[0].labels)
    rows = [
        [str(i), str(b.n_known - n_first), *_pairs(b.with_past, b.alone), f"{b.ms_per_label:.1f}"]
        for i, b in enumerate(batches, start=1)
    ]
    return format_table(header, rows, right=range(len(header)))


def _pairs(left: Measures, right: Measures) -> list[str]:
    values = zip(dataclasses.astuple(left), dataclasses.astuple(right), strict=True)
    return [f"{value:.1f}" for pair in values for value in pair]


def _neighbour_lines(result: DemoResult) -> str:
    """The labels with the most yes answers: a code found from one or two says little."""
    found = [n for batch in result.batches for n in batch.neighbours if n.code]
    found.sort(key=lambda n: -n.n_yes)
    return "\n".join(
        f"  {n.label} ({n.n_yes} yes) = " + ", ".join(f"{weight:+.2f} {name}" for name, weight in n.code)
        for n in found[:_SHOWN_NEIGHBOURS]
    )
