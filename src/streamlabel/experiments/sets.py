"""The data sets of the experiments by name, with stand-ins for those that are not on this machine.

The name of a set in a record says what was used: ``mediamill``, or ``mediamill (stand-in mediamill_reduced)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from streamlabel.data.catalogue import find_entry, load_catalogue_set, locate, require
from streamlabel.data.catalogue_entries import ENTRIES
from streamlabel.data.twins import make_twin
from streamlabel.errors import NotFoundError
from streamlabel.experiments.arrivals import corpus_sets
from streamlabel.types import Dataset

__all__ = [
    "NEWS_CORPUS",
    "STAND_INS",
    "TWIN",
    "asked_name",
    "load_set",
    "marking_made_up",
    "quick_sets",
    "resolve_sets",
    "training_rows",
    "used_name",
]

NEWS_CORPUS = "news corpus"
TWIN = "twin"  # a set of the same shape, made up
STAND_INS = {"mediamill": "mediamill_reduced", "eurlex-4k": "eurlex57k", "wiki10-31k": TWIN}
_TEXTS, _TEST_SHARE = 3000, 1 / 3
_MARK = " (stand-in "
# Averages a row as in the paper's table of data sets; the shape is the catalogue's.
_TWIN_FEATURES, _TWIN_LABELS = 673.45, 18.64


def marking_made_up(sentence: str) -> str:
    """The sentence, which says of the embedded texts, where it names them first, that they are made up.

    >>> marking_made_up("news corpus +1.0; news corpus +2.0")
    'news corpus (made-up texts) +1.0; news corpus +2.0'
    """
    return sentence.replace(NEWS_CORPUS, f"{NEWS_CORPUS} (made-up texts)", 1)


def resolve_sets(names: Iterable[str]) -> tuple[str, ...]:
    """The names that records use, each once, in this order; nothing is read yet.

    Raises
    ------
    NotFoundError : no such name, with the list of names; or neither the set nor a stand-in is on this machine
    """
    return tuple(dict.fromkeys(_resolve(name) for name in names))


def quick_sets(names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that are on this machine, else the embedded texts."""
    here = [name for name in names if name == NEWS_CORPUS or locate(find_entry(name)) is not None]
    return resolve_sets(here or [NEWS_CORPUS])


def _resolve(name: str) -> str:
    if name == NEWS_CORPUS:
        return name
    try:
        entry = find_entry(name)
    except NotFoundError as error:
        known = ", ".join(entry.name for entry in ENTRIES)
        raise NotFoundError(str(error) if known in str(error) else f"{error} There are {known}") from None
    stand_in = STAND_INS.get(entry.name)
    if locate(entry) is None and stand_in is not None and _is_here(stand_in):
        return f"{entry.name}{_MARK}{stand_in})"
    require(entry)
    return entry.name


def _is_here(stand_in: str) -> bool:
    return stand_in == TWIN or locate(find_entry(stand_in)) is not None


def asked_name(name: str) -> str:
    """The set that was meant: ``mediamill`` for ``mediamill (stand-in mediamill_reduced)``."""
    return name.partition(_MARK)[0]


def used_name(name: str) -> str:
    """The set that is read: ``mediamill_reduced`` for ``mediamill (stand-in mediamill_reduced)``; or `TWIN`."""
    asked, mark, used = name.partition(_MARK)
    return used.removesuffix(")") if mark else asked


def training_rows(name: str) -> int:
    """How many training rows the set has, without reading it."""
    if name == NEWS_CORPUS:
        return _TEXTS - int(_TEXTS * _TEST_SHARE)
    used = used_name(name)
    return find_entry(asked_name(name) if used == TWIN else used).n_rows["train"]


@lru_cache(maxsize=2)
def load_set(name: str) -> tuple[Dataset, Dataset]:
    """Training and test part of a set, by a name from `resolve_sets`; the last two are kept in this process."""
    if name == NEWS_CORPUS:
        return corpus_sets(0, _TEXTS, _TEST_SHARE)
    used = used_name(name)
    if used == TWIN:
        train, test = _twin_parts(asked_name(name))
        return train, test
    return load_catalogue_set(used, "train"), load_catalogue_set(used, "test")


def _twin_parts(name: str) -> Iterator[Dataset]:
    entry = find_entry(name)
    n_train, n_test = entry.n_rows["train"], entry.n_rows["test"]
    whole = make_twin(n_train + n_test, entry.n_features, entry.n_labels, _TWIN_FEATURES, _TWIN_LABELS)
    yield whole.take_rows(np.arange(n_train))
    yield whole.take_rows(np.arange(n_train, n_train + n_test))
