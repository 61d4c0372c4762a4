"""From answers to yes, no and not asked.

Every person has one say on a text and a label: the last in the file. The majority decides; as many yes as no is
unknown. An answer that the tool marks as the truth counts alone. A label that is younger than an answer was not on
offer when it was given.
"""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.data.files import check_memory
from streamlabel.data.rows import LabelColumns, checked_name
from streamlabel.errors import DataError, Hint, NotFoundError
from streamlabel.types import CSR, BoolArray, IntArray, TextDataset


@dataclass(frozen=True)
class Place:
    """Where a record stands: its file, its first line, its number (both from 1)."""

    source: str
    line: int
    number: int

    def error(self, problem: str | ValueError, id_: str | None = None, **hint: Any) -> DataError:
        if isinstance(problem, DataError):
            hint = {"hint": problem.hint, "hint_value": problem.hint_value}
            problem = problem.problem
        name = f"record {self.number}" + (f" (id {id_[:60]})" if id_ is not None else "")
        return DataError(f"{name}: {problem}", source=self.source, line=self.line, **hint)


@dataclass(frozen=True)
class Options:
    """See `load_annotations`."""

    text_field: str | None = None
    question: str | None = None
    empty_is_no: bool = False
    by_uri: bool = False
    with_times: bool = False


def pick_text(fields: Mapping[str, Any], wanted: str | None) -> str:
    """The text of a record: the field that is wanted, else ``text``, else the only field that is a string."""
    if wanted is None and "text" not in fields:
        candidates = [name for name, value in fields.items() if isinstance(value, str)]
        if len(candidates) != 1:
            found = ", ".join(repr(str(name)[:40]) for name in list(fields)[:20]) or "none"
            raise DataError(f"no field 'text'; the fields are {found}", hint=Hint.TEXT_FIELD)
        wanted = candidates[0]
    name = wanted or "text"
    if not isinstance(fields.get(name), str):
        raise ValueError(f"the field {name!r} is no text; this reader takes text classification only")
    return str(fields[name])


def id_of(value: Any) -> str | None:
    """An id as a string; None where there is none."""
    if value is None or isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)


def name_list(value: Any, field: str) -> tuple[str, ...]:
    """Labels of a text. ValueError for what belongs to another kind of task."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise ValueError(f"{field!r} is no list of labels; this reader takes text classification only")
    for item in value:
        if isinstance(item, list | dict):
            raise ValueError(f"{field!r} holds spans or structures; this reader takes text classification only")
        if not isinstance(item, str):
            raise ValueError(f"{field!r} holds {str(item)[:40]!r}, which is no label name")
    return tuple(value)


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """Texts, their labels, and which cells of Y are answers.

    A cell (text, label) was asked if its text is in ``whole_rows``, or is not and the cell is in ``exceptions``; if
    both, it was not. So a text that was shown with all labels and one that was asked about a single label both take
    next to nothing.

    Attributes
    ----------
    dataset : the texts; ``Y`` is 1 where the answer was yes, 0 where it was no or is unknown
    whole_rows : (n,) bool, texts of which every label was asked but for the exceptions
    exceptions : csr_array (n, m), 1 where a cell differs from its row
    n_ties : cells that are unknown because as many said yes as no
    """

    dataset: TextDataset
    whole_rows: BoolArray
    exceptions: CSR
    n_ties: int = 0

    def annotated(self, labels: Iterable[str] | None = None) -> BoolArray:
        """(n, k) bool for these labels (all by default): what was asked, as `add_labels` takes it."""
        columns = np.arange(self.dataset.n_labels) if labels is None else np.array([self.column(x) for x in labels])
        what = f"what was asked of {self.dataset.n_rows} texts and {len(columns)} labels"
        check_memory(3 * self.dataset.n_rows * len(columns), what, source=self.dataset.source)
        differs = self.exceptions[:, columns.astype(np.intp)].toarray().astype(bool)
        return np.asarray(self.whole_rows[:, None] ^ differs)

    def answers(self, label: str) -> tuple[list[str], list[str]]:
        """The texts that were answered yes and those that were answered no for one label."""
        asked = self.annotated([label])[:, 0]
        yes = self.dataset.Y[:, [self.column(label)]].toarray()[:, 0] > 0
        texts = self.dataset.texts
        return [texts[int(i)] for i in np.flatnonzero(asked & yes)], [
            texts[int(i)] for i in np.flatnonzero(asked & ~yes)
        ]

    @property
    def unanswered(self) -> IntArray:
        """The texts of which nothing is known: skipped, rejected, not yet seen by anybody, or tied on every label."""
        differ = np.diff(self.exceptions.indptr)
        return np.flatnonzero(np.where(self.whole_rows, self.dataset.n_labels - differ, differ) == 0)

    def column(self, label: str) -> int:
        """The number of a label."""
        name = unicodedata.normalize("NFC", label)
        if name not in self.dataset.label_names:
            raise NotFoundError(f"no label is called {label!r}; there are {self.dataset.n_labels} others")
        return self.dataset.label_names.index(name)

    def __repr__(self) -> str:
        data = self.dataset
        return (
            f"Annotations({data.n_rows} texts, {data.n_labels} labels, {len(self.unanswered)} without an answer, "
            f"source={data.source!r})"
        )


@dataclass(frozen=True)
class Answer:
    """What one person said about a text: the labels that fit, of those that were asked (None: all there are)."""

    yes: tuple[str, ...] = ()
    asked: tuple[str, ...] | None = None
    by: str | None = None
    when: datetime.datetime | None = None
    is_truth: bool = False


@dataclass(frozen=True)
class AnnotatedText:
    """One record of an export. Records with the same ``key`` (by default the id) are the same text."""

    text: str
    answers: tuple[Answer, ...] = ()
    id: str | None = None
    key: str | None = None


@dataclass
class _Row:
    text: str
    id: str | None
    answers: list[tuple[Answer, frozenset[int], frozenset[int] | None]] = field(default_factory=list)


class Gathering:
    """Collects records, then settles every cell.

    label_names : the labels of the project; others are an error. None: those that occur, in order of appearance
    births : when labels were added to the project; answers that are older did not see them
    """

    def __init__(self, label_names: Sequence[str] | None, births: Mapping[str, datetime.datetime]) -> None:
        self._columns = LabelColumns(label_names or (), closed=label_names is not None)
        self._known: dict[str, int] = {}
        self._births = {checked_name(name): moment for name, moment in births.items()}
        self._rows: list[_Row] = []
        self._row_of: dict[str, _Row] = {}
        self.n_ties = 0

    def add(self, record: AnnotatedText, place: Place, file: int = 0) -> None:
        """One record; ``file`` tells people apart whom the tool does not name."""
        try:
            row = self._row(record)
            for number, answer in enumerate(record.answers):
                asked = None if answer.asked is None else frozenset(self._column(name) for name in answer.asked)
                yes = frozenset(self._column(name) for name in answer.yes)
                by = answer.by if answer.by is not None else f"\0{file}.{place.number}.{number}"
                row.answers.append((Answer(by=by, when=answer.when, is_truth=answer.is_truth), yes, asked))
        except ValueError as error:
            raise place.error(error, record.id) from None

    def annotations(self, source: str) -> Annotations:
        if not self._rows:
            raise DataError("holds no records; is it the right file, and whole?", source=source)
        names = self._columns.names
        births = {names.index(name): moment for name, moment in self._births.items() if name in names}
        yes: list[list[int]] = []
        exceptions: list[list[int]] = []
        whole = np.zeros(len(self._rows), dtype=bool)
        for number, row in enumerate(self._rows):
            whole[number], said_yes, differs = self._settle(row, births)
            yes.append(said_yes)
            exceptions.append(differs)
        ids = [row.id for row in self._rows]
        dataset = TextDataset(
            texts=[row.text for row in self._rows],
            Y=self._matrix(yes),
            label_names=names,
            row_ids=None if None in ids else tuple(str(id_) for id_ in ids),
            source=source,
        )
        return Annotations(dataset, whole, self._matrix(exceptions), self.n_ties)

    def _row(self, record: AnnotatedText) -> _Row:
        key = record.id if record.key is None else record.key
        if key is None or key not in self._row_of:
            self._rows.append(_Row(record.text, record.id))
            if key is not None:
                self._row_of[key] = self._rows[-1]
            return self._rows[-1]
        row = self._row_of[key]
        if row.text != record.text:
            raise ValueError("has the id of an earlier record and another text; ids must say which text is meant")
        return row

    def _column(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = self._columns.column(name)
        return self._known[name]

    def _settle(self, row: _Row, births: Mapping[int, datetime.datetime]) -> tuple[bool, list[int], list[int]]:
        """(whether the row is whole, columns that are yes, columns that differ from the row), sorted."""
        answers = [said for said in row.answers if said[0].is_truth] or row.answers
        whole = any(asked is None for _, _, asked in answers)
        touched = set(births) if whole else set()
        for _, yes, asked in answers:
            touched |= yes if asked is None else asked
        said_yes, differs = [], []
        for column in sorted(touched):
            votes: dict[str | None, bool] = {}
            birth = births.get(column)
            for answer, yes, asked in answers:
                unborn = birth is not None and answer.when is not None and answer.when < birth
                if column in yes or (not unborn if asked is None else column in asked):
                    votes[answer.by] = column in yes
            balance = 2 * sum(votes.values()) - len(votes)
            self.n_ties += bool(votes) and balance == 0
            if balance > 0:
                said_yes.append(column)
            if (balance != 0) != whole:
                differs.append(column)
        return whole, said_yes, differs

    def _matrix(self, rows: Sequence[Sequence[int]]) -> CSR:
        ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        columns = np.fromiter((column for row in rows for column in row), dtype=np.int64, count=int(ends[-1]))
        shape = (len(rows), len(self._columns.names))
        matrix = sparse.csr_array((np.ones(len(columns), dtype=np.int8), columns, ends), shape=shape)
        matrix.has_canonical_format = True
        return matrix


def parse_time(value: object) -> datetime.datetime | None:
    """ISO 8601 or seconds since 1970; without a time zone it is UTC. None where there is none. ValueError otherwise."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.datetime.fromtimestamp(value, tz=datetime.UTC)
        moment = value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(str(value))
        return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{str(value)[:40]!r} is not a date; write it as YYYY-MM-DD or with a time behind it"
        ) from None


def parse_births(born: Mapping[str, object] | Iterable[tuple[str, object]] | None) -> dict[str, datetime.datetime]:
    """When each label was added, from dates or texts."""
    births: dict[str, datetime.datetime] = {}
    for name, value in dict(born or {}).items():
        try:
            moment = parse_time(value.isoformat() if isinstance(value, datetime.date) else value)
        except ValueError as error:
            raise DataError(f"born, label {name!r}: {error}") from None
        if moment is not None:
            births[name] = moment
    return births
