"""Rows and features that are both too many for a spectrum: other roads to the same answer, what they take, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge, RidgeCV

from streamlabel import StreamingLabelClassifier
from streamlabel.classifier import solve
from streamlabel.classifier.ridge import BETA_STEPS
from streamlabel.classifier.single_precision import SingleRidge
from streamlabel.data.synthetic import make_planted_labels
from streamlabel.errors import ConvergenceWarning, DataError
from streamlabel.streaming import fit_plan, past
from streamlabel.streaming.fit_plan import FitSize, check_fit_memory, plan_fit
from streamlabel.streaming.other_losses import row_unit

NAMES = ["a", "b", "c"]


@pytest.fixture
def problem():
    planted = make_planted_labels(400, 60, 18, 3, noise=0.1, feature_noise=0.3, random_state=0)
    return sparse.csr_array(planted.X), planted.Y_past.toarray(), planted.Y_new.toarray()


both_roads = pytest.mark.parametrize("road", ["single", "iterative"])


def take(road, monkeypatch):
    """Take this road whatever the size."""
    monkeypatch.setattr(solve, "FACTOR_LIMIT", 50)
    monkeypatch.setattr(fit_plan, "SPECTRAL_LIMIT", 50)
    if road == "single":
        monkeypatch.setattr(fit_plan, "_SPARSE", 1.0)  # so slow that iterations do not pay
    else:
        monkeypatch.setattr(fit_plan, "SINGLE_LIMIT", 50)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("lam", [None, 0.003])
@both_roads
def test_the_answer_is_that_of_the_factor(problem, monkeypatch, road, fit_intercept, lam):
    X, Y, new = problem
    parameters = {"beta": 3.0, "lam": lam, "metric": None, "fit_intercept": fit_intercept}
    expected = StreamingLabelClassifier(**parameters).fit(X, Y).add_labels(X, new, NAMES)
    take(road, monkeypatch)
    assert plan_fit(FitSize.of(X, sparse.csr_array(Y))).road == road
    found = StreamingLabelClassifier(**parameters).fit(X, Y).add_labels(X, new, NAMES)
    assert found.state_.memory._ridge is None
    assert [report.loss for report in found.reports_] == ["squared"] * 21
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=5e-4)


@both_roads
def test_it_chooses_for_itself_and_few_answers_are_learned_as_ever(problem, monkeypatch, road):
    X, Y, new = problem
    expected = StreamingLabelClassifier().fit(X, Y)
    take(road, monkeypatch)
    found = StreamingLabelClassifier().fit(X, Y)
    assert 0.3 <= found.beta_ / expected.beta_ <= 3.4  # one step of the grid, as the sample is all rows
    before = found.decision_function(X)
    found.add_labels(X, new[:, 0], ["few"], annotated=np.arange(40))
    found.add_labels(X, new[:, 1:], ["all", "others"])
    assert found.reports_[-1].share == 0.0
    np.testing.assert_array_equal(found.decision_function(X)[:, :18], before)


@both_roads
def test_thresholds_come_from_scores_of_rows_that_were_left_out(problem, monkeypatch, road):
    """Leave-one-out scores are those of scikit-learn's ridge without the row (single), or without the sample."""
    X, Y, _ = problem
    take(road, monkeypatch)
    model = StreamingLabelClassifier(beta=3.0).fit(X, Y)
    memory = model.state_.memory
    for place in range(0, len(memory.judged_rows), 40):
        left_out = memory.judged_rows[place] if road == "single" else memory.judged_rows
        kept = np.delete(np.arange(X.shape[0]), left_out)
        ridge = Ridge(alpha=3.0, solver="svd").fit(X[kept].toarray(), Y[kept])
        row = memory.judged_rows[place]
        np.testing.assert_allclose(memory.leave_one_out[place], ridge.predict(X[[row]].toarray())[0], atol=1e-3)


def problem_of(n_rows, n_features, dense, offset=0.0):
    rng = np.random.default_rng(n_rows)
    X = rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.15)
    X[:, :5] += rng.random((n_rows, 5)) < 0.9  # full columns
    Y = sparse.csr_array((rng.random((n_rows, 7)) < 0.1).astype(float))
    return (X + offset if dense else sparse.csr_array(X)), Y


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(120, 80), (80, 120)])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1e20])
def test_a_factor_in_single_precision_gives_ridge(fit_intercept, shape, dense, scale):
    X, Y = problem_of(*shape, dense, offset=3.0 if fit_intercept else 0.0)
    ridge = SingleRidge(scale * X, 10.0 * scale**2, centre=fit_intercept)
    weights, intercept = ridge.solve(Y)
    rows = X if dense else X.toarray()
    expected = Ridge(alpha=10.0, fit_intercept=fit_intercept, solver="svd").fit(rows, Y.toarray())
    np.testing.assert_allclose(scale * weights.T, expected.coef_, atol=1e-4 * np.abs(expected.coef_).max())
    np.testing.assert_allclose(intercept, expected.intercept_, atol=1e-4)
    centred = rows - rows.mean(axis=0) if fit_intercept else rows
    hat = centred @ np.linalg.solve(centred.T @ centred + 10.0 * np.eye(shape[1]), centred.T)
    leverages, traces = ridge.leverages(np.arange(shape[0]))
    np.testing.assert_allclose(leverages, hat.diagonal() + fit_intercept / shape[0], atol=1e-4)
    np.testing.assert_allclose(traces.trace, hat.trace(), rtol=1e-4)
    np.testing.assert_allclose(traces.spread_sum, (hat - hat @ hat).trace(), rtol=1e-3)


def test_a_beta_beyond_single_precision_is_learned_by_iterations(problem, monkeypatch):
    X, Y, _ = problem
    take("single", monkeypatch)
    doubled = sparse.csr_array(sparse.hstack((X, X)))  # without beta it is singular
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = StreamingLabelClassifier(beta=1e-9).fit(doubled, Y)
    expected = Ridge(alpha=1e-9, solver="svd").fit(doubled.toarray(), Y)
    np.testing.assert_allclose(found.decision_function(doubled), expected.predict(doubled.toarray()), atol=1e-2)


def test_the_strength_of_a_sample_is_that_of_ridge_cv():
    """RidgeCV's leave-one-out error over all labels and GCV agree up to one step of the grid."""
    planted = make_planted_labels(1500, 60, 18, 3, noise=0.1, feature_noise=0.3, random_state=0)
    X, Y = sparse.csr_array(planted.X), planted.Y_past
    unit = row_unit(X, True)
    expected = RidgeCV(alphas=unit * BETA_STEPS).fit(X.toarray(), Y.toarray()).alpha_
    assert 0.29 <= past.sampled_beta(X, Y, True, 0) / expected <= 3.4


LAWS = FitSize(56_000, 20_000, 4_271, 5_600_000)


def test_the_size_chooses_the_road():
    assert plan_fit(FitSize(16_000, 500, 983, None)).road == "spectral"
    assert plan_fit(FitSize(10_000, 11_387, 300, 1_000_000)).road == "single"
    assert plan_fit(LAWS).road == "single"
    assert plan_fit(FitSize(30_000, 60_000, 20, 2_400_000)).road == "iterative"  # few labels
    assert plan_fit(FitSize(90_000, 100_000, 20, 9_000_000)).road == "iterative"
    assert plan_fit(FitSize(10_000, 11_387, 300, 1_000_000), "logistic").road == "iterative"


def test_what_does_not_fit_into_memory_is_refused_with_a_number_that_fits():
    with pytest.raises(DataError, match=r"4,271 labels from 56,000 rows and 20,000 features.*2 GiB is free") as refused:
        check_fit_memory(LAWS, "squared", 2 * 2**30)
    affordable = int(refused.value.hint_value)
    assert 1_000 < affordable < 20_000
    smaller = FitSize(LAWS.n_rows, affordable, LAWS.n_labels, LAWS.n_stored)
    assert check_fit_memory(smaller, "squared", 2 * 2**30).n_bytes <= 2 * 2**30
    with pytest.raises(DataError, match="fewer labels or rows"):
        check_fit_memory(LAWS, "squared", 2**20)


def test_fit_looks_at_the_memory_before_it_works(problem, monkeypatch):
    X, Y, _ = problem
    monkeypatch.setattr(past, "available_memory", lambda: 2**20)
    model = StreamingLabelClassifier()
    with pytest.raises(DataError, match="GiB is free"):
        model.fit(X, Y)
    assert not hasattr(model, "state_")


def test_what_needs_a_factor_is_refused(problem, monkeypatch):
    X, Y, new = problem
    monkeypatch.setattr(solve, "FACTOR_LIMIT", 50)
    with pytest.raises(DataError, match=r'start="alternating" needs a factor.*start="independent"'):
        StreamingLabelClassifier(start="alternating").fit(X, Y)
    model = StreamingLabelClassifier(metric=0.3).fit(X, Y)
    with pytest.raises(DataError, match=r"metric is 0\.3; it needs a factor"):
        model.add_labels(X, new, NAMES)
