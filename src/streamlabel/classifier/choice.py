"""Which solver for which size, and why, in words for the report."""

from __future__ import annotations

from scipy import sparse

from streamlabel.classifier.design import Design

__all__ = ["FACTOR_LIMIT", "affords_factor", "choose_squared_solver"]

# A square matrix of this order takes 0.5 GB and half a minute of one core to eigendecompose.
FACTOR_LIMIT = 8_000

# Conjugate gradients are less exact than a factor, so they have to be this much cheaper to be preferred.
_ITERATIONS_GUESSED = 200
_PREFERENCE = 5.0


def choose_squared_solver(design: Design, n_labels: int, *, coupled: bool, has_factor: bool) -> tuple[str, str]:
    """The solver for the squared loss and the reason."""
    n, d = design.n_rows, design.n_features
    order = min(n, d)
    size = f"{n} rows, {d} features, {n_labels} labels"
    if has_factor:
        return "spectral", "a factor of the rows was given"
    if order > FACTOR_LIMIT:
        return "conjugate_gradient", f"{size}: too many of both for a factor (limit {FACTOR_LIMIT})"
    stored = design.X.nnz if sparse.issparse(design.X) else n * d
    iterating = 4.0 * stored * n_labels * _ITERATIONS_GUESSED
    factoring = _gram_work(design, stored) + (9.0 if coupled else 1.0 / 3.0) * order**3
    if sparse.issparse(design.X) and _PREFERENCE * iterating < factoring:
        return "conjugate_gradient", f"{size}: few labels on sparse rows, a factor would cost more"
    if coupled:
        return "spectral", f"{size}: coupled labels, and a factor of order {order} is affordable"
    if n < d:
        return "dual", f"{size}: fewer rows than features"
    return "cholesky", f"{size}: one beta and no coupling"


def affords_factor(design: Design, n_labels: int) -> bool:
    """Whether Newton's inner solves should be preconditioned with a spectral factor made for them."""
    order = min(design.n_rows, design.n_features)
    stored = design.X.nnz if sparse.issparse(design.X) else design.n_rows * design.n_features
    # A factor saves some fifty products with X and X'; applying it costs two products of its own order.
    return order <= FACTOR_LIMIT and 9.0 * order**3 + _gram_work(design, stored) <= 200.0 * stored * n_labels


def _gram_work(design: Design, stored: int) -> float:
    """Multiplications for the smaller Gram matrix."""
    n, d = design.n_rows, design.n_features
    if not sparse.issparse(design.X):
        return float(stored) * min(n, d)
    # Rows of equal length are assumed; n rows of z non-zeros cost n z^2, d columns likewise.
    return float(stored) * (stored / max(n if d <= n else d, 1))
