"""What every command says: data on stdout, tables, remarks on stderr, progress on a terminal."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

__all__ = ["format_table", "json_option", "note", "plural", "progress_bar", "remark", "write"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def json_option(function: _Function) -> _Function:
    """``--json``: the command prints one JSON document instead of text. The argument is called ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def write(data: Any, *, as_json: bool, text: Callable[[], str]) -> None:
    """Print the data on stdout: as strict JSON (an infinite threshold is null), or as ``text()`` says for people."""
    if as_json:
        click.echo(json.dumps(_strict(data), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        click.echo(text())


def _strict(data: Any) -> Any:
    """Without what JSON has no word for."""
    if isinstance(data, dict):
        return {key: _strict(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_strict(value) for value in data]
    return None if isinstance(data, float) and math.isinf(data) else data


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Columns padded to their widest cell, two blanks between; columns in ``right`` are aligned right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[j]) for line in lines) for j in range(len(header))]
    padded = (
        [cell.rjust(widths[j]) if j in right else cell.ljust(widths[j]) for j, cell in enumerate(line)]
        for line in lines
    )
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def plural(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def note(message: str) -> None:
    """What goes on, on stderr, for a person who watches; silent when stderr is not a terminal."""
    if sys.stderr.isatty():
        remark(message)


def remark(message: str) -> None:
    """What one should know about the data that goes to stdout, on stderr."""
    click.echo(message, err=True)


@contextmanager
def progress_bar(description: str, *, unit: str = "steps") -> Iterator[Callable[[int, int | None], None]]:
    """A bar on stderr while the block runs: call the yielded function with (done, total or None).

    ``unit="bytes"`` shows sizes and speed. Nothing is drawn when stderr is not a terminal.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    amount: list[ProgressColumn] = (
        [DownloadColumn(), TransferSpeedColumn()] if unit == "bytes" else [MofNCompleteColumn()]
    )
    columns = [TextColumn("{task.description}", markup=False), BarColumn(), *amount, TimeRemainingColumn()]
    memory = 30.0 if unit == "bytes" else 3600.0  # seconds of the past that the time left is guessed from
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=memory) as progress:
        task = progress.add_task(description, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
