"""The directive ``command-help``: the help page of a command, as the command prints it today.

``{command-help} datasets list`` shows what ``streamlabel datasets list --help`` prints; no argument shows the main
page. A name that is no command stops the build.
"""

from __future__ import annotations

import click
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from streamlabel.cli import main

WIDTH = 80


def help_page(path: list[str]) -> str:
    """What ``streamlabel PATH --help`` prints; LookupError where there is no such command."""
    settings = {**main.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    command, context = main, click.Context(main, info_name="streamlabel", **settings)
    for name in path:
        found = command.get_command(context, name) if isinstance(command, click.Group) else None
        if found is None:
            raise LookupError(f"there is no command 'streamlabel {' '.join(path)}'")
        command, context = found, click.Context(found, info_name=name, parent=context)
    return command.get_help(context)


class CommandHelp(Directive):
    """A literal block with the help page of the command that the argument names."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        path = self.arguments[0].split() if self.arguments else []
        try:
            text = help_page(path)
        except LookupError as error:
            raise self.error(str(error)) from None
        line = " ".join(["$ streamlabel", *path, "--help"])
        return [nodes.literal_block(text, f"{line}\n{text}", language="none")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
