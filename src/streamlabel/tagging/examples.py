"""The answers that a label was learned from, kept beside it: rows and digests, so that it can be learned further."""

from __future__ import annotations

import base64
import functools
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.store.history import Revision
from streamlabel.streaming.calibration import Estimate
from streamlabel.streaming.found import Examples
from streamlabel.streaming.kept_rows import stack
from streamlabel.tagging.text_answers import DIGEST, digest
from streamlabel.types import BoolArray

ALONE, CONTINUING = 1, 2  # formats: all answers of a label, or those after the ones of an earlier classifier
_INTERVALS = ("precision", "recall", "average_precision", "rate")


@dataclass(frozen=True, eq=False)
class LabelExamples:
    """The answers of one label. The texts themselves are not kept.

    rows : (n, d), as the vectoriser made them;   digests : (n, 16) uint8, by which a text is recognised
    answers, asked : (n,) bool, as in `streaming.found.Examples`
    about : the description that it was learned with;   estimate : how good it was thought to be
    parts : what a store has of them, (classifier, answers), the oldest first;   newer : those that it has not
    """

    rows: Any
    digests: NDArray[np.uint8]
    answers: BoolArray
    asked: BoolArray
    about: str = ""
    estimate: Estimate | None = None
    parts: tuple[tuple[int, LabelExamples], ...] = ()
    newer: LabelExamples | None = None

    @classmethod
    def of(cls, texts: Sequence[str], rows: Any, answers: Sequence[bool], *, asked: bool, about: str) -> LabelExamples:
        """Make examples of texts and their rows."""
        digests = np.frombuffer(b"".join(map(digest, texts)), dtype=np.uint8).reshape(-1, DIGEST)
        return cls(rows, digests, np.array(answers, dtype=bool), np.full(len(texts), asked), about)

    @property
    def examples(self) -> Examples:
        """The rows as the estimator takes them."""
        return Examples(self.rows, self.answers, self.asked)

    def joined(self, newer: LabelExamples) -> LabelExamples:
        """These answers and newer ones, which count where a text was answered before; that it was asked stays so."""
        again = {one.tobytes(): bool(asked) for one, asked in zip(self.digests, self.asked, strict=True)}
        fresh = {one.tobytes() for one in newer.digests}
        kept = np.array([one.tobytes() not in fresh for one in self.digests], dtype=bool)
        asked = newer.asked | np.array([again.get(one.tobytes(), False) for one in newer.digests], dtype=bool)
        since = newer if self.newer is None else self.newer.joined(newer)
        return LabelExamples(
            stack(self.rows[kept], newer.rows) if len(newer.digests) else self.rows,
            np.vstack((self.digests[kept], newer.digests)),
            np.concatenate((self.answers[kept], newer.answers)),
            np.concatenate((self.asked[kept], asked)),
            newer.about or self.about,
            parts=self.parts,
            newer=since if self.parts else None,
        )

    def without(self, withdrawn: Iterable[str | bytes]) -> LabelExamples:
        """These answers but for those to some texts, given as texts or digests; a store then has them all to write."""
        gone = {digest(one) if isinstance(one, str) else bytes(one) for one in withdrawn}
        kept = np.array([one.tobytes() not in gone for one in self.digests], dtype=bool)
        if len(gone) != len(kept) - kept.sum():
            raise DataError("a text that is withdrawn has no answer; give texts, or their digests, that were answered")
        if not gone:
            return self
        columns = {name: getattr(self, name)[kept] for name in ("rows", "digests", "answers", "asked")}
        return replace(self, **columns, parts=(), newer=None)

    def judged(self, estimate: Estimate | None) -> LabelExamples:
        """The same answers with another estimate."""
        return replace(self, estimate=estimate)

    def more_content(self) -> dict[str, Any]:
        """The newest of these answers, to be kept after those that a store has.

        Parts that are not twice as large are written again with them: so parts more than halve from one to the next,
        few have to be read, and an answer is written a few times only.
        """
        older, newest = list(self.parts), self if self.newer is None else self.newer
        while older and len(older[-1][1].answers) <= 2 * len(newest.answers):
            newest = older.pop()[1].joined(newest)
        return newest.judged(self.estimate).content(older[-1][0] if older else None)

    def content(self, after: int | None = None) -> dict[str, Any]:
        """The answers as values that JSON knows; ``after`` is the classifier whose answers they continue."""
        rows = sparse.csr_array(self.rows)
        return {
            **({"format": ALONE} if after is None else {"format": CONTINUING, "after": after}),
            "dense": isinstance(self.rows, np.ndarray),
            "about": self.about,
            "estimate": None if self.estimate is None else _estimate_content(self.estimate),
            "digests": _text(self.digests, np.uint8),
            "answers": self.answers.astype(int).tolist(),
            "asked": self.asked.astype(int).tolist(),
            "lengths": np.diff(rows.indptr).tolist(),
            "indices": _text(rows.indices, np.int32),
            "values": _text(rows.data, np.float32),
        }

    @classmethod
    def from_parts(cls, contents: Sequence[tuple[int, Any]], n_features: int, source: object) -> LabelExamples:
        """Read the answers that a store keeps of a label, (classifier, content), the oldest first."""
        parts = tuple((number, cls.from_content(content, n_features, source)) for number, content in contents)
        whole = functools.reduce(LabelExamples.joined, (one for _, one in parts))
        return replace(whole, estimate=parts[-1][1].estimate, parts=parts, newer=None)

    @classmethod
    def from_content(cls, content: Any, n_features: int, source: object) -> LabelExamples:
        """Read what `content` wrote; DataError if it is something else."""
        try:
            if content["format"] != (CONTINUING if "after" in content else ALONE):
                raise ValueError(f"its format is {content['format']!r}; this version reads {ALONE} and {CONTINUING}")
            answers, asked = (np.array(content[key], dtype=bool) for key in ("answers", "asked"))
            digests = _array(content["digests"], np.uint8).reshape(-1, DIGEST)
            indptr = np.concatenate(([0], np.cumsum(np.array(content["lengths"], dtype=np.int64))))
            parts = (
                _array(content["values"], np.float32).astype(np.float64),
                _array(content["indices"], np.int32),
                indptr,
            )
            rows = sparse.csr_array(parts, shape=(len(answers), n_features))
            rows.check_format(full_check=True)
            if not len(answers) == len(asked) == len(digests) == len(indptr) - 1 or len(parts[0]) != indptr[-1]:
                raise ValueError("its columns are not of one length")
            if not np.isfinite(rows.data).all():
                raise ValueError("its values are not finite")
            known = None if content["estimate"] is None else _estimate(content["estimate"])
            found: Any = rows.toarray() if content["dense"] else rows
            return cls(found, digests, answers, asked, str(content["about"]), known)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"the answers of a label are damaged: {error}", source=source) from error


def revisions_that_taught(
    history: Sequence[Revision], label: str, learned: Collection[int]
) -> tuple[list[int], dict[int, int | None]]:
    """The revisions that learned a label on the way to now, oldest first, and for each that did the one before it.

    history : newest first;   learned : all revisions that learned it, those that were undone, too
    """
    oldest = history[-1].number if history else 0
    newest: int | None = max((number for number in learned if number < oldest), default=None)
    before, last, path = dict[int, int | None](), dict[int, int | None](), list[int]()
    for one in reversed(history):
        if one.number in learned:
            before[one.number], newest = newest, one.number
        elif one.action in ("undo", "rollback") and one.detail.get("label", label) == label:
            newest = last.get(one.detail["to"], newest)
        last[one.number] = newest
    while newest is not None:
        path, newest = [newest, *path], before.get(newest)
    return path, before


def answers_by_revision(store: Any, revisions: Iterable[Revision]) -> dict[int, list[tuple[bytes, bool | None]]]:
    """The answers to questions that revisions brought, (digest, yes), or (b"", None) where it is not told which.

    The newest answers of a label come last. So they are told going back, until a revision brought none that is new.
    """
    found: dict[int, list[tuple[bytes, bool | None]]] = {}
    for label in {one.detail["label"] for one in revisions if one.action == "relearn"} & {*store.label_names}:
        number = store.label_names.index(label)
        with suppress(DataError):  # doctor tells of damaged answers
            if not (parts := store.beside(number)):
                continue
            known = LabelExamples.from_parts(parts, store.n_features, store.path)
            asked = {at: int(estimate["n_asked"]) for at, estimate in store.estimates_since(number)}
            path, before = revisions_that_taught(store.history(), label, asked)
            found |= {at: [(b"", None)] * max(0, n - asked.get(before.get(at) or 0, 0)) for at, n in asked.items()}
            left = [(known.digests[at].tobytes(), bool(known.answers[at])) for at in np.flatnonzero(known.asked)]
            while path and (n := len(found[path[-1]])):
                found[path.pop()], left = [*left[-n:]], left[:-n]
    return found


def _estimate_content(estimate: Estimate) -> dict[str, Any]:
    """An estimate as values that JSON knows: what is not known (the precision of a label that never fires) is null."""
    return {
        key: None if isinstance(value, tuple) and np.isnan(value).any() else value
        for key, value in asdict(estimate).items()
    }


def _estimate(content: Any) -> Estimate:
    precision, recall, average_precision, rate = (_interval(content[key]) for key in _INTERVALS)
    counts = float(content["fires"]), int(content["n_pool"]), int(content["n_asked"])
    of_name, reached, alone = (  # older models have none of these, nor what comes behind
        one and float(one) for one in map(content.get, ("of_name", "reached", "alone"))
    )
    raised = None if content.get("raised") is None else _interval(content["raised"])
    known = Estimate(precision, recall, average_precision, rate, *counts, of_name, reached, alone, raised)
    if not 0.0 <= known.fires <= 1.0 or known.n_pool < 0 or known.n_asked < 0:
        raise ValueError("a number of its estimate is out of range")
    return known


def _interval(value: Any) -> tuple[float, float, float]:
    middle, low, high = (np.nan,) * 3 if value is None else map(float, value)
    return middle, low, high


def _text(array: NDArray[Any], dtype: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()).decode()


def _array(text: str, dtype: Any) -> NDArray[Any]:
    content = base64.b64decode(text, validate=True)
    return np.frombuffer(content, dtype=np.dtype(dtype).newbyteorder("<")).astype(dtype)
