"""The command line: parse, call, print. The only code that prints."""

from __future__ import annotations

import click

from streamlabel._version import __version__
from streamlabel.cli._output import LazyCommand, StreamlabelGroup

__all__ = ["main"]

COMMANDS = {
    "demo": LazyCommand("streamlabel.cli.demo:demo", "The whole idea in a minute: labels arrive, the past helps."),
    "bench": LazyCommand("streamlabel.cli.bench:bench", "How fast it is here: new labels, in CPU time and ratios."),
    "datasets": LazyCommand("streamlabel.cli.datasets:datasets", "List, describe and download the named data sets."),
    "reproduce": LazyCommand("streamlabel.cli.reproduce:reproduce", "Run an experiment; write its records and tables."),
}


@click.group(cls=StreamlabelGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="streamlabel")
def main() -> None:
    """A multi-label classifier whose label set grows while it is in use.

    Data goes to standard output, progress and messages to standard error. Exit code: 0 done, 1 failure, 2 wrong
    usage, 3 not found, 4 conflict, 130 interrupted.
    """
