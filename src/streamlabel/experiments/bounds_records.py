"""What one run of the bounds experiment gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamlabel.experiments.records import Key

__all__ = ["DISTANCE", "KEY", "RISK", "BoundsRecord", "named"]

RISK, DISTANCE = 1, 2
KEY = ("theorem", "dataset", "n_rows", "n_batches", "batch", "beta", "seed")


def named(key: Key) -> dict[str, Any]:
    """The values of a key by the names of its fields."""
    return dict(zip(KEY, key, strict=True))


@dataclass(frozen=True)
class BoundsRecord:
    """One bound and what it bounds. Theorem 1 counts a label, means over the labels that have arrived.

    n_rows : of learning
    n_batches, batch : of the stream; batches that have arrived (random problems: 0, and the number of the problem)
    beta : the strength; 0 where the model chose it (theorem 1)
    actual : theorem 1: risk on unseen rows less that on the rows of learning. Theorem 2: ``||Zh - Z||_F``
    bound, printed : the mended bound on ``actual``, and the paper's (theorem 1: its terms, without constants)
    held, checked : inequalities that held, and how many there were (theorem 1: one a label; theorem 2: both bounds)
    scale : theorem 1: the risk on the rows of learning. Theorem 2: ``||Zh||_F``
    epsilon, code_norm, past_norm, weights_norm : the norms of deviations, codes, past classifiers, all that is bounded
    own, past, confidence, alone : parts of ``bound``, and the same bound for own ridge (theorem 1 only)
    curvature, gradient_norm, cancelled : theorem 2 only; ``cancelled`` is ``||beta E S1'||_F``, equal to the gradient's
    """

    theorem: int
    dataset: str
    n_rows: int
    n_batches: int
    batch: int
    beta: float
    seed: int
    n_past: int
    n_new: int
    actual: float
    bound: float
    printed: float
    held: int
    checked: int
    scale: float
    epsilon: float
    code_norm: float
    past_norm: float
    weights_norm: float
    own: float = 0.0
    past: float = 0.0
    confidence: float = 0.0
    alone: float = 0.0
    curvature: float = 0.0
    gradient_norm: float = 0.0
    cancelled: float = 0.0
