"""The first screen of the report: what this is, the paper, and the data sets that occur in the records."""

from __future__ import annotations

from collections.abc import Iterable

from streamlabel.data.catalogue_entries import ENTRIES
from streamlabel.experiments.random_problems import RANDOM
from streamlabel.experiments.sets import NEWS_CORPUS, TWIN, asked_name, used_name
from streamlabel.experiments.tables import markdown_table

__all__ = ["WHAT_THIS_IS", "set_table"]

WHAT_THIS_IS = (
    "Streaming label learning (SLL) is a multi-label classifier whose labels grow: a new label is learned with the "
    "help of the known ones, and nothing is trained again.\n"
    "The paper: Shan You, Chang Xu, Yunhe Wang, Chao Xu, Dacheng Tao, *Streaming Label Learning for Modeling Labels on "
    "the Fly*, [arXiv:1604.05449](https://arxiv.org/abs/1604.05449).\n"
    "This page measures the method as streamlabel has it, beside the paper's figures and other methods."
)
_MADE_UP = {RANDOM: "made up, small enough to solve whole", NEWS_CORPUS: "the embedded texts, which are made up"}
_HEADER = ["set", "training rows", "test rows", "features", "labels", "rows and labels", "stands in for"]


def set_table(names: Iterable[str]) -> str:
    """The sets by the names of records, each once also where it stands in for another; shapes are the catalogue's."""
    stands_for: dict[str, list[str]] = {}
    for name in names:
        used, asked = used_name(name), asked_name(name)
        wanted = stands_for.setdefault(name if used == TWIN else used, [])
        if asked != used and asked not in wanted:
            wanted.append(asked)
    return markdown_table(_HEADER, [_line(name, wanted) for name, wanted in stands_for.items()])


def _line(name: str, wanted: list[str]) -> list[str]:
    entries = {entry.name: entry for entry in ENTRIES}
    entry, made_up = entries.get(asked_name(name)), used_name(name) == TWIN
    if entry is None:
        return [name, *[""] * 4, _MADE_UP.get(name, ""), ", ".join(wanted)]
    shape = (entry.n_rows["train"], entry.n_rows["test"], entry.n_features, entry.n_labels)
    described = f"made up, of the shape of {entry.name}" if made_up else entry.description
    return [name, *(f"{n:,}" for n in shape), described, ", ".join(wanted)]
