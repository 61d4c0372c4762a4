"""The timeline on the news corpus, whose topics have dates."""

from __future__ import annotations

import numpy as np
import pytest

from streamlabel.exceptions import DataError
from streamlabel.experiments.arrivals import corpus_sets
from streamlabel.experiments.timeline import run_timeline


def test_labels_are_learned_from_their_first_year_and_judged_later():
    train, _ = corpus_sets(0, n_texts=1500)
    records = run_timeline(train, ["2020-01-01"], years=1, least_yes=2, least_later=2)
    assert records
    first = {name: train.row_dates[train.Y[:, [j]].nonzero()[0]].min() for j, name in enumerate(train.label_names)}
    for record in records:
        born = first[record.label]
        assert np.datetime64("2020-01-01") <= born < np.datetime64("2021-01-01")
        in_year = (train.row_dates >= born) & (train.row_dates < born + np.timedelta64(365, "D"))
        assert record.n_rows == in_year.sum()
        column = train.Y[:, [train.label_names.index(record.label)]].toarray().ravel()
        assert record.n_yes == column[in_year].sum()
        assert 0.0 <= record.average_precision_alone <= 100.0


def test_rows_need_dates():
    train, _ = corpus_sets(0, n_texts=200)
    undated = type(train)(train.X, train.Y, train.label_names)
    with pytest.raises(DataError, match="no dates"):
        run_timeline(undated, ["2020-01-01"])
