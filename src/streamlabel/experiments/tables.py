"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["markdown_table"]


def markdown_table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table, padded so that it also reads as text."""
    widths = [max(len(line[j]) for line in (header, *body)) for j in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|"
    return "\n".join([line(header), rule, *map(line, body)])
