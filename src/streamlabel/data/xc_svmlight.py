"""Sparse rows as text: the XC repository's format with a header, and multi-label svmlight without one.

The counts that the form does not carry are taken from the arguments, else from the comment that `write_svmlight` puts
first, else from the largest ids that occur. Feature ids start at 1 unless ``first_feature=0`` is given; labels start
at 0. A line that starts with a space has no labels.

Lines that hold only a comment (``# ...``) are not rows. Every other line is a row, also one of spaces only (a row with
neither labels nor features, as scikit-learn writes it); just the empty lines at the end of the file are ignored.

The text form of the Extreme Classification repository, in one file or in two.

One file: a header ``n_rows n_features n_labels``, then one line a row, ``l1,l2 f:v f:v``. A line that starts with a
space has no labels. Two files: ``trn_X_Xf.txt`` with the header ``n_rows n_features`` and lines ``f:v f:v``, and
``trn_X_Y.txt`` with the header ``n_rows n_labels`` and lines ``l:1 l:1``.

The header is binding: another number of rows or an id beyond its counts is an error. Empty lines within the announced
rows are rows without labels and features; empty lines after the last row are ignored. Files whose name ends in ``.gz``
or ``.bz2`` are unpacked and packed on the way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.datasets import RowsBuilder, named_dataset, row_lines
from streamlabel.data.files import check_block, check_shape, line_blocks, replacing, show
from streamlabel.data.sparse_rows import RowFormat, Rows, parse_rows
from streamlabel.errors import DataError
from streamlabel.types import CSR, Dataset

PathLike = str | os.PathLike[str]
MAX_COUNT_DIGITS = 15


def read_xc_text(
    path: PathLike,
    *,
    first_label: int = 0,
    first_feature: int = 0,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    sort: bool = False,
    dtype: Any = np.float64,
) -> Dataset:
    """Read XC text from one file.

    Parameters
    ----------
    path : the file; its first line is ``n_rows n_features n_labels``
    first_label, first_feature : the id of the first label and of the first feature, 0 in the repository's own files
    label_names, feature_names : one name a column; labels are called ``label_0``, ``label_1``, ... without
    sort : accept feature ids in any order; without it, an id that does not increase is an error
    dtype : float64 or float32, the type of X

    Raises
    ------
    DataError : with the line, for anything that contradicts the header or the format
    NotFoundError : no such file
    """
    blocks = line_blocks(path)
    (n_rows, n_features, n_labels), line, rest = _header(blocks, path, ("n_rows", "n_features", "n_labels"))
    check_shape(n_features, n_labels, source=path, line=1)
    form = RowFormat(path, n_features, n_labels, first_feature, first_label, sort, dtype)
    X, Y = _read_body(blocks, line, rest, n_rows, form)
    return named_dataset(X, Y, label_names, feature_names, path, first_label)


def read_xc_pair(
    features_path: PathLike,
    labels_path: PathLike,
    *,
    first_label: int = 0,
    first_feature: int = 0,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    sort: bool = False,
    dtype: Any = np.float64,
) -> Dataset:
    """Read XC text from two files, ``trn_X_Xf.txt`` and ``trn_X_Y.txt``; the parameters are those of `read_xc_text`."""
    X = _read_matrix(features_path, "n_features", first_feature, sort, dtype)
    relevance = _read_matrix(labels_path, "n_labels", first_label, True, np.float64)
    if X.shape[0] != relevance.shape[0]:
        raise DataError(
            f"{relevance.shape[0]} rows of labels for {X.shape[0]} rows of features in {os.fspath(features_path)}; "
            "the two files must describe the same rows",
            source=labels_path,
        )
    wrong = np.flatnonzero((relevance.data != 0) & (relevance.data != 1))
    if wrong.size:
        line = int(np.searchsorted(relevance.indptr, wrong[0], side="right")) + 1
        problem = f"a label with the value {relevance.data[wrong[0]]:g}; labels are 1, or not there"
        raise DataError(problem, source=labels_path, line=line)
    Y = sparse.csr_array((relevance.data.astype(np.int8), relevance.indices, relevance.indptr), shape=relevance.shape)
    Y.eliminate_zeros()
    return named_dataset(X, Y, label_names, feature_names, features_path, first_label)


def write_xc_text(dataset: Dataset, path: PathLike, *, first_label: int = 0, first_feature: int = 0) -> None:
    """Write X and Y as XC text. The form has no place for names, row ids and dates.

    Reading the file back with the same ``first_*`` and the dtype of X gives exactly the same matrices.
    """
    with replacing(path) as file:
        file.write(f"{dataset.n_rows} {dataset.n_features} {dataset.n_labels}\n".encode("ascii"))
        for lines in row_lines(dataset.X, dataset.Y, first_feature=first_feature, first_label=first_label):
            file.write(lines)


def write_xc_pair(dataset: Dataset, features_path: PathLike, labels_path: PathLike) -> None:
    """Write X and Y as the two files that `read_xc_pair` reads."""
    for matrix, path in ((dataset.X, features_path), (dataset.Y.astype(np.float64), labels_path)):
        nothing: CSR = sparse.csr_array(np.empty((matrix.shape[0], 0), dtype=np.int8))
        with replacing(path) as file:
            file.write(f"{matrix.shape[0]} {matrix.shape[1]}\n".encode("ascii"))
            for lines in row_lines(matrix, nothing):
                file.write(re.sub(rb"(?m)^ ", b"", lines))


def _read_matrix(path: PathLike, column_count: str, first_id: int, sort: bool, dtype: Any) -> CSR:
    blocks = line_blocks(path)
    (n_rows, n_columns), line, rest = _header(blocks, path, ("n_rows", column_count))
    check_shape(n_columns, 0, source=path, line=1)
    form = RowFormat(path, n_columns, 0, first_id, 0, sort, dtype)
    return _read_body(blocks, line, rest, n_rows, form)[0]


def _header(
    blocks: Iterator[tuple[int, bytes]], path: PathLike, names: tuple[str, ...]
) -> tuple[tuple[int, ...], int, bytes]:
    """The counts of line 1, the number of the next line, and what the first block holds after line 1."""
    line, block = next(blocks, (1, b"\n"))
    first, _, rest = block.partition(b"\n")
    counts = first.split()
    wanted = " ".join(names)
    if len(counts) != len(names) or not all(count.isdigit() for count in counts):
        problem = f"the header is {show(first)}; expected {len(names)} whole numbers: {wanted}"
        raise DataError(problem, source=path, line=1)
    if any(len(count) > MAX_COUNT_DIGITS for count in counts):
        raise DataError(f"the header asks for {show(first)} ({wanted}); no machine holds that", source=path, line=1)
    return tuple(int(count) for count in counts), line + 1, rest


def _read_body(
    blocks: Iterator[tuple[int, bytes]], line: int, block: bytes, n_rows: int, form: RowFormat
) -> tuple[CSR, CSR]:
    builder = RowsBuilder(form)
    while True:
        rows_left = n_rows - builder.n_rows
        n_lines = block.count(b"\n")
        if n_lines > rows_left:
            block = _without_empty_end(block, rows_left, line, n_rows, form)
        if block:
            builder.add(parse_rows(block, line, form))
        line += n_lines
        line, block = next(blocks, (line, b""))
        if not block:
            break
    if builder.n_rows != n_rows:
        problem = f"the header says {n_rows} rows, the file has {builder.n_rows}; it may be cut short"
        raise DataError(problem, source=form.source, line=line - 1)
    return builder.matrices()


def _without_empty_end(block: bytes, rows_left: int, line: int, n_rows: int, form: RowFormat) -> bytes:
    """The block up to the last announced row; only empty lines may follow it."""
    lines = block.split(b"\n")
    for position, text in enumerate(lines[rows_left:]):
        if text.strip():
            problem = f"the header says {n_rows} rows, and here is another one; correct the header"
            raise DataError(problem, source=form.source, line=line + rows_left + position)
    return b"".join(text + b"\n" for text in lines[:rows_left])


SHAPE_COMMENT = re.compile(rb"# streamlabel n_rows=([0-9]{1,15}) n_features=([0-9]{1,15}) n_labels=([0-9]{1,15})\n")
COMMENT = re.compile(rb"#[^\n]*")
COMMENT_LINE = re.compile(rb"(?m)^[ \t]*#")


def read_svmlight(
    path: PathLike,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    first_feature: int = 1,
    first_label: int = 0,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    sort: bool = False,
    dtype: Any = np.float64,
) -> Dataset:
    """Read multi-label svmlight.

    Parameters
    ----------
    path : the file, ``.gz`` and ``.bz2`` too
    n_features, n_labels : the number of columns; ids beyond are errors
    first_feature, first_label : the id of the first feature and of the first label
    label_names, feature_names : one name a column; labels are called ``label_0``, ``label_1``, ... without
    sort : accept feature ids in any order; without it, an id that does not increase is an error
    dtype : float64 or float32, the type of X

    Raises
    ------
    DataError : with the line, for anything that is not of this form
    NotFoundError : no such file
    """
    n_rows: int | None = None
    builder: RowsBuilder | None = None
    empty_lines = 0
    for line, block in line_blocks(path):
        if builder is None:
            if stated := SHAPE_COMMENT.match(block):
                n_rows, stated_features, stated_labels = (int(count) for count in stated.groups())
                n_features = stated_features if n_features is None else n_features
                n_labels = stated_labels if n_labels is None else n_labels
            check_shape(n_features or 0, n_labels or 0, source=path, line=line)
            builder = RowsBuilder(RowFormat(path, n_features, n_labels, first_feature, first_label, sort, dtype))
        body = block.rstrip(b"\n") + b"\n"
        if body == b"\n":
            empty_lines += len(block)
            continue
        check_block(empty_lines + len(body), path, line - empty_lines)
        builder.add(_rows(b"\n" * empty_lines + body, line - empty_lines, builder.form))
        empty_lines = len(block) - len(body)
    if builder is None or (not builder.parts and n_rows is None):
        raise DataError("the file has no rows; expected lines 'label,label feature:value'", source=path, line=1)
    if n_rows is not None and builder.n_rows != n_rows:
        problem = f"the first line says {n_rows} rows, the file has {builder.n_rows}; it may be cut short"
        raise DataError(problem, source=path, line=1)
    X, Y = builder.matrices()
    return named_dataset(X, Y, label_names, feature_names, path, first_label)


def states_shape(head: bytes) -> bool:
    """Whether what begins like this says how many labels there are; else a number up to the largest may be none."""
    return SHAPE_COMMENT.match(head) is not None


def write_svmlight(dataset: Dataset, path: PathLike, *, first_feature: int = 1, first_label: int = 0) -> None:
    """Write X and Y as multi-label svmlight, with the shape in a comment. Names, row ids and dates have no place in it.

    Reading the file back with the same ``first_*`` and the dtype of X gives exactly the same matrices.
    """
    shape = f"# streamlabel n_rows={dataset.n_rows} n_features={dataset.n_features} n_labels={dataset.n_labels}\n"
    with replacing(path) as file:
        file.write(shape.encode("ascii"))
        for lines in row_lines(dataset.X, dataset.Y, first_feature=first_feature, first_label=first_label):
            file.write(lines)


def _rows(block: bytes, first_line: int, form: RowFormat) -> Rows:
    """The rows of a block, without its comments."""
    if b"#" not in block:
        return parse_rows(block, first_line, form)
    line_starts = np.flatnonzero(np.frombuffer(b"\n" + block[:-1], dtype=np.uint8) == ord("\n"))
    comment_starts = [match.start() for match in COMMENT_LINE.finditer(block)]
    rows = parse_rows(COMMENT.sub(b"", block), first_line, form)
    is_row: NDArray[np.bool_] = ~np.isin(line_starts, comment_starts)
    return Rows(rows.labels, rows.n_labels[is_row], rows.features, rows.n_features[is_row], rows.values)
