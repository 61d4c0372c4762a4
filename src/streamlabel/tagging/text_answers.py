"""Answers for a new label, by text or by number, as rows; and texts that stand for no if few no are given.

A person who names three texts for a new label says nothing about the others, but most of these are a no, for most
labels are rare. So some of the texts of `fit` that nobody was asked about are drawn and taken for no: `PER_YES` for
each yes, not all of them. There are texts among them to which the label applies, and if the yes are few these outweigh
them: taking all 1,200 in place of 20 per yes lowered the AUC of labels learned from three texts from 0.88 to 0.68.

A few answered no do not change that. They are chosen by people, often because they look like a yes, and say little
about the other texts: labels of 6 yes and 12 such no fired on 42 % of the texts at their word, and on 4 % with weak
answers, which raised AUC from 0.76 to 0.91. From `ENOUGH` no on, the answers themselves tell how often a score fires.

From so few yes the best threshold cannot be told: chosen by leave-one-out F1 it made labels of one yes fire on 9 texts
out of 10. The texts of `fit` tell how often a threshold fires, and the labels of `fit` how often labels apply. So the
threshold is raised until the label fires on `CAP` times the mean share of these at most, or of its own yes. That raised
F1 from 6 to 27 % for labels of one yes, from 28 to 32 % for three, and left it at 44 % for ten.

The figures are of ``benchmarks/tagger_choices.py``: embedded news corpus, 25 labels, rows that were held out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.rows import matrix_of_names
from streamlabel.errors import DataError, Hint
from streamlabel.stats.threads import one_thread
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.kept_rows import FitMemory
from streamlabel.types import CSR, FloatArray, IntArray
from streamlabel.validation import canonical_labels, check_label_names, default_label_names

DIGEST = 16
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
        content = b"".join(map(_digest, texts))
        return cls(np.frombuffer(content, dtype=np.uint8).reshape(-1, DIGEST))

    @property
    def n_rows(self) -> int:
        return len(self.digests)

    def key(self, item: Any, where: str) -> Key:
        """The row of a text or of a row number; the text itself if it is new."""
        if isinstance(item, str):
            return self._row_of.get(_digest(item), item)
        if isinstance(item, int | np.integer) and not isinstance(item, bool):
            if 0 <= item < self.n_rows:
                return int(item)
            known = (
                f"has texts 0 to {self.n_rows - 1}" if self.n_rows else "keeps no texts of fit; give the text itself"
            )
            raise DataError(f"{where}: there is no text {item}; the tagger {known}")
        raise DataError(f"{where} holds something of type {type(item).__name__}; give texts, or numbers of fit's texts")


@dataclass(frozen=True)
class Answers:
    """The yes and no answers for a label: rows of `fit` and new texts, each once. ``weak``: rows taken for no."""

    name: str
    yes: tuple[Key, ...]
    no: tuple[Key, ...]
    weak: tuple[int, ...] = ()


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
    if not sides["yes"]:
        raise DataError(f"label {name!r} has no text that it applies to; give at least one in yes")
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


def gather_answers(batch: Sequence[Answers], n_rows: int) -> AskedTexts:
    """Gather the answers of a batch, on the rows of `fit` (n_rows) if these suffice, else on the rows asked."""
    keys = [key for one in batch for key in (*one.yes, *one.no, *one.weak)]
    texts = list(dict.fromkeys(key for key in keys if isinstance(key, str)))
    rows = None if not texts else np.unique([key for key in keys if isinstance(key, int)]).astype(np.intp)
    used = range(n_rows) if rows is None else rows.tolist()
    place: dict[Key, int] = {key: at for at, key in enumerate((*used, *texts))}
    yes = [[place[key] for key in one.yes] for one in batch]
    asked = [[place[key] for key in (*one.yes, *one.no, *one.weak)] for one in batch]
    cells = None if all(len(rows) == len(place) for rows in asked) else _mask(asked, len(place))
    return AskedTexts(rows, texts, _mask(yes, len(place)), cells)


def stack_rows(first: Any, second: Any) -> CSR | FloatArray:
    """Stack two matrices of rows, dense if both are."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.vstack((first, second))
    return sparse.csr_array(sparse.vstack((sparse.csr_array(first), sparse.csr_array(second)), format="csr"))


def _mask(columns: list[list[int]], n_rows: int) -> CSR:
    indptr = np.concatenate(([0], np.cumsum([len(rows) for rows in columns])))
    indices = np.array([row for rows in columns for row in sorted(rows)], dtype=np.intp)
    mask = sparse.csc_array((np.ones(len(indices), dtype=bool), indices, indptr), shape=(n_rows, len(columns)))
    return mask.tocsr()


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST).digest()


def filled_rows(X: CSR | FloatArray) -> NDArray[np.bool_]:
    """Which rows are not zero, (n,); the others are texts without a known word."""
    return np.asarray(np.diff(X.indptr) > 0 if sparse.issparse(X) else np.any(X, axis=1))


def check_known_words(X: CSR | FloatArray, labels: CSR, batch: Sequence[Answers]) -> None:
    """Refuse a label whose yes texts are all empty to the vectoriser: it would be the same for every text."""
    known = filled_rows(X)
    columns = labels.tocsc()
    for j, answers in enumerate(batch):
        if not known[columns.indices[columns.indptr[j] : columns.indptr[j + 1]]].any():
            raise DataError(
                f"no yes text of {answers.name!r} has a word that the tagger knows, so nothing can be learned from "
                "them; give other texts, or fit again on texts with such words"
            )


PER_YES = 20
ENOUGH = 100
MOST = 1000
CAP = 2.0
MOST_OFTEN = 0.5
MOST_LOOKED_AT = 2000


def add_weak_answers(answers: Answers, n_rows: int, weak_no: int | None, seed: int) -> Answers:
    """Add rows of `fit` that are taken for no to the answers: ``weak_no`` of them.

    None: as many as make `PER_YES` no for each yes; none if `ENOUGH` no were given.
    """
    n_yes, n_no = len(answers.yes), len(answers.no)
    if weak_no is None:
        wanted = 0 if n_no >= ENOUGH else max(0, min(PER_YES * n_yes - n_no, MOST))
    elif isinstance(weak_no, bool) or not isinstance(weak_no, int | np.integer) or weak_no < 0:
        raise DataError(f"weak_no is {weak_no!r}; it must be None or a whole number from 0")
    else:
        wanted = int(weak_no)
    weak = np.sort(np.random.default_rng(seed).permutation(_not_asked(answers, n_rows))[:wanted])
    if not n_no and not weak.size:
        problem = f"label {answers.name!r} has positive answers only"
        if not wanted:
            raise DataError(problem, hint=Hint.WEAK_NO)
        left = "no text of fit is left to be taken for no; give at least one text that it does not apply to"
        raise DataError(f"{problem}, and {left}")
    return replace(answers, weak=tuple(weak.tolist()))


def bounded_thresholds(
    model: StreamingLabelClassifier, batch: list[Answers], kept: FitMemory | None, seed: int
) -> dict[int, float]:
    """Thresholds by label number, for the labels of a batch that have weak answers and would fire too often."""
    found: dict[int, float] = {}
    for answers in batch:
        if not answers.weak or kept is None:
            continue
        n_rows, number = int(kept.X.shape[0]), model.state_.names.number(answers.name)
        own = len(answers.yes) / n_rows
        share = min(CAP * max(kept.labels.nnz / np.prod(kept.labels.shape), own), MOST_OFTEN)
        rows = np.random.default_rng(seed).permutation(_not_asked(answers, n_rows))[:MOST_LOOKED_AT]
        scores = _scores(model, number, kept, rows)
        bound = float(np.quantile(scores, 1.0 - share))
        if bound > model.state_.decisions.thresholds[number]:
            found[number] = bound
    return found


def count_fires(model: StreamingLabelClassifier, number: int, kept: FitMemory | None) -> tuple[int, int] | None:
    """Count the texts of `fit` on which a label fires, of at most `MOST_LOOKED_AT` drawn; None if none are kept."""
    if kept is None:
        return None
    rows = np.random.default_rng(model.random_state).permutation(int(kept.X.shape[0]))[:MOST_LOOKED_AT]
    scores = _scores(model, number, kept, rows)
    return int((scores > model.state_.decisions.thresholds[number]).sum()), len(rows)


def _scores(model: StreamingLabelClassifier, number: int, kept: FitMemory, rows: IntArray) -> FloatArray:
    """Scores of one label on some rows of `fit`; on one thread, so that thresholds are the same everywhere."""
    with one_thread():
        return model.state_.classifiers.scores(kept.X[np.sort(rows)], np.array([number]))[:, 0]


def _not_asked(answers: Answers, n_rows: int) -> IntArray:
    asked = [key for key in (*answers.yes, *answers.no) if isinstance(key, int)]
    return np.setdiff1d(np.arange(n_rows), asked)
