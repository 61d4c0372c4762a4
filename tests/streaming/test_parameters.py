"""Parameters of the wrong kind, parameters changed behind the model's back, and a fit that fails."""

from __future__ import annotations

import numpy as np
import pytest

from streamlabel import StreamingLabelClassifier
from streamlabel.errors import DataError

WRONG = [
    ("lam", [1]), ("lam", True), ("lam", -1.0), ("metric", {}), ("metric", 1.0), ("beta", None), ("beta", "x"),
    ("beta", np.array([1.0, 2.0])), ("dictionary", 2.5), ("dictionary", None), ("dictionary", True), ("dictionary", 0),
    ("threshold", None), ("threshold", [0.5]), ("threshold", np.nan), ("loss", 3), ("start", 3),
    ("fit_intercept", "no"), ("fit_intercept", 2), ("random_state", None), ("random_state", -1),
    ("n_jobs", 1.5), ("n_jobs", 0),
]  # fmt: skip


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((60, 6))
    return X, (X[:, :4] + rng.standard_normal((60, 4)) > 0.3).astype(int)


@pytest.mark.parametrize(("name", "value"), WRONG, ids=str)
def test_a_parameter_of_the_wrong_kind_is_named(rows, name, value):
    X, Y = rows
    with pytest.raises(DataError, match=name):
        StreamingLabelClassifier(**{name: value}).fit(X, Y)


def test_numbers_of_numpy_are_numbers(rows):
    X, Y = rows
    model = StreamingLabelClassifier(lam=np.float32(0.01), beta=np.int64(2), random_state=np.int64(3)).fit(X, Y)
    assert model.add_labels(X, Y[:, 0], ["again"]).reports_[-1].beta == 2.0


@pytest.mark.parametrize(
    "change", [{"beta": 3.0}, {"fit_intercept": False}, {"dictionary": "fit"}, {"loss": "logistic"}], ids=str
)
def test_what_fit_depended_on_cannot_change_before_an_arrival(rows, change):
    X, Y = rows
    model = StreamingLabelClassifier().fit(X, Y)
    with pytest.raises(DataError, match=f"{next(iter(change))} was .* in fit"):
        model.set_params(**change).add_labels(X, Y[:, 0], ["again"])
    with pytest.raises(DataError, match=f"{next(iter(change))} was .* in fit"):
        model.add_found("again", X[:2])
    assert model.label_names_[-1] != "again"


def test_what_arrivals_depend_on_may_change(rows):
    X, Y = rows
    model = StreamingLabelClassifier().fit(X, Y).set_params(lam=0.01, metric=None, threshold=0.4, n_jobs=2)
    report = model.add_labels(X, Y[:, 0], ["again"]).reports_[-1]
    assert report.lam == 0.01
    assert model.thresholds_[-1] == 0.4


def test_a_fit_that_fails_leaves_the_model_as_it_was(rows, rng):
    X, Y = rows
    model = StreamingLabelClassifier().fit(X, Y)
    before = model.decision_function(X)
    with pytest.raises(DataError, match="rows"):
        model.fit(rng.standard_normal((60, 9)), Y[:5])
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.n_features_in_ == 6
    with pytest.raises(DataError, match="rows"):
        (fresh := StreamingLabelClassifier()).fit(X, Y[:5])
    assert not hasattr(fresh, "n_features_in_")
