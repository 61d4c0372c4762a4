"""Comparisons that rounding cannot turn, so that a choice is the same on every machine.

The last digits of a sum depend on the processor, the BLAS kernel and the number of threads, and so does the order in
which an unstable sort leaves equal values. What is equal but for that must count as equal, and ties must go to
something that does not hang on it: the value that stands first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamlabel.types import FloatArray, IntArray

# Scores that differ by less than this share of their spread are equal: rounding moves a score by 1e-15 of it, ill
# conditioned features by 1e-9, and rows that a person would tell apart differ by far more.
_SAME_SCORE = 1e-6
# Errors that differ by less than this share are equal.
_SAME_ERROR = 1e-9


def even_out(scores: FloatArray, axis: int | None = None) -> FloatArray:
    """Scores rounded to a millionth of their spread (of each column with axis 0), as whole numbers, for ranking."""
    if not scores.size:
        return scores
    spread = scores.std(axis=axis, keepdims=True)
    rounding = 1e-14 * np.abs(scores).max(axis=axis, keepdims=True)  # all that is left of the spread of equal scores
    return np.asarray(np.rint(scores / np.where(spread > rounding, _SAME_SCORE * spread, 1.0)))


def ranked(truth: FloatArray | IntArray, even: FloatArray | IntArray, k: int | None = None) -> IntArray:
    """The answers (r, c), 0 or 1, of each row in the order of its values (r, c), largest first, ties as they stand.

    even : whole numbers (`even_out`). Value, place and answer become one number, so that a fast sort has no ties.
    k : only the first k
    """
    return leading(truth, even, k)[0]


def leading(truth: FloatArray | IntArray, even: FloatArray | IntArray, k: int | None) -> tuple[IntArray, IntArray]:
    """The answers of `ranked`, and the values in that order."""
    n_places = even.shape[1]
    keys = np.ascontiguousarray(even, dtype=np.int64) * (-2 * n_places)
    keys += 2 * np.arange(n_places)
    keys += truth.astype(np.int64)
    if k is not None and k < n_places:
        keys = np.partition(keys, k - 1, axis=1)[:, :k]
    keys.sort(axis=1)
    return np.asarray(keys & 1), np.asarray(-(keys // (2 * n_places)))


def first_least(errors: Sequence[float] | FloatArray) -> int:
    """The place of the first error that is the least, or above it by no more than a billionth."""
    values = np.asarray(errors, dtype=np.float64)
    return int(np.argmax(values <= values.min() * (1.0 + _SAME_ERROR)))


def points(values: FloatArray | float) -> FloatArray:
    """Round percentages to hundredths of a point, halves up (also those that rounding has taken a bit from)."""
    return np.asarray(np.floor(np.asarray(values) * 100.0 + 0.5 + 1e-6) / 100.0)
