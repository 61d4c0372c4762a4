"""What one run of the neighbours experiment gives."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ALL", "CENTRED", "HALF_LABELS", "HALF_ROWS", "KEY", "OF_PAPER", "PAPER", "SIGNED", "NeighbourRecord"]

ALL, HALF_LABELS, HALF_ROWS = "all others", "half of the others", "half of the rows"
OF_PAPER = "the paper's neighbours"
CENTRED, SIGNED = "centred", "as printed"
# The paper's Table 3: five neighbours each, without weights, signs or the penalty.
PAPER = {
    "bibtex": {
        "epitope": ("sequence", "ldl", "homogeneous", "liposome", "immunosensor"),
        "fornepomuk": ("nepomuk", "langen", "knowledge", "semantics", "knowledgemanagement"),
        "concept": ("formal", "requirements", "empirical", "data", "objectoriented"),
    }
}
KEY = ("dataset", "label", "view", "coding", "lam", "seed", "rank")


@dataclass(frozen=True)
class NeighbourRecord:
    """One neighbour of one label.

    view : which labels were past, or which rows were seen: `ALL`, `HALF_LABELS`, `HALF_ROWS`; `OF_PAPER`: as `ALL`, but
        the neighbour is the one at this place in the paper, whatever its weight
    coding : `CENTRED`, or `SIGNED` as the paper prints it: answers -1/+1, no intercept
    lam : the penalty as a share of the rows
    neighbour, weight : at this rank, by size; "" and 0 where the code is shorter
    code_size, n_yes, n_both : labels in the code; rows with the label; rows with it and the neighbour
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
    n_both: int
    available: bool
    kept: bool
