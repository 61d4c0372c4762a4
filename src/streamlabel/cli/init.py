"""``streamlabel init`` and ``completion``: files to begin with, and a shell that completes."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from streamlabel.cli.models import dry_run_option
from streamlabel.cli.output import json_option, write
from streamlabel.data.news import HELD_BACK, example_files, starter_files, write_files


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--example", is_flag=True, help="Fill them with short news texts that come with the package.")
@click.option("--texts", type=click.IntRange(min=200), default=600, show_default=True, help="How many, with --example.")
@click.option("--seed", type=int, default=0, show_default=True, help="For the texts, with --example.")
@dry_run_option
@json_option
def init(folder: Path, example: bool, texts: int, seed: int, dry_run: bool, as_json: bool) -> None:
    """Make a FOLDER with files to begin with.

    texts.jsonl has tagged texts, one JSON object a line; yes.txt and no.txt have texts to which a label that is not
    among the tags applies, and does not apply; pool.txt has texts as they come now. Without --example they have a few
    lines, to be replaced by yours. Files that are there are not overwritten.
    """
    files = example_files(texts, seed) if example else starter_files()
    paths = [folder / name for name in files] if dry_run else write_files(folder, files)
    label = HELD_BACK if example else "bird flu"
    commands = [
        f"streamlabel fit {folder / 'model'} {paths[0]}",
        f"streamlabel add-label {folder / 'model'} '{label}' --pool {paths[3]}",
        f"streamlabel next {folder / 'model'} '{label}' --pool {paths[3]} --ask",
        f"streamlabel suggest {folder / 'model'} 'Bird flu was found in flocks of ducks on two farms.'",
    ]
    data = {"files": [str(path) for path in paths], "next": commands, "dry_run": dry_run}
    lines = [f"{'would write' if dry_run else 'wrote'} {', '.join(map(str, paths))}", "next:"]
    write(data, as_json=as_json, text=lambda: "\n".join([*lines, *(f"  {command}" for command in commands)]))


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
