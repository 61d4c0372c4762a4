"""Answers for a new label, by text or by number of a text of `fit`, as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.rows import matrix_of_names
from streamlabel.errors import DataError
from streamlabel.streaming.later_rows import check_update
from streamlabel.streaming.state import ModelState
from streamlabel.types import CSR, BoolArray, FloatArray, IntArray
from streamlabel.validation import canonical_labels, check_label_names, default_label_names

DIGEST = 16
ENOUGH = 100  # texts of a pool by which a label can be judged; with fewer, those of fit are the better pool
Key: TypeAlias = int | str  # a row of `fit`, or a text that is not among them


class TextIndex:
    """An index of the texts of `fit` that does not keep them: it finds their rows by digests, (n, 16) uint8."""

    def __init__(self, digests: NDArray[np.uint8]) -> None:
        self.digests = digests
        self._row_of: dict[bytes, int] = {}
        for row, digest in enumerate(digests):
            self._row_of.setdefault(digest.tobytes(), row)

    @classmethod
    def of(cls, texts: Sequence[str]) -> TextIndex:
        """Make the index of these texts."""
        content = b"".join(map(digest, texts))
        return cls(np.frombuffer(content, dtype=np.uint8).reshape(-1, DIGEST))

    @property
    def n_rows(self) -> int:
        return len(self.digests)

    def key(self, item: Any, where: str) -> Key:
        """The row of a text or of a row number; the text itself if it is new."""
        if isinstance(item, str):
            return self._row_of.get(digest(item), item)
        if isinstance(item, int | np.integer) and not isinstance(item, bool):
            if 0 <= item < self.n_rows:
                return int(item)
            known = (
                f"has texts 0 to {self.n_rows - 1}" if self.n_rows else "keeps no texts of fit; give the text itself"
            )
            raise DataError(f"{where}: there is no text {item}; the tagger {known}")
        raise DataError(f"{where} holds something of type {type(item).__name__}; give texts, or numbers of fit's texts")


@dataclass(frozen=True, eq=False)
class TextPool:
    """Texts as they come, as rows that are made once (`Tagger.pool`); each text once.

    rows : (n, d);   digests : (n, 16) uint8;   texts : () if they are not kept
    """

    rows: Any
    digests: NDArray[np.uint8]
    texts: tuple[str, ...] = ()

    def without(self, answered: NDArray[np.uint8]) -> TextPool:
        """The pool without the texts that have these digests."""
        kept = np.flatnonzero(~self.among(answered))
        if len(kept) == len(self.digests):
            return self
        return TextPool(self.rows[kept], self.digests[kept], tuple(self.texts[at] for at in kept if self.texts))

    def among(self, answered: NDArray[np.uint8]) -> BoolArray:
        """Which texts of the pool have one of these digests, (n,) bool."""
        known = {one.tobytes() for one in answered}
        return np.array([one.tobytes() in known for one in self.digests], dtype=bool)


@dataclass(frozen=True)
class Answers:
    """The yes and no answers for a label: rows of `fit` and new texts, each once."""

    name: str
    yes: tuple[Key, ...]
    no: tuple[Key, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        return (*self.yes, *self.no)


@dataclass(frozen=True, eq=False)
class AskedTexts:
    """The answers of k labels as `add_labels` wants them.

    rows : rows of `fit` in use, None for all of them in order;   texts : new texts, as further rows
    labels : (n, k) of 0/1;   cells : (n, k) bool, None if every one was asked
    """

    rows: IntArray | None
    texts: list[str]
    labels: CSR
    cells: CSR | None


def read_answers(name: str, yes: Iterable[Any], no: Iterable[Any], index: TextIndex) -> Answers:
    """Check the answers for one label, and look their texts up."""
    sides = {}
    for side, items in (("yes", yes), ("no", no)):
        where = f"{side} of label {name!r}"
        if not isinstance(items, Iterable) or isinstance(items, str | bytes):
            raise DataError(f"{where} is a single {type(items).__name__}; give a list")
        sides[side] = dict.fromkeys(index.key(item, where) for item in items)
    for key in sides["yes"]:
        if key in sides["no"]:
            text = f"text {key} of fit" if isinstance(key, int) else repr(key[:60])
            raise DataError(f"label {name!r}: {text} is in yes and in no; keep one of the two")
    return Answers(name, tuple(sides["yes"]), tuple(sides["no"]))


def read_tags(labels: Any, label_names: Any, n_texts: int) -> tuple[CSR, tuple[str, ...]]:
    """Label matrix (n_texts, m) and its names, from a list of names for each text or from a matrix with names."""
    if label_names is not None or sparse.issparse(labels) or (isinstance(labels, np.ndarray) and labels.ndim == 2):
        Y = canonical_labels(labels, name="labels")
        names = check_label_names(default_label_names(Y.shape[1]) if label_names is None else label_names, Y.shape[1])
    else:
        Y, names = matrix_of_names(labels, "text")
    n_rows = int(Y.shape[0])
    if n_rows != n_texts:
        raise DataError(f"{n_rows} lists of labels for {n_texts} texts; give one a text, [] where none applies")
    if not names:
        raise DataError("no text has a label; there is nothing to learn")
    return Y, names


@dataclass(frozen=True, eq=False)
class NewAnswers:
    """New texts with answers for labels of `fit`; ``others`` are the tags that are no such labels.

    answers : csr_array (n, k);   asked : (n, k) bool, those that are new;   n_known : texts that have no new answer
    """

    texts: list[str]
    labels: tuple[str, ...]
    answers: CSR
    asked: BoolArray
    others: tuple[str, ...]
    n_known: int


def read_new_answers(
    texts: list[str], tags: Any, labels: Any, state: ModelState, index: TextIndex, later: NDArray[np.uint8]
) -> NewAnswers:
    """Read new texts with their tags, for `Tagger.update`: without texts of `fit`, or answers that were given before.

    labels : the labels that are answered on every text; None: those of `fit` that new answers say yes to
    later : (m, 16), the digests of earlier updates
    """
    Y, names = read_tags(tags, None, len(texts))
    fitted = [name for name in names if name in state.names and state.names.number(name) < state.n_fitted]
    wanted = tuple(fitted) if labels is None else check_label_names(given := list(labels), len(given))
    if not wanted:
        raise DataError("no label of fit is among the tags; learn or add-label learns a new one")
    asked, column = _unanswered(texts, wanted, state, index, later), {name: at for at, name in enumerate(names)}
    with_blank = sparse.csr_array(sparse.hstack((Y, sparse.csr_array((len(texts), 1), dtype=Y.dtype)), format="csr"))
    answers = with_blank[:, [column.get(name, len(names)) for name in wanted]]
    if labels is None:
        occur = np.flatnonzero(np.asarray(answers.multiply(asked).sum(axis=0)).ravel())
        wanted, asked, answers = tuple(wanted[at] for at in occur), asked[:, occur], answers[:, occur]
    new = np.flatnonzero(asked.any(axis=1))
    if not new.size:
        raise DataError(f"all {len(texts)} texts are known already; give texts that fit did not have")
    others = tuple(name for name in names if name not in fitted)
    return NewAnswers([texts[at] for at in new], wanted, answers[new], asked[new], others, len(texts) - len(new))


def _unanswered(
    texts: list[str], labels: Sequence[str], state: ModelState, index: TextIndex, digests: NDArray[np.uint8]
) -> BoolArray:
    """Which answers (n, k) are new: on texts that fit did not have, and not given by an earlier update."""
    numbers = np.array([state.names.number(name) for name in labels], dtype=np.intp)
    later, nothing = check_update(state, numbers).later, np.zeros(len(numbers), dtype=bool)
    given: dict[bytes, BoolArray] = {}
    if later is not None:
        if len(digests) != len(later.known):
            raise DataError("the texts of earlier updates are not known here, so none could be told from new ones")
        for one, known in zip(digests, later.known[:, numbers], strict=True):
            given[one.tobytes()] = given.get(one.tobytes(), nothing) | known
    twice = [text for text, count in Counter(texts).items() if count > 1]
    if twice:
        raise DataError(f"{twice[0][:60]!r} is given twice; keep one of the two")
    of_fit = [isinstance(index.key(text, "text"), int) for text in texts]
    return np.array(
        [nothing if there else ~given.get(digest(text), nothing) for there, text in zip(of_fit, texts, strict=True)]
    )


def gather_answers(batch: Sequence[Answers], n_rows: int) -> AskedTexts:
    """Gather the answers of a batch, on the rows of `fit` (n_rows) if these suffice, else on the rows asked."""
    keys = [key for one in batch for key in one.keys]
    texts = list(dict.fromkeys(key for key in keys if isinstance(key, str)))
    rows = None if not texts else np.unique([key for key in keys if isinstance(key, int)]).astype(np.intp)
    used = range(n_rows) if rows is None else rows.tolist()
    place: dict[Key, int] = {key: at for at, key in enumerate((*used, *texts))}
    yes = [[place[key] for key in one.yes] for one in batch]
    asked = [[place[key] for key in one.keys] for one in batch]
    cells = None if all(len(rows) == len(place) for rows in asked) else _mask(asked, len(place))
    return AskedTexts(rows, texts, _mask(yes, len(place)), cells)


def _mask(columns: list[list[int]], n_rows: int) -> CSR:
    indptr = np.concatenate(([0], np.cumsum([len(rows) for rows in columns])))
    indices = np.array([row for rows in columns for row in sorted(rows)], dtype=np.intp)
    mask = sparse.csc_array((np.ones(len(indices), dtype=bool), indices, indptr), shape=(n_rows, len(columns)))
    return mask.tocsr()


def digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST).digest()


def filled_rows(X: CSR | FloatArray) -> NDArray[np.bool_]:
    """Which rows are not zero, (n,); the others are texts without a known word."""
    return np.asarray(np.diff(X.indptr) > 0 if sparse.issparse(X) else np.any(X, axis=1))


def check_known_words(X: CSR | FloatArray, labels: CSR, batch: Sequence[Answers]) -> None:
    """Refuse a label whose yes texts are all empty to the vectoriser: it would be the same for every text."""
    known = filled_rows(X)
    columns = labels.tocsc()
    for j, answers in enumerate(batch):
        yes = columns.indices[columns.indptr[j] : columns.indptr[j + 1]]
        if len(yes) and not known[yes].any():
            raise no_known_words(answers.name)


def no_known_words(name: str) -> DataError:
    """The error for a label whose yes texts have no word that the tagger knows."""
    return DataError(
        f"no yes text of {name!r} has a word that the tagger knows, so nothing can be learned from them; give other "
        "texts: words that fit never saw are ignored until the next fit"
    )


def check_without_pool(batch: list[Answers], more: bool) -> None:
    """Refuse what cannot be learned without texts that nobody has looked at."""
    for one in batch:
        if more or not one.yes or not one.no:
            both = "" if more else ", or texts for yes and for no"
            raise DataError(
                f"label {one.name!r}: the texts of fit are not kept here; give a pool, texts as they come now{both}"
            )


def two_sides(name: str, sides: Any) -> tuple[Any, Any]:
    """The answers of a label, yes and no; DataError if they are not two lists."""
    if not isinstance(sides, Sequence) or isinstance(sides, str) or len(sides) != 2:
        raise DataError(f"label {name!r}: give its answers as two lists, (yes, no)")
    return sides[0], sides[1]
