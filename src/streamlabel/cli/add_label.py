"""``streamlabel add-label`` and ``next``: one more label, from a few answers, and what to ask about it next."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import click

from streamlabel.cli.models import actor_option, dry_run_option, has_texts, known_label, model_argument, new_label_name
from streamlabel.cli.options import FileOptions, file_options, read_set, read_texts, say_guess, text_rows
from streamlabel.cli.output import GUESS, estimate_lines, fires_lines, json_option, note, percent_of, plural, write
from streamlabel.data.csv_table import guarded
from streamlabel.data.files import replacing, source_name
from streamlabel.data.load import TextRow
from streamlabel.errors import ConflictError, DataError, NotFoundError, did_you_mean
from streamlabel.store.model_store import ModelStore
from streamlabel.tagging import learn_report
from streamlabel.tagging.learn_report import LearnReport
from streamlabel.tagging.names import spelled
from streamlabel.tagging.questions import Question
from streamlabel.tagging.tagger import Tagger
from streamlabel.tagging.text_answers import ENOUGH, TextIndex
from streamlabel.types import Dataset, TextDataset

Sides: TypeAlias = tuple[list[str], list[str]]  # texts for yes, and for no
YES = {"1", "1.0", "yes", "y", "true", "t", "accept", "x"}
NO = {"0", "0.0", "no", "n", "false", "f", "reject"}
UNKNOWN = {"", "none", "null", "nan", "?", "unknown", "ignore"}
SHOWN_WORDS = 8
SHOWN, SHOWN_TO_ASK = 200, 600  # characters of a text
SHOWN_WEIGHT = 0.05  # of a label whose answers are alike, where the past was not used
BY_MEANING = "a model of 'fit --names static' (extra 'names') reads names by their meaning"
NOTHING_LEFT = "no text of the pool is left to ask about"


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
@click.option("--asked", is_flag=True, help="With --more: these texts were put as questions (see next).")
@click.option("--replace", is_flag=True, help="Learn a label that is known anew, from these answers alone.")
@actor_option
@dry_run_option
@json_option
def add_label(
    model: Path, name: str, yes: str | None, no: str | None, file: str | None, column: str | None,
    about: str, pool: str | None, sampled: bool, more: bool, asked: bool, replace: bool, actor: str, dry_run: bool,
    as_json: bool, **arguments: Any,
) -> None:  # fmt: skip
    """Learn the label NAME, and store it; it is on the disk when the command returns.

    The other labels stay as they are, to the last bit of every score. The name alone is enough to begin with, if trials
    on the labels that are known say that names are worth something here. Better are a few texts that it applies to
    (--yes), perhaps some that it does not (--no), or --file: a file with a column of answers (--column), or with tags,
    NAME among them (a text without it is a no).

    How often the label applies, its threshold and how good it is are told by texts that nobody has looked at: those of
    --pool (this week's, say), or those of fit. With --dry-run it is learned and reported, and not stored.

    --more adds to the answers that a label has; of two answers to the same text the newer one counts. With --asked they
    are those of texts that were not chosen because of their answer (next --out FILE writes some): only such answers
    tell how often the label is right.
    """
    if file is not None and (yes is not None or no is not None):
        raise click.UsageError("give the answers once: --yes FILE and --no FILE, or --file FILE")
    if more and replace:
        raise click.UsageError(
            "--more keeps the answers that a label has, and --replace forgets them; give one of the two"
        )
    if asked and not more:
        raise click.UsageError("--asked says how the answers of --more came about; give both")
    if more and sampled:
        raise click.UsageError("--sampled is for all answers of a label at once; leave out --more")
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
        if more:
            _check_kept(store, name, model)
        if tagger is not None:
            answers: Sides = ([], [])
            if yes is not None or no is not None or file is not None:
                answers = _answers(name, yes, no, file, column, options)
            given: dict[str, Any] = {"about": about}
            if pool is not None:
                given["pool"] = [row.text for row in text_rows(pool, options)]
            given |= {"sampled": True} if sampled else {"asked": True} if asked else {}
            found = _learn_texts(tagger, name, answers, given, replace=replace, more=more, dry_run=dry_run)
        else:
            if file is None or replace or more or pool is not None or about:
                problem = "it takes rows of numbers: give --file, and nothing that is for texts"
                raise DataError(problem, source=model)
            data, _ = read_set(file, options, n_features=store.n_features)
            found = _learn_rows(store, name, data, column or name, dry_run=dry_run)
    unit = "row" if tagger is None else "text"
    write(found, as_json=as_json, text=lambda: "\n".join(report_lines(found, unit, about)))


def _told(record: logging.LogRecord) -> bool:
    """Show what is logged to a person who waits, instead of logging it."""
    note(record.getMessage())
    return False


def open_model(path: Path, mode: str = "r", *, actor: str = "") -> tuple[ModelStore, Tagger | None]:
    """The stored model, and as a tagger where it takes texts."""
    waiting = logging.getLogger("streamlabel.trials")
    waiting.setLevel(logging.INFO)
    waiting.filters = [_told]
    store = ModelStore.open(path, mode, actor=actor)
    try:
        return store, Tagger.of_store(store) if has_texts(store) else None
    except BaseException:
        store.close()
        raise


def _check_kept(store: ModelStore, label: str, model: Path) -> None:
    """An error unless the answers that a label was learned from are kept, so that others can be added."""
    if store.beside(store.label_names.index(label)):
        return
    record = next(one for one in store.labels() if one.name == label)
    why = (
        "was learned by fit, from all of its texts; fit again to change it" if record.origin == "fit" else
        "has no answers that are kept; 'add-label --replace' learns it anew, from all of its answers"
    )  # fmt: skip
    raise ConflictError(f"{model}: label {label!r} {why}")


def _learn_texts(
    tagger: Tagger, name: str, answers: Sides, given: dict[str, Any], *, replace: bool, more: bool, dry_run: bool
) -> dict[str, Any]:
    store = tagger.store
    if dry_run:
        tagger = tagger.in_memory()
    learn: Callable[..., LearnReport] = tagger.learn_more if more else tagger.relearn if replace else tagger.learn
    try:
        return report_data(learn(name, *answers, **given), None if dry_run else store.revision)
    except DataError as error:
        if f"label {name!r} has no yes example" not in error.problem or tagger.names == "static":
            raise
        raise DataError(f"{error.problem}; {BY_MEANING}") from None


def _learn_rows(
    store: ModelStore, name: str, data: Dataset | TextDataset, column: str, *, dry_run: bool
) -> dict[str, Any]:
    if isinstance(data, TextDataset):
        raise DataError("holds texts, and the model takes rows of numbers", source=data.source)
    if column not in data.label_names:
        raise NotFoundError(f"{data.source}: no label is called {column!r}; --column says which one has the answers")
    answers = data.Y[:, [data.label_names.index(column)]]
    report = learn_report.learn_rows(store, name, data.X, answers, dry_run=dry_run)
    return report_data(report, None if dry_run else store.revision)


def _answers(
    name: str, yes: str | None, no: str | None, file: str | None, column: str | None, options: FileOptions
) -> Sides:
    """The texts for yes and for no."""
    if file is None:
        if yes == no == "-":
            raise DataError("only one of --yes and --no can be standard input")
        given, refused = ([] if path is None else text_rows(path, options) for path in (yes, no))
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


def report_lines(found: dict[str, Any], unit: str = "text", about: str = "") -> list[str]:
    stored = "not stored (--dry-run)" if found["revision"] is None else f"on the disk as revision {found['revision']}"
    gain = f" (worth {found['clarity']['gain']:.1f} points in trials)" if found["clarity"] else ""
    past = f"the past was used{gain}" if found["used_past"] else "its classifier was learned from its own answers alone"
    given = f"{found['n_yes']} yes and {found['n_no']} no"
    if found["pool"]:
        parts = [given if found["n_yes"] or found["n_no"] else ""]
        parts += [f"its name (names are worth {found['name_gain']:.1f} points in trials)"] if found["name_gain"] else []
        given = " and ".join(part for part in parts if part)
        past = "the past was used" if found["used_past"] else "the past was not used"
    others = f"; {found['n_background']:,} others stood for no" if found["pool"] and found["n_background"] else ""
    return [
        f"learned {found['name']!r} from {given} in {found['seconds']:.2f} s; {stored}",
        *_likeness(found["neighbours"], used=found["used_past"]),
        f"{past}; yes is a score above {found['threshold']:.3f}",
        *fires_lines(found["fires"], unit, found["pool"], others),
        *estimate_lines(found["estimate"], found["n_yes"], found["n_no"]),
        *_unknown_lines(found, about),
    ]


def _unknown_lines(found: dict[str, Any], about: str) -> list[str]:
    """Which words of the name and the answers count for nothing, and what is left of the name."""
    number, words, read = found["n_unknown_words"], found["unknown_words"], found.get("words_read")
    if not number:
        return []
    name, named = ("its name, description", "its name and description") if about else ("its name", "its name")
    shown = ", ".join(words[:SHOWN_WORDS]) + (", ..." if number > SHOWN_WORDS else "")
    are, they = ("is", "it is") if number == 1 else ("are", "they are")
    what = f"{plural(number, 'word')} of {name} and yes texts {are} not known to the model: {shown}"
    lines = [f"{what}; {they} ignored until the next fit"]
    if read and {*re.findall(r"\w+", spelled(f"{found['name']} {about}").lower())} & {*words}:
        lines.append(f"only {', '.join(map(repr, read))} of {named} {'are' if read[1:] else 'is'} known to the model")
    return lines


def _likeness(neighbours: list[dict[str, Any]], *, used: bool) -> list[str]:
    """What it resembles; where its classifier does not lean on that, only which labels have such answers."""
    shown = [near for near in neighbours if used or abs(near["weight"]) >= SHOWN_WEIGHT]
    like, unlike = (
        ", ".join(f"{near['label']} ({near['weight']:+.2f})" for near in shown if (near["weight"] > 0) is positive)
        for positive in (True, False)
    )
    words = ("it resembles", "it is unlike") if used else ("its answers go with", "its answers go against")
    if not used and not like and not unlike:
        return []
    parts = [f"{words[0]} {like or 'no label that is known'}"] if like or used else []
    return ["; ".join([*parts, *([f"{words[1]} {unlike}"] if unlike else [])])]


@click.command("next")
@model_argument
@click.argument("label")
@click.option("--pool", required=True, metavar="FILE", help="Texts as they come now, that nobody has looked at.")
@click.option("-n", "most", type=click.IntRange(min=1), default=10, show_default=True, help="How many texts.")
@file_options(labels=False, rows=False)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write them to be answered."
)
@click.option("--ask", is_flag=True, help="Ask here, one after the other, and learn from each answer.")
@actor_option
@json_option
def next_question(
    model: Path, label: str, pool: str, most: int, out: Path | None, ask: bool, actor: str, as_json: bool,
    **arguments: Any,
) -> None:  # fmt: skip
    """The texts of --pool whose answers would help LABEL most, with how likely it is to apply and why they are asked.

    --out writes them as CSV or JSONL with an empty column: fill in yes or no, and give the file back with
    'add-label MODEL LABEL --more --asked --file FILE --column answer --pool FILE'.

    --ask shows them one by one. Keys: y (yes), n (no), s (skip), u (take the last answer back), q (quit). After each
    answer the label is learned again and is on the disk, one revision an answer. Nobody else can change MODEL
    meanwhile.
    """
    if ask and (out is not None or as_json):
        raise click.UsageError("--ask asks here; leave out --out and --json")
    if ask and pool == "-":
        raise click.UsageError("answers come from standard input; give --pool a file")
    if out is not None and out.suffix not in (".csv", ".jsonl"):
        raise click.UsageError(f"--out must end in .csv or .jsonl, not {out.suffix!r}")
    if out is not None and out.exists():
        raise ConflictError(f"{out} is there already; choose another file")
    store, tagger = open_model(model, "a" if ask else "r", actor=actor)
    with store:
        label = known_label(store.label_names, label, model)
        if tagger is None:
            raise DataError("it takes rows of numbers, and only texts can be asked about", source=model)
        if ask or out is not None:
            _check_kept(store, label, model)
        texts = [row.text for row in text_rows(pool, FileOptions.of(arguments))]
        if ask:
            return _ask(tagger, label, texts, most)
        questions = tagger.next(label, texts, most)
    if out is not None:
        _write_questions(questions, out)
    found = {"label": label, "n_pool": len(texts), "questions": [asdict(one) for one in questions]}
    write(found, as_json=as_json, text=lambda: "\n".join(_question_lines(questions, model, label, out, pool)))


def _question_lines(questions: list[Question], model: Path, label: str, out: Path | None, pool: str) -> list[str]:
    if not questions:
        return [NOTHING_LEFT]
    if out is not None:
        back = f"  streamlabel add-label {model} {shlex.quote(label)} --more --asked --file {out} --column answer"
        back += "" if pool == "-" else f" --pool {pool}"
        return [f"wrote {plural(len(questions), 'text')} to {out}; fill in the column 'answer' (yes or no), then", back]
    return [f"{one.probability:.2f}  {_short(one.text, SHOWN)}\n      {one.why}" for one in questions]


def _write_questions(questions: list[Question], out: Path) -> None:
    """CSV or JSONL with an empty answer each; the file appears whole or not at all."""
    rows = [
        {"text": one.text, "probability": round(one.probability, 4), "why": one.why, "answer": ""} for one in questions
    ]
    content = io.StringIO(newline="")
    if out.suffix == ".csv":
        writer = csv.writer(content, lineterminator="\n")
        writer.writerow(["text", "probability", "why", "answer"])
        writer.writerows([guarded(str(cell)) for cell in row.values()] for row in rows)
    else:
        content.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    with replacing(out) as handle:
        handle.write(content.getvalue().encode("utf-8"))


def _ask(tagger: Tagger, label: str, texts: list[str], n: int) -> None:
    """Ask about one text after the other; each answer is on the disk before the next question is put."""
    pool = tagger.pool(texts)
    left, judged = pool, pool if len(pool.texts) >= ENOUGH else None
    given: list[bool] = []
    told = False
    for _ in range(n):
        questions = tagger.next(label, left, 1)
        if not questions:
            click.echo(NOTHING_LEFT)
            break
        (question,) = questions
        click.echo(f"\n{_short(question.text, SHOWN_TO_ASK)}")
        asks = f"{label}? (probability {question.probability:.2f}, {question.why}) y/n/s/u/q "
        while (said := _key(asks)) == "u":
            click.echo(_taken_back(tagger, given))
        if said == "q":
            break
        if said == "s":
            left = left.without(TextIndex.of([question.text]).digests)
            continue
        report = learn_report.report_data(tagger.answer(label, question.text, said == "y", pool=judged))
        given.append(said == "y")
        click.echo(_moved(report))
        if not told and GUESS in estimate_lines(report["estimate"], report["n_yes"], report["n_no"]):
            click.echo(GUESS)
            told = True
    stored = f"on the disk as revision {tagger.store.revision}" if given else "nothing was changed"
    click.echo(f"{plural(len(given), 'answer')}, {sum(given)} yes and {len(given) - sum(given)} no; {stored}")


def _taken_back(tagger: Tagger, given: list[bool]) -> str:
    """Take the last of these answers back."""
    if not given:
        return "no answer was given yet; 'streamlabel undo' takes back what was done before"
    given.pop()
    tagger.store.undo()
    tagger.refresh()
    return f"the last answer is taken back: revision {tagger.store.revision}"


def _moved(report: dict[str, Any]) -> str:
    """One line about a label after an answer."""
    estimate, answers = report["estimate"], f"from {report['n_yes']} yes and {report['n_no']} no"
    if estimate is None:
        return answers
    right = "never yes" if estimate["precision"] is None else f"precision {percent_of(estimate['precision'])}"
    return f"{right}, recall {percent_of(estimate['recall'])}; {answers}"


def _key(question: str) -> str:
    """One of y, n, s, u, q: a key on a terminal, else the first letter of a line; the end of the input is q."""
    while True:
        click.echo(question, nl=False)
        if sys.stdin.isatty():
            try:
                key = click.getchar()
            except EOFError:
                key = "q"
            click.echo(key if key.isprintable() else "")
        else:
            line = sys.stdin.readline()
            key = line.strip()[:1] if line else "q"
            click.echo(line.strip())
        if key.lower() in ("y", "n", "s", "u", "q"):
            return key.lower()
        click.echo("y: it applies, n: it does not, s: skip this text, u: take the last answer back, q: quit")


def _short(text: str, most: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]} ..."
