"""LEML: all labels together, by classifiers of low rank (Yu, Jain, Kar, Dhillon, ICML 2014).

The classifiers share a low rank, ``Z = W H'``, and are learned by turns. They minimise::

    J(W, H) = 1/2 ||Y - X W H'||_F^2 + beta/2 (||W||_F^2 + ||H||_F^2),   W (d, k),  H (m, k)

With ``A = X'X`` and ``C = X'Y`` (X and Y centred if there is an intercept)::

    H-step:  H (W'A W + beta I) = C'W     one k x k system for all labels
    W-step:  A W (H'H) + beta W = C H     with H'H = Q diag(h) Q', k systems (h_j A + beta I) v = r, V = W Q, R = C H Q

If the smaller side of X can be factored, ``A = U diag(a) U'``, both steps are exact and happen in spectral
coordinates (`SpectralRows`). Else the W-step is conjugate gradients through X itself (`SparseRows`): neither A, C nor
the Kronecker product is formed. If labels are known on some rows only, each part of them has an A and a C of its own,
as below. No step raises J.

If answers are missing, labels are in parts, each known on rows of its own and unknown on all others::

    J(W, H) = 1/2 sum_p ||Y_p - 1 b_p' - X_p W H_p'||_F^2 + beta/2 (||W||_F^2 + ||H||_F^2)

Every part has its ``A_p = X_p'X_p`` and ``C_p = X_p'Y_p``, centred by the mean of its own rows if there is an
intercept. The H-step is one small system per part; the W-step is one system in which all columns touch::

    sum_p A_p W (H_p'H_p) + beta W = sum_p C_p H_p

It is solved by conjugate gradients, in the coordinates U of all rows, ``A = U diag(a) U'``. What they are scaled by is
the exact solution for ``A_p = (n_p / n) A``: as if the rows of a part were typical of all. No Kronecker product is
formed, and no mask.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse

from streamlabel.baselines.base import FixedLabelClassifier, check_at_least_one, check_number, check_positive
from streamlabel.classifier.conjugate_gradient import Operator, column_lengths, conjugate_gradient
from streamlabel.classifier.objective import Design, column_sums
from streamlabel.errors import ConvergenceWarning, DataError
from streamlabel.stats.spectral import RidgeFactor, centred_gram, make_factor
from streamlabel.stats.threads import one_thread
from streamlabel.streaming.annotated import AskedRows, group_by_rows
from streamlabel.streaming.inputs import check_seed, read_past_labels, same_rows
from streamlabel.types import CSR, FloatArray, IntArray, SolveReport
from streamlabel.validation import check_label_names, default_label_names

# A W-step by conjugate gradients ends when the residual it began with has shrunk to this share.
_SPARSE_SHRINK, MOST_STEPS = 1e-3, 200
Products = tuple[FloatArray, FloatArray]


class Rows(Protocol):
    """Features X and labels Y, as the alternating steps use them. V is W in whatever coordinates suit, (r, k)."""

    name: str
    n_coordinates: int

    def products(self, V: FloatArray) -> tuple[Products, ...]:
        """The products ``C'W`` (m, k) and ``W'A W`` (k, k), for every part of the labels that has rows of its own."""
        ...

    def solve(self, H: FloatArray, beta: float, start: FloatArray) -> FloatArray:
        """Solve the W-step for this H: V (r, k)."""
        ...

    def weights(self, V: FloatArray) -> FloatArray:
        """The classifiers' factor W (d, k) of V."""
        ...


class SpectralRows:
    """Rows with a factor: ``X = Q diag(sqrt a) U'``, ``V = U'W``, A is ``diag(a)`` and C is ``diag(sqrt a) Q'Y``."""

    name = "spectral"

    def __init__(self, factor: RidgeFactor, labels: CSR) -> None:
        self._factor, self._values = factor, factor.eigenvalues
        self._roots = np.sqrt(factor.eigenvalues)[:, None]
        self._cross = self._roots * factor.project(labels.astype(np.float64))
        self.n_coordinates = len(self._values)

    def products(self, V: FloatArray) -> tuple[Products, ...]:
        return ((self._cross.T @ V, (V.T * self._values) @ V),)

    def solve(self, H: FloatArray, beta: float, start: FloatArray) -> FloatArray:
        strengths, turn = spectrum(H.T @ H)
        rotated = self._cross @ (H @ turn)
        rotated /= self._values[:, None] * strengths + beta
        return np.asarray(rotated @ turn.T)

    def weights(self, V: FloatArray) -> FloatArray:
        return self._factor.weights(self._roots * V, 0.0)


class SparseRows:
    """Rows without a factor: X and Y as they are, V is W."""

    name = "conjugate gradient"

    def __init__(self, design: Design, labels: CSR) -> None:
        self._design, self._labels = design, labels.astype(np.float64)
        self._diagonal = design.gram_diagonal()[:, None]
        self.n_coordinates = int(design.n_features)

    def products(self, V: FloatArray) -> tuple[Products, ...]:
        scores = np.asarray(self._design.X @ V) - self._design.mean @ V
        return ((np.asarray(self._labels.T @ scores), scores.T @ scores),)

    def solve(self, H: FloatArray, beta: float, start: FloatArray) -> FloatArray:
        strengths, turn = spectrum(H.T @ H)

        def apply(Z: FloatArray) -> FloatArray:
            return self._design.normal_product(Z) * strengths + beta * Z

        scaling = 1.0 / (self._diagonal * strengths + beta)
        begin = start @ turn
        residual = self._design.cross(np.asarray(self._labels @ (H @ turn))) - apply(begin)
        target = _SPARSE_SHRINK * column_lengths(residual)
        step, _ = conjugate_gradient(apply, residual, lambda R: R * scaling, target, MOST_STEPS)
        return (begin + step) @ turn.T

    def weights(self, V: FloatArray) -> FloatArray:
        return V


@dataclass(frozen=True, eq=False)
class LowRankFit:
    """The result of learning by turns: both factors and the course of J.

    features : W (d, k);   labels : H (m, k)
    objectives : J after every half turn (W, H, W, H, ...)
    """

    features: FloatArray
    labels: FloatArray
    objectives: tuple[float, ...]
    report: SolveReport


def alternate(
    rows: Rows, energy: float, H: FloatArray, beta: float, *, tolerance: float = 1e-4, max_rounds: int = 100
) -> LowRankFit:
    """Learn W and H by turns from this H (m, k) until a turn lowers J by less than `tolerance`, relatively.

    ``energy`` is ``||Y||_F^2`` (centred).

    Warns
    -----
    ConvergenceWarning : `max_rounds` turns were not enough
    """
    V: FloatArray = np.zeros((rows.n_coordinates, H.shape[1]))
    objectives: list[float] = []
    change, last, rounds = np.inf, np.inf, 0
    while change > tolerance and rounds < max_rounds:
        rounds += 1
        V = rows.solve(H, beta, V)
        products = rows.products(V)
        lengths = beta * float(np.vdot(V, V))
        objectives.append(_objective(products, H, energy, lengths, beta))
        H = np.vstack([_label_step(cross, gram, beta) for cross, gram in products])
        objectives.append(_objective(products, H, energy, lengths, beta))
        change = (last - objectives[-1]) / max(objectives[-1], np.finfo(np.float64).tiny)
        last = objectives[-1]
    report = SolveReport(rows.name, rounds, float(change), tolerance, bool(change <= tolerance))
    if not report.converged:
        warnings.warn(
            f"the low-rank classifiers still improved by {change:.1e} after {rounds} rounds, not {tolerance:.0e}; "
            "allow more n_iterations or a larger tol",
            ConvergenceWarning,
            stacklevel=2,
        )
    return LowRankFit(rows.weights(V), H, tuple(objectives), report)


def _label_step(cross: FloatArray, gram: FloatArray, beta: float) -> FloatArray:
    values, turn = spectrum(gram)
    return np.asarray((cross @ turn / (values + beta)) @ turn.T)


def spectrum(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The eigenvalues h (k,), not below 0, and eigenvectors Q (k, k) of a Gram matrix, also if it is singular."""
    values, vectors = linalg.eigh(gram, driver="evd", check_finite=False)
    return np.maximum(values, 0.0), vectors


def _objective(products: Sequence[Products], H: FloatArray, energy: float, lengths: float, beta: float) -> float:
    """J from ``C'W``, ``W'A W`` and ``lengths = beta ||W||^2``: no residual (n, m) is needed."""
    parts = np.split(H, np.cumsum([len(cross) for cross, _ in products])[:-1])
    fitted = sum(
        float(np.vdot(gram, part.T @ part)) - 2.0 * float(np.vdot(cross, part))
        for (cross, gram), part in zip(products, parts, strict=True)
    )
    return 0.5 * (energy + fitted + lengths + beta * float(np.vdot(H, H)))


_SHRINK = 1e-2  # of the residual that a W-step begins with; more would be lost in the next round


class Basis:
    """All rows X (n, d) and spectral coordinates U (d, r), in which ``Xc'Xc`` is ``diag(values)``; needs no label."""

    def __init__(self, X: CSR | FloatArray, fit_intercept: bool = True) -> None:
        factor = make_factor(X, centre=fit_intercept)
        self.X, self.fit_intercept = X, fit_intercept
        self.values: FloatArray = factor.eigenvalues
        self.vectors: FloatArray = factor.weights(np.diag(np.sqrt(factor.eigenvalues)), 0.0)


class _Part:
    """Labels (len(rows), m) of 0/1 that are known on these rows (None: on all)."""

    def __init__(self, basis: Basis, rows: IntArray | None, labels: CSR) -> None:
        design = Design(basis.X if rows is None else basis.X[rows], basis.fit_intercept)
        counts = column_sums(labels)
        self.share = design.n_rows / basis.X.shape[0]
        self.mean = design.mean
        self.rates: FloatArray = counts / design.n_rows if basis.fit_intercept else np.zeros(len(counts))
        self.energy = float(counts.sum() - design.n_rows * self.rates @ self.rates)
        self.cross: FloatArray = basis.vectors.T @ design.cross(labels.astype(np.float64))
        self.product = _product(basis, design, everywhere=rows is None)


def _product(basis: Basis, design: Design, everywhere: bool) -> Operator:
    """The operator from V to ``A V``, by whatever is smallest: a diagonal, the rows, or their Gram matrix."""
    values, vectors = basis.values[:, None], basis.vectors
    if everywhere:
        return lambda V: values * V
    if 2 * design.n_rows < len(values):
        rows = np.asarray(design.X @ vectors) - design.mean @ vectors
        return lambda V: rows.T @ (rows @ V)
    gram = vectors.T @ centred_gram(design.X, design.mean) @ vectors
    return lambda V: gram @ V


class MaskedRows:
    """Rows X and labels in parts, for the steps of `alternate` (a `Rows`); V is ``U'W``.

    parts : rows (None: all) and labels (len(rows), m) of each
    """

    name = "masked"

    def __init__(self, basis: Basis, parts: Sequence[tuple[IntArray | None, CSR]]) -> None:
        self._basis = basis
        with one_thread():
            self._parts = [_Part(basis, rows, labels) for rows, labels in parts]
        self._ends = np.cumsum([len(part.rates) for part in self._parts])
        self.n_coordinates = len(basis.values)

    def products(self, V: FloatArray) -> tuple[Products, ...]:
        return tuple((part.cross.T @ V, V.T @ part.product(V)) for part in self._parts)

    def solve(self, H: FloatArray, beta: float, start: FloatArray) -> FloatArray:
        factors = self._by_part(H)
        grams = [own.T @ own for own in factors]
        strengths, turn = spectrum(sum(part.share * gram for part, gram in zip(self._parts, grams, strict=True)))
        turned = [turn.T @ gram @ turn for gram in grams]

        def apply(Z: FloatArray) -> FloatArray:
            found = beta * Z
            for part, gram in zip(self._parts, turned, strict=True):
                found += part.product(Z) @ gram
            return found

        scaling = 1.0 / (self._basis.values[:, None] * strengths + beta)
        begin = start @ turn
        residual = -apply(begin)
        for part, own in zip(self._parts, factors, strict=True):
            residual += part.cross @ (own @ turn)
        target = np.array([_SHRINK * np.linalg.norm(residual)])
        step, _ = conjugate_gradient(apply, residual, lambda R: R * scaling, target, MOST_STEPS, together=True)
        return (begin + step) @ turn.T

    def weights(self, V: FloatArray) -> FloatArray:
        return self._basis.vectors @ V

    def learn(
        self, rank: int, beta: float, seed: int, *, tolerance: float = 1e-4, max_rounds: int = 100
    ) -> tuple[LowRankFit, FloatArray]:
        """Learn W and H from a randomly drawn H; returns them and the intercepts (m,)."""
        n_labels = int(self._ends[-1])
        rank = min(rank, n_labels, *self._basis.X.shape)
        H = np.random.default_rng(seed).standard_normal((n_labels, rank))
        energy = sum(part.energy for part in self._parts)
        with one_thread():
            found = alternate(self, energy, H, beta, tolerance=tolerance, max_rounds=max_rounds)
        factors = self._by_part(found.labels)
        shifts = [part.mean @ found.features @ own.T for part, own in zip(self._parts, factors, strict=True)]
        return found, np.concatenate([part.rates for part in self._parts]) - np.concatenate(shifts)

    def _by_part(self, H: FloatArray) -> list[FloatArray]:
        return np.split(H, self._ends[:-1])


# "auto" factors the smaller side of X up to this size, and keeps at most so many products of directions and labels.
_MOST_FACTORED, _MOST_PRODUCTS = 6_000, 2 * 10**8


class LEML(FixedLabelClassifier):
    """Low-rank empirical risk minimisation: a baseline that learns all labels together, and again for every new one.

    Minimises ``1/2 ||Y - 1 b' - X W H'||^2 + beta/2 (||W||^2 + ||H||^2)`` over W (d, rank), H (m, rank) and, with
    an intercept, b (m,), on 0/1 targets, by alternating minimisation (above). If answers are missing,
    `fit_missing` sums over those that are known (above).

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
        """The weights ``H W'`` (n_labels, n_features), made when asked for."""
        return np.asarray(self.label_factors_ @ self.feature_factors_.T)

    def prepare(self, X: ArrayLike | CSR) -> Self:
        """Factor the rows, which does not need their labels: the next `fit` on the same rows begins with that.

        For labels that change while the rows do not. Nothing is done if `fit` would not factor.
        """
        self._check_parameters()
        matrix = self._features(X, reset=True)
        if self.solver == "spectral" or (self.solver == "auto" and min(matrix.shape) <= _MOST_FACTORED):
            with one_thread():
                self._prepared = (matrix.copy(), self.fit_intercept, make_factor(matrix, centre=self.fit_intercept))
        return self

    def fit_missing(
        self,
        X: ArrayLike | CSR,
        y: ArrayLike | CSR,
        annotated: ArrayLike | CSR,
        label_names: Iterable[str] | None = None,
    ) -> Self:
        """Learn all labels together from the answers that are known; the others are unknown, not negative.

        Labels that are known on the same rows are learned in one piece, so few different sets of rows are fast. The
        smaller side of X is factored, whatever ``solver`` says.

        Parameters
        ----------
        y : label matrix (n, m) of 0/1; what is not annotated is not read: 0 will do, NaN will not
        annotated : (n, m) bool, True where y is known; every label on one row at least

        Raises
        ------
        DataError : shapes do not agree, or a label is known nowhere
        """
        self._check_parameters()
        check_number("threshold", self.threshold)
        matrix = self._features(X, reset=True)
        labels, classes = read_past_labels(y, matrix.shape[0], type(self).__name__)
        if classes is not None:
            raise DataError("y is a vector of classes; fit_missing takes a label matrix, one column a label")
        if label_names is None:
            label_names = default_label_names(labels.shape[1])
        names = check_label_names(label_names, labels.shape[1])
        groups = list(group_by_rows(_asked(labels, annotated, names)))
        with one_thread():
            basis = Basis(matrix, self.fit_intercept)
        seen = MaskedRows(basis, [(rows, answers) for _, rows, answers in groups])
        found, intercept = seen.learn(
            int(self.rank), float(self.beta), self.random_state, tolerance=self.tol, max_rounds=self.n_iterations
        )
        order = np.argsort(np.concatenate([columns for columns, _, _ in groups]))
        self._keep(found, found.labels[order], intercept[order])
        self._classes_1d = None
        self.label_names_ = names
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
        self._keep(found, found.labels, rates - (mean @ found.features) @ found.labels.T)

    def _keep(self, found: LowRankFit, labels: FloatArray, intercept: FloatArray) -> None:
        self.feature_factors_ = found.features
        self.label_factors_ = labels
        self.intercept_ = intercept
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


def _asked(labels: CSR, annotated: ArrayLike | CSR, names: tuple[str, ...]) -> AskedRows:
    given = annotated if sparse.issparse(annotated) else np.asarray(annotated)
    if given.dtype != bool or given.shape != labels.shape:
        told = f"annotated is {given.dtype} of shape {given.shape} and y has shape {labels.shape}"
        raise DataError(f"{told}; give one True or False a cell of y")
    cells = sparse.csc_array(given)
    cells.eliminate_zeros()
    cells.sort_indices()
    nowhere = np.flatnonzero(np.diff(cells.indptr) == 0)
    if nowhere.size:
        raise DataError(f"label {names[nowhere[0]]!r} is not annotated on any row; leave it out")
    return AskedRows(labels, None, cells)
