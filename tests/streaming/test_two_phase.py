"""The paper's form in half of the memory: codes from answers alone, classifiers from sums of features alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.data.synthetic import make_planted_labels
from streamlabel.errors import ConflictError, DataError
from streamlabel.stats.sums import Stats
from streamlabel.streaming.from_stats import add_labels_from_stats, code_labels

NAMES = ["u", "v", "w"]


@pytest.fixture(scope="module")
def problem():
    planted = make_planted_labels(120, 30, 8, 3, noise=0.1, feature_noise=0.3, random_state=3)
    return planted.X, planted.Y_past, planted.Y_new


def sums(X, Y, names=None):
    parts = [Stats.from_batch(X[i : i + 50], Y[i : i + 50], names) for i in (0, 50, 100)]
    return parts[0] + parts[1] + parts[2]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("beta", ["auto", 2.0])
def test_it_is_what_add_labels_learns_from_rows(problem, fit_intercept, beta):
    X, past, new = problem
    settings = {"lam": 0.01, "metric": None, "fit_intercept": fit_intercept, "beta": beta, "loss": "squared"}
    model = StreamingLabelClassifier(**settings).fit(X, past)
    codes = code_labels(past, new, 0.01, fit_intercept=fit_intercept)
    found = add_labels_from_stats(model, sums(X, new, NAMES), codes, beta)
    expected = StreamingLabelClassifier(**settings).fit(X, past).add_labels(X, new, NAMES)
    assert codes.nnz
    np.testing.assert_allclose(found.structure_.toarray(), expected.structure_.toarray(), atol=1e-10)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-9)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-9)
    np.testing.assert_array_equal(found.decision_function(X)[:, :8], model.decision_function(X))
    assert model.label_names_ == found.label_names_[:8]
    assert np.isfinite(found.thresholds_).all()


def test_labels_go_on_arriving(problem):
    X, past, new = problem
    model = add_labels_from_stats(
        StreamingLabelClassifier(lam=0.01).fit(X, past), sums(X, new, NAMES), code_labels(past, new)
    )
    later = np.asarray(new.toarray()[:, 0] | new.toarray()[:, 1])
    assert model.add_labels(X, later, ["later"], annotated=np.arange(80)).label_names_[-2:] == ("w", "later")


def test_an_adopted_model_chooses_its_strength_by_the_sums(problem):
    X, past, new = problem
    fitted = StreamingLabelClassifier().fit(X, past)
    adopted = StreamingLabelClassifier.from_coef(fitted.coef_, fitted.intercept_)
    found = add_labels_from_stats(adopted, sums(X, new), code_labels(past, new))
    assert np.isfinite(found.reports_[-1].beta)
    assert found.label_names_[-1] == "label_10"


def test_what_does_not_go_together_is_refused(problem):
    X, past, new = problem
    model = StreamingLabelClassifier().fit(X, past, [f"p{j}" for j in range(8)])
    with pytest.raises(DataError, match="100 rows of known labels and 120 of new"):
        code_labels(past[:100], new)
    with pytest.raises(DataError, match="do not go together"):
        add_labels_from_stats(model, sums(X, new), sparse.csc_array((7, 3)))
    with pytest.raises(ConflictError, match="'p1' is taken"):
        add_labels_from_stats(model, sums(X, new, ["a", "p1", "b"]), sparse.csc_array((8, 3)))
    other = StreamingLabelClassifier(loss="logistic", beta=1.0).fit(X, past)
    with pytest.raises(DataError, match="squared loss"):
        add_labels_from_stats(other, sums(X, new), sparse.csc_array((8, 3)))
