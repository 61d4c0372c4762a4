"""What one run of the neighbours experiment gives."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ALL", "CENTRED", "HALF_LABELS", "HALF_ROWS", "KEY", "SIGNED", "NeighbourRecord"]

ALL, HALF_LABELS, HALF_ROWS = "all others", "half of the others", "half of the rows"
CENTRED, SIGNED = "centred", "as printed"
KEY = ("dataset", "label", "view", "coding", "lam", "seed", "rank")


@dataclass(frozen=True)
class NeighbourRecord:
    """One neighbour of one label.

    view : which labels were past, or which rows were seen: `ALL`, `HALF_LABELS`, `HALF_ROWS`
    coding : `CENTRED`, or `SIGNED` as the paper prints it: answers -1/+1, no intercept
    lam : the penalty as a share of the rows
    neighbour, weight : at this rank, by size; "" and 0 where the code is shorter
    code_size, n_yes : labels in the code; rows with the label
    available, kept : whether the neighbour that has this rank with all labels and rows was past here, and whether it is
        in this code with the same sign
    """

    dataset: str
    label: str
    view: str
    coding: str
    lam: float
    seed: int
    rank: int
    neighbour: str
    weight: float
    code_size: int
    n_yes: int
    available: bool
    kept: bool
