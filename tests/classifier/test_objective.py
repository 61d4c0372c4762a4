"""The batch objective: value by its definition, gradient against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse

from streamlabel.classifier.losses import get_loss
from streamlabel.classifier.objective import AnchoredObjective
from streamlabel.classifier.penalty import make_penalty


@pytest.fixture(params=["squared", "logistic", "squared_hinge"])
def loss(request):
    return get_loss(request.param)


@pytest.fixture(params=["separate", "coupled", "singular"])
def coupling(request, rng):
    if request.param == "separate":
        return None
    S2 = 0.4 * rng.standard_normal((3, 3))
    np.fill_diagonal(S2, 0.0)
    if request.param == "singular":
        S2[:] = 0.0
        S2[0, 1] = S2[1, 0] = 1.0
    return S2


@pytest.fixture(params=[True, False], ids=["intercept", "plain"])
def objective(request, loss, coupling, rng):
    X = sparse.csr_array(rng.standard_normal((600, 4)))
    Y = (rng.random((600, 3)) < 0.4).astype(float)
    penalty = make_penalty(rng.standard_normal((4, 3)), coupling, 1.3)
    return AnchoredObjective(X, loss.encode(Y), loss, penalty, request.param)


def flat(function):
    """A function of (V, b) as one of a vector."""
    return lambda point: function(point[:12].reshape(4, 3), point[12:])


def test_value_is_its_definition(objective, coupling, rng):
    V, b = rng.standard_normal((4, 3)), rng.standard_normal(3)
    expected = objective.loss.value(objective.X.toarray() @ V + b, objective.answers).sum()
    M = np.eye(3) - (0.0 if coupling is None else coupling)
    expected += 0.65 * (np.linalg.norm(V @ M - objective.penalty.anchor) ** 2 + objective.penalty.ridge * np.sum(V**2))
    assert objective.value(V, b) == pytest.approx(expected, rel=1e-12)


def test_gradient_is_finite_differences(objective, rng):
    V, b = rng.standard_normal((4, 3)), rng.standard_normal(3)
    slope, slope_b = objective.gradient(V, b)
    numeric = optimize.approx_fprime(np.append(V, b), flat(objective.value), 1e-6)
    np.testing.assert_allclose(slope.ravel(), numeric[:12], rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(slope_b, numeric[12:] if objective.fit_intercept else 0.0, rtol=1e-4, atol=1e-2)


def test_gradient_vanishes_on_differences_of_value(objective, rng):
    """Central differences along a random direction, to more digits than single coordinates allow."""
    V, b, Z = rng.standard_normal((4, 3)), rng.standard_normal(3), rng.standard_normal((4, 3))
    c = rng.standard_normal(3) if objective.fit_intercept else np.zeros(3)
    slope, slope_b = objective.gradient(V, b)
    h = 1e-5
    numeric = (objective.value(V + h * Z, b + h * c) - objective.value(V - h * Z, b - h * c)) / (2 * h)
    assert np.vdot(slope, Z) + slope_b @ c == pytest.approx(numeric, rel=1e-6)


def test_value_and_gradient_are_both(objective, rng):
    V, b = rng.standard_normal((4, 3)), rng.standard_normal(3)
    value, slope, slope_b = objective.value_and_gradient(V, b)
    assert value == pytest.approx(objective.value(V, b), rel=1e-12)
    expected, expected_b = objective.gradient(V, b)
    np.testing.assert_allclose(slope, expected, atol=1e-10)
    np.testing.assert_allclose(slope_b, expected_b, atol=1e-10)


def test_scale_is_the_right_hand_side_of_the_normal_equations(rng):
    X, Y, P = rng.standard_normal((20, 4)), (rng.random((20, 3)) < 0.5).astype(float), rng.standard_normal((4, 3))
    objective = AnchoredObjective(X, Y, get_loss("squared"), make_penalty(P, None, 2.0))
    right = (X - X.mean(axis=0)).T @ Y + 2.0 * P
    np.testing.assert_allclose(objective.gradient_scale(), np.linalg.norm(right, axis=0))
