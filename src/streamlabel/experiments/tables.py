"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["markdown_table"]


def markdown_table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table, padded so that it also reads as text: numbers stand right, words left."""
    widths = [max(len(line[j]) for line in (header, *body)) for j in range(len(header))]
    right = [not body or _are_numbers([line[j] for line in body]) for j in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, widths, right, strict=True)
        )
        return "| " + " | ".join(padded) + " |"

    rules = ("-" * (width + 1) + (":" if number else "-") for width, number in zip(widths, right, strict=True))
    return "\n".join([line(header), "|" + "|".join(rules) + "|", *map(line, body)])


def _are_numbers(column: Sequence[str]) -> bool:
    """Most of what is there begins with a digit or a sign.

    >>> _are_numbers(["12.1 ± 0.2", "-3", "not run", ""]), _are_numbers(["SLL", "2 rows"])
    (True, False)
    """
    filled = [cell for cell in column if cell]
    return 2 * sum(cell.lstrip("+-*")[:1].isdigit() for cell in filled) > len(filled)
