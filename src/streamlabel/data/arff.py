"""Mulan and Meka sets: ARFF files, whose labels are named by an XML file (Mulan) or counted in the header (Meka).

Rows may be dense or sparse. Nominal attributes whose values are numbers are those numbers; with two values of which one
is a word, the first declared is 0 and the second 1. Missing values (``?``), strings and dates are errors. Labels must
be 0 or 1, and come in the order of the file's attributes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from streamlabel.data._arff_header import Header, label_columns, quoted, read_header
from streamlabel.data._arff_rows import Cells, RowReader
from streamlabel.data._build import RowsBuilder, named_dataset
from streamlabel.data._bytes import replacing, show, utf8
from streamlabel.data._row_text import number_texts, row_slices
from streamlabel.data._rows import RowFormat, Rows, sort_rows
from streamlabel.exceptions import DataError
from streamlabel.results import Dataset

__all__ = ["read_arff", "write_arff"]

PathLike = str | os.PathLike[str]
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_arff(
    path: PathLike,
    xml: PathLike | None = None,
    n_labels: int | None = None,
    *,
    sort: bool = False,
    dtype: Any = np.float64,
) -> Dataset:
    """Read an ARFF file with its labels.

    Parameters
    ----------
    path : the ARFF file, ``.gz`` and ``.bz2`` too
    xml : Mulan's file with the names of the labels
    n_labels : how many attributes are labels: the first ``n``, or for ``-n`` the last ``n``, as in Meka. Without
        ``xml`` and ``n_labels`` the header must say it (``@relation 'name: -C n'``).
    sort : accept the indices of a sparse row in any order; without it, disorder is an error
    dtype : float64 or float32, the type of X

    Raises
    ------
    DataError : with the line, for anything that is not of this form
    NotFoundError : no such file
    """
    header, blocks = read_header(path)
    columns = label_columns(header, xml, n_labels, path)
    is_label = np.zeros(len(header.attributes), dtype=bool)
    is_label[columns] = True
    reader = RowReader(header, path)
    form = RowFormat(path, int((~is_label).sum()), len(columns), sort=sort, dtype=dtype)
    builder = RowsBuilder(form)
    for line, block in blocks:
        builder.add(_split(reader.read(block, line), is_label, header, form))
    X, Y = builder.matrices()
    names = [attribute.name for attribute in header.attributes]
    label_names = [name for name, label in zip(names, is_label, strict=True) if label]
    feature_names = [name for name, label in zip(names, is_label, strict=True) if not label]
    return named_dataset(X, Y, label_names, feature_names, path)


def write_arff(dataset: Dataset, path: PathLike, xml: PathLike | None = None, *, relation: str = "streamlabel") -> None:
    """Write a sparse ARFF file, labels first, with Meka's ``-C n`` in its header, and Mulan's XML file if named.

    Features without names are called ``f0``, ``f1``, ...; row ids and dates have no place in the form. Reading the file
    back with the dtype of X gives exactly the same matrices and names.
    """
    if dataset.n_labels == 0:
        raise DataError("a set without labels; ARFF files of this kind need at least one", source=path)
    names = dataset.feature_names or tuple(f"f{j}" for j in range(dataset.n_features))
    if xml is not None:
        _check_xml_names(dataset.label_names, names, xml)
    head = [f"@relation {quoted(f'{relation}: -C {dataset.n_labels}')}", ""]
    head += [f"@attribute {quoted(name)} {{0,1}}" for name in dataset.label_names]
    head += [f"@attribute {quoted(name)} numeric" for name in names]
    with replacing(path) as file:
        file.write(utf8("\n".join([*head, "", "@data", ""]), path))
        for lines in _row_lines(dataset):
            file.write(lines.encode("ascii"))
    if xml is not None:
        labels = "".join(f"<label name={quoteattr(name)}></label>\n" for name in dataset.label_names)
        text = f'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n{labels}'
        with replacing(xml) as file:
            file.write(utf8(f"{text}</labels>\n", xml))


def _split(cells: Cells, is_label: NDArray[np.bool_], header: Header, form: RowFormat) -> Rows:
    """The cells of labels and of features apart, each with its own column numbers."""
    columns, values = sort_rows(
        cells.columns, cells.values, cells.counts, cells.lines, form.source, "attribute", sort=form.sort
    )
    of_label = is_label[columns]
    _check_labels(columns, values, of_label, cells, header, form)
    positions = np.where(is_label, np.cumsum(is_label), np.cumsum(~is_label)) - 1
    with np.errstate(over="ignore"):
        feature_values = values[~of_label].astype(form.dtype)
    if not np.isfinite(feature_values).all():
        wrong = np.flatnonzero(~of_label)[np.argmin(np.isfinite(feature_values))]
        problem = f"value {values[wrong]:g} is too large for {np.dtype(form.dtype)}; read it as float64"
        raise DataError(problem, source=form.source, line=_line_of(int(wrong), cells))
    positive = of_label & (values == 1)
    return Rows(
        positions[columns[positive]],
        _row_counts(positive, cells.counts),
        positions[columns[~of_label]],
        _row_counts(~of_label, cells.counts),
        feature_values,
    )


def _row_counts(chosen: NDArray[np.bool_], counts: NDArray[Any]) -> NDArray[np.intp]:
    """How many of the chosen entries each row has; ``chosen`` has one entry for each that ``counts`` counts."""
    totals = np.concatenate([[0], np.cumsum(chosen)])
    return np.diff(totals[np.concatenate([[0], np.cumsum(counts)])])


def _check_labels(
    columns: NDArray[np.intp],
    values: NDArray[np.float64],
    of_label: NDArray[np.bool_],
    cells: Cells,
    header: Header,
    form: RowFormat,
) -> None:
    wrong = np.flatnonzero(of_label & (values != 0) & (values != 1))
    if wrong.size:
        name = header.attributes[columns[wrong[0]]].name
        problem = f"label {show(name)} has the value {values[wrong[0]]:g}; labels are 0 or 1 (is it a label?)"
        raise DataError(problem, source=form.source, line=_line_of(int(wrong[0]), cells))


def _line_of(cell: int, cells: Cells) -> int:
    return int(cells.lines[np.searchsorted(np.cumsum(cells.counts), cell, side="right")])


def _row_lines(dataset: Dataset) -> Iterator[str]:
    for x_part, y_part, x_ends, y_ends in row_slices(dataset.X, dataset.Y):
        labels = [f"{j} 1" for j in dataset.Y.indices[y_part].tolist()]
        indices = (dataset.X.indices[x_part].astype(np.int64) + dataset.n_labels).tolist()
        texts = number_texts(dataset.X.data[x_part])
        cells = [f"{index} {text}" for index, text in zip(indices, texts, strict=True)]
        rows = (labels[y_ends[i] : y_ends[i + 1]] + cells[x_ends[i] : x_ends[i + 1]] for i in range(len(x_ends) - 1))
        yield "".join(f"{{{','.join(row)}}}\n" for row in rows)


def _check_xml_names(label_names: tuple[str, ...], feature_names: tuple[str, ...], xml: PathLike) -> None:
    features = set(feature_names)
    for name in label_names:
        if name in features:
            raise DataError(
                f"{show(name)} is a label and a feature; Mulan finds labels by name, so rename one", source=xml
            )
        if NOT_XML.search(name):
            raise DataError(f"label {show(name)} has a character that XML does not allow; remove it", source=xml)
