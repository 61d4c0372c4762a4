"""How every command is found and how it ends: lazy groups, exit codes, one message an error."""

from __future__ import annotations

import errno
import importlib
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from streamlabel.cli.output import SHELL_WORDS
from streamlabel.errors import ConflictError, NotFoundError, StreamlabelError


class ExitCode(IntEnum):
    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    INTERRUPTED = 130


def exit_code(error: BaseException) -> ExitCode:
    """The exit code that stands for this error."""
    if isinstance(error, BrokenPipeError):
        return ExitCode.OK
    if isinstance(error, (NotFoundError, FileNotFoundError)):
        return ExitCode.NOT_FOUND
    if isinstance(error, ConflictError):
        return ExitCode.CONFLICT
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return ExitCode.INTERRUPTED
    if isinstance(error, click.UsageError):
        return ExitCode.USAGE
    return ExitCode.FAILURE


@dataclass(frozen=True)
class LazyCommand:
    """A command that is imported when it is called: ``module:attribute``, and its line in the list of commands."""

    target: str
    summary: str

    def load(self) -> click.Command:
        module, _, attribute = self.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


class StreamlabelGroup(click.Group):
    """A group that imports its commands late and turns errors into one message and an exit code.

    Only the outermost group is run as a program; inner groups may be of this class for their lazy commands.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, LazyCommand] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lazy, *(name for name in super().list_commands(ctx) if name not in self.lazy)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.lazy:
            return self.lazy[cmd_name].load()
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        close = [] if args[0] in names else get_close_matches(args[0], names, n=3)
        if close and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(map(repr, close))}?")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names of commands by their summaries: completing must not import them all."""
        if not self.lazy:
            return super().shell_complete(ctx, incomplete)
        found = [
            CompletionItem(name, help=one.summary) for name, one in self.lazy.items() if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.summary) for name, command in self.lazy.items()]
        rows += [(name, self.commands[name].get_short_help_str(90)) for name in self.commands if name not in self.lazy]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _until_pipe_closes():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _until_pipe_closes():
            return super().invoke(ctx)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            with warnings.catch_warnings():
                # one line for a person, without the place in the code
                warnings.showwarning = lambda message, *_, **__: click.echo(f"warning: {message}", err=True)
                result = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except Exception as error:
            _exit_with(error)
        # With standalone_mode=False click returns the code of ctx.exit(), or what the command returned.
        sys.exit(result if isinstance(result, int) else ExitCode.OK)


@contextmanager
def _until_pipe_closes() -> Iterator[None]:
    """Who reads the output may have enough of it: that is a quiet end. (Click itself would end with 1.)"""
    try:
        yield
    except BrokenPipeError:
        _silence_stdout()
        raise click.exceptions.Exit(ExitCode.OK) from None


def _exit_with(error: Exception) -> NoReturn:
    """One message on stderr and the exit code for errors a user can act on; anything else is a bug and is raised."""
    if isinstance(error, BrokenPipeError):
        _silence_stdout()
    elif isinstance(error, click.ClickException):
        error.show()
        sys.exit(error.exit_code)
    elif isinstance(error, click.Abort):
        click.echo("interrupted", err=True)
    elif isinstance(error, StreamlabelError):
        click.echo(f"error: {error.told(SHELL_WORDS)}", err=True)
    elif isinstance(error, MemoryError):
        click.echo("error: out of memory; use a smaller set or a machine with more memory", err=True)
    elif isinstance(error, OSError) and error.errno is not None:
        where = "" if error.filename is None else f"{error.filename}: "
        click.echo(f"error: {where}{error.strerror or os.strerror(error.errno)}", err=True)
    else:
        raise error
    sys.exit(exit_code(error))


def _silence_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not stumble over the closed pipe at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) not in (None, errno.EBADF):
            raise
