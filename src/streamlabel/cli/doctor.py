"""``streamlabel doctor`` and ``vacuum``: find damage and repair it; forget what is old."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from streamlabel.cli._group import ExitCode
from streamlabel.cli._model import actor_option, dry_run_option, megabytes, model_argument, open_store, plural
from streamlabel.cli._output import json_option, write
from streamlabel.cli._words import in_shell_words
from streamlabel.exceptions import NotFoundError, StreamlabelError
from streamlabel.store.doctor import HISTORY, Finding
from streamlabel.store.model_store import ModelStore

__all__ = ["doctor", "vacuum"]


@click.command()
@model_argument
@click.option("--repair", is_flag=True, help="Mend what can be mended; nothing that is whole is lost.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, model: Path, repair: bool, as_json: bool) -> None:
    """Check every row and file of MODEL against its checksum.

    Without --repair nothing is changed. Exit code 1 while something is wrong with the newest revision. Damage that only
    older revisions have is told, too; a repair leaves them as they are, and vacuum forgets them.
    """
    if not model.exists():
        raise NotFoundError(f"{model}: there is no model")
    findings = ModelStore.doctor(model, repair=repair)
    healthy = all(finding.repaired or finding.kind == HISTORY for finding in findings)
    data = {"healthy": healthy, "findings": [dataclasses.asdict(finding) for finding in findings]}
    write(data, as_json=as_json, text=lambda: _text(model, findings))
    if not healthy:
        ctx.exit(ExitCode.FAILURE)


@click.command()
@model_argument
@click.option("--keep-from", type=int, metavar="REVISION", help="Keep this revision and later ones too.")
@actor_option
@dry_run_option
@json_option
def vacuum(model: Path, keep_from: int | None, actor: str, dry_run: bool, as_json: bool) -> None:
    """Forget the older revisions of MODEL, and give back the room of labels that only they had.

    That cannot be undone: what is forgotten cannot be rolled back to.
    """
    with open_store(model, "r" if dry_run else "a", actor=actor) as store:
        numbers = [revision.number for revision in store.history()]
        forgotten = [number for number in numbers if number < (keep_from or store.revision)]
        freed = None if dry_run else store.vacuum(keep_from=keep_from)
    data = {"forgotten": sorted(forgotten), "freed_bytes": freed, "dry_run": dry_run}
    what = plural(len(forgotten), "revision")
    said = f"would forget {what} (--dry-run)" if freed is None else f"forgot {what}, freed {megabytes(freed)}"
    write(data, as_json=as_json, text=lambda: said)


def _text(model: Path, findings: list[Finding]) -> str:
    lines = [in_shell_words(f"{one.where}: {one.problem}; {one.remedy}") for one in findings]
    old = [one for one in findings if one.kind == HISTORY]
    if any(not one.repaired for one in findings if one.kind != HISTORY):
        lines.append(
            f"{plural(len(findings), 'finding')}; 'streamlabel doctor {model} --repair' mends what can be mended"
        )
    elif old:
        lines.append(
            f"the newest revision is whole; what is left ({plural(len(old), 'finding')}) is of older ones only: "
            f"'streamlabel vacuum {model}' forgets these"
        )
    try:
        with ModelStore.open(model) as store:
            n_labels, sizes = len(store.label_names), store.sizes()
    except StreamlabelError:
        return "\n".join(lines)
    state = f"revision {store.revision}, {plural(n_labels, 'label')}, {megabytes(sizes.total)}"
    return "\n".join([*lines, f"{model}: {'all is whole; ' if not findings else ''}{state}"])
