"""Parquet with a list column of labels, and a text column or a list column of numbers. Needs the extra ``arrow``.

`write_parquet` keeps the order of the label names (and the feature names) in the file's metadata under
``streamlabel``, so that a written set comes back exactly, with the labels that no row has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.files import available_memory, check_file, replacing
from streamlabel.data.rows import MAX_DENSE_CELLS, check_rows, label_matrix, labels_column_of, parse_date, parse_json
from streamlabel.errors import DataError, Hint, MissingExtraError
from streamlabel.types import CSR, Dataset, FloatArray, TextDataset

_METADATA_KEY = b"streamlabel"
_BUFFER = 1 << 20  # so that a column of a row group is not read as a whole
_BLOCK_BYTES, _MOST_ROWS = 1 << 24, 1 << 14
_BATCH_ROWS = 1_024  # what is decoded before the memory is looked at; fewer would cost speed


def _import_arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "arrow", "Parquet") from None
    return pyarrow, pyarrow.parquet


def read_parquet(
    path: str | os.PathLike[str],
    *,
    text_column: str | None = None,
    features_column: str | None = None,
    labels_column: str | None = None,
    id_column: str | None = None,
    date_column: str | None = None,
    label_names: Sequence[str] | None = None,
    repeated_labels: str = "error",
    max_bytes: int | None = None,
) -> TextDataset | Dataset:
    """Read a Parquet file: a `TextDataset` from a text column, a `Dataset` from a feature column.

    Parameters
    ----------
    text_column, features_column : the column with the texts, or the one with the features (lists of numbers, all of
        one length). Neither given: ``text`` or ``features``, whichever the file has
    labels_column : a list column of strings; an empty list means no label, null is an error. None: ``labels``, else
        ``label``, ``tags`` or another usual name
    id_column, date_column : columns with row ids (strings or integers) and dates (dates, timestamps or ISO strings;
        null is NaT). None: the columns ``id`` and ``date`` where the file has them
    label_names : columns of Y, in this order; other labels are an error. None: the order kept in the file's
        metadata, then order of first appearance
    repeated_labels : "error", or "merge" to count a label that stands twice in one row once
    max_bytes : an error when the columns take more than this in memory; None: half of the memory that is free

    Raises
    ------
    DataError
        With file and row (counted from 1). Nothing is dropped.
    """
    file = _File(path)
    content, has_text = file.content_column(text_column, features_column)
    labels_column = labels_column or labels_column_of(name for name in file.names if name != content) or "labels"
    ids = file.optional_column(id_column, "id")
    dates = file.optional_column(date_column, "date")
    file.read([name for name in (content, labels_column, ids, dates) if name is not None], max_bytes)
    check_rows(file.table.num_rows, file.source)
    kept = file.kept_names()
    Y, names = label_matrix(
        *file.label_codes(labels_column),
        source=file.source,
        row_error=file.row_error,
        label_names=label_names,
        first_names=kept.get("label_names", ()),
        repeated_labels=repeated_labels,
    )
    common: dict[str, Any] = {
        "row_ids": None if ids is None else file.ids(ids),
        "row_dates": None if dates is None else file.dates(dates),
        "source": file.source,
    }
    if has_text:
        return TextDataset(texts=file.strings(content), Y=Y, label_names=names, **common)
    X = sparse.csr_array(file.features(content))
    feature_names = kept.get("feature_names")
    if feature_names is not None and len(feature_names) != X.shape[1]:
        raise DataError(f"keeps {len(feature_names)} feature names for {X.shape[1]} features", source=file.source)
    return Dataset(X=X, Y=Y, label_names=names, feature_names=feature_names, **common)


class ParquetBlocks:
    """A Parquet file read in blocks of rows, one row group after the other, without ever being in memory as a whole.

    groups : the rows of each row group;   sizes : about what each takes in memory, in bytes
    label_names : those kept in the file's metadata, or None;   has_text : whether its content is texts, not features
    """

    def __init__(self, path: str | os.PathLike[str], text_column: str | None = None, labels: str | None = None) -> None:
        self._file = file = _File(path, _BUFFER)
        self.content, self.has_text = file.content_column(text_column, None)
        self._labels = labels or labels_column_of(name for name in file.names if name != self.content) or "labels"
        self.groups, self.sizes = file.groups()
        self.label_names = file.kept_names().get("label_names")

    def blocks(
        self, group: int, *, content: bool = True, labels: bool = True
    ) -> Iterator[tuple[list[str] | FloatArray | None, CSR | None, tuple[str, ...]]]:
        """Texts or features (n, d), labels (n, m) and the names of these, of the rows of a group, block after block."""
        file = self._file
        columns = [self.content] * content + [self._labels] * labels
        first_row = sum(self.groups[:group])
        for _ in file.read_blocks(columns, group, first_row, self.groups[group], self.sizes[group]):
            Y, names = None, tuple[str, ...]()
            if labels:
                codes = file.label_codes(self._labels)
                Y, names = label_matrix(*codes, source=file.source, row_error=file.row_error, repeated_labels="merge")
            found = (
                None if not content else file.strings(self.content) if self.has_text else file.features(self.content)
            )
            yield found, Y, names


class _File:
    """A Parquet file: its columns as arrays, and every failure of the library as a DataError."""

    table: Any  # the columns that `read` has read
    first_row = 0  # of the table, in the file

    def __init__(self, path: str | os.PathLike[str], buffer_size: int = 0) -> None:
        self.arrow, parquet = _import_arrow()
        self.source = os.fspath(path)
        self.failures = (self.arrow.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, MemoryError)
        check_file(path)
        try:
            self._file = parquet.ParquetFile(self.source, page_checksum_verification=True, buffer_size=buffer_size)
            self.names: list[str] = list(self._file.schema_arrow.names)
            self._n_rows = int(self._file.metadata.num_rows)
            self._metadata: dict[bytes, bytes] = self._file.schema_arrow.metadata or {}
        except self.failures as error:
            raise self.damaged(error) from None

    def damaged(self, error: BaseException) -> DataError:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        return DataError(f"not a whole Parquet file ({reason}); fetch or write it again", source=self.source)

    def row_error(self, problem: str, row: int) -> DataError:
        return DataError(f"row {self.first_row + row + 1}: {problem}", source=self.source)

    def check_column(self, name: str) -> str:
        if self.names.count(name) != 1:
            shown = ", ".join(repr(column[:40]) for column in self.names[:30]) or "none"
            count = "no" if name not in self.names else "more than one"
            raise DataError(f"{count} column {name!r}; the columns are {shown}", source=self.source)
        return name

    def optional_column(self, name: str | None, usual: str) -> str | None:
        return None if name is None and usual not in self.names else self.check_column(name or usual)

    def read(self, columns: list[str], max_bytes: int | None) -> None:
        """Read these columns, checked for consistency; batch by batch, so that max_bytes bounds the memory."""
        for name in columns:
            self.check_column(name)
        max_bytes = available_memory() // 2 if max_bytes is None else max_bytes
        batches, size = [], 0
        try:
            for batch in self._batches(columns):
                batch.validate(full=True)
                batches.append(batch)
                size += sum(map(self._bytes_of, batch.columns))
                if size > max_bytes:
                    problem = f"the columns take over {max_bytes} bytes in memory"
                    raise DataError(problem, source=self.source, hint=Hint.MORE_MEMORY)
            schema = self.arrow.schema([self._file.schema_arrow.field(name) for name in columns])
            self.table = self.arrow.Table.from_batches([batch.select(columns) for batch in batches], schema)
        except DataError:
            raise
        except self.arrow.ArrowNotImplementedError as error:
            raise DataError(f"{error}; write these columns as plain lists and strings", source=self.source) from None
        except self.failures as error:
            raise self.damaged(error) from None
        finally:
            self._file.close()
        if self.table.num_rows != self._n_rows:
            problem = f"{self.table.num_rows} rows where its footer says {self._n_rows}; fetch it again"
            raise DataError(problem, source=self.source)

    def groups(self) -> tuple[list[int], list[int]]:
        """The rows and the bytes of each row group."""
        groups = [self._file.metadata.row_group(number) for number in range(self._file.num_row_groups)]
        return [int(one.num_rows) for one in groups], [int(one.total_byte_size) for one in groups]

    def read_blocks(self, columns: list[str], group: int, first_row: int, n_rows: int, n_bytes: int) -> Iterator[None]:
        """Put one block of rows after the other of a row group into the table."""
        for name in columns:
            self.check_column(name)
        self.first_row = first_row
        size = int(np.clip(_BLOCK_BYTES * n_rows // max(n_bytes, 1), 64, _MOST_ROWS))
        try:
            for batch in self._file.iter_batches(size, row_groups=[group], columns=columns, use_threads=False):
                batch.validate(full=True)
                self.table = self.arrow.Table.from_batches([batch])
                yield
                self.first_row += self.table.num_rows
        except self.failures as error:
            raise self.damaged(error) from None
        if self.first_row != first_row + n_rows:
            problem = f"{self.first_row - first_row} rows in row group {group} where its footer says {n_rows}"
            raise DataError(f"{problem}; fetch it again", source=self.source)

    def _bytes_of(self, column: Any) -> int:
        """What a column becomes: strings of a dictionary count as often as they stand there."""
        types, n_bytes = self.arrow.types, int(column.nbytes)
        if types.is_list(column.type) or types.is_large_list(column.type) or types.is_fixed_size_list(column.type):
            column = column.flatten()
        if not (types.is_dictionary(column.type) and self.is_text(column.type)):
            return n_bytes
        lengths = self.arrow.compute.binary_length(column.dictionary).cast("int64")
        total = self.arrow.compute.sum(lengths.take(column.indices)).as_py()
        return n_bytes + int(total or 0)

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        # One row group at a time: Arrow cannot join lists of dictionary-encoded strings across groups.
        for group in range(self._file.num_row_groups):
            yield from self._file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group], columns=columns)

    def kept_names(self) -> dict[str, tuple[str, ...]]:
        """Label names and feature names that `write_parquet` put into the metadata."""
        if _METADATA_KEY not in self._metadata:
            return {}
        try:
            kept = parse_json(self._metadata[_METADATA_KEY].decode())
            names = {key: tuple(kept[key]) for key in ("label_names", "feature_names") if kept.get(key) is not None}
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"damaged metadata 'streamlabel' ({error}); write it again", source=self.source) from None
        for key, values in names.items():
            if not all(isinstance(value, str) for value in values) or len(set(values)) != len(values):
                raise DataError(f"damaged metadata 'streamlabel' ({key}); write it again", source=self.source)
        return names

    def content_column(self, text_column: str | None, features_column: str | None) -> tuple[str, bool]:
        """The column with the texts or the features, and whether it is texts."""
        if text_column is not None and features_column is not None:
            raise DataError("give text_column or features_column, not both")
        no_text = text_column is None and "text" not in self.names
        if features_column is not None or (no_text and "features" in self.names):
            return self.check_column(features_column or "features"), False
        return self.check_column(text_column or "text"), True

    def wrong_type(self, name: str, wanted: str) -> DataError:
        return DataError(f"column {name!r} {wanted}", source=self.source)

    def chunks(self, name: str) -> Iterator[Any]:
        """The column's parts; a null is an error."""
        row = 0
        for chunk in self.table[name].chunks:
            if chunk.null_count:
                first = int(np.argmax(chunk.is_null().to_numpy(zero_copy_only=False)))
                raise self.row_error(f"column {name!r} is null; fill it in, or leave the row out", row + first)
            yield chunk
            row += len(chunk)

    def lists(self, name: str) -> tuple[NDArray[np.int64], Any]:
        """A list column as (indptr, values as one chunked array); a null in a list is an error."""
        types, kind = self.arrow.types, self.table[name].type
        if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
            raise self.wrong_type(name, f"is of type {kind}; it must hold lists")
        lengths, parts = [np.zeros(1, dtype=np.int64)], []
        for chunk in self.chunks(name):
            lengths.append(chunk.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64))
            parts.append(chunk.flatten())
        indptr = np.cumsum(np.concatenate(lengths))
        values = self.arrow.chunked_array(parts, type=kind.value_type)
        if values.null_count:
            first = int(np.argmax(values.is_null().to_numpy()))
            row = int(np.searchsorted(indptr, first, side="right")) - 1
            raise self.row_error(f"a list in column {name!r} contains null; remove it", row)
        return indptr, values

    def is_text(self, kind: Any) -> bool:
        types = self.arrow.types
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(kind) or types.is_large_string(kind))

    def label_codes(self, name: str) -> tuple[NDArray[np.integer], NDArray[np.int64], list[str]]:
        """(codes, indptr, names) as `label_matrix` wants them, by Arrow's dictionary encoding."""
        indptr, values = self.lists(name)
        if not self.is_text(values.type):
            raise self.wrong_type(name, f"holds lists of {values.type}; labels must be strings")
        if self.arrow.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if not len(values):
            return np.zeros(0, dtype=np.int64), indptr, []
        encoded = values.dictionary_encode().unify_dictionaries()
        codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks])
        return codes, indptr, encoded.chunk(0).dictionary.to_pylist()

    def strings(self, name: str) -> list[str]:
        if not self.is_text(self.table[name].type):
            raise self.wrong_type(name, f"is of type {self.table[name].type}; it must hold strings")
        return [text for chunk in self.chunks(name) for text in chunk.to_pylist()]

    def ids(self, name: str) -> tuple[str, ...]:
        if self.arrow.types.is_integer(self.table[name].type):
            return tuple(str(id_) for chunk in self.chunks(name) for id_ in chunk.to_pylist())
        return tuple(self.strings(name))

    def dates(self, name: str) -> NDArray[np.datetime64]:
        column, types = self.table[name], self.arrow.types
        if self.is_text(column.type):
            days = []
            for row, text in enumerate(column.to_pylist()):
                try:
                    days.append(parse_date(text or ""))
                except ValueError as error:
                    raise self.row_error(str(error), row) from None
            return np.array(days, dtype="datetime64[D]")
        if not (types.is_date(column.type) or types.is_timestamp(column.type)):
            raise self.wrong_type(name, f"is of type {column.type}; it must hold dates")
        try:
            return np.asarray(column.cast(self.arrow.date32()).to_numpy(), dtype="datetime64[D]")
        except self.failures as error:
            raise self.wrong_type(name, f"holds a date out of range ({error})") from None

    def features(self, name: str) -> FloatArray:
        """A list column of numbers as a matrix; all lists have one length."""
        indptr, values = self.lists(name)
        types = self.arrow.types
        if not (types.is_floating(values.type) or types.is_integer(values.type)):
            raise self.wrong_type(name, f"holds lists of {values.type}; features must be numbers")
        lengths = np.diff(indptr)
        if (lengths != lengths[0]).any():
            row = int(np.argmax(lengths != lengths[0]))
            raise self.row_error(f"{lengths[row]} features where the rows before have {lengths[0]}", row)
        single = types.is_float32(values.type) or types.is_float16(values.type)
        numbers = values.to_numpy().astype(np.float32 if single else np.float64)
        if not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers))) // int(lengths[0])
            raise self.row_error("a feature is NaN or infinite; remove or impute it", row)
        return numbers.reshape(len(lengths), int(lengths[0]))


def write_parquet(
    dataset: TextDataset | Dataset,
    path: str | os.PathLike[str],
    *,
    text_column: str = "text",
    features_column: str = "features",
    labels_column: str = "labels",
    id_column: str = "id",
    date_column: str = "date",
) -> None:
    """Write a data set as Parquet; the file appears whole or not at all. Features are written as dense lists."""
    arrow, parquet = _import_arrow()
    columns: dict[str, Any] = {}
    kept: dict[str, Any] = {"label_names": dataset.label_names}
    try:
        if dataset.row_ids is not None:
            columns[id_column] = arrow.array(dataset.row_ids, arrow.large_string())
        if dataset.row_dates is not None:
            columns[date_column] = arrow.array(dataset.row_dates.astype("datetime64[D]"), arrow.date32())
        if isinstance(dataset, TextDataset):
            columns[text_column] = arrow.array(dataset.texts, arrow.large_string())
        else:
            columns[features_column] = _feature_lists(arrow, dataset.X)
            kept["feature_names"] = dataset.feature_names
        codes, names = dataset.Y.indices, arrow.array(dataset.label_names, arrow.string())
        labels = arrow.DictionaryArray.from_arrays(arrow.array(codes, arrow.int32()), names).cast(arrow.string())
        ends = arrow.array(dataset.Y.indptr, arrow.int32())
        columns[labels_column] = arrow.ListArray.from_arrays(ends, labels)
        metadata = json.dumps(kept, ensure_ascii=False).encode()
    except (arrow.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"cannot be written as Parquet: {error}", source=path) from None
    table = arrow.table(columns).replace_schema_metadata({_METADATA_KEY: metadata})
    with replacing(path) as handle:
        parquet.write_table(table, handle, write_page_checksum=True)


def _feature_lists(arrow: Any, X: CSR) -> Any:
    n_rows, width = X.shape
    if n_rows * width > MAX_DENSE_CELLS:
        raise DataError(f"{n_rows} rows of {width} features are too many for dense lists; write XC text or npz")
    offsets = arrow.array(np.arange(n_rows + 1) * width, arrow.int32())
    return arrow.ListArray.from_arrays(offsets, arrow.array(X.toarray().ravel()))
