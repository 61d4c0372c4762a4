"""What was published, to stand beside what is measured here (paper.toml)."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

_TEXT = (resources.files("streamlabel.experiments") / "paper.toml").read_text(encoding="utf-8")
_PAPER: dict[str, Any] = tomllib.loads(_TEXT)
PAPER_METHODS: tuple[str, ...] = tuple(_PAPER["methods"])
PAPER_PAST: dict[str, int] = _PAPER["past"]
MISPRINTS = frozenset(tuple(one) for one in _PAPER["misprints"])
# By set and batch size: P@1, P@3 and P@5 of the methods, in percent.
PAPER: dict[str, dict[int, list[list[float]]]] = {
    name: {int(batch): rows for batch, rows in batches.items()} for name, batches in _PAPER["table2"].items()
}
# By set, measure and batch size: DSLL, the deep successor of the method.
DSLL: dict[str, dict[str, dict[int, float]]] = {
    name: {field: {int(batch): value for batch, value in found.items()} for field, found in measures.items()}
    for name, measures in _PAPER["dsll"].items()
}
NEIGHBOURS: dict[str, dict[str, list[str]]] = _PAPER["table3"]


def paper_figure(dataset: str, batch: int, depth: int, method: str) -> float | None:
    """P@``depth`` in percent, as the paper prints it; None where it prints none.

    >>> paper_figure("bibtex", 75, 3, "SLEEC")
    22.61
    """
    if method not in PAPER_METHODS or batch not in PAPER.get(dataset, {}):
        return None
    return PAPER[dataset][batch][(1, 3, 5).index(depth)][PAPER_METHODS.index(method)]
