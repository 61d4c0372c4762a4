"""The losses against scipy's special functions, scikit-learn's metrics, finite differences and extreme scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special
from sklearn.metrics import log_loss, mean_squared_error

from streamlabel.classifier.losses import get_loss
from streamlabel.errors import NotFoundError

NAMES = ["squared", "logistic", "squared_hinge"]


@pytest.fixture(params=NAMES)
def loss(request):
    return get_loss(request.param)


@pytest.fixture
def scored(rng):
    return 3.0 * rng.standard_normal((700, 3)), (rng.random((700, 3)) < 0.3).astype(float)


def test_values_are_their_definitions(scored):
    scores, answers = scored
    for j in range(3):
        f, y = scores[:, j], answers[:, j]
        squared, logistic = get_loss("squared"), get_loss("logistic")
        np.testing.assert_allclose(squared.value(f, y).mean(), 0.5 * mean_squared_error(y, f))
        np.testing.assert_allclose(logistic.value(f, y).mean(), log_loss(y, special.expit(f)))
        np.testing.assert_allclose(logistic.first(f, y), special.expit(f) - y, atol=1e-15)
    hinge = get_loss("squared_hinge")
    signs = hinge.encode(np.array([1.0, 1.0, 0.0, 0.0]))
    np.testing.assert_array_equal(hinge.value(np.array([2.0, 0.5, -3.0, 1.0]), signs), [0.0, 0.125, 0.0, 2.0])


def test_derivatives_are_finite_differences(loss, scored):
    scores, answers = scored
    y, h = loss.encode(answers), 1e-6
    slope = (loss.value(scores + h, y) - loss.value(scores - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.first(scores, y), slope, atol=1e-8)
    smooth = np.abs(y * scores - 1.0) > 1e-5  # the second derivative of the squared hinge jumps on the margin
    bend = (loss.first(scores + h, y) - loss.first(scores - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.terms(scores, y)[2][smooth], bend[smooth], atol=1e-8)


def test_terms_are_values_and_derivatives_at_once(loss, scored):
    scores, answers = scored
    y = loss.encode(answers)
    cost, first, _ = loss.terms(scores, y)
    np.testing.assert_allclose(cost, loss.value(scores, y).sum(axis=0), rtol=1e-13)
    np.testing.assert_allclose(first, loss.first(scores, y), atol=1e-15)


@pytest.mark.parametrize("name", ["logistic", "squared_hinge"])
def test_zero_one_and_signed_answers_are_the_same(name, rng):
    answers = rng.random((5, 2)) < 0.5
    loss = get_loss(name)
    np.testing.assert_array_equal(loss.encode(answers), loss.encode(np.where(answers, 1.0, -1.0)))


def test_logistic_survives_any_score():
    scores = np.array([[-1e300, -800.0, -40.0, 0.0, 40.0, 800.0, 1e300]] * 2)
    loss = get_loss("logistic")
    answers = np.array([[0.0] * 7, [1.0] * 7])
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        value, first, second = loss.value(scores, answers), *loss.terms(scores, answers)[1:]
        cost, _, _ = loss.terms(scores, answers)
    assert np.isfinite(cost).all()
    np.testing.assert_allclose(value[1], value[0, ::-1])  # log(1 + exp(-y f)) depends on the product only
    np.testing.assert_allclose(value[0, [1, 2, 5]], [0.0, np.exp(-40.0), 800.0], atol=1e-300, rtol=1e-12)
    np.testing.assert_allclose(first[0, 2], np.exp(-40.0), rtol=1e-12)  # not lost in 1 - 1
    assert (second >= 0.0).all()


@given(f=st.floats(-50, 50), g=st.floats(-50, 50), positive=st.booleans(), name=st.sampled_from(NAMES))
def test_convex_with_a_bounded_bend(f, g, positive, name):
    loss = get_loss(name)
    y = loss.encode(np.array(float(positive)))
    assert loss.value(g, y) >= loss.value(f, y) + loss.first(f, y) * (g - f) - 1e-9
    assert abs(loss.first(f, y) - loss.first(g, y)) <= abs(f - g) + 1e-9


def test_best_constant_is_best(loss, scored):
    _, answers = scored
    y = loss.encode(answers)
    for j, found in enumerate(loss.best_constant(y)):
        best = optimize.minimize_scalar(lambda c, j=j: loss.value(np.full(len(y), c), y[:, j]).sum())
        assert found == pytest.approx(best.x, abs=2e-2)  # the logistic one is smoothed by half a row
    assert np.isfinite(loss.best_constant(loss.encode(np.ones((4, 1))))).all()


def test_an_unknown_loss_is_named():
    with pytest.raises(NotFoundError, match=r"'hinge'.*squared, logistic, squared_hinge"):
        get_loss("hinge")
