"""The estimator: what it must find, what must not matter, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from streamlabel import SLEEC
from streamlabel.baselines.sleec import cluster_rows, nearest_centre
from streamlabel.errors import DataError


@parametrize_with_checks([SLEEC()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def planted(rng):
    """Four clusters of directions; in each, three groups with label sets of their own."""
    centres = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    groups = np.arange(480) % 12
    X = 2.0 * centres[groups // 3] + centres[4 + groups] + 0.05 * rng.standard_normal((480, 30))
    sets = np.zeros((12, 20), dtype=int)
    for group in range(12):
        sets[group, rng.choice(20, 3, replace=False)] = 1
    assert len(np.unique(sets, axis=0)) == 12
    return X[:360], sets[groups][:360], X[360:], sets[groups][360:]


@pytest.mark.parametrize("most_rows", [90, 150, 400])
def test_planted_clusters_are_solved(planted, most_rows):
    X, Y, X_test, Y_test = planted
    model = SLEEC(n_learners=3, cluster_size=most_rows, rank=12, n_neighbours=30, beta=0.1).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X_test), Y_test)
    assert {len(part.points) <= most_rows for learner in model.learners_ for part in learner.parts} == {True}
    assert len(model.learners_) == (1 if most_rows == 400 else 3)


def test_scores_are_the_mean_labels_of_the_nearest_in_the_embedding(planted, rng):
    X, _, X_test, _ = planted
    Y = (rng.random((360, 20)) < 0.2).astype(int)
    model = SLEEC(n_predict_neighbours=7, rank=5).fit(X, Y)
    (part,) = model.learners_[0].parts
    np.testing.assert_allclose(part.points, normalize(X) @ part.weights, atol=1e-12)
    distances = np.linalg.norm((normalize(X_test) @ part.weights)[:, None] - part.points, axis=2)
    expected = Y[np.argsort(distances, axis=1)[:, :7]].mean(axis=1)
    np.testing.assert_allclose(model.decision_function(X_test), expected, atol=1e-12)


def test_scores_of_several_learners_are_averaged(planted, rng):
    X, _, X_test, _ = planted
    Y = (rng.random((360, 20)) < 0.2).astype(int)
    model = SLEEC(n_learners=2, cluster_size=150, rank=5).fit(X, Y)
    rows, expected = normalize(X_test), np.zeros((120, 20))
    for learner in model.learners_:
        near = np.linalg.norm(rows[:, None] - learner.centres, axis=2).argmin(axis=1)
        for i, part in enumerate(learner.parts):
            expected[near == i] += 0.5 * part.scores(rows[near == i], 10).toarray()
    np.testing.assert_allclose(model.decision_function(X_test), expected, atol=1e-12)


def test_the_order_of_the_labels_does_not_matter(planted, rng):
    X, _, X_test, _ = planted
    Y = (rng.random((360, 20)) < 0.15).astype(int)
    order = rng.permutation(20)
    names = [f"label {j}" for j in range(20)]
    settings = {"n_learners": 2, "cluster_size": 200, "rank": 6, "n_neighbours": 20}
    one = SLEEC(**settings).fit(X, Y, names)
    other = SLEEC(**settings).fit(X, Y[:, order], [names[j] for j in order])
    assert other.label_names_ == tuple(names[j] for j in order)
    np.testing.assert_array_equal(one.decision_function(X_test)[:, order], other.decision_function(X_test))


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_sparse_rows_give_what_dense_rows_give(planted, rng, l1):
    X, X_test = (np.where(np.abs(part) < 0.1, 0.0, part) for part in (planted[0], planted[2]))
    Y = (rng.random((360, 20)) < 0.15).astype(int)
    settings = {"n_learners": 2, "cluster_size": 200, "rank": 6, "n_neighbours": 20, "l1": l1}
    dense = SLEEC(**settings).fit(X, Y)
    thin = SLEEC(**settings).fit(sparse.csr_array(X), sparse.csr_array(Y))
    np.testing.assert_allclose(dense.decision_function(X_test), thin.decision_function(sparse.csr_array(X_test)))


def test_the_seed_decides(planted, rng):
    X, _, X_test, _ = planted
    Y = (rng.random((360, 20)) < 0.15).astype(int)
    scores = [SLEEC(cluster_size=60, random_state=s).fit(X, Y).decision_function(X_test) for s in (1, 1, 2)]
    assert np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])


def test_rows_and_labels_may_be_left_as_long_as_they_are(planted, rng):
    X, _, X_test, _ = planted
    Y = (rng.random((360, 20)) < 0.15).astype(int)
    long = X * rng.uniform(0.5, 2.0, (360, 1))
    scaled = SLEEC(rank=5).fit(long, Y).decision_function(X_test)
    np.testing.assert_array_equal(scaled, SLEEC(rank=5).fit(X, Y).decision_function(3.0 * X_test))
    assert not np.array_equal(scaled, SLEEC(rank=5, normalise=False).fit(long, Y).decision_function(X_test))
    assert not np.array_equal(scaled, SLEEC(rank=5, normalise_labels=False).fit(X, Y).decision_function(X_test))


@pytest.mark.parametrize("most_rows", [1, 7, 100])
def test_clusters_are_limited_and_hold_every_row_once(rng, most_rows):
    X = np.vstack((rng.standard_normal((60, 3)), np.ones((40, 3))))  # the last cannot be parted
    found = cluster_rows(sparse.csr_array(X), most_rows, np.random.default_rng(0))
    assert max(map(len, found)) <= most_rows
    np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(100))


def test_rows_far_apart_are_clusters(rng):
    X = 10.0 * np.eye(4)[np.arange(80) % 4] + 0.1 * rng.standard_normal((80, 4))
    found = cluster_rows(X, 20, np.random.default_rng(0))
    assert sorted(tuple(rows) for rows in found) == [tuple(range(i, 80, 4)) for i in range(4)]


def test_the_nearest_centre(rng):
    X, centres = rng.standard_normal((50, 3)), rng.standard_normal((6, 3))
    expected = np.linalg.norm(X[:, None] - centres, axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest_centre(X, centres), expected)
    np.testing.assert_array_equal(nearest_centre(sparse.csr_array(X), centres), expected)


def test_labels_that_nobody_has_and_rows_without_labels(planted):
    X, _, X_test, _ = planted
    Y = np.zeros((360, 3), dtype=int)
    assert not SLEEC().fit(X, Y).decision_function(X_test).any()
    Y[:5, 1] = 1
    assert SLEEC().fit(X, Y).decision_function(X_test).shape == (120, 3)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"n_learners": 0}, "n_learners is 0; it must be a whole number from 1 on"),
        ({"cluster_size": 2.5}, "cluster_size is 2.5"),
        ({"n_predict_neighbours": True}, "n_predict_neighbours is True"),
        ({"beta": 0.0}, "beta is 0.0; it must be a positive number"),
        ({"l1": -1.0}, "l1 is -1.0; it must be 0 or a positive number"),
        ({"random_state": None}, "random_state is None"),
    ],
)
def test_mistakes_are_named(planted, wrong, says):
    with pytest.raises(DataError, match=says):
        SLEEC(**wrong).fit(planted[0], planted[1])


@pytest.mark.parametrize("most_rows", [150, 400])
def test_a_map_that_is_learned_again_is_that_of_a_new_model(planted, most_rows):
    X, Y, X_test, _ = planted
    settings = {"n_learners": 2, "cluster_size": most_rows, "rank": 12, "n_neighbours": 30}
    again = SLEEC(beta=0.1, **settings).fit(X, Y).set_params(beta=5.0).learn_map(X)
    afresh = SLEEC(beta=5.0, **settings).fit(X, Y)
    np.testing.assert_array_equal(again.decision_function(X_test), afresh.decision_function(X_test))
