"""How a line looks: every method has one colour, mark and dash in all pictures, and the learner stands out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["LineStyle", "line_styles"]

_BLUE, _ORANGE, _GREEN, _PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"  # Okabe and Ito, for all eyes
_SKY, _YELLOW, _BLACK, _GREY, _VIOLET, _BROWN = "#56b4e9", "#e69f00", "#000000", "#999999", "#5e3c99", "#8c510a"
_OTHERS = (_BLUE, _ORANGE, _GREEN, _PINK, _SKY, _YELLOW, _BLACK, _GREY)
_MARKS, _DASHES = "osD^vP*X", ("-", "--", ":")
_USUAL, _THICK = 1.4, 3.0  # points


@dataclass(frozen=True)
class LineStyle:
    """Above : what is drawn over what; the larger is on top."""

    colour: str
    mark: str
    dash: str = "-"
    width: float = _USUAL
    above: int = 2


_LEARNER = LineStyle(_BLUE, "o", "-", _THICK, 3)
_ALONE = LineStyle(_ORANGE, "s", "--", _USUAL, 4)  # over the learner, which shows on both sides where they are equal
_LOGISTIC, _LIBRARY_LOGISTIC, _SVM = (
    LineStyle(_GREEN, "v"),
    LineStyle(_GREEN, "P", "--"),
    LineStyle(_PINK, "X", "--"),
)
_PAPER, _WITH_LOGISTIC = LineStyle(_SKY, "s", "--"), LineStyle(_VIOLET, "^")
_KNOWN = {  # one kind of method is one colour, also where experiments call it differently
    "SLL": _LEARNER,
    "with the past": _LEARNER,
    "past always used": LineStyle(_VIOLET, "D", ":"),
    "SLL paper": _PAPER,
    "paper (anchor only)": _PAPER,
    "SLL paper signed": LineStyle(_SKY, "D", ":"),
    "SLL logistic": _WITH_LOGISTIC,
    "logistic with the past": _WITH_LOGISTIC,
    "BR ridge": _ALONE,
    "own ridge": _ALONE,
    "RidgeCV": LineStyle(_ORANGE, "^", ":"),
    "BR logistic": _LOGISTIC,
    "own logistic": _LOGISTIC,
    "scikit-learn logistic": _LIBRARY_LOGISTIC,
    "LogisticRegression": _LIBRARY_LOGISTIC,
    "logistic regression": _LIBRARY_LOGISTIC,
    "napkinXC BR": LineStyle(_GREEN, "X", ":"),
    "BR squared hinge": LineStyle(_PINK, "*"),
    "scikit-learn SVM": _SVM,
    "LinearSVC": _SVM,
    "LEML": LineStyle(_YELLOW, "D"),
    "SLEEC": LineStyle(_GREY, "P"),
    "napkinXC tree": LineStyle(_BROWN, "^"),
    "omikuji": LineStyle(_BLACK, "v"),
    "river": LineStyle(_GREY, "X", "--"),
}


def line_styles(labels: Sequence[str]) -> dict[str, LineStyle]:
    """By label: that of the method, whatever else is in the picture; what is no method takes the colours by turns."""
    unknown = [label for label in labels if label not in _KNOWN]
    found = dict(_KNOWN)
    for place, label in enumerate(unknown):
        dash = _DASHES[place // len(_OTHERS) % len(_DASHES)]
        found[label] = LineStyle(_OTHERS[place % len(_OTHERS)], _MARKS[place % len(_MARKS)], dash)
    return {label: found[label] for label in labels}
