"""Sparse rows as text, ``l1,l2 f:v f:v`` a line: the XC repository's format and multi-label svmlight.

A line is a row. Labels come first, separated by commas; a line that starts with a space (or directly with ``f:v``)
has no labels, and one that ends after its labels has no features. Feature ids must increase along the row (any order
is accepted with ``sort=True``); labels may come in any order. An id that occurs twice in a row is always an error.
Files whose name ends in ``.gz`` or ``.bz2`` are unpacked and packed on the way.

The text form of the Extreme Classification repository has a header, ``n_rows n_features n_labels``, or comes in two
files: ``trn_X_Xf.txt`` with the header ``n_rows n_features`` and lines ``f:v f:v``, and ``trn_X_Y.txt`` with the header
``n_rows n_labels`` and lines ``l:1 l:1``. The header is binding: another number of rows or an id beyond its counts is
an error. Empty lines within the announced rows are rows without labels and features; those after the last row are
ignored.

Multi-label svmlight has no header. The counts that it does not carry are taken from the arguments, else from the
comment that `write_svmlight` puts first, else from the largest ids that occur. Feature ids start at 1 unless
``first_feature=0`` is given; labels start at 0. Lines that hold only a comment (``# ...``) are not rows. Every other
line is a row, also one of spaces only (a row with neither labels nor features, as scikit-learn writes it); just the
empty lines at the end of the file are ignored.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.datasets import (
    PathLike,
    RowFormat,
    Rows,
    RowsBuilder,
    named_dataset,
    number_texts,
    row_slices,
    sort_rows,
)
from streamlabel.data.files import (
    BLOCK_SIZE,
    BYTE_ORDER_MARK,
    check_block,
    check_file,
    check_shape,
    line_blocks,
    replacing,
    show,
)
from streamlabel.data.tokens import Tokens, byte_table
from streamlabel.errors import DataError
from streamlabel.types import CSR, Dataset

MAX_COUNT_DIGITS = 15
SHAPE_COMMENT = re.compile(rb"# streamlabel n_rows=([0-9]{1,15}) n_features=([0-9]{1,15}) n_labels=([0-9]{1,15})\n")
AFTER_LABELS = re.compile(rb"[ \t][^\n]*")
COMMENT = re.compile(rb"#[^\n]*")
COMMENT_LINE = re.compile(rb"(?m)^[ \t]*#")
LINE_END, SPACE, COMMA, COLON = 1, 2, 3, 4
SEPARATORS = byte_table({b"\n": LINE_END, b" \t": SPACE, b",": COMMA, b":": COLON})
WRONG, NOTHING, LABEL, INDEX, VALUE = range(5)


def _roles() -> NDArray[np.uint8]:
    """roles[empty, before, after]: what a token is, by whether it is empty and what stands on its two sides."""
    roles = np.full((2, 5, 5), WRONG, dtype=np.uint8)
    for blank in (LINE_END, SPACE):
        roles[1, blank, [LINE_END, SPACE]] = NOTHING
        roles[0, blank, COLON] = INDEX
        roles[0, COLON, blank] = VALUE
    for before in (LINE_END, COMMA):
        roles[0, before, [LINE_END, SPACE, COMMA]] = LABEL
    return roles


ROLES = _roles()


def parse_rows(block: bytes, first_line: int, form: RowFormat) -> Rows:
    """The rows of a block of lines. Every line is a row, the empty ones too."""
    tokens = Tokens(block, SEPARATORS)
    before, after = SEPARATORS[tokens.before], SEPARATORS[tokens.after]
    roles = ROLES[(tokens.sizes == 0).astype(np.uint8), before, after]
    if not roles.all():
        _explain(tokens, int(np.argmin(roles)), first_line, form)
    row_ends = np.flatnonzero(after == LINE_END)
    label_tokens = np.flatnonzero(roles == LABEL)
    labels = _ids(tokens, label_tokens, first_line, form, "label", form.first_label, form.n_labels)
    index_tokens = np.flatnonzero(roles == INDEX)
    features = _ids(tokens, index_tokens, first_line, form, "feature", form.first_feature, form.n_features)
    # A colon stands between an index and its value, so the value is always the next token.
    values = _values(tokens, index_tokens + 1, first_line, form)
    lines = np.arange(first_line, first_line + len(row_ends))
    n_labels = np.diff(np.searchsorted(label_tokens, row_ends, side="right"), prepend=0)
    n_features = np.diff(np.searchsorted(index_tokens, row_ends, side="right"), prepend=0)
    labels, _ = sort_rows(labels, None, n_labels, lines, form.source, "label", form.first_label, sort=True)
    features, values = sort_rows(
        features, values, n_features, lines, form.source, "feature", form.first_feature, sort=form.sort
    )
    return Rows(labels, n_labels, features, n_features, values)


def _ids(
    tokens: Tokens, which: NDArray[np.intp], first_line: int, form: RowFormat, kind: str, first: int, count: int | None
) -> NDArray[np.int64]:
    """0-based ids of these tokens, all of them in range."""
    ids, valid = tokens.integers(which)
    ids -= first
    valid &= ids >= 0
    if count is not None:
        valid &= ids < count
    if not valid.all():
        token = int(which[np.argmin(valid)])
        text = tokens.text(token)
        if not text.isdigit():
            if kind == "feature" and text == b"qid":
                problem = "query ids (qid) belong to ranking, not to labels; remove them"
            else:
                problem = f"{kind} {show(text)}; ids are whole numbers from {first} on"
        elif int(text) < first:
            problem = f"{kind} {int(text)}; ids start at {first} (use first_{kind}=0 if yours start at 0)"
        elif count is None:
            problem = f"{kind} {show(text)} is too large for an id"
        else:
            problem = (
                f"{kind} {show(text)[1:-1]}, but there are {count} {kind}s, so ids run from {first} to "
                f"{first + count - 1}; correct the count, or set first_{kind} if yours start elsewhere"
            )
        raise DataError(problem, source=form.source, line=first_line + tokens.line(token))
    return ids


def _values(tokens: Tokens, which: NDArray[np.intp], first_line: int, form: RowFormat) -> NDArray[np.floating]:
    """The numbers that these tokens write, all of them finite."""
    values, valid = tokens.floats(which)
    with np.errstate(over="ignore"):
        values = values.astype(form.dtype, copy=False)
    valid = valid & np.isfinite(values)
    if not valid.all():
        token = int(which[np.argmin(valid)])
        problem = f"value {show(tokens.text(token))}; values must be finite decimal numbers"
        raise DataError(problem, source=form.source, line=first_line + tokens.line(token))
    return values


def _explain(tokens: Tokens, token: int, first_line: int, form: RowFormat) -> NoReturn:
    text = tokens.text(token)
    where = show(text) if text else "nothing"
    problem = f"{where} between {show(bytes([tokens.before[token]]))} and {show(bytes([tokens.after[token]]))}"
    raise DataError(
        f"{problem}; a row reads 'label,label feature:value feature:value', with a space first if it has no labels",
        source=form.source,
        line=first_line + tokens.line(token),
    )


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
    form = RowFormat(path, None, None, first_feature, first_label, sort, dtype)
    X, Y = _read_counted(form, ("n_rows", "n_features", "n_labels"))
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
    X, _ = _read_counted(RowFormat(features_path, None, 0, first_feature, 0, sort, dtype), ("n_rows", "n_features"))
    relevance, _ = _read_counted(RowFormat(labels_path, None, 0, first_label, 0, True), ("n_rows", "n_labels"))
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
    header = f"{dataset.n_rows} {dataset.n_features} {dataset.n_labels}\n"
    _write(path, header, _row_lines(dataset.X, dataset.Y, first_feature, first_label))


def write_xc_pair(dataset: Dataset, features_path: PathLike, labels_path: PathLike) -> None:
    """Write X and Y as the two files that `read_xc_pair` reads."""
    for matrix, path in ((dataset.X, features_path), (dataset.Y.astype(np.float64), labels_path)):
        nothing: CSR = sparse.csr_array(np.empty((matrix.shape[0], 0), dtype=np.int8))
        lines = (re.sub(r"(?m)^ ", "", lines) for lines in _row_lines(matrix, nothing))
        _write(path, f"{matrix.shape[0]} {matrix.shape[1]}\n", lines)


def _read_counted(form: RowFormat, names: tuple[str, ...]) -> tuple[CSR, CSR]:
    """X and Y of a file whose first line holds the counts of these names; the labels may be missing from it."""
    blocks = line_blocks(form.source)
    line, block = next(blocks, (1, b"\n"))
    header, _, block = block.partition(b"\n")
    n_rows, n_features, *n_labels = _counts(header, form.source, names)
    form = replace(form, n_features=n_features, n_labels=n_labels[0] if n_labels else 0)
    check_shape(n_features, sum(n_labels), source=form.source, line=1)
    builder = RowsBuilder(form)
    line += 1
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


def read_xc_header(path: PathLike) -> tuple[list[int], int]:
    """The counts of rows, features and labels in the first line of XC text, and the size of that line in bytes."""
    check_file(path)
    with open(path, "rb") as handle:
        header = handle.readline(1 << 12)
    plain = header.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n")
    return _counts(plain, path, ("n_rows", "n_features", "n_labels")), len(header)


def read_xc_lines(
    block: bytes, line: int, n_rows: int, total: int, form: RowFormat, *, features: bool
) -> tuple[CSR, CSR]:
    """X and Y of a piece of XC text: whole lines, the first of them number ``line``, that hold so many rows.

    total : the rows of the file, for messages;   features : False reads the labels alone, ten times as fast
    """
    block = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    if block.count(b"\n") > n_rows:
        block = _without_empty_end(block, n_rows, line, total, form)
    if not features:
        block = AFTER_LABELS.sub(b"", block)
    builder, start = RowsBuilder(form), 0
    while start < len(block):
        end = block.rfind(b"\n", start, start + BLOCK_SIZE) + 1 or block.index(b"\n", start) + 1
        builder.add(parse_rows(block[start:end], line, form))
        line, start = line + block.count(b"\n", start, end), end
    return builder.matrices()


def _counts(header: bytes, path: PathLike, names: tuple[str, ...]) -> list[int]:
    """The counts of the first line."""
    counts = header.split()
    wanted = " ".join(names)
    if len(counts) != len(names) or not all(count.isdigit() for count in counts):
        problem = f"the header is {show(header)}; expected {len(names)} whole numbers: {wanted}"
        raise DataError(problem, source=path, line=1)
    if any(len(count) > MAX_COUNT_DIGITS for count in counts):
        raise DataError(f"the header asks for {show(header)} ({wanted}); no machine holds that", source=path, line=1)
    return [int(count) for count in counts]


def _without_empty_end(block: bytes, rows_left: int, line: int, n_rows: int, form: RowFormat) -> bytes:
    """The block up to the last announced row; only empty lines may follow it."""
    lines = block.split(b"\n")
    for position, text in enumerate(lines[rows_left:]):
        if text.strip():
            problem = f"the header says {n_rows} rows, and here is another one; correct the header"
            raise DataError(problem, source=form.source, line=line + rows_left + position)
    return b"".join(text + b"\n" for text in lines[:rows_left])


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
    path : the file
    n_features, n_labels : the number of columns; ids beyond are errors
    first_feature, first_label : the id of the first feature and of the first label

    The others, and what is raised, are as in `read_xc_text`.
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
    _write(path, shape, _row_lines(dataset.X, dataset.Y, first_feature, first_label))


def _rows(block: bytes, first_line: int, form: RowFormat) -> Rows:
    """The rows of a block, without its comments."""
    if b"#" not in block:
        return parse_rows(block, first_line, form)
    line_starts = np.flatnonzero(np.frombuffer(b"\n" + block[:-1], dtype=np.uint8) == ord("\n"))
    comment_starts = [match.start() for match in COMMENT_LINE.finditer(block)]
    rows = parse_rows(COMMENT.sub(b"", block), first_line, form)
    is_row: NDArray[np.bool_] = ~np.isin(line_starts, comment_starts)
    return Rows(rows.labels, rows.n_labels[is_row], rows.features, rows.n_features[is_row], rows.values)


def _row_lines(X: CSR, Y: CSR, first_feature: int = 0, first_label: int = 0) -> Iterator[str]:
    """The rows as text, some at a time; the inverse of `parse_rows`."""
    for x_part, y_part, x_ends, y_ends in row_slices(X, Y):
        indices = (X.indices[x_part].astype(np.int64) + first_feature).tolist()
        pairs = [f"{index}:{text}" for index, text in zip(indices, number_texts(X.data[x_part]), strict=True)]
        labels = [str(j + first_label) for j in Y.indices[y_part].tolist()]
        lines = [
            f"{','.join(labels[y_ends[i] : y_ends[i + 1]])} {' '.join(pairs[x_ends[i] : x_ends[i + 1]])}\n"
            for i in range(len(x_ends) - 1)
        ]
        yield "".join(lines)


def _write(path: PathLike, head: str, lines: Iterator[str]) -> None:
    with replacing(path) as file:
        for text in itertools.chain([head], lines):
            file.write(text.encode("ascii"))
