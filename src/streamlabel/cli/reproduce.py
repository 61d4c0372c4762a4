"""``streamlabel reproduce NAME``: the experiments, each from one command, and ``report``: their records as one page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from joblib import cpu_count

from streamlabel.cli.group import ExitCode, LazyCommand, StreamlabelGroup
from streamlabel.cli.output import json_option, note, plural, remark, run_progress, write
from streamlabel.experiments.experiment import EXPERIMENTS, Experiment, Key, Option, Registered, Setting
from streamlabel.experiments.provenance import read_origin, source_commit
from streamlabel.experiments.record_file import RecordFile
from streamlabel.experiments.report import Report, write_report, write_results
from streamlabel.experiments.runner import planned, run_experiment, writing
from streamlabel.experiments.sets import NEWS_CORPUS, quick_sets, resolve_sets

__all__ = ["report", "reproduce"]

_GIVEN = "streamlabel.given"


@dataclass(frozen=True)
class _ExperimentCommand(LazyCommand):
    """The command of a registered experiment, made when it is called."""

    registered: Registered

    def load(self) -> click.Command:
        return _command(self.registered.load())


_LAZY: dict[str, LazyCommand] = {
    **{name: _ExperimentCommand(found.target, found.summary, found) for name, found in EXPERIMENTS.items()},
    "report": LazyCommand("streamlabel.cli.reproduce:report", "One page of all experiments that were run."),
}


@click.group(cls=StreamlabelGroup, lazy=_LAZY)
def reproduce() -> None:
    """Run an experiment and write its records, tables and pictures.

    The main evidence is budget. With --quick an experiment takes seconds to a minute and shows how it works; without,
    from seconds (table3) to hours (table2 on large sets). An interrupted run goes on where it stopped when the same
    command is given again.
    """


def _command(experiment: Experiment[Any, Any]) -> click.Command:
    name, sets = experiment.name, ", ".join(experiment.datasets)
    quick = ", ".join(one for one in experiment.quick_datasets if one != NEWS_CORPUS)
    quick = f"{quick} (or the embedded texts)" if quick else "the embedded texts"
    parameters: list[click.Parameter] = [
        click.Option(
            ["--dataset", "datasets"],
            multiple=True,
            metavar="NAME",
            help=f"A set of the catalogue; may be given several times. [default: {sets}]",
        ),
        click.Option(
            ["--seeds"],
            type=click.IntRange(min=1),
            help=f"How many draws, numbered from 0. [default: {experiment.seeds}]",
        ),
        *(_own_option(option) for option in experiment.options),
        click.Option(
            ["--quick"], is_flag=True, help=f"A small grid on {quick}, {plural(experiment.quick_seeds, 'seed')}."
        ),
        click.Option(
            ["--jobs"],
            type=click.IntRange(min=1),
            help="Worker processes. "
            + ("[default: 1, as times are measured]" if experiment.measures_times else "[default: one a core]"),
        ),
        click.Option(
            ["--out"],
            type=_Folder(file_okay=False, path_type=Path),
            default=Path("results"),
            show_default=True,
            help=f"The folder for {name}.jsonl (one record a run), {name}.md, {name}.json and pictures.",
        ),
    ]
    command = _Command(name, callback=_callback(experiment), params=parameters, help=experiment.explanation)
    return json_option(command)


def _own_option(option: Option) -> click.Option:
    if option.parse is None:
        return click.Option([f"--{option.name}"], is_flag=True, help=option.help)
    parse = option.parse

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return click.Option([f"--{option.name}"], metavar=option.metavar, callback=read, help=option.help)


def _callback(experiment: Experiment[Any, Any]) -> Callable[..., None]:
    def call(
        datasets: tuple[str, ...],
        seeds: int | None,
        quick: bool,
        jobs: int | None,
        out: Path,
        as_json: bool,
        **own: Any,
    ) -> None:
        if quick and not datasets:
            sets = quick_sets(experiment.quick_datasets)
        else:
            sets = resolve_sets(datasets or experiment.datasets)
        n_seeds = seeds or (experiment.quick_seeds if quick else experiment.seeds)
        given = {name: value for name, value in own.items() if value not in (None, False)}
        setting = Setting(sets, tuple(range(n_seeds)), quick, given)
        n_jobs = jobs or (1 if experiment.measures_times else cpu_count())
        command = _as_given(click.get_current_context(), experiment.measures_times)
        plan = planned(experiment, setting)
        with writing(experiment, out) as file, _saying_what_is_kept(file):
            if n_before := len(file.records):
                note(f"{n_before} records are already in {file.path}; they are not computed again")
            if file.was_cut:
                remark(f"{file.path}: the last line was incomplete and is dropped")
            keys = [key for one in plan for key in one.keys]
            _say_other_commits(file, keys)
            with run_progress(experiment.name, len(keys), sum(key in file for key in keys)) as progress:
                run_experiment(experiment, plan, file, n_jobs, progress, command)
            outcome = write_results(experiment, file, out, command)
        note(f"written: {', '.join(str(path) for path in outcome.files)}")
        if as_json or outcome.text:
            write(outcome.data, as_json=as_json, text=outcome.text.rstrip)
        if outcome.missing:
            click.echo(outcome.missing, err=True)

    return call


def _say_other_commits(file: RecordFile[Any], keys: list[Key]) -> None:
    """Where other code made records that go into the page; at the start, as a checkout may change during the run."""
    here = source_commit()
    others = [one for one in read_origin(file.path.with_suffix(".run.json")).commits if one != here]
    if here and others and file.records:
        what = "those of this run" if any(key not in file for key in keys) else "the page of this run is made"
        there = f"{file.path}: records there were made at commit {', '.join(others)} of streamlabel"
        remark(f"{there}, {what} at {here}; --out with another folder keeps them apart")


@contextmanager
def _saying_what_is_kept(file: RecordFile[Any]) -> Iterator[None]:
    """After an interrupt, how much of the work is there."""
    try:
        yield
    except KeyboardInterrupt:
        n_kept = len(file.records)
        kept = f"{file.path} keeps {plural(n_kept, 'finished record')}" if n_kept else "no record was finished"
        remark(f"interrupted: {kept}; the same command goes on")
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None


class _Command(click.Command):
    """A command that keeps its arguments as they were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_GIVEN] = list(args)
        return super().parse_args(ctx, args)


class _Folder(click.Path):
    """A folder with a name: an empty one would silently be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name of the folder is empty; '.' is the current one", param, ctx)
        return super().convert(value, param, ctx)


def _as_given(ctx: click.Context, jobs_matter: bool) -> str:
    """The command line that gives these results again, less what does not matter to them: folder, --json, workers."""
    dropped = ("--out",) if jobs_matter else ("--out", "--jobs")
    words = iter(ctx.meta[_GIVEN])
    kept = []
    for word in words:
        name, joined, _ = word.partition("=")
        if name in dropped:
            if not joined:
                next(words)
        elif name != "--json":
            kept.append(word)
    return shlex.join(["streamlabel", "reproduce", str(ctx.info_name), *kept])


_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("report")
@click.option("--from", "folder", type=_FOLDER, default=Path("results"), show_default=True, help="The records.")
@click.option("--out", type=_FILE, help="The page. [default: results.md in the folder of the records]")
@click.option(
    "--pictures",
    type=_FOLDER,
    help="The folder for pictures. [default: that of the records; with --out, _static/results beside the page]",
)
@click.option(
    "--template",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The words of the page: Markdown with places for tables and pictures. [default: one for any records]",
)
@click.option("--pages", type=_FOLDER, help="A folder for the page of every experiment, with all its tables.")
@json_option
def report(
    folder: Path, out: Path | None, pictures: Path | None, template: Path | None, pages: Path | None, as_json: bool
) -> None:
    """Make one page of all experiments that have records in a folder.

    Tables and pictures are made anew; nothing is run and nothing is fetched. The page says where the learner wins, ties
    and loses against each competitor, and which experiments were not run.
    """
    page = out or folder / "results.md"
    usual = folder if out is None else out.parent / "_static" / "results"
    found = write_report(folder, page, pictures or usual, template, pages=pages)
    if found.missing:
        click.echo(found.missing, err=True)
    write(found.data, as_json=as_json, text=lambda: _as_text(found, page))


def _as_text(found: Report, out: Path) -> str:
    lines = [f"{name}: {one['n_records']} records" for name, one in found.data["experiments"].items()]
    lines += [f"{name}: not run" for name in found.not_run]
    return "\n".join([*lines, f"written: {out}"])
