"""``streamlabel history``, ``diff``, ``rollback``, ``undo``, ``rename``, ``retire``, ``doctor``, ``vacuum``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamlabel.cli.group import ExitCode
from streamlabel.cli.models import (
    actor_option,
    dry_run_option,
    known_label,
    megabytes,
    model_argument,
    new_label_name,
    open_store,
)
from streamlabel.cli.output import format_table, json_option, plural, write
from streamlabel.errors import ConflictError, DataError, NotFoundError, StreamlabelError, did_you_mean
from streamlabel.store.history import LabelChange, Revision
from streamlabel.store.stored_model import StoredModel

if TYPE_CHECKING:
    from streamlabel.store.doctor import Finding

SHOWN = 4


@click.command()
@model_argument
@click.argument("label", required=False)
@click.option("-n", "most", type=click.IntRange(min=1), help="Only the newest N.")
@json_option
def history(model: Path, label: str | None, most: int | None, as_json: bool) -> None:
    """Every revision of MODEL, newest first; for LABEL, those that changed it (by any name that it had)."""
    with StoredModel.read(model) as store:
        revisions = _history_of(store, label)[:most]
        told = _answers(store, revisions)
    data = [dataclasses.asdict(revision) for revision in revisions]
    rows = [
        [str(r.number), r.at[:19].replace("T", " "), r.actor, r.action, _detail(r) + told.get(r.number, "")]
        for r in revisions
    ]
    header = ["revision", "when", "who", "what", ""]
    write(data, as_json=as_json, text=lambda: format_table(header, rows, right=(0,)))


@click.command()
@model_argument
@click.argument("before", type=int)
@click.argument("after", type=int, required=False)
@json_option
def diff(model: Path, before: int, after: int | None, as_json: bool) -> None:
    """What happened to the labels between the revisions BEFORE and AFTER, by default the newest."""
    with StoredModel.read(model) as store:
        changes = store.diff(before, after)
        data = {"before": before, "after": after or store.revision, "changes": _as_data(changes)}
    write(data, as_json=as_json, text=lambda: _as_text(changes))


@click.command()
@model_argument
@click.argument("revision", type=int, required=False)
@click.option("--label", metavar="NAME", help="Only this label: to REVISION, by default to before its last change.")
@actor_option
@dry_run_option
@json_option
def rollback(model: Path, revision: int | None, label: str | None, actor: str, dry_run: bool, as_json: bool) -> None:
    """Make MODEL what it was in REVISION, or one label what it was; without either, undo the last change.

    That is a new revision: nothing is lost, and a roll-back can be rolled back. That of a label without a REVISION is a
    change of it, too: it undoes itself when it is repeated; to go further back, give the REVISION.
    """
    _go_back(model, revision, label, actor, dry_run, as_json)


@click.command()
@model_argument
@actor_option
@dry_run_option
@json_option
def undo(model: Path, actor: str, dry_run: bool, as_json: bool) -> None:
    """Undo the last change of MODEL, as rollback does without a REVISION; done twice, also the one before it.

    Each is a new revision, so that nothing is lost: rollback to the number of a change brings it back.
    """
    _go_back(model, None, None, actor, dry_run, as_json)


def _go_back(model: Path, revision: int | None, label: str | None, actor: str, dry_run: bool, as_json: bool) -> None:
    undone: Revision | None = None
    with open_store(model, dry_run=dry_run, actor=actor) as store:
        if revision is None and label is not None:
            revision = _revision_before(store, label)
        elif revision is None:
            undone = store.last_change()
            revision = undone.number - 1
        before = store.revision
        changes = _undone(store, revision, label)
        if dry_run:
            store.check_revision(revision, changes)
        else:
            store.undo() if undone else store.rollback(revision, label=label)
            changes = store.diff(before)
        number = None if dry_run else store.revision
    _write_changes(changes, number, as_json, model, undone)


@click.command()
@model_argument
@click.argument("name")
@click.argument("new_name")
@actor_option
@dry_run_option
@json_option
def rename(model: Path, name: str, new_name: str, actor: str, dry_run: bool, as_json: bool) -> None:
    """Give the label NAME the name NEW_NAME; its id, scores and history stay."""
    with open_store(model, dry_run=dry_run, actor=actor) as store:
        name = known_label(store.label_names, name, model)
        new_name = new_label_name(new_name, [label for label in store.label_names if label != name])
        if new_name in store.label_names:
            raise ConflictError(f"{model}: there is a label {new_name!r} already; choose another name")
        before = store.revision
        number = None if dry_run else store.rename(name, new_name)
        label = next(record.id for record in store.labels() if record.name in (name, new_name))
        changes = [LabelChange(label, "renamed", name, new_name)] if dry_run else store.diff(before)
    _write_changes(changes, number, as_json)


@click.command()
@model_argument
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@actor_option
@dry_run_option
@json_option
def retire(model: Path, names: tuple[str, ...], actor: str, dry_run: bool, as_json: bool) -> None:
    """Take labels out of MODEL; rollback brings them back."""
    with open_store(model, dry_run=dry_run, actor=actor) as store:
        chosen = list(dict.fromkeys(known_label(store.label_names, name, model) for name in names))
        if len(chosen) == len(store.label_names):
            raise DataError("a model needs at least one label; retire fewer", source=model)
        before = store.revision
        ids = {record.name: record.id for record in store.labels()}
        number = None if dry_run else store.retire(*chosen)
        changes = [LabelChange(ids[name], "retired", name, None) for name in chosen] if dry_run else store.diff(before)
    _write_changes(changes, number, as_json)


def _history_of(store: StoredModel, label: str | None) -> list[Revision]:
    """The revisions, or those of a label that is or was there."""
    try:
        return store.history(label)
    except NotFoundError as error:
        close = did_you_mean(label or "", store.label_names)
        if not close:
            raise
        raise NotFoundError(f"{error.args[0]}; {close}") from None


def _answers(store: StoredModel, revisions: list[Revision]) -> dict[int, str]:
    """Which answers to questions taught labels further, by the number of the revision."""
    if not any(one.action == "relearn" for one in revisions):
        return {}
    from streamlabel.tagging.examples import answers_by_revision  # with scikit-learn, which takes a second

    found = answers_by_revision(store, revisions)
    return {number: _in_words([yes for _, yes in answers]) for number, answers in found.items() if answers}


def _in_words(answers: list[bool | None]) -> str:
    said = "" if None in answers else ", " + ", ".join("yes" if yes else "no" for yes in answers)
    return f": {plural(len(answers), 'answer')}{said}"


def _revision_before(store: StoredModel, label: str) -> int:
    """The revision before a label's last change."""
    number = _history_of(store, label)[0].number - 1
    if number < min(revision.number for revision in store.history()):
        raise DataError(f"label {label!r} has not changed since the oldest revision; retire takes it out")
    return number


def _undone(store: StoredModel, revision: int, label: str | None) -> list[LabelChange]:
    """How the labels would change by going back; of one label only."""
    changes = store.diff(store.revision, revision)
    if label is None:
        return changes
    _history_of(store, label)
    named = [change for change in changes if change.kind in ("added", "retired", "renamed")]
    mine = {one.id for one in store.labels() if one.name == label} or {
        change.id for change in named if label in (change.before, change.after)
    }
    return [change for change in changes if change.id in mine]


def _write_changes(
    changes: list[LabelChange],
    number: int | None,
    as_json: bool,
    model: Path | None = None,
    undone: Revision | None = None,
) -> None:
    """Write what became of labels; of ``undone``, the change of ``model`` that was undone, also how to redo it."""
    data: dict[str, Any] = {"revision": number, "dry_run": number is None, "changes": _as_data(changes)}
    last = "nothing was changed (--dry-run)" if number is None else f"on the disk as revision {number}"
    lines = [_as_text(changes), last]
    if undone is not None:
        data["undone"] = dataclasses.asdict(undone)
        did = "would undo" if number is None else "undid"
        lines.insert(0, f"{did} revision {undone.number}: {undone.action} {_detail(undone)}".rstrip())
        if number is not None:
            lines.append(f"'streamlabel rollback {model} {undone.number}' brings it back")
    write(data, as_json=as_json, text=lambda: "\n".join(lines))


def _as_data(changes: Iterable[LabelChange]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(change) for change in changes]


def _as_text(changes: list[LabelChange]) -> str:
    if not changes:
        return "no label differs"
    rows = [[change.kind, str(change.id), change.before or "", change.after or ""] for change in changes]
    return format_table(["change", "id", "before", "after"], rows, right=(1,))


def _detail(revision: Revision) -> str:
    detail = revision.detail if isinstance(revision.detail, dict) else {}
    if revision.action == "rename":
        return f"{detail.get('label')} -> {detail.get('to')}"
    if revision.action in ("relearn", "threshold"):
        return " to ".join(str(detail[key]) for key in ("label", "to") if key in detail)
    if revision.action == "rollback":
        return f"{detail['label']} to revision {detail.get('to')}" if "label" in detail else f"to {detail.get('to')}"
    named = detail.get("labels")
    if isinstance(named, list):
        more = int(detail.get("n", len(named))) - SHOWN
        into = f" -> {detail['into']}" if "into" in detail else ""
        return ", ".join(map(str, named[:SHOWN])) + (f" and {more} more" if more > 0 else "") + into
    if isinstance(named, int):
        return plural(named, "label")
    return ", ".join(f"{key} {value}" for key, value in detail.items())


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
    from streamlabel.store.doctor import HISTORY, examine

    findings = examine(model, repair=repair)
    healthy = all(finding.repaired or finding.kind == HISTORY for finding in findings)
    data = {"healthy": healthy, "findings": [dataclasses.asdict(finding) for finding in findings]}
    old = [finding for finding in findings if finding.kind == HISTORY]
    write(data, as_json=as_json, text=lambda: _text(model, findings, old))
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
    with open_store(model, dry_run=dry_run, actor=actor) as store:
        numbers = [revision.number for revision in store.history()]
        forgotten = [number for number in numbers if number < (keep_from or store.revision)]
        freed = None if dry_run else store.vacuum(keep_from=keep_from)
    data = {"forgotten": sorted(forgotten), "freed_bytes": freed, "dry_run": dry_run}
    what = plural(len(forgotten), "revision")
    said = f"would forget {what} (--dry-run)" if freed is None else f"forgot {what}, freed {megabytes(freed)}"
    write(data, as_json=as_json, text=lambda: said)


def _text(model: Path, findings: list[Finding], old: list[Finding]) -> str:
    lines = [f"{one.where}: {one.problem}; {one.remedy}" for one in findings]
    if any(not one.repaired for one in findings if one not in old):
        lines.append(
            f"{plural(len(findings), 'finding')}; 'streamlabel doctor {model} --repair' mends what can be mended"
        )
    elif old:
        lines.append(
            f"the newest revision is whole; what is left ({plural(len(old), 'finding')}) is of older ones only: "
            f"'streamlabel vacuum {model}' forgets these"
        )
    try:
        with StoredModel.read(model) as store:
            n_labels, sizes = len(store.label_names), store.sizes()
    except StreamlabelError:
        return "\n".join(lines)
    state = f"revision {store.revision}, {plural(n_labels, 'label')}, {megabytes(sizes.total)}"
    return "\n".join([*lines, f"{model}: {'all is whole; ' if not findings else ''}{state}"])
