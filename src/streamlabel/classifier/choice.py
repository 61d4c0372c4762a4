"""Which solver for which size, and why, in words for the report.

Times are guessed from counts of multiplications and rough rates of one core; only their ratios matter.
"""

from __future__ import annotations

from scipy import sparse

from streamlabel.classifier.design import Design

__all__ = ["FACTOR_LIMIT", "affords_factor", "choose_squared_solver"]

# A square matrix of this order takes 0.5 GB, and about a minute of one core to eigendecompose.
FACTOR_LIMIT = 8_000

# Multiplications a second: dense products and factorisations, products of sparse rows with dense columns, and
# products of two sparse matrices.
_DENSE_RATE = 2e10
_SPARSE_RATE = 2e9
_GRAM_RATE = 3e8

# Conjugate gradients are less exact than a factor, so by a cautious guess they have to take half of its time.
_GUESSED_ITERATIONS = 100
_PREFERENCE = 2.0


def choose_squared_solver(design: Design, n_labels: int, *, coupled: bool, has_factor: bool) -> tuple[str, str]:
    """The solver for the squared loss and the reason."""
    n, d = design.n_rows, design.n_features
    order = min(n, d)
    size = f"{n} rows, {d} features, {n_labels} labels"
    if has_factor:
        return "spectral", "a factor of the rows was given"
    if order > FACTOR_LIMIT:
        return "conjugate_gradient", f"{size}: too many of both for a factor (limit {FACTOR_LIMIT})"
    iterating = _GUESSED_ITERATIONS * _product_time(design, n_labels)
    factoring = _gram_time(design) + (_eigen_time(order) if coupled else order**3 / 3.0 / _DENSE_RATE)
    if sparse.issparse(design.X) and _PREFERENCE * iterating < factoring:
        return "conjugate_gradient", f"{size}: few labels on sparse rows, a factor would take longer"
    if coupled:
        return "spectral", f"{size}: coupled labels, and a factor of order {order} is affordable"
    if n < d:
        return "dual", f"{size}: fewer rows than features"
    return "cholesky", f"{size}: one beta and no coupling"


def affords_factor(design: Design, n_labels: int) -> bool:
    """Whether Newton's inner solves should be preconditioned with a spectral factor made for them.

    On sparse texts it saves a tenth to a third of the inner steps, on dense features more than half: applying it must
    take a quarter of the product with X and X' that it goes with, and making it has to be paid back by the products
    that it saves, guessed as 25 for each label.
    """
    order = min(design.n_rows, design.n_features)
    product = _product_time(design, n_labels)
    applying = 2.0 * order**2 * n_labels / _DENSE_RATE
    making = _gram_time(design) + _eigen_time(order)
    return order <= FACTOR_LIMIT and 4.0 * applying <= product and making <= 25.0 * product


def _stored(design: Design) -> int:
    return int(design.X.nnz) if sparse.issparse(design.X) else design.n_rows * design.n_features


def _product_time(design: Design, n_labels: int) -> float:
    """Seconds for ``X'(X Z)``."""
    return 2.0 * _stored(design) * n_labels / (_SPARSE_RATE if sparse.issparse(design.X) else _DENSE_RATE)


def _gram_time(design: Design) -> float:
    """Seconds for the smaller of ``X'X`` and ``XX'``."""
    n, d = design.n_rows, design.n_features
    stored = _stored(design)
    if not sparse.issparse(design.X):
        return stored * min(n, d) / _DENSE_RATE
    # As if rows (or columns, for the kernel) were equally long: each costs the square of its length.
    return stored * stored / max(n, d) / _GRAM_RATE


def _eigen_time(order: int) -> float:
    return 5.0 * order**3 / _DENSE_RATE
