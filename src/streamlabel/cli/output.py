"""What every command says: data on stdout, tables, remarks on stderr, progress on a terminal."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

REPAIR = "'streamlabel doctor MODEL --repair'"
STILL_READ = "; commands that change nothing can still read it"

SHELL_WORDS = {  # longer phrases stand before those that they contain
    "open the model with leave_out_damaged=True to use the others, or repair it with doctor(repair=True)": (
        f"{REPAIR} takes it out, and the others can be used"
    ),
    "use model(learning=False), or doctor(repair=True)": f"{REPAIR} takes it out",
    "run doctor(repair=True)": f"run {REPAIR}",
    "; run doctor": "; run 'streamlabel doctor MODEL'",
    ", run doctor": ", run 'streamlabel doctor MODEL'",
    "; doctor says what can be saved": "; 'streamlabel doctor MODEL' says what can be saved",
    "one by one with rollback(label=...)": "one by one with --label",
    "; a model is read with mode='r'": STILL_READ,
    "; open the model with mode='r'": STILL_READ,
    ", or read with mode='r'": STILL_READ,
    "ModelStore.create makes one": "'streamlabel fit' makes one",
    "labels() lists all": "'streamlabel labels MODEL' lists all",
    "history() says what there was": "'streamlabel history MODEL' says what there was",
    "stored; pass it again, fitted: vectorizer=...": "stored; it can be used from Python only, with that vectoriser",
    "give Y_path, or the folder that holds both": "give Y with --labels-file, or the folder that holds both",
    "give the Mulan file as xml=, or n_labels= (-n: the last n)": "give the Mulan file with --labels-file",
    "; lower min_df, raise max_df or leave out stop_words": "; give more texts, or longer ones",
    "keep one, or pass repeated_labels='merge' to count it once": "keep one",
    "pass text_field=None or features_field=None to choose": "leave one of the two out",
    "give text_column or features_column, not both": "a file has texts or features, not both",
    "Pass question= (and text_field=)": "--question NAME says so (and --text FIELD)",
    "pass question= to say which to read": "--question NAME says which to read",
    "pass text_field= to say which is the text": "--text FIELD says which is the text",
    "pass format=, one of": "--format gives it, one of",
    "delimiter_of_tags is ": "--tag-delimiter is ",
    "weak_no is ": "--weak-no is ",
    ", or raise max_line_bytes": "",
    "; raise max_line_bytes if that is right": "; is it the right file?",
    ", or raise max_record_bytes": "",
    "; raise max_record_bytes if that is right": "; is it the right file?",
    "; raise max_bytes if that is right": "; split the file",
}


def in_shell_words(message: str) -> str:
    """The message for a person at a shell."""
    for python, shell in SHELL_WORDS.items():
        message = message.replace(python, shell)
    return message


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


_SECONDS = 60.0  # between two lines, at least
_ENOUGH = 50  # one in so many runs must be done before the time left is guessed: the first one includes the set-up
_TOO_FEW = "too few to say how long the others take"


@contextmanager
def run_progress(name: str, n_runs: int, n_before: int) -> Iterator[Callable[[int, int | None], None]]:
    """Call the yielded function with (done, total) of the runs that were missing.

    n_runs, n_before : all that were asked for, and how many of them were there already
    """
    if sys.stderr.isatty():
        with progress_bar(f"{name}, runs") as progress:
            yield progress
        return
    remark(f"{name}: {plural(n_runs, 'run')}, {n_before:,} done already")
    yield _Lines(name).tell


class _Lines:
    def __init__(self, name: str) -> None:
        self._name = name
        self._start = self._told = time.monotonic()

    def tell(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if total is None or not 0 < done < total or now - self._told < _SECONDS:
            return
        self._told = now
        left = f"about {_time((now - self._start) / done * (total - done))} left"
        remark(f"{self._name}: {done:,} of {total:,} runs done, {left if done * _ENOUGH >= total else _TOO_FEW}")


def _time(seconds: float) -> str:
    minutes = max(1, round(seconds / 60.0))
    return plural(minutes, "minute") if minutes < 120 else f"{minutes / 60.0:.0f} hours"
