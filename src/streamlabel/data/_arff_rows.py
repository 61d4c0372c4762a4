"""The lower half of an ARFF file: rows, dense (``1,0,0.5``) or sparse (``{0 1,5 0.5}``).

Two ways to the same result. `fast_block` reads the plain form (numbers, no quotes, no spare spaces) with arrays and
gives up, returning None, on anything else; `slow_block` reads one line after the other, knows the whole form, and is
the one that says what is wrong where.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamlabel.data._arff_header import Header, split_fields
from streamlabel.data._bytes import show
from streamlabel.data._tokens import NUMBER, Tokens, byte_table
from streamlabel.exceptions import DataError

__all__ = ["Cells", "RowReader"]

LINE_END, SPACE, COMMA, OPEN, CLOSE = range(1, 6)
SPARSE = byte_table({b"\n": LINE_END, b" ": SPACE, b",": COMMA, b"{": OPEN, b"}": CLOSE})
DENSE = byte_table({b"\n": LINE_END, b",": COMMA})
NOTHING, INDEX, VALUE = 1, 2, 3
MANY_DOMAINS = 16


def _roles() -> NDArray[np.uint8]:
    """roles[empty, before, after] of a token in a sparse row; 0 where the plain form does not allow it."""
    roles = np.zeros((2, 6, 6), dtype=np.uint8)
    for before, after in ((LINE_END, OPEN), (OPEN, CLOSE), (CLOSE, LINE_END), (LINE_END, LINE_END)):
        roles[1, before, after] = NOTHING
    roles[0, [OPEN, COMMA], SPACE] = INDEX
    roles[0, SPACE, [COMMA, CLOSE]] = VALUE
    return roles


ROLES = _roles()


@dataclass(frozen=True)
class Cells:
    """Stored cells of some rows: ``counts`` of each row, and the line each row stands on."""

    columns: NDArray[np.intp]
    values: NDArray[np.float64]
    counts: NDArray[np.intp]
    lines: NDArray[np.intp]


class RowReader:
    """Reads the rows of one file, whose header is known."""

    def __init__(self, header: Header, source: str | os.PathLike[str]) -> None:
        self._attributes = header.attributes
        self._source = source
        self._in_numbers = not any(attribute.in_words for attribute in header.attributes)
        domains: dict[frozenset[float], int] = {}
        self._domain_of = np.full(len(header.attributes), -1)
        for j, attribute in enumerate(header.attributes):
            if attribute.codes is not None:
                self._domain_of[j] = domains.setdefault(frozenset(attribute.codes.values()), len(domains))
        self._domains = [np.array(sorted(domain)) for domain in domains]
        # A value left out of a sparse row is the first declared one; the matrix can only take it as 0.
        self._not_zero = next(
            (a.name for a in header.attributes if a.codes is not None and next(iter(a.codes.values())) != 0), None
        )

    def read(self, block: bytes, first_line: int) -> Cells:
        """The rows of a block of lines; blank lines and ``%`` comments are not rows."""
        cells = self.fast_block(block, first_line)
        return self.slow_block(block, first_line) if cells is None else cells

    def fast_block(self, block: bytes, first_line: int) -> Cells | None:
        if not self._in_numbers or len(self._domains) > MANY_DOMAINS:
            return None
        if block.lstrip(b"\n").startswith(b"{"):
            return None if self._not_zero is not None else self._fast_sparse(block, first_line)
        return self._fast_dense(block, first_line)

    def _fast_sparse(self, block: bytes, first_line: int) -> Cells | None:
        tokens = Tokens(block, SPARSE)
        after = SPARSE[tokens.after]
        roles = ROLES[(tokens.sizes == 0).astype(np.uint8), SPARSE[tokens.before], after]
        if not roles.all():
            return None
        index_tokens = np.flatnonzero(roles == INDEX)
        columns, right = tokens.integers(index_tokens)
        values, finite = tokens.floats(index_tokens + 1)
        if not (right.all() and finite.all() and (columns < len(self._attributes)).all()):
            return None
        if not self._declared(columns, values):
            return None
        row_ends = np.flatnonzero(after == CLOSE)
        counts = np.diff(np.searchsorted(index_tokens, row_ends, side="right"), prepend=0)
        lines = first_line + np.searchsorted(np.flatnonzero(after == LINE_END), row_ends)
        return Cells(columns, values, counts, lines)

    def _fast_dense(self, block: bytes, first_line: int) -> Cells | None:
        tokens = Tokens(block, DENSE)
        filled = np.flatnonzero(tokens.sizes)
        ends = np.flatnonzero(tokens.after == ord("\n"))
        per_line = np.diff(np.searchsorted(filled, ends, side="right"), prepend=0)
        n_columns = len(self._attributes)
        # Empty tokens may only be empty lines: so many lines without a value as tokens without a byte.
        if not np.isin(per_line, (0, n_columns)).all() or len(tokens.sizes) - len(filled) != (per_line == 0).sum():
            return None
        flat, finite = tokens.floats(filled)
        columns = np.tile(np.arange(n_columns), len(filled) // n_columns)
        if not finite.all() or not self._declared(columns, flat):
            return None
        stored = np.flatnonzero(flat)
        counts = np.count_nonzero(flat.reshape(-1, n_columns), axis=1)
        return Cells(columns[stored], flat[stored], counts, first_line + np.flatnonzero(per_line))

    def _declared(self, columns: NDArray[np.intp], values: NDArray[np.float64]) -> bool:
        """Whether every value of a nominal attribute is one of those declared."""
        domains = self._domain_of[columns]
        return all(
            bool(np.isin(values[domains == number], domain).all()) for number, domain in enumerate(self._domains)
        )

    def slow_block(self, block: bytes, first_line: int) -> Cells:
        columns: list[int] = []
        values: list[float] = []
        counts: list[int] = []
        lines: list[int] = []
        for line, row in enumerate(block.split(b"\n")[:-1], start=first_line):
            try:
                text = row.decode("utf-8").strip(" \t")
                if not text or text.startswith("%"):
                    continue
                cells = self._sparse_row(text) if text.startswith("{") else self._dense_row(text)
            except UnicodeDecodeError as error:
                raise DataError("not UTF-8; save the file as UTF-8", source=self._source, line=line) from error
            except ValueError as error:
                raise DataError(str(error), source=self._source, line=line) from error
            columns.extend(cell[0] for cell in cells)
            values.extend(cell[1] for cell in cells)
            counts.append(len(cells))
            lines.append(line)
        return Cells(
            np.array(columns, dtype=np.intp),
            np.array(values, dtype=np.float64),
            np.array(counts, dtype=np.intp),
            np.array(lines, dtype=np.intp),
        )

    def _dense_row(self, text: str) -> list[tuple[int, float]]:
        fields = split_fields(text)
        if len(fields) != len(self._attributes):
            raise ValueError(f"{len(fields)} values for {len(self._attributes)} attributes; give one a comma")
        numbers = [self._number(j, field) for j, field in enumerate(fields)]
        return [(j, number) for j, number in enumerate(numbers) if number != 0]

    def _sparse_row(self, text: str) -> list[tuple[int, float]]:
        if self._not_zero is not None:
            raise ValueError(
                f"a sparse row, and the first declared value of attribute {show(self._not_zero)} is not 0, so a value "
                "left out would not be 0; declare 0 first, or write dense rows"
            )
        if not text.endswith("}"):
            raise ValueError(f"a sparse row that ends in {show(text[-20:])}; expected '{{index value,index value}}'")
        fields = split_fields(text[1:-1])
        if fields == [[]]:
            return []
        cells = []
        for field in fields:
            if not field or not (field[0].isascii() and field[0].isdigit()):
                raise ValueError(f"{show(' '.join(field))} in a sparse row; expected 'index value'")
            if len(field[0]) > 15 or int(field[0]) >= len(self._attributes):
                raise ValueError(
                    f"attribute index {show(field[0])[1:-1]}, but there are {len(self._attributes)} attributes, "
                    f"so indices run from 0 to {len(self._attributes) - 1}"
                )
            column = int(field[0])
            cells.append((column, self._number(column, field[1:])))
        return cells

    def _number(self, column: int, words: list[str]) -> float:
        attribute = self._attributes[column]
        if len(words) != 1:
            raise ValueError(f"{show(' '.join(words))} for attribute {show(attribute.name)}; expected one value")
        word = words[0]
        if word == "?":
            raise ValueError(f"attribute {show(attribute.name)} is missing (?); remove or impute such rows")
        if attribute.in_words and attribute.codes is not None:
            if word in attribute.codes:
                return attribute.codes[word]
        else:
            number = float(word) if NUMBER.fullmatch(word.encode("utf-8")) else float("nan")
            if np.isfinite(number) and (attribute.codes is None or number in attribute.codes.values()):
                return number
        wanted = "a finite decimal number" if attribute.codes is None else "one of " + show(",".join(attribute.codes))
        raise ValueError(f"value {show(word)} for attribute {show(attribute.name)}; expected {wanted}")
