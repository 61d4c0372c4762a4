"""``streamlabel reproduce report``: the records of all experiments as one page."""

from __future__ import annotations

from pathlib import Path

import click

from streamlabel.cli.output import json_option, write
from streamlabel.experiments.report import Report, write_report

__all__ = ["report"]

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("report")
@click.option("--from", "folder", type=_FOLDER, default=Path("results"), show_default=True, help="The records.")
@click.option("--out", type=_FILE, help="The page. [default: results.md in the folder of the records]")
@click.option(
    "--pictures",
    type=_FOLDER,
    help="The folder for pictures. [default: that of the records; with --out, _static/results beside the page]",
)
@click.option(
    "--template",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The words of the page: Markdown with places for tables and pictures. [default: one for any records]",
)
@click.option("--pages", type=_FOLDER, help="A folder for the page of every experiment, with all its tables.")
@json_option
def report(
    folder: Path, out: Path | None, pictures: Path | None, template: Path | None, pages: Path | None, as_json: bool
) -> None:
    """Make one page of all experiments that have records in a folder.

    Tables and pictures are made anew; nothing is run and nothing is fetched. The page says where the learner wins, ties
    and loses against each competitor, and which experiments were not run.
    """
    page = out or folder / "results.md"
    usual = folder if out is None else out.parent / "_static" / "results"
    found = write_report(folder, page, pictures or usual, template, pages=pages)
    if found.missing:
        click.echo(found.missing, err=True)
    write(found.data, as_json=as_json, text=lambda: _as_text(found, page))


def _as_text(found: Report, out: Path) -> str:
    lines = [f"{name}: {one['n_records']} records" for name, one in found.data["experiments"].items()]
    lines += [f"{name}: not run" for name in found.not_run]
    return "\n".join([*lines, f"written: {out}"])
