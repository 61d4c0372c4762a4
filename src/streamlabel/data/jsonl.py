"""JSON Lines: one object a line, ``{"text" | "features", "labels", optional "id" and "date"}``, in UTF-8.

``text`` is a string. ``features`` is an object name -> number, or an array of numbers; one of the three forms runs
through the whole file. ``labels`` is an array of strings, empty where a row has none. ``date`` is ISO 8601, or null.
Blank lines are skipped; fields with other names are not read. A label that stands twice in one row is an error
unless ``repeated_labels="merge"``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.files import MAX_LINE_BYTES, Source, numbered_lines, replacing, source_name
from streamlabel.data.rows import MAX_DENSE_CELLS, GatheredRows, labels_column_of, parse_json, records_of
from streamlabel.errors import DataError, Hint
from streamlabel.types import CSR, Dataset, TextDataset


def read_jsonl(
    path: Source,
    *,
    text_field: str | None = "text",
    features_field: str | None = "features",
    labels_field: str | None = None,
    id_field: str = "id",
    date_field: str = "date",
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    repeated_labels: str = "error",
    dtype: Any = np.float64,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> TextDataset | Dataset:
    """Read a JSON Lines file: a `TextDataset` where rows have a text, a `Dataset` where they have features.

    Parameters
    ----------
    path : a path, "-" for standard input, or an open binary file
    text_field, features_field : names of the two fields; None to leave that one unread where rows have both
    labels_field : the field with the labels; None: ``labels``, else ``label``, ``tags`` or another usual name that the
        first row has
    id_field, date_field : names of the other fields. All rows have an id, or none has; a row without a date, among
        rows that have one, gets NaT
    label_names : columns of Y, in this order; other labels are an error. None: order of first appearance
    feature_names : columns of X, likewise (for features given by name)
    repeated_labels : "error", or "merge" to count a label that stands twice in one row once
    dtype : float64 or float32, for X
    max_line_bytes : a longer line is an error

    Raises
    ------
    DataError
        With file and line, at the first row that cannot be used. Nothing is dropped.
    """
    fields = _Fields(text_field, features_field, labels_field, id_field, date_field)
    rows = GatheredRows(source_name(path))
    content = _Content(rows, fields, _Features(feature_names, dtype))
    for line, record in json_records(path, max_line_bytes):
        with rows.at(line):
            content.add(record)
            fields = fields if fields.labels is not None else fields._replace(labels=_labels_field(record, fields))
            rows.add(_labels_of(record, fields), _id_of(record, fields, rows), _date_of(record, fields))
    common = rows.common(label_names=label_names, repeated_labels=repeated_labels)
    if content.form == "text":
        return TextDataset(texts=rows.texts, **common)
    X, columns = content.features.matrix()
    return Dataset(X=X, feature_names=columns, **common)


def json_records(path: Source, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file, each with its line."""
    for number, line in numbered_lines(path, max_line_bytes):
        try:
            record = parse_json(line)
            if not isinstance(record, dict):
                raise ValueError(f"is {_kind(record)}; each line must be an object {{...}}")
        except ValueError as error:
            raise DataError(str(error), source=source_name(path), line=number) from None
        yield number, record


class _Fields(NamedTuple):
    """What the fields are called."""

    text: str | None
    features: str | None
    labels: str | None
    id: str
    date: str


class _Content:
    """Texts or features: one form that runs through the whole file."""

    def __init__(self, rows: GatheredRows, fields: _Fields, features: _Features) -> None:
        self._rows, self._names, self.features = rows, (fields.text, fields.features), features
        self.form = ""  # text, numbers by name, a list of numbers

    def add(self, record: dict[str, Any]) -> None:
        present = [name for name in self._names if name is not None and name in record]
        if len(present) != 1:
            raise self._no_single_content(record, present)
        value = record[present[0]]
        if present[0] == self._names[0]:
            form = "text"
            self._rows.texts.append(_string(value, present[0]))
        elif isinstance(value, dict | list):
            form = "numbers by name" if isinstance(value, dict) else "a list of numbers"
            self.features.add(value)
        else:
            raise ValueError(f"{present[0]!r} is {_kind(value)}; use an object name -> number or a list of numbers")
        self.form = self.form or form
        if form != self.form:
            raise ValueError(f"has {form} where the rows before have {self.form}; one form must run through the file")

    def _no_single_content(self, record: dict[str, Any], present: list[str]) -> DataError:
        if present:
            return DataError(f"has both {present[0]!r} and {present[1]!r}", hint=Hint.ONE_CONTENT)
        wanted = " or ".join(repr(name) for name in self._names if name is not None)
        return DataError(f"no field {wanted}; the fields are {_listing(record)}", hint=Hint.TEXT_FIELD)


def _labels_field(record: dict[str, Any], fields: _Fields) -> str:
    return labels_column_of(name for name in record if name != fields.text) or "labels"


def _labels_of(record: dict[str, Any], fields: _Fields) -> list[str]:
    if fields.labels not in record:
        raise ValueError(f"no field {fields.labels!r}; the fields are {_listing(record)} ([] means no label)")
    labels = record[fields.labels]
    if not isinstance(labels, list):
        raise ValueError(f"{fields.labels!r} is {_kind(labels)}; it must be a list of strings")
    for label in labels:
        if not isinstance(label, str):
            raise ValueError(f"{fields.labels!r} holds {_kind(label)}; it must be a list of strings")
    return labels


def _id_of(record: dict[str, Any], fields: _Fields, rows: GatheredRows) -> str | None:
    value = record.get(fields.id)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    id_ = None if fields.id not in record else str(value) if is_number else _string(value, fields.id)
    if rows.ids and (id_ is None) != (rows.ids[0] is None):
        state = "no" if id_ is None else "a"
        raise ValueError(f"has {state} field {fields.id!r}, unlike the rows before; give all rows an id, or none")
    return id_


def _date_of(record: dict[str, Any], fields: _Fields) -> str | None:
    """None where the record has no such field, "" where it is null."""
    if fields.date not in record:
        return None
    value = record[fields.date]
    return "" if value is None else _string(value, fields.date)


class _Features:
    """Features row by row: CSR parts, and the column of each name (or the common length of the lists)."""

    def __init__(self, feature_names: Sequence[str] | None, dtype: Any) -> None:
        self._column_of = {str(name): j for j, name in enumerate(feature_names or ())}
        self._closed = feature_names is not None
        self._dtype = np.dtype(dtype) if dtype in ("float32", "float64", np.float32, np.float64) else None
        if self._dtype is None:
            raise DataError(f"dtype is {dtype!r}; use 'float64' or 'float32'")
        if feature_names is not None and len(self._column_of) != len(feature_names):
            raise DataError("feature_names holds a name twice; names must differ")
        self._width: int | None = None
        self._columns: list[NDArray[np.int64]] = []
        self._values: list[NDArray[np.floating]] = []

    def add(self, features: dict[str, Any] | list[Any]) -> None:
        if isinstance(features, dict):
            columns = self._columns_of_names(list(features))
            values = _finite_numbers(list(features.values()), self._dtype)
        else:
            columns = self._columns_of_list(len(features))
            values = _finite_numbers(features, self._dtype)
        kept = values != 0
        self._columns.append(columns[kept])
        self._values.append(values[kept])

    def _columns_of_names(self, names: list[str]) -> NDArray[np.int64]:
        if self._closed:
            for name in names:
                if name not in self._column_of:
                    known = len(self._column_of)
                    raise ValueError(
                        f"feature {name[:60]!r} is not among the {known} feature_names; add it, or leave them out"
                    )
        codes = [self._column_of.setdefault(name, len(self._column_of)) for name in names]
        return np.array(codes, dtype=np.int64)

    def _columns_of_list(self, width: int) -> NDArray[np.int64]:
        if self._closed and width != len(self._column_of):
            raise ValueError(f"has {width} features for {len(self._column_of)} feature_names")
        self._width = width if self._width is None else self._width
        if width != self._width:
            raise ValueError(f"has {width} features where the rows before have {self._width}")
        return np.arange(width)

    def matrix(self) -> tuple[CSR, tuple[str, ...] | None]:
        """(X, feature_names); there are no names where rows were lists and none were given."""
        names = tuple(self._column_of) if self._closed or self._width is None else None
        width = len(self._column_of) if self._width is None else self._width
        indptr = np.cumsum([0, *map(len, self._columns)])
        parts = (np.concatenate(self._values), np.concatenate(self._columns), indptr)
        X = sparse.csr_array(parts, shape=(len(self._columns), width))
        X.sort_indices()
        return X, names


def _finite_numbers(numbers: list[Any], dtype: Any) -> NDArray[np.floating]:
    for kind in set(map(type, numbers)) - {int, float}:
        example = next(number for number in numbers if type(number) is kind)
        raise ValueError(f"the features hold {_kind(example)}; they must be numbers")
    try:
        with np.errstate(over="ignore"):
            values = np.array(numbers, dtype=np.float64).astype(dtype, copy=False)
    except OverflowError:
        values = np.array([np.inf])
    if not np.isfinite(values).all():
        raise ValueError(f"a feature is too large for {dtype}; rescale it, or use float64")
    return values


def _string(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{field!r} is {_kind(value)}; it must be a string")
    return value


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _listing(record: dict[str, Any]) -> str:
    names = ", ".join(repr(name[:40]) for name in list(record)[:20])
    return (names or "none") + (", ..." if len(record) > 20 else "")


def write_jsonl(
    dataset: TextDataset | Dataset,
    path: str | os.PathLike[str],
    *,
    text_field: str = "text",
    features_field: str = "features",
    labels_field: str = "labels",
    id_field: str = "id",
    date_field: str = "date",
) -> None:
    """Write a data set as JSON Lines; the file appears whole or not at all.

    Features go by name where the set has feature names (zeros are left out), else as lists of all numbers. The
    format has no place for the order of columns, nor for labels and features that no row has: pass ``label_names``
    and ``feature_names`` to `read_jsonl` to get the same matrices back, exactly.
    """
    field = text_field if isinstance(dataset, TextDataset) else features_field
    names = {"id_": id_field, "date": date_field, "content": field, "labels": labels_field}
    if isinstance(dataset, TextDataset):
        contents: Iterable[Any] = dataset.texts
    elif dataset.feature_names is None and dataset.n_rows * dataset.n_features > MAX_DENSE_CELLS:
        raise DataError(
            f"{dataset.n_rows} rows of {dataset.n_features} features without names would be written as lists of all "
            "numbers; give the set feature_names, or write it as XC text or npz"
        )
    else:
        contents = _feature_rows(dataset.X, dataset.feature_names)
    with replacing(path) as handle:
        for row, record in enumerate(records_of(dataset, contents, **names)):
            try:
                handle.write((json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode())
            except (ValueError, TypeError) as error:
                raise DataError(f"row {row + 1} cannot be written as JSON: {error}", source=path) from None


def _feature_rows(X: CSR, names: tuple[str, ...] | None) -> Iterator[dict[str, float] | list[float]]:
    for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        columns, values = X.indices[begin:end].tolist(), X.data[begin:end].tolist()
        if names is not None:
            yield {names[j]: value for j, value in zip(columns, values, strict=True)}
        else:
            dense = [0.0] * X.shape[1]
            for j, value in zip(columns, values, strict=True):
                dense[j] = value
            yield dense
