"""Problems that the tests of the measures share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse


@dataclass(frozen=True)
class Problem:
    truth: np.ndarray  # (n, L) 0/1
    scores: np.ndarray  # (n, L) float, -inf where nothing is stored

    @property
    def sparse_scores(self) -> sparse.csr_array:
        """The same scores without the cells at minus infinity; scores of 0 stay stored."""
        rows, columns = np.nonzero(self.scores > -np.inf)
        return sparse.csr_array((self.scores[rows, columns], (rows, columns)), shape=self.scores.shape)


def make_problem(rng: np.random.Generator, kind: str, n: int = 40, n_labels: int = 23) -> Problem:
    truth = (rng.random((n, n_labels)) < 0.15).astype(np.int8)
    scores = rng.standard_normal((n, n_labels)) + truth
    if kind != "distinct":
        scores = np.round(2 * scores) / 2  # about ten different values: ties everywhere, zeros among them
    if kind == "edges":
        truth[:3], truth[3], truth[:, 0], truth[:, 1] = 0, 1, 0, 1  # empty and full rows, one-class labels
        scores[5] = 1.0
    if kind == "missing":
        scores[rng.random(scores.shape) < 0.6] = -np.inf
        scores[7] = -np.inf
    return Problem(truth, scores)


@pytest.fixture(params=["distinct", "tied", "edges", "missing"])
def problem(request: pytest.FixtureRequest, rng: np.random.Generator) -> Problem:
    return make_problem(rng, request.param)


@pytest.fixture(params=["distinct", "tied", "edges"])
def full_problem(request: pytest.FixtureRequest, rng: np.random.Generator) -> Problem:
    """Without missing scores: scikit-learn takes no infinities."""
    return make_problem(rng, request.param)


@pytest.fixture
def distinct_problem(rng: np.random.Generator) -> Problem:
    return make_problem(rng, "distinct")
