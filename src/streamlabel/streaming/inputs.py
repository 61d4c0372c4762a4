"""Checks of what users pass to the estimator, and its one canonical form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.classifier.losses import get_loss
from streamlabel.data.rows import matrix_of_names
from streamlabel.errors import DataError, NotFoundError
from streamlabel.types import CSR, FloatArray
from streamlabel.validation import canonical_labels, check_numbers

LARGEST_SQUARES = 1e150  # their squares are needed too


def canonical_rows(checked: Any) -> Any:
    """Convert features that scikit-learn has checked: dense as they are, sparse as csr_array without duplicates."""
    if isinstance(checked, np.ndarray):
        return checked
    matrix = sparse.csr_array(checked)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def check_scale(X: Any) -> None:
    """Refuse features whose squares, which everything is learned from, do not fit into floating point numbers."""
    values = X if isinstance(X, np.ndarray) else X.data
    with np.errstate(over="ignore"):
        squares = float(np.einsum("ij,ij->", values, values) if values.ndim == 2 else values @ values)
    if squares <= LARGEST_SQUARES:
        return
    place = int(np.abs(values).argmax())
    row = place // X.shape[1] if values.ndim == 2 else int(np.searchsorted(X.indptr, place, side="right")) - 1
    raise DataError(
        f"X holds {values.flat[place]:.3g} in row {row}, whose square is too large to learn from; scale the features "
        "(MaxAbsScaler of scikit-learn)"
    )


def check_columns(table: Any, name: str) -> None:
    """Raise DataError unless the columns of a data frame have different names."""
    twice = [column for column, count in Counter(_columns(table)).items() if count > 1]
    if twice:
        raise DataError(f"{name} has more than one column called {twice[0]!r}; rename or leave out all but one")


def names_of_columns(Y: Any, n_labels: int) -> tuple[str, ...] | None:
    """The names that a data frame has for its columns, or a series for itself; None unless they are all strings."""
    names = tuple(_columns(Y)) or (getattr(Y, "name", None),)
    return names if len(names) == n_labels and all(isinstance(name, str) and name for name in names) else None


def coded(labels: CSR, fit_intercept: bool) -> FloatArray:
    """Dense targets (n, k) of labels: 0/1, or -1/+1 if there is no intercept."""
    values = labels.toarray().astype(np.float64)
    return values if fit_intercept else 2.0 * values - 1.0


def read_names(y: Any, label_names: Iterable[str] | None) -> tuple[Any, Iterable[str] | None]:
    """A label matrix and its names, if y is a list of lists of names; else both as they are."""
    if not isinstance(y, list | tuple) or not _holds_names(y):
        return y, label_names
    return matrix_of_names(y, "row", None if label_names is None else list(label_names))


def _holds_names(y: Sequence[Any]) -> bool:
    """Whether rows are lists of names, and not a matrix in which a cell is wrong."""
    rows = [row for row in y if isinstance(row, list | tuple | set | frozenset)]
    items = [item for row in rows for item in row]
    if not {item for item in items if isinstance(item, str)} - {"", "0", "1"}:
        return False
    return len(rows) < len(y) or len({len(row) for row in rows}) > 1 or all(isinstance(item, str) for item in items)


def read_past_labels(y: Any, n_rows: int, owner: str) -> tuple[CSR, Any]:
    """Labels (n, m) from what was passed as y, and the classes if y is a vector of classes (else None)."""
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_array, column_or_1d

    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None")
    if not sparse.issparse(y):
        check_columns(y, "y")
        values = np.asarray(y)
        if values.dtype == object and values.ndim == 2 and values.shape[1] > 1:
            check_numbers(values, "y")
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_min_samples=0, ensure_min_features=0)
        _check_rows(n_rows, y.shape[0])
    classes = None
    if not sparse.issparse(y) and (y.ndim == 1 or _classes_in_a_column(y)):
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"the classifier needs two classes; y holds one class only, {classes[0]!r}")
        y = sparse.csr_array((np.ones(len(numbers)), (np.arange(len(numbers)), numbers)))
    labels = canonical_labels(y, name="y")
    _check_rows(n_rows, labels.shape[0])
    if not labels.shape[1]:
        raise DataError("y has no column; give at least one label to start with")
    return labels, classes


def same_rows(A: Any, B: Any) -> bool:
    """Whether two matrices are equal to the last bit. A may be anything; B is what `fit` kept."""
    if A is B:
        return True
    if isinstance(B, np.ndarray):
        return isinstance(A, np.ndarray) and A.dtype == B.dtype and np.array_equal(A, B)
    if getattr(A, "format", "") != "csr" or A.shape != B.shape or A.nnz != B.nnz or A.dtype != B.dtype:
        return False
    return all(np.array_equal(getattr(A, part), getattr(B, part)) for part in ("indptr", "indices", "data"))


@dataclass(frozen=True)
class Parameters:
    """The parameters of the estimator, checked (`StreamingLabelClassifier` says what they mean)."""

    lam: float | str | None
    metric: float | str | None
    beta: float | str
    loss: str
    start: str
    start_weight: float
    dictionary: int | str
    fit_intercept: bool
    threshold: float | str
    random_state: int
    n_jobs: int | None
    scoring: str
    tune: str
    features: Any
    prune: int | str | None


SCORINGS = ("balanced", "p@k", "auc", "average_precision")


def checked_parameters(model: Any) -> Parameters:
    """The parameters that an estimator has as attributes, checked one by one and together."""
    check_parameters(model)
    return Parameters(**{one.name: getattr(model, one.name) for one in fields(Parameters)})


def check_parameters(model: Any) -> None:
    """Refuse parameters that are wrong, alone or together."""
    _check_number(model.lam, "lam", none=True)
    _check_number(model.metric, "metric", none=True, below=1.0)
    _check_number(model.beta, "beta")
    if not _is(model.dictionary, "all", "fit") and not (_whole(model.dictionary) and model.dictionary >= 1):
        raise DataError(f'dictionary is {model.dictionary!r}; it must be "all", "fit" or a number of labels')
    if not _is(model.threshold, "f1") and not (_real(model.threshold) and np.isfinite(model.threshold)):
        raise DataError(f'threshold is {model.threshold!r}; it must be "f1" or a number')
    if not isinstance(model.fit_intercept, bool | np.bool_):
        raise DataError(f"fit_intercept is {model.fit_intercept!r}; it must be True or False")
    check_seed(model.random_state)
    jobs = model.n_jobs
    if jobs is not None and not (_whole(jobs) and jobs != 0):
        raise DataError(f"n_jobs is {jobs!r}; it must be None, a number of threads, or -1 for one a core")
    if model.start not in ("independent", "alternating"):
        raise DataError(f'start is {model.start!r}; it must be "independent" or "alternating"')
    if not (_real(model.start_weight) and 0.0 <= model.start_weight < np.inf):
        raise DataError(f"start_weight is {model.start_weight!r}; it must be a number from 0 on")
    if model.loss != "auto":
        try:
            get_loss(model.loss)
        except NotFoundError as error:
            raise DataError(f"loss: {error}, and 'auto'") from error
    if model.loss not in ("squared", "auto") and model.start == "alternating":
        raise DataError('start="alternating" solves the squared loss; set loss="squared"')
    if model.prune is not None:
        if not _is(model.prune, "auto") and not (_whole(model.prune) and model.prune >= 1):
            raise DataError(f'prune is {model.prune!r}; it must be None, "auto" or a number of weights a label')
        if model.loss not in ("squared", "auto") or model.start == "alternating" or not model.fit_intercept:
            raise DataError('prune needs the squared loss, start="independent" and an intercept; leave it None')
    if model.scoring not in SCORINGS:
        raise DataError(f"scoring is {model.scoring!r}; it must be one of {', '.join(map(repr, SCORINGS))}")
    if model.tune not in ("arrival", "fit"):
        raise DataError(f'tune is {model.tune!r}; it must be "arrival" or "fit"')
    able = all(hasattr(model.features, name) for name in ("fit", "transform", "get_params"))
    if (
        model.features is not None
        and not _is(model.features, "kernel")
        and (not able or isinstance(model.features, type))
    ):
        raise DataError(f'features is {model.features!r}; it must be None, "kernel" or a transformer of scikit-learn')


def settings_of_fit(model: Any) -> dict[str, Any]:
    """The parameters on which the result of `fit` depends; there "auto" is the squared loss."""
    names = ("beta", "loss", "start", "start_weight", "dictionary", "fit_intercept", "features")
    found = {name: getattr(model, name) for name in names}
    return {**found, "loss": "squared"} if model.loss == "auto" else found


def check_settings(model: Any, then: Mapping[str, Any]) -> None:
    """Refuse a change of parameters on which the result of `fit` depends."""
    for name, now in settings_of_fit(model).items():
        if now != then[name]:
            raise DataError(
                f"{name} was {then[name]!r} in fit and is {now!r} now; fit again, or set it back (lam, metric, "
                "scoring, threshold and n_jobs may change at any time)"
            )


def check_seed(seed: Any) -> None:
    """Raise DataError unless the seed is a whole number from 0 on."""
    if not (_whole(seed) and seed >= 0):
        raise DataError(f"random_state is {seed!r}; it must be a whole number from 0 on, so that runs can be repeated")


def _check_number(value: Any, name: str, *, none: bool = False, below: float = np.inf) -> None:
    if _is(value, "auto") or (none and value is None):
        return
    if not (_real(value) and np.isfinite(value) and 0 < value < below):
        what = "a positive number" if below == np.inf else f"a number between 0 and {below:g}"
        raise DataError(f'{name} is {value!r}; it must be "auto"{", None" if none else ""} or {what}')


def _is(value: Any, *words: str) -> bool:
    return isinstance(value, str) and value in words


def _real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _columns(table: Any) -> list[Any]:
    columns = getattr(table, "columns", None)
    return [] if columns is None or callable(columns) else list(columns)


def _check_rows(n_rows: int, n_labelled: int) -> None:
    if n_labelled != n_rows:
        raise DataError(f"y has {n_labelled} rows and X has {n_rows}; they must agree")
    if n_rows < 2:
        raise DataError(f"X has {n_rows} rows (1 sample); at least two are needed to learn anything")


def _classes_in_a_column(y: Any) -> bool:
    """A single column that is not 0/1: scikit-learn's way of writing a vector of classes."""
    return bool(y.shape[1] == 1 and not (y.dtype.kind in "biuf" and np.isin(y, (0, 1)).all()))
