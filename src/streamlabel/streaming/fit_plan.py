"""How `fit` will learn, and what it will take: the one place where the size decides, before any work is done.

With the squared loss there are three roads to the same ridge:

* ``spectral``: the eigenvectors of the rows, with which the strength is chosen on all of them; up to `SPECTRAL_LIMIT`;
* ``single``: the strength is chosen on a sample of the rows, then one Cholesky factor in single precision;
* ``iterative``: the same strength, then conjugate gradients; for rows and features that are both too many.

Above the limit the road that takes less time is taken, if there is memory for it. Other losses are always iterative.

Times are those of one core that multiplies single precision matrices at `RATE`, and memory comes on top of what the
rows take. Both were measured (``make bench ARGS=fit``) and are meant to be right within a factor of two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamlabel.errors import DataError, Hint
from streamlabel.types import CSR, FloatArray

SPECTRAL_LIMIT = 3_000  # the smaller side of the rows; four seconds and 0.4 GB for the eigenvectors
SINGLE_LIMIT = 40_000  # of the same; 6.4 GB, and what LAPACK can address
SAMPLED_ROWS = 2_000  # by which the strength is chosen where there is no spectrum of all

RATE = 1e11  # multiplications a second of a float32 matrix product
_SPARSE = 2e9  # of sparse rows with dense columns
_GRAM = 1e8  # of sparse rows with each other
_EIGEN = 6e9  # order^3 a second
_JUDGED = 1_000  # rows
_PRODUCTS = {"squared": 60.0, "logistic": 100.0, "squared_hinge": 100.0}  # with all rows, of every label, in one solve


@dataclass(frozen=True)
class FitPlan:
    """The road of a fit, and what it takes: CPU seconds and bytes, beside those of the rows themselves."""

    road: str
    seconds: float
    n_bytes: int


@dataclass(frozen=True)
class FitSize:
    """The size of what is learned from: rows, features, labels, and values that are stored (None: dense rows)."""

    n_rows: int
    n_features: int
    n_labels: int
    n_stored: int | None = None

    @classmethod
    def of(cls, X: CSR | FloatArray, labels: CSR) -> FitSize:
        """The size of rows X (n, d) and labels (n, m)."""
        return cls(X.shape[0], X.shape[1], labels.shape[1], None if isinstance(X, np.ndarray) else int(X.nnz))

    @property
    def order(self) -> int:
        return min(self.n_rows, self.n_features)

    @property
    def product_seconds(self) -> float:
        """For ``X'(X Z)`` with a column for each label."""
        dense = self.n_stored is None
        values = self.n_rows * self.n_features if self.n_stored is None else self.n_stored
        return 2.0 * values * self.n_labels / (RATE / 2.0 if dense else _SPARSE)

    @property
    def gram_seconds(self) -> float:
        if self.n_stored is None:
            return self.n_rows * self.n_features * self.order / RATE
        return self.n_stored**2 / max(self.n_rows, self.n_features) / _GRAM

    @property
    def classifier_bytes(self) -> int:
        return 8 * self.n_features * self.n_labels


def plan_fit(size: FitSize, loss: str = "squared", *, available: int | None = None) -> FitPlan:
    """The road to take, and its cost; ``available`` bytes (None: any number) rule roads out if others need less."""
    if loss not in ("squared", "auto"):
        return _iterative(size, loss)
    if size.order <= SPECTRAL_LIMIT:
        roads = [_spectral(size)]
    else:
        roads = sorted((_single(size), _iterative(size, "squared")), key=lambda plan: plan.seconds)
        if size.order > SINGLE_LIMIT:
            roads = [plan for plan in roads if plan.road != "single"]
    affordable = [plan for plan in roads if available is None or plan.n_bytes <= available]
    return (affordable or sorted(roads, key=lambda plan: plan.n_bytes))[0]


def check_fit_memory(size: FitSize, loss: str, available: int, *, pruned: bool = False) -> FitPlan:
    """The plan, or DataError with a remedy if there is too little memory for it.

    pruned : a block of labels at a time, of which few weights are kept (`streaming.pruned`)
    """
    if pruned:
        n_bytes = 4 * size.order**2 + 8 * size.n_rows * size.n_features + 2**31
        plan = FitPlan("single", _single(size).seconds, n_bytes)
        if size.order > SINGLE_LIMIT:
            raise DataError(
                f"prune needs a factor, and {size.n_rows:,} rows and {size.n_features:,} features are both more than "
                f"{SINGLE_LIMIT:,}; use fewer of either"
            )
    else:
        plan = plan_fit(size, loss, available=available)
    if plan.n_bytes <= available:
        return plan
    least = FitSize(size.n_rows, 1, size.n_labels, size.n_stored and min(size.n_stored, size.n_rows))
    affordable = 0
    if plan_fit(least, loss, available=available).n_bytes <= available:
        low, high = 1, size.n_features
        while high - low > max(low // 50, 1):
            middle = (low + high) // 2
            smaller = FitSize(size.n_rows, middle, size.n_labels, size.n_stored)
            fits = plan_fit(smaller, loss, available=available).n_bytes <= available
            low, high = (middle, high) if fits else (low, middle)
        affordable = low
    problem = (
        f"learning {size.n_labels:,} labels from {size.n_rows:,} rows and {size.n_features:,} features would take "
        f"about {plan.n_bytes / 2**30:.2g} GiB of memory, and {available / 2**30:.2g} GiB is free"
    )
    if affordable >= 100:
        digits = 10 ** (len(str(affordable)) - 2)
        raise DataError(problem, hint=Hint.FEWER_FEATURES, hint_value=f"{affordable // digits * digits}")
    raise DataError(f"{problem}; learn fewer labels or rows, or in blocks (scale.out_of_core), or use a larger machine")


def _spectral(size: FitSize) -> FitPlan:
    n, order, labels = size.n_rows, size.order, size.n_labels
    seconds = size.gram_seconds + order**3 / _EIGEN + order**2 * (2.0 * labels + _JUDGED) / (RATE / 4.0)
    held = 8 * (5 * order**2 + 3 * n * min(labels, 512))
    return FitPlan("spectral", seconds + _deciding(labels), held + 3 * size.classifier_bytes + _judged_bytes(labels))


def _single(size: FitSize) -> FitPlan:
    order, labels = size.order, size.n_labels
    factoring = size.gram_seconds + order**3 / 3.0 / RATE
    solving = order**2 * (labels + _JUDGED) / (RATE / 2.0) + size.product_seconds
    held = 4 * order**2 + size.classifier_bytes + 2**27
    seconds = _sampling(size) + factoring + solving + _deciding(labels)
    return FitPlan("single", seconds, max(held, 3 * size.classifier_bytes) + _judged_bytes(labels))


def _iterative(size: FitSize, loss: str) -> FitPlan:
    seconds = _sampling(size) + 2.0 * _PRODUCTS[loss] * size.product_seconds + _deciding(size.n_labels)
    return FitPlan("iterative", seconds, 6 * size.classifier_bytes + 2**28 + _judged_bytes(size.n_labels))


def _sampling(size: FitSize) -> float:
    """Seconds for the strength, by the spectrum of a sample of the rows."""
    return min(SAMPLED_ROWS, size.order) ** 3 / _EIGEN + 0.5


def _deciding(n_labels: int) -> float:
    """Seconds for thresholds and probabilities."""
    return 3e-6 * _JUDGED * n_labels


def _judged_bytes(n_labels: int) -> int:
    """For the scores of judged rows, and what thresholds and probabilities make of them."""
    return 8 * 12 * _JUDGED * n_labels
