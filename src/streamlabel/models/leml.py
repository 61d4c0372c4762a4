"""LEML: all labels together, by classifiers of low rank (Yu, Jain, Kar, Dhillon, ICML 2014)."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from streamlabel.classifier.design import Design, column_sums
from streamlabel.exceptions import DataError
from streamlabel.models.fixed_labels import FixedLabelClassifier, check_at_least_one, check_positive
from streamlabel.models.inputs import check_seed, same_rows
from streamlabel.models.low_rank import Rows, SparseRows, SpectralRows, alternate
from streamlabel.results import CSR, FloatArray
from streamlabel.stats.factors import RidgeFactor, make_factor
from streamlabel.stats.threads import one_thread

__all__ = ["LEML"]

# "auto" factors the smaller side of X up to this size, and keeps at most so many products of directions and labels.
_MOST_FACTORED, _MOST_PRODUCTS = 6_000, 2 * 10**8


class LEML(FixedLabelClassifier):
    """Low-rank empirical risk minimisation: a baseline that learns all labels together, and again for every new one.

    Minimises ``1/2 ||Y - 1 b' - X W H'||^2 + beta/2 (||W||^2 + ||H||^2)`` over W (d, rank), H (m, rank) and, with
    an intercept, b (m,), on 0/1 targets, by alternating minimisation (`models.low_rank`).

    Parameters
    ----------
    rank : int
        At most so many directions are shared. More than there are labels, features or rows changes nothing.
    beta : float
        The ridge strength on both factors.
    n_iterations : int
        At most so many rounds of both steps; a `ConvergenceWarning` says when they were not enough.
    tol : float
        A round that lowers the objective by a smaller share than this is the last.
    solver : "auto", "spectral" or "conjugate_gradient"
        The step for W: exact, with the smaller side of X factored once, or iterative through X itself. "auto" factors
        up to 6,000 rows or features.
    fit_intercept : bool
        The intercept is not penalised and not of low rank.
    threshold : float
        The score above which `predict` says yes.
    random_state : int
        For the H it starts from.

    Attributes
    ----------
    label_names_ : tuple of str, the order of every column
    feature_factors_, label_factors_ : W (n_features, rank), H (n_labels, rank)
    intercept_ : (n_labels,)
    objectives_ : the objective after every half round
    n_iter_ : rounds taken
    report_ : `SolveReport`; its violation is the share by which the last round lowered the objective

    Examples
    --------
    >>> import numpy as np
    >>> from streamlabel import LEML
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> LEML(rank=1, beta=0.1).fit(X, X.astype(int), label_names=["a", "b"]).coef_.shape
    (2, 2)
    """

    def __init__(
        self,
        rank: int = 100,
        *,
        beta: float = 1.0,
        n_iterations: int = 100,
        tol: float = 1e-4,
        solver: str = "auto",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        random_state: int = 0,
    ) -> None:
        self.rank = rank
        self.beta = beta
        self.n_iterations = n_iterations
        self.tol = tol
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.random_state = random_state

    @property
    def coef_(self) -> FloatArray:
        """``H W'`` (n_labels, n_features), made when asked for."""
        return np.asarray(self.label_factors_ @ self.feature_factors_.T)

    def prepare(self, X: ArrayLike | CSR) -> Self:
        """Factor the rows, which does not need their labels: the next `fit` on the same rows begins with that.

        For labels that change while the rows do not. Nothing is done where `fit` would not factor.
        """
        self._check_parameters()
        matrix = self._features(X, reset=True)
        if self.solver == "spectral" or (self.solver == "auto" and min(matrix.shape) <= _MOST_FACTORED):
            with one_thread():
                self._prepared = (matrix.copy(), self.fit_intercept, make_factor(matrix, centre=self.fit_intercept))
        return self

    def _check_parameters(self) -> None:
        check_at_least_one("rank", self.rank)
        check_at_least_one("n_iterations", self.n_iterations)
        check_positive("beta", self.beta)
        check_positive("tol", self.tol)
        check_seed(self.random_state)
        if self.solver not in ("auto", "spectral", "conjugate_gradient"):
            raise DataError(f'solver is {self.solver!r}; it must be "auto", "spectral" or "conjugate_gradient"')

    def _learn(self, X: CSR | FloatArray, labels: CSR) -> None:
        n_labels = int(labels.shape[1])
        rank = min(int(self.rank), n_labels, *X.shape)
        start = np.random.default_rng(self.random_state).standard_normal((n_labels, rank))
        rates = column_sums(labels) / X.shape[0] if self.fit_intercept else np.zeros(n_labels)
        energy = float(labels.nnz - X.shape[0] * rates @ rates)
        with one_thread():
            rows, mean = self._rows(X, labels)
            found = alternate(
                rows, energy, start, float(self.beta), tolerance=self.tol, max_rounds=self.n_iterations
            )  # fmt: skip
        self.feature_factors_ = found.features
        self.label_factors_ = found.labels
        self.intercept_ = rates - (mean @ found.features) @ found.labels.T
        self.objectives_ = found.objectives
        self.report_ = found.report
        self.n_iter_ = found.report.n_iter

    def _rows(self, X: CSR | FloatArray, labels: CSR) -> tuple[Rows, FloatArray]:
        smaller = min(X.shape)
        small = smaller <= _MOST_FACTORED and smaller * labels.shape[1] <= _MOST_PRODUCTS
        if self.solver == "spectral" or (self.solver == "auto" and small):
            factor = self._factor(X)
            return SpectralRows(factor, labels), factor.mean
        design = Design(X, self.fit_intercept)
        return SparseRows(design, labels), design.mean

    def _factor(self, X: CSR | FloatArray) -> RidgeFactor:
        rows, centred, factor = getattr(self, "_prepared", (None, False, None))
        if factor is not None and centred == self.fit_intercept and same_rows(X, rows):
            return factor
        return make_factor(X, centre=self.fit_intercept)

    def _scores(self, X: CSR | FloatArray) -> FloatArray:
        return np.asarray(X @ self.feature_factors_) @ self.label_factors_.T + self.intercept_
