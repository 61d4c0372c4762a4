"""How a label was learned, for people who want to know."""

from __future__ import annotations

from dataclasses import dataclass

from streamlabel.models.calibration import Clarity

__all__ = ["LabelReport"]


@dataclass(frozen=True)
class LabelReport:
    """How a label was learned.

    share, lam, anchored, beta : the recipe (`models.calibration`): share of the metric, lasso penalty of the code as a
        share of the rows, whether the classifier was pulled toward the code, ridge strength
    code_size, gap : labels in its code, and the duality gap of the code (0 without one)
    loss, coupled : what its classifier minimises, and whether the labels of its batch helped each other
    clarity : how clear the choice of the recipe was; None where nothing was tried, and in a model that was stored since
    """

    label: str
    n_rows: int
    n_yes: int
    share: float
    lam: float | None
    anchored: bool
    beta: float
    code_size: int = 0
    gap: float = 0.0
    loss: str = "squared"
    coupled: bool = False
    clarity: Clarity | None = None
