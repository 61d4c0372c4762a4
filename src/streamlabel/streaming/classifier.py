"""The estimator: a multi-label linear classifier to which labels can be added."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from streamlabel.classifier.ridge import PreparedRidge
from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.metrics.topk import top_k
from streamlabel.stats.threads import one_thread, one_thread_if_small
from streamlabel.streaming.adopt import checked_classifiers, linear_parts
from streamlabel.streaming.annotated import AskedRows, check_both_answers, group_by_rows, rows_asked
from streamlabel.streaming.arrival import Decisions, LearnedGroup, Learning, decide, fixed_lam, gather
from streamlabel.streaming.blocks import ClassifierBlocks, LabelNumbers, SharedList
from streamlabel.streaming.calibration import sigmoid
from streamlabel.streaming.inputs import (
    canonical_rows,
    check_columns,
    check_parameters,
    check_scale,
    check_settings,
    names_of_columns,
    read_past_labels,
    same_rows,
    settings_of_fit,
)
from streamlabel.streaming.kept_rows import FitMemory, LabelAnswers, positive_rows
from streamlabel.streaming.other_losses import row_unit
from streamlabel.streaming.past import PastFit, choose_loss, fit_alternating, fit_ridge, fit_with_loss, run_loss_trial
from streamlabel.streaming.trials import LabelReport, Trial, sketch
from streamlabel.structure.dictionary import choose_dictionary
from streamlabel.types import CSC, CSR, FloatArray, IntArray
from streamlabel.validation import check_label_names, default_label_names

_FEATURE_FACTS = ("n_features_in_", "feature_names_in_")  # what scikit-learn notes before anything is learned


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
        the past labels by generalised cross-validation (other losses: by P@k of held-out rows), for new ones as below.
    loss : "squared", "logistic", "squared_hinge" or "auto"
        What the classifiers minimise. "auto" takes logistic where its P@k on held-out rows is better than that of
        squared by more than the standard error. The metric and the closed forms need squared; the others learn every
        batch again on parts of its rows for honest thresholds and probabilities (`streaming.other_losses`).
    start : "independent" or "alternating"
        How `fit` learns the past labels: each alone, or as the paper starts, by turns with their structure
        (`streaming.past`, with l1 = lam n, l2 = beta, l3 = start_weight). Then `structure_` has their codes too.
    start_weight : float
        How much the alternating start makes a label's answers, besides its classifier, resemble the combination of the
        others: the paper's l3. 0 is by the classifiers alone.
    dictionary : "all", "fit" or int
        Which labels may enter a code: all that are known at that time, those of `fit`, or so many of them, chosen by
        clustering (`structure.dictionary`): the cost of a new label then does not depend on how many there are.
    fit_intercept : bool
        False is the form the paper writes: -1/+1 answers, no intercept, nothing centred.
    threshold : "f1" or float
        Where `predict` says yes: the best F1 of leave-one-out scores, label by label, or one score for all.
    random_state : int
        For the rows and labels by which "auto" judges.
    n_jobs : None or int
        Threads that solve the codes of a batch of labels; None for one, -1 for one a core. The codes are the same.

    With "auto", some of the labels of `fit` are hidden and learned again from as many rows as the new label has, with
    and without the past, and judged on other rows: the past is used where it lost on no measure (`streaming.trials`).
    ``lam=None, metric=None`` learns every new label alone ("own ridge").

    Attributes
    ----------
    label_names_ : tuple of str, in order of arrival; the order of every column
    coef_ : (n_labels, n_features)
    intercept_ : (n_labels,)
    structure_ : csc_array (n_labels, n_labels); column j is the code of label j, empty for labels of `fit`
        that were learned independently
    loss_ : the loss that is used
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
        loss: str = "squared",
        start: str = "independent",
        start_weight: float = 1.0,
        dictionary: int | str = "all",
        fit_intercept: bool = True,
        threshold: float | str = "f1",
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.lam = lam
        self.metric = metric
        self.beta = beta
        self.loss = loss
        self.start = start
        self.start_weight = start_weight
        self.dictionary = dictionary
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(
        self, X: ArrayLike | CSR, y: ArrayLike | CSR, label_names: Iterable[str] | None = None
    ) -> StreamingLabelClassifier:
        """Learn the past labels, with one strength for all. Forgets everything learned before.

        y is a label matrix (n, m) of 0/1, dense or sparse; a data frame gives the names of its columns to the labels. A
        vector of classes is also taken, as one label a class (then `predict` gives classes, and no label can be added).
        """
        check_parameters(self)
        before = {name: value for name, value in self.__dict__.items() if name in _FEATURE_FACTS}
        try:
            return self._fit(X, y, label_names)
        except BaseException:  # the model is still what it was, with the features it had
            for name in _FEATURE_FACTS:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, y: Any, label_names: Iterable[str] | None) -> StreamingLabelClassifier:
        matrix = self._features(X, reset=True)
        check_scale(matrix)
        labels, classes = read_past_labels(y, matrix.shape[0], type(self).__name__)
        if label_names is None and classes is None:
            label_names = names_of_columns(y, labels.shape[1]) or default_label_names(labels.shape[1])
        elif label_names is None:
            label_names = map(str, classes)
        names = check_label_names(label_names, labels.shape[1])
        with one_thread_if_small(matrix.shape):
            learned = self._learn_past(matrix, labels)
        rows = learned.judged_rows
        self._classes_1d: Any = classes
        self._ridge: PreparedRidge | None = learned.ridge
        self._memory: FitMemory | None = FitMemory(
            matrix, labels, learned.unseen, rows, learned.leverages, self.random_state, source=X
        )
        atoms = self._atoms(labels)
        self._answers: LabelAnswers | None = LabelAnswers(
            atoms, labels if len(atoms) == len(names) else labels[:, atoms]
        )
        self.beta_ = learned.beta
        self._strength = learned.beta / row_unit(matrix, self.fit_intercept)
        self._begin(names, learned.weights, learned.intercept, learned.loss, learned.codes)
        truth = labels[rows].toarray().astype(np.float64)
        self._decisions = decide(learned.unseen, truth, self.threshold, self._usual_threshold())
        counts, sizes = np.asarray(labels.sum(axis=0)).ravel(), np.diff(learned.codes.indptr)
        lam = fixed_lam(self.lam) if self.start == "alternating" else None
        self._reports = SharedList.of(
            LabelReport(
                name, matrix.shape[0], int(counts[j]), 0.0, lam, False, learned.beta, int(sizes[j]), loss=learned.loss,
                coupled=lam is not None,
            )
            for j, name in enumerate(names)
        )  # fmt: skip
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
        weights, offsets, names = checked_classifiers(coef, intercept, label_names)
        model = cls(**parameters)
        check_parameters(model)
        model.n_features_in_ = int(weights.shape[0])
        model._classes_1d = None
        model._ridge = model._memory = model._answers = None
        model._strength = np.nan
        loss = "squared" if model.loss == "auto" else model.loss
        model._begin(names, weights, offsets, loss, sparse.csc_array((len(names), len(names))))
        model._decisions = Decisions(np.zeros(offsets.size), np.ones(offsets.size), np.zeros(offsets.size))
        model._reports = SharedList.of(LabelReport(name, 0, 0, 0.0, None, False, np.nan, loss=loss) for name in names)
        return model

    @classmethod
    def from_estimator(
        cls, estimator: Any, label_names: Iterable[str] | None = None, **parameters: Any
    ) -> StreamingLabelClassifier:
        """Adopt a fitted scikit-learn linear model: one-vs-rest, multi-output, or one with `coef_` (m, d)."""
        coef, intercept = linear_parts(estimator)
        return cls.from_coef(coef, intercept, label_names, **parameters)

    def add_labels(
        self,
        X: ArrayLike | CSR,
        Y_new: ArrayLike | CSR,
        label_names: Iterable[str] | None = None,
        *,
        annotated: ArrayLike | CSR | None = None,
        coupled: bool = False,
    ) -> StreamingLabelClassifier:
        """Learn new labels beside the old ones, which do not change.

        Parameters
        ----------
        X : (n, d). The rows of `fit`, or other rows: then the model's own scores stand for the past labels.
        Y_new : (n, k) or (n,) of 0/1; cells that are not annotated may hold anything
        label_names : k names, none of them taken. Default: the names of a data frame's columns, or of a series
        annotated : what was asked; the rest is unknown, not negative. (n,) bool or row numbers: rows, for all labels.
            (n, k) bool, dense or sparse: cells. Default: everything.
        coupled : the new labels also help each other: the paper's mini-batch (`streaming.codes`). They must have
            been asked on the same rows. Always anchored, never with the metric.
        """
        check_is_fitted(self)
        if self._classes_1d is not None:
            raise DataError("the model was fitted on a vector of classes; fit it on a 0/1 label matrix to add labels")
        check_parameters(self)
        check_settings(self, self._settings)
        same = self._memory is not None and self._memory.recognises(X)
        matrix = self._memory.X if same and self._memory is not None else self._features(X, reset=False)
        same = same or (self._memory is not None and same_rows(matrix, self._memory.X))
        if not same:
            check_scale(matrix)
        asked = rows_asked(matrix.shape[0], Y_new, annotated)
        if label_names is None:
            label_names = names_of_columns(Y_new, asked.n_labels)
        names = self._new_names(label_names, asked.n_labels)
        check_both_answers(asked, names)
        parts = list(group_by_rows(asked))
        if coupled:
            self._check_coupled(len(parts))
        with one_thread():
            learning = self._learning()
            groups = [learning.learn(matrix, *part, same=same, coupled=coupled) for part in parts]
            self._commit(groups, names, asked, same)
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
        return (scores > self._decisions.thresholds).astype(np.int64)

    def predict_proba(self, X: ArrayLike | CSR) -> FloatArray:
        """Probabilities (n, n_labels), calibrated label by label on scores of unseen rows (Platt)."""
        check_is_fitted(self)
        scores = self._classifiers.scores(self._features(X, reset=False))
        if self._classes_1d is None:
            return sigmoid(scores, self._decisions.slope, self._decisions.offset)
        # one label a class: a softmax as steep as the labels' sigmoids, so that the best score is the most probable
        return np.asarray(softmax(float(np.median(self._decisions.slope)) * scores, axis=1))

    def predict_top_k(self, X: ArrayLike | CSR, k: int = 5) -> tuple[IntArray, FloatArray]:
        """The k best labels of each row and their scores, (n, k) each, best first; ties go to the older label."""
        check_is_fitted(self)
        scores = self._classifiers.scores(self._features(X, reset=False))
        columns = top_k(scores, min(k, scores.shape[1]))
        return columns, np.take_along_axis(scores, columns, axis=1)

    def neighbours(self, label: str, k: int = 5) -> list[tuple[str, float]]:
        """The k labels with the largest weights (by size) in the code of a label, with sign; [] if it has none."""
        check_is_fitted(self)
        label = unicodedata.normalize("NFC", label)
        if label not in self._numbers:
            raise NotFoundError(f"no label is called {label!r}; label_names_ lists all {len(self._names)}")
        number = self._numbers[label]
        for codes in self._codes:
            if number < codes.shape[1]:
                span = slice(codes.indptr[number], codes.indptr[number + 1])
                labels, values = codes.indices[span], codes.data[span]
                order = np.argsort(-np.abs(values), kind="stable")[:k]
                return [(self._names[int(labels[i])], float(values[i])) for i in order]
            number -= codes.shape[1]
        return []

    @property
    def structure_(self) -> CSC:
        n_labels = len(self._names)
        columns = [sparse.csc_array((c.data, c.indices, c.indptr), shape=(n_labels, c.shape[1])) for c in self._codes]
        return sparse.csc_array(sparse.hstack(columns, format="csc"))

    @property
    def label_names_(self) -> tuple[str, ...]:
        """The label names in order of arrival; the order of every column."""
        return self._names.items()

    @property
    def reports_(self) -> tuple[LabelReport, ...]:
        """How each label was learned."""
        return self._reports.items()

    @property
    def classes_(self) -> Any:
        """The label names, or the classes where `fit` was given a vector of them."""
        check_is_fitted(self)
        return np.array(self.label_names_, dtype=object) if self._classes_1d is None else self._classes_1d

    @property
    def coef_(self) -> FloatArray:
        return self._classifiers.weights().T

    @property
    def intercept_(self) -> FloatArray:
        return self._classifiers.intercept.copy()

    @property
    def thresholds_(self) -> FloatArray:
        return self._decisions.thresholds.copy()

    @thresholds_.setter
    def thresholds_(self, values: ArrayLike) -> None:
        found = np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), (len(self._names),)))
        if np.isnan(found).any():
            raise DataError("thresholds_ contains NaN; give a number for every label")
        self._decisions = replace(self._decisions, thresholds=found)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_classifiers")

    # -- the past labels --------------------------------------------------------------------------------------------

    def _learn_past(self, matrix: Any, labels: CSR) -> PastFit:
        loss, beta = self.loss, self.beta
        if loss == "auto":
            loss, beta = choose_loss(matrix, labels, beta, self.fit_intercept, self.random_state)
        if loss != "squared":
            return fit_with_loss(matrix, labels, loss, beta, self.fit_intercept, self.random_state)
        lam = fixed_lam(self.lam)
        if self.start == "alternating" and lam is not None:
            weight = float(self.start_weight)
            return fit_alternating(matrix, labels, lam, beta, self.fit_intercept, self.random_state, weight)
        return fit_ridge(matrix, labels, beta, self.fit_intercept, self.random_state)

    def _usual_threshold(self) -> float:
        return 0.5 if self.fit_intercept and self.loss_ == "squared" else 0.0

    def _atoms(self, labels: CSR) -> IntArray:
        everyone = np.arange(labels.shape[1])
        if isinstance(self.dictionary, str) or self.dictionary >= labels.shape[1]:
            return everyone
        with one_thread():
            return np.sort(choose_dictionary(labels, int(self.dictionary), random_state=self.random_state))

    def _begin(self, names: tuple[str, ...], weights: FloatArray, intercept: FloatArray, loss: str, codes: CSC) -> None:
        self._classifiers = ClassifierBlocks(int(weights.shape[0])).appended(weights, intercept)
        self.loss_ = loss
        self._settings = settings_of_fit(self)
        self._n_fitted = len(names)
        self._basis: FloatArray | None = None
        self._scored = np.empty(0, dtype=np.intp)  # labels that may enter a code by their scores only
        self._codes: tuple[CSC, ...] = (codes,)
        self._numbers = LabelNumbers.of(names)
        self._names = SharedList.of(names)

    # -- an arrival -------------------------------------------------------------------------------------------------

    def _check_coupled(self, n_groups: int) -> None:
        if n_groups > 1:
            raise DataError(
                f"coupled labels must have been asked on the same rows; these were asked on {n_groups} different sets "
                "of rows (add them without coupled=True, or set by set)"
            )
        if self.metric not in ("auto", None):
            raise DataError(f'metric is {self.metric!r}; coupled labels have none: leave it at "auto" or None')

    def _learning(self) -> Learning:
        return Learning(
            self.lam, self.metric, self.beta, self.dictionary, self.fit_intercept, self.random_state, self.n_jobs,
            self.loss_, self._strength, self._classifiers, self._decisions, self._memory, self._ridge, self._answers,
            self._scored, self._n_fitted, self._trials, self._metric_basis,
        )  # fmt: skip

    def _trials(self, n_rows: int) -> list[Trial]:
        """The labels of `fit` learned again at such a number of rows; none for a model that was adopted."""
        if self._memory is None:
            return []
        known = self._memory.known_trials(n_rows)
        if known is not None:
            return known
        weights = self._classifiers.weights(np.arange(self._n_fitted))
        intercept = self._classifiers.intercept[: self._n_fitted]
        if self.loss_ == "squared":
            return self._memory.trials(n_rows, weights, intercept)
        run = partial(run_loss_trial, weights=weights, intercept=intercept, loss=self.loss_)
        return self._memory.trials(n_rows, weights, intercept, run)

    def _metric_basis(self) -> FloatArray:
        """The directions of the labels of `fit`; fixed, so that the order of arrivals does not matter."""
        if self._basis is None:
            self._basis = sketch(self._classifiers.weights(np.arange(self._n_fitted)))
        return self._basis

    def _commit(self, groups: list[LearnedGroup], names: tuple[str, ...], asked: AskedRows, same: bool) -> None:
        """Put everything together and swap it in at once."""
        new = gather(groups, names, self.threshold, self._usual_threshold())
        n_past, n_new = len(self._names), len(names)
        answers_now, scored = self._answers, self._scored
        if self.dictionary == "all" and answers_now is not None:
            if same and asked.everything:
                answers_now = answers_now.appended(n_past, positive_rows(asked.labels), groups[0].correlations)
            else:
                scored = np.concatenate((scored, np.arange(n_past, n_past + n_new)))
        state = {
            "_classifiers": self._classifiers.appended(new.weights, new.intercept),
            "_answers": answers_now,
            "_scored": scored,
            "_codes": (*self._codes, new.codes),
            "_numbers": self._numbers.appended(names),
            "_decisions": self._decisions.appended(new.decisions),
            "_reports": self._reports.appended(new.reports),
            "_names": self._names.appended(names),
        }
        self.__dict__.update(state)  # one step: an interruption leaves the old model or the new one

    def _features(self, X: Any, *, reset: bool) -> Any:
        """Float64, checked; sparse stays sparse (csr_array), dense stays dense."""
        check_columns(X, "X")
        return canonical_rows(validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset))

    def _new_names(self, label_names: Iterable[str] | None, n_new: int) -> tuple[str, ...]:
        if label_names is None:
            label_names = default_label_names(n_new, first=len(self._names))
        names = check_label_names(label_names, n_new)
        for name in names:
            if name in self._numbers:
                raise ConflictError(f"label name {name!r} is taken; choose another name")
        return names
