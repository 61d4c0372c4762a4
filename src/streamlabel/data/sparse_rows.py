"""Lines of the form ``l1,l2 f:v f:v`` to arrays: the part that XC text and svmlight share.

A line is a row. Labels come first, separated by commas; a line that starts with a space (or directly with ``f:v``)
has no labels, and one that ends after its labels has no features. Feature ids must increase along the row (any order
is accepted with ``sort=True``); labels may come in any order. An id that occurs twice in a row is always an error.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from streamlabel.data.files import show
from streamlabel.data.tokens import Tokens, byte_table
from streamlabel.errors import DataError

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


@dataclass(frozen=True)
class RowFormat:
    """What ids are allowed and how they are counted. None: whatever occurs."""

    source: str | os.PathLike[str]
    n_features: int | None = None
    n_labels: int | None = None
    first_feature: int = 0
    first_label: int = 0
    sort: bool = False
    dtype: Any = np.float64


@dataclass(frozen=True)
class Rows:
    """Some rows. Ids are 0-based here; ``n_*`` has the number of entries of each row."""

    labels: NDArray[np.int64]
    n_labels: NDArray[np.intp]
    features: NDArray[np.int64]
    n_features: NDArray[np.intp]
    values: NDArray[np.floating]


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


def sort_rows(
    ids: NDArray[Any],
    values: NDArray[Any] | None,
    counts: NDArray[Any],
    lines: NDArray[np.intp] | None,
    source: object,
    kind: str,
    first_id: int = 0,
    *,
    sort: bool,
) -> tuple[NDArray[Any], Any]:
    """Ids strictly increasing within each row, or DataError: for duplicates always, for disorder unless ``sort``.

    ``counts`` has the number of ids of each row; ``lines`` the line each row stands on, None where there are no lines.
    """
    problem = _first_disorder(ids, counts)
    if problem is None:
        return ids, values
    rows = np.repeat(np.arange(len(counts)), counts)
    if not sort and ids[problem] != ids[problem - 1]:
        raise _row_error(
            f"{kind} {ids[problem] + first_id} comes after {ids[problem - 1] + first_id}; "
            "ids must increase along a row (sort=True accepts any order)",
            int(rows[problem]),
            lines,
            source,
        )
    order = np.lexsort((ids, rows))
    ids, values = ids[order], None if values is None else values[order]
    same = np.flatnonzero((np.diff(ids) == 0) & (np.diff(rows) == 0))
    if same.size:
        twice = f"{kind} {ids[same[0]] + first_id} occurs twice in the row; remove one of the two"
        raise _row_error(twice, int(rows[same[0]]), lines, source)
    return ids, values


def _row_error(problem: str, row: int, lines: NDArray[np.intp] | None, source: object) -> DataError:
    if lines is None:
        return DataError(f"matrix row {row}: {problem}", source=source)
    return DataError(problem, source=source, line=int(lines[row]))


def _first_disorder(ids: NDArray[Any], counts: NDArray[np.intp]) -> int | None:
    """Position of the first id that is not greater than the one before it in its row."""
    falls = np.zeros(len(ids) + 1, dtype=bool)
    np.less_equal(ids[1:], ids[:-1], out=falls[1:-1])
    falls[np.cumsum(counts)] = False
    return int(np.argmax(falls)) if falls.any() else None


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
