"""The hyper-parameters that were chosen, as a table shows them: with a mark where a grid ends at them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Protocol

from streamlabel.experiments.method_tables import parameters_of
from streamlabel.experiments.methods import METHODS

__all__ = ["at_edge", "chosen_cell", "edge_note", "strength"]

_EDGE = "at the edge"


class _Chosen(Protocol):
    @property
    def parameters(self) -> str: ...
    @property
    def tuned(self) -> bool: ...


def at_edge(method: str, parameters: str) -> list[str]:
    """Those that are the lowest or the highest number of their grid; one that has a single number has no edge.

    >>> at_edge("LEML", '{"beta": 3.0, "rank": 250}'), at_edge("SLL", '{"beta": "auto", "lam": 0.003}')
    (['rank'], [])
    """
    found = []
    for name, value in json.loads(parameters).items():
        numbers = {one[name] for one in METHODS[method].grid if isinstance(one.get(name), int | float)}
        if len(numbers) > 1 and value in (min(numbers), max(numbers)):
            found.append(name)
    return found


def chosen_cell(method: str, records: Sequence[_Chosen]) -> str:
    """All hyper-parameters of a method, each marked; nothing is marked where nothing was chosen."""
    tuned = all(record.tuned for record in records)
    cells = []
    for text in parameters_of(records):
        edges = at_edge(method, text) if tuned else []
        cells.append(f"`{text}`" + (f" ({', '.join(edges)} {_EDGE})" if edges else ""))
    return "; ".join(cells)


def edge_note(table: str) -> list[str]:
    """A paragraph below a table that has the mark."""
    if _EDGE not in table:
        return []
    return [
        f"'{_EDGE.capitalize()}': the lowest or highest number of its grid was chosen; a wider grid might do better."
    ]


def strength(records: Iterable[_Chosen]) -> str:
    """The ``beta`` of the records, for a sentence.

    >>> from streamlabel.experiments.figure1 import Figure1Record
    >>> strength([Figure1Record("set", "SLL", 100, 0, True, 9, 9, 1, 1, 1, 1, '{"beta": "auto", "lam": 1}', 1, 1)])
    'auto'
    """
    return ", ".join(dict.fromkeys(str(json.loads(text).get("beta", "?")) for text in parameters_of(records)))
