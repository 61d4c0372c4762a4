"""The estimator: a multi-label linear classifier to which labels can be added."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from streamlabel._validation import canonical_csr, canonical_labels, check_label_names, default_label_names
from streamlabel.exceptions import ConflictError, DataError, NotFoundError
from streamlabel.metrics.topk import top_k
from streamlabel.models.arrival import Arrival, learn_alone, learn_arrival
from streamlabel.models.state import ClassifierBlocks
from streamlabel.results import CSC, CSR, FloatArray, IntArray
from streamlabel.stats.factors import make_factor
from streamlabel.stats.threads import one_thread

__all__ = ["StreamingLabelClassifier"]

DEFAULT_LAM = 0.003


class StreamingLabelClassifier(BaseEstimator):
    """A multi-label classifier whose label set grows while it is in use.

    Parameters
    ----------
    lam : "auto" or float
        The lasso penalty of step 1, as a share of the annotated rows (0/1 coding). "auto" is 0.003. A penalty so large
        that no past label is chosen learns the new label alone.
    beta : "auto" or float
        The ridge strength of the past labels, and of the pull of a new label toward its anchor. "auto" chooses it by
        generalised cross-validation, on the labels at hand alone.
    use_past : bool
        False learns every new label alone ("own ridge"): the comparison that shows what the past is worth.

    Attributes
    ----------
    label_names_ : tuple of str, in order of arrival; the order of every column
    coef_ : (n_labels, n_features);  intercept_ : (n_labels,)
    structure_ : csc_array (n_labels, n_labels); column j is the code of label j, empty for labels of `fit`

    Examples
    --------
    >>> import numpy as np
    >>> from streamlabel import StreamingLabelClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> clf = StreamingLabelClassifier(beta=0.1).fit(X, X.astype(int), label_names=["a", "b"])
    >>> clf.add_labels(X, [[1], [1], [1], [0]], label_names=["a or b"]).label_names_
    ('a', 'b', 'a or b')
    """

    def __init__(self, *, lam: float | str = "auto", beta: float | str = "auto", use_past: bool = True) -> None:
        self.lam = lam
        self.beta = beta
        self.use_past = use_past

    def fit(
        self, X: ArrayLike | CSR, Y: ArrayLike | CSR, label_names: Iterable[str] | None = None
    ) -> StreamingLabelClassifier:
        """Learn the past labels: ridge with an intercept, one strength for all. Forgets everything learned before."""
        matrix, labels = canonical_csr(X, dtype=np.float64), canonical_labels(Y)
        _check_rows(matrix, labels, "Y")
        names = default_label_names(labels.shape[1]) if label_names is None else label_names
        names = check_label_names(names, labels.shape[1])
        factor = make_factor(matrix)
        arrival = learn_alone(factor, labels, 0, self._beta())
        self.n_features_in_ = int(matrix.shape[1])
        self.beta_ = arrival.beta
        self._X, self._factor = matrix, factor
        self._answers: CSC = sparse.csc_array(labels)
        self._answered = np.ones(len(names), dtype=bool)
        self._classifiers = ClassifierBlocks(self.n_features_in_).appended(arrival.weights, arrival.intercept)
        self.label_names_ = names
        self.structure_ = sparse.csc_array((len(names), len(names)))
        return self

    def add_labels(
        self,
        X: ArrayLike | CSR,
        Y_new: ArrayLike | CSR,
        label_names: Iterable[str] | None = None,
        *,
        annotated: ArrayLike | None = None,
    ) -> StreamingLabelClassifier:
        """Learn new labels beside the old ones, which do not change.

        Parameters
        ----------
        X : (n, d). The rows of `fit`, or other rows: then the model's own scores stand for the past labels.
        Y_new : (n, k) or (n,) of 0/1; rows that are not annotated may hold anything
        label_names : k names, none of them taken
        annotated : (n,) bool, or row numbers; the other rows are unknown, not negative. Default: all.
        """
        check_is_fitted(self)
        matrix, rows, labels = self._check_arrival(X, Y_new, annotated)
        n_new, n_past = int(labels.shape[1]), len(self.label_names_)
        names = default_label_names(n_new, first=n_past) if label_names is None else label_names
        names = check_label_names(names, n_new)
        taken = set(names) & set(self.label_names_)
        if taken:
            raise ConflictError(f"label name {min(taken)!r} is taken; choose another name")
        _check_both_classes(labels, names)
        self._commit(self._learn(matrix, rows, labels), labels, rows, names)
        return self

    def decision_function(self, X: ArrayLike | CSR) -> FloatArray:
        """Scores (n, n_labels), columns in the order of `label_names_`; an old column never changes by one bit."""
        check_is_fitted(self)
        return self._classifiers.scores(self._check_features(X))

    def predict_top_k(self, X: ArrayLike | CSR, k: int = 5) -> tuple[IntArray, FloatArray]:
        """The k best labels of each row and their scores, (n, k) each, best first; ties go to the older label."""
        scores = self.decision_function(X)
        columns = top_k(scores, min(k, scores.shape[1]))
        return columns, np.take_along_axis(scores, columns, axis=1)

    def neighbours(self, label: str, k: int = 5) -> list[tuple[str, float]]:
        """The k labels with the largest weights (by size) in the code of a label, with sign; [] if it has none."""
        check_is_fitted(self)
        if label not in self.label_names_:
            raise NotFoundError(f"no label is called {label!r}; label_names_ lists all {len(self.label_names_)}")
        column = self.structure_[:, [self.label_names_.index(label)]].tocoo()
        order = np.argsort(-np.abs(column.data), kind="stable")[:k]
        return [(self.label_names_[int(column.row[i])], float(column.data[i])) for i in order]

    @property
    def coef_(self) -> FloatArray:
        return self._classifiers.weights().T

    @property
    def intercept_(self) -> FloatArray:
        return self._classifiers.intercept.copy()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_classifiers")

    # -- the steps of an arrival ------------------------------------------------------------------------------------

    def _learn(self, matrix: CSR, rows: IntArray | None, labels: CSR) -> Arrival:
        """``rows`` are numbers of rows of `fit`, or None where ``matrix`` holds other rows."""
        everything = rows is not None and rows.size == self._X.shape[0]
        with one_thread():
            factor = self._factor if everything else make_factor(matrix)
            if not self.use_past:
                return learn_alone(factor, labels, len(self.label_names_), self._beta())
            responses = self._classifiers.scores(matrix) if rows is None else self._past_responses(matrix, rows)
            return learn_arrival(factor, responses, self._classifiers.weights, labels, self._lam(), self._beta())

    def _past_responses(self, matrix: CSR, rows: IntArray) -> CSR | FloatArray:
        """What the past labels say on rows of `fit`: the answers, and scores for labels not asked everywhere."""
        answers = sparse.csr_array(self._answers)[rows]
        if self._answered.all():
            return answers
        responses = answers.toarray().astype(np.float64)
        asked_in_part = np.flatnonzero(~self._answered)
        responses[:, asked_in_part] = self._classifiers.scores(matrix)[:, asked_in_part]
        return responses

    def _commit(self, arrival: Arrival, labels: CSR, rows: IntArray | None, names: tuple[str, ...]) -> None:
        """Everything has been computed; what follows cannot fail half-way but for an interruption of the last lines."""
        n_past, n_new = len(self.label_names_), len(names)
        classifiers = self._classifiers.appended(arrival.weights, arrival.intercept)
        codes = sparse.vstack((arrival.codes, sparse.csc_array((n_new, n_new))), format="csc")
        older = sparse.vstack((self.structure_, sparse.csc_array((n_new, n_past))), format="csc")
        structure = sparse.csc_array(sparse.hstack((older, codes), format="csc"))
        everywhere = rows is not None and rows.size == self._X.shape[0]
        column = labels if everywhere else sparse.csc_array((self._X.shape[0], n_new), dtype=np.int8)
        answers = sparse.csc_array(sparse.hstack((self._answers, column), format="csc"))
        answered = np.concatenate((self._answered, np.full(n_new, everywhere)))
        self._classifiers, self.structure_, self._answers, self._answered, self.label_names_ = (
            classifiers,
            structure,
            answers,
            answered,
            self.label_names_ + names,
        )

    # -- checks -----------------------------------------------------------------------------------------------------

    def _check_arrival(self, X: Any, Y_new: Any, annotated: Any) -> tuple[CSR, IntArray | None, CSR]:
        matrix = self._check_features(X)
        same = _same_rows(matrix, self._X)
        if not sparse.issparse(Y_new) and np.ndim(Y_new) == 1:
            Y_new = np.asarray(Y_new)[:, None]
        _check_rows(matrix, Y_new, "Y_new")
        if annotated is None:
            return matrix, np.arange(matrix.shape[0]) if same else None, canonical_labels(Y_new, name="Y_new")
        chosen = _row_numbers(annotated, matrix.shape[0])
        labels = canonical_labels(sparse.csr_array(Y_new)[chosen], name="Y_new")
        return matrix[chosen], chosen if same else None, labels

    def _check_features(self, X: Any) -> CSR:
        matrix = canonical_csr(X, dtype=np.float64)
        if matrix.shape[1] != self.n_features_in_:
            raise DataError(f"X has {matrix.shape[1]} features; the model was fitted with {self.n_features_in_}")
        return matrix

    def _lam(self) -> float:
        return DEFAULT_LAM if self.lam == "auto" else _positive(self.lam, "lam")

    def _beta(self) -> float | None:
        return None if self.beta == "auto" else _positive(self.beta, "beta")


def _positive(value: Any, name: str) -> float:
    if isinstance(value, str) or not np.isfinite(value) or value <= 0:
        raise DataError(f'{name} is {value!r}; it must be "auto" or a positive number')
    return float(value)


def _check_rows(X: CSR, Y: Any, name: str) -> None:
    n_rows = Y.shape[0] if hasattr(Y, "shape") else len(Y)
    if n_rows != X.shape[0]:
        raise DataError(f"{name} has {n_rows} rows and X has {X.shape[0]}; they must agree")
    if X.shape[0] < 2:
        raise DataError(f"X has {X.shape[0]} rows; at least two are needed to learn anything")


def _check_both_classes(labels: CSR, names: tuple[str, ...]) -> None:
    counts = np.asarray(labels.sum(axis=0)).ravel()
    for name, count in zip(names, counts, strict=True):
        if count in (0, labels.shape[0]):
            missing = "positive" if count == 0 else "negative"
            raise DataError(
                f"label {name!r} has no {missing} example among its {labels.shape[0]} annotated rows; add one"
            )


def _row_numbers(annotated: Any, n_rows: int) -> NDArray[np.intp]:
    chosen = np.asarray(annotated)
    if chosen.dtype == bool:
        if chosen.shape != (n_rows,):
            raise DataError(f"annotated has shape {chosen.shape}; expected one entry a row, ({n_rows},)")
        return np.flatnonzero(chosen)
    if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
        raise DataError("annotated must be a boolean mask of the rows, or row numbers")
    if chosen.size and (chosen.min() < 0 or chosen.max() >= n_rows):
        raise DataError(f"annotated names row {int(chosen.max())}; there are {n_rows} rows, counted from 0")
    return np.unique(chosen)


def _same_rows(A: CSR, B: CSR) -> bool:
    return (
        A.shape == B.shape
        and A.nnz == B.nnz
        and np.array_equal(A.indptr, B.indptr)
        and np.array_equal(A.indices, B.indices)
        and np.array_equal(A.data, B.data)
    )
