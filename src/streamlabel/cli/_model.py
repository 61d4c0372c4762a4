"""What the commands on a stored model share: its argument, opening it, finding a label by name."""

from __future__ import annotations

import getpass
import os
import unicodedata
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import click

from streamlabel.cli._output import plural
from streamlabel.exceptions import ConflictError, DataError, NotFoundError
from streamlabel.store.model_store import ModelStore
from streamlabel.store.tagger_store import VECTORIZER, Tagger

__all__ = [
    "actor_option",
    "dry_run_option",
    "has_texts",
    "known_label",
    "megabytes",
    "model_argument",
    "new_model_path",
    "open_store",
    "open_tagger",
    "plural",
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
    by_case = {label.casefold(): label for label in known}
    close = [by_case[match] for match in get_close_matches(wanted.casefold(), by_case, n=3, cutoff=0.6)]
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"'streamlabel labels {path}' lists all"
    raise NotFoundError(f"{path}: no label is called {name!r}; {hint}")


def megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:,.0f} kB"


def _actor() -> str:
    if ACTOR in os.environ:
        return os.environ[ACTOR]
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
