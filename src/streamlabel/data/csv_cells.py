"""Rows of cells of a CSV file, and cells that no spreadsheet runs.

Spreadsheets take a cell that begins with ``= + - @`` for a formula and run it. Writers therefore put an apostrophe
before every cell that begins with one of these, a tab or a line end (after any apostrophes), and the reader takes one
apostrophe away from exactly such cells, so that what was written comes back.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import IO

from streamlabel.data.records import read_lines
from streamlabel.exceptions import DataError

__all__ = ["csv_rows", "guarded"]

# What begins a formula, the full-width forms too, which spreadsheets take as well.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_GUARDED = re.compile(r"'" + _FORMULA.pattern)


def guarded(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def csv_rows(
    handle: IO[bytes], source: str, delimiter: str, formula_guard: bool, max_line_bytes: int
) -> Iterator[tuple[int, list[str]]]:
    """The rows as (line on which the row begins, cells)."""
    csv.field_size_limit(max(csv.field_size_limit(), min(max_line_bytes, 2**31 - 1)))  # process-wide: only ever raised
    lines = _LinesOfRow(handle, source, max_line_bytes)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        begin = lines.begin_row()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"a quote or a line end is out of place ({error}); close every quote and double those inside"
            raise DataError(problem, source=source, line=begin) from None
        if row:
            yield begin, [cell[1:] if _GUARDED.match(cell) else cell for cell in row] if formula_guard else row


class _LinesOfRow:
    """The lines of the file for the csv reader, with a limit on those that one row may take."""

    def __init__(self, handle: IO[bytes], source: str, max_line_bytes: int) -> None:
        self._lines = read_lines(handle, source, max_line_bytes)
        self._source = source
        self._limit = max_line_bytes
        self._line_number = 0
        self._begin = 1
        self._length = 0

    def begin_row(self) -> int:
        """Called before each row; the number of its first line."""
        self._begin, self._length = self._line_number + 1, 0
        return self._begin

    def __iter__(self) -> _LinesOfRow:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._line_number += 1
        self._length += len(line)
        if self._length > self._limit:
            problem = f"the row is longer than {self._limit} characters; close its quote, or raise max_line_bytes"
            raise DataError(problem, source=self._source, line=self._begin)
        return line
