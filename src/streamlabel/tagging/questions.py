"""The next question: the texts of a pool whose answers help a label most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.stats.spectral import dense
from streamlabel.types import FloatArray

ALIKE = 0.8  # cosine from which two texts ask the same
TOP, UNSURE = "among the highest scores", "it is hard to say"


@dataclass(frozen=True)
class Question:
    """A question for a person: does the label apply to this text? With what the label says now, and why it is asked."""

    text: str
    probability: float
    score: float
    why: str


def choose_questions(
    X: Any, scores: FloatArray, threshold: float, n_yes: int, n: int, n_asked: int = 0
) -> list[tuple[int, str]]:
    """Rows to ask about, best first, each with the reason: those next to the threshold, every fifth a highest score.

    Without a yes the highest score comes first: nothing else can be learned before. Texts that are nearly the same as
    one that is asked already are left for later. ``n_asked`` were asked before: the turns go on.
    """
    by_score = np.argsort(-scores, kind="stable").tolist()
    by_doubt = np.argsort(np.abs(scores - threshold), kind="stable").tolist()
    usual = ([(by_doubt, UNSURE)] * 4 + [(by_score, TOP)]) * (n + 1)
    turns = [(by_score, TOP)] * (not n_yes) + usual[n_asked % 5 :]
    unit = _unit_rows(X)
    taken: list[tuple[int, str]] = []
    left = np.ones(len(scores), dtype=bool)
    for order, why in turns:
        at = next((at for at in order if left[at]), None)
        if at is None or len(taken) >= n:
            break
        taken.append((at, why))
        left &= dense(unit @ unit[[at]].T).ravel() < ALIKE
        left[at] = False
    return taken


def _unit_rows(X: Any) -> Any:
    if not isinstance(X, np.ndarray):
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        return sparse.csr_array(sparse.diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ X)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1.0)
