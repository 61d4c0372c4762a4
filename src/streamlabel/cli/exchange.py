"""``streamlabel import`` and ``export``: answers from annotation tools, models for other tools."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from streamlabel.cli.add_label import open_model, report_data
from streamlabel.cli.models import actor_option, dry_run_option, model_argument
from streamlabel.cli.output import estimate_lines, fires_lines, format_table, json_option, note, plural, write
from streamlabel.data.annotations import TOOLS, Annotations, load_annotations
from streamlabel.errors import ConflictError, NotFoundError, did_you_mean
from streamlabel.exchange.export import FORMATS, export, format_of_ending
from streamlabel.tagging.import_plan import begin_tagger, carry_out, plan_import
from streamlabel.tagging.tagger import Tagger


@click.command("import")
@model_argument
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format", "tool", type=click.Choice(["auto", *TOOLS]), default="auto", show_default=True, help="The tool."
)
@click.option("--text", metavar="FIELD", help="The field with the text.")
@click.option("--question", metavar="NAME", help="The control or question to read, where there are several.")
@click.option(
    "--empty",
    type=click.Choice(["unknown", "no"]),
    default="unknown",
    show_default=True,
    help="What a text without labels means, where the tool does not say.",
)
@click.option("--label", "only", multiple=True, metavar="NAME", help="Only these labels; may be given several times.")
@actor_option
@dry_run_option
@json_option
def import_answers(
    model: Path, files: tuple[str, ...], tool: str, text: str | None, question: str | None, empty: str,
    only: tuple[str, ...], actor: str, dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Learn from what annotation tools export: doccano, Prodigy, Label Studio, Argilla, Annif.

    A MODEL that is there learns the labels that it does not know, from the answers in FILE. A new one is fitted on the
    labels that were asked of every answered text, and then learns the others from theirs. What was not asked is
    unknown, not no; but for a label with fewer no than yes some other texts are taken for no, and it is said. Labels
    that are known already are left as they are.
    """
    read = load_annotations(list(files), tool, text_field=text, question=question, empty=empty)
    for name in only:
        if name not in read.dataset.label_names:
            hint = did_you_mean(name, read.dataset.label_names) or f"it has {read.dataset.n_labels} others"
            raise NotFoundError(f"{read.dataset.source}: no label is called {name!r}; {hint}")
    with ExitStack() as stack:
        exists = model.exists()
        living = stack.enter_context(Tagger.open(model, "r" if dry_run else "a", actor=actor)) if exists else None
        plan = plan_import(read, None if living is None else living.label_names_, only)
        found: dict[str, Any] = {
            "model": str(model),
            "n_texts": read.dataset.n_rows,
            "n_unanswered": len(read.unanswered),
            "n_ties": read.n_ties,
            "labels": [
                {"label": name, "n_yes": plan.n_yes[name], "n_no": plan.n_no[name], "what": plan.what(name)}
                for name in plan.n_yes
            ],
        }
        if not dry_run:
            note(f"learning {plural(len(plan.fitted) + len(plan.learned), 'label')} ...")
            living = living or stack.enter_context(begin_tagger(plan, read, model, actor=actor))
            reports, revision = carry_out(plan, read, living), living.store.revision
            found |= {"revision": revision, "learned": [report_data(report, revision) for report in reports]}
    write(found | {"dry_run": dry_run}, as_json=as_json, text=lambda: _import_text(found, read, dry_run))


@click.command("export")
@model_argument
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--to", type=click.Choice(list(FORMATS)), help="The format; by default told by the ending.")
@click.option("-k", type=click.IntRange(min=1), help="For ONNX: so many label names a row.")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@dry_run_option
@json_option
def export_model(
    model: Path, out: Path, to: str | None, k: int | None, force: bool, dry_run: bool, as_json: bool
) -> None:
    """Write MODEL for another tool: csv, jsonl, npz, safetensors, skops, onnx, or a directory for MLflow.

    csv and jsonl are tables about the labels; the others predict. 'streamlabel import' does not read them: a model
    that goes on learning is its directory, which can be copied.
    """
    store, tagger = open_model(model)
    n_labels = len(store.label_names)
    if out.exists() and not force:
        raise ConflictError(f"{out} is there already; --force overwrites a file")
    format = to or format_of_ending(out)
    if format is None:
        raise click.UsageError(f"the ending {out.suffix!r} is not known; --to gives the format: {', '.join(FORMATS)}")
    if k is not None and format != "onnx":
        raise click.UsageError("-k is for ONNX")
    if not dry_run:
        export(tagger or store, out, format, **({} if k is None else {"k": k}))
    data = {"model": str(model), "path": str(out), "n_labels": n_labels, "dry_run": dry_run}
    did = "would write" if dry_run else "wrote"
    write(data, as_json=as_json, text=lambda: f"{did} {plural(n_labels, 'label')} to {out}")


def _import_text(found: dict[str, Any], read: Annotations, dry_run: bool) -> str:
    rows = [[one["label"], str(one["n_yes"]), str(one["n_no"]), one["what"]] for one in found["labels"]]
    lines = [
        f"{plural(read.dataset.n_rows, 'text')}, {len(read.unanswered)} of them without an answer",
        format_table(["label", "yes", "no", "would be" if dry_run else ""], rows, right=(1, 2)),
    ]
    for one in found.get("learned", ()):
        lines += [
            f"{one['name']}: {line}" for line in (*fires_lines(one["fires"], "text"), *estimate_lines(one["estimate"]))
        ]
    lines.append("nothing was changed (--dry-run)" if dry_run else f"on the disk as revision {found['revision']}")
    return "\n".join(lines)
