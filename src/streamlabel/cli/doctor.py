"""``streamlabel doctor``: find damage, explain it, repair what can be repaired."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from streamlabel.cli._model import megabytes, model_argument, plural
from streamlabel.cli._output import ExitCode, json_option, write
from streamlabel.exceptions import NotFoundError, StreamlabelError
from streamlabel.store.doctor import Finding
from streamlabel.store.model_store import ModelStore

__all__ = ["doctor"]


@click.command()
@model_argument
@click.option("--repair", is_flag=True, help="Mend what can be mended; nothing that is whole is lost.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, model: Path, repair: bool, as_json: bool) -> None:
    """Check every row and file of MODEL against its checksum.

    Without --repair nothing is changed. Exit code 1 while something is wrong.
    """
    if not model.exists():
        raise NotFoundError(f"{model}: there is no model")
    findings = ModelStore.doctor(model, repair=repair)
    data = {"healthy": not findings, "findings": [dataclasses.asdict(finding) for finding in findings]}
    write(data, as_json=as_json, text=lambda: _text(model, findings))
    if not all(finding.repaired for finding in findings):
        ctx.exit(ExitCode.FAILURE)


def _text(model: Path, findings: list[Finding]) -> str:
    lines = [f"{one.where}: {one.problem}; {one.remedy}" for one in findings]
    if any(not one.repaired for one in findings):
        lines.append(f"{plural(len(findings), 'finding')}; --repair mends what can be mended")
    try:
        with ModelStore.open(model) as store:
            n_labels, sizes = len(store.label_names), store.sizes()
    except StreamlabelError:
        return "\n".join(lines)
    state = f"revision {store.revision}, {plural(n_labels, 'label')}, {megabytes(sizes.total)}"
    return "\n".join([*lines, f"{model}: {'all is whole; ' if not findings else ''}{state}"])
