"""``streamlabel add-label``: one more label, from a few answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click

from streamlabel.cli.models import actor_option, dry_run_option, has_texts, known_label, model_argument, new_label_name
from streamlabel.cli.options import FileOptions, file_options, read_set, read_texts, say_guess
from streamlabel.cli.output import fires_lines, json_option, plural, write
from streamlabel.data.files import source_name
from streamlabel.data.load import TextRow
from streamlabel.errors import ConflictError, DataError, NotFoundError, did_you_mean
from streamlabel.store.model_store import ModelStore
from streamlabel.store.stored_rows import LEARNING
from streamlabel.tagging import learn_report
from streamlabel.tagging.learn_report import LearnReport, count_fires
from streamlabel.tagging.tagger import Tagger
from streamlabel.types import Dataset, TextDataset

Sides: TypeAlias = tuple[list[str], list[str]]  # texts for yes, and for no
YES = {"1", "1.0", "yes", "y", "true", "t", "accept", "x"}
NO = {"0", "0.0", "no", "n", "false", "f", "reject"}
UNKNOWN = {"", "none", "null", "nan", "?", "unknown", "ignore"}
SHOWN_WORDS = 8


@click.command("add-label")
@model_argument
@click.argument("name")
@click.option("--yes", metavar="FILE", help="Texts that it applies to: one a line, JSONL or CSV.")
@click.option("--no", metavar="FILE", help="Texts that it does not apply to.")
@click.option("--file", metavar="FILE", help="Texts or rows with an answer each, instead of --yes and --no.")
@click.option(
    "--column", metavar="NAME", help="The column of --file with the answers (yes, no, 1, 0; empty: not asked)."
)
@file_options()
@click.option("--about", metavar="TEXT", default="", help="What the label means, in a few words: read with its name.")
@click.option(
    "--pool", metavar="FILE", help="Texts as they come now, that nobody has looked at: the label is judged by them."
)
@click.option("--sampled", is_flag=True, help="The answers are those of texts drawn at random, all of them.")
@click.option("--more", is_flag=True, help="Add these answers to those that a label has, and learn it again.")
@click.option("--replace", is_flag=True, help="Learn a label that is known anew, from these answers alone.")
@actor_option
@dry_run_option
@json_option
def add_label(
    model: Path, name: str, yes: str | None, no: str | None, file: str | None, column: str | None,
    about: str, pool: str | None, sampled: bool, more: bool, replace: bool, actor: str, dry_run: bool, as_json: bool,
    **arguments: Any,
) -> None:  # fmt: skip
    """Learn the label NAME, and store it; it is on the disk when the command returns.

    The other labels stay as they are, to the last bit of every score. The name alone is enough to begin with, if trials
    on the labels that are known say that names are worth something here. Better are a few texts that it applies to
    (--yes), perhaps some that it does not (--no), or --file: a file with a column of answers (--column), or with tags,
    NAME among them (a text without it is a no).

    How often the label applies, its threshold and how good it is are told by texts that nobody has looked at: those of
    --pool (this week's, say), or those of fit. With --dry-run it is learned and reported, and not stored.
    """
    if file is not None and (yes is not None or no is not None):
        raise click.UsageError("give the answers once: --yes FILE and --no FILE, or --file FILE")
    if more and replace:
        raise click.UsageError(
            "--more keeps the answers that a label has, and --replace forgets them; give one of the two"
        )
    options = FileOptions.of(arguments)
    store, tagger = open_model(model, "a", actor=actor)
    with store:
        names = store.label_names
        name = known_label(names, name.strip(), model) if replace or more else new_label_name(name, names)
        if name in names and not (replace or more):
            problem = (
                f"label {name!r} is known already; --more adds these answers to those it has, --replace begins anew"
            )
            raise ConflictError(f"{model}: {problem}")
        if tagger is not None:
            answers: Sides = ([], [])
            if yes is not None or no is not None or file is not None:
                answers = _answers(name, yes, no, file, column, options)
            given: dict[str, Any] = {"about": about}
            if pool is not None:
                given["pool"] = [row.text for row in _rows(pool, options)]
            if sampled:
                given["sampled"] = True
            found = _learn_texts(tagger, name, answers, given, replace=replace, more=more, dry_run=dry_run)
        else:
            if file is None or replace or more or pool is not None or about:
                problem = "it takes rows of numbers: give --file, and nothing that is for texts"
                raise DataError(problem, source=model)
            data, _ = read_set(file, options, n_features=store.n_features)
            found = _learn_rows(store, name, data, column or name, dry_run=dry_run)
    write(found, as_json=as_json, text=lambda: "\n".join(report_lines(found, "row" if tagger is None else "text")))


def open_model(path: Path, mode: str = "r", *, actor: str = "") -> tuple[ModelStore, Tagger | None]:
    """The stored model, and as a tagger where it takes texts."""
    store = ModelStore.open(path, mode, actor=actor)
    try:
        return store, Tagger.of_store(store) if has_texts(store) else None
    except BaseException:
        store.close()
        raise


def _learn_texts(
    tagger: Tagger, name: str, answers: Sides, given: dict[str, Any], *, replace: bool, more: bool, dry_run: bool
) -> dict[str, Any]:
    store = tagger.store
    if dry_run:
        tagger = tagger.in_memory()
    if more and given.pop("sampled", False):
        raise click.UsageError("--sampled is for all answers of a label at once; leave out --more")
    learn: Callable[..., LearnReport] = tagger.learn_more if more else tagger.relearn if replace else tagger.learn
    report = learn(name, *answers, **given)
    return report_data(report, None if dry_run else store.revision)


def _learn_rows(
    store: ModelStore, name: str, data: Dataset | TextDataset, column: str, *, dry_run: bool
) -> dict[str, Any]:
    if isinstance(data, TextDataset):
        raise DataError("holds texts, and the model takes rows of numbers", source=data.source)
    if column not in data.label_names:
        raise NotFoundError(f"{data.source}: no label is called {column!r}; --column says which one has the answers")
    answers = data.Y[:, [data.label_names.index(column)]]
    begin = time.perf_counter()
    kept_dense = LEARNING in store.parts() and not store.get_part(LEARNING).content["sparse"]
    X = data.X.toarray() if kept_dense else data.X  # rows of fit are recognised in the form in which they are kept
    if dry_run:
        grown = store.model().add_labels(X, answers, [name])
    else:
        store.add_labels(X, answers, [name])
        grown = store.model()
    learned = grown.reports_[-1]
    report = LearnReport(
        name, learned.n_yes, learned.n_rows - learned.n_yes, 0, tuple(grown.neighbours(name)),
        bool(learned.anchored or learned.share), float(grown.thresholds_[-1]), time.perf_counter() - begin,
        count_fires(grown, len(grown.label_names_) - 1),
    )  # fmt: skip
    return report_data(report, None if dry_run else store.revision)


def _answers(
    name: str, yes: str | None, no: str | None, file: str | None, column: str | None, options: FileOptions
) -> Sides:
    """The texts for yes and for no."""
    if file is None:
        if yes == no == "-":
            raise DataError("only one of --yes and --no can be standard input")
        given, refused = ([] if path is None else _rows(path, options) for path in (yes, no))
        return _sides(given, refused, yes or "", no or "")
    if column is not None:
        return _sides(*_split(read_texts(file, options, column), file, column), file, file)
    data, columns = read_set(file, options)
    say_guess(file, columns)
    if not isinstance(data, TextDataset):
        raise DataError("holds rows of numbers, and the model takes texts", source=file)
    if name not in data.label_names:
        where = "its tags" if columns is None or columns.labels is None else f"the tags in {columns.labels!r}"
        hint = did_you_mean(name, data.label_names) or "--column says which column has the answers"
        raise NotFoundError(f"{file}: {name!r} is not among {where}; {hint}")
    applies = data.Y[:, [data.label_names.index(name)]].toarray()[:, 0] > 0
    sides: Sides = ([], [])
    for text, yes_ in zip(data.texts, applies, strict=True):
        sides[0 if yes_ else 1].append(text)
    return sides


def _rows(path: str, options: FileOptions) -> list[TextRow]:
    rows = list(read_texts(path, options))
    if not rows:
        raise DataError("holds no texts; is it the right file, and whole?", source=source_name(path))
    return rows


def _sides(yes: list[TextRow], no: list[TextRow], yes_file: str, no_file: str) -> Sides:
    """The texts; DataError where one is on both sides."""
    lines = {row.text: row.line for row in yes}
    for row in no:
        if row.text in lines:
            where = f"{source_name(yes_file)}, line {lines[row.text]}"
            problem = f"{row.text[:60]!r} is a no here and a yes in {where}; keep one of the two"
            raise DataError(problem, source=source_name(no_file), line=row.line)
    return [row.text for row in yes], [row.text for row in no]


def _split(rows: Iterable[TextRow], source: str, column: str) -> tuple[list[TextRow], list[TextRow]]:
    sides: dict[bool, list[TextRow]] = {True: [], False: []}
    for row in rows:
        said = "" if row.other is None else str(row.other).strip().lower()
        if said in UNKNOWN:
            continue
        if said not in YES | NO:
            problem = f"{str(row.other)[:40]!r} in {column!r} is no answer; use yes, no, or nothing (not asked)"
            raise DataError(problem, source=source, line=row.line)
        sides[said in YES].append(row)
    if not sides[True] and not sides[False]:
        raise DataError(f"no answer in {column!r}", source=source)
    return sides[True], sides[False]


def report_data(report: LearnReport, revision: int | None) -> dict[str, Any]:
    """A report for `report_lines` and for JSON; revision None: it was not stored."""
    return learn_report.report_data(report) | {"revision": revision}


def report_lines(found: dict[str, Any], unit: str = "text") -> list[str]:
    stored = "not stored (--dry-run)" if found["revision"] is None else f"on the disk as revision {found['revision']}"
    gain = f" (worth {found['clarity']['gain']:.1f} points in trials)" if found["clarity"] else ""
    past = f"the past was used{gain}" if found["used_past"] else "its classifier was learned from its own answers alone"
    given = f"{found['n_yes']} yes and {found['n_no']} no"
    if found["estimate"] is not None:
        parts = [given if found["n_yes"] or found["n_no"] else ""]
        parts += [f"its name (names are worth {found['name_gain']:.1f} points in trials)"] if found["name_gain"] else []
        given = " and ".join(part for part in parts if part)
        past = "the past was used" if found["used_past"] else "the past was not used"
    return [
        f"learned {found['name']!r} from {given} in {found['seconds']:.2f} s; {stored}",
        *_likeness(found["neighbours"], used=found["used_past"]),
        f"{past}; yes is a score above {found['threshold']:.3f}",
        *fires_lines(found["fires"], unit, found["pool"]),
        *estimate_lines(found["estimate"]),
        *_unknown_lines(found["n_unknown_words"], found["unknown_words"]),
    ]


def estimate_lines(estimate: dict[str, Any] | None) -> list[str]:
    """How good a label is thought to be, in words."""
    if estimate is None:
        return []
    rate, recall, precision = (estimate[key] for key in ("rate", "recall", "precision"))
    right = "it never says yes there" if precision is None else f"of its yes about {_interval(precision)} are right"
    lines = [
        f"{right}; it finds about {_interval(recall)} of the texts it applies to (about {_interval(rate, 1)} of all)"
    ]
    if precision is not None and precision["low"] < 0.5:
        lines.append("answer some questions to be surer: 'streamlabel next'")
    return lines


def _interval(value: dict[str, float], digits: int = 0) -> str:
    return f"{value['value']:.{digits}%} ({value['low']:.{digits}%} to {value['high']:.{digits}%})"


def _unknown_lines(number: int, words: Sequence[str]) -> list[str]:
    """Which words of the answers count for nothing, and what to do about it."""
    if not number:
        return []
    shown = ", ".join(words[:SHOWN_WORDS]) + (", ..." if number > SHOWN_WORDS else "")
    are, they = ("is", "it is") if number == 1 else ("are", "they are")
    what = f"{plural(number, 'word')} of the yes texts {are} not known to the model: {shown}"
    return [f"{what}; {they} ignored (fit again, or fit with --vectorizer hashing)"]


def _likeness(neighbours: list[dict[str, Any]], *, used: bool) -> list[str]:
    """What it resembles; where its classifier does not lean on that, only which labels have such answers."""
    like, unlike = (
        ", ".join(f"{near['label']} ({near['weight']:+.2f})" for near in neighbours if (near["weight"] > 0) is positive)
        for positive in (True, False)
    )
    words = ("it resembles", "it is unlike") if used else ("its answers go with", "its answers go against")
    if not used and not neighbours:
        return []
    parts = [f"{words[0]} {like or 'no label that is known'}"] if like or used else []
    return ["; ".join([*parts, *([f"{words[1]} {unlike}"] if unlike else [])])]
