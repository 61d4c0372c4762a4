"""What the commands on a stored model share: its argument, opening it, finding a label by name."""

from __future__ import annotations

import getpass
import os
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from streamlabel._names import did_you_mean
from streamlabel.cli._output import plural, remark
from streamlabel.exceptions import ConflictError, DataError, NotFoundError
from streamlabel.store.model_store import ModelStore
from streamlabel.store.tagger_store import VECTORIZER, Tagger

__all__ = [
    "actor_option",
    "did_you_mean",
    "dry_run_option",
    "has_texts",
    "known_label",
    "megabytes",
    "model_argument",
    "new_label_name",
    "new_model_path",
    "open_store",
    "open_tagger",
    "plural",
    "say_twins",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
ACTOR = "STREAMLABEL_ACTOR"

model_argument = click.argument("model", type=click.Path(path_type=Path))


def actor_option(function: _Function) -> _Function:
    """``--actor``: who is named in the history."""
    return click.option(
        "--actor",
        default=_actor,
        metavar="NAME",
        help=f"Who the history says it was (default: {ACTOR}, else the name you are logged in with).",
    )(function)


def dry_run_option(function: _Function) -> _Function:
    """``--dry-run``: the command says what it would do."""
    return click.option("--dry-run", is_flag=True, help="Say what would happen; change nothing.")(function)


def open_store(path: Path, mode: str = "r", *, actor: str = "", **options: Any) -> ModelStore:
    """The stored model, with an error that a person at a shell can act on where there is none."""
    if not path.exists():
        raise NotFoundError(f"{path}: there is no model; 'streamlabel fit {path} FILE' makes one")
    return ModelStore.open(path, mode, actor=actor, **options)


def has_texts(store: ModelStore) -> bool:
    """Whether the model takes texts; others take rows of numbers."""
    return VECTORIZER in store.parts()


def open_tagger(path: Path, mode: str = "r", *, actor: str = "") -> Tagger:
    """The stored model as a tagger; an error where it does not take texts."""
    with open_store(path) as store:
        if not has_texts(store):
            raise DataError("it was fitted on rows of numbers and takes no texts; use predict with a file", source=path)
    return Tagger.open(path, mode, actor=actor)


def new_model_path(path: Path) -> None:
    """An error unless a model can be made there; found before the work is done."""
    if path.exists() or path.is_symlink():
        raise ConflictError(f"{path} is there already; choose another directory, or add to it with add-label")


def known_label(names: Iterable[str], name: str, path: Path) -> str:
    """The label as it is spelled in the model."""
    known, wanted = list(names), unicodedata.normalize("NFC", name)
    if wanted in known:
        return wanted
    hint = did_you_mean(wanted, known) or f"'streamlabel labels {path}' lists all"
    raise NotFoundError(f"{path}: no label is called {name!r}; {hint}")


def new_label_name(given: str, known: Iterable[str]) -> str:
    """The name of a new label without outer spaces; said where they were taken off, or a label differs only by case."""
    whole = unicodedata.normalize("NFC", given)
    name = whole.strip()
    if not name:
        raise click.UsageError("the name of the label is empty; give it one, in quotes where it has spaces")
    if name != whole:
        remark(f"the spaces around the name were taken off: {name!r}")
    for twin in known:
        if twin != name and twin.casefold() == name.casefold():
            remark(f"warning: there is a label {twin!r}, which differs from {name!r} only by case")
    return name


def say_twins(names: Iterable[str]) -> None:
    """Names that differ only by case or outer spaces are hardly ever meant."""
    first: dict[str, str] = {}
    for name in names:
        twin = first.setdefault(name.strip().casefold(), name)
        if twin != name:
            remark(f"warning: {twin!r} and {name!r} differ only by case or spaces; they are learned as two labels")


def megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:,.0f} kB"


def _actor() -> str:
    if ACTOR in os.environ:
        return os.environ[ACTOR]
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
