"""The form of the scores does not matter, and bad scores are refused with one clear message."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.metrics import auc, ranking, row_blocks
from streamlabel.metrics.row_blocks import ColumnBlocks, RowBlocks

ROW_MEASURES = {
    "precision": lambda Y, S: ranking.precision_at_k(Y, S, 3),
    "ndcg": lambda Y, S: ranking.ndcg_at_k(Y, S, 3),
    "psp": lambda Y, S: ranking.propensity_scored_precision_at_k(Y, S, np.linspace(1, 3, Y.shape[1]), 3),
    "ranking_loss": ranking.ranking_loss,
    "coverage": ranking.coverage,
    "lrap": ranking.label_ranking_average_precision,
}
CELL_MEASURES = {
    "label_auc": auc.label_auc,
    "label_average_precision": auc.label_average_precision,
    "macro_auc": auc.macro_auc,
    "macro_average_precision": auc.macro_average_precision,
    "micro_auc": auc.micro_auc,
    "micro_average_precision": auc.micro_average_precision,
}
MEASURES = ROW_MEASURES | CELL_MEASURES


def row_forms(problem):
    dense, stored = problem.scores, problem.sparse_scores
    yield "sparse", stored
    yield "coo", stored.tocoo()
    yield "fortran", np.asfortranarray(dense)
    yield "callable of rows", RowBlocks(lambda a, b: dense[a:b], size=7)
    yield "callable of sparse rows", RowBlocks(lambda a, b: stored[a:b], size=9)
    yield "list of rows", RowBlocks([dense[:1], stored[1:30], dense[30:30], dense[30:]])


def column_forms(problem):
    dense, stored = problem.scores, problem.sparse_scores
    yield "callable of columns", ColumnBlocks(lambda a, b: dense[:, a:b], size=4)
    yield "list of columns", ColumnBlocks([stored[:, :9], dense[:, 9:10], dense[:, 10:]])


@pytest.mark.parametrize("measure", MEASURES)
def test_every_form_gives_the_same_bits(problem, measure):
    function = MEASURES[measure]
    whole = function(problem.truth, problem.scores)
    forms = list(row_forms(problem)) + (list(column_forms(problem)) if measure in CELL_MEASURES else [])
    for form, scores in forms:
        np.testing.assert_array_equal(function(problem.truth, scores), whole, err_msg=form)
    for truth in (sparse.csr_array(problem.truth), sparse.csc_matrix(problem.truth), problem.truth.astype(bool)):
        np.testing.assert_array_equal(function(truth, problem.scores), whole)


@pytest.mark.parametrize("measure", MEASURES)
def test_size_of_the_inner_blocks_does_not_matter(problem, measure, monkeypatch):
    whole = MEASURES[measure](problem.truth, problem.scores)
    monkeypatch.setattr(row_blocks, "BLOCK_CELLS", 60)
    np.testing.assert_array_equal(MEASURES[measure](problem.truth, problem.scores), whole)


@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_is_changed(problem, measure):
    truth, dense, stored = problem.truth.copy(), problem.scores.copy(), problem.sparse_scores
    MEASURES[measure](truth, dense)
    MEASURES[measure](truth, stored)
    np.testing.assert_array_equal(truth, problem.truth)
    np.testing.assert_array_equal(dense, problem.scores)
    np.testing.assert_array_equal(stored.data, problem.sparse_scores.data)


def test_blocks_of_different_precision_are_compared_exactly():
    truth = np.array([[1], [0], [0]])
    near = np.float64(0.1), np.float64(np.float32(0.1))  # differ in float64, not in float32
    mixed = RowBlocks([np.array([[near[0]]]), np.array([[near[1]]], dtype=np.float32), np.array([[0.0]])])
    dense = np.array([[near[0]], [near[1]], [0.0]])
    assert auc.macro_auc(truth, mixed) == auc.macro_auc(truth, dense) == 0.5


@pytest.mark.parametrize("measure", ROW_MEASURES)
def test_row_measures_read_a_generator_once(problem, measure):
    parts = RowBlocks(problem.scores[a : a + 10] for a in range(0, 40, 10))
    assert ROW_MEASURES[measure](problem.truth, parts) == ROW_MEASURES[measure](problem.truth, problem.scores)


@pytest.mark.parametrize("measure", CELL_MEASURES)
def test_measures_that_read_twice_refuse_a_generator_before_reading_it(measure):
    read = []
    parts = RowBlocks((read.append(i), np.zeros((1, 2)))[1] for i in range(2))
    with pytest.raises(DataError, match="read once"):
        CELL_MEASURES[measure](np.eye(2), parts)
    assert not read


@pytest.mark.parametrize("measure", ROW_MEASURES)
def test_row_measures_refuse_column_blocks(measure):
    with pytest.raises(DataError, match="RowBlocks instead of ColumnBlocks"):
        ROW_MEASURES[measure](np.eye(3), ColumnBlocks([np.eye(3)]))


BAD_SCORES = {
    "NaN": (np.array([[0.0, 1.0], [2.0, np.nan]]), "row 1, column 1"),
    "sparse NaN": (sparse.csr_array(([np.nan], ([1], [0])), shape=(2, 2)), "row 1, column 0"),
    "shape": (np.zeros((2, 3)), r"shape \(2, 3\)"),
    "vector": (np.zeros(4), "1 dimension"),
    "ragged": ([[1.0], [1.0, 2.0]], "cannot be read as a matrix"),
    "words": (np.array([["a", "b"], ["c", "d"]]), "give numbers"),
    "complex": (np.zeros((2, 2), dtype=complex), "give numbers"),
    "objects": (np.array([[None, 1], [2, 3]], dtype=object), "give numbers"),
    "too few rows": (RowBlocks([np.zeros((1, 2))]), "end after 1 of 2 rows"),
    "too many rows": (RowBlocks([np.zeros((2, 2)), np.zeros((1, 2))]), "go on after 2 rows"),
    "block of another width": (RowBlocks([np.zeros((2, 5))]), "shape"),
    "callable gives another height": (RowBlocks(lambda a, b: np.zeros((3, 2))), "shape"),
    "NaN in a block": (RowBlocks(lambda a, b: np.full((b - a, 2), np.nan)), "NaN"),
    "block size": (RowBlocks(lambda a, b: np.zeros((b - a, 2)), size=0), "block size"),
    "block that is no matrix": (RowBlocks([np.zeros(2)]), "dimension"),
}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kind", BAD_SCORES)
def test_bad_scores_give_a_data_error(measure, kind):
    scores, message = BAD_SCORES[kind]
    with pytest.raises(DataError, match=message):
        MEASURES[measure](np.eye(2), scores)


@pytest.mark.parametrize("measure", CELL_MEASURES)
def test_bad_column_blocks_give_a_data_error(measure):
    for scores, message in (
        (ColumnBlocks([np.zeros((2, 1))]), "end after 1 of 2 columns"),
        (ColumnBlocks([np.zeros((2, 3))]), "go on after 2 columns"),
        (ColumnBlocks([np.zeros((3, 2))]), "shape"),
    ):
        with pytest.raises(DataError, match=message):
            CELL_MEASURES[measure](np.eye(2), scores)


@pytest.mark.parametrize("truth", [np.full((2, 2), 2), np.zeros((0, 2)), np.zeros((2, 0)), np.array([[np.nan, 0]])])
def test_bad_truth_gives_a_data_error(truth):
    with pytest.raises(DataError):
        ranking.precision_at_k(truth, np.zeros(truth.shape))
