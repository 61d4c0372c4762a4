"""What is not an answer is never taken for no; what is not a name is never a label."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from streamlabel import StreamingLabelClassifier, Tagger
from streamlabel.errors import DataError
from streamlabel.validation import check_label_names


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((60, 5))
    return X, (X[:, :3] + 0.1 * rng.standard_normal((60, 3)) > 0).astype(int)


@pytest.mark.parametrize("nothing", [None, "", "  ", pd.NA, pd.NaT])
def test_a_cell_without_an_answer_is_refused(rows, nothing):
    X, Y = rows
    model = StreamingLabelClassifier().fit(X, Y[:, :2])
    answers = Y[:, 2].astype(object)
    answers[:20] = nothing
    with pytest.raises((DataError, ValueError, TypeError)) as said:
        model.add_labels(X, answers, ["q"])
    assert isinstance(said.value, DataError)
    assert "unknown answer is not no" in str(said.value)
    past = Y.astype(object)
    past[3, 1] = nothing
    with pytest.raises(ValueError):
        StreamingLabelClassifier().fit(X, past)
    assert model.label_names_ == ("label_0", "label_1")


def test_what_was_not_asked_may_hold_anything(rows):
    X, Y = rows
    model = StreamingLabelClassifier().fit(X, Y[:, :2])
    answers = Y[:, [2]].astype(object)
    answers[:20] = None
    asked = np.arange(60) >= 20
    model.add_labels(X, answers, ["by rows"], annotated=asked)
    model.add_labels(X, answers, ["by cells"], annotated=sparse.csr_array(asked[:, None]))
    assert [report.n_rows for report in model.reports_[2:]] == [40, 40]
    assert model.reports_[2].n_yes == int(Y[20:, 2].sum())


def test_numbers_in_an_object_array_are_numbers(rows):
    X, Y = rows
    one = StreamingLabelClassifier(beta=1.0).fit(X, Y.astype(object))
    assert np.array_equal(one.coef_, StreamingLabelClassifier(beta=1.0).fit(X, Y).coef_)
    with pytest.raises(DataError, match="it holds 'yes' in row 0"):
        one.add_labels(X, np.array(["yes", "no"] * 30, dtype=object), ["q"])


@pytest.mark.parametrize("name", [None, b"x", 5, 1.5, ("a",)])
def test_a_name_is_a_string(name, rows):
    X, Y = rows
    with pytest.raises(DataError, match="names are strings"):
        StreamingLabelClassifier().fit(X, Y, ["a", "b", name])
    tagger = Tagger().fit(["one two", "two three", "three four", "four five"], [["x"], ["x"], ["y"], ["y"]])
    with pytest.raises(DataError, match="names are strings"):
        tagger.learn(name, ["one two"], ["four five"])


@pytest.mark.parametrize(
    "name", ["health\u200b", "\ufeffhealth", "a\u202eb", "a\u2028b", "a\u2066b", "\u200dx", "soft\u00adhyphen"]
)
def test_what_nobody_can_see_is_no_part_of_a_name(name):
    with pytest.raises(DataError, match="invisible; remove it"):
        check_label_names([name], 1)


@pytest.mark.parametrize(
    "name", ["\u0645\u06cc\u200c\u062e\u0648", "\U0001f468\u200d\U0001f33e", "क\u094d\u200dष", "❤\ufe0f"]
)
def test_joiners_inside_words_and_emoji_stay(name):
    assert check_label_names([name], 1)


def test_what_is_no_list_of_answers_is_refused(rows):
    tagger = Tagger().fit(["one two", "two three", "three four", "four five"], [["x"], ["x"], ["y"], ["y"]])
    with pytest.raises(DataError, match="no of label 'q' is a single NoneType; give a list"):
        tagger.learn("q", ["one two"], None)
    with pytest.raises(DataError, match="is blank"):
        tagger.learn("  ", ["one two"])
    with pytest.raises(DataError, match=r"list of texts; make rows of them \(TextVectorizer\), or use"):
        StreamingLabelClassifier().fit(["a text", "another"], [[1], [0]])
