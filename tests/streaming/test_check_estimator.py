from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from streamlabel import StreamingLabelClassifier


@parametrize_with_checks([StreamingLabelClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
