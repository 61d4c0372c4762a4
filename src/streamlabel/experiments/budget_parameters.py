"""Which hyper-parameters the methods of the budget experiment chose, and whether their grids were wide enough."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from streamlabel.experiments.budget import BudgetRecord
from streamlabel.experiments.budget_methods import METHODS
from streamlabel.experiments.tables import markdown_table

__all__ = ["NOTE", "Chosen", "chosen", "chosen_table"]

NOTE = (
    "How often each value was chosen, over seeds and numbers of rows. At an edge are choices of the smallest or the "
    "largest value there was, of three or more; where most are there, a wider grid might have done better."
)


@dataclass(frozen=True)
class Chosen:
    """The values of one hyper-parameter of one method on one set.

    counts : of every value, ascending
    n_at_edge, n_judged : choices of the smallest or largest value of the grid, of those with three values or more
    """

    dataset: str
    method: str
    name: str
    counts: dict[str, int]
    n_at_edge: int
    n_judged: int

    @property
    def mostly_at_edge(self) -> bool:
        return 2 * self.n_at_edge > self.n_judged


def chosen(records: Iterable[BudgetRecord]) -> list[Chosen]:
    """Sets as they come, methods as in METHODS. Records without hyper-parameters are passed over."""
    found: dict[tuple[str, str, str], list[tuple[float, int]]] = {}
    for record in records:
        for name, value in (json.loads(record.parameters) if record.parameters else {}).items():
            found.setdefault((record.dataset, record.method, name), []).append((value, record.n_rows))
    datasets, methods = list(dict.fromkeys(key[0] for key in found)), list(METHODS)
    order = sorted(found, key=lambda key: (datasets.index(key[0]), methods.index(key[1]), key[2]))
    return [_chosen(key, found[key]) for key in order]


def _chosen(key: tuple[str, str, str], values: list[tuple[float, int]]) -> Chosen:
    dataset, method, name = key
    edges = [_at_edge(method, name, value, n_rows) for value, n_rows in values]
    judged = [edge for edge in edges if edge is not None]
    counts = Counter(value for value, _ in values)
    return Chosen(dataset, method, name, {f"{v:.3g}": counts[v] for v in sorted(counts)}, sum(judged), len(judged))


def _at_edge(method: str, name: str, value: float, n_rows: int) -> bool | None:
    """None where the grid has fewer than three values, or not this one: a record may be older than the grid."""
    there = sorted({candidate[name] for candidate in METHODS[method].grid(n_rows) if name in candidate})
    if len(there) < 3 or value not in there:
        return None
    return value in (there[0], there[-1])


def chosen_table(found: Iterable[Chosen]) -> str:
    body = [
        [
            one.method,
            one.name,
            ", ".join(f"{value} ({count})" for value, count in one.counts.items()),
            _edge_words(one),
        ]
        for one in found
    ]
    return markdown_table(["method", "hyper-parameter", "chosen (how often)", "at an edge"], body)


def _edge_words(one: Chosen) -> str:
    if not one.n_judged:
        return ""
    return f"{one.n_at_edge} of {one.n_judged}" + (" **(most)**" if one.mostly_at_edge else "")
