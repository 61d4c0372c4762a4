"""The methods that are compared: each against the library it stands for, and the rule that chooses for them."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from planted_set import planted_sets
from streamlabel import LEML
from streamlabel.errors import DataError, MissingExtraError
from streamlabel.experiments import peers, tuning
from streamlabel.experiments.methods import BR, METHODS, SLL, Apart, Method, installed, parse_methods, sized, to_run
from streamlabel.experiments.peers import NapkinXC, Omikuji, OneVsRest, River
from streamlabel.experiments.tuning import Rows, all_columns, choose, learn_batch, narrowed
from streamlabel.metrics.ranking import precision_at_k

TRAIN, TEST = planted_sets()
X, X_TEST = narrowed(TRAIN, TEST)
PAST, NEW = TRAIN.Y[:, :24], TRAIN.Y[:, 24:]
ROWS = Rows(X, PAST, NEW, X_TEST, TEST.Y[:, 24:])
BETA = {"beta": 1.0}


def learned(name: str, parameters: dict, rows: Rows = ROWS) -> np.ndarray:
    return learn_batch(METHODS[name], parameters, rows, seed=0).scores


def row_spread(matrix: sparse.csr_array) -> float:
    dense = matrix.toarray()
    return float(((dense - dense.mean(axis=0)) ** 2).sum(axis=1).mean())


def test_br_ridge_is_scikit_learns_ridge():
    expected = Ridge(alpha=1.0).fit(X.toarray(), NEW.toarray()).predict(X_TEST.toarray())
    np.testing.assert_allclose(learned(BR, BETA), expected, atol=1e-8)


@pytest.mark.parametrize(("kind", "one"), [("logistic", LogisticRegression), ("svm", LinearSVC)])
def test_one_vs_rest_is_one_classifier_a_label(kind, one):
    extra = {"solver": "liblinear"} if kind == "logistic" else {}
    scores = OneVsRest(kind, C=2.0, seed=0).fit(X, NEW).decision_function(X_TEST)
    C = float(f"{2.0 / row_spread(X):.6g}")
    for j in range(NEW.shape[1]):
        alone = one(C=C, random_state=0, **extra).fit(X.toarray(), NEW[:, [j]].toarray().ravel())
        np.testing.assert_allclose(scores[:, j], alone.decision_function(X_TEST.toarray()), atol=2e-3)


def test_one_label_is_enough_for_every_apart_method():
    rows = Rows(X, PAST, NEW[:, [0]], X_TEST, TEST.Y[:, [24]])
    for name in ("scikit-learn logistic", "BR logistic"):
        assert learned(name, METHODS[name].grid[-1], rows).shape == (200, 1)


def test_retraining_learns_the_past_labels_too():
    whole = sparse.csr_array(sparse.hstack((PAST, NEW), format="csr"))
    expected = LEML(rank=5, beta=0.3, random_state=0).fit(X, whole).decision_function(X_TEST)
    np.testing.assert_allclose(learned("LEML", {"rank": 5, "beta": 0.3}), expected[:, 24:], atol=1e-8)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.independent])
def test_a_part_of_a_batch_is_learned_as_in_the_whole(name):
    if METHODS[name].package:
        pytest.importorskip(METHODS[name].package)
    parameters = METHODS[name].grid[-1]
    part = Rows(X, PAST, NEW[:, :4], X_TEST, TEST.Y[:, 24:28])
    np.testing.assert_allclose(learned(name, parameters)[:, :4], learned(name, parameters, part), atol=2e-3)


def test_batches_are_added_to_the_past_not_to_each_other():
    learner = METHODS[SLL].make(BETA, 0)
    learner.start(X, PAST)
    learner.arrive(NEW[:, :5])
    learner.arrive(NEW[:, 5:])
    assert np.array_equal(learner.scores(X_TEST), learned(SLL, BETA, Rows(X, PAST, NEW[:, 5:], X_TEST, TEST.Y[:, 29:])))


def test_without_past_labels_a_batch_is_fitted():
    rows = Rows(X, PAST[:, :0], NEW, X_TEST, TEST.Y[:, 24:])
    np.testing.assert_allclose(learned(SLL, BETA, rows), learned(BR, BETA), atol=1e-8)


def test_napkinxc_scores_are_its_probabilities():
    models = pytest.importorskip("napkinxc.models")
    for kind in ("BR", "PLT"):
        peer = NapkinXC(kind, liblinear_c=1.0, seed=0).fit(X, TRAIN.Y)
        scores = peer.decision_function(X_TEST)
        assert isinstance(peer._model, getattr(models, kind))
        assert ((scores >= 0) & (scores <= 1)).all()
        best = peer._model.predict(sparse.csr_matrix(X_TEST), top_k=1)
        top = scores[np.arange(200), [row[0] for row in best]]
        np.testing.assert_allclose(top, scores.max(axis=1), rtol=1e-6)


@pytest.mark.parametrize("kind", ["BR", "PLT"])
def test_napkinxc_does_not_mind_the_order_in_which_a_row_stores_its_labels(kind):
    pytest.importorskip("napkinxc")
    mixed = TRAIN.Y[:, np.random.default_rng(0).permutation(TRAIN.n_labels)]
    assert not mixed.has_sorted_indices
    found, expected = (
        NapkinXC(kind, liblinear_c=1.0, seed=0).fit(X, Y).decision_function(X_TEST)
        for Y in (mixed, sparse.csr_array(mixed.toarray()))
    )
    np.testing.assert_array_equal(found, expected)
    assert (found.max(axis=0) > 0.0).all()


@pytest.mark.parametrize("make", [partial(Omikuji, 100.0), partial(NapkinXC, "BR", 100.0, seed=0)])
def test_trees_have_passes_enough_to_converge_on_dense_rows(make, monkeypatch):
    pytest.importorskip("omikuji")
    pytest.importorskip("napkinxc")
    draw = np.random.default_rng(0)
    dense = draw.random((150, 30)) + 5.0
    Y = sparse.csr_array(((dense - 5.5) @ draw.standard_normal((30, 8)) > 1.0).astype(np.int8))
    found = []
    for most in (20, 500):
        monkeypatch.setattr(peers, "_MOST_PASSES", most)
        found.append(
            precision_at_k(Y, make().fit(sparse.csr_array(dense), Y).decision_function(sparse.csr_array(dense)), 1)
        )
    assert found[1] > found[0] + 0.05


def test_omikuji_scores_every_label(capfd):
    pytest.importorskip("omikuji")
    peer = Omikuji(linear_c=1.0).fit(X, TRAIN.Y)
    scores = peer.decision_function(X_TEST)
    assert (scores > 0).mean() > 0.95
    assert precision_at_k(TEST.Y, scores, k=1) > precision_at_k(TEST.Y, np.tile(TRAIN.Y.sum(axis=0), (200, 1)), k=1)
    assert capfd.readouterr().out == ""


def test_river_scores_are_its_log_odds():
    pytest.importorskip("river")
    peer = River(rate=1.0, seed=0).fit(X, NEW)
    row = X_TEST[[3]]
    found = peer._model.predict_proba_one(dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)))
    scores = peer.decision_function(X_TEST)[3]
    for label, chances in found.items():
        assert scores[label] == pytest.approx(math.log(chances[True] / chances[False]), abs=1e-6)


def test_river_is_shown_a_limited_number_of_answers(monkeypatch):
    pytest.importorskip("river")
    monkeypatch.setattr(peers, "RIVER_CELLS", 60)
    peer = River(rate=1.0, seed=0).fit(X, NEW)
    assert {one.optimizer.n_iterations for one in peer._model.values()} == {60 // NEW.shape[1]}


def test_what_is_not_installed_is_left_out_and_says_how_to_get_it(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(peers, "find_spec", lambda name: None if name in ("napkinxc", "omikuji") else real(name))
    assert "omikuji" not in installed(METHODS)
    assert SLL in installed(METHODS)
    assert to_run(None, ("omikuji", SLL)) == to_run((SLL,), METHODS) == [SLL]
    with pytest.raises(MissingExtraError, match=r"the method omikuji needs the package omikuji"):
        to_run(("omikuji",), METHODS)
    with pytest.raises(MissingExtraError, match="needs the package omikuji: pip install omikuji"):
        Omikuji(1.0).fit(X, NEW)


def test_names_of_methods_are_checked():
    assert parse_methods(" leml ,SLL,leml") == ("LEML", "SLL")
    for wrong in ("SLL,slow", "", " , "):
        with pytest.raises(ValueError, match="there are SLL, SLL paper"):
            parse_methods(wrong)


class _Answer:
    """Scores that are right for a share of the labels: what it is good for is known beforehand."""

    seen: ClassVar[list[tuple[int, int]]] = []

    def __init__(self, sharpness: float) -> None:
        self.sharpness = sharpness

    def fit(self, matrix, labels):
        self.seen.append((matrix.shape[0], labels.shape[1]))
        self.weights = Ridge(alpha=1.0).fit(matrix.toarray(), labels.toarray())
        return self

    def decision_function(self, matrix):
        return self.sharpness * self.weights.predict(matrix.toarray())


def _fake(*sharpness: float) -> Method:
    grid = tuple({"sharpness": value} for value in sharpness)
    return Method("fake", lambda parameters, seed: Apart(lambda: _Answer(**parameters)), grid)


def test_the_best_candidate_on_held_out_rows_is_chosen():
    assert choose(_fake(-1.0, 0.0, 1.0), X, PAST, NEW) == {"sharpness": 1.0}
    assert choose(_fake(2.0, 1.0, 3.0), X, PAST, NEW) == {"sharpness": 2.0}  # all equal: the first


def test_candidates_learn_from_four_fifths_of_the_rows(monkeypatch):
    _Answer.seen.clear()
    choose(_fake(1.0, 2.0), X, PAST, NEW)
    assert _Answer.seen == [(240, 10), (240, 10)]
    monkeypatch.setattr(tuning, "MOST_ROWS", 100)
    choose(_fake(1.0, 2.0), X, PAST, NEW)
    assert _Answer.seen[-1] == (80, 10)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.at_arrival | method.at_scoring])
def test_what_candidates_share_is_learned_once_and_changes_nothing(name):
    method = METHODS[name]
    starts = []

    def make(parameters, seed):
        starts.append(parameters)
        return method.make(parameters, seed)

    rows = Rows(X, PAST, NEW, X_TEST, TEST.Y[:, 24:])
    found = dict(tuning._judged(replace(method, make=make), rows))
    assert len(starts) < len(method.grid)
    for number, candidate in enumerate(method.grid):
        scores = learn_batch(method, candidate, rows, 0).scores
        expected = [precision_at_k(rows.Y_test, scores, k=k) for k in (1, 3, 5)]
        assert list(found[number]) == expected, candidate


def test_many_past_labels_are_a_dictionary_for_streaming_labels_alone():
    assert {candidate.get("dictionary") for candidate in sized(METHODS[SLL], 5000).grid} == {3000}
    assert sized(METHODS[SLL], 4999) == METHODS[SLL]
    assert sized(METHODS["LEML"], 5000) == METHODS["LEML"]


def test_a_single_candidate_is_not_run():
    _Answer.seen.clear()
    assert choose(_fake(5.0), X, PAST, NEW) == {"sharpness": 5.0}
    assert not _Answer.seen


@pytest.mark.parametrize("sharpness", [1.0, 100.0])
def test_labels_that_nobody_can_learn_rank_last_on_any_scale(sharpness):
    train, test = planted_sets(n_empty=3)
    rows = Rows(X, PAST, train.Y[:, 24:], X_TEST, test.Y[:, 24:])
    found = learn_batch(_fake(sharpness), {"sharpness": sharpness}, rows, seed=0)
    assert found.n_learned == 10
    assert (found.scores[:, 10:].max(axis=1) < found.scores[:, :10].min(axis=1)).all()
    assert (all_columns(np.zeros((2, 1)), np.array([0]), np.array([[0, 1], [1, 1]]))[:, 1] == 1.0).all()
    with pytest.raises(DataError, match="none of 3 new labels"):
        learn_batch(_fake(1.0), {"sharpness": 1.0}, Rows(X, PAST, train.Y[:, 34:], X_TEST, test.Y[:, 34:]), 0)


def test_features_are_cut_for_everybody_where_classifiers_would_not_fit(monkeypatch):
    assert X.shape[1] == TRAIN.n_features
    monkeypatch.setattr(tuning, "MOST_BYTES", 1000)
    monkeypatch.setattr(tuning, "MOST_FEATURES", 7)
    kept, kept_test = narrowed(TRAIN, TEST)
    assert kept.shape == (300, 7)
    assert kept_test.shape == (200, 7)
    np.testing.assert_allclose(sparse.linalg.norm(kept_test, axis=1), 1.0)
