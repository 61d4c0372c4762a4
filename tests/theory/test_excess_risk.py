"""Theorem 1 against enumeration: all signs of small samples, all draws of small distributions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from streamlabel.theory.excess_risk import LIPSCHITZ, clipped_loss, printed_terms, risk_bound


def setting(seed: int, n: int = 9, d: int = 4, m: int = 5, k: int = 3):
    rng = np.random.default_rng(seed)
    X, past = rng.normal(size=(n, d)), rng.normal(size=(d, m))
    codes = rng.normal(size=(m, k)) * (rng.random((m, k)) < 0.5)
    weights = past @ codes + 0.3 * rng.normal(size=(d, k))
    targets = (rng.random((n, k)) < 0.4).astype(float)
    return X, targets, weights, past, codes


def signs(n: int) -> np.ndarray:
    return np.array(list(itertools.product((-1.0, 1.0), repeat=n)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**20), n=st.integers(1, 9), m=st.integers(1, 8))
def test_the_complexity_of_the_class_is_bounded(seed, n, m):
    """``sup <w, g>`` over ``||w - W s|| <= e, ||s||_1 <= l`` is ``e ||g|| + l max |W'g|``: the mean over all signs."""
    X, targets, weights, past, codes = setting(seed, n=n, m=m)
    bound = risk_bound(X, targets, weights, past, codes)
    g = signs(n) @ X
    epsilon = np.linalg.norm(weights - past @ codes, axis=0)
    for j in range(targets.shape[1]):
        size = np.abs(codes[:, j]).sum()
        sup = epsilon[j] * np.linalg.norm(g, axis=1) + size * np.abs(g @ past).max(axis=1)
        assert 2.0 * LIPSCHITZ * sup.mean() / n <= (bound.own + bound.past)[j] * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**20), n=st.integers(1, 40), k=st.integers(1, 6))
def test_the_printed_terms_are_those_of_the_definition(seed, n, k):
    X, _, weights, past, codes = setting(seed, n=n, k=k)
    found = printed_terms(X, weights, past, codes, delta=0.1)
    epsilon, size, c = np.linalg.norm(weights - past @ codes), np.abs(codes).sum(), np.linalg.norm(past)
    energy = np.mean(np.linalg.norm(X, axis=1) ** 2)
    assert found.representation == pytest.approx((epsilon + size * c) * np.sqrt(k / n * energy))
    assert found.confidence == pytest.approx(k * np.sqrt(np.log(10.0) / n))
    assert found.weights_norm <= found.epsilon + found.code_norm * found.past_norm + 1e-12  # never below the plain ball
    again = printed_terms(sparse.csr_array(X), weights, past, sparse.csc_array(codes), delta=0.1)
    assert again.representation == pytest.approx(found.representation)


def test_the_contraction_of_the_proof_fails_for_two_labels():
    """One sign a row, k losses: ``E sup_W sum_i e_i sum_j loss_ij(<x_i, w_j>)`` is claimed to be at most
    ``C E sup_W sum_i e_i sum_j <x_i, w_j>``. With loss -y t (C = 1), two equal rows, labels (1, 1) and (1, -1), over
    the ball ``||W||_F <= 1`` it is 2 against sqrt(2)."""
    X, Y = np.array([[1.0], [1.0]]), np.array([[1.0, 1.0], [1.0, -1.0]])
    left = np.mean([np.linalg.norm(X.T @ (e[:, None] * -Y)) for e in signs(2)])
    right = np.mean([np.linalg.norm(X.T @ (e[:, None] * np.ones((2, 2)))) for e in signs(2)])
    assert left == pytest.approx(2.0)
    assert right == pytest.approx(np.sqrt(2.0))
    by_label = sum(np.mean([np.linalg.norm(X.T @ (e * -Y[:, j])) for e in signs(2)]) for j in range(2))
    plain = sum(np.mean([np.linalg.norm(X.T @ e) for e in signs(2)]) for j in range(2))
    assert by_label <= plain + 1e-12  # label by label, each with a budget of its own, it is right


def test_the_printed_bound_cannot_tell_a_good_past_from_none():
    """A past that already holds the answer, ``w = w_old``: the printed term is that of own ridge, ||w|| sqrt(k/n), and
    more with every further past label; ours pays for choosing among scores instead."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 50))
    w = rng.normal(size=(50, 1))
    w *= 0.3 / np.linalg.norm(w)
    others = np.hstack((w, 0.3 * rng.normal(size=(50, 9)) / np.sqrt(50)))
    targets = (X @ w > 0).astype(float)
    code = np.eye(10, 1)
    with_past, alone = printed_terms(X, w, others, code), printed_terms(X, w, others, np.zeros((10, 1)))
    assert with_past.representation > alone.representation
    ours, ours_alone = risk_bound(X, targets, w, others, code), risk_bound(X, targets, w, others, np.zeros((10, 1)))
    assert (ours.own + ours.past)[0] < 0.5 * (ours_alone.own + ours_alone.past)[0]


@pytest.mark.parametrize("n_rows", [4, 30, 300])
def test_the_risk_is_bounded_in_every_draw_of_a_known_distribution(n_rows):
    """Eight points with known chances of a yes: the risk on unseen rows is a finite sum. The worst classifier of the
    class is sought by fitting the noise."""
    rng = np.random.default_rng(1)
    points, chances = rng.normal(size=(8, 5)), rng.random((8, 2))
    past = rng.normal(size=(5, 3)) * 0.3
    for _ in range(200):
        rows = rng.integers(8, size=n_rows)
        X, targets = points[rows], (rng.random((n_rows, 2)) < chances[rows]).astype(float)
        codes = np.linalg.lstsq(X @ past, targets, rcond=None)[0]
        weights = past @ codes + np.linalg.lstsq(X, targets - X @ past @ codes, rcond=None)[0]
        scores = points @ weights
        risk = (chances * clipped_loss(1.0, scores) + (1 - chances) * clipped_loss(0.0, scores)).mean(axis=0)
        bound = risk_bound(X, targets, weights, past, codes, delta=0.05)
        assert (risk <= bound.risk).all()
        np.testing.assert_allclose(bound.seen, clipped_loss(targets, X @ weights).mean(axis=0))


def test_every_term_falls_with_the_root_of_the_rows():
    X, targets, weights, past, codes = setting(0)
    one = risk_bound(X, targets, weights, past, codes)
    four = risk_bound(np.tile(X, (4, 1)), np.tile(targets, (4, 1)), weights, past, codes)
    for term in ("own", "past", "confidence"):
        np.testing.assert_allclose(getattr(four, term), getattr(one, term) / 2.0)
    np.testing.assert_allclose(four.seen, one.seen)


def test_without_a_code_nothing_is_paid_for_the_past():
    X, targets, weights, past, codes = setting(0)
    bound = risk_bound(X, targets, weights, past, 0.0 * codes)
    assert not bound.past.any()
    nobody = risk_bound(X, targets, weights, past[:, :0], codes[:0])
    np.testing.assert_allclose(nobody.risk, bound.risk)
    np.testing.assert_allclose(nobody.gap, bound.own + bound.confidence)
    zero = risk_bound(X, targets, np.zeros_like(weights), past, 0.0 * codes)
    assert not zero.own.any()
    np.testing.assert_allclose(zero.seen, targets.mean(axis=0))


@pytest.mark.parametrize("size", [1e-100, 1e-9, 1 / 16, 0.0625000001, 1.0, 3.0, 1e9, 1e100])
def test_budgets_are_rounded_up_and_by_no_more_than_the_grid(size):
    X = np.eye(2)
    weights = np.array([[size], [0.0]])
    bound = risk_bound(X, np.zeros((2, 1)), weights, np.zeros((2, 0)), np.zeros((0, 1)))
    budget = bound.own[0] / (2.0 * LIPSCHITZ / 2 * np.sqrt(2.0))
    assert max(size, 1 / 16) * (1 - 1e-12) <= budget <= max(np.sqrt(2.0) * size, 1 / 16) * (1 + 1e-9)
    assert np.isfinite(bound.risk).all()


def test_the_clipped_loss_is_bounded_and_lipschitz():
    scores = np.linspace(-3, 4, 2001)
    for target in (0.0, 1.0):
        loss = clipped_loss(np.full_like(scores, target), scores)
        assert loss.min() >= 0.0
        assert loss.max() <= 1.0
        assert np.abs(np.diff(loss) / np.diff(scores)).max() <= LIPSCHITZ
