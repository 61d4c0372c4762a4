"""The planted answer, found again by least squares, by scikit-learn's lasso, and by counting."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import Lasso, Ridge

from streamlabel.data.synthetic import make_planted_labels
from streamlabel.errors import DataError


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_past", "n_new", "code_size"),
    [(300, 40, 20, 8, 3), (31, 30, 30, 10, 4), (120, 50, 9, 9, 1), (200, 64, 7, 12, 4), (400, 100, 60, 40, 2)],
)
def test_new_labels_and_classifiers_are_exact_combinations(n_rows, n_features, n_past, n_new, code_size, seed):
    planted = make_planted_labels(n_rows, n_features, n_past, n_new, code_size, random_state=seed)
    B, B_new, S = planted.Y_past.toarray(), planted.Y_new.toarray(), planted.codes.toarray()
    assert np.array_equal(B @ S, B_new)
    assert (np.count_nonzero(S, axis=0) == code_size).all()
    assert set(np.unique(S)) <= {-1.0, 0.0, 1.0}
    assert len(np.unique(S, axis=1).T) == n_new
    assert np.linalg.matrix_rank(np.column_stack([np.ones(n_rows), B])) == n_past + 1
    assert np.abs(planted.X @ planted.W - B).max() < 1e-12
    assert np.abs(planted.X @ planted.W_new - B_new).max() < 1e-11
    for labels in (B, B_new):
        assert (labels.sum(axis=0) >= 1).all()
        assert (labels.sum(axis=0) <= n_rows - 1).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_least_squares_finds_the_code_and_the_classifiers(intercept):
    planted = make_planted_labels(random_state=3)
    B, B_new = planted.Y_past.toarray().astype(float), planted.Y_new.toarray().astype(float)
    lead = np.ones((len(B), int(intercept)))
    code = np.linalg.lstsq(np.hstack([lead, B]), B_new, rcond=None)[0][int(intercept) :]
    assert np.allclose(code, planted.codes.toarray(), atol=1e-10)
    weights = np.linalg.lstsq(np.hstack([lead, planted.X]), np.hstack([B, B_new]), rcond=None)[0][int(intercept) :]
    assert np.allclose(weights, np.hstack([planted.W, planted.W_new]), atol=1e-9)


def test_signed_coding_gives_the_same_code_with_an_intercept():
    planted = make_planted_labels(random_state=4)
    Y, Y_new = 2.0 * planted.Y_past.toarray() - 1, 2.0 * planted.Y_new.toarray() - 1
    solution = np.linalg.lstsq(np.hstack([np.ones((len(Y), 1)), Y]), Y_new, rcond=None)[0]
    S = planted.codes.toarray()
    assert np.allclose(solution[1:], S, atol=1e-10)
    assert np.allclose(solution[0], S.sum(axis=0) - 1, atol=1e-10)


def test_lasso_tends_to_the_planted_code():
    planted = make_planted_labels(random_state=0)
    B, B_new, S = planted.Y_past.toarray(), planted.Y_new.toarray(), planted.codes.toarray()
    distance = []
    for alpha in (1e-3, 1e-4, 1e-5):
        code = Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(B, B_new).coef_.T
        distance.append(np.abs(code - S).max())
    assert distance[0] < 0.2
    assert distance[1] < distance[0] / 8  # linear in lam
    assert distance[2] < distance[1] / 8


def test_ridge_toward_the_anchor_stays_there():
    planted = make_planted_labels(random_state=1)
    residual = planted.Y_new.toarray() - planted.X @ planted.W_new
    assert np.abs(Ridge(alpha=10.0).fit(planted.X, residual).coef_).max() < 1e-12


def test_noise_exchanges_answers_and_keeps_frequencies():
    clean = make_planted_labels(n_rows=1000, random_state=2)
    noisy = make_planted_labels(n_rows=1000, noise=0.2, random_state=2)
    assert np.array_equal(clean.X, noisy.X)
    assert np.array_equal(clean.codes.toarray(), noisy.codes.toarray())
    for before, after in ((clean.Y_past, noisy.Y_past), (clean.Y_new, noisy.Y_new)):
        counts = before.sum(axis=0)
        assert np.array_equal(counts, after.sum(axis=0))
        kept = (before.toarray() * after.toarray()).sum(axis=0)
        assert np.array_equal(counts - kept, np.round(0.2 * counts))


def test_feature_noise_is_added_to_the_features_only():
    clean = make_planted_labels(n_rows=2000, random_state=2)
    noisy = make_planted_labels(n_rows=2000, feature_noise=0.5, random_state=2)
    assert np.array_equal(clean.Y_new.toarray(), noisy.Y_new.toarray())
    assert np.std(noisy.X - clean.X) == pytest.approx(0.5, rel=0.02)


def test_a_generator_moves_on_and_a_seed_does_not():
    first, again, other = (make_planted_labels(random_state=seed).X.tobytes() for seed in (5, 5, 6))
    assert first == again != other
    generator = np.random.default_rng(5)
    draws = [make_planted_labels(random_state=generator).X.tobytes() for _ in range(2)]
    assert draws[0] == first != draws[1]


def test_same_answer_in_another_process():
    """Labels, codes and draws byte for byte; X too, which goes through the same linear algebra."""
    code = (
        "import sys; from streamlabel.data.synthetic import make_planted_labels as make;"
        "p = make(80, 40, 20, 6, 3, noise=0.1, random_state=9);"
        "sys.stdout.buffer.write(p.X.tobytes() + p.Y_new.indices.tobytes() + p.codes.indices.tobytes())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    p = make_planted_labels(80, 40, 20, 6, 3, noise=0.1, random_state=9)
    assert run.stdout == p.X.tobytes() + p.Y_new.indices.tobytes() + p.codes.indices.tobytes()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"n_features": 29}, "n_features"),
        ({"n_rows": 30}, "n_rows"),
        ({"n_rows": 10**12}, "cells of X"),
        ({"n_past": 3, "code_size": 3}, "n_past"),
        ({"n_past": 4, "code_size": 3, "n_new": 5}, "4 different codes"),
        ({"code_size": 0}, "code_size"),
        ({"n_new": 0}, "n_new"),
        ({"noise": 1.5}, "noise"),
        ({"noise": float("nan")}, "noise"),
        ({"feature_noise": -1.0}, "feature_noise"),
        ({"n_rows": 100.5}, "whole number"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": None}, "random_state"),
        ({"feature_noise": "much"}, "expected a number"),
    ],
)
def test_impossible_requests_are_refused(arguments, part):
    with pytest.raises(DataError, match=part):
        make_planted_labels(**arguments)
