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

from streamlabel.errors import Hint

_DOCTOR, _REPAIR = "'streamlabel doctor MODEL'", "'streamlabel doctor MODEL --repair'"
_STILL_READ = "commands that change nothing can still read it"
SHELL_WORDS = {
    Hint.BACKUP: "restore it from a backup",
    Hint.CLOSE_QUOTE: "close its quote",
    Hint.CREATE: "'streamlabel fit {} FILE' makes one",
    Hint.DOCTOR: f"run {_DOCTOR}",
    Hint.DOCTOR_OR_BACKUP: f"run {_DOCTOR}, or restore it from a backup",
    Hint.FEWER_FEATURES: "--max-features {} keeps as many as there is room for; or learn fewer labels, or --in-blocks",
    Hint.FORMAT: "--format gives it, one of {}",
    Hint.HISTORY: "'streamlabel history MODEL' says what there was",
    Hint.IN_BLOCKS: "check the counts in the file, read it in blocks (--in-blocks), or use a larger machine",
    Hint.LABELS: "'streamlabel labels MODEL' lists all",
    Hint.LABELS_OF_ARFF: "give the Mulan file with --labels-file",
    Hint.LABELS_OF_ROWS: "give Y with --labels-file, or the folder that holds both",
    Hint.LABEL_BY_LABEL: "choose a revision that is whole, or bring {} back one by one with --label",
    Hint.LARGER_LIMIT: "is it the right file?",
    Hint.LEAVE_OUT: f"{_REPAIR} takes it out, and the others can be used",
    Hint.MORE_MEMORY: "split the file",
    Hint.ONE_CONTENT: "leave one of the two out",
    Hint.OTHER_FOLDER: "wait until that ends, or choose another folder with --out",
    Hint.QUESTION: "--question NAME says which to read",
    Hint.READ_ONLY: _STILL_READ,
    Hint.REPAIR: f"run {_REPAIR} first",
    Hint.REPEATED_LABELS: "keep one",
    Hint.TAKES_ROWS: "it takes no texts but rows of numbers: use predict with a file",
    Hint.TEXT_COLUMN: "--text COLUMN says which has the texts",
    Hint.TAG_DELIMITER: "use one character for --tag-delimiter, such as ';' or '|'",
    Hint.TEXT_FIELD: "--text FIELD says which is the text",
    Hint.VECTORIZER: "it can be used from Python only, with that vectoriser",
    Hint.VOCABULARY: "give more texts, or longer ones",
    Hint.WAIT_OR_READ: f"wait until that ends; {_STILL_READ}",
    Hint.WHOLE_MODEL: "'streamlabel rollback MODEL {}' takes all labels back",
    Hint.WITHOUT_LEARNING: f"{_REPAIR} takes it out",
}

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


OFTEN = 0.2


def fires_lines(fires: dict[str, int] | None, unit: str, pool: str = "fit", more: str = "") -> list[str]:
    """How often a label fires (``more`` is said of that, too), and what to do where that is very often."""
    if fires is None:
        return []
    n_yes, n_texts = fires["n_yes"], fires["n_looked_at"]
    of = "the pool" if pool == "given" else "fit"
    line = f"it fires on {n_yes:,} of {plural(n_texts, unit)} of {of} ({n_yes / n_texts:.1%}){more}"
    often = "that is often: give more no answers, or raise the threshold with 'streamlabel threshold'"
    return [line, often] if n_yes > OFTEN * n_texts else [line]


GUESS = (
    "so far a guess: find a text that it applies to ('add-label --more --yes FILE'), or describe it (--more --about)"
)
NO_IDEA = 5  # noes without a yes after which nothing is known about a label


def estimate_lines(estimate: dict[str, Any] | None, n_yes: int = 1, n_no: int = 0) -> list[str]:
    """How good a label is thought to be, in words; n_yes, n_no: the answers that it was learned from."""
    if estimate is None:
        return []
    rate, recall, precision = (estimate[key] for key in ("rate", "recall", "precision"))
    right = "it never says yes there" if precision is None else f"of its yes about {percent_of(precision)} are right"
    lines = [
        f"{right}; it finds about {percent_of(recall)} of the texts it applies to (about {percent_of(rate, 1)} of all)"
    ]
    if estimate["n_asked"] == estimate["n_pool"]:
        lines.append(f"counted on {estimate['n_pool']:,} answers of the sample, each under a classifier without it")
    elif not n_yes and n_no >= NO_IDEA:
        lines.append(GUESS)
    elif precision is not None and precision["low"] < 0.5:
        lines.append("answer some questions to be surer: 'streamlabel next'")
    return lines


def percent_of(value: dict[str, float], digits: int = 0) -> str:
    """A share with its interval."""
    return f"{value['value']:.{digits}%} ({value['low']:.{digits}%} to {value['high']:.{digits}%})"


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
    start = told = time.monotonic()

    def tell(done: int, total: int | None) -> None:
        nonlocal told
        now = time.monotonic()
        if total is None or not 0 < done < total or now - told < _SECONDS:
            return
        told = now
        left = f"about {_time((now - start) / done * (total - done))} left"
        remark(f"{name}: {done:,} of {total:,} runs done, {left if done * _ENOUGH >= total else _TOO_FEW}")

    yield tell


def _time(seconds: float) -> str:
    minutes = max(1, round(seconds / 60.0))
    return plural(minutes, "minute") if minutes < 120 else f"{minutes / 60.0:.0f} hours"
