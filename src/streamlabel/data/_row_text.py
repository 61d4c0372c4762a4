"""Matrices to lines of text, with numbers that read back exactly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from streamlabel.results import CSR

__all__ = ["number_texts", "row_lines", "row_slices"]

ROWS_PER_WRITE = 1000


def number_texts(values: NDArray[np.floating]) -> list[str]:
    """Each value as a short decimal that reads back to exactly the same number of the same type."""
    if values.dtype == np.float64:
        return [repr(value) for value in values.tolist()]
    # float32: the fewest of 6 to 9 digits that survive reading as float64 and rounding to float32.
    doubles = values.tolist()
    texts = [f"{value:.6g}" for value in doubles]
    for digits in (7, 8, 9):
        back = np.array([float(text) for text in texts]).astype(np.float32)
        for position in np.flatnonzero(back != values):
            texts[position] = f"{doubles[position]:.{digits}g}"
    return texts


def row_slices(X: CSR, Y: CSR) -> Iterator[tuple[slice, slice, list[int], list[int]]]:
    """Some rows at a time: their entries of X and of Y as slices, and where in these each row starts and ends."""
    for start in range(0, X.shape[0], ROWS_PER_WRITE):
        x, y = (matrix.indptr[start : start + ROWS_PER_WRITE + 1] for matrix in (X, Y))
        yield slice(x[0], x[-1]), slice(y[0], y[-1]), (x - x[0]).tolist(), (y - y[0]).tolist()


def row_lines(X: CSR, Y: CSR, *, first_feature: int = 0, first_label: int = 0) -> Iterator[bytes]:
    """The rows as text, some at a time; the inverse of what ``_rows`` reads."""
    for x_part, y_part, x_ends, y_ends in row_slices(X, Y):
        indices = (X.indices[x_part].astype(np.int64) + first_feature).tolist()
        pairs = [f"{index}:{text}" for index, text in zip(indices, number_texts(X.data[x_part]), strict=True)]
        labels = [str(j + first_label) for j in Y.indices[y_part].tolist()]
        lines = [
            f"{','.join(labels[y_ends[i] : y_ends[i + 1]])} {' '.join(pairs[x_ends[i] : x_ends[i + 1]])}\n"
            for i in range(len(x_ends) - 1)
        ]
        yield "".join(lines).encode("ascii")
