"""Rows and features that are both too many for a factor: learned by iterations, to the same answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.classifier import solve
from streamlabel.data.synthetic import make_planted_labels
from streamlabel.errors import DataError

NAMES = ["a", "b", "c"]


@pytest.fixture
def problem():
    planted = make_planted_labels(400, 60, 18, 3, noise=0.1, feature_noise=0.3, random_state=0)
    return sparse.csr_array(planted.X), planted.Y_past.toarray(), planted.Y_new.toarray()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("lam", [None, 0.003])
def test_the_answer_is_that_of_the_factor(problem, monkeypatch, fit_intercept, lam):
    X, Y, new = problem
    parameters = {"beta": 3.0, "lam": lam, "metric": None, "fit_intercept": fit_intercept}
    expected = StreamingLabelClassifier(**parameters).fit(X, Y).add_labels(X, new, NAMES)
    monkeypatch.setattr(solve, "FACTOR_LIMIT", 50)
    found = StreamingLabelClassifier(**parameters).fit(X, Y).add_labels(X, new, NAMES)
    assert found.state_.memory._ridge is None
    assert [report.loss for report in found.reports_] == ["squared"] * 21
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-4)


def test_it_chooses_for_itself_and_few_answers_are_learned_as_ever(problem, monkeypatch):
    X, Y, new = problem
    expected = StreamingLabelClassifier().fit(X, Y)
    monkeypatch.setattr(solve, "FACTOR_LIMIT", 50)
    found = StreamingLabelClassifier().fit(X, Y)
    assert 0.3 <= found.beta_ / expected.beta_ <= 3.4  # one step of the grid, as the sample is all rows
    before = found.decision_function(X)
    found.add_labels(X, new[:, 0], ["few"], annotated=np.arange(40))
    found.add_labels(X, new[:, 1:], ["all", "others"])
    assert found.reports_[-1].share == 0.0
    np.testing.assert_array_equal(found.decision_function(X)[:, :18], before)


def test_what_needs_a_factor_is_refused(problem, monkeypatch):
    X, Y, new = problem
    monkeypatch.setattr(solve, "FACTOR_LIMIT", 50)
    with pytest.raises(DataError, match=r'start="alternating" needs a factor.*start="independent"'):
        StreamingLabelClassifier(start="alternating").fit(X, Y)
    model = StreamingLabelClassifier(metric=0.3).fit(X, Y)
    with pytest.raises(DataError, match=r"metric is 0\.3; it needs a factor"):
        model.add_labels(X, new, NAMES)
