"""The data sets of the experiments by name, with stand-ins for those that are not on this machine.

The name of a set in a record says what was used: ``mediamill``, or ``mediamill (stand-in mediamill_reduced)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from streamlabel.data.catalogue import ENTRIES, find_entry, load_catalogue_set, locate, require
from streamlabel.data.news import make_news_corpus
from streamlabel.data.synthetic import make_twin
from streamlabel.data.text import TextVectorizer
from streamlabel.errors import NotFoundError
from streamlabel.types import CSR, Dataset, IntArray

NEWS_CORPUS = "news corpus"
TWIN = "twin"  # a set of the same shape, made up
LOOKED_AT = {  # a set, and that whose test rows were looked at during design: itself, or one that shares rows with it
    "bibtex": "bibtex",
    "delicious": "delicious",
    "mediamill_reduced": "mediamill_reduced",
    "mediamill": "mediamill_reduced",
    "eurlex57k": "eurlex57k",
    "eurlex-4k": "eurlex57k",
    "citeulike-t": "citeulike-t",
    "citeulike-t-min5": "citeulike-t",
    "reuters-21578": "reuters-21578",
}
STAND_INS = {"mediamill": "mediamill_reduced", "eurlex-4k": "eurlex57k", "wiki10-31k": TWIN}
_NO_ENTRY = {NEWS_CORPUS: "the embedded texts, made up", "random problems": "made up, small enough to solve whole"}
_TEXTS, _TEST_SHARE = 3000, 1 / 3
_MARK = " (stand-in "
# Averages a row as in the paper's table of data sets; the shape is the catalogue's.
_TWIN_FEATURES, _TWIN_LABELS = 673.45, 18.64


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
    here = stand_in is not None and (stand_in == TWIN or locate(find_entry(stand_in)) is not None)
    if locate(entry) is None and here:
        return f"{entry.name}{_MARK}{stand_in})"
    require(entry)
    return entry.name


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


def is_made_up(name: str) -> bool:
    """Whether rows and labels were made up: such sets show that methods run, not how good they are."""
    return used_name(name) in (TWIN, NEWS_CORPUS)


def looked_at(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Of the real sets among these: those whose test rows were looked at while the learner was designed, and others."""
    known = {entry.name for entry in ENTRIES}
    used = [name for name in dict.fromkeys(map(used_name, names)) if name in known]
    seen = list(dict.fromkeys(LOOKED_AT[name] for name in used if name in LOOKED_AT))
    return seen, [name for name in used if name not in LOOKED_AT]


def described_sets(names: Iterable[str]) -> list[dict[str, str]]:
    """What these sets are, each once also where it stands in for another; shapes are the catalogue's."""
    stands_for: dict[str, list[str]] = {}
    for name in names:
        used, asked = used_name(name), asked_name(name)
        wanted = stands_for.setdefault(name if used == TWIN else used, [])
        if asked != used and asked not in wanted:
            wanted.append(asked)
    return [_set_line(name, wanted) for name, wanted in stands_for.items()]


def _set_line(name: str, wanted: list[str]) -> dict[str, str]:
    entry, made_up = {entry.name: entry for entry in ENTRIES}.get(asked_name(name)), is_made_up(name)
    if entry is None:
        return {"set": name, "what it is": _NO_ENTRY.get(name, "")}
    shape = {
        "training rows": entry.n_rows["train"],
        "test rows": entry.n_rows["test"],
        "features": entry.n_features,
        "labels": entry.n_labels,
    }
    return {
        "set": name,
        **{title: f"{n:,}" for title, n in shape.items()},
        "what it is": f"made up, of the shape of {entry.name}" if made_up else entry.description,
        "stands in for": ", ".join(wanted),
        "test rows looked at": "" if made_up else "yes" if name in LOOKED_AT else "no",
    }


@lru_cache(maxsize=2)
def load_set(name: str) -> tuple[Dataset, Dataset]:
    """Training and test part of a set, by a name from `resolve_sets`; the last two are kept in this process."""
    if name == NEWS_CORPUS:
        return corpus_sets(0, _TEXTS, _TEST_SHARE)
    used = used_name(name)
    if used == TWIN:
        return _twin_parts(asked_name(name))
    return load_catalogue_set(used, "train"), load_catalogue_set(used, "test")


def _twin_parts(name: str) -> tuple[Dataset, Dataset]:
    entry = find_entry(name)
    n_train, n_test = entry.n_rows["train"], entry.n_rows["test"]
    whole = make_twin(n_train + n_test, entry.n_features, entry.n_labels, _TWIN_FEATURES, _TWIN_LABELS)
    return whole.take_rows(np.arange(n_train)), whole.take_rows(np.arange(n_train, n_train + n_test))


def corpus_sets(seed: int, n_texts: int = 3000, test_share: float = 1 / 3) -> tuple[Dataset, Dataset]:
    """The embedded corpus as a training and a test part, tf-idf fitted on the training texts only."""
    corpus = make_news_corpus(n_texts, random_state=seed)
    order = np.random.default_rng(seed).permutation(corpus.n_rows)
    n_test = int(corpus.n_rows * test_share)
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    vectorizer = TextVectorizer().fit([corpus.texts[i] for i in train])

    def part(rows: IntArray) -> Dataset:
        return Dataset(
            X=vectorizer.transform([corpus.texts[i] for i in rows]),
            Y=corpus.Y[rows],
            label_names=corpus.label_names,
            feature_names=tuple(map(str, vectorizer.get_feature_names_out())),
            row_dates=None if corpus.row_dates is None else corpus.row_dates[rows],
            source="the embedded news corpus",
        )

    return part(train), part(test)


def unit_rows(X: CSR) -> CSR:
    """Rows of length one, in double precision; a row without features stays as it is."""
    return sparse.csr_array(normalize(X.astype(np.float64)))


def learnable(Y: CSR) -> IntArray:
    """The labels that have a yes and a no."""
    counts = np.asarray(Y.sum(axis=0)).ravel()
    return np.flatnonzero((counts > 0) & (counts < Y.shape[0]))
