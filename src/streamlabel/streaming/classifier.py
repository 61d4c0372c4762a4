"""The estimator: a multi-label linear classifier to which labels can be added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from streamlabel.errors import ConflictError, DataError
from streamlabel.stats.accelerator import accelerated
from streamlabel.stats.threads import one_thread, one_thread_if_small
from streamlabel.streaming.adopt import checked_classifiers, linear_parts, scale_of
from streamlabel.streaming.annotated import check_both_answers, rows_asked
from streamlabel.streaming.arrival import learn_labels, run_all_trials
from streamlabel.streaming.blocks import ClassifierBlocks, top_labels
from streamlabel.streaming.calibration import Decisions, sigmoid
from streamlabel.streaming.features import fitted_map, mapped
from streamlabel.streaming.found import Examples, Pool, found_recipe, learn_found
from streamlabel.streaming.found_trials import Directions, FoundRecipe
from streamlabel.streaming.inputs import (
    canonical_rows,
    check_columns,
    check_scale,
    check_settings,
    checked_parameters,
    names_of_columns,
    read_names,
    read_past_labels,
    same_rows,
    settings_of_fit,
)
from streamlabel.streaming.judgement import Judgement
from streamlabel.streaming.kept_rows import stack
from streamlabel.streaming.label_index import LabelIndex
from streamlabel.streaming.later_rows import Update, check_update, learn_update
from streamlabel.streaming.past import fit_labels
from streamlabel.streaming.state import ModelState
from streamlabel.streaming.trials import LabelReport
from streamlabel.types import CSC, CSR, FloatArray, IntArray
from streamlabel.validation import check_label_names, default_label_names

_FEATURE_FACTS = ("n_features_in_", "feature_names_in_", "features_")  # what is noted before anything is learned


class StreamingLabelClassifier(ClassifierMixin, BaseEstimator):
    """A multi-label classifier whose label set grows while it is in use.

    Parameters
    ----------
    lam : "auto", None or float
        The lasso penalty of step 1, as a share of the annotated rows (0/1 coding). "auto" is 0.003, with the classifier
        pulled toward the code only if that helps. None learns without a code.
    metric : "auto", None or float in (0, 1)
        The share of the past classifiers' covariance in the prior of a new one. None is the paper's method.
    beta : "auto" or float
        The ridge strength: of the past labels, and of the pull of a new label toward its anchor. "auto" chooses it for
        the past labels by leave-one-out errors or ``scoring`` (other losses: by P@k of held-out rows), for new
        ones as below.
    loss : "squared", "logistic", "squared_hinge" or "auto"
        What the classifiers minimise. With "auto" it is squared for the labels of `fit`, and for new ones squared,
        logistic or a mixture of the two, as below (squared if beta is given). The mixture is one linear classifier; all
        scores are on the scale of squared ones, 0 to 1. Losses other than squared have no closed form: a label is
        learned again on parts of its rows for honest thresholds and probabilities (`streaming.other_losses`).
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
    features : None, "kernel" or a transformer of scikit-learn
        A map of the rows before anything is learned, fitted on the rows of `fit` (`features_`) and used wherever rows
        are given. "kernel" is for up to some hundred dense features whose labels are not linear in them
        (`streaming.features.KernelFeatures`).
    n_jobs : None or int
        Threads that solve the codes of a batch of labels; None for one, -1 for one per core. The codes are the same.
    scoring : "balanced", "p@k", "auc" or "average_precision"
        What "auto" maximises: all of these together, or one of them. The strength of the labels of `fit` follows it
        where it is one measure, by leave-one-out scores of 1,000 rows, with 2,000 rows or more, the squared loss and
        the independent start.
    tune : "arrival" or "fit"
        When the trials of "auto" are run: for the first label with about so many rows, or for all numbers of rows at
        the end of `fit`, so that no label waits for them.
    prune : None, "auto" or int
        For so many labels that their weights do not fit into memory: the largest are kept, so many a label on average.
        "auto" takes the fewest that lose next to no P@k on held-out rows (`streaming.pruned`). None keeps all.

    With "auto", some of the labels of `fit` are hidden and learned again from about as many rows as the new label has,
    with each loss, with and without the past, and judged on other rows (`streaming.trials`). ``lam=None, metric=None,
    loss="squared"`` learns every new label alone ("own ridge").

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
    features_ : the fitted map of the rows; None without one. `coef_` is about what it makes
    state_ : all of it, as one frozen value (`streaming.state.ModelState`)

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
        loss: str = "auto",
        start: str = "independent",
        start_weight: float = 1.0,
        dictionary: int | str = "all",
        fit_intercept: bool = True,
        threshold: float | str = "f1",
        random_state: int = 0,
        n_jobs: int | None = None,
        scoring: str = "balanced",
        tune: str = "arrival",
        features: Any = None,
        prune: int | str | None = None,
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
        self.scoring = scoring
        self.tune = tune
        self.features = features
        self.prune = prune

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
        list of lists of names, one a row, gives both; ``label_names`` then says which there may be, and their order. A
        vector of classes is taken as one label per class (then `predict` gives classes, and no label can be added).
        """
        parameters = checked_parameters(self)
        before = {name: value for name, value in self.__dict__.items() if name in _FEATURE_FACTS}
        try:
            self.features_ = None
            matrix = self._features(X, reset=True)
            check_scale(matrix)
            y, label_names = read_names(y, label_names)
            labels, classes = read_past_labels(y, matrix.shape[0], type(self).__name__)
            if parameters.features is not None:
                self.features_ = fitted_map(parameters.features, matrix, labels, parameters.random_state)
                matrix = mapped(self.features_, matrix)
                check_scale(matrix)
            if label_names is None and classes is None:
                label_names = names_of_columns(y, labels.shape[1]) or default_label_names(labels.shape[1])
            elif label_names is None:
                label_names = map(str, classes)
            names = check_label_names(label_names, labels.shape[1])
            with one_thread_if_small(matrix.shape):
                state = fit_labels(parameters, matrix, labels, names, source=X, classes=classes)
            if parameters.tune == "fit":
                with one_thread():
                    run_all_trials(parameters, state)
            self.state_ = state
        except BaseException:  # the model is still what it was, with the features it had
            for name in _FEATURE_FACTS:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise
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
        loss = parameters.get("loss", "squared")
        loss = "squared" if loss == "auto" else loss
        zeros = np.zeros(offsets.size)
        state = ModelState.begin(
            names,
            ClassifierBlocks(int(weights.shape[0])).appended(weights, offsets),
            Decisions(zeros, np.ones(offsets.size), zeros),
            [LabelReport(name, 0, 0, 0.0, None, False, np.nan, loss=loss) for name in names],
            loss=loss,
            settings={},
        )
        return cls.from_state(state, **parameters)

    @classmethod
    def from_state(
        cls, state: ModelState, feature_names: Iterable[str] | None = None, **parameters: Any
    ) -> StreamingLabelClassifier:
        """Make a fitted model from a `ModelState`, as a store or another model gives it."""
        model = cls(**parameters)
        settings = settings_of_fit(checked_parameters(model))
        if model.features is not None:
            raise DataError("features is fitted on rows, and there are none here; map the rows before you pass them")
        if state.settings:
            check_settings(model, state.settings)
        model.n_features_in_ = state.classifiers.n_features
        if feature_names is not None:
            model.feature_names_in_ = np.array(list(feature_names), dtype=object)
        model.state_ = replace(state, settings=settings)
        return model

    @classmethod
    def from_estimator(
        cls, estimator: Any, label_names: Iterable[str] | None = None, **parameters: Any
    ) -> StreamingLabelClassifier:
        """Adopt a fitted scikit-learn linear model: one-vs-rest, multi-output, or one with `coef_` (m, d).

        Without ``loss`` new labels are learned by the one whose scores are on the model's scale, so that all labels can
        be ranked together: logistic for a logistic regression, squared_hinge for margins (support vector machines,
        ridge classifiers), else squared.
        """
        coef, intercept = linear_parts(estimator)
        parameters.setdefault("loss", scale_of(estimator))
        return cls.from_coef(coef, intercept, label_names, **parameters)

    def add_labels(
        self,
        X: ArrayLike | CSR,
        Y_new: ArrayLike | CSR,
        label_names: Iterable[str] | None = None,
        *,
        annotated: ArrayLike | CSR | None = None,
        coupled: bool = False,
        names: Directions | None = None,
        descriptions: Sequence[str] | None = None,
        sampled: bool = False,
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
        names : what makes directions of names in feature space (`streaming.found_trials.Directions`). How far they are
            trusted is found out by trials on known labels, by number of yes. None does not read names.
        descriptions : k texts that say what the labels mean, read with their names
        sampled : the annotated rows are a random sample: ``reports_`` says how good the labels are on rows like these
        """
        check_is_fitted(self)
        state, memory = self.state_, self.state_.memory
        if state.classes is not None:
            raise DataError("the model was fitted on a vector of classes; fit it on a 0/1 label matrix to add labels")
        parameters = checked_parameters(self)
        check_settings(parameters, state.settings)
        self._check_names(names)
        same = memory is not None and memory.recognises(X)
        matrix = memory.X if same and memory is not None else self._features(X, reset=False)
        same = same or (memory is not None and same_rows(matrix, memory.X))
        if not same:
            check_scale(matrix)
        asked = rows_asked(matrix.shape[0], Y_new, annotated)
        if label_names is None:
            label_names = names_of_columns(Y_new, asked.n_labels)
        if label_names is None:
            label_names = default_label_names(asked.n_labels, first=len(state.names))
        labels = check_label_names(label_names, asked.n_labels)
        for name in labels:
            if name in state.names:
                raise ConflictError(f"label name {name!r} is taken; choose another name")
        check_both_answers(asked, labels)
        with one_thread():  # one step: an interruption leaves the old model or the new one
            named, weights = None, []
            if names is not None:
                about = [""] * len(labels) if descriptions is None else list(descriptions)
                texts = [f"{name} {text}".strip() for name, text in zip(labels, about, strict=True)]
                named = names(texts)
                n_yes = np.asarray(asked.labels.sum(axis=0)).ravel().astype(int).tolist()
                weights = [found_recipe(state, n, names, parameters.random_state).weights for n in n_yes]
            self.state_ = learn_labels(
                parameters, state, matrix, asked, labels, same=same, coupled=coupled, named=named, name_weights=weights,
                sampled=sampled,
            )  # fmt: skip
        return self

    def update(
        self,
        X: ArrayLike | CSR,
        Y: ArrayLike | CSR,
        label_names: Iterable[str] | None = None,
        *,
        annotated: ArrayLike | CSR | None = None,
    ) -> StreamingLabelClassifier:
        """Learn labels of `fit` again, from its rows and new ones; the other labels do not change by one bit.

        A label becomes what `fit` on all rows where it was answered gives at the same strength
        (`streaming.later_rows`). The new rows are kept: a second update has them, too.

        Parameters
        ----------
        X : (n, d), rows that `fit` did not have
        Y : (n, k) of 0/1, or a list of names for each row; cells that are not annotated may hold anything
        label_names : the labels of the columns. Default: the names of a data frame's columns, or all labels of `fit`
        annotated : what is known, as in `add_labels`. Default: everything.
        """
        found = self.learn_update(X, Y, label_names, annotated=annotated)
        self.state_ = found.applied(self.state_)
        return self

    def learn_update(
        self,
        X: ArrayLike | CSR,
        Y: ArrayLike | CSR,
        label_names: Iterable[str] | None = None,
        *,
        annotated: ArrayLike | CSR | None = None,
    ) -> Update:
        """Learn what `update` would put into the model, and change nothing."""
        check_is_fitted(self)
        state, parameters = self.state_, checked_parameters(self)
        check_settings(parameters, state.settings)
        check_update(state, np.empty(0, dtype=np.intp))
        matrix = self._features(X, reset=False)
        check_scale(matrix)
        Y, label_names = read_names(Y, label_names)
        asked = rows_asked(matrix.shape[0], Y, annotated)
        if label_names is None:
            label_names = names_of_columns(Y, asked.n_labels)
        if label_names is None:
            label_names = [state.names[number] for number in range(state.n_fitted)]
        names = check_label_names(label_names, asked.n_labels)
        numbers = np.array([state.names.number(name) for name in names], dtype=np.intp)
        with one_thread_if_small(matrix.shape):
            return learn_update(parameters, state, matrix, asked, numbers)

    def add_found(
        self,
        label_name: str,
        yes: ArrayLike | CSR,
        no: ArrayLike | CSR | None = None,
        *,
        pool: ArrayLike | CSR | None = None,
        names: Directions | None = None,
        about: str = "",
    ) -> StreamingLabelClassifier:
        """Learn one new label from examples that somebody found: they show what it is, not how often it applies.

        Parameters
        ----------
        yes, no : rows that it applies to, and does not apply to; no rows at all (0, d) if there is only a name
        pool : rows as they come, that nobody has looked at (2,400 are used at most); default: the rows of `fit`.
            The threshold, the probabilities and the estimate in ``reports_[-1]`` are about rows of this kind.
        names : what makes directions of names (`streaming.found_trials.Directions`); None: from the examples alone
        about : a description, read as part of the name
        """
        check_is_fitted(self)
        (name,) = check_label_names([label_name], 1)
        sides = [self._features(side, reset=False) for side in (yes, no) if side is not None and np.shape(side)[0]]
        counts = [int(np.shape(side)[0]) if side is not None else 0 for side in (yes, no)]
        answers = np.repeat([True, False], counts)
        rows = sparse.csr_array((0, self.state_.classifiers.n_features)) if not sides else sides[0]
        rows = stack(*sides) if len(sides) == 2 else rows
        examples = Examples(rows, answers, np.zeros(len(answers), dtype=bool))
        text = f"{name} {about}".strip()
        self.learn_examples(
            {name: examples}, None if pool is None else self._features(pool, reset=False), names, [text]
        )
        return self

    def learn_examples(
        self,
        examples: Mapping[str, Examples],
        pool: CSR | FloatArray | None = None,
        names: Directions | None = None,
        texts: Sequence[str] = (),
        left: Mapping[str, IntArray] | None = None,
    ) -> dict[str, tuple[FoundRecipe, Judgement]]:
        """Learn new labels from examples (`streaming.found`), all or none; ``texts`` say what each of them is called.

        left : for each label the rows of the pool that were not answered for it, so that it is as if it came alone
        Returns, for each label, the recipe that was used and what is known about its scores on the pool.
        """
        state = self.state_
        if state.classes is not None:
            raise DataError("the model was fitted on a vector of classes; fit it on a 0/1 label matrix to add labels")
        parameters = checked_parameters(self)
        check_settings(parameters, state.settings)
        self._check_names(names)
        for name in examples:
            if name in state.names:
                raise ConflictError(f"label name {name!r} is taken; choose another name")
        memory, given = state.memory, pool is not None
        if not given and memory is not None:
            pool = memory.X
        pool = sparse.csr_array((0, self.n_features_in_)) if pool is None else pool
        found = {}
        with one_thread():
            named = None if names is None else names(texts)
            for place, (name, one) in enumerate(examples.items()):
                check_scale(one.rows)
                parts = Pool.of(pool, parameters.random_state, None if left is None else left[name])
                if given and memory is not None:
                    parts = parts.beside(memory.X, one.rows, parameters.random_state)
                n_yes, by_name = int(one.answers.sum()), names is not None and bool(one.asked[one.answers].all())
                recipe = found_recipe(self.state_, n_yes, names, parameters.random_state, by_name)
                direction = None if named is None else named[:, :, place]
                _check_examples(name, one, recipe, direction)
                if direction is not None and not direction.any():
                    recipe = replace(recipe, weights=(), gain=0.0)
                batch, judgement = learn_found(parameters, state, name, one, parts, recipe, direction)
                found[name] = batch, recipe, judgement
            for number, (batch, _, _) in enumerate(found.values(), start=len(state.names)):
                codes = sparse.csc_array((batch.codes.data, batch.codes.indices, batch.codes.indptr), shape=(number, 1))
                scored = state.scored
                if parameters.dictionary == "all" and state.answers is not None:
                    scored = np.append(scored, number)
                state = state.grown(replace(batch, codes=codes), scored=scored)
        self.state_ = state
        return {name: (recipe, judgement) for name, (_, recipe, judgement) in found.items()}

    def decision_function(self, X: ArrayLike | CSR) -> FloatArray:
        """Scores (n, n_labels), columns in the order of `label_names_`; an old column never changes by one bit."""
        state, scores = self._scored(X)
        if state.classes is not None and len(state.classes) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict(self, X: ArrayLike | CSR) -> Any:
        """Predict 0/1 (n, n_labels): 1 if the score exceeds `thresholds_`. For a vector of classes: the best class."""
        state, scores = self._scored(X)
        if state.classes is not None:
            return state.classes[scores.argmax(axis=1)]
        return (scores > state.decisions.thresholds).astype(np.int64)

    def predict_proba(self, X: ArrayLike | CSR) -> FloatArray:
        """Probabilities (n, n_labels), calibrated label by label on scores of unseen rows (Platt)."""
        state, scores = self._scored(X)
        if state.classes is None:
            return sigmoid(scores, state.decisions.slope, state.decisions.offset)
        # one label a class: a softmax as steep as the labels' sigmoids, so that the best score is the most probable
        return np.asarray(softmax(float(np.median(state.decisions.slope)) * scores, axis=1))

    def predict_top_k(
        self, X: ArrayLike | CSR, k: int = 5, *, approximate: bool = False
    ) -> tuple[IntArray, FloatArray]:
        """The k best labels of each row and their scores, (n, k) each, best first; ties go to the older label.

        approximate : look for them in an index (`streaming.label_index`, extra ``ann``), which is made once and grows
            with the labels; some may be missed
        """
        check_is_fitted(self)
        state, rows = self.state_, self._features(X, reset=False)
        if not approximate:
            found = accelerated("top_k", rows, state.classifiers, k)
            return top_labels(state.classifiers, rows, k) if found is None else found
        self._index = LabelIndex.of(state.classifiers, self.__dict__.get("_index"))
        return self._index.top_labels(state.classifiers, rows, k)

    def neighbours(self, label: str, k: int = 5) -> list[tuple[str, float]]:
        """The k labels with the largest weights (by size) in the code of a label, with sign; [] if it has none."""
        check_is_fitted(self)
        return self.state_.neighbours(label, k)

    @property
    def structure_(self) -> CSC:
        """The codes of all labels, csc_array (n_labels, n_labels), one per column."""
        return self.state_.labels(answers=False).codes

    @property
    def label_names_(self) -> tuple[str, ...]:
        """The label names in order of arrival; the order of every column."""
        return self.state_.names.items()

    @property
    def reports_(self) -> tuple[LabelReport, ...]:
        """Reports of how each label was learned, one per label."""
        return self.state_.reports.items()

    @property
    def classes_(self) -> Any:
        """The label names, or the classes if `fit` was given a vector of them."""
        check_is_fitted(self)
        return np.array(self.label_names_, dtype=object) if self.state_.classes is None else self.state_.classes

    @property
    def loss_(self) -> str:
        """The loss that is used."""
        return self.state_.loss

    @property
    def beta_(self) -> float:
        """The ridge strength of `fit`; a model that was adopted has none."""
        if self.state_.beta is None:
            raise AttributeError("beta_: the model was adopted, not fitted")
        return self.state_.beta

    @property
    def coef_(self) -> FloatArray:
        """The weights of all labels, (n_labels, n_features), a copy."""
        return self.state_.classifiers.weights().T

    @property
    def intercept_(self) -> FloatArray:
        """The intercepts of all labels, (n_labels,), a copy."""
        return self.state_.classifiers.intercept.copy()

    @property
    def thresholds_(self) -> FloatArray:
        """The scores above which `predict` says yes, (n_labels,); may be set."""
        return self.state_.decisions.thresholds.copy()

    @thresholds_.setter
    def thresholds_(self, values: ArrayLike) -> None:
        state = self.state_
        found = np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), (len(state.names),)))
        if np.isnan(found).any():
            raise DataError("thresholds_ contains NaN; give a number for every label")
        self.state_ = replace(state, decisions=replace(state.decisions, thresholds=found))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "state_")

    def _scored(self, X: Any) -> tuple[ModelState, FloatArray]:
        """Scores (n, n_labels), and the state that they come from: labels may be added meanwhile."""
        check_is_fitted(self)
        state = self.state_
        return state, state.classifiers.scores(self._features(X, reset=False))

    def _features(self, X: Any, *, reset: bool) -> Any:
        """Features as float64, checked; sparse stays sparse (csr_array), dense stays dense."""
        check_columns(X, "X")
        if isinstance(X, list | tuple) and X and isinstance(X[0], str):
            raise DataError("X is a list of texts; make rows of them (TextVectorizer), or use streamlabel.Tagger")
        rows = canonical_rows(validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset))
        features = getattr(self, "features_", None)
        return rows if features is None else mapped(features, rows)

    def _check_names(self, names: Directions | None) -> None:
        if names is not None and self.features is not None:
            raise DataError("names are directions of unmapped features; leave names or the parameter features out")


def _check_examples(name: str, examples: Examples, recipe: FoundRecipe, named: FloatArray | None) -> None:
    """Refuse a label of which nothing is known: no yes, and a name that says nothing here."""
    if examples.answers.any():
        return
    if named is None:
        raise DataError(f"label {name!r} has no yes example, and its name is not used; give at least one example")
    if not named.any():
        raise DataError(
            f"label {name!r} has no yes example, and no word of its name is known here; describe it in other words, or "
            "give at least one example"
        )
    if not any(recipe.weights):
        raise DataError(
            f"label {name!r} has no yes example, and names say nothing about these rows: in trials on "
            f"{recipe.n_trials} known labels they ranked no better than chance; give at least one example"
        )
