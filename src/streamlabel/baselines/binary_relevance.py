"""Binary relevance: a baseline that learns every label alone."""

from __future__ import annotations

from streamlabel.streaming.classifier import StreamingLabelClassifier


class BinaryRelevance(StreamingLabelClassifier):
    """One linear classifier per label, nothing shared: what one would do without the past.

    It is `StreamingLabelClassifier` without code, anchor and metric, so labels can be added to it, and its classifiers
    are ridge, logistic or squared hinge as scikit-learn has them. Codes are empty (`structure_`, `neighbours`), and
    ``coupled=True`` in `add_labels` changes nothing.

    Parameters
    ----------
    loss : "squared", "logistic" or "squared_hinge"
        "auto" takes logistic if it is better than squared on held-out rows.
    beta : "auto" or float
        The ridge strength, the same for all labels of `fit`. "auto" chooses it by leave-one-out errors (other
        losses: by P@k of held-out rows); labels that are added take the strength that suits labels of `fit`
        learned from as many rows.
    fit_intercept : bool
        False: -1/+1 answers, no intercept, nothing centred.
    threshold : "f1" or float
        Where `predict` says yes: the best F1 of scores of unseen rows, label by label, or one score for all.
    random_state : int
        For the rows and labels by which "auto" judges.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlabel import BinaryRelevance
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> BinaryRelevance(beta=0.1).fit(X, X.astype(int), label_names=["a", "b"]).coef_.round(2)
    array([[0.91, 0.  ],
           [0.  , 0.91]])
    """

    def __init__(
        self,
        *,
        loss: str = "squared",
        beta: float | str = "auto",
        fit_intercept: bool = True,
        threshold: float | str = "f1",
        random_state: int = 0,
    ) -> None:
        super().__init__(
            lam=None,
            metric=None,
            beta=beta,
            loss=loss,
            dictionary="fit",
            fit_intercept=fit_intercept,
            threshold=threshold,
            random_state=random_state,
        )
