"""The estimator: a multi-label linear classifier to which labels can be added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from streamlabel._validation import canonical_labels, check_label_names, default_label_names
from streamlabel.classifier.anchored_ridge import choose_beta
from streamlabel.classifier.metric_ridge import PreparedRidge, make_ridge, mean_square_length
from streamlabel.exceptions import ConflictError, DataError, NotFoundError
from streamlabel.metrics.topk import top_k
from streamlabel.models.arrival import Arrival, PastAnswers, learn_arrival
from streamlabel.models.asked import AskedRows, check_both_answers, group_by_rows, rows_asked
from streamlabel.models.calibration import LAM, Recipe, Trial, choose_recipe, sketch
from streamlabel.models.decisions import best_f1_thresholds, fit_sigmoids, sigmoid
from streamlabel.models.memory import FitMemory, LabelAnswers, positive_rows
from streamlabel.models.state import ClassifierBlocks
from streamlabel.results import CSC, CSR, FloatArray, IntArray
from streamlabel.stats.factors import RidgeFactor, dense, make_factor
from streamlabel.stats.threads import one_thread
from streamlabel.structure.dictionary import choose_dictionary

__all__ = ["LabelReport", "StreamingLabelClassifier"]

MOST_TUNED = 512  # labels by which the strength of the past is chosen


@dataclass(frozen=True)
class LabelReport:
    """How a label was learned.

    share, lam, anchored, beta : the recipe (`models.calibration`): share of the metric, lasso penalty of the code as a
        share of the rows, whether the classifier was pulled toward the code, ridge strength
    code_size, gap : labels in its code, and the duality gap of the code (0 without one)
    """

    label: str
    n_rows: int
    n_yes: int
    share: float
    lam: float | None
    anchored: bool
    beta: float
    code_size: int = 0
    gap: float = 0.0


class StreamingLabelClassifier(ClassifierMixin, BaseEstimator):
    """A multi-label classifier whose label set grows while it is in use.

    Parameters
    ----------
    lam : "auto", None or float
        The lasso penalty of step 1, as a share of the annotated rows (0/1 coding). "auto" is 0.003, with the classifier
        pulled toward the code only where that helps. None learns without a code.
    metric : "auto", None or float in (0, 1)
        The share of the past classifiers' covariance in the prior of a new one. None is the paper's method.
    beta : "auto" or float
        The ridge strength: of the past labels, and of the pull of a new label toward its anchor. "auto" chooses it for
        the past labels by generalised cross-validation, for new ones as below.
    dictionary : "all", "fit" or int
        Which labels may enter a code: all that are known at that time, those of `fit`, or so many of them, chosen by
        clustering (`structure.dictionary`): the cost of a new label then does not depend on how many there are.
    fit_intercept : bool
        False is the form the paper writes: -1/+1 answers, no intercept, nothing centred.
    threshold : "f1" or float
        Where `predict` says yes: the best F1 of leave-one-out scores, label by label, or one score for all.
    random_state : int
        For the rows and labels by which "auto" judges.

    With "auto", some of the labels of `fit` are hidden and learned again from as many rows as the new label has, with
    and without the past, and judged on other rows: the past is used where it lost on no measure (`models.calibration`).
    ``lam=None, metric=None`` learns every new label alone ("own ridge").

    Attributes
    ----------
    label_names_ : tuple of str, in order of arrival; the order of every column
    coef_ : (n_labels, n_features)
    intercept_ : (n_labels,)
    structure_ : csc_array (n_labels, n_labels); column j is the code of label j, empty for labels of `fit`
    thresholds_ : (n_labels,), may be set
    reports_ : tuple of `LabelReport`

    Examples
    --------
    >>> import numpy as np
    >>> from streamlabel import StreamingLabelClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> clf = StreamingLabelClassifier(beta=0.1).fit(X, X.astype(int), label_names=["a", "b"])
    >>> clf.add_labels(X, [[1], [1], [1], [0]], label_names=["a or b"]).label_names_
    ('a', 'b', 'a or b')
    """

    def __init__(
        self,
        *,
        lam: float | str | None = "auto",
        metric: float | str | None = "auto",
        beta: float | str = "auto",
        dictionary: int | str = "all",
        fit_intercept: bool = True,
        threshold: float | str = "f1",
        random_state: int = 0,
    ) -> None:
        self.lam = lam
        self.metric = metric
        self.beta = beta
        self.dictionary = dictionary
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(
        self, X: ArrayLike | CSR, y: ArrayLike | CSR, label_names: Iterable[str] | None = None
    ) -> StreamingLabelClassifier:
        """Learn the past labels: ridge, one strength for all. Forgets everything learned before.

        y is a label matrix (n, m) of 0/1, dense or sparse. A vector of classes is also taken, as one label a class
        (then `predict` gives classes, and no label can be added).
        """
        self._check_parameters()
        matrix = self._features(X, reset=True)
        labels, names = self._past_labels(y, matrix.shape[0], label_names)
        beta, ridge = self._fit_ridge(matrix, labels)
        counts = np.asarray(labels.sum(axis=0), dtype=np.float64).ravel()
        weights = ridge.solve(labels.astype(np.float64))
        if self.fit_intercept:
            intercept = counts / matrix.shape[0] - ridge.mean @ weights
        else:  # targets 2B - 1: the solve is linear
            weights = 2.0 * weights - ridge.solve(np.ones((matrix.shape[0], 1)))
            intercept = np.zeros(len(names))
        rows = FitMemory.sample(matrix.shape[0], self.random_state)
        leverages = ridge.leverages(rows)
        unseen = unseen_scores(np.asarray(matrix[rows] @ weights) + intercept, self._coded(labels[rows]), leverages)
        self.beta_ = beta
        self._strength = beta / mean_square_length(matrix, ridge.mean)
        self._ridge: PreparedRidge | None = ridge
        self._memory: FitMemory | None = FitMemory(matrix, labels, unseen, rows, leverages, self.random_state)
        atoms = self._atoms(labels)
        self._answers: LabelAnswers | None = LabelAnswers(
            atoms, labels if len(atoms) == len(names) else labels[:, atoms]
        )
        self._start(names, weights, intercept)
        truth = labels[rows].toarray().astype(np.float64)
        self._thresholds: FloatArray = self._choose_thresholds(unseen, truth)
        self._slope: FloatArray
        self._offset: FloatArray
        self._slope, self._offset = fit_sigmoids(unseen, truth)
        self.reports_ = tuple(
            LabelReport(name, matrix.shape[0], int(count), 0.0, None, False, beta)
            for name, count in zip(names, counts, strict=True)
        )
        return self

    @classmethod
    def from_coef(
        cls,
        coef: ArrayLike,
        intercept: ArrayLike | None = None,
        label_names: Iterable[str] | None = None,
        **parameters: Any,
    ) -> StreamingLabelClassifier:
        """Adopt linear classifiers that are already there: coef (m, d), intercept (m,). Nothing is retrained.

        Labels can be added with rows of their own; without the training rows nothing can be tried beforehand, so the
        anchor is used as the paper does and the metric is not. Thresholds start at 0 and may be set.
        """
        weights = np.array(coef, dtype=np.float64, ndmin=2).T
        offsets = np.zeros(weights.shape[1]) if intercept is None else np.array(intercept, dtype=np.float64).ravel()
        if offsets.shape != (weights.shape[1],):
            raise DataError(f"{offsets.size} intercepts for {weights.shape[1]} classifiers; give one a row of coef")
        if not (np.isfinite(weights).all() and np.isfinite(offsets).all()):
            raise DataError("coef or intercept contains NaN or infinity; such a model cannot be adopted")
        names = default_label_names(offsets.size) if label_names is None else label_names
        model = cls(**parameters)
        model._check_parameters()
        model.n_features_in_ = int(weights.shape[0])
        model._classes_1d = None
        model._ridge = model._memory = model._answers = None
        model._strength = np.nan
        model._start(check_label_names(names, offsets.size), weights, offsets)
        model._thresholds = np.zeros(offsets.size)
        model._slope, model._offset = np.ones(offsets.size), np.zeros(offsets.size)
        model.reports_ = tuple(LabelReport(name, 0, 0, 0.0, None, False, np.nan) for name in model.label_names_)
        return model

    @classmethod
    def from_estimator(
        cls, estimator: Any, label_names: Iterable[str] | None = None, **parameters: Any
    ) -> StreamingLabelClassifier:
        """Adopt a fitted scikit-learn linear model: one-vs-rest, multi-output, or one with `coef_` (m, d)."""
        parts = getattr(estimator, "estimators_", None)
        try:
            if parts is not None:
                coef = np.vstack([np.atleast_2d(dense(part.coef_)) for part in parts])
                intercept = np.hstack([np.ravel(part.intercept_) for part in parts])
            else:
                coef, intercept = dense(estimator.coef_), np.ravel(estimator.intercept_)
        except AttributeError as error:
            raise DataError(
                f"{type(estimator).__name__} has no linear coefficients ({error}); fit it first, or use from_coef"
            ) from error
        coef = np.atleast_2d(coef)
        return cls.from_coef(coef, np.broadcast_to(intercept, (len(coef),)), label_names, **parameters)

    def add_labels(
        self,
        X: ArrayLike | CSR,
        Y_new: ArrayLike | CSR,
        label_names: Iterable[str] | None = None,
        *,
        annotated: ArrayLike | CSR | None = None,
    ) -> StreamingLabelClassifier:
        """Learn new labels beside the old ones, which do not change.

        Parameters
        ----------
        X : (n, d). The rows of `fit`, or other rows: then the model's own scores stand for the past labels.
        Y_new : (n, k) or (n,) of 0/1; cells that are not annotated may hold anything
        label_names : k names, none of them taken
        annotated : what was asked; the rest is unknown, not negative. (n,) bool or row numbers: rows, for all labels.
            (n, k) bool, dense or sparse: cells. Default: everything.
        """
        check_is_fitted(self)
        if self._classes_1d is not None:
            raise DataError("the model was fitted on a vector of classes; fit it on a 0/1 label matrix to add labels")
        self._check_parameters()
        same = self._memory is not None and _same(X, self._memory.X)
        matrix = self._memory.X if same and self._memory is not None else self._features(X, reset=False)
        same = same or (self._memory is not None and _same(matrix, self._memory.X))
        asked = rows_asked(matrix.shape[0], Y_new, annotated)
        names = self._new_names(label_names, asked.n_labels)
        check_both_answers(asked, names)
        parts: list[tuple[IntArray, Arrival, Recipe, float, FloatArray, FloatArray | None]] = []
        with one_thread():
            for columns, rows, answers in group_by_rows(asked):
                parts.append((columns, *self._learn(matrix, rows, answers, same)))
            self._commit(parts, names, asked, same)
        return self

    def decision_function(self, X: ArrayLike | CSR) -> FloatArray:
        """Scores (n, n_labels), columns in the order of `label_names_`; an old column never changes by one bit."""
        check_is_fitted(self)
        scores = self._classifiers.scores(self._features(X, reset=False))
        if self._classes_1d is not None and len(self._classes_1d) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict(self, X: ArrayLike | CSR) -> Any:
        """0/1 (n, n_labels): where the score exceeds `thresholds_`. For a vector of classes: the best class."""
        check_is_fitted(self)
        scores = self._classifiers.scores(self._features(X, reset=False))
        if self._classes_1d is not None:
            return self._classes_1d[scores.argmax(axis=1)]
        return (scores > self._thresholds).astype(np.int64)

    def predict_proba(self, X: ArrayLike | CSR) -> FloatArray:
        """Probabilities (n, n_labels), calibrated label by label on leave-one-out scores (Platt)."""
        check_is_fitted(self)
        scores = self._classifiers.scores(self._features(X, reset=False))
        if self._classes_1d is None:
            return sigmoid(scores, self._slope, self._offset)
        # one label a class: a softmax as steep as the labels' sigmoids, so that the best score is the most probable
        return np.asarray(softmax(float(np.median(self._slope)) * scores, axis=1))

    def predict_top_k(self, X: ArrayLike | CSR, k: int = 5) -> tuple[IntArray, FloatArray]:
        """The k best labels of each row and their scores, (n, k) each, best first; ties go to the older label."""
        check_is_fitted(self)
        scores = self._classifiers.scores(self._features(X, reset=False))
        columns = top_k(scores, min(k, scores.shape[1]))
        return columns, np.take_along_axis(scores, columns, axis=1)

    def neighbours(self, label: str, k: int = 5) -> list[tuple[str, float]]:
        """The k labels with the largest weights (by size) in the code of a label, with sign; [] if it has none."""
        check_is_fitted(self)
        if label not in self._numbers:
            raise NotFoundError(f"no label is called {label!r}; label_names_ lists all {len(self.label_names_)}")
        number = self._numbers[label] - self._n_fitted
        for codes in self._codes if number >= 0 else ():
            if number < codes.shape[1]:
                span = slice(codes.indptr[number], codes.indptr[number + 1])
                labels, values = codes.indices[span], codes.data[span]
                order = np.argsort(-np.abs(values), kind="stable")[:k]
                return [(self.label_names_[int(labels[i])], float(values[i])) for i in order]
            number -= codes.shape[1]
        return []

    @property
    def structure_(self) -> CSC:
        n_labels = len(self.label_names_)
        older: CSC = sparse.csc_array((n_labels, self._n_fitted))
        columns = [sparse.csc_array((c.data, c.indices, c.indptr), shape=(n_labels, c.shape[1])) for c in self._codes]
        return sparse.csc_array(sparse.hstack((older, *columns), format="csc"))

    @property
    def coef_(self) -> FloatArray:
        return self._classifiers.weights().T

    @property
    def intercept_(self) -> FloatArray:
        return self._classifiers.intercept.copy()

    @property
    def thresholds_(self) -> FloatArray:
        return self._thresholds

    @thresholds_.setter
    def thresholds_(self, values: ArrayLike) -> None:
        found = np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), (len(self.label_names_),)))
        if np.isnan(found).any():
            raise DataError("thresholds_ contains NaN; give a number for every label")
        self._thresholds = found

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_classifiers")

    # -- the past labels --------------------------------------------------------------------------------------------

    def _past_labels(self, y: Any, n_rows: int, label_names: Iterable[str] | None) -> tuple[CSR, tuple[str, ...]]:
        self._classes_1d: Any = None
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if not sparse.issparse(y):
            y = check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_min_samples=0, ensure_min_features=0)
            _check_rows(n_rows, y.shape[0], "y")
        if not sparse.issparse(y) and (y.ndim == 1 or _classes_in_a_column(y)):
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
            self._classes_1d, codes = np.unique(y, return_inverse=True)
            if len(self._classes_1d) < 2:
                raise ValueError(f"the classifier needs two classes; y holds one class only, {self._classes_1d[0]!r}")
            self.classes_ = self._classes_1d
            y = sparse.csr_array((np.ones(len(codes)), (np.arange(len(codes)), codes)))
            if label_names is None:
                label_names = [str(value) for value in self._classes_1d]
        labels = canonical_labels(y, name="y")
        _check_rows(n_rows, labels.shape[0], "y")
        names = default_label_names(labels.shape[1]) if label_names is None else label_names
        checked = check_label_names(names, labels.shape[1])
        if self._classes_1d is None:
            self.classes_ = np.array(checked, dtype=object)
        return labels, checked

    def _fit_ridge(self, matrix: Any, labels: CSR) -> tuple[float, PreparedRidge]:
        """The ridge of all rows, at the given strength or the one with the least generalised error on (a sample of) the
        labels."""
        if self.beta != "auto":
            beta = float(self.beta)
            return beta, make_ridge(matrix, beta, centre=self.fit_intercept)
        n_labels = int(labels.shape[1])
        if n_labels > MOST_TUNED:
            chosen = np.random.default_rng(self.random_state).permutation(n_labels)[:MOST_TUNED]
            labels = labels[:, np.sort(chosen)]
        factor = make_factor(matrix, centre=self.fit_intercept)
        beta = self._best_beta(factor, self._coded(labels))
        return beta, make_ridge(matrix, beta, centre=self.fit_intercept, gram=factor.gram)

    def _best_beta(self, factor: RidgeFactor, targets: FloatArray) -> float:
        energy = np.square(targets - targets.mean(axis=0) if self.fit_intercept else targets).sum(axis=0)
        return choose_beta(factor, factor.project(targets), energy)

    def _atoms(self, labels: CSR) -> IntArray:
        everyone = np.arange(labels.shape[1])
        if isinstance(self.dictionary, str) or self.dictionary >= labels.shape[1]:
            return everyone
        with one_thread():
            return np.sort(choose_dictionary(labels, int(self.dictionary), random_state=self.random_state))

    def _start(self, names: tuple[str, ...], weights: FloatArray, intercept: FloatArray) -> None:
        self._classifiers = ClassifierBlocks(int(weights.shape[0])).appended(weights, intercept)
        self._n_fitted = len(names)
        self._basis: FloatArray | None = None
        self._scored = np.empty(0, dtype=np.intp)  # labels that may enter a code by their scores only
        self._codes: tuple[CSC, ...] = ()
        self._numbers = {name: number for number, name in enumerate(names)}
        self.label_names_: tuple[str, ...] = names

    # -- an arrival -------------------------------------------------------------------------------------------------

    def _learn(
        self, matrix: Any, rows: IntArray | None, labels: CSR, same: bool
    ) -> tuple[Arrival, Recipe, float, FloatArray, FloatArray | None]:
        """``rows`` None: all rows of ``matrix`` were asked; ``same``: they are the rows of `fit`.

        Gives the arrival, how it was learned, the 0/1 answers, and their products with the past where these were made.
        """
        answers = self._coded(labels)
        X = matrix if rows is None else matrix[rows]
        everything = same and rows is None
        recipe = self._recipe(X.shape[0], everything)
        if everything:
            assert self._ridge is not None
            ridge = self._ridge
        else:
            beta = self._arrival_beta(X, answers, recipe)
            basis = self._metric_basis() if recipe.share else None
            ridge = make_ridge(X, beta, basis=basis, share=recipe.share, centre=self.fit_intercept)
        past = None if recipe.lam is None else self._past(X, rows, same, labels)
        arrival = learn_arrival(
            X, ridge, answers, past, recipe.lam,
            anchored=recipe.anchored, centre=self.fit_intercept, with_loo=not everything,
        )  # fmt: skip
        truth = answers if self.fit_intercept else 0.5 * (answers + 1.0)
        return arrival, recipe, ridge.beta, truth, None if past is None else past.correlations

    def _recipe(self, n_rows: int, everything: bool) -> Recipe:
        trials: list[Trial] = []
        by_trial = self._memory is not None and self.fit_intercept and not everything
        if by_trial and "auto" in (self.lam, self.metric, self.beta):
            assert self._memory is not None
            fitted = np.arange(self._n_fitted)
            trials = self._memory.trials(
                n_rows, self._classifiers.weights(fitted), self._classifiers.intercept[: self._n_fitted]
            )
        if trials:
            chosen = choose_recipe(trials, anchors=self.lam is not None, metrics=self.metric is not None)
        else:
            chosen = Recipe(0.0, LAM, True, self._strength)
        if self.lam == "auto":
            lam, anchored = chosen.lam, chosen.anchored
        else:
            lam, anchored = (None, False) if self.lam is None else (float(self.lam), True)
        share = chosen.share if self.metric == "auto" else float(self.metric or 0.0)
        return Recipe(0.0 if everything else share, lam, anchored, chosen.strength)

    def _arrival_beta(self, X: Any, answers: FloatArray, recipe: Recipe) -> float:
        if self.beta != "auto":
            return float(self.beta)
        mean = np.asarray(X.mean(axis=0)) if self.fit_intercept else np.zeros(X.shape[1])
        if np.isfinite(recipe.strength):
            return recipe.strength * mean_square_length(X, mean)
        return self._best_beta(make_factor(X, centre=self.fit_intercept), answers)

    def _metric_basis(self) -> FloatArray:
        """The directions of the labels of `fit`; fixed, so that the order of arrivals does not matter."""
        if self._basis is None:
            self._basis = sketch(self._classifiers.weights(np.arange(self._n_fitted)))
        return self._basis

    def _past(self, X: Any, rows: IntArray | None, same: bool, labels: CSR) -> PastAnswers:
        """Who may enter a code on these rows: labels answered there, by their answers; the others, by their scores."""
        n_labels, weights = len(self.label_names_), self._classifiers.weights
        if not same or self._answers is None:
            allowed = self._allowed()
            return PastAnswers(n_labels, allowed, self._classifiers.scores(X, allowed), weights)
        answers, numbers = self._answers, self._answers.labels
        if rows is None and not self._scored.size and self.fit_intercept:
            return PastAnswers(n_labels, numbers, None, weights, answers.gram, answers.cross(positive_rows(labels)))
        responses: Any = answers.by_rows if rows is None else answers.by_rows[rows]
        if self.fit_intercept:  # a label that does not occur on these rows cannot enter
            present = np.flatnonzero(np.bincount(responses.indices, minlength=len(numbers)))
            numbers, responses = numbers[present], responses[:, present]
        if self._scored.size or not self.fit_intercept:
            responses = np.hstack((self._coded(responses), self._classifiers.scores(X, self._scored)))
            numbers = np.concatenate((numbers, self._scored))
        return PastAnswers(n_labels, numbers, responses, weights)

    def _allowed(self) -> IntArray:
        """The labels that may enter a code where there are no answers, only scores."""
        if self._answers is None:
            return np.arange(len(self.label_names_) if self.dictionary == "all" else self._n_fitted)
        return np.concatenate((self._answers.labels, self._scored))

    def _commit(self, parts: Any, names: tuple[str, ...], asked: AskedRows, same: bool) -> None:
        """Put the parts in the order of the names and swap everything in at once."""
        n_past, n_new = len(self.label_names_), len(names)
        weights, intercept = np.empty((self.n_features_in_, n_new)), np.empty(n_new)
        thresholds, slope, offset = np.empty(n_new), np.empty(n_new), np.empty(n_new)
        reports: list[Any] = [None] * n_new
        codes = []
        for columns, arrival, recipe, beta, answers, _ in parts:
            weights[:, columns], intercept[columns] = arrival.weights, arrival.intercept
            scores, truth = self._judging_scores(arrival, answers)
            thresholds[columns] = self._choose_thresholds(scores, truth)
            slope[columns], offset[columns] = fit_sigmoids(scores, truth)
            codes.append(arrival.codes)
            sizes = np.diff(arrival.codes.indptr)
            gaps = [report.violation for report in arrival.reports] or [0.0] * len(columns)
            counts = answers.sum(axis=0)
            for j, column in enumerate(columns):
                reports[column] = LabelReport(
                    names[column],
                    len(answers),
                    int(counts[j]),
                    recipe.share,
                    recipe.lam,
                    recipe.anchored,
                    beta,
                    int(sizes[j]),
                    gaps[j],
                )
        order = np.argsort(np.concatenate([columns for columns, *_ in parts]))
        joined = codes[0] if len(codes) == 1 else sparse.csc_array(sparse.hstack(codes, format="csc")[:, order])
        answers_now, scored = self._answers, self._scored
        if self.dictionary == "all" and answers_now is not None:
            if same and asked.everything:
                answers_now = answers_now.appended(n_past, positive_rows(asked.labels), parts[0][-1])
            else:
                scored = np.concatenate((scored, np.arange(n_past, n_past + n_new)))
        names_now = (*self.label_names_, *names)
        state = {
            "_classifiers": self._classifiers.appended(weights, intercept),
            "_answers": answers_now,
            "_scored": scored,
            "_codes": (*self._codes, joined),
            "_numbers": {**self._numbers, **{name: n_past + j for j, name in enumerate(names)}},
            "_thresholds": np.append(self._thresholds, thresholds),
            "_slope": np.append(self._slope, slope),
            "_offset": np.append(self._offset, offset),
            "reports_": (*self.reports_, *reports),
            "label_names_": names_now,
            "classes_": np.array(names_now, dtype=object),
        }
        self.__dict__.update(state)  # one step: an interruption leaves the old model or the new one

    def _judging_scores(self, arrival: Arrival, answers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Leave-one-out scores of the arrival, and the answers there; with all rows of `fit`, of its judged rows."""
        if arrival.loo_scores is not None:
            return arrival.loo_scores, answers
        assert self._memory is not None
        rows = self._memory.judged_rows
        scores = np.asarray(self._memory.judged_X @ arrival.weights) + arrival.intercept
        targets = answers[rows] if self.fit_intercept else 2.0 * answers[rows] - 1.0
        return unseen_scores(scores, targets, self._memory.leverages), answers[rows]

    def _choose_thresholds(self, scores: FloatArray, answers: FloatArray) -> FloatArray:
        if self.threshold != "f1":
            return np.full(scores.shape[1], float(self.threshold))
        found = best_f1_thresholds(scores, answers)
        usual = 0.5 if self.fit_intercept else 0.0
        return np.where(np.isnan(found), usual if np.isnan(found).all() else np.nanmedian(found), found)

    # -- checks -----------------------------------------------------------------------------------------------------

    def _features(self, X: Any, *, reset: bool) -> Any:
        """Float64, checked; sparse stays sparse (csr_array), dense stays dense."""
        checked = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        if isinstance(checked, np.ndarray):
            return checked
        matrix = sparse.csr_array(checked)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix

    def _coded(self, labels: CSR) -> FloatArray:
        values = labels.toarray().astype(np.float64)
        return values if self.fit_intercept else 2.0 * values - 1.0

    def _new_names(self, label_names: Iterable[str] | None, n_new: int) -> tuple[str, ...]:
        if label_names is None:
            label_names = default_label_names(n_new, first=len(self.label_names_))
        names = check_label_names(label_names, n_new)
        for name in names:
            if name in self._numbers:
                raise ConflictError(f"label name {name!r} is taken; choose another name")
        return names

    def _check_parameters(self) -> None:
        _check_parameter(self.lam, "lam", none=True)
        _check_parameter(self.metric, "metric", none=True, below=1.0)
        _check_parameter(self.beta, "beta")
        if self.dictionary not in ("all", "fit") and (isinstance(self.dictionary, str) or int(self.dictionary) < 1):
            raise DataError(f'dictionary is {self.dictionary!r}; it must be "all", "fit" or a number of labels')
        if self.threshold != "f1" and (isinstance(self.threshold, str) or not np.isfinite(self.threshold)):
            raise DataError(f'threshold is {self.threshold!r}; it must be "f1" or a number')


def unseen_scores(scores: FloatArray, targets: FloatArray, leverages: FloatArray) -> FloatArray:
    """Scores (e, k) of rows under the classifiers learned without them: ``f - h/(1 - h) (y - f)``."""
    leverage = np.clip(leverages, 0.0, 1.0 - 1e-9)[:, None]
    return scores - leverage / (1.0 - leverage) * (targets - scores)


def _check_parameter(value: Any, name: str, *, none: bool = False, below: float = np.inf) -> None:
    if (isinstance(value, str) and value == "auto") or (none and value is None):
        return
    if isinstance(value, str) or value is None or not np.isfinite(value) or not 0 < value < below:
        what = "a positive number" if below == np.inf else f"a number between 0 and {below:g}"
        raise DataError(f'{name} is {value!r}; it must be "auto"{", None" if none else ""} or {what}')


def _check_rows(n_rows: int, n_labelled: int, name: str) -> None:
    if n_labelled != n_rows:
        raise DataError(f"{name} has {n_labelled} rows and X has {n_rows}; they must agree")
    if n_rows < 2:
        raise DataError(f"X has {n_rows} rows (1 sample); at least two are needed to learn anything")


def _classes_in_a_column(y: Any) -> bool:
    """A single column that is not 0/1: scikit-learn's way of writing a vector of classes."""
    return bool(y.shape[1] == 1 and not (y.dtype.kind in "biuf" and np.isin(y, (0, 1)).all()))


def _same(A: Any, B: Any) -> bool:
    """Equal to the last bit. A may be anything; B is what `fit` kept."""
    if A is B:
        return True
    if isinstance(B, np.ndarray):
        return isinstance(A, np.ndarray) and A.dtype == B.dtype and np.array_equal(A, B)
    if getattr(A, "format", "") != "csr" or A.shape != B.shape or A.nnz != B.nnz or A.dtype != B.dtype:
        return False
    return all(np.array_equal(getattr(A, part), getattr(B, part)) for part in ("indptr", "indices", "data"))
