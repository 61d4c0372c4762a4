"""``streamlabel completion``: completion of commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from streamlabel.cli._output import json_option, write

__all__ = ["completion"]

SHELLS: dict[str, tuple[type[ShellComplete], str]] = {
    "bash": (BashComplete, 'eval "$(streamlabel completion bash)"   in ~/.bashrc'),
    "zsh": (ZshComplete, 'eval "$(streamlabel completion zsh)"   in ~/.zshrc'),
    "fish": (FishComplete, "streamlabel completion fish > ~/.config/fish/completions/streamlabel.fish"),
}


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@json_option
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the script that completes commands and options in SHELL.

    \b
    bash   eval "$(streamlabel completion bash)"   in ~/.bashrc
    zsh    eval "$(streamlabel completion zsh)"   in ~/.zshrc
    fish   streamlabel completion fish > ~/.config/fish/completions/streamlabel.fish
    """
    maker, install = SHELLS[shell]
    complete = maker(ctx.find_root().command, {}, "streamlabel", "_STREAMLABEL_COMPLETE")
    script = complete.source_template % complete.source_vars()
    write({"shell": shell, "install": install, "script": script}, as_json=as_json, text=lambda: script)
