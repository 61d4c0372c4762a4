"""The words of the report, for somebody who has not read the paper."""

from __future__ import annotations

__all__ = ["glossary"]

_TERMS = {
    "Past and new labels": "those that are known at the start, and those that arrive later; nothing that was learned "
    "of older labels changes then.",
    "The learner, SLL, with the past": "one thing: it learns a new label from its annotated rows and, where trials on "
    "past labels found that this helps, from what is known of the others. Names such as 'SLL logistic' and 'logistic "
    "with the past' are its other forms.",
    "Own ridge, BR ridge, learning alone": "ridge regression, one label at a time: the learner without the past. BR, "
    "binary relevance, is one classifier a label, whichever its loss.",
    "LEML": "a competitor of the paper: the classifiers of all labels together have a low rank.",
    "SLEEC": "another: rows are placed in a small space, close where they have labels in common, and a new row gets "
    "the labels of its neighbours. Like LEML it is trained again, on all labels, when some arrive.",
    "P@k": "of the k labels with the highest scores of a row, the share that is right; the mean over rows.",
    "AUC": "how often a row with a label scores higher than a row without it: 50% is guessing, 100% perfect; a mean "
    "over labels, or, where it is called micro, over all rows and labels as one ranking.",
    "Average precision": "of a label whose rows are sorted by score, the share that is right down to each right row, "
    "on average; unlike AUC it falls where the first few are wrong.",
    "Ranking loss": "how often a wrong label stands before a right one in a row; less is better.",
    "Points": "differences of measures in percent.",
    "A stand-in": "a set that was used in place of one that was not at hand, as in `wanted (stand-in used)`; a twin "
    "has the shape of the wanted set and is made up.",
}


def glossary() -> str:
    """As a list in Markdown."""
    return "\n".join(f"- *{term}*: {meaning}" for term, meaning in _TERMS.items())
