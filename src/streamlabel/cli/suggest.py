"""``streamlabel suggest`` and ``explain``: labels for a text, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamlabel.cli.models import known_label, model_argument
from streamlabel.cli.output import format_table, json_option, remark, write
from streamlabel.errors import DataError
from streamlabel.tagging.suggester import Suggester

if TYPE_CHECKING:
    from streamlabel.tagging.explain import Explanation

N_WORDS = 10  # of an explanation, on each side


@click.command()
@model_argument
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@click.option("-k", type=click.IntRange(min=1), default=5, show_default=True, help="How many labels.")
@json_option
def suggest(model: Path, texts: tuple[str, ...], k: int, as_json: bool) -> None:
    """The best labels for a TEXT, with their scores; - reads texts from standard input, one a line.

    A label is marked yes where its score exceeds its own threshold, which stands beside it: a score orders labels, it
    is no probability. A text without a known word gets no yes. For many texts, use predict.
    """
    suggester = Suggester.open(model)
    wanted, thresholds = _texts(texts), suggester.thresholds
    suggested, known = suggester.suggest(wanted, k)
    data = [
        {
            "text": text,
            "labels": [
                {
                    "label": name, "score": score, "threshold": thresholds[name],
                    "yes": any_known and score > thresholds[name],
                }
                for name, score in found
            ],
        }
        for text, found, any_known in zip(wanted, suggested, known, strict=True)
    ]  # fmt: skip
    for text, any_known in zip(wanted, known, strict=True):
        if not any_known:
            remark(f"no word of {text[:40]!r} is known, so no label is a yes; the scores are those of an empty text")
    write(data, as_json=as_json, text=lambda: "\n\n".join(_table(one, with_text=len(data) > 1) for one in data))


@click.command()
@model_argument
@click.argument("text")
@click.argument("label", required=False)
@click.option(
    "--words", type=click.IntRange(min=1), default=N_WORDS, show_default=True, help="At most so many on each side."
)
@json_option
def explain(model: Path, text: str, label: str | None, words: int, as_json: bool) -> None:
    """Why TEXT (- for standard input) got its score for LABEL; by default for the best label.

    The words that spoke for and against it, and what the labels say that it was learned to resemble.
    """
    from streamlabel.tagging.explain import explanation_data
    from streamlabel.tagging.tagger import Tagger

    tagger = Tagger.open(model)
    (text,) = _texts((text,), whole=True)
    label = tagger.suggest(text, 1)[0][0] if label is None else known_label(tagger.label_names_, label, model)
    found = tagger.explain(text, label, words)
    write(explanation_data(found), as_json=as_json, text=lambda: _lines(found))


def _texts(given: tuple[str, ...], *, whole: bool = False) -> list[str]:
    if "-" not in given:
        return list(given)
    if len(given) > 1:
        raise click.UsageError("give texts, or - alone")
    from streamlabel.cli.options import FileOptions, read_texts

    lines = [row.text for row in read_texts("-", FileOptions(format="lines"))]
    if not lines:
        raise DataError("holds no text", source="standard input")
    return ["\n".join(lines)] if whole else lines


def _table(found: dict[str, Any], *, with_text: bool) -> str:
    rows = [
        [f"{one['score']:.3f}", f"{one['threshold']:.3f}", one["label"], "yes" if one["yes"] else ""]
        for one in found["labels"]
    ]
    table = format_table(["score", "yes above", "label", ""], rows, right=(0, 1))
    return f"{found['text']}\n{table}" if with_text else table


def _lines(found: Explanation) -> str:
    from streamlabel.tagging.explain import NO_KNOWN_WORD

    said = "yes" if found.yes else "no"
    lines = [
        f"{found.label}: {said}, its score is {found.score:.3f} and yes begins above {found.threshold:.3f} "
        f"(probability {found.probability:.2f})"
    ]
    if found.yes != (found.probability > 0.5) and found.note != NO_KNOWN_WORD:
        lines.append("yes begins where precision and recall are balanced best, not at a probability of 0.5")
    for side, parts in (("for", found.words_for), ("against", found.words_against)):
        if parts:
            lines.append(f"{side:<8} " + ", ".join(f"{word} {part:+.3f}" for word, part in parts))
    lines.append(f"besides  {found.others:+.3f} by other words, {found.intercept:+.3f} for any text")
    if found.unknown_words:
        more = len(found.unknown_words) - N_WORDS
        shown = ", ".join(found.unknown_words[:N_WORDS]) + (f" and {more:,} more" if more > 0 else "")
        lines.append(f"ignored  {shown}: not known to the model")
    if found.neighbours:
        rows = [
            ["resembles" if near.weight > 0 else "is unlike", near.label, f"{near.weight:+.2f}", f"{near.score:.3f}"]
            for near in found.neighbours
        ]
        lines.append(format_table(["it", "", "weight", "score here"], rows, right=(2, 3)))
    return "\n".join([*lines, *([found.note] if found.note else [])])
