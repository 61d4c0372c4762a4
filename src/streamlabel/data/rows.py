"""From records to rows: what JSON Lines, CSV, Parquet, text rows and annotation exports share.

A record has labels by name. Columns of Y follow the first appearance of each name in the file, or the order of
``label_names`` where the caller gives it. Names are compared after Unicode NFC normalisation.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.errors import DataError, Hint
from streamlabel.types import CSR, Dataset, TextDataset
from streamlabel.validation import check_label_names

TEXT_NAMES = ("text", "texts", "document", "content", "body", "sentence", "abstract", "description", "comment",
              "message", "question", "title", "headline")  # fmt: skip
LABEL_NAMES = ("labels", "label", "tags", "tag", "categories", "category", "topics", "topic", "keywords", "subjects",
               "classes", "class")  # fmt: skip
MAX_DENSE_CELLS = 50_000_000
NO_DATE = np.datetime64("NaT", "D")

RowError: TypeAlias = Callable[[str, int], DataError]  # (problem, 0-based row) -> the error that points there


def labels_column_of(columns: Iterable[str]) -> str | None:
    """The column that is called as columns of tags are; the first of the usual names wins, else None.

    Case does not matter, but a column in lower case wins against its twin.
    """
    by_case: dict[str, str] = {}
    for column in columns:
        usual = column.lower()
        if usual not in by_case or column == usual:
            by_case[usual] = column
    return next((by_case[usual] for usual in LABEL_NAMES if usual in by_case), None)


class LabelColumns:
    """The column of every label name: the names given, then, unless the list is closed, others as they appear."""

    def __init__(self, given: Sequence[str] = (), *, closed: bool = False) -> None:
        self._column_of = {name: j for j, name in enumerate(check_label_names(given, len(given)))}
        self._closed = closed

    @property
    def names(self) -> tuple[str, ...]:
        """One name a column."""
        return tuple(self._column_of)

    def column(self, name: str) -> int:
        """The column of a name; ValueError says why it cannot have one."""
        checked = checked_name(name)
        if self._closed and checked not in self._column_of:
            known = len(self._column_of)
            raise ValueError(f"label {checked!r} is not among the {known} label_names; add it, or leave them out")
        return self._column_of.setdefault(checked, len(self._column_of))


def checked_name(name: str) -> str:
    """One label name in its canonical form."""
    try:
        return check_label_names((name,), 1)[0]
    except DataError as error:
        raise DataError(error.problem.replace("label name 0", "a label name", 1)) from None


def label_matrix(
    codes: NDArray[np.integer],
    indptr: NDArray[np.integer],
    names: Sequence[str],
    *,
    source: str,
    row_error: RowError,
    label_names: Sequence[str] | None = None,
    first_names: Sequence[str] = (),
    repeated_labels: str = "error",
) -> tuple[CSR, tuple[str, ...]]:
    """Label lists as (Y, label_names).

    Parameters
    ----------
    codes : (n_occurrences,), row after row: which of ``names`` is meant
    indptr : (n_rows + 1,), where each row's occurrences begin and end
    names : the different names as they stand in the file, in order of first appearance
    source : the file, for errors that belong to no row
    row_error : makes the error for a row
    label_names : the columns of Y; a name outside them is an error. None: the names that occur
    first_names : columns that come first whether they occur or not; others follow (used where label_names is None)
    repeated_labels : "error", or "merge" to count a label that stands twice in one row once
    """
    if repeated_labels not in ("error", "merge"):
        raise DataError(f"repeated_labels is {repeated_labels!r}; use 'error' or 'merge'")
    given = tuple(label_names if label_names is not None else first_names)
    try:
        known = LabelColumns(given, closed=label_names is not None)
    except DataError as error:
        raise DataError(error.problem, source=source) from None
    column_of_code = np.zeros(len(names), dtype=np.int64)
    for code, name in enumerate(names):
        try:
            column_of_code[code] = known.column(name)
        except ValueError as error:
            first = int(np.argmax(codes == code))
            raise row_error(str(error), int(np.searchsorted(indptr, first, side="right")) - 1) from None
    columns = column_of_code[codes] if len(names) else np.zeros(0, dtype=np.int64)
    Y = sparse.csr_array(
        (np.ones(len(columns), dtype=np.int8), columns, np.asarray(indptr, dtype=np.int64)),
        shape=(len(indptr) - 1, len(known.names)),
    )
    _settle_repeats(Y, known.names, row_error, repeated_labels)
    return Y, known.names


def _settle_repeats(Y: CSR, names: tuple[str, ...], row_error: RowError, repeated_labels: str) -> None:
    """Sort Y in place; a label twice in one row is refused or counted once."""
    Y.sort_indices()
    starts = np.zeros(Y.nnz + 1, dtype=bool)
    starts[Y.indptr] = True
    repeats = np.flatnonzero((Y.indices[1:] == Y.indices[:-1]) & ~starts[1:-1]) if Y.nnz else np.zeros(0, dtype=int)
    if not len(repeats):
        return
    if repeated_labels == "error":
        row = int(np.searchsorted(Y.indptr, repeats[0], side="right")) - 1
        name = names[int(Y.indices[repeats[0]])]
        error = row_error(f"label {name!r} stands twice", row)
        error.hint = Hint.REPEATED_LABELS
        raise error
    Y.sum_duplicates()
    Y.data[:] = 1


class LabelLists:
    """Collects label lists row by row, for `label_matrix`."""

    def __init__(self) -> None:
        self._code_of: dict[str, int] = {}
        self._codes: list[int] = []
        self._ends: list[int] = [0]

    def add(self, labels: Iterable[str]) -> None:
        for label in labels:
            self._codes.append(self._code_of.setdefault(label, len(self._code_of)))
        self._ends.append(len(self._codes))

    def matrix(self, **options: Any) -> tuple[CSR, tuple[str, ...]]:
        """(Y, label_names); the options are those of `label_matrix`."""
        codes = np.array(self._codes, dtype=np.int64)
        return label_matrix(codes, np.array(self._ends, dtype=np.int64), list(self._code_of), **options)


def matrix_of_names(
    labels: Iterable[Iterable[str]], what: str, label_names: Sequence[str] | None = None
) -> tuple[CSR, tuple[str, ...]]:
    """Y (n, m) and its label names, from a list of names for each row; ``what`` a row is called in errors.

    label_names : the columns of Y, in this order; other names are an error. None: order of first appearance
    """

    def in_row(problem: str, row: int) -> DataError:
        return DataError(f"labels of {what} {row}: {problem}")

    lists = LabelLists()
    for row, names in enumerate(labels):
        if isinstance(names, str) or not isinstance(names, Iterable):
            kind = type(names).__name__
            raise in_row(f"a {kind} where a list of names should be; give [] where none applies", row)
        found = list(names)
        for name in found:
            if not isinstance(name, str):
                raise in_row(f"a label of type {type(name).__name__}; names must be strings", row)
        lists.add(found)
    return lists.matrix(source="labels", row_error=in_row, label_names=label_names, repeated_labels="merge")


def rows_of_names(Y: CSR, label_names: Sequence[str]) -> Iterator[list[str]]:
    """The label names of each row, in the order of the columns."""
    for begin, end in zip(Y.indptr[:-1], Y.indptr[1:], strict=True):
        yield [label_names[j] for j in Y.indices[begin:end]]


def records_of(
    dataset: TextDataset | Dataset, contents: Iterable[Any], *, id_: str, date: str, content: str, labels: str
) -> Iterator[dict[str, Any]]:
    """The rows as records whose fields have these names: id and date where the set has them, content, label names."""
    for row, (value, names) in enumerate(zip(contents, rows_of_names(dataset.Y, dataset.label_names), strict=True)):
        record: dict[str, Any] = {}
        if dataset.row_ids is not None:
            record[id_] = dataset.row_ids[row]
        if dataset.row_dates is not None:
            record[date] = format_date(dataset.row_dates[row])
        record[content], record[labels] = value, names
        yield record


class GatheredRows:
    """Rows of a file as they are read: texts, labels, ids and dates, and the line on which each row begins."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.texts: list[str] = []
        self.labels = LabelLists()
        self.ids: list[str | None] = []
        self.lines: list[int] = []
        self._dates: list[np.datetime64] = []
        self._any_date = False
        self._line = 0

    def at(self, line: int) -> Self:
        """What belongs to one row, as a with block: a ValueError inside becomes a DataError with file and line."""
        self._line = line
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValueError):
            problem, hint = getattr(error, "problem", str(error)), getattr(error, "hint", None)
            raise DataError(problem, source=self.source, line=self._line, hint=hint) from None
        self.lines.append(self._line)

    def add(self, labels: Iterable[str], id_: str | None = None, date: str | None = None) -> None:
        """Labels, id and date of a row. All rows have an id, or none has; an empty date is unknown."""
        self.labels.add(labels)
        self.ids.append(id_)
        self._any_date |= date is not None
        self._dates.append(parse_date(date) if date else NO_DATE)

    def error(self, problem: str, row: int) -> DataError:
        return DataError(problem, source=self.source, line=self.lines[row])

    def common(self, **options: Any) -> dict[str, Any]:
        """What every kind of data set has: Y, label names (by the options of `label_matrix`), row ids and dates."""
        check_rows(len(self.lines), self.source)
        Y, names = self.labels.matrix(source=self.source, row_error=self.error, **options)
        return {
            "Y": Y,
            "label_names": names,
            "row_ids": None if self.ids[0] is None else tuple(str(id_) for id_ in self.ids),
            "row_dates": np.array(self._dates, dtype="datetime64[D]") if self._any_date else None,
            "source": self.source,
        }

    def text_dataset(self, **options: Any) -> TextDataset:
        return TextDataset(texts=self.texts, **self.common(**options))


def check_rows(n_rows: int, source: str) -> None:
    """A file without rows is refused: it is far more often cut off than meant."""
    if not n_rows:
        raise DataError("holds no rows; is it the right file, and whole?", source=source)


def parse_json(text: str) -> Any:
    """One JSON value, strictly: no NaN or Infinity, no key twice, no half surrogate pair.

    ValueError says what is wrong, for a person.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_pairs)
        if "\\u" in text and not is_encodable(json.dumps(value, ensure_ascii=False)):
            raise ValueError("holds half a surrogate pair (\\ud800 to \\udfff); write the character whole")
        return value
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg}, character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number; remove or impute it")


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {repeated[:60]!r} stands twice in one object; keep one")
    return result


def is_encodable(text: str) -> bool:
    """Whether the text can be written as UTF-8 (no lone surrogates)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def parse_date(text: str) -> np.datetime64:
    """An ISO 8601 date, or the day of an ISO 8601 date and time as written; "" is NaT. ValueError otherwise."""
    if not text:
        return NO_DATE
    try:
        return np.datetime64(datetime.datetime.fromisoformat(text).date(), "D")
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a date; write it as YYYY-MM-DD") from None


def format_date(date: np.datetime64) -> str | None:
    """``YYYY-MM-DD``, or None for NaT."""
    if np.isnat(date):
        return None
    day = date.astype("datetime64[D]").astype(object)
    if not isinstance(day, datetime.date):
        raise DataError(f"date {date} cannot be written; years 1 to 9999 can")
    return day.isoformat()
