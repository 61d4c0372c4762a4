"""Options and arguments of commands that take a stored model: the model, who changes it, finding a label in it."""

from __future__ import annotations

import getpass
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamlabel.cli.output import remark
from streamlabel.errors import ConflictError, NotFoundError, did_you_mean
from streamlabel.store.parts import VECTORIZER
from streamlabel.store.stored_model import StoredModel

if TYPE_CHECKING:
    from streamlabel.store.model_store import ModelStore

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


def has_texts(store: StoredModel) -> bool:
    """Whether the model takes texts; others take rows of numbers."""
    return VECTORIZER in store.parts()


def stored_vectorizer(store: StoredModel) -> Any:
    """What turns texts into rows of the model; None where it takes rows of numbers."""
    if not has_texts(store):
        return None
    from streamlabel.tagging.vectorizers import VectorizerState, restore_vectorizer  # with scikit-learn

    part = store.get_part(VECTORIZER)
    return restore_vectorizer(VectorizerState(part.content, part.arrays))


def open_store(path: Path, *, dry_run: bool, actor: str) -> ModelStore:
    """The stored model, to change it; only to read it in a dry run."""
    from streamlabel.store.model_store import ModelStore

    return ModelStore.open(path, "r" if dry_run else "a", actor=actor)


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


def new_label_name(given: str, known: Collection[str]) -> str:
    """The name of a new label without outer spaces; said where they were taken off, or a label has a close name."""
    whole = unicodedata.normalize("NFC", given)
    name = whole.strip()
    if not name:
        raise click.UsageError("the name of the label is empty; give it one, in quotes where it has spaces")
    if name != whole:
        remark(f"the spaces around the name were taken off: {name!r}")
    others = [other for other in known if other != name]
    twins = [other for other in others if other.casefold() == name.casefold()]
    for twin in twins:
        remark(f"warning: there is a label {twin!r}, which differs from {name!r} only by case")
    same_digits = (other for other in others if re.findall(r"\d", other) == re.findall(r"\d", name))
    question = did_you_mean(name, same_digits, 0.85)  # one letter more in three, or another one in seven
    if question and not twins and len(others) == len(known):
        remark(f"warning: {name!r} is close to a label that is known; {question}")
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
