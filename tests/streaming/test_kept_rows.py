"""Answers of the labels that may enter a code: their Gram, grown label by label or many at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.streaming import kept_rows as memory
from streamlabel.streaming.kept_rows import LabelAnswers, positive_rows


@pytest.mark.parametrize("sizes", [(1,), (3, 1, 2), (70,), (2, 70, 1), (64, 65)])
def test_the_gram_grows_to_that_of_all_labels(sizes):
    draw = np.random.default_rng(0)
    answers = (draw.random((40, 5 + sum(sizes))) < 0.2).astype(np.int8)
    found = LabelAnswers(np.arange(5), sparse.csr_array(answers[:, :5]))
    assert found.gram.shape == (5, 5)  # from here on it is grown, not made
    first = 5
    for size in sizes:
        found = found.appended(first, positive_rows(sparse.csr_array(answers[:, first : first + size])))
        first += size
    np.testing.assert_allclose(found.gram, 40 * np.cov(answers.T, bias=True), atol=1e-12)
    assert np.array_equal(found.by_rows.toarray(), answers)
    assert np.array_equal(found.labels, np.arange(first))


def test_many_new_labels_are_not_multiplied_one_by_one(monkeypatch):
    calls = []
    monkeypatch.setattr(memory.np, "count_nonzero", lambda rows: calls.append(rows) or int(rows.sum()))
    answers = LabelAnswers(np.arange(1), sparse.csr_array(np.eye(90, 1, dtype=np.int8)))
    assert answers.gram.shape == (1, 1)
    answers.appended(1, [np.array([row]) for row in range(80)])
    assert len(calls) == 0
