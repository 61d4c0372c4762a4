"""Streams partition the labels; masks obey their budget; both checked on small cases by hand and by property."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from streamlabel.data.streams import (
    annotated_rows,
    dated_stream,
    first_occurrence,
    random_stream,
)
from streamlabel.errors import DataError
from streamlabel.types import Dataset, TextDataset

DATES = np.array(["2021-03-01", "2020-05-01", "NaT", "2020-05-01", "2022-01-01"], dtype="datetime64[D]")
# Column: 0 first on 2020-05-01, 1 never, 2 on 2021-03-01, 3 on an undated row only, 4 on 2020-05-01, 5 on 2022-01-01.
Y_DATED = np.array(
    [
        [1, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [1, 0, 1, 1, 0, 0],
        [1, 0, 0, 0, 1, 0],
        [0, 0, 1, 0, 0, 1],
    ],
    dtype=np.int8,
)


def dated_set(dates=DATES):
    labels = sparse.csr_array(Y_DATED)
    return TextDataset(["text"] * 5, labels, tuple("abcdef"), row_dates=dates, source="five texts")


def as_lists(stream):
    return stream.past.tolist(), [batch.tolist() for batch in stream.batches], stream.left_out.tolist()


@given(
    n_labels=st.integers(1, 60),
    share=st.floats(0, 1),
    batch_size=st.none() | st.integers(1, 70),
    seed=st.integers(0, 2**40),
)
def test_every_label_has_one_place(n_labels, share, batch_size, seed):
    n_past = round(share * n_labels)
    stream = random_stream(n_labels, n_past, batch_size, random_state=seed)
    assert len(stream.past) == n_past
    assert stream.n_labels == n_labels
    assert sorted([*stream.past, *stream.arriving]) == list(range(n_labels))
    sizes = [len(batch) for batch in stream.batches]
    assert 0 not in sizes
    if sizes and batch_size is not None:
        assert sizes[:-1] == [batch_size] * (len(sizes) - 1)
        assert sizes[-1] <= batch_size
    elif batch_size is None:
        assert len(sizes) == (n_past < n_labels)


def test_random_order_depends_on_the_seed_only():
    orders = [random_stream(50, 20, 5, random_state=seed).arriving.tolist() for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert random_stream(50, 20, 7, random_state=1).arriving.tolist() == orders[0]


def test_streams_and_draws_do_not_depend_on_the_process():
    code = (
        "import sys, numpy as np; from streamlabel.data.streams import annotated_rows, random_stream;"
        "Y = np.eye(40, 6, dtype=np.int8); s = random_stream(50, 20, 7, random_state=8);"
        "m = annotated_rows(Y, 9, how='random', stratify=True, random_state=8);"
        "print([*s.past.tolist(), *s.arriving.tolist(), *m.indices.tolist()])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    stream = random_stream(50, 20, 7, random_state=8)
    mask = annotated_rows(np.eye(40, 6, dtype=np.int8), 9, how="random", stratify=True, random_state=8)
    assert run.stdout.strip() == str([*stream.past.tolist(), *stream.arriving.tolist(), *mask.indices.tolist()])


def test_first_occurrence_by_hand():
    first = first_occurrence(sparse.csr_array(Y_DATED), DATES)
    assert first.dtype == np.dtype("datetime64[D]")
    assert first.astype(str).tolist() == ["2020-05-01", "NaT", "2021-03-01", "NaT", "2020-05-01", "2022-01-01"]


def test_dates_decide_the_order_and_ties_go_to_the_lower_column():
    assert as_lists(dated_stream(dated_set(), n_past=1)) == ([0], [[4], [2], [5]], [1, 3])
    assert as_lists(dated_stream(dated_set(), n_past=0)) == ([], [[0, 4], [2], [5]], [1, 3])
    assert as_lists(dated_stream(dated_set(), n_past=0, batch_size=3)) == ([], [[0, 4, 2], [5]], [1, 3])
    assert as_lists(dated_stream(dated_set(), n_past=4)) == ([0, 4, 2, 5], [], [1, 3])


@pytest.mark.parametrize("cutoff", ["2021-03-01", datetime.date(2021, 3, 1), np.datetime64("2021-03-01T10:00")])
def test_past_is_what_occurred_before_the_cutoff(cutoff):
    assert as_lists(dated_stream(dated_set(), cutoff=cutoff)) == ([0, 4], [[2], [5]], [1, 3])


def test_cutoff_before_and_after_everything():
    assert as_lists(dated_stream(dated_set(), cutoff="1990-01-01"))[0] == []
    assert as_lists(dated_stream(dated_set(), cutoff="2090-01-01")) == ([0, 4, 2, 5], [], [1, 3])


def test_dated_stream_takes_numeric_sets_too():
    dataset = Dataset(sparse.csr_array((5, 3)), sparse.csr_array(Y_DATED), tuple("abcdef"), row_dates=DATES)
    assert as_lists(dated_stream(dataset, n_past=2)) == ([0, 4], [[2], [5]], [1, 3])


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "either n_past or cutoff"),
        ({"n_past": 1, "cutoff": "2020-01-01"}, "either n_past or cutoff"),
        ({"cutoff": "last spring"}, "not a date"),
        ({"cutoff": "NaT"}, "not a date"),
        ({"cutoff": 2020}, "not a date"),
        ({"n_past": 5}, "n_past is 5; expected 0 to 4"),
    ],
)
def test_dated_requests_that_cannot_be_met(arguments, part):
    with pytest.raises(DataError, match=part):
        dated_stream(dated_set(), **arguments)


def test_sets_without_dates():
    with pytest.raises(DataError, match="five texts: the data set has no row dates"):
        dated_stream(dated_set(None), n_past=1)
    with pytest.raises(DataError, match="no label has a dated positive row"):
        dated_stream(dated_set(np.full(5, "NaT", dtype="datetime64[D]")), n_past=0)
    with pytest.raises(DataError, match="4 dates for 5 rows"):
        dated_stream(dated_set(DATES[:4]), n_past=0)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"n_past": 11}, "n_past"),
        ({"n_past": -1}, "n_past"),
        ({"n_past": 2, "batch_size": 0}, "batch_size"),
        ({"n_past": 2, "batch_size": 2, "n_batches": 2}, "not both"),
        ({"n_past": 2, "n_batches": 9}, "n_batches.* is 9; expected 1 to 8"),
        ({"n_past": 2, "n_batches": 0}, "n_batches"),
        ({"n_past": 1.5}, "whole number"),
    ],
)
def test_cuts_that_cannot_be_made(arguments, part):
    with pytest.raises(DataError, match=part):
        random_stream(10, **arguments)


def test_a_stream_needs_labels():
    with pytest.raises(DataError, match="n_labels"):
        random_stream(0, 0)


def label_matrix(n_rows=200, n_labels=12, seed=0):
    """Columns of falling frequency; the last has no positive row, the one before no negative one."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n_rows, n_labels)) < 0.5 ** np.arange(1, n_labels + 1)
    Y[:, -1], Y[:, -2] = False, True
    return sparse.csr_array(Y.astype(np.int8))


def test_all_rows():
    mask = annotated_rows(label_matrix())
    assert mask.dtype == bool
    assert mask.shape == (200, 12)
    assert mask.toarray().all()


def test_first_rows():
    mask = annotated_rows(label_matrix(), 30, how="first").toarray()
    assert mask[:30].all()
    assert not mask[30:].any()


@given(
    n_rows=st.integers(1, 40),
    n_labels=st.integers(0, 6),
    budget=st.integers(2, 50),
    how=st.sampled_from(["first", "random"]),
    same_rows=st.booleans(),
    stratify=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_budgets_hold_and_stratified_draws_have_both_answers(n_rows, n_labels, budget, how, same_rows, stratify, seed):
    Y = np.random.default_rng(seed).random((n_rows, n_labels)) < 0.15
    same_rows = same_rows and not stratify
    mask = annotated_rows(Y, budget, how=how, same_rows=same_rows, stratify=stratify, random_state=seed)
    assert isinstance(mask, sparse.csc_array)
    assert mask.has_canonical_format
    mask = mask.toarray()
    assert mask.shape == Y.shape
    assert (mask.sum(axis=0) == min(budget, n_rows)).all()
    if same_rows and n_labels:
        assert (mask == mask[:, :1]).all()
    if stratify:
        assert ((Y & mask).any(axis=0) == Y.any(axis=0)).all()
        assert ((~Y & mask).any(axis=0) == (~Y).any(axis=0)).all()


def test_labels_draw_their_own_rows_and_later_columns_do_not_matter():
    Y = label_matrix()
    mask = annotated_rows(Y, 20, how="random", random_state=3).toarray()
    assert len(np.unique(mask, axis=1).T) == 12
    assert np.array_equal(annotated_rows(Y[:, :5], 20, how="random", random_state=3).toarray(), mask[:, :5])
    assert not np.array_equal(annotated_rows(Y, 20, how="random", random_state=4).toarray(), mask)


def test_random_draws_are_fair():
    Y = sparse.csr_array((50, 4000), dtype=np.int8)
    share = annotated_rows(Y, 10, how="random").mean(axis=1)
    assert np.abs(share - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 4000)


def test_stratified_first_rows_by_hand():
    Y = np.array([[0, 1, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]])
    mask = annotated_rows(Y, 2, how="first", stratify=True).toarray()
    assert [np.flatnonzero(column).tolist() for column in mask.T] == [[0, 3], [0, 3], [0, 1]]


def test_the_random_state_is_not_read_where_nothing_is_drawn():
    Y, rng = label_matrix(), np.random.default_rng(0)
    annotated_rows(Y, 5, how="first", stratify=True, random_state=rng)
    assert rng.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"budget": 5}, "how='all' annotates every row"),
        ({"how": "first"}, "needs a budget"),
        ({"budget": 0, "how": "random"}, "budget"),
        ({"budget": 2.0, "how": "random"}, "whole number"),
        ({"budget": 1, "how": "random", "stratify": True}, "one positive and one negative"),
        ({"budget": 5, "how": "random", "stratify": True, "same_rows": True}, "same_rows"),
        ({"budget": 5, "how": "last"}, "'all', 'first' or 'random'"),
        ({"budget": 5, "how": "random", "random_state": "x"}, "random_state"),
    ],
)
def test_budgets_that_make_no_sense(arguments, part):
    with pytest.raises(DataError, match=part):
        annotated_rows(label_matrix(), **arguments)


def test_a_mask_that_would_not_fit_is_refused():
    with pytest.raises(DataError, match="annotated cells is 1,000,000,000,000"):
        annotated_rows(sparse.csr_array((10**6, 10**6), dtype=np.int8))
