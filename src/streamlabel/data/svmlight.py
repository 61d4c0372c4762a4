"""Multi-label svmlight: one line a row, ``l1,l2 f:v f:v``, without a header.

The counts that the form does not carry are taken from the arguments, else from the comment that `write_svmlight` puts
first, else from the largest ids that occur. Feature ids start at 1 unless ``first_feature=0`` is given; labels start
at 0. A line that starts with a space has no labels.

Lines that hold only a comment (``# ...``) are not rows. Every other line is a row, also one of spaces only (a row with
neither labels nor features, as scikit-learn writes it); just the empty lines at the end of the file are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamlabel.data._build import RowsBuilder, named_dataset
from streamlabel.data._bytes import check_block, line_blocks, replacing
from streamlabel.data._limits import check_shape
from streamlabel.data._row_text import row_lines
from streamlabel.data._rows import RowFormat, Rows, parse_rows
from streamlabel.exceptions import DataError
from streamlabel.results import Dataset

__all__ = ["read_svmlight", "states_shape", "write_svmlight"]

PathLike = str | os.PathLike[str]
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
